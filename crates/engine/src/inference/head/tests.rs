//! Compares the fused pass, and choosing from stored logits, with sorting all logits, on all of the machine's instruction sets.

use std::sync::Arc;

use atelier_core::domain::Mask;
use proptest::prelude::*;

use super::{
    best::{mixed_id, with_mixed_ids},
    simd::on,
    *,
};
use crate::inference::{Candidate, Offsets, Placement, Shown, Steering, cores::Cores};

const HIDDEN: usize = 24;
const PERSONAS: usize = 8;

/// Numbers between -1 and 1, the same for each seed.
fn numbers(seed: u64, count: usize) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2).wrapping_add(1);
    let draw = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        f32::from(u16::try_from(state >> 48).unwrap()) / 32768.0 - 1.0
    };
    (0..count).map(draw).collect()
}

/// The weights of a last layer: a row per article, for the hidden numbers and then for personas.
#[derive(Debug, Clone)]
struct Weights {
    rows: Vec<f32>,
    bias: Vec<f32>,
    personas: usize,
}

impl Weights {
    fn row(&self, article: usize) -> &[f32] {
        let width = HIDDEN + self.personas;
        &self.rows[article * width..][..width]
    }

    /// Makes an article like another one.
    fn copy(&mut self, from: usize, to: usize) {
        let width = HIDDEN + self.personas;
        self.rows.copy_within(from * width..(from + 1) * width, to * width);
        self.bias[to] = self.bias[from];
    }

    fn table(&self) -> Table {
        Table::new(self.bias.len(), HIDDEN, self.personas, |index, weights| {
            weights.copy_from_slice(self.row(index));
            Some(self.bias[index])
        })
    }

    fn known(&self) -> Mask {
        Mask::all(self.bias.len())
    }
}

struct Case {
    weights: Weights,
    hidden: Vec<f32>,
    mixes: Option<Vec<f32>>,
    boosts: Vec<Boosts>,
    questions: Vec<Question>,
}

fn case(articles: usize, batch: usize, personas: bool, seed: u64, k: usize) -> Case {
    let width = if personas { PERSONAS } else { 0 };
    let rows = numbers(seed, articles * (HIDDEN + width));
    let weights = Weights { rows, bias: numbers(seed + 1, articles), personas: width };
    let ids = with_mixed_ids(u32::try_from(articles).unwrap());
    let question = |row: usize| {
        let picks = numbers(seed + 10 + row as u64, articles);
        let mut mask = Mask::none(articles);
        for (article, pick) in (0..).zip(&picks) {
            // Full panels, empty panels and mixed ones.
            let panel = article / 32 % 3;
            if panel == 0 || (panel == 1 && *pick > 0.0) {
                mask.insert(article);
            }
        }
        let last = u32::try_from(articles - 1).unwrap();
        let placements_of = vec![0, last / 2, last];
        let admissible = (!row.is_multiple_of(3)).then(|| Arc::new(mask));
        Question {
            admissible,
            k,
            placements_of,
            ranks: row.is_multiple_of(2),
            only_admissible: row % 5 > 2,
            ..Question::new(Arc::clone(&ids), vec![], 0, Vec::new().into())
        }
    };
    // Each second row has some, also for an article of the last panel and for named ones.
    let boosts = |row: usize| {
        let count = if row.is_multiple_of(2) { 0 } else { articles.min(40) };
        let step = articles / count.max(1);
        let boosted = (0..count).map(|index| u32::try_from(articles - 1 - index * step).unwrap());
        Boosts::new(boosted.zip(numbers(seed + 20 + row as u64, count)))
    };
    Case {
        boosts: (0..batch).map(boosts).collect(),
        weights,
        hidden: numbers(seed + 3, batch * HIDDEN).iter().map(|x| x * 4.0).collect(),
        mixes: personas.then(|| numbers(seed + 4, batch * PERSONAS)),
        questions: (0..batch).map(question).collect(),
    }
}

