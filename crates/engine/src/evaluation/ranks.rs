//! `ranks.parquet`: every method's answer for every validation slot.
//!
//! Kept as columns of numbers: at full scale there are 84,000 rows and nine methods.

use std::{
    collections::{BTreeSet, HashMap},
    fmt,
    ops::Range,
    path::Path,
};

use atelier_core::domain::{ArticleId, CustomerId, IdError, MAX_SLOTS, Method};

use super::columns::ParquetColumns;

/// The largest k of recall@k.
pub const MAX_RANK: usize = 250;

/// All answers. A case is one masked slot of one validation outfit; its row identifies it.
#[derive(Default)]
pub struct Ranks {
    customers: Vec<CustomerId>,
    articles: Vec<ArticleId>,
    types: Vec<String>,
    outfits: Vec<OutfitRow>,
    /// The outfits' articles, concatenated.
    outfit_articles: Vec<u32>,
    cases: Vec<CaseRow>,
    methods: Vec<Answers>,
}

#[derive(Debug)]
struct OutfitRow {
    /// Its row in the file of outfits.
    number: u32,
    customer: u32,
    seen: bool,
    /// Its range of `outfit_articles`.
    articles: Range<u32>,
}

#[derive(Debug, Clone, Copy)]
struct CaseRow {
    outfit: u32,
    kind: u16,
    slot: u8,
}

/// One method's answers, in the order of the cases.
pub(super) struct Answers {
    method: Method,
    /// The true article's rank, starting at 1; equally likely articles share their mean rank.
    pub(super) ranks: Vec<f32>,
    /// The natural logarithm of the true article's probability.
    pub(super) log_probabilities: Vec<f32>,
    /// The number of cases with the true article among the first k, for k starting at 1.
    hits: Vec<u32>,
}

/// A case with its ids.
#[derive(Debug, Clone, Copy)]
pub struct Case<'a> {
    /// The outfit's row in the file of outfits, and its masked slot.
    pub outfit: u32,
    pub slot: usize,
    pub customer: &'a CustomerId,
    /// Whether the customer was seen in training.
    pub seen: bool,
    /// The true article's type.
    pub kind: &'a str,
    ranks: &'a Ranks,
    outfit_articles: &'a [u32],
}

impl<'a> Case<'a> {
    /// The outfit's articles, with the true article in its slot.
    pub fn articles(&self) -> impl ExactSizeIterator<Item = &'a ArticleId> + use<'a> {
        let ranks = self.ranks;
        self.outfit_articles.iter().map(|&article| &ranks.articles[article as usize])
    }

    pub fn truth(&self) -> &'a ArticleId {
        &self.ranks.articles[self.outfit_articles[self.slot] as usize]
    }
}

impl Ranks {
    /// The number of cases.
    pub fn len(&self) -> usize {
        self.cases.len()
    }

    pub fn is_empty(&self) -> bool {
        self.cases.is_empty()
    }

    /// In the methods' own order.
    pub fn methods(&self) -> impl Iterator<Item = Method> {
        self.methods.iter().map(|answers| answers.method)
    }

    /// The true articles' types, sorted.
    pub fn types(&self) -> &[String] {
        &self.types
    }

    pub fn customers(&self) -> &[CustomerId] {
        &self.customers
    }

    /// The share of cases with the true article among the method's first `k`, 1 to [`MAX_RANK`].
    pub fn recall(&self, method: Method, k: usize) -> Option<f64> {
        let hits = *self.answers_of(method)?.hits.get(k.checked_sub(1)?)?;
        #[expect(clippy::cast_precision_loss, reason = "rows are fewer than 2^52")]
        let cases = self.len() as f64;
        Some(f64::from(hits) / cases)
    }

    pub fn case(&self, row: usize) -> Case<'_> {
        let CaseRow { outfit, kind, slot } = self.cases[row];
        let OutfitRow { number, customer, seen, articles } = &self.outfits[outfit as usize];
        Case {
            outfit: *number,
            slot: usize::from(slot),
            customer: &self.customers[*customer as usize],
            seen: *seen,
            kind: &self.types[usize::from(kind)],
            ranks: self,
            outfit_articles: &self.outfit_articles[articles.start as usize..articles.end as usize],
        }
    }

    pub(super) fn answers_of(&self, method: Method) -> Option<&Answers> {
        self.methods.iter().find(|answers| answers.method == method)
    }

    /// The index of a case's outfit among all outfits.
    pub(super) fn outfit_place(&self, row: usize) -> u32 {
        self.cases[row].outfit
    }

    /// The index of the true article's type in [`Ranks::types`].
    pub(super) fn type_place(&self, row: usize) -> usize {
        usize::from(self.cases[row].kind)
    }

    /// The index of a case's customer in [`Ranks::customers`].
    pub fn customer_place(&self, row: usize) -> usize {
        self.outfits[self.cases[row].outfit as usize].customer as usize
    }
}

impl fmt::Debug for Ranks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ranks").field("cases", &self.cases.len()).finish_non_exhaustive()
    }
}

impl Ranks {
    pub(super) fn read(path: &Path) -> Result<Self, String> {
        let columns = ParquetColumns::open(path)?;
        let table = Table::read(&columns)?;
        let methods = methods(&columns)?;
        if table.outfit.is_empty() {
            return Err("there are no rows".into());
        }
        table.into_ranks(methods)
    }
}

/// The file's columns that describe the cases.
struct Table {
    outfit: Vec<u32>,
    slot: Vec<u32>,
    seen: Vec<bool>,
    customers: Named<CustomerId>,
    types: Named<String>,
    /// The outfits' articles, joined.
    outfits: Named<String>,
    truths: Named<ArticleId>,
}

