//! How a customer's outfits, or one outfit, are mixed of personas.

use std::time::Duration;

use super::{
    card::{OutfitView, outfit as view},
    percent,
};
use crate::{
    domain::{CustomerId, Method},
    drawing::chart::{Bar, Bars, bars},
    service::{
        completion::CompletionError,
        live_release::LiveRelease,
        personas::{Mix, Portrait, mix_of, mixes_of},
    },
    store::OutfitRecord,
    web::http::{AppState, Kind, Problem},
};

/// A mix, and the outfits that it is the mean of.
pub(super) struct Mixture {
    pub(super) title: String,
    /// None where there is nothing to mix.
    pub(super) drawn: Option<String>,
    /// The same in words, persona by persona.
    pub(super) shares: Vec<String>,
    pub(super) outfits: Vec<OutfitView>,
}

/// Most of a customer's outfits that are looked at, those that came first; one batch.
const MOST: u32 = 50;
/// Most of them that are shown.
const SHOWN: usize = 8;

/// Of the outfit, if one is named, else of the customer.
pub(super) async fn mixture(
    state: &AppState,
    live: &LiveRelease,
    method: Method,
    portrait: &Portrait,
    customer: Option<&CustomerId>,
    outfit: Option<i64>,
) -> Result<Option<Mixture>, Problem> {
    let (title, mut records) = match (outfit, customer) {
        (Some(number), _) => {
            let record = state.store.outfits().get(number).await?;
            let none = || Problem::new(Kind::NotFound, format!("there is no stored outfit {number}"));
            let record = record.ok_or_else(none)?;
            (format!("An outfit of {}", record.outfit.customer), vec![record])
        }
        (None, Some(customer)) => {
            let records = state.store.outfits().for_customer(customer, 0, MOST).await?;
            (format!("The outfits of {customer}"), records)
        }
        (None, None) => return Ok(None),
    };
    let vocabulary = live.serving.release().vocabulary();
    // An outfit of which the release knows no article has no mix.
    records.retain(|record| {
        record.outfit.articles().iter().any(|id| vocabulary.index_of(id.as_str()).is_some())
    });
    let mixes = mixes(live, method, &records, state.limits.deadline()).await?;
    let mean = mix_of(&mixes);
    let shown = records.iter().zip(&mixes).take(SHOWN);
    Ok(Some(Mixture {
        drawn: mean.as_ref().map(|mean| draw(&title, mean, portrait)),
        shares: mean.iter().flatten().zip(1..).map(|(share, number)| share_of(*share, number)).collect(),
        outfits: shown.map(|(record, mix)| view(live, record, most(mix))).collect(),
        title,
    }))
}

/// The mixes of the outfits, which are in the same order.
async fn mixes(
    live: &LiveRelease,
    method: Method,
    records: &[OutfitRecord],
    patience: Duration,
) -> Result<Vec<Mix>, Problem> {
    let vocabulary = live.serving.release().vocabulary();
    let known = |record: &OutfitRecord| {
        record.outfit.articles().iter().filter_map(|id| vocabulary.index_of(id.as_str())).collect()
    };
    let outfits: Vec<Vec<u32>> = records.iter().map(known).collect();
    let mixes = mixes_of(&live.serving, method, &outfits, patience, |_| {}).await;
    mixes.map_err(|error| CompletionError::Ask(error).into())
}

fn draw(title: &str, mix: &Mix, portrait: &Portrait) -> String {
    let even = f64::from(portrait.even());
    let furthest = mix.iter().map(|share| (f64::from(*share) - even).abs()).fold(0.0, f64::max);
    let largest = portrait.largest().map_or(0.0, |(_, _, share)| f64::from(share) - even);
    bars(&Bars {
        title,
        about: "The share of each persona; bars begin at what an even mix would have.",
        bars: mix
            .iter()
            .zip(1..)
            .map(|(share, number)| Bar {
                name: format!("Persona {number}"),
                share: f64::from(*share),
                written: percent(*share),
            })
            .collect(),
        even,
        // As far as any article's goes, so that one customer's picture can be held against another's.
        reach: furthest.max(largest).max(0.005),
    })
}

fn share_of(share: f32, number: usize) -> String {
    format!("{} of persona {number}", percent(share))
}

/// The largest share of an outfit in words.
fn most(mix: &Mix) -> String {
    let largest = mix.iter().zip(1..).max_by(|one, other| one.0.total_cmp(other.0));
    largest.map_or_else(String::new, |(share, number)| share_of(*share, number))
}
