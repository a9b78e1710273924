use super::*;
use crate::testing::{near, patterned_data};

fn sorted<T: Ord>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut items: Vec<T> = items.into_iter().collect();
    items.sort_unstable();
    items
}

#[test]
fn a_strangers_half_has_the_same_types_and_another_outfit() {
    let data = patterned_data(200);
    let halves = Halves::new(&data, data.training());
    let questions = halves.questions();
    assert_eq!(questions, halves.questions(), "the same every time");
    assert_eq!(questions.len(), 2 * data.training().len());
    for two in questions.chunks_exact(2) {
        let (own, other) = (&two[0], &two[1]);
        assert!(own.same && !other.same && own.outfit == other.outfit && own.first == other.first);
        let whole = data.outfits().articles(own.outfit);
        assert_eq!(sorted(own.first.iter().chain(&own.second)), sorted(whole));
        let types = |half: &[u32]| sorted(half.iter().map(|&article| data.type_of(article)));
        assert_eq!(types(&own.second), types(&other.second));
        assert_ne!(own.second, other.second);
        assert!(other.second.iter().all(|article| !own.first.contains(article)));
        let owns = |&owner: &u32| {
            other.second.iter().all(|article| data.outfits().articles(owner).contains(article))
        };
        assert!(data.training().iter().any(|owner| *owner != own.outfit && owns(owner)), "of the split");
    }
}

#[test]
fn training_pairs_depend_on_seed_epoch_and_outfit() {
    let data = patterned_data(200);
    let halves = Halves::new(&data, data.training());
    let pairs = |seed, epoch| -> Vec<Pair> {
        data.training().iter().map(|&outfit| halves.training_pair(seed, epoch, outfit).unwrap()).collect()
    };
    let once = pairs(1, 0);
    assert_eq!(once, pairs(1, 0));
    assert_ne!(once, pairs(2, 0));
    assert_ne!(once, pairs(1, 1));
    let same = once.iter().filter(|pair| pair.same).count();
    assert!((once.len() * 2 / 5..once.len() * 3 / 5).contains(&same), "{same} of {}", once.len());
}

#[test]
fn an_outfit_without_a_stranger_is_left_out() {
    let data = patterned_data(200);
    assert_eq!(Halves::new(&data, &data.training()[..1]).questions(), []);
}

#[test]
fn counting_recognises_halves_of_one_outfit() {
    let data = patterned_data(200);
    let questions = Halves::new(&data, data.training()).questions();
    let counted = Cooccurrence::count(&data);
    let scores: Vec<f64> = questions.iter().map(|pair| counted.score(pair)).collect();
    let same: Vec<bool> = questions.iter().map(|pair| pair.same).collect();
    // A pattern's articles are in no other outfits, so counting separates the pairs.
    let figures = PairFigures::new(&scores, &same, PairFigures::best_threshold(&scores, &same));
    assert!(figures.auc > 0.999 && figures.accuracy > 0.999, "{figures:?}");
    let pair = questions[0].clone();
    let turned = Pair { first: pair.second.clone(), second: pair.first.clone(), ..pair };
    near(counted.score(&questions[0]), counted.score(&turned), 1e-12);
}

#[test]
fn accuracy_and_auc_match_values_by_hand() {
    let (scores, same) = ([0.9, 0.8, 0.8, 0.3, 0.1], [true, false, true, true, false]);
    let figures = PairFigures::new(&scores, &same, 0.5);
    near(figures.accuracy, 3.0 / 5.0, 1e-12);
    // Six comparisons: 0.9 wins two, 0.8 one and a half, 0.3 one.
    near(figures.auc, 4.5 / 6.0, 1e-12);
    let threshold = PairFigures::best_threshold(&scores, &same);
    assert!((0.1..0.3).contains(&threshold), "{threshold}");
    near(PairFigures::new(&scores, &same, threshold).accuracy, 4.0 / 5.0, 1e-12);
    near(PairFigures::new(&[1.0, 1.0], &[true, false], 0.5).auc, 0.5, 1e-12);
}