impl Table {
    fn read(columns: &ParquetColumns) -> Result<Self, String> {
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

    fn into_ranks(mut self, methods: Vec<Answers>) -> Result<Ranks, String> {
        let kinds = self.sort_types()?;
        let cases = Vec::with_capacity(self.outfit.len());
        let mut ranks = Ranks { cases, methods, ..Ranks::default() };
        for (row, &kind) in kinds.iter().enumerate() {
            self.add_case(&mut ranks, row, kind).map_err(|reason| format!("row {}: {reason}", row + 1))?;
        }
        ranks.customers = self.customers.values;
        ranks.articles = self.truths.values;
        ranks.types = self.types.values;
        Ok(ranks)
    }

    /// Sorts the types, so pages need not, and returns each row's type.
    fn sort_types(&mut self) -> Result<Vec<u16>, String> {
        let types = &mut self.types.values;
        if types.len() > usize::from(u16::MAX) {
            return Err(format!("there are {} article types, expected fewer than {}", types.len(), u16::MAX));
        }
        let mut order: Vec<(String, usize)> = types.drain(..).zip(0..).collect();
        order.sort_unstable();
        let mut position_of = vec![0; order.len()];
        for (position, (_, was)) in (0..).zip(&order) {
            position_of[*was] = position;
        }
        types.extend(order.into_iter().map(|(name, _)| name));
        Ok(self.types.rows.iter().map(|&was| position_of[was as usize]).collect())
    }

    fn add_case(&mut self, ranks: &mut Ranks, row: usize, kind: u16) -> Result<(), String> {
        if ranks.outfits.last().is_none_or(|last| last.number != self.outfit[row]) {
            let articles = self.add_articles(ranks, row)?;
            let (number, customer, seen) = (self.outfit[row], self.customers.rows[row], self.seen[row]);
            ranks.outfits.push(OutfitRow { number, customer, seen, articles });
        }
        let articles = &ranks.outfits.last().expect("there is an outfit").articles;
        let (slot, truth) = (self.slot[row], self.truths.rows[row]);
        let found = ranks.outfit_articles[articles.start as usize..].get(slot as usize);
        if found != Some(&truth) {
            let article = &self.truths.values[truth as usize];
            return Err(format!("article {article} is not in slot {slot} of its outfit"));
        }
        let slot = u8::try_from(slot).expect("an outfit has at most twelve slots");
        ranks.cases.push(CaseRow { outfit: count(ranks.outfits.len()) - 1, kind, slot });
        Ok(())
    }

    fn add_articles(&mut self, ranks: &mut Ranks, row: usize) -> Result<Range<u32>, String> {
        let start = count(ranks.outfit_articles.len());
        for id in self.outfits.values[self.outfits.rows[row] as usize].split('|') {
            let position =
                self.truths.position(id, |id| ArticleId::new(id)).map_err(|error| error.to_string())?;
            ranks.outfit_articles.push(position);
        }
        let articles = start..count(ranks.outfit_articles.len());
        if articles.len() > MAX_SLOTS {
            return Err(format!("an outfit of {} articles, expected at most {MAX_SLOTS}", articles.len()));
        }
        Ok(articles)
    }
}

fn count(length: usize) -> u32 {
    u32::try_from(length).expect("four billion cells do not fit in memory")
}

/// A column of texts: the distinct texts with their indices, and each row's index.
struct Named<T> {
    values: Vec<T>,
    positions: HashMap<Box<str>, u32>,
    rows: Vec<u32>,
}

impl<T> Named<T> {
    fn read<E: fmt::Display>(
        columns: &ParquetColumns,
        name: &str,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Result<Self, String> {
        let mut named = Self { values: Vec::new(), positions: HashMap::new(), rows: Vec::new() };
        columns.texts(name, |text| {
            let position =
                named.position(text, &parse).map_err(|error| format!("holds {text:?}: {error}"))?;
            named.rows.push(position);
            Ok(())
        })?;
        Ok(named)
    }

    fn position<E>(&mut self, text: &str, parse: impl Fn(&str) -> Result<T, E>) -> Result<u32, E> {
        if let Some(position) = self.positions.get(text) {
            return Ok(*position);
        }
        let position = count(self.values.len());
        self.values.push(parse(text)?);
        self.positions.insert(text.into(), position);
        Ok(position)
    }
}

/// The methods with a column of ranks.
fn methods(columns: &ParquetColumns) -> Result<Vec<Answers>, String> {
    let of_ranks = columns.names().filter_map(|name| name.strip_suffix(".rank"));
    let evaluated: BTreeSet<Method> = of_ranks.filter_map(|name| name.parse().ok()).collect();
    let methods =
        evaluated.into_iter().map(|method| Answers::read(columns, method)).collect::<Result<Vec<_>, _>>()?;
    if methods.is_empty() {
        return Err("there is no column of a method's ranks, such as \"gsu.rank\"".into());
    }
    Ok(methods)
}

impl Answers {
    fn read(columns: &ParquetColumns, method: Method) -> Result<Self, String> {
        let ranks = columns.floats(&format!("{method}.rank"))?;
        let mut log_probabilities = columns.floats(&format!("{method}.cross_entropy"))?;
        for entropy in &mut log_probabilities {
            *entropy = -*entropy;
        }
        let mut hits = vec![0; MAX_RANK];
        for &rank in &ranks {
            // The smallest k that includes the rank: two articles may share half a rank.
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
