//! The fused pass against logits that exist, on every instruction set of the machine at hand.

use std::sync::Arc;

use proptest::prelude::*;
use pulp::WithSimd;

use super::*;
use crate::{
    domain::Mask,
    models::engine::{choose::choose, cores::Cores},
};

const HIDDEN: usize = 24;
const PERSONAS: usize = 8;

/// Numbers between -1 and 1, the same every time.
fn numbers(seed: u64, count: usize) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2).wrapping_add(1);
    let draw = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        f32::from(u16::try_from(state >> 48).unwrap()) / 32768.0 - 1.0
    };
    (0..count).map(draw).collect()
}

struct Case {
    weights: HeadWeights,
    hidden: Vec<f32>,
    mixes: Option<Vec<f32>>,
    questions: Vec<Question>,
}

fn case(articles: usize, batch: usize, personas: bool, seed: u64, k: usize) -> Case {
    let weights = HeadWeights {
        vocabulary: numbers(seed, articles * HIDDEN),
        bias: numbers(seed + 1, articles),
        personas: personas.then(|| numbers(seed + 2, articles * PERSONAS)),
    };
    let question = |row: usize| {
        let picks = numbers(seed + 10 + row as u64, articles);
        let mut mask = Mask::none(articles);
        for (article, pick) in (0..).zip(&picks) {
            // Whole panels without a gap and without anybody, and some of everything.
            let panel = article / 32 % 3;
            if panel == 0 || (panel == 1 && *pick > 0.0) {
                mask.insert(article);
            }
        }
        let last = u32::try_from(articles - 1).unwrap();
        let of = vec![0, last / 2, last];
        let admissible = (!row.is_multiple_of(3)).then(|| Arc::new(mask));
        Question {
            admissible,
            k,
            of,
            ranks: row.is_multiple_of(2),
            ..Question::new(vec![], 0, Vec::new().into())
        }
    };
    Case {
        weights,
        hidden: numbers(seed + 3, batch * HIDDEN).iter().map(|x| x * 4.0).collect(),
        mixes: personas.then(|| numbers(seed + 4, batch * PERSONAS)),
        questions: (0..batch).map(question).collect(),
    }
}

/// The logits of each row, one by one and in double precision.
fn logits(case: &Case) -> Vec<Vec<f32>> {
    let dot = |weights: &[f32], inputs: &[f32]| -> f64 {
        weights.iter().zip(inputs).map(|(&w, &x)| f64::from(w) * f64::from(x)).sum()
    };
    let row = |row: usize| {
        let logit = |article: usize| {
            let mut logit = f64::from(case.weights.bias[article]);
            logit +=
                dot(&case.weights.vocabulary[article * HIDDEN..][..HIDDEN], &case.hidden[row * HIDDEN..]);
            if let (Some(table), Some(mixes)) = (&case.weights.personas, &case.mixes) {
                logit += dot(&table[article * PERSONAS..][..PERSONAS], &mixes[row * PERSONAS..]);
            }
            #[expect(clippy::cast_possible_truncation, reason = "as models give them")]
            let logit = logit as f32;
            logit
        };
        (0..case.weights.bias.len()).map(logit).collect()
    };
    (0..case.questions.len()).map(row).collect()
}

/// The answers of a head that has so many cores.
fn answers_on(case: &Case, cores: usize) -> Vec<Option<Answer>> {
    let cores = Cores::new(cores);
    let head = Head::new(&case.weights);
    head.answer(&case.hidden, case.mixes.as_deref(), &case.questions, &cores.begin())
}

/// The same pass on one instruction set.
fn answers(case: &Case, dispatch: impl FnOnce(Pass<'_, '_>)) -> Vec<Option<Answer>> {
    let head = Head::new(&case.weights);
    let joined = case.mixes.as_ref().map(|mixes| head.join(&case.hidden, mixes));
    let mut rows: Vec<Row<'_>> =
        case.questions.iter().map(|question| Row::new(question, head.table.articles())).collect();
    let inputs = joined.as_deref().unwrap_or(&case.hidden);
    dispatch(Pass { table: &head.table, parts: 0..head.table.parts(), inputs, rows: &mut rows });
    rows.into_iter().map(Row::answer).collect()
}

