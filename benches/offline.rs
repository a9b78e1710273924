//! Outfits a second of `atelier complete`, compared with bare ONNX Runtime.
//!
//! ```sh
//! cargo bench --profile dist --bench offline -- --outfits 20000 --workers 4
//! ```
//!
//! The release's outfits, each with one blank, are in a Parquet part (`--release data/speed/random` has 30,000 articles,
//! see `just speed`). "Bare" is a loop over sessions that runs the same questions from prepared tensors and ignores the
//! answers; its best batch size counts. "Offline" is all that the verb does: reading, profiles, encoding, filters,
//! choosing, and writing Parquet. Both use the same number of threads, in turns; medians of the rounds are compared. On
//! a shared machine, processor time says more than the clock.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::Instant,
};

use anyhow::{Context, Result};
use atelier::{
    completion::{
        Filters,
        offline::{BATCH, Job, Profiles, Wanted, complete_part},
    },
    config::Config,
    releases::routing::Holdout,
};
use atelier_core::domain::{Customer, Method, OpenOutfit, Outfit, Schema, Slot, Slots, Timestamp};
use atelier_engine::{
    catalogue::Catalogue,
    inference::{DeviceChoice, Engine, Settings},
    onnx_runtime::OnnxRuntime,
};
use atelier_files::{Dialect, Format, Table, TableColumns, Writer};
use clap::Parser;
use ort::{session::Session, value::Tensor};

#[derive(Debug, Parser)]
struct Arguments {
    #[arg(long, default_value = "models/demo")]
    release: PathBuf,
    /// The same methods as whole files: `atelier-training export --whole models/demo --out data/demo-whole`.
    #[arg(long, default_value = "data/demo-whole")]
    whole: PathBuf,
    #[arg(long, default_value = "gsu")]
    method: Method,
    #[arg(long, default_value_t = 20_000)]
    outfits: usize,
    #[arg(long, default_value_t = 20)]
    k: usize,
    #[arg(long, default_value_t = 2)]
    workers: usize,
    /// Questions in one run of a session.
    #[arg(long, default_value_t = BATCH)]
    batch: usize,
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Cargo gives it to every benchmark.
    #[arg(long, hide = true)]
    bench: bool,
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let onnx_runtime = OnnxRuntime::load(&Config::default().cache.folder, |notice| println!("{notice}"))?;
    let outfits = outfits(&arguments)?;
    let folder = tempfile::tempdir()?;
    let part = folder.path().join("part-0.parquet");
    write(&part, &outfits)?;

    let workers = arguments.workers;
    let settings =
        Settings { workers, batch: arguments.batch, queue: Job::queue(workers), device: DeviceChoice::Cpu };
    let serving = Engine::new(onnx_runtime.clone(), settings).load(&arguments.release)?;
    let release = Arc::clone(serving.release());
    let articles: Vec<_> = release.articles().iter().map(|article| article.unpack()).collect();
    let catalogue = Catalogue::build(&articles, &release);
    let articles = Arc::new(serving.articles(catalogue.index().clone()));
    let profiles =
        Profiles::read(&arguments.release.join("customers.jsonl"), release.schema(), &Dialect::default())?;
    let (method, k) = (arguments.method, arguments.k);
    let wanted = Wanted { method, k, filters: Filters::default(), diversity: 0.0, skip_bad: false };
    let job = Arc::new(Job {
        serving: Arc::new(serving),
        catalogue: Arc::new(catalogue),
        articles,
        rules: Arc::default(),
        holdout: Holdout::default(),
        bought_again: Vec::new(),
        begun: Timestamp::from_millis(0),
        profiles,
        dialect: Dialect::default(),
        wanted,
        workers,
    });

