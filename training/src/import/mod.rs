//! Imports a shop's own files as a data folder: checks the three tables row by row, writes them in
//! canonical form next to their schema, draws a validation split if the shop names none, and adds what customers had before as a
//! feature if they come back often.
//!
//! [`atelier_files`] reads the files and checks every row. The folder is written completely or not at all.

mod history;
mod orders;

use std::{
    collections::{HashMap, HashSet},
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result};
use atelier_core::domain::{
    Article, ArticleId, Customer, CustomerId, Embedding, Outfit, OutfitSize, Schema, Split, Timestamp,
};
use atelier_files::{
    AcceptedOutfit, Checker, Dialect, FileError, Files, Format, OrderLine, Report, Rows, SCHEMA, Table,
    TableColumns, Writer,
};

pub use self::{
    history::why_unseen,
    orders::{Received, Unknown, WINDOW},
};

use crate::{
    data::repeats::{Groups, Repeated, find_repeated},
    files::NewFolder,
    number::real,
    random::{Table as Randomness, choose},
};

/// The files to import, and how.
#[derive(Debug)]
pub struct Import<'a> {
    pub files: &'a Files,
    pub dialect: &'a Dialect,
    /// Makes outfits from this file of orders, not from that of outfits unless `by_time` is given.
    pub orders: Option<&'a Path>,
    /// Splits by time.
    pub by_time: Option<ByTime>,
    pub schema: &'a Schema,
    /// Import the good rows even if others are bad.
    pub skip_bad: bool,
    /// The share of the outfits that becomes the validation split if no row names a split.
    pub validation: f64,
    /// Add the articles of a customer's training outfits as a feature, if customers come back often enough.
    pub history: bool,
}

/// How outfits are split by time, whatever their rows say.
#[derive(Debug)]
pub struct ByTime {
    /// When each row of outfits was made; those of no known time are older than all others.
    pub times: Vec<Option<Timestamp>>,
    /// The outfits of this last time are for validation; without it, those of as many weeks as the data needs.
    pub last: Option<Duration>,
    /// The least number of slots of these weeks.
    pub enough: usize,
    /// A file of accepted outfits, which are learned and not asked: the release suggested their articles, so it would look too good.
    pub accepted: Option<PathBuf>,
}

/// The times of outfits that were split by them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Period {
    pub first: Timestamp,
    pub last: Timestamp,
    /// Later outfits are for validation.
    pub validation: Timestamp,
    /// How many outfits are learned only because they were accepted.
    pub accepted: usize,
}

/// The result of an import.
#[derive(Debug)]
pub struct Imported {
    /// With bad rows and without `skip_bad`, or if orders make no outfit, nothing was written.
    pub report: Report,
    /// The number of outfits drawn for validation.
    pub drawn: usize,
    pub repeats: Repeats,
    /// How many outfits lost articles that had left the catalogue, and how many of them were left out because too few
    /// remained.
    pub shortened: u64,
    pub too_short: u64,
    /// How many outfits had more articles than the schema's, and kept a sample of them.
    pub sampled: u64,
    /// How many training outfits the customer of a validation outfit has on average, if they became a feature.
    pub outfits_per_customer: Option<f64>,
    /// The orders' part, if outfits were made from them.
    pub taken: Option<Received>,
    /// If outfits were split by time, and any has one.
    pub period: Option<Period>,
}

/// The outfits that repeat one another.
#[derive(Debug, Clone, Copy, Default)]
pub struct Repeats {
    pub all: Repeated,
    /// How many validation outfits repeat one to learn from, and how many they are.
    pub crossing: usize,
    pub asked: usize,
}

/// An outfit, and when it was made if that is known.
type Dated = (Option<Timestamp>, Outfit);

/// The source of outfits.
enum Source {
    Outfits(Rows<Outfit>),
    Orders(Rows<OrderLine>),
}

/// Fixed, so that each import draws the same outfits for validation.
const SEED: u64 = 1;

