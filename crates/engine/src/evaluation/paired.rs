//! Two series of answers to the same cases: differences with intervals, and where they differ most.

use atelier_core::domain::Method;

use super::{CaseDifference, Lead, Metric, Ranks, cases::sort, ranks::Answers};

/// Two-sided 95 %.
const Z: f64 = 1.959_963_984_540_054;

/// A mean difference with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    pub difference: f64,
    pub low: f64,
    pub high: f64,
}

impl Interval {
    pub fn new(difference: f64, standard_error: f64) -> Self {
        let reach = Z * standard_error;
        Self { difference, low: difference - reach, high: difference + reach }
    }

    /// Whether it leaves out 0.
    pub fn is_significant(&self) -> bool {
        self.low > 0.0 || self.high < 0.0
    }

    /// Of the mean over cases, each with its outfit. Slots of one outfit are dependent, so the outfits are what varies. The
    /// cases of an outfit stand together.
    fn of_cases(cases: impl Iterator<Item = (u32, f64)>) -> Option<Self> {
        let mut outfits: Vec<(u32, f64, f64)> = Vec::new();
        for (outfit, value) in cases {
            match outfits.last_mut() {
                Some((last, count, sum)) if *last == outfit => {
                    *count += 1.0;
                    *sum += value;
                }
                _ => outfits.push((outfit, 1.0, value)),
            }
        }
        let (count, sum) = outfits.iter().fold((0.0, 0.0), |(count, sum), one| (count + one.1, sum + one.2));
        let mean = sum / count;
        let squares: f64 = outfits.iter().map(|(_, count, sum)| (sum - mean * count).powi(2)).sum();
        let groups = f64::from(u32::try_from(outfits.len()).ok().filter(|groups| *groups > 1)?);
        Some(Self::new(mean, (squares * groups / (groups - 1.0)).sqrt() / count))
    }
}

/// Two methods' answers to the same cases, of one release or of two.
#[derive(Clone, Copy)]
#[expect(missing_debug_implementations, reason = "two long series of numbers")]
pub struct Pair<'a> {
    cases: &'a Ranks,
    one: &'a Answers,
    other: &'a Answers,
}

impl Ranks {
    /// This method's answers and those of a method to the same cases, which the caller has checked. None if one of the methods
    /// was not evaluated.
    pub fn pair<'a>(&'a self, method: Method, other: &'a Self, other_method: Method) -> Option<Pair<'a>> {
        let (one, answers) = (self.answers_of(method)?, other.answers_of(other_method)?);
        (self.len() == other.len()).then_some(Pair { cases: self, one, other: answers })
    }

    /// Whether both are about the same articles of the same outfits of the same customers.
    pub fn has_cases_of(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
            || self.len() == other.len()
                && (0..self.len()).all(|row| {
                    let (case, same) = (self.case(row), other.case(row));
                    (case.outfit, case.slot, case.customer) == (same.outfit, same.slot, same.customer)
                        && case.truth() == same.truth()
                        && (case.slot > 0 || case.articles().eq(same.articles()))
                })
    }
}

impl<'a> Pair<'a> {
    /// The first method's figure minus the second's.
    pub fn difference(&self, metric: Metric) -> Option<Interval> {
        self.interval(|rank, log_probability| match metric {
            Metric::CrossEntropy => -f64::from(log_probability),
            Metric::RecallAt1 => hit(rank, 1.0),
            Metric::RecallAt5 => hit(rank, 5.0),
            Metric::RecallAt250 => hit(rank, 250.0),
            Metric::Mrr => 1.0 / f64::from(rank),
        })
    }

    /// The difference of recall at `k`.
    pub fn recall(&self, k: u16) -> Option<Interval> {
        self.interval(|rank, _| hit(rank, k.into()))
    }

    fn interval(&self, score: impl Fn(f32, f32) -> f64) -> Option<Interval> {
        let of = |answers: &Answers, row: usize| score(answers.ranks[row], answers.log_probabilities[row]);
        Interval::of_cases(
            (0..self.cases.len())
                .map(|row| (self.cases.outfit_place(row), of(self.one, row) - of(self.other, row))),
        )
    }

    /// For each type of the missing article: its cases, and the difference of the logarithm of its probability. The types
    /// that favour the first method most come first.
    pub fn by_type(&self) -> Vec<(&'a str, usize, Interval)> {
        let mut cases: Vec<Vec<(u32, f64)>> = vec![Vec::new(); self.cases.types().len()];
        for row in 0..self.cases.len() {
            cases[self.cases.type_place(row)].push((self.cases.outfit_place(row), self.gain(row).into()));
        }
        let types = self.cases.types().iter().zip(cases);
        let mut types: Vec<_> = types
            .filter_map(|(name, cases)| {
                Some((name.as_str(), cases.len(), Interval::of_cases(cases.into_iter())?))
            })
            .collect();
        types.sort_by(|one, other| other.2.difference.total_cmp(&one.2.difference));
        types
    }

    /// All cases, those that favour the first method most first.
    pub fn cases(&self) -> Vec<CaseDifference> {
        let rows = 0..self.cases.len();
        sort(rows.map(|row| CaseDifference { row, difference: self.gain(row) }), Lead::First)
    }

    fn gain(&self, row: usize) -> f32 {
        self.one.log_probabilities[row] - self.other.log_probabilities[row]
    }
}

fn hit(rank: f32, k: f32) -> f64 {
    f64::from(u8::from(rank.ceil() <= k))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computed by hand: outfits of 2, 1 and 1 cases with the sums 2, 0 and 2, so mean 1, residuals 0, -1 and 1.
    #[test]
    fn outfits_are_what_varies() {
        let cases = [(7, 0.5), (7, 1.5), (8, 0.0), (9, 2.0)];
        let found = Interval::of_cases(cases.into_iter()).unwrap();
        let error = (2.0_f64 * 3.0 / 2.0).sqrt() / 4.0;
        assert!((found.difference - 1.0).abs() < 1e-12);
        assert!((found.high - 1.0 - Z * error).abs() < 1e-12 && (1.0 - found.low - Z * error).abs() < 1e-12);
        assert!(found.is_significant());
        assert_eq!(Interval::of_cases([(7, 0.5), (7, 1.5)].into_iter()), None, "one outfit does not vary");
    }
}
