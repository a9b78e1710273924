//! From numbers to places, and where an axis says how large they are.

/// How numbers are laid out along an axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scale {
    Linear {
        from: f64,
        to: f64,
    },
    /// Equal factors are equal lengths; both ends above 0.
    Log {
        from: f64,
        to: f64,
    },
}

impl Scale {
    /// Round ends around the numbers, with a little air.
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

    /// From 0 at the beginning of the axis to 1 at its end; what lies beyond is put at the end.
    pub(super) fn place(self, number: f64) -> f64 {
        let share = match self {
            Self::Linear { from, to } => (number - from) / (to - from),
            Self::Log { from, to } => (number / from).ln() / (to / from).ln(),
        };
        if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 }
    }

    /// Round numbers from one end to the other.
    pub(super) fn ticks(self) -> Vec<f64> {
        match self {
            Self::Linear { from, to } => {
                let step = step(to - from, 5.0);
                let mut ticks = Vec::new();
                let mut tick = (from / step).ceil();
                // By counting steps, so that no error adds up.
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
                // The end is what people look for; a tick right before it would touch it.
                ticks.retain(|tick| *tick * 1.4 < to || *tick >= to);
                if ticks.last().is_none_or(|last| *last < to) {
                    ticks.push(to);
                }
                ticks
            }
        }
    }
}

/// 1, 2 or 5 times a power of ten: the smallest with which so many steps are enough.
fn step(length: f64, steps: f64) -> f64 {
    if length <= 0.0 || !length.is_finite() {
        return 1.0;
    }
    let rough = length / steps;
    let power = 10.0_f64.powf(rough.log10().floor());
    let part = [1.0, 2.0, 5.0, 10.0].into_iter().find(|part| part * power >= rough * (1.0 - 1e-9));
    part.unwrap_or(10.0) * power
}
