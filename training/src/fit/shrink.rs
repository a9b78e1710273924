//! How far a finished run goes back to its start.
//!
//! Few outfits teach some things by chance, and the start is counted from all of them. Between both a model is better than at
//! either end, and a small development split cannot say where exactly: it goes as far back as this split allows.

use crate::number::real;

/// Parts of the way back.
pub(super) const PARTS: [f32; 5] = [0.0, 0.25, 0.5, 0.75, 1.0];

/// The farthest part whose losses are within a standard error of the least. `losses` has the same questions for each part.
pub(super) fn choose(losses: &[Vec<f64>; PARTS.len()]) -> usize {
    let mean = |losses: &[f64]| losses.iter().sum::<f64>() / real(losses.len().max(1));
    let least = losses.iter().min_by(|a, b| mean(a).total_cmp(&mean(b))).expect("there are parts");
    let is_near = |losses: &Vec<f64>| {
        let more: Vec<f64> = losses.iter().zip(least).map(|(loss, least)| loss - least).collect();
        let worse = mean(&more);
        let squares: Vec<f64> = more.iter().map(|more| (more - worse).powi(2)).collect();
        worse <= (mean(&squares) / real(more.len().max(1))).sqrt()
    };
    losses.iter().rposition(is_near).expect("the least is near itself")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_goes_as_far_back_as_its_questions_allow() {
        // Half of the way is best by 0.01 nats, and each step from there costs 0.01 more.
        let losses = |questions: usize| {
            [0.03, 0.01, 0.0, 0.01, 0.03].map(|more: f64| {
                let noise =
                    |question: usize| if question.is_multiple_of(2) { 8.0 * more } else { -8.0 * more };
                (0..questions).map(|question| 5.0 + more + noise(question)).collect::<Vec<f64>>()
            })
        };
        assert_eq!(choose(&losses(10)), 4, "ten questions cannot tell");
        assert_eq!(choose(&losses(1000)), 2);
        assert_eq!(choose(&losses(0)), 4, "nothing was learned that could be judged");
    }
}
