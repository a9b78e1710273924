//! Proposes a release that has learned from what happened since the live one: the export of a service comes in, a candidate
//! with its card goes out, or the reason why there is none.
//!
//! The outfits of the last weeks are kept apart. A model begins at the live release's weights, learns from the others, and is
//! compared with the live release on those that were kept. The live release is only read. What the module writes about customers
//! lies in a folder inside the export, which is removed at the end.

mod card;
mod judge;
mod leak;
mod warm;

use std::{
    cell::Cell,
    fs,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant, SystemTime},
};

use anyhow::{Context, Result, bail};
use atelier_core::{
    domain::{HAD, Method, Timestamp},
    util::calendar::{parse_moment, rfc3339},
};
use atelier_engine::{
    evaluation::FIGURES,
    onnx_runtime::OnnxRuntime,
    release::{MethodEntry, Release, check_name},
};
use atelier_files::{AcceptedOutfit, Dialect, Files, OrderLine, find_table, read_folder_schema, read_times};
use serde_json::Value;

pub use self::{
    card::{Card, Learned, Live, Training},
    judge::{Gain, Scores, Segment, acceptance},
};
use crate::{
    baselines::beside_methods,
    data::Data,
    evaluate::{Cases, FEW},
    export::{Metadata, Storage},
    fit::{self, Event, Outcome, Overrides, RunConfig, RunFolder, Watch, fit},
    import::{ByTime, Import, Imported, Period},
    number::real,
    release::{Plan, assemble, export_run},
};

/// The part of the time in which the speed is measured, and the part that is planned for epochs: scores take time, too.
const TRIAL: f64 = 0.03;
const PLANNED: f64 = 0.75;
/// Epochs without improvement.
const PATIENCE: u32 = 6;

/// Sources and settings of a candidate.
#[derive(Debug)]
pub struct Refresh<'a> {
    /// A folder that `atelier export` wrote.
    pub from: &'a Path,
    /// The folder of the live release.
    pub live: &'a Path,
    /// The candidate's folder, which must not exist.
    pub out: &'a Path,
    /// The outfits of this last time are not learned, and both are compared on them; without it, of as many weeks as the data needs.
    pub last: Option<Duration>,
    /// The least share of the catalogue's articles that a service takes of a release.
    pub least_known: f64,
    /// The time to learn in, and the most epochs.
    pub limit: Duration,
    pub epochs: u32,
    pub seed: u64,
    pub storage: Storage,
    /// For the manifest.
    pub command: String,
    pub created: SystemTime,
}

/// The facts of the data and of the live release.
struct Given {
    live: Release,
    entry: MethodEntry,
    data: Data,
    period: Option<Period>,
    /// How many outfits of the last weeks repeat one to learn from. Both releases may have read their answers, so the others are compared.
    repeated: usize,
    compared: Cases,
}

