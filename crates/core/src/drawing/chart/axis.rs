//! Places numbers along an axis and chooses its ticks.

/// The range of an axis, and how numbers are spaced along it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scale {
    Linear {
        from: f64,
        to: f64,
    },
    /// Equal factors have equal lengths; both ends are above 0.
    Log {
        from: f64,
        to: f64,
    },
}

impl Scale {
    /// A linear scale with round ends around the numbers.
    pub fn around(numbers: impl Iterator<Item = f64>) -> Self {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for number in numbers {
            (low, high) = (low.min(number), high.max(number));
        }
        if low > high {
            (low, high) = (0.0, 1.0);
        }
        let step = step(high - low, 5.0);
        Self::Linear { from: (low / step).floor() * step, to: (high / step).ceil() * step }
    }

    /// The position of a number, from 0 at the start of the axis to 1 at its end. Numbers beyond an end lie at that end.
    pub(super) fn position(self, number: f64) -> f64 {
        let share = match self {
            Self::Linear { from, to } => (number - from) / (to - from),
            Self::Log { from, to } => (number / from).ln() / (to / from).ln(),
        };
        if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 }
    }

    /// Round numbers between the ends.
    pub(super) fn ticks(self) -> Vec<f64> {
        match self {
            Self::Linear { from, to } => {
                let step = step(to - from, 5.0);
                let mut ticks = Vec::new();
                let mut tick = (from / step).ceil();
                // Counts steps: adding the step would add up rounding errors.
                while tick * step <= to + step * 1e-9 {
                    ticks.push(tick * step);
                    tick += 1.0;
                }
                ticks
            }
            Self::Log { from, to } => {
                let mut ticks = Vec::new();
                let mut decade = 10.0_f64.powf(from.log10().floor());
                while decade <= to {
                    ticks.extend([1.0, 2.0, 5.0].map(|part| part * decade));
                    decade *= 10.0;
                }
                ticks.retain(|tick| (from..=to).contains(tick));
                // Always labels the end; a tick just before it would touch its label.
                ticks.retain(|tick| *tick * 1.4 < to || *tick >= to);
                if ticks.last().is_none_or(|last| *last < to) {
                    ticks.push(to);
                }
                ticks
            }
        }
    }
}

/// The smallest step of 1, 2 or 5 times a power of ten that covers `length` in at most `steps` steps.
fn step(length: f64, steps: f64) -> f64 {
    if length <= 0.0 || !length.is_finite() {
        return 1.0;
    }
    let rough = length / steps;
    let power = 10.0_f64.powf(rough.log10().floor());
    let part = [1.0, 2.0, 5.0, 10.0].into_iter().find(|part| part * power >= rough * (1.0 - 1e-9));
    part.unwrap_or(10.0) * power
}