    let mut bare: Vec<Bare> = Vec::new();
    for batch in [16, 64, 256] {
        bare.push(Bare::new(&arguments, &onnx_runtime, &job, &outfits, batch)?);
    }
    let (mut of_bare, mut of_offline) = (vec![Vec::new(); bare.len()], Vec::new());
    // The first run opens sessions, so it is not measured.
    complete_part(&job, &part, &folder.path().join("warm.parquet"), |_, _| {}).await?;
    for round in 0..arguments.rounds {
        for (bare, found) in bare.iter_mut().zip(&mut of_bare) {
            let speed = Speed::measure(outfits.len(), || bare.run());
            println!("bare, batch {:>3}: {speed}", bare.batch);
            found.push(speed);
        }
        let output = folder.path().join(format!("{round}.parquet"));
        let (began, used) = (Instant::now(), cpu_seconds());
        let done = complete_part(&job, &part, &output, |_, _| {}).await?;
        anyhow::ensure!(done.bad == 0 && done.outfits == outfits.len() as u64, "{done:?}");
        let speed = Speed::new(outfits.len(), began.elapsed().as_secs_f64(), cpu_seconds() - used);
        println!("offline:         {speed}, {} KB written", fs::metadata(&output)?.len() / 1000);
        of_offline.push(speed);
    }
    println!(
        "offline / bare: {:.3} by the clock, {:.3} by the processor",
        ratio(&of_offline, &of_bare, |speed| speed.a_second),
        ratio(&of_offline, &of_bare, |speed| speed.a_cpu_second)
    );
    Ok(())
}

/// The release's outfits again and again, with another blank each time.
fn outfits(arguments: &Arguments) -> Result<Vec<OpenOutfit>> {
    let outfits: Vec<Outfit> = rows(&arguments.release)?;
    let open = |number: usize| -> Result<OpenOutfit> {
        let outfit = &outfits[number % outfits.len()];
        let mut slots: Vec<Slot> = outfit.articles().iter().cloned().map(Slot::Article).collect();
        let blank = number / outfits.len() % slots.len();
        slots[blank] = Slot::Blank;
        let (customer, features) = (outfit.customer.clone(), outfit.features.clone());
        Ok(OpenOutfit { customer: Some(customer), slots: Slots::new(slots)?, features })
    };
    (0..arguments.outfits).map(open).collect()
}

fn rows<T: Table>(release: &Path) -> Result<Vec<T>> {
    let schema = atelier_files::read_folder_schema(release)?;
    let rows = atelier_files::read::<T>(&release.join(format!("{}.jsonl", T::NAME)), &schema)?;
    rows.map(|row| Ok(row.context("a row")?.value)).collect()
}

fn write(path: &Path, outfits: &[OpenOutfit]) -> Result<()> {
    let mut columns = TableColumns::new(&Schema::default_schema());
    for outfit in outfits {
        columns.include(outfit);
    }
    let mut writer = Writer::create(path, Format::Parquet, &columns)?;
    for outfit in outfits {
        writer.write(outfit)?;
    }
    Ok(writer.finish()?)
}

/// Sessions and their input tensors.
struct Bare {
    batch: usize,
    threads: Vec<(Session, Vec<Inputs>)>,
}