impl Case {
    fn read(&self) -> Read<'_> {
        Read { hidden: &self.hidden, personas: self.mixes.as_deref(), boosts: &self.boosts }
    }
}

/// The logits of each row, computed in double precision.
fn logits(case: &Case) -> Vec<Vec<f32>> {
    let dot = |weights: &[f32], inputs: &[f32]| -> f64 {
        weights.iter().zip(inputs).map(|(&w, &x)| f64::from(w) * f64::from(x)).sum()
    };
    let row = |row: usize| {
        let mixes = case.mixes.iter().flat_map(|mixes| &mixes[row * PERSONAS..][..PERSONAS]);
        let inputs: Vec<f32> = case.hidden[row * HIDDEN..][..HIDDEN].iter().chain(mixes).copied().collect();
        let logit = |article: usize| {
            let boosts =
                case.boosts[row].as_slice().iter().filter(|(boosted, _)| *boosted as usize == article);
            let boosts: f64 = boosts.map(|(_, by)| f64::from(*by)).sum();
            let bias = f64::from(case.weights.bias[article]);
            #[expect(clippy::cast_possible_truncation, reason = "models return float32")]
            let logit = (bias + dot(case.weights.row(article), &inputs) + boosts) as f32;
            logit
        };
        (0..case.weights.bias.len()).map(logit).collect()
    };
    (0..case.questions.len()).map(row).collect()
}

/// The answers on this many cores.
fn answer_on(case: &Case, cores: usize) -> Vec<Option<Answer>> {
    let cores = Cores::new(cores);
    answer(&case.weights.table(), &case.weights.known(), case.read(), &case.questions, &cores.start_run(true))
}

/// The answers of a pass that `run` runs on one instruction set.
fn answer_with(case: &Case, run: impl FnOnce(Pass<'_, '_>)) -> Vec<Option<Answer>> {
    let (table, known) = (case.weights.table(), case.weights.known());
    let joined = join(&table, case.read());
    let inputs: Vec<Input<'_>> = rows_of(&table, case.read(), joined.as_deref()).map(Input::new).collect();
    let mut rows = Vec::new();
    for ((question, input), boosts) in case.questions.iter().zip(&inputs).zip(&case.boosts) {
        rows.push(Tally::new(question, &known, boosts.as_slice(), table.bounds().error(input)));
    }
    run(Pass { table: &table, parts: 0..table.parts(), inputs: &inputs, rows: &mut rows });
    let answer = |(row, input): (Tally<'_>, &Input<'_>)| {
        row.answer(|article| table.logit(article as usize, input.numbers))
    };
    rows.into_iter().zip(&inputs).map(answer).collect()
}

/// The answer that logits have, by sorting.
fn sort(logits: &[f32], known: &Mask, question: &Question) -> Answer {
    let admissible = question.admissible.as_deref().unwrap_or(known);
    if question.only_admissible && admissible.is_empty() {
        return Answer::empty(question);
    }
    let mut sorted: Vec<u32> = admissible.iter().collect();
    sorted.sort_by_key(|position| mixed_id(*position).to_string());
    sorted.sort_by(|&a, &b| logits[b as usize].total_cmp(&logits[a as usize]));
    let highest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let share = |article: u32| f64::from(logits[article as usize] - highest).exp();
    let of_admissible: f64 = sorted.iter().map(|&article| share(article)).sum();
    let of_all = (0..).take(logits.len()).map(share).sum();
    let total = if question.only_admissible { of_admissible } else { of_all };
    let placement = |&article: &u32| {
        let logit = logits[article as usize];
        let rank = sorted.iter().position(|&other| other == article || logits[other as usize] < logit);
        Placement {
            log_probability: f64::from(logit - highest) - total.ln(),
            rank: question.ranks.then_some(1 + rank.unwrap_or(sorted.len())),
        }
    };
    let candidate =
        |&article: &u32| Candidate { article, probability: share(article) / total, own_rank: None };
    Answer {
        top: sorted.iter().take(question.k).map(candidate).collect(),
        wanted: Vec::new(),
        placements: question.placements_of.iter().map(placement).collect(),
        admissible: sorted.len(),
        admissible_probability: of_admissible / total,
        personas: None,
        steps: None,
    }
}

