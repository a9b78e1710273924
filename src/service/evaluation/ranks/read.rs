//! From the file to columns that hang together, or what is the matter with it.

use std::{collections::HashMap, fmt, ops::Range, path::Path};

use super::{Answers, Asked, CaseRow, MOST, Ranks};
use crate::{
    domain::{ArticleId, CustomerId, IdError, MAX_SLOTS, Method},
    service::evaluation::columns::Columns,
};

impl Ranks {
    /// # Errors
    /// What is the matter with the file, in words.
    pub(in crate::service::evaluation) fn read(path: &Path) -> Result<Self, String> {
        let columns = Columns::open(path)?;
        let table = Table::read(&columns)?;
        let methods = methods(&columns)?;
        let rows = table.outfit.len();
        let told = methods.iter().flat_map(|answers| [answers.ranks.len(), answers.log_probabilities.len()]);
        if rows == 0 || table.lengths().into_iter().chain(told).any(|length| length != rows) {
            return Err(format!("its columns have different lengths or no rows: outfit has {rows}"));
        }
        table.into_ranks(methods)
    }
}

/// The file's columns that say what was asked.
struct Table {
    outfit: Vec<u32>,
    slot: Vec<u32>,
    seen: Vec<bool>,
    customers: Named<CustomerId>,
    types: Named<String>,
    /// Whole outfits: their articles, joined.
    outfits: Named<String>,
    truths: Named<ArticleId>,
}

impl Table {
    fn read(columns: &Columns) -> Result<Self, String> {
        let plain = |text: &str| Ok::<_, IdError>(text.to_owned());
        Ok(Self {
            outfit: columns.numbers("outfit")?,
            slot: columns.numbers("slot")?,
            seen: columns.truths("seen")?,
            customers: Named::read(columns, "customer", |text| CustomerId::new(text))?,
            types: Named::read(columns, "type", plain)?,
            outfits: Named::read(columns, "articles", plain)?,
            truths: Named::read(columns, "article", |text| ArticleId::new(text))?,
        })
    }

    fn lengths(&self) -> [usize; 6] {
        let Self { outfit: _, slot, seen, customers, types, outfits, truths } = self;
        let named = [customers.rows.len(), types.rows.len(), outfits.rows.len(), truths.rows.len()];
        [slot.len(), seen.len(), named[0], named[1], named[2], named[3]]
    }

    fn into_ranks(mut self, methods: Vec<Answers>) -> Result<Ranks, String> {
        let kinds = self.sort_types()?;
        let mut ranks = Ranks {
            customers: Vec::new(),
            articles: Vec::new(),
            types: Vec::new(),
            outfits: Vec::new(),
            worn: Vec::new(),
            cases: Vec::with_capacity(self.outfit.len()),
            methods,
        };
        for (row, &kind) in kinds.iter().enumerate() {
            self.put(&mut ranks, row, kind).map_err(|reason| format!("row {}: {reason}", row + 1))?;
        }
        ranks.customers = self.customers.names.values;
        ranks.articles = self.truths.names.values;
        ranks.types = self.types.names.values;
        Ok(ranks)
    }

    /// Puts the types in order, so that no page needs to, and says of each row which is its.
    fn sort_types(&mut self) -> Result<Vec<u16>, String> {
        let types = &mut self.types.names.values;
        if types.len() > usize::from(u16::MAX) {
            return Err(format!("it has {} article types, expected fewer than {}", types.len(), u16::MAX));
        }
        let mut order: Vec<(String, usize)> = types.drain(..).zip(0..).collect();
        order.sort_unstable();
        let mut place_of = vec![0; order.len()];
        for (place, (_, was)) in (0..).zip(&order) {
            place_of[*was] = place;
        }
        types.extend(order.into_iter().map(|(name, _)| name));
        Ok(self.types.rows.iter().map(|&was| place_of[was as usize]).collect())
    }

