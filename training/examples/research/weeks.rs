//! Simulates weeks of a shop: what `atelier export` would write, and how often customers would accept a release's
//! suggestions.
//!
//! The world says what customers want in each week. An order is an outfit that its customer wants, of which some pieces come back.
//! A suggestion is accepted if the piece that the customer wants in a slot is among the five of its type that the release
//! suggests, of those that are sold in this week. Suggestions do not change what is wanted.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::atomic::AtomicBool,
    time::{Duration, Instant, SystemTime},
};

use anyhow::{Context, Result};
use atelier_core::{
    domain::{Article, ArticleId, Customer, Method, Outfit, Schema, Split, Timestamp},
    drawing::chart::{LineChart, Scale, Series, line_chart},
};
use atelier_engine::{onnx_runtime::OnnxRuntime, release::Release};
use atelier_files::{
    Dialect, EventRow, Files, Format, OrderLine, SCHEMA, Table, TableColumns, Writer, write_retired,
};
use atelier_training::{
    baselines::beside_methods,
    data::Data,
    export::Storage,
    fit::{Overrides, RunConfig, RunFolder, Watch, draw_alone, fit},
    import::Import,
    number::real,
    random::{Stream, Table as Randomness},
    refresh::{Refresh, acceptance},
    release::Plan,
    world::{self, World},
};
use serde::{Deserialize, Serialize};

const WEEK: Duration = Duration::from_hours(7 * 24);
/// 2026-08-31, a Monday: the beginning of week 0.
const BEGIN: Timestamp = Timestamp::from_millis(1_788_134_400_000);
/// Of each refresh.
const EPOCHS: u32 = 20;
/// The share of bought pieces that come back.
const RETURNED: f64 = 0.1;
/// Price of each piece.
const VALUE: f64 = 50.0;

/// Size of a simulation.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Size {
    pub(crate) seed: u64,
    pub(crate) articles: usize,
    pub(crate) customers: usize,
    /// Stylists' outfits of week 0, from which the first release learns.
    pub(crate) outfits: usize,
    /// Orders in each week.
    pub(crate) orders: usize,
    /// Outfits in each week whose pieces are asked about.
    pub(crate) asked: usize,
    pub(crate) weeks: usize,
    /// How much fashions move in a week: a standard deviation of logarithmic weights.
    pub(crate) movement: f64,
}

/// A shop whose tastes and catalogue move.
#[derive(Debug)]
pub(crate) struct Shop {
    world: World,
    schema: Schema,
    size: Size,
}

impl Shop {
    /// # Errors
    /// If it is too small for a world.
    pub(crate) fn new(size: Size) -> Result<Self> {
        let Size { seed, articles, customers, .. } = size;
        let plan = world::Plan { seed, articles, customers, outfits: 1, validation: 0, new: 0 };
        Ok(Self { world: World::new(plan)?, schema: Schema::paper_schema(), size })
    }

    /// The beginning of a week.
    pub(crate) fn begin(week: usize) -> Timestamp {
        (0..week).fold(BEGIN, |time, _| time + WEEK)
    }

    /// Writes the articles that are sold in a week, the customers and the schema to a new folder; the ids of other articles, too.
    ///
    /// # Errors
    /// If the disk refuses.
    pub(crate) fn write(&self, folder: &Path, week: usize) -> Result<()> {
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        fs::write(folder.join(SCHEMA), self.schema.source()).context("cannot write the schema")?;
        let articles = self.world.articles().enumerate();
        let (sold, others) =
            articles.partition::<Vec<(usize, Article)>, _>(|(number, _)| self.world.is_sold(*number, week));
        self.write_table(folder, sold.into_iter().map(|(_, article)| article))?;
        self.write_table::<Customer>(folder, self.world.customers())?;
        Ok(write_retired(folder, &others.into_iter().map(|(_, article)| article.id).collect())?)
    }

    /// Writes a table in the shop's schema.
    ///
    /// # Errors
    /// If the disk refuses.
    pub(crate) fn write_table<T: Table>(
        &self,
        folder: &Path,
        rows: impl IntoIterator<Item = T>,
    ) -> Result<()> {
        let path = folder.join(format!("{}.{}", T::NAME, Format::JsonLines));
        let mut writer = Writer::create(&path, Format::JsonLines, &TableColumns::new(&self.schema))?;
        rows.into_iter().try_for_each(|row| writer.write(&row))?;
        Ok(writer.finish()?)
    }

    /// Stylists' outfits before the first week.
    pub(crate) fn first_outfits(&self) -> Vec<Outfit> {
        self.outfits(0, 0..self.size.outfits, None)
    }

    /// The outfits that are asked about in a week: other ones than those of its orders.
    pub(crate) fn asked(&self, week: usize) -> Vec<Outfit> {
        let from = self.size.orders;
        self.outfits(week, from..from + self.size.asked, Some(Split::Validation))
    }

