//! The engine beside bare ONNX Runtime, on one model file, in one process and in turns.
//!
//! ```sh
//! cargo bench --profile dist --bench session -- --release data/speed/random
//! ```
//!
//! Bare: a session in a loop that computes all logits and ignores them, over batch sizes and thread counts. The engine:
//! `Serving::ask` with k = 20 under a mask, as `/complete` asks, from concurrent callers. Both get the same outfits of
//! the same customers. The figure to compare is completions per CPU-second of the whole process: it also holds on a
//! busy machine, though less so where caches are shared.

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use atelier::config::Config;
use atelier_core::domain::{Customer, Mask, Method, Outfit};
use atelier_engine::{
    catalogue::ArticleIndex,
    inference::{self, Articles, BLANK, DeviceChoice, Engine, Question, Serving},
    onnx_runtime::OnnxRuntime,
    release::Release,
};
use atelier_files::Table;
use clap::Parser;
use ort::{
    session::{Session, SessionInputs},
    value::Tensor,
};
use serde_json::json;

#[derive(Debug, Parser)]
struct Arguments {
    #[arg(long, default_value = "data/speed/random")]
    release: PathBuf,
    /// The same methods as whole files: `atelier-training export --whole data/speed/random --out data/speed/whole`.
    #[arg(long, default_value = "data/speed/whole")]
    whole: PathBuf,
    #[arg(long, default_value = "gsu")]
    method: Method,
    /// How long each is measured in each round.
    #[arg(long, default_value_t = 0.5)]
    seconds: f64,
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    #[arg(long, value_delimiter = ',', default_values_t = [1, 16, 64, 256])]
    batches: Vec<usize>,
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2, 4])]
    threads: Vec<usize>,
    #[arg(long, value_delimiter = ',', default_values_t = [1, 8, 64, 256])]
    callers: Vec<usize>,
    /// `cuda` also gives bare sessions the GPU, where their threads hardly matter.
    #[arg(long, default_value = "cpu")]
    device: DeviceChoice,
    /// One JSON object a line instead of a table.
    #[arg(long)]
    json: bool,
    /// Cargo gives it to every benchmark.
    #[arg(long, hide = true)]
    bench: bool,
}

const K: usize = 20;
const SLOTS: usize = 5;

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let config = Config::default();
    let onnx_runtime = OnnxRuntime::load(&config.cache.folder, |notice| eprintln!("{notice}"))?;
    let release = Release::open(&arguments.release)?;
    let settings = inference::Settings { device: arguments.device, ..config.engine.settings() };
    let serving = Arc::new(Engine::new(onnx_runtime.clone(), settings).load(&arguments.release)?);
    let articles = Arc::new(serving.articles(ArticleIndex::of_release(&release)));
    let questions = questions(&arguments, &release, &articles)?;
    let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build()?;
    let mut contestants = Vec::new();
    for &threads in &arguments.threads {
        let path = arguments.whole.join(format!("{}.onnx", arguments.method));
        for &batch in &arguments.batches {
            let builder = Session::builder(onnx_runtime.environment())?
                .with_intra_threads(threads)
                .map_err(ort::Error::<()>::from)?;
            let session = serving.device().configure(builder)?.commit_from_file(&path)?;
            contestants.push(Contestant::Bare { threads, batch, session });
        }
    }
    contestants.extend(arguments.callers.iter().map(|&callers| Contestant::Engine { callers }));
    let ground = Ground { serving, questions: Arc::new(questions), tokio: &tokio, method: arguments.method };
    // Opens copies of the model and touches memory.
    ground.engine(arguments.callers.iter().copied().max().unwrap_or(1), Duration::from_secs(1))?;
    let mut found = vec![Vec::new(); contestants.len()];
    for _ in 0..arguments.rounds {
        for (found, contestant) in found.iter_mut().zip(&mut contestants) {
            found.push(contestant.measure(&ground, Duration::from_secs_f64(arguments.seconds))?);
        }
    }
    for (found, contestant) in found.into_iter().zip(&contestants) {
        contestant.report(&Measured::median(&found), &arguments);
    }
    Ok(())
}

