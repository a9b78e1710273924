//! The comparison's parameters, parsed from the page's address.

use atelier_core::domain::{ArticleId, CustomerId, InvalidMethod, MAX_SLOTS, Method};
use atelier_engine::evaluation::PAPER;
use axum::{extract::FromRequestParts, http::request::Parts};

use crate::{
    service::live_release::LiveRelease,
    web::{
        http::Problem,
        pages::{
            form::{each_parameter, lost_parts, too_long},
            profile::spaced,
            studio::view::{FeatureWords, add, is_of_question, price},
        },
    },
};

/// The default number of rows.
const DEFAULT_K: usize = 10;
const MAX_K: usize = 50;
/// More columns would not be readable.
const MAX_COLUMNS: usize = 10;

#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct View {
    /// Several customers have a column each, of one method.
    pub(super) customers: Vec<CustomerId>,
    pub(super) slots: Vec<Option<ArticleId>>,
    pub(super) methods: Vec<Method>,
    /// The stylist's own article for the blank.
    pub(super) truth: Option<ArticleId>,
    pub(super) k: Option<usize>,
    /// The only type that may fill the blank.
    pub(super) kind: Option<String>,
    /// Includes the customer's no-gos.
    pub(super) no_gos: bool,
    /// Includes what does not fit the customer.
    pub(super) unfit: bool,
    /// Includes what is out of stock.
    pub(super) sold_out: bool,
    pub(super) least_price: Option<f64>,
    pub(super) most_price: Option<f64>,
    /// The most that the whole outfit costs.
    pub(super) most_total: Option<f64>,
    /// Only what is in stock in this store.
    pub(super) store: Option<String>,
    pub(super) exclude: Vec<ArticleId>,
    /// The outfit's own features, and changed ones of the customer, as in Studio.
    pub(super) own: FeatureWords,
    pub(super) changed: FeatureWords,
    /// An article that the page follows through the columns.
    pub(super) mark: Option<ArticleId>,
    /// The parts of an old link that no longer work, in words; not part of the address.
    pub(super) ignored: Vec<String>,
}

impl<S: Send + Sync> FromRequestParts<S> for View {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        Ok(Self::read(parts.uri.query().unwrap_or_default()))
    }
}

impl View {
    /// The view of a link, without the parts that no longer work.
    fn read(query: &str) -> Self {
        let mut view = Self::default();
        let wrong = each_parameter(query, |name, value| view.take(name, value));
        view.ignored = lost_parts(wrong.into_iter().chain(too_long(&view.slots)).collect());
        view.slots.truncate(MAX_SLOTS);
        let blank = view.slots.iter().position(Option::is_none);
        let mut place = 0..;
        let slots = view.slots.len();
        view.slots.retain(|slot| place.next() == blank || slot.is_some());
        if view.slots.len() < slots {
            view.ignored.push("all blanks but the first".to_owned());
        }
        for (things, found) in [("methods", view.methods.len()), ("customers", view.customers.len())] {
            if found > MAX_COLUMNS {
                view.ignored.push(format!("{things} after the first {MAX_COLUMNS}"));
            }
        }
        view.methods.truncate(MAX_COLUMNS);
        view.customers.truncate(MAX_COLUMNS);
        view
    }

    /// Leaves out what the release does not have.
    pub(super) fn leave_out_what_is_gone(&mut self, live: &LiveRelease) {
        let catalogue = &live.catalogue;
        let ignored = &mut self.ignored;
        self.methods.retain(|method| {
            let is_there = live.serving.has(*method);
            if !is_there {
                ignored.push(format!("the method {method}"));
            }
            is_there
        });
        if let Some(kind) = self.kind.take_if(|kind| catalogue.of_type(kind).is_none()) {
            ignored.push(format!("the type {}", spaced(&kind)));
        }
        self.exclude.retain(|id| catalogue.place_of(id.as_str()).is_some());
        let before = self.slots.len();
        let is_there = |id: &ArticleId| catalogue.place_of(id.as_str()).is_some();
        self.slots.retain(|slot| slot.as_ref().is_none_or(is_there));
        if self.slots.len() < before {
            ignored.push("a piece".to_owned());
        }
    }