/// The pass's logits are at most `error` wrong.
fn assert_answers(found: &Answer, question: &Question, known: &Mask, logits: &[f32], error: f32) {
    let expected = sort(logits, known, question);
    // The sum over all articles, by which probabilities are divided, is of the pass's logits.
    let close = |a: f64, b: f64| assert!((a - b).abs() <= f64::from(error), "{a} {b}");
    assert_eq!(found.top.len(), expected.top.len());
    for (found, expected) in found.top.iter().zip(&expected.top) {
        close(found.probability.ln(), expected.probability.ln());
        // Articles that differ by rounding may change places.
        let (a, b) = (logits[found.article as usize], logits[expected.article as usize]);
        assert!((a - b).abs() < 2e-5, "{} instead of {}", found.article, expected.article);
    }
    close(found.admissible_probability, expected.admissible_probability);
    assert_eq!(found.admissible, expected.admissible);
    assert_eq!(found.placements.len(), expected.placements.len());
    let admissible = question.admissible.as_deref().unwrap_or(known);
    for ((&named, found), expected) in
        question.placements_of.iter().zip(&found.placements).zip(&expected.placements)
    {
        close(found.log_probability, expected.log_probability);
        let Some(rank) = found.rank else { continue };
        let above = |distance: f32| {
            admissible
                .iter()
                .filter(|&other| logits[other as usize] > logits[named as usize] + distance)
                .count()
        };
        assert!(above(2.0 * error) < rank && rank <= 1 + above(-2.0 * error), "rank {rank}");
        // Among the best it is counted with exact ones.
        let expected = expected.rank.unwrap();
        assert!(expected > question.k || rank.abs_diff(expected) <= 1, "{rank} instead of {expected}");
    }
}

