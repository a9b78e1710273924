//! The learning rate of each step, and the number of epochs.

use super::FitConfig;

/// The learning rate of the last step, as a share of the peak.
const FLOOR: f64 = 0.01;

/// A run that may be shortened shows after this part of its epochs whether it is ...
const JUDGED: u32 = 6;
/// ... and is over after this part.
const SHORTENED: u32 = 3;
/// A cross-entropy that much lower on training outfits than on the development split, in nats, is learned by heart. The
/// split of few outfits has errors of about that size.
const AHEAD: f64 = 0.1;

/// Rises linearly over the warm-up, then falls along half a cosine.
#[derive(Debug, Clone, Copy)]
pub(super) struct Schedule {
    peak: f64,
    warm_up: f64,
    /// When the cosine is half over, and over.
    half: f64,
    total: f64,
}

impl Schedule {
    /// `leads` are how far training was ahead of development after the epochs that are done.
    pub(super) fn new(config: &FitConfig, steps_per_epoch: u32, leads: &[f64]) -> Self {
        let steps = f64::from(steps_per_epoch);
        let warm_up = f64::from(config.warm_up) * steps;
        let total = f64::from(count_epochs(config, leads)) * steps;
        // Until it shows whether the run is shortened, the rate falls as if it were.
        let half = match judged_after(config) {
            Some(epoch) => f64::from(epoch) * steps,
            None => f64::midpoint(warm_up, total),
        };
        Self { peak: f64::from(config.learning_rate), warm_up, half, total }
    }

    /// The rate of a step, counted from 0.
    #[expect(clippy::cast_possible_truncation, reason = "a rate needs no more digits")]
    pub(super) fn rate(&self, step: u32) -> f32 {
        let step = f64::from(step) + 1.0;
        let part = |from: f64, to: f64| ((step - from) / (to - from).max(1.0)).min(1.0) / 2.0;
        let share = if step < self.warm_up {
            step / self.warm_up
        } else {
            let passed = if step < self.half {
                part(self.warm_up, self.half)
            } else {
                0.5 + part(self.half, self.total)
            };
            FLOOR + (1.0 - FLOOR) * f64::midpoint(1.0, (std::f64::consts::PI * passed).cos())
        };
        (self.peak * share) as f32
    }
}

/// The epoch after which it shows whether a run is shortened, if it may be.
fn judged_after(config: &FitConfig) -> Option<u32> {
    (config.shorten && config.epochs >= JUDGED).then_some(config.epochs / JUDGED)
}

/// How many epochs the run has, as far as those that are done say.
pub(super) fn count_epochs(config: &FitConfig, leads: &[f64]) -> u32 {
    let lead = judged_after(config).and_then(|epoch| leads.get(epoch as usize - 1));
    if lead.is_some_and(|lead| *lead > AHEAD) { config.epochs / SHORTENED } else { config.epochs }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_rises_and_falls() {
        let config = FitConfig { epochs: 10, warm_up: 2.0, learning_rate: 0.5, ..FitConfig::default() };
        let schedule = Schedule::new(&config, 100, &[]);
        let near = |step: u32, expected: f32| {
            let found = schedule.rate(step);
            assert!((found - expected).abs() < 1e-6, "step {step}: {found}, expected {expected}");
        };
        near(0, 0.5 / 200.0);
        near(99, 0.25);
        near(199, 0.5);
        near(599, 0.5 * 0.505);
        near(999, 0.005);
        let rates: Vec<f32> = (0..1000).map(|step| schedule.rate(step)).collect();
        assert!(rates[..200].is_sorted() && rates[199..].is_sorted_by(|a, b| a >= b));
    }

    #[test]
    fn without_a_warm_up_the_rate_starts_at_its_peak() {
        let config = FitConfig { epochs: 1, warm_up: 0.0, learning_rate: 1.0, ..FitConfig::default() };
        assert!(Schedule::new(&config, 1000, &[]).rate(0) > 0.999);
    }

    /// Sixty epochs, of which ten are done.
    fn after_ten(lead: f64) -> (u32, Schedule) {
        let config =
            FitConfig { epochs: 60, warm_up: 0.5, learning_rate: 1.0, shorten: true, ..FitConfig::default() };
        let leads = [0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, lead];
        (count_epochs(&config, &leads), Schedule::new(&config, 10, &leads))
    }

    #[test]
    fn a_run_that_learns_by_heart_is_shortened() {
        let (epochs, short) = after_ten(0.2);
        let (more, long) = after_ten(0.05);
        assert_eq!((epochs, more), (20, 60));
        for step in 0..100 {
            assert!(
                (short.rate(step) - long.rate(step)).abs() < 1e-6,
                "what is done does not change: {step}"
            );
        }
        assert!((short.rate(99) - 0.505).abs() < 1e-3);
        assert!((short.rate(149) - long.rate(349)).abs() < 1e-3, "then one falls five times as fast");
        assert!((short.rate(199) - 0.01).abs() < 1e-3 && (long.rate(599) - 0.01).abs() < 1e-3);
    }
}
