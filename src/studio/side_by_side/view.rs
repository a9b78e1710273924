//! The comparison's parameters, parsed from the page's address.

use atelier_core::domain::{ArticleId, CustomerId, MAX_SLOTS, Method};
use atelier_engine::evaluation::PAPER;

use crate::{
    completion::Filters,
    platform::page::address::{Address, FeatureWords, each_parameter, lost_parts, parameters, too_long},
    platform::page::wording::spaced,
    releases::LiveRelease,
    studio,
};

const DEFAULT_K: usize = 10;
const MAX_K: usize = 50;
/// More columns would not be readable.
const MAX_COLUMNS: usize = 10;

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct View {
    /// Several customers have a column each, of one method.
    pub(crate) customers: Vec<CustomerId>,
    pub(crate) slots: Vec<Option<ArticleId>>,
    pub(crate) methods: Vec<Method>,
    /// The stylist's own article for the blank.
    pub(crate) truth: Option<ArticleId>,
    pub(crate) k: Option<usize>,
    /// The only type that may fill the blank.
    pub(crate) kind: Option<String>,
    pub(crate) filter: Filters,
    /// Whether the shop's rules apply. They hide what the methods differ in.
    pub(crate) rules: bool,
    /// The outfit's own features, and changed ones of the customer, as in Studio.
    pub(crate) own: FeatureWords,
    pub(crate) changed: FeatureWords,
    /// An article that the page follows through the columns.
    pub(crate) mark: Option<ArticleId>,
    /// The parts of an old link that no longer work, in words; not part of the address.
    pub(crate) ignored: Vec<String>,
}

parameters!(View, "/side-by-side":
    "customer" => customers,
    "slot" => slots,
    "truth" => truth,
    "method" => methods,
    "type" => kind,
    "unfit" => filter.unfit,
    "sold_out" => filter.sold_out,
    "any" => filter.no_gos,
    "price_min" => filter.least_price,
    "price_max" => filter.most_price,
    "total" => filter.most_total,
    "store" => filter.store,
    "by." => filter.words,
    "exclude" => filter.exclude,
    "rules" => rules,
    "k" => k,
    "mark" => mark,
    "own." => own,
    "if." => changed,
);

impl View {
    /// The view of a link, without the parts that no longer work.
    fn read(query: &str) -> Self {
        let mut view = Self::default();
        let wrong = each_parameter(query, |name, value| match name {
            // The form has one field for several ids.
            "customers" => value.split([',', ' ']).try_for_each(|id| view.take("customer", id)),
            _ => view.take(name, value),
        });
        view.k = view.k.map(|k| k.clamp(1, MAX_K));
        view.ignored = lost_parts(wrong.into_iter().chain(too_long(&view.slots)).collect());
        view.slots.truncate(MAX_SLOTS);
        let blank = view.slots.iter().position(Option::is_none);
        let mut index = 0..;
        let slots = view.slots.len();
        view.slots.retain(|slot| index.next() == blank || slot.is_some());
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
        if let Some(kind) = self.kind.take_if(|kind| catalogue.sets().of_type(kind).is_none()) {
            ignored.push(format!("the type {}", spaced(&kind)));
        }
        self.filter.exclude.retain(|id| catalogue.position_of(id.as_str()).is_some());
        let before = self.slots.len();
        let is_there = |id: &ArticleId| catalogue.position_of(id.as_str()).is_some();
        self.slots.retain(|slot| slot.as_ref().is_none_or(is_there));
        let most = live.serving.release().schema().outfit_size().most;
        while self.slots.len() > most {
            let last = self.slots.iter().rposition(Option::is_some).unwrap_or_default();
            self.slots.remove(last);
        }
        if self.slots.len() < before {
            ignored.push("a piece".to_owned());
        }
    }

    /// The filters and changed features that the form has no fields for, in words.
    pub(super) fn others_in_words(&self) -> String {
        let Filters { exclude, least_price, most_price, most_total, store, words: by, .. } = &self.filter;
        let mut words: Vec<String> = Vec::new();
        words.extend(least_price.map(|price| format!("price from {price}")));
        words.extend(most_price.map(|price| format!("price up to {price}")));
        words.extend(most_total.map(|price| format!("total budget {price}")));
        words.extend(store.iter().map(|store| format!("in store {store}")));
        words.extend(by.iter().map(|(attribute, word)| format!("{}: {word}", spaced(attribute))));
        words.extend((!exclude.is_empty()).then(|| format!("{} left out", exclude.len())));
        let changed = self.changed.iter();
        words.extend(changed.map(|(feature, values)| format!("{}: {}", spaced(feature), values.join(", "))));
        words.join("; ")
    }

    /// The same question in Studio, for the first customer, and the outfit's own features.
    pub(super) fn studio(&self, own: FeatureWords) -> String {
        let blank = self.slots.iter().position(Option::is_none);
        let view = studio::View {
            customer: self.customers.first().cloned(),
            slots: self.slots.clone(),
            types: blank.zip(self.kind.clone()).into_iter().collect(),
            filter: self.filter.clone(),
            own,
            changed: self.changed.clone(),
            method: if let [method] = self.methods[..] { Some(method) } else { None },
            trial: true,
            ..studio::View::default()
        };
        view.href()
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
                let usual = PAPER.iter().map(|paper| paper.method).filter(|method| has(*method));
                let answering = (!PAPER.iter().any(|paper| paper.method == default)).then_some(default);
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
        let query = "customer=c-1&slot=a-1&slot=&truth=a-2&method=none&method=gsu&type=coat&unfit=on&sold_out=on\
             &any=on&price_max=80&store=Graz&exclude=a-9&rules=on&k=20&mark=a-3&own.occasion=date&if.age=34";
        let view = View::read(query);
        assert_eq!(view.query(), query);
        assert_eq!(view.methods(|_| true, Method::Gsu), [Method::None, Method::Gsu]);
        assert_eq!(
            view.studio(view.own.clone()),
            "/studio?customer=c-1&slot=a-1&slot=&type=1%3Acoat&exclude=a-9&own.occasion=date&if.age=34&price_max=80\
             &store=Graz&unfit=on&sold_out=on&any=on&trial=on"
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