    fn outfits(&self, week: usize, numbers: std::ops::Range<usize>, split: Option<Split>) -> Vec<Outfit> {
        let week = self.world.week(week, self.size.movement);
        let outfit = |number: usize| {
            let mut outfit = world::to_outfit(&self.world.outfit_in_week(&week, number));
            outfit.split = split;
            outfit
        };
        numbers.map(outfit).collect()
    }

    /// The customers' orders of a week.
    pub(crate) fn orders(&self, week: usize) -> Vec<OrderLine> {
        let mut stream = Stream::new(self.size.seed, Randomness::InWeek, usize::MAX - week);
        let mut lines = Vec::new();
        for (number, outfit) in self.outfits(week, 0..self.size.orders, None).into_iter().enumerate() {
            let time = Self::begin(week) + WEEK.mul_f64(stream.uniform());
            lines.extend(outfit.articles().iter().map(|article| OrderLine {
                order: format!("{week}-{number}"),
                customer: Some(outfit.customer.clone()),
                article: Some(article.as_str().to_owned()),
                variant: None,
                time,
                returned: stream.chance(RETURNED),
            }));
        }
        lines
    }

    /// The same as events: purchases, and returns. The week `until` begins at `now`.
    pub(crate) fn events(&self, week: usize, until: usize, now: Timestamp) -> Vec<EventRow> {
        let shift = now.millis() - Self::begin(until).millis();
        let event = |line: &OrderLine, number: usize, kind: &str| EventRow {
            id: format!("{}/{number}/{kind}", line.order),
            kind: kind.to_owned(),
            customer: line.customer.clone(),
            visitor: None,
            consent: false,
            article: ArticleId::new(line.article.as_deref().unwrap_or_default())
                .expect("the world's articles have ids"),
            order: Some(line.order.clone()),
            value: Some(VALUE),
            time: Some(Timestamp::from_millis(line.time.millis() + shift)),
            is_date: false,
            ticket: None,
        };
        let mut rows = Vec::new();
        for (number, line) in self.orders(week).iter().enumerate() {
            rows.push(event(line, number, "bought"));
            if line.returned {
                rows.push(event(line, number, "returned"));
            }
        }
        rows
    }

    /// Writes the files of `training/research/loop.py` to a new folder: `first`, from which the first release learns, and each
    /// week's catalogue, questions, and, in weeks before `until`, events.
    ///
    /// # Errors
    /// If the disk refuses.
    pub(crate) fn write_weeks(&self, folder: &Path, until: usize, now: Timestamp) -> Result<()> {
        let first = folder.join("first");
        self.write(&first, 0)?;
        self.write_table(&first, self.first_outfits())?;
        for week in 1..=self.size.weeks {
            let folder = folder.join(format!("week-{week}"));
            self.write(&folder, week)?;
            self.write_table(&folder, self.asked(week))?;
            if week < until {
                self.write_table(&folder, self.events(week, until, now))?;
            }
        }
        Ok(())
    }
}

/// Results of each week.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Simulated {
    pub(crate) size: Size,
    pub(crate) minutes: f64,
    pub(crate) weeks: Vec<WeekFigures>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WeekFigures {
    pub(crate) week: usize,
    pub(crate) slots: usize,
    /// Of the slots, how many have an article that the first release did not know.
    pub(crate) new: usize,
    /// The share of slots whose article is among the five suggested ones: of the first release, and of the one that was live.
    pub(crate) without: f64,
    pub(crate) refreshed: f64,
    pub(crate) live: String,
    /// Why the refresh at the end of the week proposed nothing.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) refused: Option<String>,
}

/// Simulates a shop with weekly refreshes and without, in an empty folder. `settings` are the first release's.
#[derive(Debug)]
pub(crate) struct Simulation<'a> {
    pub(crate) size: Size,
    pub(crate) folder: &'a Path,
    /// For each refresh.
    pub(crate) limit: Duration,
    pub(crate) settings: Overrides<'a>,
}

