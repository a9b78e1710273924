//! All baselines, which `atelier-training evaluate` shows without runs.

use std::path::Path;

use super::{
    evaluate::{read_json, write_json},
    progress::timed,
    tables,
};
use crate::{
    baselines::{
        Answers, Baseline, Cells, Cooccurrence, Ease, History, Logit, Neighbours, NewBaseline, Pairs,
        Popularity, ProfilePopularity, Sharpened, TypePopularity, count_histories,
    },
    data::Data,
};
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

/// Baselines as `evaluate --out` writes them.
#[derive(Serialize, Deserialize)]
pub(super) struct BaselineFigures {
    fingerprint: String,
    pub(super) baselines: Vec<Baseline>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) new_article_baselines: Vec<NewBaseline>,
}

impl BaselineFigures {
    /// Reads those of the data with this fingerprint.
    pub(super) fn read(path: &Path, fingerprint: &str) -> Result<Self> {
        let found: Self = read_json(path).context("expected a file of `evaluate --out`")?;
        if found.fingerprint != fingerprint {
            bail!(
                "{} was made from data with fingerprint {}, the methods from data with fingerprint {fingerprint}: \
                 run `evaluate` on the methods' data",
                path.display(),
                found.fingerprint
            );
        }
        Ok(found)
    }
}

const EASE_PENALTY: f32 = 500.0;
/// EASE takes 8 bytes for each pair of articles, and time in proportion to the cube of their number.
const EASE_ARTICLES: usize = 32_000;

fn fit_ease(data: &Data, pairs: &Pairs) -> Option<Ease> {
    let articles = data.vocabulary().len();
    if articles > EASE_ARTICLES {
        eprintln!("EASE is left out: {articles} articles are more than {EASE_ARTICLES}");
        return None;
    }
    let ease = Ease::fit(data, pairs, EASE_PENALTY);
    if ease.is_none() {
        eprintln!("EASE is left out: its matrix cannot be inverted");
    }
    ease
}

/// Prints the figures of all baselines, and writes them to `out` as JSON.
pub(super) fn print_baselines(data: &Path, out: Option<&Path>) -> Result<()> {
    let data = timed("reading", || Data::load(data))?;
    let popularity = Popularity::fit(&data);
    let by_type = TypePopularity::fit(&data);
    let pairs = Pairs::count(&data);
    let cooccurrence = timed("weight of co-occurrence", || Cooccurrence::fit(&data, &popularity, &pairs));
    let cosines = Neighbours::count(&data, &pairs);
    let neighbours = timed("sharpness of neighbours", || Sharpened::fit(&data, &popularity, &cosines));
    let histories = count_histories(&data, data.training());
    let history = timed("strength of history", || History::fit(&data, &cooccurrence, &histories));
    let logit = timed("conditional logit", || Logit::fit(&data));
    let linear = timed("EASE", || fit_ease(&data, &pairs));
    let ease = linear.as_ref().map(|ease| Sharpened::fit(&data, &popularity, ease));
    let cells = Cells::count(&data);
    let profile =
        timed("strength of popularity by profile", || ProfilePopularity::fit(&data, &by_type, &cells));

    let mut methods: Vec<(String, &dyn Answers)> = vec![
        (format!("popularity (+{})", popularity.added), &popularity),
        (format!("co-occurrence (weight {})", cooccurrence.weight), &cooccurrence),
        (format!("nearest neighbours (sharpness {})", neighbours.sharpness), &neighbours),
        (format!("this customer's history (strength {})", history.strength), &history),
        ("conditional logit".to_owned(), &logit),
    ];
    if let Some(ease) = &ease {
        methods.push((format!("EASE (penalty {EASE_PENALTY}, sharpness {})", ease.sharpness), ease));
    }
    methods.push((format!("popularity, told the type (+{})", by_type.added), &by_type));
    if cells.tell() {
        methods.push((format!("the same, gender and price band ({})", profile.strength), &profile));
    }
    let mut figures: Vec<Baseline> = Vec::with_capacity(methods.len());
    tables::print_header("validation split, every slot masked in turn");
    for (name, method) in methods {
        let figure = timed(&name, || Baseline::new(name.clone(), &data, method));
        tables::print_row(&figure.name, &figure.summary);
        figures.push(figure);
    }
    tables::print_header("the same, told the type, without the outfit's own articles");
    for Baseline { name, told_type, .. } in &figures {
        tables::print_row(name, told_type);
    }
    println!(
        "\nRanks are over all learned articles, including those already in the outfit; ties share their mean \
             rank.\nThe values in brackets were chosen on the development split."
    );
    println!("\nThe conditional logit's coefficients:");
    for (name, coefficient) in logit.coefficients() {
        println!("{coefficient:7.3}  {name}");
    }
    if let Some(path) = out {
        let fingerprint = data.fingerprint().to_owned();
        let figures = BaselineFigures { fingerprint, baselines: figures, new_article_baselines: Vec::new() };
        write_json(path, &figures)?;
    }
    Ok(())
}