impl Refresh<'_> {
    /// Makes the candidate, unless its card says why not. `tell` gets each step's name.
    ///
    /// # Errors
    /// If a folder or a row cannot be used, or `stop` was set.
    pub fn make(&self, runtime: &OnnxRuntime, stop: &AtomicBool, tell: &mut dyn FnMut(&str)) -> Result<Card> {
        let name = self.out.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        check_name(name).map_err(anyhow::Error::msg)?;
        if self.out.exists() {
            bail!("{} exists already: name another folder for the candidate", self.out.display());
        }
        let live = Release::open(self.live)?;
        let work = tempfile::Builder::new()
            .prefix(".refresh.")
            .tempdir_in(self.from)
            .with_context(|| format!("cannot write to {}", self.from.display()))?;
        let folder = work.path().join("data").join(name);
        tell("reading the export");
        let imported = self.import(&folder)?;
        let data = Data::load_by_time(&folder, None)?;
        let default = live.manifest().default_method;
        let entry = live.manifest().methods.iter().find(|entry| entry.method == default);
        let entry = entry.expect("the default method is one of them").clone();
        let mut card = Card {
            name: name.to_owned(),
            created: rfc3339(self.created),
            live: Live {
                name: live.manifest().name.clone(),
                created: live.manifest().created.clone(),
                method: default.to_string(),
                fingerprint: live.manifest().data.fingerprint.clone(),
            },
            refused: None,
            data: describe(&data, &imported),
            training: None,
            figures: Vec::new(),
            notes: Vec::new(),
        };
        let repeated = data.repeated();
        let compared = Cases::of_all_articles(&data).select(|case| !repeated.contains(&case.outfit)).0;
        let given = Given { live, entry, data, period: imported.period, repeated: repeated.len(), compared };
        let of_import = imported.outfits_per_customer.map(|_| HAD);
        card.refused = too_little(&given)
            .or_else(|| self.covers_little(&given.data))
            .or_else(|| leak::find(&given.data, of_import));
        if card.refused.is_some() {
            return Ok(card);
        }
        card.notes.extend(note_seen(&given));
        card.notes.extend(note_repeated(&given));
        let run = RunFolder::new(work.path().join("run"));
        let Some(config) = self.learn(&given, &run, work.path(), stop, tell, &mut card)? else {
            return Ok(card);
        };
        tell("comparing with the live release");
        card.figures = self.compare(runtime, &given, &run, &config, &folder)?;
        card.refused = not_better(&card.figures[0]);
        if card.refused.is_none() {
            tell("writing the candidate");
            self.write(runtime, &given.data, &folder, &run, &card)?;
        }
        Ok(card)
    }

    /// Why a service would refuse the candidate, whatever it learns.
    fn covers_little(&self, data: &Data) -> Option<String> {
        let (known, all) = (data.count_known(), data.articles().len());
        let share = real(known) / real(all.max(1));
        (share < self.least_known).then(|| {
            format!(
                "the outfits to learn from have {known} of the catalogue's {all} articles, so a candidate covers {:.1} % of the catalogue, at \
                 least {:.1} wanted (--least-known, as models.least_known): put earlier orders into the service with `atelier import \
                 --orders`",
                100.0 * share,
                100.0 * self.least_known
            )
        })
    }

    fn import(&self, folder: &Path) -> Result<Imported> {
        let (files, schema) = (Files::in_folder(self.from)?, read_folder_schema(self.from)?);
        let orders = find_table::<OrderLine>(self.from)?;
        let plan = Import {
            files: &files,
            dialect: &Dialect::default(),
            orders: orders.as_deref(),
            by_time: Some(ByTime {
                times: read_times(self.from)?,
                last: self.last,
                enough: FEW,
                accepted: find_table::<AcceptedOutfit>(self.from)?,
            }),
            schema: &schema,
            skip_bad: false,
            validation: 0.0,
            history: true,
        };
        let imported = plan.write(folder, &mut |_, _, _| {})?;
        if let Some(first) = imported.report.errors.first() {
            bail!("{} rows of the export are bad, the first is {first}", imported.report.bad);
        }
        Ok(imported)
    }

    /// Trains a run, and returns its settings; `None` if no epoch ended in time.
    fn learn(
        &self,
        given: &Given,
        run: &RunFolder,
        work: &Path,
        stop: &AtomicBool,
        tell: &mut dyn FnMut(&str),
        card: &mut Card,
    ) -> Result<Option<RunConfig>> {
        let Given { live, entry, data, .. } = given;
        let trained = Method::ALL.contains(&entry.method);
        let method = if trained { entry.method } else { Method::Match };
        let settings = work.join("settings.toml");
        let before = if trained { settings_of(live, method, data)? } else { None };
        if let Some(before) = &before {
            fs::write(&settings, before).with_context(|| settings.display().to_string())?;
        }
        let overrides = Overrides { file: before.is_some().then_some(settings.as_path()), set: &[] };
        let mut config = RunConfig::new(method, data, self.from, overrides, |fit| {
            (fit.seed, fit.epochs, fit.shorten) = (self.seed, self.epochs, false);
            fit.patience = fit.patience.min(PATIENCE);
        })?;
        tell("measuring the speed");
        config.fit.epochs = self.count_epochs(data, &config, &RunFolder::new(work.join("trial")), stop)?;
        tell("beginning at the live release");
        let new = fit::first_model(data, &config);
        let mut warm = new.clone();
        if trained {
            warm::begin_at(&mut warm, live, entry, data)?;
        }
        let [live_start, new_start] = [&warm, &new].map(|model| fit::score(model, data));
        let (began_at, model) = if trained && live_start <= new_start {
            ("the live release", warm)
        } else {
            ("new weights", new)
        };
        fit::begin_at(&model, &config, run)?;
        let start = Instant::now();
        let is_over = AtomicBool::new(false);
        let mut on_event = |event: Event<'_>| {
            let late = start.elapsed() >= self.limit;
            is_over.store(late || stop.load(Ordering::Relaxed), Ordering::Relaxed);
            if let Event::Epoch(epoch) = event {
                tell(&format!("epoch {}: {:.4}", epoch.epoch, epoch.development.cross_entropy));
            }
        };
        let clock = || start.elapsed().as_secs_f64();
        let mut watch = Watch { clock: &clock, stop: &is_over, on_event: &mut on_event };
        let outcome = fit(data, &config, run, true, &mut watch)?;
        if outcome == Outcome::Interrupted && stop.load(Ordering::Relaxed) {
            bail!("interrupted: no candidate was made");
        }
        let Some((best_epoch, development)) = run.best_epoch()? else {
            card.refused = Some(format!(
                "no epoch ended in {:.1} minutes: raise --minutes",
                self.limit.as_secs_f64() / 60.0
            ));
            return Ok(None);
        };
        card.training = Some(Training {
            method: method.to_string(),
            seed: self.seed,
            began_at: began_at.to_owned(),
            live_start,
            new_start,
            development,
            best_epoch,
            epochs: u32::try_from(run.epochs()?.len()).unwrap_or(u32::MAX),
            minutes: start.elapsed().as_secs_f64() / 60.0,
        });
        Ok(Some(config))
    }

    /// How many epochs the time allows, measured by a part of one.
    fn count_epochs(
        &self,
        data: &Data,
        config: &RunConfig,
        run: &RunFolder,
        stop: &AtomicBool,
    ) -> Result<u32> {
        let mut trial = config.clone();
        (trial.fit.epochs, trial.fit.begin_at_logit) = (1, false);
        let limit = self.limit.as_secs_f64();
        let (started, outfits, seconds) = (Cell::new(None), Cell::new(0), Cell::new(0.0));
        let is_over = AtomicBool::new(false);
        let mut on_event = |event: Event<'_>| match event {
            Event::Started { .. } => started.set(Some(Instant::now())),
            Event::Step { outfits: more, .. } => {
                outfits.set(outfits.get() + more);
                seconds.set(started.get().map_or(0.0, |start| start.elapsed().as_secs_f64()));
                let is_enough = seconds.get() >= TRIAL * limit || stop.load(Ordering::Relaxed);
                is_over.store(is_enough, Ordering::Relaxed);
            }
            _ => {}
        };
        let mut watch = Watch { clock: &|| 0.0, stop: &is_over, on_event: &mut on_event };
        fit(data, &trial, run, false, &mut watch)?;
        let of_epoch = seconds.get() * real(data.training().len()) / real(outfits.get().max(1));
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "casts from floats saturate"
        )]
        let most = (PLANNED * limit / of_epoch.max(1e-9)) as u32;
        Ok(most.clamp(1, config.fit.epochs))
    }

    fn compare(
        &self,
        runtime: &OnnxRuntime,
        given: &Given,
        run: &RunFolder,
        config: &RunConfig,
        folder: &Path,
    ) -> Result<Vec<Segment>> {
        let Given { live, entry, data, compared, .. } = given;
        let metadata = Metadata { release: String::new(), storage: self.storage };
        let method = export_run(run, config, data, &metadata, run.path())?;
        let candidate = assemble(run.path(), "", data, method.clone())?;
        // Customers' purchases may name other articles in the live schema.
        let other = (live.schema().features() != data.schema().features()).then(|| {
            let schema = live.schema().clone().with_outfit_size(data.schema().outfit_size());
            Data::load_by_time(folder, Some(&schema))
        });
        let other = other.transpose()?;
        let live = (live, entry, other.as_ref().unwrap_or(data));
        judge::compare(runtime, compared, live, (&candidate, &method, data))
    }

    fn write(
        &self,
        runtime: &OnnxRuntime,
        data: &Data,
        folder: &Path,
        run: &RunFolder,
        card: &Card,
    ) -> Result<()> {
        let parent = self.out.parent().filter(|parent| !parent.as_os_str().is_empty());
        let runs = [run.clone()];
        let plan = Plan {
            name: &card.name,
            data,
            folder,
            runs: &runs,
            served: &[],
            baselines: beside_methods(data, data.validation()),
            storage: self.storage,
            default_method: None,
            // A model is kept longer than a customer's data may be.
            customers: 0,
            command: self.command.clone(),
            beside: vec![("model-card.json", card.to_json()), ("model-card.md", card.to_markdown())],
            created: self.created,
        };
        plan.make(runtime, parent.unwrap_or(Path::new(".")), &|_, _| {})?;
        Ok(())
    }
}