    /// An empty field counts as missing; repeated customers and methods count once.
    fn take(&mut self, name: &str, value: &str) -> Result<(), String> {
        let article = || (!value.is_empty()).then(|| ArticleId::new(value)).transpose();
        let article = || article().map_err(|error| error.to_string());
        match name {
            "slot" => self.slots.push(article()?),
            "customer" => self.add(value)?,
            // The form has one field for several ids.
            "customers" => value.split([',', ' ']).try_for_each(|id| self.add(id))?,
            "method" | "k" if value.is_empty() => {}
            "method" => {
                let method = value.parse().map_err(|error: InvalidMethod| error.to_string())?;
                if !self.methods.contains(&method) {
                    self.methods.push(method);
                }
            }
            "truth" => self.truth = article()?,
            "mark" => self.mark = article()?,
            "type" => self.kind = (!value.is_empty()).then(|| value.to_owned()),
            "any" => self.no_gos = value == "on",
            "price_min" => self.least_price = price(value)?,
            "price_max" => self.most_price = price(value)?,
            "total" => self.most_total = price(value)?,
            "store" => self.store = (!value.is_empty()).then(|| value.to_owned()),
            "exclude" => self.exclude.extend(article()?),
            "unfit" => self.unfit = value == "on",
            "sold_out" => self.sold_out = value == "on",
            "k" => {
                let k: usize =
                    value.parse().map_err(|_| format!("expected a whole number, found {value:?}"))?;
                self.k = Some(k.clamp(1, MAX_K));
            }
            other => match other.split_once('.') {
                Some(("own", feature)) => add(&mut self.own, feature, value),
                Some(("if", feature)) => add(&mut self.changed, feature, value),
                // Mails and advertisements add theirs to links, and older versions had others.
                _ => {}
            },
        }
        Ok(())
    }

    fn add(&mut self, customer: &str) -> Result<(), String> {
        if !customer.is_empty() {
            let id = CustomerId::new(customer).map_err(|error| error.to_string())?;
            if !self.customers.contains(&id) {
                self.customers.push(id);
            }
        }
        Ok(())
    }

    pub(super) fn pairs(&self) -> Vec<(String, String)> {
        let mut pairs: Vec<(&str, String)> = Vec::new();
        pairs.extend(self.customers.iter().map(|id| ("customer", id.to_string())));
        pairs.extend(
            self.slots
                .iter()
                .map(|slot| ("slot", slot.as_ref().map(ToString::to_string).unwrap_or_default())),
        );
        pairs.extend(self.truth.iter().map(|id| ("truth", id.to_string())));
        pairs.extend(self.methods.iter().map(|method| ("method", method.to_string())));
        pairs.extend(self.kind.iter().map(|kind| ("type", kind.clone())));
        let checked = [("any", self.no_gos), ("unfit", self.unfit), ("sold_out", self.sold_out)];
        let checked = checked.into_iter().filter(|(_, is_on)| *is_on);
        pairs.extend(checked.map(|(name, _)| (name, "on".to_owned())));
        for (name, price) in
            [("price_min", self.least_price), ("price_max", self.most_price), ("total", self.most_total)]
        {
            pairs.extend(price.map(|price| (name, price.to_string())));
        }
        pairs.extend(self.store.iter().map(|store| ("store", store.clone())));
        pairs.extend(self.exclude.iter().map(|id| ("exclude", id.to_string())));
        pairs.extend(self.k.map(|k| ("k", k.to_string())));
        pairs.extend(self.mark.iter().map(|id| ("mark", id.to_string())));
        let mut pairs: Vec<(String, String)> =
            pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        for (prefix, features) in [("own", &self.own), ("if", &self.changed)] {
            for (feature, values) in features {
                pairs.extend(values.iter().map(|value| (format!("{prefix}.{feature}"), value.clone())));
            }
        }
        pairs
    }

    /// The filters and changed features that the form has no fields for, in words.
    pub(super) fn others_in_words(&self) -> String {
        let mut words: Vec<String> = Vec::new();
        words.extend(self.least_price.map(|price| format!("price from {price}")));
        words.extend(self.most_price.map(|price| format!("price up to {price}")));
        words.extend(self.most_total.map(|price| format!("total budget {price}")));
        words.extend(self.store.iter().map(|store| format!("in store {store}")));
        words.extend((!self.exclude.is_empty()).then(|| format!("{} left out", self.exclude.len())));
        let changed = self.changed.iter();
        words.extend(changed.map(|(feature, values)| format!("{}: {}", spaced(feature), values.join(", "))));
        words.join("; ")
    }

    /// The hidden fields of a form that has fields for `own` itself.
    pub(super) fn besides(&self, own: &[&str]) -> Vec<(String, String)> {
        self.pairs().into_iter().filter(|(name, _)| !own.contains(&name.as_str())).collect()
    }

    pub(super) fn query(&self) -> String {
        form_urlencoded::Serializer::new(String::new()).extend_pairs(self.pairs()).finish()
    }

    pub(super) fn href(&self) -> String {
        format!("/side-by-side?{}", self.query())
    }