impl Import<'_> {
    /// Writes the data folder. Calls `tell` with the table, how much of its file is read, and its size.
    pub fn write(&self, out: &Path, tell: &mut dyn FnMut(&'static str, u64, u64)) -> Result<Imported> {
        let folder = NewFolder::new(out)?;
        let mut retired: HashSet<ArticleId> = self.files.read_retired()?.into_iter().collect();
        let mut checker = Checker::new([], []).with_retired(&retired);
        let schema_file = folder.path().join(SCHEMA);
        fs::write(&schema_file, self.schema.source())
            .with_context(|| format!("cannot write {}", schema_file.display()))?;
        let target = folder.path();
        let outfits = match self.orders.filter(|_| self.by_time.is_none()) {
            None => self.open(self.files.outfits.as_ref())?.map(Source::Outfits),
            Some(path) => atelier_files::read_as(path, self.schema, self.dialect).map(Source::Orders),
        };
        let articles = self.open::<Article>(self.files.articles.as_ref())?;
        let customers = self.open::<Customer>(self.files.customers.as_ref())?;
        let (articles, customers, outfits) = FileError::together(articles, customers, outfits)?;
        self.dialect.check_used().map_err(anyhow::Error::msg)?;
        let (mut lengths, mut refused) = (HashMap::new(), Vec::new());
        let mut known = orders::Known::default();
        let has_one_length = |article: Article| {
            known.add_article(&article);
            let found = check_lengths(&article, &mut lengths);
            found.inspect_err(|_| refused.push(article.id.clone())).map(|()| Some(article))
        };
        self.write_table(articles, target, &mut checker, tell, has_one_length)?;
        for id in &refused {
            checker.forget(id);
        }
        retired.retain(|id| !checker.has_read(id));
        let keep = |customer: Customer| {
            known.add_customer(&customer.id);
            Ok(Some(customer))
        };
        self.write_table(customers, target, &mut checker, tell, keep)?;
        let mut names_split = false;
        let (mut shortened, mut too_short, mut sampled) = (0, 0, 0);
        let mut numbers = 0..;
        let size = self.schema.outfit_size();
        let mut resized = |outfit: Outfit| {
            let seed = numbers.next().unwrap_or_default();
            let found = outfit.articles().len();
            size.check(found.min(size.most)).map_err(|error| error.to_string())?;
            let here = (0..).zip(outfit.articles()).filter(|(_, id)| !retired.contains(*id));
            let mut places: Vec<u32> = here.map(|(place, _)| place).collect();
            shortened += u64::from(places.len() < found);
            if places.len() > size.most {
                sampled += 1;
                places = choose(seed, Randomness::Sampled, &places, size.most);
            }
            let articles = places.iter().map(|&place| outfit.articles()[place as usize].clone()).collect();
            let rest = (places.len() >= size.least)
                .then(|| Outfit::new(outfit.customer, articles, outfit.split, outfit.features))
                .transpose()
                .map_err(|error| error.to_string())?;
            match &rest {
                Some(rest) => names_split |= rest.split.is_some(),
                None => too_short += 1,
            }
            Ok(rest)
        };
        let mut period = None;
        let taken = match (outfits, &self.by_time) {
            (Source::Outfits(outfits), None) => {
                self.write_table(outfits, target, &mut checker, tell, resized)?;
                None
            }
            (Source::Outfits(outfits), Some(by_time)) => {
                let checker = &mut checker;
                let (made, taken, times) =
                    self.read_by_time(outfits, by_time, &known, checker, tell, &mut resized)?;
                period = times;
                self.write_outfits(target, made.iter().map(|(_, outfit)| outfit))?;
                names_split = true;
                taken
            }
            (Source::Orders(lines), _) => {
                let (outfits, taken) =
                    orders::read(lines, &known, size, &mut checker, Some(self.validation), tell)?;
                self.write_outfits(target, outfits.iter().map(|(_, outfit)| outfit))?;
                names_split = true;
                Some(taken)
            }
        };
        let report = checker.report().clone();
        let (mut drawn, mut repeats, mut outfits_per_customer) = (0, Repeats::default(), None);
        let has_outfits = self.by_time.is_some() || taken.as_ref().is_none_or(|taken| taken.outfits > 0);
        if has_outfits && (report.bad == 0 || self.skip_bad) {
            (drawn, repeats) = self.split(target, names_split)?;
            outfits_per_customer = self.add_history(target, taken.is_some() || self.by_time.is_some())?;
            folder.finish()?;
        }
        Ok(Imported {
            report,
            drawn,
            repeats,
            shortened,
            too_short,
            sampled,
            outfits_per_customer,
            taken,
            period,
        })
    }

    /// Reads outfits in the order of time, with those of orders, and accepted ones from before the validation split.
    fn read_by_time(
        &self,
        outfits: Rows<Outfit>,
        by_time: &ByTime,
        known: &orders::Known,
        checker: &mut Checker,
        tell: &mut dyn FnMut(&'static str, u64, u64),
        resized: &mut impl FnMut(Outfit) -> Result<Option<Outfit>, String>,
    ) -> Result<(Vec<Dated>, Option<Received>, Option<Period>)> {
        let mut made = Vec::new();
        take_rows(outfits, checker, tell, &mut *resized, |(row, outfit)| {
            made.push((by_time.times.get(row).copied().flatten(), outfit));
            Ok(())
        })?;
        let taken = self.add_orders(&mut made, known, tell)?;
        made.sort_by_key(|(time, _)| *time);
        let last = by_time.last.unwrap_or_else(|| choose_last(&made, by_time.enough));
        let mut period = split_by_time(&mut made, last);
        drop_repeats(&mut made);
        if let (Some(path), Some(period)) = (&by_time.accepted, &mut period) {
            let mut seen: HashSet<_> = made.iter().map(|(_, outfit)| same_pieces(outfit)).collect();
            let mut only_accepted = Vec::new();
            let change = |AcceptedOutfit { outfit, time }| {
                // One that is too small for the schema stops nothing.
                Ok(resized(outfit).ok().flatten().map(|outfit| AcceptedOutfit { outfit, time }))
            };
            take_rows(self.open(Some(path))??, checker, tell, change, |(_, accepted)| {
                let AcceptedOutfit { mut outfit, time } = accepted;
                outfit.split = Some(Split::Train);
                if time <= period.validation && seen.insert(same_pieces(&outfit)) {
                    only_accepted.push((Some(time), outfit));
                }
                Ok(())
            })?;
            period.accepted = only_accepted.len();
            // Before all others: the latest training outfits are the development split, and the live release made these.
            only_accepted.append(&mut made);
            made = only_accepted;
        }
        Ok((made, taken, period))
    }

    /// Adds what customers had, or removes what an earlier import added.
    fn add_history(&self, folder: &Path, by_time: bool) -> Result<Option<f64>> {
        if self.history {
            return history::add(folder, self.schema, by_time);
        }
        history::remove(folder, self.schema)?;
        Ok(None)
    }

    /// Adds the outfits of orders to those with a time, if there are orders.
    fn add_orders(
        &self,
        made: &mut Vec<Dated>,
        known: &orders::Known,
        tell: &mut dyn FnMut(&'static str, u64, u64),
    ) -> Result<Option<Received>> {
        let Some(path) = self.orders else { return Ok(None) };
        let (lines, size) =
            (atelier_files::read_as(path, self.schema, self.dialect)?, self.schema.outfit_size());
        // A line that cannot be used stops nothing: it is one purchase less.
        let (bought, taken) = orders::read(lines, known, size, &mut Checker::new([], []), None, tell)?;
        made.extend(bought.into_iter().map(|(time, outfit)| (Some(time), outfit)));
        Ok(Some(taken))
    }

    fn write_outfits<'o>(&self, folder: &Path, mut outfits: impl Iterator<Item = &'o Outfit>) -> Result<()> {
        let mut writer = new_writer::<Outfit>(folder, self.schema)?;
        outfits.try_for_each(|outfit| writer.write(outfit))?;
        Ok(writer.finish()?)
    }

    /// Looks for repeats among the written outfits, and draws whole groups of them for validation if the shop gave no split.
    fn split(&self, folder: &Path, is_given: bool) -> Result<(usize, Repeats)> {
        let (mut numbers, mut outfits, mut splits) = (HashMap::new(), Vec::new(), Vec::new());
        for outfit in rows::<Outfit>(folder, self.schema)? {
            let outfit = outfit?;
            let mut number = |id: &ArticleId| {
                let next = u32::try_from(numbers.len()).expect("articles fit 32 bits");
                *numbers.entry(id.clone()).or_insert(next)
            };
            outfits.push(outfit.articles().iter().map(&mut number).collect::<Vec<u32>>());
            splits.push(outfit.split.unwrap_or(Split::Train));
        }
        let articles = || outfits.iter().map(Vec::as_slice);
        let groups = Groups::new(articles());
        let describe = |is_asked: &dyn Fn(u32) -> bool| {
            let of = |asked| (0..).zip(articles()).filter(move |(outfit, _)| is_asked(*outfit) == asked);
            let crossing = find_repeated(of(true), of(false).map(|(_, articles)| articles)).len();
            Repeats { all: groups.count(), crossing, asked: of(true).count() }
        };
        if is_given {
            return Ok((0, describe(&|outfit| splits[outfit as usize] == Split::Validation)));
        }
        let all_numbers: Vec<u32> = (0..).take(outfits.len()).collect();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share of a count is a count"
        )]
        let wanted = (self.validation * real(outfits.len())).ceil() as usize;
        let drawn = groups.choose(SEED, Randomness::Split, &all_numbers, wanted);
        let mut number = 0;
        rewrite::<Outfit>(folder, self.schema, self.schema, |outfit| {
            let is_drawn = drawn.binary_search(&number).is_ok();
            outfit.split = Some(if is_drawn { Split::Validation } else { Split::Train });
            number += 1;
        })?;
        Ok((drawn.len(), describe(&|outfit| drawn.binary_search(&outfit).is_ok())))
    }

    fn open<T: Table>(&self, path: Option<&PathBuf>) -> Result<Result<Rows<T>, FileError>> {
        // The number of its articles decides what is done with an outfit: too many are no reason to refuse it.
        let schema = self.schema.clone().with_outfit_size(OutfitSize { least: 0, most: usize::MAX });
        Ok(atelier_files::read_as(require::<T>(path)?, &schema, self.dialect))
    }

    /// Writes what `change` makes of the good rows of a table; it may leave one out, or refuse it.
    fn write_table<T: Table>(
        &self,
        rows: Rows<T>,
        folder: &Path,
        checker: &mut Checker,
        tell: &mut dyn FnMut(&'static str, u64, u64),
        change: impl FnMut(T) -> Result<Option<T>, String>,
    ) -> Result<()> {
        let mut writer = new_writer::<T>(folder, self.schema)?;
        take_rows(rows, checker, tell, change, |row| Ok(writer.write(&row.1)?))?;
        Ok(writer.finish()?)
    }
}

