//! Whether the oracle is exact, and whether the world is what docs/world.md says.
//!
//! The brute force below adds up what the stylist does over single articles, with no classes, no sums
//! by cell and no shortcuts; it shares the definitions of u, harmony and template with everybody else.

use std::{fs, path::Path};

use super::{
    Context, Laid, Plan, World,
    harmony::Closeness,
    lexicon::{ArticleType, Family, Word},
    taste::Taste,
};
use crate::{
    number::real,
    random::{Stream, Table},
};

fn small(seed: u64, articles: usize) -> World {
    World::new(Plan { seed, articles, customers: 200, outfits: 900, validation: 100 }).unwrap()
}

fn context<'w>(world: &'w World, laid: &Laid) -> Context<'w> {
    world.context(laid.customer, laid.occasion)
}

/// Pr(these articles | context), written out. Zero where they are no outfit.
fn probability(world: &World, context: Context<'_>, articles: &[u32]) -> f64 {
    let mut places: Vec<usize> = articles.iter().map(|number| world.place_of(*number)).collect();
    places.sort_by_key(|place| world.catalogue.at(*place).kind.family());
    let types: Vec<ArticleType> = places.iter().map(|place| world.catalogue.at(*place).kind).collect();
    let mut probability = world.stylist.template_law(context).probability(&types);
    let taste = Taste::new(context);
    for (order, place) in places.iter().enumerate() {
        let weight = |candidate: usize| {
            let article = world.catalogue.at(candidate);
            places[..order].iter().fold(taste.utility(article).exp(), |weight, earlier| {
                let earlier = world.catalogue.at(*earlier);
                let closeness = Closeness::of(article.kind.family(), earlier.kind.family());
                weight * world.stylist.harmony.factor(closeness, article.class(), earlier.class())
            })
        };
        let kind = types[order];
        let rivals = (0..world.catalogue.len()).filter(|rival| world.catalogue.at(*rival).kind == kind);
        probability *= weight(*place) / rivals.map(weight).sum::<f64>();
    }
    probability
}

/// Pr(article, others | context) for every article, as the oracle has it.
fn by_oracle(world: &World, context: Context<'_>, others: &[u32]) -> Vec<f64> {
    let reading = world.read(context);
    let evidence = world.evidence(others.iter().copied());
    let posterior = world.posterior(&evidence, &reading, 0.0).unwrap();
    let mut joint = vec![0.0; world.plan().articles];
    for (cell, factor) in &posterior.cells {
        for place in world.places_of(*cell) {
            joint[world.catalogue.number_of(place) as usize] = factor * reading.scores.place(place);
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
        let laid = world.lay(outfit);
        let context = context(&world, &laid);
        for slot in 0..laid.articles.len() {
            let mut others = laid.articles.clone();
            let missing = others.remove(slot);
            let oracle = by_oracle(&world, context, &others);
            let brute: Vec<f64> = (0..60)
                .map(|article| {
                    let mut whole = others.clone();
                    whole.push(article);
                    // An article that is there already is of a family that is there already.
                    probability(&world, context, &whole)
                })
                .collect();
            let (sum_oracle, sum_brute) = (oracle.iter().sum::<f64>(), brute.iter().sum::<f64>());
            assert!((sum_oracle / sum_brute - 1.0).abs() < 1e-9);
            for (a, b) in oracle.iter().zip(&brute) {
                assert!((a / sum_oracle - b / sum_brute).abs() < 1e-9, "{a} {b}");
            }
            assert!(oracle[missing as usize] > 0.0);
        }
    }
}

#[test]
fn all_outfits_of_one_template_have_its_probability_together() {
    let world = small(1, 60);
    let laid = (0..200).map(|outfit| world.lay(outfit)).find(|laid| laid.articles.len() == 4).unwrap();
    let context = context(&world, &laid);
    let mut types: Vec<ArticleType> =
        laid.articles.iter().map(|number| world.catalogue.numbered(*number as usize).kind).collect();
    types.sort_by_key(|kind| kind.family());
    let of = |kind: ArticleType| -> Vec<u32> {
        (0..60_u32).filter(|number| world.catalogue.numbered(*number as usize).kind == kind).collect()
    };
    let mut sum = 0.0;
    for a in of(types[0]) {
        for b in of(types[1]) {
            for c in of(types[2]) {
                for d in of(types[3]) {
                    sum += probability(&world, context, &[a, b, c, d]);
                }
            }
        }
    }
    let template = world.stylist.template_law(context).probability(&types);
    assert!((sum / template - 1.0).abs() < 1e-10, "{sum} {template}");
}

/// Mask a random slot of a laid outfit: the chance of each article, added up over many outfits, must
/// be how often it was the one. Generator and oracle cannot drift apart without this test seeing it.
#[test]
fn what_the_stylist_lays_is_what_the_oracle_expects() {
    let world = small(5, 90);
    let (mut expected, mut variance, mut seen) = (vec![0.0; 90], vec![0.0; 90], vec![0.0; 90]);
    let mut stream = Stream::new(5, Table::Slots, 9);
    for outfit in 0..5000 {
        let laid = world.lay(outfit);
        let mut others = laid.articles.clone();
        let missing = others.remove(stream.below(others.len()));
        let joint = by_oracle(&world, context(&world, &laid), &others);
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
            let off = (seen[article] - expected[article]) / variance[article].sqrt();
            assert!(
                off.abs() < 4.0,
                "article {article}: {} seen, {} expected",
                seen[article],
                expected[article]
            );
            chi_square += off * off;
            counted += 1;
        }
    }
    let n = real(counted);
    assert!(counted > 50 && (chi_square - n).abs() < 4.0 * (2.0 * n).sqrt(), "{chi_square} over {counted}");
}