/// Why the data cannot show that a candidate is better.
fn too_little(given: &Given) -> Option<String> {
    let Given { data, period, compared, .. } = given;
    if period.is_none() {
        return Some(
            "the export has neither orders nor saved outfits, so nothing can be split by time".into(),
        );
    }
    if data.training().is_empty() {
        return Some(
            "all outfits are of the last weeks, so there are none to learn from: put earlier orders into the service with `atelier import \
             --orders`, or lower --weeks"
                .into(),
        );
    }
    let slots = compared.as_slice().len();
    (slots < FEW).then(|| {
        format!(
            "the last weeks have {slots} slots, and fewer than {FEW} say too little: raise --weeks, wait, or put earlier orders into the \
             service with `atelier import --orders`"
        )
    })
}

/// The live release may have learned what both are compared on.
fn note_seen(given: &Given) -> Option<String> {
    let learned = given.live.optional_file("model-card.json").ok().flatten();
    let learned = learned.and_then(|path| fs::read_to_string(path).ok());
    let learned: Option<Card> = learned.and_then(|text| serde_json::from_str(&text).ok());
    let until = match learned {
        Some(card) => card.data.learned_until,
        None => Some(given.live.manifest().created.clone()),
    };
    let until = Timestamp::from_millis(parse_moment(&until?)?);
    (until > given.period?.validation).then(|| {
        "The live release was made after the compared weeks began, so it may have learned from them and look too good."
            .to_owned()
    })
}

