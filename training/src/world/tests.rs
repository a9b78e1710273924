//! Tests that the oracle is exact, and that the world is as docs/world.md says.
//!
//! The brute force below sums over single articles, without classes or cells; it shares only the
//! definitions of u, harmony and templates with the stylist and the oracle.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use atelier_core::domain::{OutfitSize, Split};

use super::{
    Context, NumberedOutfit, Plan, World,
    harmony::Closeness,
    lexicon::{ArticleType, Family, Word},
    profile,
    stylist::Scores,
    taste::Taste,
};
use crate::{
    number::real,
    random::{Stream, Table},
};

fn small(seed: u64, articles: usize) -> World {
    World::new(Plan { seed, articles, customers: 200, outfits: 900, validation: 100, new: 0 }).unwrap()
}

fn kind_of(world: &World, article: u32) -> ArticleType {
    world.catalogue.article(article as usize).kind
}

fn context<'w>(world: &'w World, outfit: &NumberedOutfit) -> Context<'w> {
    world.context(outfit.customer, outfit.occasion)
}

/// Pr(these articles | context); zero if they are not an outfit.
fn probability(world: &World, context: Context<'_>, articles: &[u32]) -> f64 {
    let mut places: Vec<usize> = articles.iter().map(|number| world.place_of(*number)).collect();
    places.sort_by_key(|place| world.catalogue.at(*place).kind.family());
    let types: Vec<ArticleType> = places.iter().map(|place| world.catalogue.at(*place).kind).collect();
    let mut probability = world.stylist.templates(context).probability(&types);
    let taste = Taste::new(context);
    for (order, place) in places.iter().enumerate() {
        let weight = |candidate: usize| {
            let article = world.catalogue.at(candidate);
            places[..order].iter().fold(taste.utility(article).exp(), |weight, earlier| {
                let earlier = world.catalogue.at(*earlier);
                let closeness = Closeness::between(article.kind.family(), earlier.kind.family());
                weight * world.stylist.harmony.factor(closeness, article.class(), earlier.class())
            })
        };
        let kind = types[order];
        let rivals = (0..world.catalogue.len()).filter(|rival| world.catalogue.at(*rival).kind == kind);
        probability *= weight(*place) / rivals.map(weight).sum::<f64>();
    }
    probability
}

/// Pr(article, others | context) for every article, from the oracle.
fn by_oracle(world: &World, context: Context<'_>, others: &[u32]) -> Vec<f64> {
    let scored = world.score(context);
    let evidence = world.evidence(others.iter().copied());
    let posterior = world.posterior(&evidence, &scored, 0.0).unwrap();
    let mut joint = vec![0.0; world.plan().articles];
    for (cell, factor) in &posterior.cells {
        for place in world.places_of(*cell) {
            joint[world.catalogue.number_of(place) as usize] = factor * scored.scores.place(place);
        }
    }
    let sum: f64 = joint.iter().sum();
    assert!((sum / posterior.evidence - 1.0).abs() < 1e-12, "the evidence is the sum over all articles");
    joint
}

#[test]
fn the_oracle_agrees_with_brute_force_on_every_article() {
    let world = small(1, 60);
    for outfit in 0..25 {
        let outfit = world.outfit(outfit);
        let context = context(&world, &outfit);
        for slot in 0..outfit.articles.len() {
            let mut others = outfit.articles.clone();
            let missing = others.remove(slot);
            let oracle = by_oracle(&world, context, &others);
            // Zero for an article that is there already, because its family is.
            let complete = |article| probability(&world, context, &[&others[..], &[article]].concat());
            let brute: Vec<f64> = (0..60).map(complete).collect();
            let (sum_oracle, sum_brute) = (oracle.iter().sum::<f64>(), brute.iter().sum::<f64>());
            assert!((sum_oracle / sum_brute - 1.0).abs() < 1e-9);
            for (a, b) in oracle.iter().zip(&brute) {
                assert!((a / sum_oracle - b / sum_brute).abs() < 1e-9, "{a} {b}");
            }
            assert!(oracle[missing as usize] > 0.0);
        }
    }
}