#[test]
fn outfits_are_whole_and_of_five_on_average() {
    let world = World::new(Plan { seed: 1, articles: 2000, customers: 3000, outfits: 7500, validation: 500 });
    let world = world.unwrap();
    // Making an `Outfit` refuses any that is not four to eight different articles.
    let outfits = world.outfits(0..8000);
    let mean = real(outfits.iter().map(|outfit| outfit.articles().len()).sum()) / 8000.0;
    assert!((4.9..=5.1).contains(&mean), "{mean}");
    let validation = outfits.iter().filter(|outfit| outfit.split == Some(atelier::domain::Split::Validation));
    assert_eq!(validation.count(), 500);
    for outfit in 0..500 {
        let laid = world.lay(outfit);
        let mut families: Vec<Family> = laid
            .articles
            .iter()
            .map(|number| world.catalogue.numbered(*number as usize).kind.family())
            .collect();
        families.sort_unstable();
        families.dedup();
        assert_eq!(families.len(), laid.articles.len(), "one article a family");
        assert!(families.contains(&Family::Shoes));
    }
}

#[test]
fn no_gos_and_sizes_are_kept_but_for_slips() {
    let world = World::new(Plan { seed: 1, articles: 3000, customers: 2000, outfits: 3000, validation: 0 });
    let world = world.unwrap();
    let (mut slips, mut misfits, mut slots) = (0, 0, 0);
    for outfit in 0..3000 {
        let laid = world.lay(outfit);
        let profile = world.population.profile(laid.customer);
        for number in &laid.articles {
            let article = world.catalogue.numbered(*number as usize);
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

#[test]
fn the_world_knows_no_method() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/world");
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.ends_with("tests.rs") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        for line in text.lines().filter(|line| !line.trim_start().starts_with("//")) {
            let code = line.split("//").next().unwrap();
            for (at, _) in code.match_indices("crate::") {
                let module: String =
                    code[at + 7..].chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                let allowed = ["", "number", "random", "world"].contains(&module.as_str());
                assert!(allowed, "{} uses crate::{module}", path.display());
            }
            if let Some(at) = code.find("use atelier::") {
                assert!(code[at..].starts_with("use atelier::domain"), "{}: {code}", path.display());
            }
        }
    }
}