type Inputs = Vec<(&'static str, Tensor<i64>)>;

impl Bare {
    fn new(
        arguments: &Arguments,
        runtime: &OnnxRuntime,
        job: &Job,
        outfits: &[OpenOutfit],
        batch: usize,
    ) -> Result<Self> {
        let path = arguments.whole.join(format!("{}.onnx", arguments.method));
        // Sorted by length, as offline does: padding would only slow it.
        let mut sorted: Vec<&OpenOutfit> = outfits.iter().collect();
        sorted.sort_by_key(|outfit| outfit.slots.as_slice().len());
        let customers: Vec<Customer> = rows(&arguments.release)?;
        let runs = sorted.chunks(batch).map(|run| inputs(job, &customers, run));
        let mut runs: Vec<Inputs> = runs.collect::<Result<_>>()?;
        let share = runs.len().div_ceil(arguments.workers);
        let mut threads = Vec::new();
        while !runs.is_empty() {
            let builder = Session::builder(runtime.environment())?.with_intra_threads(1);
            let session = builder.map_err(ort::Error::<()>::from)?.commit_from_file(&path)?;
            let own: Vec<Inputs> = runs.drain(..share.min(runs.len())).collect();
            let own = own
                .into_iter()
                .map(|mut inputs| {
                    inputs.retain(|(name, _)| session.inputs().iter().any(|input| input.name() == *name));
                    inputs
                })
                .collect();
            threads.push((session, own));
        }
        Ok(Self { batch, threads })
    }

    fn run(&mut self) {
        thread::scope(|scope| {
            for (session, runs) in &mut self.threads {
                scope.spawn(move || {
                    for inputs in runs.iter() {
                        let inputs: Vec<_> = inputs.iter().map(|(name, value)| (*name, value)).collect();
                        session.run(inputs).expect("the model runs");
                    }
                });
            }
        });
    }
}

fn inputs(job: &Job, customers: &[Customer], outfits: &[&OpenOutfit]) -> Result<Inputs> {
    let release = job.serving.release();
    let (schema, vocabulary) = (release.schema(), release.vocabulary());
    let slots = outfits.iter().map(|outfit| outfit.slots.as_slice().len()).max().unwrap_or(0);
    let (mut articles, mut blanks, mut contexts) = (Vec::new(), Vec::new(), Vec::new());
    for outfit in outfits {
        let index = |slot: &Slot| match slot {
            Slot::Article(id) => vocabulary.index_of(id.as_str()).map(i64::from),
            Slot::Blank => Some(vocabulary.blank().into()),
        };
        let own: Option<Vec<i64>> = outfit.slots.as_slice().iter().map(index).collect();
        articles.extend(own.context("an article of the release")?);
        articles.resize(slots * (blanks.len() + 1), i64::from(vocabulary.blank()) + 1);
        blanks.push(i64::try_from(outfit.slots.blanks().next().context("a blank")?)?);
        let customer = customers.iter().find(|customer| Some(&customer.id) == outfit.customer.as_ref());
        let features =
            customer.context("a customer")?.features.clone().overridden_by(outfit.features.clone());
        contexts.push(schema.encode(&features).map_err(|errors| anyhow::anyhow!("{errors:?}"))?.indices);
    }
    let values = contexts.iter().flatten().map(Vec::len).max().unwrap_or(0).max(1);
    let mut features = Vec::new();
    for given in contexts.iter().flatten() {
        features.extend(given.iter().copied().map(i64::from));
        features.extend(std::iter::repeat_n(0, values - given.len()));
    }
    let batch = outfits.len();
    Ok(vec![
        ("articles", Tensor::from_array(([batch, slots], articles))?),
        ("blank", Tensor::from_array(([batch], blanks))?),
        ("features", Tensor::from_array(([batch, schema.features().len(), values], features))?),
    ])
}

#[derive(Debug, Clone, Copy)]
struct Speed {
    a_second: f64,
    a_cpu_second: f64,
}

impl Speed {
    fn new(outfits: usize, seconds: f64, cpu_seconds: f64) -> Self {
        let outfits = f64::from(u32::try_from(outfits).unwrap_or(u32::MAX));
        Self { a_second: outfits / seconds, a_cpu_second: outfits / cpu_seconds }
    }

    fn measure(outfits: usize, work: impl FnOnce()) -> Self {
        let (began, used) = (Instant::now(), cpu_seconds());
        work();
        Self::new(outfits, began.elapsed().as_secs_f64(), cpu_seconds() - used)
    }
}

/// The median of offline divided by the best median of the bare runs.
fn ratio(offline: &[Speed], bare: &[Vec<Speed>], of: fn(&Speed) -> f64) -> f64 {
    let median = |speeds: &[Speed]| {
        let mut all: Vec<f64> = speeds.iter().map(of).collect();
        all.sort_unstable_by(f64::total_cmp);
        all[all.len() / 2]
    };
    median(offline) / bare.iter().map(|speeds| median(speeds)).fold(0.0, f64::max)
}

impl std::fmt::Display for Speed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:>6.0} outfits a second, {:>6.0} a CPU-second", self.a_second, self.a_cpu_second)
    }
}

/// Processor time of this process, from Linux's ticks of a hundredth of a second.
fn cpu_seconds() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> =
        stat.rsplit_once(')').map(|(_, rest)| rest.split_whitespace().collect()).unwrap_or_default();
    let ticks = |field: usize| fields.get(field - 3).and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(14) + ticks(15)) / 100.0
}