    /// The same question in Studio, for the first customer, and the outfit's own features.
    pub(super) fn studio(&self, own: FeatureWords) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        let customers = self.customers.iter().take(1).cloned().collect();
        let asked = Self { customers, own, ..self.clone() }.pairs();
        query.extend_pairs(asked.into_iter().filter(|(name, _)| is_of_question(name)));
        if let [method] = self.methods[..] {
            query.append_pair("method", method.as_str());
        }
        query.append_pair("trial", "on");
        for slot in &self.slots {
            query.append_pair("slot", slot.as_ref().map_or("", ArticleId::as_str));
        }
        let blank = self.slots.iter().position(Option::is_none);
        if let Some((blank, kind)) = blank.zip(self.kind.as_ref()) {
            query.append_pair("type", &format!("{blank}:{kind}"));
        }
        format!("/studio?{}", query.finish())
    }

    /// With an article of a stored outfit taken out, as the true article.
    pub(super) fn blanked(&self, articles: &[ArticleId], slot: usize) -> Self {
        let mut slots: Vec<_> = articles.iter().cloned().map(Some).collect();
        let truth = slots[slot].take();
        Self { slots, truth, mark: None, kind: None, own: FeatureWords::new(), ..self.clone() }
    }

    /// Follows this article, or stops following it.
    pub(super) fn marking(&self, article: &ArticleId) -> Self {
        let mark = (self.mark.as_ref() != Some(article)).then(|| article.clone());
        Self { mark, ..self.clone() }
    }

    pub(super) fn k(&self) -> usize {
        self.k.unwrap_or(DEFAULT_K)
    }

    pub(super) fn is_of_customers(&self) -> bool {
        self.customers.len() > 1
    }

    /// The columns' methods: the chosen ones, or else those of the paper's that the release has, and the default.
    pub(super) fn methods(&self, has: impl Fn(Method) -> bool, default: Method) -> Vec<Method> {
        match &self.methods[..] {
            // Several methods are left over from a comparison of methods; none of them is preferred here.
            [only] => vec![*only],
            _ if self.is_of_customers() => vec![default],
            [] => {
                let usual = PAPER.iter().map(|row| row.method).filter(|method| has(*method));
                let answering = (!PAPER.iter().any(|row| row.method == default)).then_some(default);
                usual.chain(answering).collect()
            }
            chosen => chosen.to_vec(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_holds_the_comparison() {
        let query = "customer=c-1&slot=a-1&slot=&truth=a-2&method=none&method=gsu&type=coat&any=on&unfit=on\
             &sold_out=on&price_max=80&store=Graz&exclude=a-9&k=20&mark=a-3&own.occasion=date&if.age=34";
        let view = View::read(query);
        assert_eq!(view.query(), query);
        assert_eq!(view.methods(|_| true, Method::Gsu), [Method::None, Method::Gsu]);
        assert_eq!(
            view.studio(view.own.clone()),
            "/studio?customer=c-1&any=on&unfit=on&sold_out=on&price_max=80&store=Graz&exclude=a-9&own.occasion=date\
             &if.age=34&trial=on&slot=a-1&slot=&type=1%3Acoat"
        );
        assert_eq!(view.others_in_words(), "price up to 80; in store Graz; 1 left out; age: 34");
        let two = View::read("customers=c-1,+c-2&customer=c-1&method=none&method=c");
        assert_eq!((two.customers.len(), two.methods(|_| true, Method::Gsu)), (2, vec![Method::Gsu]));
        let several = View::read("customer=c-1, 2");
        assert_eq!(several.customers[0].as_str(), "c-1, 2", "an id may hold a comma");
        let papers = View::default().methods(|method| method != Method::C, Method::Gsu);
        assert_eq!(papers, [Method::None, Method::Np, Method::Gs, Method::Gsu]);
        let answering = View::default().methods(|method| method == Method::None, Method::Match);
        assert_eq!(answering, [Method::None, Method::Match]);
        let ids = ["a", "b"].map(|id| ArticleId::new(id).unwrap());
        assert_eq!(View::default().blanked(&ids, 1).query(), "slot=a&slot=&truth=b");
    }

    #[test]
    fn an_old_link_keeps_what_it_can() {
        let many = (0..11).map(|n| format!("customer=c-{n}")).collect::<Vec<_>>().join("&");
        for (query, lost, kept) in [
            ("k=x&slot=a", "the number of suggestions", "slot=a"),
            ("method=Best&method=np", "a method", "method=np"),
            ("slot=a&slot=&slot=", "all blanks but the first", "slot=a&slot="),
            (&*many, "customers after the first 10", many.strip_suffix("&customer=c-10").unwrap()),
        ] {
            let view = View::read(query);
            assert_eq!((&*view.ignored.join(", "), &*view.query()), (lost, kept), "{query}");
        }
        let marked = View::read("yclid=1&_hsenc=2&mkt_tok=3&twclid=4&no_gos=on&k=5");
        assert_eq!((marked.ignored.len(), &*marked.query()), (0, "k=5"));
    }
}