    fn put(&mut self, ranks: &mut Ranks, row: usize, kind: u16) -> Result<(), String> {
        if ranks.outfits.last().is_none_or(|last| last.number != self.outfit[row]) {
            let worn = self.wear(ranks, row)?;
            let (number, customer, seen) = (self.outfit[row], self.customers.rows[row], self.seen[row]);
            ranks.outfits.push(Asked { number, customer, seen, worn });
        }
        let worn = &ranks.outfits.last().expect("one was put there; this is a bug").worn;
        let (slot, truth) = (self.slot[row], self.truths.rows[row]);
        let there = ranks.worn[worn.start as usize..].get(slot as usize);
        if there != Some(&truth) {
            let article = &self.truths.names.values[truth as usize];
            return Err(format!("article {article} is not in slot {slot} of its outfit"));
        }
        let slot = u8::try_from(slot).expect("an outfit has at most eight slots; this is a bug");
        ranks.cases.push(CaseRow { outfit: count(ranks.outfits.len()) - 1, kind, slot });
        Ok(())
    }

    fn wear(&mut self, ranks: &mut Ranks, row: usize) -> Result<Range<u32>, String> {
        let start = count(ranks.worn.len());
        for id in self.outfits.names.values[self.outfits.rows[row] as usize].split('|') {
            let place =
                self.truths.names.place(id, |id| ArticleId::new(id)).map_err(|error| error.to_string())?;
            ranks.worn.push(place);
        }
        let worn = start..count(ranks.worn.len());
        if worn.len() > MAX_SLOTS {
            return Err(format!("an outfit of {} articles, expected at most {MAX_SLOTS}", worn.len()));
        }
        Ok(worn)
    }
}

/// Places in a list of a file that is held in memory.
fn count(length: usize) -> u32 {
    u32::try_from(length).expect("a file of four billion cells is not held in memory; this is a bug")
}

/// A column of texts: the different ones, and which of them each row has.
struct Named<T> {
    names: Names<T>,
    rows: Vec<u32>,
}

impl<T> Named<T> {
    fn read<E: fmt::Display>(
        columns: &Columns,
        name: &str,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Result<Self, String> {
        let mut names = Names { values: Vec::new(), places: HashMap::new() };
        let mut rows = Vec::new();
        columns.texts(name, |text| {
            rows.push(names.place(text, &parse).map_err(|error| format!("holds {text:?}: {error}"))?);
            Ok(())
        })?;
        Ok(Self { names, rows })
    }
}

struct Names<T> {
    values: Vec<T>,
    places: HashMap<Box<str>, u32>,
}

impl<T> Names<T> {
    fn place<E>(&mut self, text: &str, parse: impl Fn(&str) -> Result<T, E>) -> Result<u32, E> {
        if let Some(place) = self.places.get(text) {
            return Ok(*place);
        }
        let place = count(self.values.len());
        self.values.push(parse(text)?);
        self.places.insert(text.into(), place);
        Ok(place)
    }
}

/// The methods of the file: those with a column of ranks. What else was measured has another name.
fn methods(columns: &Columns) -> Result<Vec<Answers>, String> {
    let names: Vec<&str> = columns.names().collect();
    let told = Method::ALL.into_iter().filter(|method| names.contains(&&*format!("{method}.rank")));
    let methods = told.map(|method| Answers::read(columns, method)).collect::<Result<Vec<_>, _>>()?;
    if methods.is_empty() {
        return Err("it has no column of a method's ranks, such as \"gsu.rank\"".into());
    }
    Ok(methods)
}

impl Answers {
    fn read(columns: &Columns, method: Method) -> Result<Self, String> {
        let ranks = columns.floats(&format!("{method}.rank"))?;
        let mut log_probabilities = columns.floats(&format!("{method}.cross_entropy"))?;
        for entropy in &mut log_probabilities {
            *entropy = -*entropy;
        }
        let mut hits = vec![0; MOST];
        for &rank in &ranks {
            // The first k that the rank is not above: half a rank is shared by two articles.
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "casts from floats saturate"
            )]
            let first = rank.ceil().max(1.0) as usize;
            if let Some(hits) = hits.get_mut(first - 1) {
                *hits += 1;
            }
        }
        let mut so_far = 0;
        for hits in &mut hits {
            so_far += *hits;
            *hits = so_far;
        }
        Ok(Self { method, ranks, log_probabilities, hits })
    }
}