impl Simulation<'_> {
    /// # Errors
    /// If the size is too small, or the disk refuses.
    pub(crate) fn run(
        &self,
        runtime: &OnnxRuntime,
        interrupt: &AtomicBool,
        tell: &mut dyn FnMut(&str),
    ) -> Result<Simulated> {
        let shop = Shop::new(self.size)?;
        let first = self.first_release(runtime, &shop, interrupt)?;
        let opened = Release::open(&first)?;
        let mut live = first;
        let mut weeks =
            Simulated { size: self.size, minutes: self.limit.as_secs_f64() / 60.0, weeks: Vec::new() };
        let mut lines = Vec::new();
        for week in 1..=self.size.weeks {
            let asked = self.folder.join(format!("asked-{week}"));
            shop.write(&asked, week)?;
            shop.write_table(&asked, shop.asked(week))?;
            let data = Data::load(&asked)?;
            let (without, slots) = acceptance(runtime, &opened, &asked)?;
            let (refreshed, _) = acceptance(runtime, &Release::open(&live)?, &asked)?;
            let is_new = |article: &&u32| {
                let id = data.articles()[**article as usize].id.as_str();
                opened.vocabulary().index_of(id).is_none()
            };
            let of_outfits = data.validation().iter().flat_map(|&outfit| data.outfits().articles(outfit));
            let new = of_outfits.filter(is_new).count();
            lines.extend(shop.orders(week));
            let export = self.folder.join(format!("export-{week}"));
            shop.write(&export, week)?;
            shop.write_table(&export, shop.first_outfits())?;
            shop.write_table(&export, lines.iter().cloned())?;
            let out = self.folder.join("models").join(format!("week-{week:02}"));
            let created = Shop::begin(week + 1);
            let refresh = Refresh {
                from: &export,
                live: &live,
                out: &out,
                last: Some(WEEK),
                least_known: 0.0,
                limit: self.limit,
                epochs: EPOCHS,
                seed: self.size.seed,
                storage: Storage::Float32,
                command: "research weeks".to_owned(),
                created: system_time(created),
            };
            let card = refresh.make(runtime, interrupt, &mut |_| {})?;
            let name = live.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if card.is_candidate() {
                live = out;
            }
            tell(&format!(
                "week {week}: {:.2} % accepted without, {:.2} % with refresh ({name}); {}",
                100.0 * without,
                100.0 * refreshed,
                card.refused.as_deref().unwrap_or("a candidate")
            ));
            weeks.weeks.push(WeekFigures {
                week,
                slots,
                new,
                without,
                refreshed,
                live: name,
                refused: card.refused,
            });
            for folder in [asked, export] {
                fs::remove_dir_all(&folder).with_context(|| folder.display().to_string())?;
            }
        }
        Ok(weeks)
    }

    fn first_release(&self, runtime: &OnnxRuntime, shop: &Shop, interrupt: &AtomicBool) -> Result<PathBuf> {
        let theirs = self.folder.join("first");
        shop.write(&theirs, 0)?;
        shop.write_table(&theirs, shop.first_outfits())?;
        let folder = self.folder.join("data");
        let import = Import {
            files: &Files::in_folder(&theirs)?,
            dialect: &Dialect::default(),
            orders: None,
            by_time: None,
            schema: &shop.schema,
            skip_bad: false,
            validation: 0.05,
            history: true,
        };
        import.write(&folder, &mut |_, _, _| {})?;
        let data = Data::load(&folder)?;
        let config = RunConfig::new(Method::Match, &data, &folder, self.settings, |_| {})?;
        let run = RunFolder::new(self.folder.join("run"));
        let start = Instant::now();
        let clock = || start.elapsed().as_secs_f64();
        fit(
            &data,
            &config,
            &run,
            false,
            &mut Watch { clock: &clock, stop: interrupt, on_event: &mut |_| {} },
        )?;
        let runs = [run];
        let plan = Plan {
            name: "week-00",
            data: &data,
            folder: &folder,
            runs: &runs,
            served: &[],
            baselines: beside_methods(&data, data.validation()),
            storage: Storage::Float32,
            default_method: None,
            customers: 0,
            command: "research weeks".to_owned(),
            beside: Vec::new(),
            created: system_time(Shop::begin(1)),
        };
        Ok(plan.make(runtime, &self.folder.join("models"), &|_, _| {})?.0)
    }
}

fn system_time(time: Timestamp) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(u64::try_from(time.millis()).unwrap_or_default())
}

impl Simulated {
    /// Acceptance by week as a picture.
    pub(crate) fn draw(&self) -> String {
        let series = |name, kind, value: fn(&WeekFigures) -> f64| Series {
            name,
            kind,
            points: self.weeks.iter().map(|week| (real(week.week), 100.0 * value(week))).collect(),
            marked: Vec::new(),
            band: Vec::new(),
        };
        let series = vec![
            series("refreshed", 0, |week| week.refreshed),
            series("first release", 1, |week| week.without),
        ];
        let values = series.iter().flat_map(|series| &series.points).map(|&(_, value)| value);
        let y = Scale::around(values);
        let chart = line_chart(&LineChart {
            title: "Received suggestions by week",
            about: "A slot is accepted if its article is among the five suggested ones of its type.",
            x: ("week", Scale::Linear { from: 1.0, to: real(self.size.weeks.max(2)) }, |week| {
                if week.fract() == 0.0 { week.to_string() } else { String::new() }
            }),
            y: ("accepted (%)", y, |value| ((value * 1e3).round() / 1e3).to_string()),
            series,
        });
        draw_alone("Received suggestions by week, with weekly refresh and without", &[chart])
    }
}
