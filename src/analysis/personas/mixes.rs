//! Asks a model for the persona mixes of outfits.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use atelier_core::domain::Method;
use atelier_engine::inference::{Articles, AskError, BLANK, Context, Question, Serving};

/// Shares of the personas; they add up to 1.
pub type Mix = Vec<f32>;

/// Questions per batch. Completions wait for one such batch at most.
const BATCH: usize = 64;

/// The mixes of outfits, by their articles' positions. Only the first articles count of an outfit that leaves no room for the
/// blank.
///
/// Each batch must be answered within `patience`. `progress` receives the number of finished outfits.
pub async fn mixes_of(
    serving: &Serving,
    articles: &Arc<Articles>,
    method: Method,
    outfits: &[Vec<u32>],
    patience: Duration,
    mut progress: impl FnMut(usize),
) -> Result<Vec<Mix>, AskError> {
    let mut mixes = Vec::with_capacity(outfits.len());
    for outfits in outfits.chunks(BATCH) {
        mixes.extend(ask(serving, articles, method, outfits, Instant::now() + patience).await?);
        progress(mixes.len());
    }
    Ok(mixes)
}

/// The mean of some mixes; `None` without any.
pub fn mean_mix(mixes: &[Mix]) -> Option<Mix> {
    let mut mean = vec![0.0; mixes.first()?.len()];
    let count = mixes.iter().fold(0.0, |count: f32, _| count + 1.0);
    for mix in mixes {
        for (mean, share) in mean.iter_mut().zip(mix) {
            *mean += share / count;
        }
    }
    Some(mean)
}

async fn ask(
    serving: &Serving,
    articles: &Arc<Articles>,
    method: Method,
    outfits: &[Vec<u32>],
    deadline: Instant,
) -> Result<Vec<Mix>, AskError> {
    let schema = serving.release().schema();
    // Personas depend on the articles only, so the context is empty.
    let context: Context = vec![Vec::new(); schema.features().len()].into();
    let question = |outfit: &Vec<u32>| {
        let mut slots: Vec<u32> = outfit.iter().copied().take(schema.outfit_size().most - 1).collect();
        slots.push(BLANK);
        let blank = slots.len() - 1;
        Question::new(Arc::clone(articles), slots, blank, Context::clone(&context))
    };
    let answered = loop {
        let questions = outfits.iter().map(question).collect();
        match serving.ask(method, questions, deadline).await {
            // Wait while the queue is full.
            Err(AskError::Full { retry_after, .. }) if Instant::now() + retry_after < deadline => {
                tokio::time::sleep(retry_after.max(Duration::from_millis(50))).await;
            }
            answered => break answered?,
        }
    };
    let mixes = answered.answers.into_iter().map(|answer| answer.personas);
    mixes.collect::<Option<_>>().ok_or_else(|| AskError::Failed(format!("{method} gives no personas")))
}
