//! Outfits from orders: what a customer kept of an order, or of several within some days.
//!
//! An order of too few articles is joined with the customer's next or previous one within [`WINDOW`]. The latest outfits are for
//! validation, so that a model is tested on a time that it has not seen.

use std::{
    collections::{BTreeMap, HashMap, HashSet, hash_map::Entry},
    time::{Duration, SystemTime},
};

use anyhow::{Result, bail};
use atelier_core::domain::{Article, ArticleId, CustomerId, Outfit, OutfitSize, Split, Timestamp, fold_for};
use atelier_files::{Checker, OrderLine, Rows, Table};

use crate::{
    number::real,
    random::{Table as Randomness, choose},
};

/// Orders of a customer are joined within seven days.
pub const WINDOW: Duration = Duration::from_hours(7 * 24);
const SEED: u64 = 1;

/// Lines of orders that were taken or left out.
#[derive(Debug, Clone, Default)]
pub struct Received {
    pub lines: u64,
    pub orders: usize,
    pub outfits: usize,
    /// Those of several orders.
    pub joined: usize,
    /// Those with more articles than an outfit has, of which some were drawn.
    pub sampled: usize,
    pub validation: usize,
    /// Lines.
    pub returned: u64,
    pub of_guests: u64,
    pub unknown_customers: Unknown,
    pub unknown_articles: Unknown,
    /// Orders of which the customer kept something, but too few articles, also with others within the window.
    pub too_few: usize,
    /// Outfits that the customer had bought before.
    pub repeated: usize,
    /// Outfits of which more than half of the articles are of one type, and the type of most of them.
    pub refills: usize,
    pub refilled: String,
}

/// Lines that name something unknown.
#[derive(Debug, Clone, Default)]
pub struct Unknown {
    pub lines: u64,
    pub first: String,
}

impl Unknown {
    fn add(&mut self, id: &str) {
        if self.lines == 0 {
            id.clone_into(&mut self.first);
        }
        self.lines += 1;
    }
}

/// The articles and customers that orders may name.
#[derive(Debug, Default)]
pub(super) struct Known {
    articles: Vec<(ArticleId, String)>,
    /// By the id of an article or of its variant.
    numbers: HashMap<String, u32>,
    customers: HashSet<CustomerId>,
}

impl Known {
    pub(super) fn add_article(&mut self, article: &Article) {
        let number = u32::try_from(self.articles.len()).expect("articles fit 32 bits");
        self.numbers.insert(article.id.as_str().to_owned(), number);
        for id in article.variant_ids() {
            self.numbers.entry(id.into_owned()).or_insert(number);
        }
        self.articles.push((article.id.clone(), fold_for("type", article.kind())));
    }

    pub(super) fn add_customer(&mut self, customer: &CustomerId) {
        self.customers.insert(customer.clone());
    }
}

/// Articles a customer kept of one order, or of several.
#[derive(Debug, Clone)]
struct Basket {
    customer: CustomerId,
    first: Timestamp,
    last: Timestamp,
    orders: usize,
    articles: Vec<u32>,
}

impl Basket {
    fn is_too_small(&self, size: OutfitSize) -> bool {
        self.articles.len() < size.least
    }

    fn add(&mut self, articles: &[u32]) {
        for article in articles {
            if !self.articles.contains(article) {
                self.articles.push(*article);
            }
        }
    }
}