fn note_repeated(Given { data, repeated, .. }: &Given) -> Option<String> {
    let all = data.validation().len();
    (*repeated > 0).then(|| {
        format!(
            "{repeated} of {all} outfits of the last weeks repeat an earlier one of the same or another customer, and are not compared."
        )
    })
}

/// Why the candidate is not proposed: customers would not clearly find more of what they want among five suggestions.
fn not_better(all: &Segment) -> Option<String> {
    let Gain { difference, low, high } = all.of_type_at_5;
    (low <= 0.0).then(|| {
        format!(
            "it is not clearly better than the live release: {:+.2} points (95 % interval {:+.2} to {:+.2}) of articles \
             among the first five of their type, on {} slots",
            100.0 * difference,
            100.0 * low,
            100.0 * high,
            all.slots
        )
    })
}

fn describe(data: &Data, imported: &Imported) -> Learned {
    let (period, taken) = (imported.period, imported.taken.clone().unwrap_or_default());
    Learned {
        fingerprint: data.fingerprint().to_owned(),
        from: period.map(|period| period.first.to_string()),
        until: period.map(|period| period.last.to_string()),
        learned_until: period.map(|period| period.validation.to_string()),
        articles: data.articles().len(),
        known_articles: data.count_known(),
        customers: data.customers().len(),
        order_lines: taken.lines,
        returned_lines: taken.returned,
        outfits_of_orders: taken.outfits,
        accepted_outfits: period.map_or(0, |period| period.accepted),
        training: data.training().len(),
        development: data.development().len(),
        validation: data.validation().len(),
    }
}

/// The settings of a release's method as a file of settings, if the release has them.
fn settings_of(live: &Release, method: Method, data: &Data) -> Result<Option<String>> {
    let Some(path) = live.optional_file(FIGURES)? else { return Ok(None) };
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let figures: Value = serde_json::from_str(&text).with_context(|| path.display().to_string())?;
    let configurations = figures["configurations"].as_array().into_iter().flatten();
    let mut found =
        configurations.filter_map(|config| serde_json::from_value::<RunConfig>(config.clone()).ok());
    let Some(mut config) = found.find(|config| config.model.method == method) else { return Ok(None) };
    config.task_weights.retain(|kind, _| data.types().contains(kind));
    Ok(Some(toml::to_string(&config).expect("a configuration is TOML")))
}