/// Checks that an article's embeddings have as many numbers as those before.
fn check_lengths(article: &Article, lengths: &mut HashMap<String, usize>) -> Result<(), String> {
    for (name, list) in article.embedding().into_iter().flat_map(Embedding::lists) {
        let (found, first) = (list.len(), *lengths.entry(name.to_owned()).or_insert(list.len()));
        if found != first {
            return Err(format!(
                "embedding{} has {found} numbers, and that of an earlier article {first}; all must have as many",
                Embedding::show_name(name)
            ));
        }
    }
    Ok(())
}

/// Passes on what `change` makes of the good rows of a table.
fn take_rows<T: Table>(
    rows: Rows<T>,
    checker: &mut Checker,
    tell: &mut dyn FnMut(&'static str, u64, u64),
    mut change: impl FnMut(T) -> Result<Option<T>, String>,
    mut put: impl FnMut((usize, T)) -> Result<()>,
) -> Result<()> {
    let mut rows = checker.check(rows);
    let mut number: usize = 0;
    while let Some(row) = rows.next() {
        match change(row?) {
            Ok(Some(row)) => put((number, row))?,
            Ok(None) => {}
            Err(reason) => rows.refuse(rows.line(), reason),
        }
        number += 1;
        if number.is_multiple_of(1024) {
            let (done, total) = rows.progress();
            tell(T::NAME, done, total);
        }
    }
    Ok(())
}

/// The last two weeks if they have enough slots, and at most a quarter of all; otherwise fewer or more weeks of which that is true.
fn choose_last(made: &[Dated], enough: usize) -> Duration {
    const WEEK: Duration = Duration::from_hours(7 * 24);
    let until = made.last().and_then(|(time, _)| *time);
    let all: usize = made.iter().map(|(_, outfit)| outfit.articles().len()).sum();
    let fits = |weeks: &u32| {
        let is_late = |time: &Option<Timestamp>| {
            time.zip(until).is_some_and(|(time, until)| time > until - WEEK * *weeks)
        };
        let late = made.iter().rev().take_while(|(time, _)| is_late(time));
        let slots: usize = late.map(|(_, outfit)| outfit.articles().len()).sum();
        enough <= slots && 4 * slots <= all
    };
    let weeks = [2, 1].into_iter().chain(3..=52).find(fits);
    WEEK * weeks.unwrap_or(2)
}

/// Puts the outfits of the last time into the validation split and the others into training. They are in the order of time.
fn split_by_time(made: &mut [Dated], last: Duration) -> Option<Period> {
    let first = made.iter().find_map(|(time, _)| *time);
    let until = made.last().and_then(|(time, _)| *time);
    let period = first.zip(until).map(|(first, until)| Period {
        first,
        last: until,
        validation: until - last,
        accepted: 0,
    });
    for (time, outfit) in made {
        let is_last = time.zip(period).is_some_and(|(time, period)| time > period.validation);
        outfit.split = Some(if is_last { Split::Validation } else { Split::Train });
    }
    period
}

/// The key two outfits share if one repeats the other: an outfit may be imported, saved, accepted and bought.
fn same_pieces(outfit: &Outfit) -> (CustomerId, Vec<ArticleId>) {
    let mut articles = outfit.articles().to_vec();
    articles.sort_unstable();
    (outfit.customer.clone(), articles)
}

/// Leaves out training outfits whose customer and articles are asked for in validation, and repeats. They are in the order of
/// time. Repeats of no known time stay, as their file has them.
fn drop_repeats(made: &mut Vec<Dated>) {
    let is_asked = |outfit: &Outfit| outfit.split == Some(Split::Validation);
    let asked: HashSet<_> =
        made.iter().filter(|(_, outfit)| is_asked(outfit)).map(|(_, outfit)| same_pieces(outfit)).collect();
    let mut seen = HashSet::new();
    made.retain(|(time, outfit)| {
        let key = same_pieces(outfit);
        (is_asked(outfit) || !asked.contains(&key)) && (seen.insert(key) || time.is_none())
    });
}

/// The rows of a table in a data folder.
fn rows<T: Table>(folder: &Path, schema: &Schema) -> Result<impl Iterator<Item = Result<T>>> {
    Ok(atelier_files::read::<T>(&table_path::<T>(folder), schema)?.map(|row| Ok(row?.value)))
}

/// Changes the rows of a table in a data folder.
fn rewrite<T: Table>(
    folder: &Path,
    from: &Schema,
    to: &Schema,
    mut change: impl FnMut(&mut T),
) -> Result<()> {
    let all = rows::<T>(folder, from)?;
    let mut writer = new_writer::<T>(folder, to)?;
    for row in all {
        let mut row = row?;
        change(&mut row);
        writer.write(&row)?;
    }
    Ok(writer.finish()?)
}

fn new_writer<T: Table>(folder: &Path, schema: &Schema) -> Result<Writer<T>> {
    Ok(Writer::create(&table_path::<T>(folder), Format::JsonLines, &TableColumns::new(schema))?)
}

/// The file of a table in a data folder.
fn table_path<T: Table>(folder: &Path) -> PathBuf {
    folder.join(format!("{}.{}", T::NAME, Format::JsonLines))
}

fn require<T: Table>(path: Option<&PathBuf>) -> Result<&PathBuf> {
    path.with_context(|| {
        format!(
            "there is no {table} file: a data folder needs all three tables; put {table}.jsonl, .csv or \
             .parquet next to the others, or name the file with --{table}",
            table = T::NAME
        )
    })
}

#[cfg(test)]
mod tests {
    use atelier_core::domain::Features;

    use super::*;

    #[test]
    fn the_last_weeks_have_enough_slots_and_leave_most_to_learn() {
        let dated = |days: &[i64]| -> Vec<Dated> {
            let outfit = |day: &i64| {
                let articles = ["a", "b"].map(|id| ArticleId::new(id).unwrap()).to_vec();
                let outfit =
                    Outfit::new(CustomerId::new("c").unwrap(), articles, None, Features::default()).unwrap();
                ((*day >= 0).then(|| Timestamp::from_millis(day * 86_400_000)), outfit)
            };
            days.iter().map(outfit).collect()
        };
        let even: Vec<i64> = (0..100).collect();
        let short: Vec<i64> = (0..12).flat_map(|day| [day; 5]).collect();
        let undated: Vec<i64> = [-1; 100].into_iter().chain(short.iter().copied()).collect();
        for (days, enough, weeks) in [
            (&even, 20, 2),
            (&even, 40, 3),
            (&even, 60, 2),
            (&short, 20, 2),
            (&undated, 20, 1),
            (&Vec::new(), 1, 2),
        ] {
            assert_eq!(choose_last(&dated(days), enough).as_secs() / 86_400 / 7, weeks, "{days:?} {enough}");
        }
    }

    #[test]
    fn what_was_saved_and_bought_is_not_learned_before_it_is_asked() {
        let outfit = |articles: [&str; 2]| {
            let articles = articles.map(|id| ArticleId::new(id).unwrap()).to_vec();
            Outfit::new(CustomerId::new("c").unwrap(), articles, None, Features::default()).unwrap()
        };
        let day = |day: i64| Some(Timestamp::from_millis(day * 86_400_000));
        let mut made = vec![
            (None, outfit(["b", "a"])),
            (None, outfit(["b", "c"])),
            (day(1), outfit(["a", "d"])),
            (day(2), outfit(["d", "a"])),
            (day(2), outfit(["c", "b"])),
            (day(20), outfit(["a", "b"])),
            (day(21), outfit(["b", "a"])),
        ];
        split_by_time(&mut made, Duration::from_hours(14 * 24));
        drop_repeats(&mut made);
        let left: Vec<_> = made.iter().map(|(time, outfit)| (*time, outfit.split)).collect();
        let (train, asked) = (Some(Split::Train), Some(Split::Validation));
        assert_eq!(left, [(None, train), (day(1), train), (day(20), asked)]);
    }
}