/// Reads orders as outfits, in the order of time, each with the time of its last order. `share` of them are for validation.
pub(super) fn read(
    lines: Rows<OrderLine>,
    known: &Known,
    size: OutfitSize,
    checker: &mut Checker,
    share: Option<f64>,
    tell: &mut dyn FnMut(&'static str, u64, u64),
) -> Result<(Vec<(Timestamp, Outfit)>, Received)> {
    let mut taken = Received::default();
    let baskets = read_baskets(lines, known, checker, &mut taken, tell)?;
    let mut sets = join(baskets, size, &mut taken);
    let mut before = HashSet::new();
    sets.retain(|set| {
        let mut articles = set.articles.clone();
        articles.sort_unstable();
        before.insert((set.customer.clone(), articles))
    });
    taken.repeated = taken.outfits - sets.len();
    taken.outfits = sets.len();
    taken.joined = sets.iter().filter(|set| set.orders > 1).count();
    count_refills(&sets, known, &mut taken);
    let begins = share.map(|share| validation_begins(&sets, share)).transpose()?;
    let outfits = (0..).zip(sets).map(|(number, mut set)| {
        if set.articles.len() > size.most {
            taken.sampled += 1;
            set.articles = choose(SEED + number, Randomness::Sampled, &set.articles, size.most);
        }
        let split =
            if begins.is_some_and(|begins| set.last >= begins) { Split::Validation } else { Split::Train };
        taken.validation += usize::from(split == Split::Validation);
        let articles =
            set.articles.iter().map(|&article| known.articles[article as usize].0.clone()).collect();
        let outfit =
            Outfit::new(set.customer, articles, Some(split), atelier_core::domain::Features::default())
                .expect("the articles are different, neither too few nor too many");
        (set.last, outfit)
    });
    let outfits = outfits.collect();
    Ok((outfits, taken))
}

/// The articles customers kept of each order, in the order of the file.
fn read_baskets(
    lines: Rows<OrderLine>,
    known: &Known,
    checker: &mut Checker,
    taken: &mut Received,
    tell: &mut dyn FnMut(&'static str, u64, u64),
) -> Result<Vec<Basket>> {
    let mut baskets: Vec<Basket> = Vec::new();
    let mut numbers: HashMap<String, usize> = HashMap::new();
    let mut orders = HashSet::new();
    // Clocks differ.
    let latest = Timestamp::from(SystemTime::now()) + Duration::from_hours(24);
    let mut rows = checker.check(lines);
    while let Some(line) = rows.next() {
        let OrderLine { order, customer, article, variant, time, returned } = line?;
        taken.lines += 1;
        if taken.lines.is_multiple_of(1024) {
            let (done, total) = rows.progress();
            tell(OrderLine::NAME, done, total);
        }
        if time > latest {
            rows.refuse(rows.line(), format!("the time {time} is in the future"));
            continue;
        }
        orders.insert(order.clone());
        let ids = [&article, &variant];
        let mut named = ids.into_iter().flatten();
        let number = named.clone().find_map(|id| known.numbers.get(id));
        let Some(customer) = customer else {
            taken.of_guests += 1;
            continue;
        };
        if returned {
            taken.returned += 1;
        } else if !known.customers.contains(&customer) {
            taken.unknown_customers.add(customer.as_str());
        } else if let Some(&number) = number {
            let basket = match numbers.entry(order) {
                Entry::Occupied(entry) => &mut baskets[*entry.get()],
                Entry::Vacant(entry) => {
                    entry.insert(baskets.len());
                    let customer = customer.clone();
                    baskets.push(Basket {
                        customer,
                        first: time,
                        last: time,
                        orders: 1,
                        articles: Vec::new(),
                    });
                    baskets.last_mut().expect("one was added")
                }
            };
            if basket.customer != customer {
                let reason = format!(
                    "the order is of customer {:?} in an earlier line, of {customer:?} here",
                    basket.customer
                );
                rows.refuse(rows.line(), reason);
                continue;
            }
            (basket.first, basket.last) = (basket.first.min(time), basket.last.max(time));
            basket.add(&[number]);
        } else {
            taken.unknown_articles.add(named.next().map_or("", String::as_str));
        }
    }
    taken.orders = orders.len();
    Ok(baskets)
}

/// Joins orders of too few articles with those next to them, and leaves out what is still too small. The sets are in the order
/// of their last orders.
fn join(baskets: Vec<Basket>, size: OutfitSize, taken: &mut Received) -> Vec<Basket> {
    let mut by_customer: HashMap<CustomerId, Vec<Basket>> = HashMap::new();
    for basket in baskets {
        by_customer.entry(basket.customer.clone()).or_default().push(basket);
    }
    let mut sets = Vec::new();
    for mut baskets in by_customer.into_values() {
        baskets.sort_by_key(|basket| basket.first);
        let mut joined: Vec<Basket> = Vec::new();
        for basket in baskets {
            match joined.last_mut().filter(|set| {
                (set.is_too_small(size) || basket.is_too_small(size)) && basket.first <= set.first + WINDOW
            }) {
                Some(set) => {
                    set.add(&basket.articles);
                    set.last = set.last.max(basket.last);
                    set.orders += 1;
                }
                None => joined.push(basket),
            }
        }
        sets.extend(joined);
    }
    taken.too_few = sets.iter().filter(|set| set.is_too_small(size)).map(|set| set.orders).sum();
    sets.retain(|set| !set.is_too_small(size));
    sets.sort_by(|a, b| (a.last, &a.customer, a.first).cmp(&(b.last, &b.customer, b.first)));
    taken.outfits = sets.len();
    sets
}

/// The time from which on outfits are for validation. Those of one moment are in one split.
fn validation_begins(sets: &[Basket], share: f64) -> Result<Timestamp> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of a count is a count"
    )]
    let wanted = (share * real(sets.len())).ceil() as usize;
    match sets.get(sets.len().saturating_sub(wanted)) {
        Some(set) if set.last > sets[0].last => Ok(set.last),
        Some(_) => {
            bail!("all orders are of one time, so they cannot be split by time: check the column \"time\"")
        }
        None => Ok(Timestamp::from_millis(0)),
    }
}

fn count_refills(sets: &[Basket], known: &Known, taken: &mut Received) {
    let mut by_type: BTreeMap<&str, usize> = BTreeMap::new();
    for set in sets {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for &article in &set.articles {
            *counts.entry(known.articles[article as usize].1.as_str()).or_default() += 1;
        }
        let most = counts.into_iter().find(|(_, count)| 2 * count > set.articles.len());
        if let Some((kind, _)) = most {
            taken.refills += 1;
            *by_type.entry(kind).or_default() += 1;
        }
    }
    let most = by_type.into_iter().max_by_key(|(_, count)| *count);
    taken.refilled = most.map_or_else(String::new, |(kind, _)| kind.to_owned());
}