/// Outfits of five slots with a blank, each with its customer, under the mask of `/complete`: every article that is not
/// in the outfit.
fn questions(arguments: &Arguments, release: &Release, articles: &Arc<Articles>) -> Result<Vec<Question>> {
    let schema = release.schema();
    let rows = |name: &str| arguments.release.join(format!("{name}.jsonl"));
    let mut customers = HashMap::new();
    for row in atelier_files::read::<Customer>(&rows(Customer::NAME), schema)? {
        let customer = row.context("a customer")?.value;
        let encoding = schema.encode(&customer.features).ok().context("a customer that encodes")?;
        customers.insert(customer.id.as_str().to_owned(), Arc::from(encoding.indices));
    }
    let vocabulary = release.vocabulary();
    let mut questions = Vec::new();
    for row in atelier_files::read::<Outfit>(&rows(Outfit::NAME), schema)? {
        let outfit = row.context("an outfit")?.value;
        if outfit.articles().len() != SLOTS {
            continue;
        }
        let index = |id: &atelier_core::domain::ArticleId| vocabulary.index_of(id.as_str());
        let mut slots: Vec<u32> =
            outfit.articles().iter().map(index).collect::<Option<_>>().context("known")?;
        let blank = questions.len() % SLOTS;
        slots[blank] = BLANK;
        let mut mask = Mask::all(vocabulary.len());
        slots.iter().filter(|&&slot| slot != BLANK).for_each(|&slot| mask.remove(slot));
        let context = customers.get(outfit.customer.as_str()).context("a known customer")?;
        let mut question = Question::new(Arc::clone(articles), slots, blank, Arc::clone(context));
        question.admissible = Some(Arc::new(mask));
        question.k = K;
        questions.push(question);
    }
    ensure!(questions.len() >= 256, "{} has too few outfits of five", arguments.release.display());
    Ok(questions)
}

/// What every measurement needs.
struct Ground<'a> {
    serving: Arc<Serving>,
    questions: Arc<Vec<Question>>,
    tokio: &'a tokio::runtime::Runtime,
    method: Method,
}

enum Contestant {
    Bare { threads: usize, batch: usize, session: Session },
    Engine { callers: usize },
}

/// One measurement.
#[derive(Debug, Clone)]
struct Measured {
    per_cpu_second: f64,
    per_second: f64,
    /// Median milliseconds of a run, or of a caller's question.
    latency: f64,
}

impl Measured {
    fn new(completions: usize, cpu: f64, wall: f64, mut latencies: Vec<f64>) -> Self {
        latencies.sort_unstable_by(f64::total_cmp);
        let latency = latencies.get(latencies.len() / 2).map_or(f64::NAN, |seconds| seconds * 1e3);
        Self { per_cpu_second: count(completions) / cpu, per_second: count(completions) / wall, latency }
    }

    fn median(rounds: &[Self]) -> Self {
        let middle = |of: fn(&Self) -> f64| {
            let mut values: Vec<f64> = rounds.iter().map(of).collect();
            values.sort_unstable_by(f64::total_cmp);
            values[values.len() / 2]
        };
        Self {
            per_cpu_second: middle(|round| round.per_cpu_second),
            per_second: middle(|round| round.per_second),
            latency: middle(|round| round.latency),
        }
    }
}

impl Contestant {
    fn measure(&mut self, ground: &Ground<'_>, time: Duration) -> Result<Measured> {
        match self {
            Self::Bare { batch, session, .. } => bare(session, *batch, ground, time),
            Self::Engine { callers } => ground.engine(*callers, time),
        }
    }

    fn report(&self, measured: &Measured, arguments: &Arguments) {
        let Measured { per_cpu_second, per_second, latency } = measured;
        let (who, threads, at_once) = match self {
            Self::Bare { threads, batch, .. } => ("bare", Some(*threads), *batch),
            Self::Engine { callers } => ("engine", None, *callers),
        };
        if arguments.json {
            let line = json!({
                "who": who, "threads": threads, "at_once": at_once, "per_cpu_second": per_cpu_second,
                "per_second": per_second, "median_ms": latency,
            });
            println!("{line}");
        } else {
            let about = threads.map_or(format!("{at_once} callers"), |threads| {
                format!("{threads} threads, batch {at_once}")
            });
            println!(
                "{who:>6}, {about:<20} {per_cpu_second:>7.0} a CPU-second, {per_second:>7.0} a second, \
                 median {latency:.2} ms"
            );
        }
    }
}

