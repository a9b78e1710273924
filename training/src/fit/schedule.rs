//! The learning rate of each step, and the number of epochs.

use super::FitConfig;

/// The learning rate of the last step, as a share of the peak.
const FLOOR: f64 = 0.01;

/// A run with `shorten` ends after this part of its epochs if training is far ahead of development then.
const PART: u32 = 3;
/// In nats. The development split of few outfits has a standard error of about that size.
const FAR_AHEAD: f64 = 0.1;
/// Epochs without improvement that the first part waits while training is far ahead.
const PATIENCE: u32 = 8;
/// The second part ends in its middle if it has not improved and is this far behind the best, in nats. Before, its rate is too high to
/// tell: shops that gained by it in the end were up to 0.1 nats behind.
const FAR_BEHIND: f64 = 0.05;

/// Rises linearly over the warm-up, then falls along half a cosine. With `shorten` it falls twice: over the first part of the
/// epochs, and from its peak again over the rest.
#[derive(Debug, Clone, Copy)]
pub(super) struct Schedule {
    peak: f64,
    warm_up: f64,
    /// The steps at which the first and the last cosine end.
    first: f64,
    total: f64,
}

impl Schedule {
    pub(super) fn new(config: &FitConfig, steps_per_epoch: u32) -> Self {
        let steps = f64::from(steps_per_epoch);
        Self {
            peak: f64::from(config.learning_rate),
            warm_up: f64::from(config.warm_up) * steps,
            first: f64::from(first_part(config).unwrap_or(config.epochs)) * steps,
            total: f64::from(config.epochs) * steps,
        }
    }

    /// The rate of a step, counted from 0.
    #[expect(clippy::cast_possible_truncation, reason = "a rate needs no more digits")]
    pub(super) fn rate(&self, step: u32) -> f32 {
        let step = f64::from(step) + 1.0;
        let share = if step < self.warm_up {
            step / self.warm_up
        } else {
            let (from, to) =
                if step <= self.first { (self.warm_up, self.first) } else { (self.first, self.total) };
            let passed = ((step - from) / (to - from).max(1.0)).min(1.0);
            FLOOR + (1.0 - FLOOR) * f64::midpoint(1.0, (std::f64::consts::PI * passed).cos())
        };
        (self.peak * share) as f32
    }
}

/// The epoch after which a run with `shorten` may end.
fn first_part(config: &FitConfig) -> Option<u32> {
    (config.shorten && config.epochs >= PART).then_some(config.epochs / PART)
}

/// After how many epochs without improvement the run ends. After the last of the `done` ones training was `lead` ahead of
/// development, and this `behind` its best.
pub(super) fn patience(config: &FitConfig, done: usize, lead: f64, behind: f64) -> u32 {
    let few = match first_part(config) {
        Some(first) if done <= first as usize && lead > FAR_AHEAD => PATIENCE,
        Some(first) if done >= 2 * first as usize && behind > FAR_BEHIND => first,
        _ => config.patience,
    };
    config.patience.min(few)
}

/// How many epochs the run has. `leads` says how far training was ahead of development after each epoch so far.
pub(super) fn count_epochs(config: &FitConfig, leads: &[f64]) -> u32 {
    let ended = first_part(config)
        .filter(|epoch| leads.get(*epoch as usize - 1).is_some_and(|lead| *lead > FAR_AHEAD));
    ended.unwrap_or(config.epochs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_rates(schedule: &Schedule, expected: &[(u32, f32)], within: f32) {
        for &(step, expected) in expected {
            let found = schedule.rate(step);
            assert!((found - expected).abs() < within, "step {step}: {found}, expected {expected}");
        }
    }

    #[test]
    fn the_rate_rises_and_falls() {
        let config = FitConfig { epochs: 10, warm_up: 2.0, learning_rate: 0.5, ..FitConfig::default() };
        let schedule = Schedule::new(&config, 100);
        let expected = [(0, 0.5 / 200.0), (99, 0.25), (199, 0.5), (599, 0.5 * 0.505), (999, 0.005)];
        assert_rates(&schedule, &expected, 1e-6);
        let rates: Vec<f32> = (0..1000).map(|step| schedule.rate(step)).collect();
        assert!(rates[..200].is_sorted() && rates[199..].is_sorted_by(|a, b| a >= b));
        let at_once = FitConfig { warm_up: 0.0, ..config };
        assert_rates(&Schedule::new(&at_once, 1000), &[(0, 0.5)], 5e-4);
    }

    #[test]
    fn a_run_that_is_far_ahead_in_training_ends_sooner() {
        let config =
            FitConfig { epochs: 60, warm_up: 0.5, learning_rate: 1.0, shorten: true, ..FitConfig::default() };
        let after = |epochs: usize, lead: f64| count_epochs(&config, &vec![lead; epochs]);
        assert_eq!([after(19, 0.5), after(20, 0.05), after(20, 0.2), after(30, 0.2)], [60, 60, 20, 20]);
        let patient = FitConfig { patience: 60, ..config.clone() };
        let waits = |done: usize, lead: f64, behind: f64| patience(&patient, done, lead, behind);
        assert_eq!([waits(9, 0.05, 0.0), waits(9, 0.2, 0.0), waits(20, 0.2, 0.0)], [60, 8, 8]);
        assert_eq!([waits(30, 0.2, 0.2), waits(40, 0.2, 0.04), waits(40, 0.0, 0.06)], [60, 60, 20]);
        assert_eq!(patience(&FitConfig { shorten: false, ..patient.clone() }, 40, 0.2, 0.2), 60);
        assert_eq!(count_epochs(&FitConfig { shorten: false, ..config.clone() }, &[0.5; 60]), 60);
        let expected = [(4, 1.0), (102, 0.5), (199, 0.01), (200, 1.0), (399, 0.505), (599, 0.01)];
        assert_rates(&Schedule::new(&config, 10), &expected, 5e-3);
    }
}