fn check(case: &Case) {
    let logits = logits(case);
    let mut found = vec![answer_on(case, 1), answer_with(case, |pass| on(pulp::Scalar::new(), pass))];
    #[cfg(target_arch = "x86_64")]
    if let Some(simd) = pulp::x86::V3::try_new() {
        found.push(answer_with(case, |pass| on(simd, pass)));
    }
    let (table, known) = (case.weights.table(), case.weights.known());
    let all = super::logits(&table, case.read());
    let joined = join(&table, case.read());
    let inputs = rows_of(&table, case.read(), joined.as_deref()).map(Input::new);
    for (row, (all, input)) in all.iter().zip(inputs).enumerate() {
        let (logits, question, error) = (&logits[row], &case.questions[row], table.bounds().error(&input));
        assert!(error < 0.02, "{error}");
        assert_eq!(all.len(), logits.len());
        assert!(all.iter().zip(logits).all(|(a, b)| (a - b).abs() <= error));
        for found in &found {
            assert_answers(found[row].as_ref().unwrap(), question, &known, logits, error);
        }
        assert_answers(&choose(logits.clone(), &known, question).unwrap(), question, &known, logits, 1e-5);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn the_pass_equals_choosing_from_all_logits(
        articles in 1usize..300, batch in 1usize..30, personas in any::<bool>(), seed in any::<u32>(), k in 0usize..40,
    ) {
        check(&case(articles, batch, personas, seed.into(), k));
    }
}

/// Counts the ranks of the best, and of every second article that is wanted.
#[derive(Debug)]
struct Half;

impl Shown for Half {
    fn choose(&self, top: &[u32], wanted: &[Vec<u32>]) -> Vec<u32> {
        top.iter().chain(wanted.iter().flatten().filter(|article| **article % 2 == 0)).copied().collect()
    }
}

/// Steering that boosts and buries, and wants some of two sets.
fn steer(articles: usize, seed: u64) -> Steering {
    let mut sets = vec![Mask::none(articles); 3];
    for (article, pick) in (0..).zip(numbers(seed, articles)) {
        for (set, threshold) in sets.iter_mut().zip([0.6, 0.8, -0.7]) {
            let is_in = if threshold > 0.0 { pick > threshold } else { pick < threshold };
            (is_in || article == 0).then(|| set.insert(article));
        }
    }
    let offsets = Offsets::new(articles, [(&sets[0], 0.7), (&sets[1], 2.0), (&sets[2], -1.5)]);
    let wanted = vec![(Arc::new(sets[2].clone()), 3), (Arc::new(Mask::none(articles)), 2)];
    Steering { offsets: Arc::new(offsets), wanted, shown: Some(Arc::new(Half)) }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn steering_moves_articles_and_no_probability(
        articles in 1usize..300, batch in 1usize..14, seed in any::<u32>(), k in 0usize..40,
    ) {
        let plain = case(articles, batch, false, seed.into(), k);
        let steering = Arc::new(steer(articles, u64::from(seed) + 99));
        let mut steered = case(articles, batch, false, seed.into(), k);
        for question in &mut steered.questions {
            question.steering = Some(Arc::clone(&steering));
        }
        let (logits, known) = (logits(&plain), plain.weights.known());
        let pairs = answer_on(&plain, 1).into_iter().zip(answer_on(&steered, 1)).zip(&steered.questions).zip(&logits);
        for (((plain, steered), question), logits) in pairs {
            let (plain, steered) = (plain.unwrap(), steered.unwrap());
            prop_assert_eq!(&plain.placements, &steered.placements);
            prop_assert_eq!(plain.admissible_probability.to_bits(), steered.admissible_probability.to_bits());
            let admissible = question.admissible.as_deref().unwrap_or(&known);
            let moved = |article: u32| logits[article as usize] + steering.offsets.of(article);
            let sorted = |of: &Mask, by: &dyn Fn(u32) -> f32| {
                let mut sorted: Vec<u32> = admissible.iter().filter(|article| of.contains(*article)).collect();
                sorted.sort_by(|a, b| by(*b).total_cmp(&by(*a)));
                sorted
            };
            let check = |found: &[Candidate], of: &Mask, most: usize| {
                let expected = sorted(of, &moved);
                assert_eq!(found.len(), most.min(expected.len()));
                for (found, expected) in found.iter().zip(expected) {
                    assert!(admissible.contains(found.article) && of.contains(found.article));
                    assert!((moved(found.article) - moved(expected)).abs() < 2e-5);
                    if let Some(same) = plain.top.iter().find(|plain| plain.article == found.article) {
                        assert_eq!(same.probability.to_bits(), found.probability.to_bits());
                    }
                    let own = sorted(&known, &|article| logits[article as usize]);
                    let own = own.iter().position(|other| *other == found.article).unwrap() + 1;
                    // Articles that differ by rounding may change places.
                    assert!(found.own_rank.is_none_or(|rank| rank.abs_diff(own) <= 2), "{found:?} {own}");
                    assert!(found.own_rank.is_some() || (found.article % 2 == 1 && most < 4));
                }
            };
            check(&steered.top, &known, k);
            prop_assert_eq!(steered.wanted.len(), 2);
            for (found, (set, most)) in steered.wanted.iter().zip(&steering.wanted) {
                check(found, set, *most);
            }
        }
    }
}

#[test]
fn a_large_vocabulary_gives_the_same_answers() {
    check(&case(30_000, 3, true, 7, 20));
}

#[test]
fn rows_of_a_batch_are_independent() {
    let case = case(500, 29, false, 3, 20);
    let (table, known, cores) = (case.weights.table(), case.weights.known(), Cores::new(1));
    let together = answer(&table, &known, case.read(), &case.questions, &cores.start_run(true));
    for (row, together) in together.iter().enumerate() {
        let hidden = &case.hidden[row * HIDDEN..][..HIDDEN];
        let read = Read { hidden, personas: None, boosts: &case.boosts[row..=row] };
        let alone = answer(&table, &known, read, &case.questions[row..=row], &cores.start_run(true));
        assert_eq!(alone[0], *together, "bit for bit");
    }
}

#[test]
fn probabilities_do_not_depend_on_how_many_are_asked_for() {
    let cases = [0, 1, 20, 400].map(|k| answer_on(&case(500, 14, false, 17, k), 1));
    let bits = |answer: &Answer| -> Vec<u64> {
        let placements = answer.placements.iter().map(|placement| placement.log_probability.to_bits());
        placements.chain([answer.admissible_probability.to_bits()]).collect()
    };
    for (few, many) in cases.iter().flat_map(|few| few.iter().zip(&cases[3])) {
        let (few, many) = (few.as_ref().unwrap(), many.as_ref().unwrap());
        assert_eq!(few.top[..], many.top[..few.top.len()]);
        assert_eq!(bits(few), bits(many));
    }
}

#[test]
fn answers_on_many_cores_are_equal_bit_for_bit() {
    // The last part has one article.
    let last = 3 * 2048;
    for (personas, k) in [(true, 20), (false, 250)] {
        let mut case = case(last + 1, 5, personas, 11, k);
        // The first and last articles are equally probable, and more than all others.
        case.weights.bias[0] = 99.0;
        case.weights.copy(0, last);
        assert_eq!(case.weights.table().parts(), 4);
        let alone = answer_on(&case, 1);
        let best = alone[0].as_ref().unwrap().top[..2].iter().map(|best| best.article as usize);
        assert!(best.eq([0, last]), "of equal articles, the first id");
        for cores in [2, 3, 4, 9] {
            assert_eq!(answer_on(&case, cores), alone, "{cores} cores");
        }
        case.weights.bias[last] = f32::NAN;
        assert!(answer_on(&case, 4).iter().all(Option::is_none), "a logit of the last part is NaN");
    }
}

#[test]
fn equally_likely_articles_are_in_the_order_of_their_ids() {
    const KINDS: usize = 7;
    let mut case = case(2 * 2048 + 5, 14, true, 13, 700);
    case.boosts = vec![Boosts::default(); case.questions.len()];
    for article in KINDS..case.weights.bias.len() {
        case.weights.copy(article % KINDS, article);
    }
    let (known, logits) = (case.weights.known(), logits(&case));
    let scalar = answer_with(&case, |pass| on(pulp::Scalar::new(), pass));
    for found in [answer_on(&case, 1), answer_on(&case, 3), scalar] {
        for ((question, logits), found) in case.questions.iter().zip(&logits).zip(found) {
            let (found, expected) = (found.unwrap(), sort(logits, &known, question));
            let top = |answer: &Answer| answer.top.iter().map(|one| one.article).collect::<Vec<_>>();
            assert_eq!(top(&found), top(&expected), "cut within equal ones");
            let admissible = question.admissible.as_deref().unwrap_or(&known);
            let placements = found.placements.iter().zip(&expected.placements);
            for (article, (found, expected)) in question.placements_of.iter().zip(placements) {
                assert!(found.rank == expected.rank || !admissible.contains(*article), "rank of {article}");
            }
        }
    }
}

#[test]
fn inputs_and_weights_that_are_not_finite_give_no_answer() {
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let mut case = case(100, 14, true, 5, 3);
        let mut stored = logits(&case)[0].clone();
        stored[99] = bad;
        assert_eq!(choose(stored, &case.weights.known(), &case.questions[0]), None);
        case.hidden[HIDDEN + 3] = bad;
        let found = answer_on(&case, 1);
        assert_eq!(found.iter().map(Option::is_none).collect::<Vec<_>>()[..3], [false, true, false]);
        assert!(found[2..].iter().all(Option::is_some));
        case.hidden[HIDDEN + 3] = 0.0;
        case.weights.rows[99 * (HIDDEN + PERSONAS)] = bad;
        assert!(answer_on(&case, 1).iter().all(Option::is_none));
    }
}
