//! The learning rate of each step.

use super::FitConfig;

/// The learning rate of the last step, as a share of the peak.
const FLOOR: f64 = 0.01;

/// Rises linearly over the warm-up, then falls along half a cosine.
#[derive(Debug, Clone, Copy)]
pub(super) struct Schedule {
    peak: f64,
    warm_up: f64,
    total: f64,
}

impl Schedule {
    pub(super) fn new(config: &FitConfig, steps_per_epoch: u32) -> Self {
        let steps = f64::from(steps_per_epoch);
        Self {
            peak: f64::from(config.learning_rate),
            warm_up: f64::from(config.warm_up) * steps,
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
            let passed = ((step - self.warm_up) / (self.total - self.warm_up).max(1.0)).min(1.0);
            FLOOR + (1.0 - FLOOR) * f64::midpoint(1.0, (std::f64::consts::PI * passed).cos())
        };
        (self.peak * share) as f32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_rises_and_falls() {
        let config = FitConfig { epochs: 10, warm_up: 2.0, learning_rate: 0.5, ..FitConfig::default() };
        let schedule = Schedule::new(&config, 100);
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
        assert!(Schedule::new(&config, 1000).rate(0) > 0.999);
    }
}