fn same(found: &Answer, expected: &Answer, logits: &[f32]) {
    let close = |a: f64, b: f64| assert!((a - b).abs() <= 1e-5 * (1.0 + b.abs()), "{a} {b}");
    assert_eq!(found.top.len(), expected.top.len());
    for (found, expected) in found.top.iter().zip(&expected.top) {
        close(found.probability, expected.probability);
        // Those that rounding cannot tell apart may change places.
        let (a, b) = (logits[found.article as usize], logits[expected.article as usize]);
        assert!((a - b).abs() < 1e-4, "{} instead of {}", found.article, expected.article);
    }
    close(found.admissible_probability, expected.admissible_probability);
    assert_eq!(found.admissible, expected.admissible);
    for (found, expected) in found.of.iter().zip(&expected.of) {
        close(found.log_probability, expected.log_probability);
        let (found, expected) = (found.rank.unwrap_or(0), expected.rank.unwrap_or(0));
        assert!(found.abs_diff(expected) <= 1, "{found} {expected}");
    }
    assert_eq!(found.of.len(), expected.of.len());
}

fn holds(case: &Case) {
    let logits = logits(case);
    let expected: Vec<Answer> = logits
        .iter()
        .zip(&case.questions)
        .map(|(logits, question)| choose(logits, question).unwrap())
        .collect();
    let mut found = vec![answers_on(case, 1), answers(case, |pass| pass.with_simd(pulp::Scalar::new()))];
    #[cfg(target_arch = "x86_64")]
    if let Some(simd) = pulp::x86::V3::try_new() {
        found.push(answers(case, |pass| pulp::Simd::vectorize(simd, Here(simd, pass))));
    }
    for found in found {
        for ((found, expected), logits) in found.iter().zip(&expected).zip(&logits) {
            same(found.as_ref().unwrap(), expected, logits);
        }
    }
}

/// A pass with the instruction set that it is to use.
#[cfg(target_arch = "x86_64")]
struct Here<'a, 'q>(pulp::x86::V3, Pass<'a, 'q>);

#[cfg(target_arch = "x86_64")]
impl pulp::NullaryFnOnce for Here<'_, '_> {
    type Output = ();

    #[expect(clippy::inline_always, reason = "it has to be compiled for that instruction set")]
    #[inline(always)]
    fn call(self) {
        self.1.with_simd(self.0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn it_answers_what_choosing_from_all_logits_does(
        articles in 1usize..300, batch in 1usize..30, personas in any::<bool>(), seed in any::<u32>(), k in 0usize..40,
    ) {
        holds(&case(articles, batch, personas, seed.into(), k));
    }
}

#[test]
fn a_large_vocabulary_is_no_different() {
    holds(&case(30_000, 3, true, 7, 20));
}

#[test]
fn rows_of_a_batch_do_not_know_each_other() {
    let case = case(500, 29, false, 3, 20);
    let head = Head::new(&case.weights);
    let together = head.answer(&case.hidden, None, &case.questions, &Cores::new(1).begin());
    for (row, together) in together.iter().enumerate() {
        let hidden = &case.hidden[row * HIDDEN..][..HIDDEN];
        let alone = head.answer(hidden, None, &case.questions[row..=row], &Cores::new(1).begin());
        assert_eq!(alone[0], *together, "to the bit");
    }
}

#[test]
fn on_many_cores_it_is_the_same_to_the_bit() {
    // The last part has one article.
    let last = 3 * 8192;
    for (personas, k) in [(true, 20), (false, 250)] {
        let mut case = case(last + 1, 5, personas, 11, k);
        if !personas {
            // It and the first are as likely as each other, and more than all others.
            case.weights.vocabulary.copy_within(..HIDDEN, last * HIDDEN);
            (case.weights.bias[0], case.weights.bias[last]) = (99.0, 99.0);
        }
        assert_eq!(Head::new(&case.weights).table.parts(), 4);
        let alone = answers_on(&case, 1);
        if !personas {
            let top = &alone[0].as_ref().unwrap().top;
            let best: Vec<usize> = top.iter().take(2).map(|best| best.article as usize).collect();
            assert_eq!(best, [0, last], "of equals the first");
        }
        for cores in [2, 3, 4, 9] {
            assert_eq!(answers_on(&case, cores), alone, "{cores} cores");
        }
        case.weights.bias[last] = f32::NAN;
        assert!(answers_on(&case, 4).iter().all(Option::is_none), "the last core's is no number");
    }
}

#[test]
fn what_is_no_number_is_no_answer() {
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let mut case = case(100, 14, true, 5, 3);
        case.hidden[HIDDEN + 3] = bad;
        let found = answers_on(&case, 1);
        assert_eq!(found.iter().map(Option::is_none).collect::<Vec<_>>()[..3], [false, true, false]);
        assert!(found[2..].iter().all(Option::is_some));
        case.hidden[HIDDEN + 3] = 0.0;
        case.weights.vocabulary[99 * HIDDEN] = bad;
        let found = answers_on(&case, 1);
        assert!(found.iter().all(Option::is_none));
    }
}