/// Masks a random slot of each outfit: the sum of an article's probabilities over many outfits must match
/// how often it was the missing one. The test fails if the generator and the oracle disagree.
#[test]
fn the_stylist_picks_articles_as_often_as_the_oracle_expects() {
    let world = small(5, 90);
    let (mut expected, mut variance, mut seen) = (vec![0.0; 90], vec![0.0; 90], vec![0.0; 90]);
    let mut stream = Stream::new(5, Table::Slots, 9);
    for outfit in 0..5000 {
        let outfit = world.outfit(outfit);
        let mut others = outfit.articles.clone();
        let missing = others.remove(stream.below(others.len()));
        let joint = by_oracle(&world, context(&world, &outfit), &others);
        let sum: f64 = joint.iter().sum();
        for (article, joint) in joint.iter().enumerate() {
            let chance = joint / sum;
            expected[article] += chance;
            variance[article] += chance * (1.0 - chance);
        }
        seen[missing as usize] += 1.0;
    }
    let mut chi_square = 0.0;
    let mut counted = 0;
    for article in 0..90 {
        if variance[article] > 5.0 {
            let (seen, expected) = (seen[article], expected[article]);
            let off: f64 = (seen - expected) / variance[article].sqrt();
            assert!(off.abs() < 4.0, "article {article}: {seen} seen, {expected} expected");
            chi_square += off * off;
            counted += 1;
        }
    }
    let n = real(counted);
    assert!(counted > 50 && (chi_square - n).abs() < 4.0 * (2.0 * n).sqrt(), "{chi_square} over {counted}");
}

#[test]
fn outfits_are_complete_and_of_five_articles_on_average() {
    let world =
        World::new(Plan { seed: 1, articles: 2000, customers: 3000, outfits: 7500, validation: 500, new: 0 });
    let world = world.unwrap();
    let outfits = world.outfits(0..8000);
    assert!(outfits.iter().all(|outfit| OutfitSize::PAPER.check(outfit.articles().len()).is_ok()));
    let mean = real(outfits.iter().map(|outfit| outfit.articles().len()).sum()) / 8000.0;
    assert!((4.9..=5.1).contains(&mean), "{mean}");
    assert_eq!(outfits.iter().filter(|outfit| outfit.split == Some(Split::Validation)).count(), 500);
    for outfit in 0..500 {
        let articles = world.outfit(outfit).articles;
        let families: BTreeSet<Family> =
            articles.iter().map(|&article| kind_of(&world, article).family()).collect();
        assert_eq!(families.len(), articles.len(), "one article a family");
        assert!(families.contains(&Family::Shoes));
    }
}

#[test]
fn new_articles_are_in_no_training_outfit() {
    let plan = Plan { seed: 1, articles: 600, customers: 300, outfits: 900, validation: 100, new: 90 };
    let (world, old) = (World::new(plan).unwrap(), World::new(Plan { new: 0, ..plan }).unwrap());
    assert_eq!(world.new.len(), 90);
    let has_new = |outfit: &NumberedOutfit| outfit.articles.iter().any(|article| world.new.contains(article));
    let (mut redrawn, mut validated) = (0, 0);
    for number in 0..1000 {
        let (outfit, before) = (world.outfit(number), old.outfit(number));
        let context = |outfit: &NumberedOutfit| (outfit.customer, outfit.occasion, outfit.split);
        assert_eq!(context(&outfit), context(&before));
        if outfit.split == Split::Validation {
            validated += usize::from(has_new(&outfit));
            assert_eq!(outfit, before);
        } else {
            assert!(!has_new(&outfit));
            redrawn += usize::from(has_new(&before));
            assert_eq!(outfit == before, !has_new(&before));
        }
    }
    assert!(redrawn > 200 && validated > 20, "{redrawn} redrawn, {validated} in validation");
    let too_many = World::new(Plan { new: 151, ..plan });
    assert!(matches!(too_many, Err(super::PlanError::New { found: 151, articles: 600 })));
}