/// Runs one after the other; the inputs are made before the clock starts.
fn bare(session: &mut Session, batch: usize, ground: &Ground<'_>, time: Duration) -> Result<Measured> {
    let inputs = ground
        .questions
        .chunks_exact(batch)
        .take(8)
        .map(|questions| inputs(questions, ground.serving.takes_features(ground.method)))
        .collect::<Result<Vec<_>>>()?;
    let mut latencies = Vec::new();
    let (mut completions, cpu, began) = (0, cpu_seconds()?, Instant::now());
    for inputs in inputs.iter().cycle() {
        let start = Instant::now();
        let given: Vec<_> = inputs.iter().map(|(name, tensor)| (*name, tensor)).collect();
        drop(session.run(SessionInputs::from(given))?);
        latencies.push(start.elapsed().as_secs_f64());
        completions += batch;
        if began.elapsed() >= time {
            break;
        }
    }
    Ok(Measured::new(completions, cpu_seconds()? - cpu, began.elapsed().as_secs_f64(), latencies))
}

fn inputs(questions: &[Question], features: bool) -> Result<Vec<(&'static str, Tensor<i64>)>> {
    let batch = questions.len();
    let number = |question: &Question, slot: u32| -> Result<i64> {
        Ok(if slot == BLANK { i64::try_from(question.articles.len())? } else { slot.into() })
    };
    let slots =
        questions.iter().flat_map(|question| question.slots.iter().map(move |&slot| (question, slot)));
    let slots: Vec<i64> = slots.map(|(question, slot)| number(question, slot)).collect::<Result<_>>()?;
    let blanks = questions.iter().map(|question| i64::try_from(question.blank));
    let blanks = blanks.collect::<Result<Vec<_>, _>>()?;
    let mut inputs = vec![
        ("articles", Tensor::from_array(([batch, SLOTS], slots))?),
        ("blank", Tensor::from_array(([batch], blanks))?),
    ];
    if features {
        let contexts = || questions.iter().flat_map(|question| question.context.iter());
        let values = contexts().map(Vec::len).max().unwrap_or(0).max(1);
        let cells: Vec<i64> = contexts()
            .flat_map(|given| given.iter().map(|&v| i64::from(v)).chain(std::iter::repeat(0)).take(values))
            .collect();
        let count = questions[0].context.len();
        inputs.push(("features", Tensor::from_array(([batch, count, values], cells))?));
    }
    Ok(inputs)
}

impl Ground<'_> {
    /// Each caller asks its next question when it has the answer to the last.
    fn engine(&self, callers: usize, time: Duration) -> Result<Measured> {
        let next = Arc::new(AtomicUsize::new(0));
        let (cpu, began) = (cpu_seconds()?, Instant::now());
        let ask = |serving: Arc<Serving>, questions: Arc<Vec<Question>>, next: Arc<AtomicUsize>| {
            let method = self.method;
            async move {
                let mut latencies = Vec::new();
                while began.elapsed() < time {
                    let question = &questions[next.fetch_add(1, Ordering::Relaxed) % questions.len()];
                    let start = Instant::now();
                    let deadline = start + Duration::from_mins(1);
                    let answered = serving.ask(method, vec![question.clone()], deadline).await?;
                    latencies.push(start.elapsed().as_secs_f64());
                    ensure!(answered.answers[0].top.len() == K, "{K} suggestions");
                }
                Ok(latencies)
            }
        };
        let latencies = self.tokio.block_on(async {
            let asking: Vec<_> = (0..callers)
                .map(|_| {
                    let (serving, questions) = (Arc::clone(&self.serving), Arc::clone(&self.questions));
                    tokio::spawn(ask(serving, questions, Arc::clone(&next)))
                })
                .collect();
            let mut latencies = Vec::new();
            for asking in asking {
                latencies.extend(asking.await??);
            }
            Ok::<_, anyhow::Error>(latencies)
        })?;
        let wall = began.elapsed().as_secs_f64();
        Ok(Measured::new(latencies.len(), cpu_seconds()? - cpu, wall, latencies))
    }
}

/// Processor time of all threads of this process, exact to the nanosecond.
fn cpu_seconds() -> Result<f64> {
    let mut nanoseconds = 0.0;
    for task in std::fs::read_dir("/proc/self/task")? {
        // A thread may end while it is looked up.
        let Ok(text) = std::fs::read_to_string(task?.path().join("schedstat")) else { continue };
        nanoseconds += text.split(' ').next().context("schedstat begins with a number")?.parse::<f64>()?;
    }
    Ok(nanoseconds / 1e9)
}

fn count(number: usize) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}
