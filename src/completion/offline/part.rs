//! Completing a part: reads chunks, answers several chunks at a time, and writes in the order of the rows.

use std::{
    collections::BTreeSet,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use atelier_core::domain::{CustomerId, MAX_SLOTS, OpenOutfit, Slot, Timestamp};
use atelier_engine::{
    catalogue::{Catalogue, Choice},
    inference::{Articles, Serving},
};
use atelier_files::{Dialect, FileRow, RowError, RowWriter, Rows, SuggestionRow};
use futures_util::{StreamExt, TryStreamExt, stream};
use tokio::{sync::mpsc, task};

use super::{CountedWarning, Done, LISTED, OfflineError, Profiles, Wanted};
use crate::{
    completion::{Completion, Request, Served, Stored, complete_many, rules::Rules},
    platform::fault::Fault,
    releases::routing::Holdout,
};

/// Outfits that are answered together: enough that outfits of the same shape fill a run.
const CHUNK: usize = 2048;
/// The bytes of a chunk's rows, at most one more row.
const CHUNK_BYTES: u64 = 4 << 20;
/// Chunks in preparation besides those that the model's threads compute.
const AHEAD: usize = 2;
/// A model that takes longer will not answer.
const PATIENCE: Duration = Duration::from_mins(10);

/// The least questions of a run. No caller waits for a first answer, and a larger run reads the weights of the last layer
/// less often.
pub const BATCH: usize = 256;

/// The model, data and settings for all parts.
#[derive(Debug)]
pub struct Job {
    pub serving: Arc<Serving>,
    pub catalogue: Arc<Catalogue>,
    pub articles: Arc<Articles>,
    /// The shop's, of which those count that do when the job begins.
    pub rules: Arc<Rules>,
    pub holdout: Holdout,
    pub bought_again: Vec<String>,
    pub begun: Timestamp,
    pub profiles: Profiles,
    pub dialect: Dialect,
    pub wanted: Wanted,
    /// Threads of the model.
    pub workers: usize,
}

impl Job {
    /// The longest queue that a part needs, in questions.
    pub fn queue(workers: usize) -> usize {
        in_flight(workers) * CHUNK * MAX_SLOTS
    }
}

fn in_flight(workers: usize) -> usize {
    workers + AHEAD
}

/// Completes the outfits of a file into another. `on_progress` gets the amount that was read, and the total.
pub async fn complete_part(
    job: &Arc<Job>,
    input: &Path,
    output: &Path,
    on_progress: impl Fn(u64, u64),
) -> Result<Done, OfflineError> {
    let rows = atelier_files::read_as::<OpenOutfit>(input, job.serving.release().schema(), &job.dialect)?;
    let mut writer = RowWriter::create::<SuggestionRow<'_>>(output)?;
    let mut done = Done { unread: rows.unread().map(str::to_owned), ..Done::default() };
    let (chunks, read) = mpsc::channel(1);
    let reader = task::spawn_blocking(move || read_chunks(rows, &chunks));
    let answering = stream::unfold(read, async |mut read| Some((read.recv().await?, read)))
        .map(|chunk: Chunk| {
            let job = Arc::clone(job);
            let (at, total) = chunk.progress;
            async move {
                // On another thread, because preparing questions takes as long as the answers.
                let answered = task::spawn(async move { answer(&job, chunk.rows).await }).await;
                answered.expect("answering does not panic").map(|answers| (answers, at, total))
            }
        })
        .buffered(in_flight(job.workers));
    let mut answering = std::pin::pin!(answering);
    while let Some((answers, at, total)) = answering.try_next().await? {
        for answer in answers {
            write_answer(&mut done, &mut writer, answer)?;
        }
        on_progress(at, total);
    }
    if let Some(error) = reader.await.expect("reading does not panic") {
        return Err(OfflineError::Row { path: input.to_owned(), error });
    }
    if done.bad == 0 || job.wanted.skip_bad {
        writer.finish()?;
        done.written = true;
    }
    Ok(done)
}

/// Rows that are answered together.
struct Chunk {
    rows: Vec<Result<FileRow<OpenOutfit>, RowError>>,
    progress: (u64, u64),
}

/// Returns a fatal error, if there is one.
fn read_chunks(mut rows: Rows<OpenOutfit>, chunks: &mpsc::Sender<Chunk>) -> Option<RowError> {
    loop {
        let (begin, mut chunk) = (rows.bytes(), Vec::with_capacity(CHUNK));
        while chunk.len() < CHUNK && rows.bytes() - begin < CHUNK_BYTES {
            let Some(row) = rows.next() else { break };
            match row {
                Err(error) if error.is_fatal() => return Some(error),
                row => chunk.push(row),
            }
        }
        if chunk.is_empty() {
            return None;
        }
        let progress = rows.progress();
        // The receiver ends early after an error.
        chunks.blocking_send(Chunk { rows: chunk, progress }).ok()?;
    }
}

/// A row's line, and its customer and completion, or why it has none.
type Answered = (u64, Result<(CustomerId, Completion), String>);

async fn answer(
    job: &Job,
    rows: Vec<Result<FileRow<OpenOutfit>, RowError>>,
) -> Result<Vec<Answered>, OfflineError> {
    let ids: BTreeSet<_> = rows.iter().flatten().map(|row| customer_of(&row.value)).collect();
    let profiles = job.profiles.get(ids).await?;
    let mut answered: Vec<Answered> = Vec::with_capacity(rows.len());
    let (mut customers, mut requests) = (Vec::new(), Vec::new());
    for row in rows {
        let (line, refused) = match row {
            Err(error) => (error.line, error.reason),
            Ok(FileRow { line, value, .. }) => match profiles.get(customer_of(&value)) {
                None if value.features.is_empty() => {
                    let customer = customer_of(&value);
                    (line, format!("customer {customer} is unknown, and the row has no features"))
                }
                stored => {
                    customers.push((line, customer_of(&value).clone()));
                    requests.push(request(job, value, stored.cloned().unwrap_or_default()));
                    continue;
                }
            },
        };
        answered.push((line, Err(refused)));
    }
    let served = Served {
        serving: &job.serving,
        catalogue: &job.catalogue,
        articles: &job.articles,
        rules: &job.rules,
        bought_again: &job.bought_again,
    };
    let found = complete_many(served, job.wanted.method, &requests, Instant::now() + PATIENCE).await?;
    for ((line, customer), found) in customers.into_iter().zip(found) {
        let outcome = found.map(|completion| (customer, completion)).map_err(|faults| describe(&faults));
        answered.push((line, outcome));
    }
    answered.sort_by_key(|(line, _)| *line);
    Ok(answered)
}

fn customer_of(outfit: &OpenOutfit) -> &CustomerId {
    outfit.customer.as_ref().expect("every row of a file names a customer")
}

fn request(job: &Job, outfit: OpenOutfit, stored: Arc<Stored>) -> Request {
    let is_held_out = job.holdout.has(customer_of(&outfit));
    let OpenOutfit { slots, features, .. } = outfit;
    let Wanted { method, k, filters, diversity, .. } = &job.wanted;
    let slot = |slot: &Slot| slot.article().cloned();
    Request {
        stored: Some(stored),
        given: Some(features),
        k: *k,
        filters: filters.clone(),
        diversity: *diversity,
        rules: (!is_held_out).then_some(job.begun),
        ..Request::new(slots.as_slice().iter().map(slot).collect(), *method)
    }
}

fn describe(faults: &[Fault]) -> String {
    let each: Vec<String> = faults.iter().map(|fault| format!("{}: {}", fault.field, fault.detail)).collect();
    each.join("; ")
}

fn write_answer(
    done: &mut Done,
    writer: &mut RowWriter,
    (line, outcome): Answered,
) -> Result<(), OfflineError> {
    let (customer, completion) = match outcome {
        Ok(completed) => completed,
        Err(reason) => {
            done.bad += 1;
            if done.errors.len() < LISTED {
                done.errors.push((line, reason));
            }
            return Ok(());
        }
    };
    for warning in completion.warnings {
        let has_room = done.warnings.len() < LISTED;
        match done.warnings.iter_mut().find(|counted| counted.detail == warning.detail) {
            Some(counted) => counted.answers += 1,
            None if has_room => {
                done.warnings.push(CountedWarning { detail: warning.detail, row: line, answers: 1 });
            }
            None => done.more_warnings += 1,
        }
    }
    done.outfits += 1;
    for blank in &completion.blanks {
        let slot = i32::try_from(blank.slot).expect("an outfit has few slots");
        for (rank, suggestion) in (1..).zip(&blank.suggestions) {
            writer.write(&SuggestionRow {
                row: i64::try_from(line).expect("the number of a row fits into 63 bits"),
                customer: customer.as_str(),
                slot,
                rank,
                article: suggestion.article.id.as_str(),
                variant: match completion.variants.get(&suggestion.article.id) {
                    Some(Choice::Variant { id, .. }) => id,
                    _ => "",
                },
                share: suggestion.share,
            })?;
            done.suggestions += 1;
        }
    }
    Ok(())
}