#[test]
fn no_gos_and_sizes_are_almost_always_respected() {
    let world =
        World::new(Plan { seed: 1, articles: 3000, customers: 2000, outfits: 3000, validation: 0, new: 0 });
    let world = world.unwrap();
    let (mut slips, mut misfits, mut slots) = (0, 0, 0);
    for outfit in 0..3000 {
        let outfit = world.outfit(outfit);
        let profile = world.population.profile(outfit.customer);
        for number in &outfit.articles {
            let article = world.catalogue.article(*number as usize);
            slots += 1;
            slips += usize::from(
                profile.nogo_colours.has(article.colour)
                    || profile.nogo_materials.has(article.material)
                    || profile.nogo_types.has(article.kind),
            );
            let worn = article.kind.family().size_scale().and_then(|scale| profile.sizes[scale.index()]);
            misfits += usize::from(
                worn.zip(article.sizes).is_some_and(|(size, (first, last))| size < first || size > last),
            );
        }
    }
    assert!(slips > 0 && real(slips) / real(slots) < 0.01, "{slips} slips in {slots} slots");
    assert!(real(misfits) / real(slots) < 0.015, "{misfits} misfits in {slots} slots");
}

/// The service's tests judge its reasons by this file: for each type, the features whose absence moves more than a fiftieth of
/// the probability from some of its articles to others, for some customer.
#[test]
fn what_the_choice_of_each_type_depends_on_is_in_a_file() {
    const SLIGHT: f64 = 0.02;
    let world = small(1, 1500);
    let shares = |context: Context<'_>, kind: ArticleType| -> Vec<f64> {
        let scores = Scores::for_type(&world.catalogue, &Taste::new(context), kind);
        let cells = world.catalogue.cells_of_type(kind);
        let places = world.catalogue.cells()[cells].iter().flat_map(|cell| cell.places.clone());
        let weights: Vec<f64> = places.map(|place| scores.place(place)).collect();
        let sum: f64 = weights.iter().sum();
        weights.into_iter().map(|weight| weight / sum).collect()
    };
    let mut found: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    let mut draws = Stream::new(1, Table::Contexts, 0);
    for _ in 0..200 {
        let (customer, occasion) = world.draw_context(&mut draws);
        let context = world.context(customer, occasion);
        let features = context.profile.features();
        for &kind in ArticleType::ALL {
            let with = shares(context, kind);
            let depends = |other: Context<'_>| {
                let without = shares(other, kind);
                let moved: f64 = with.iter().zip(&without).map(|(a, b)| (a - b).abs() / 2.0).sum();
                moved > SLIGHT
            };
            let of_kind = found.entry(kind.word()).or_default();
            for (name, _) in features.iter().filter(|(name, _)| !of_kind.contains(*name)).collect::<Vec<_>>()
            {
                let mut others = features.clone();
                others.remove(name);
                if depends(Context { profile: &profile::tests::parse(&others), occasion }) {
                    of_kind.insert(name.to_owned());
                }
            }
            if !of_kind.contains("occasion") && depends(Context { occasion: None, ..context }) {
                of_kind.insert("occasion".to_owned());
            }
        }
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/demo-choices.json");
    let kept = fs::read_to_string(file).unwrap_or_default();
    let kept: BTreeMap<&str, BTreeSet<String>> = serde_json::from_str(&kept).unwrap_or_default();
    let now = serde_json::to_string(&found).unwrap();
    assert!(kept == found, "tests/fixtures/demo-choices.json is now {now}");
}

#[test]
fn the_world_knows_no_method() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/world");
    let is_known =
        |module: &&str| ["number", "random", "testing", "world"].iter().any(|own| module.starts_with(own));
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text =
            if path.ends_with("tests.rs") { String::new() } else { fs::read_to_string(&path).unwrap() };
        for code in text.lines().map(|line| line.split("//").next().unwrap()) {
            let own = code.split("crate::").skip(1).all(|module| is_known(&module));
            let others = code.split("atelier_").skip(1).all(|name| name.starts_with("core::domain"));
            assert!(own && others, "{}: {code}", path.display());
        }
    }
}
