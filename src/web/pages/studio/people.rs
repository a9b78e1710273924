//! Whom the studio works for.

use super::View;
use crate::{
    domain::{ArticleId, Features, Schema},
    web::{
        http::{AppState, Problem},
        pages::{
            article_view::{self, ArticleView},
            profile::{self, ProfileWord},
        },
    },
};

/// Customers that are shown of those that were found.
const FOUND: u32 = 12;
/// Outfits that are shown of a customer's.
const OUTFITS: u32 = 24;

pub(super) struct CustomerView {
    pub(super) id: String,
    pub(super) words: Vec<ProfileWord>,
    pub(super) features: Features,
    /// Where they are worked for.
    pub(super) href: String,
}

impl CustomerView {
    fn new(customer: crate::domain::Customer, schema: &Schema) -> Self {
        let href = View { customer: Some(customer.id.clone()), ..View::default() }.href();
        Self {
            id: customer.id.to_string(),
            words: profile::profile(&customer.features, schema),
            features: customer.features,
            href,
        }
    }

    pub(super) fn line(&self) -> String {
        self.words.iter().map(|word| word.words.as_str()).collect::<Vec<_>>().join(", ")
    }
}

pub(super) struct OutfitView {
    pub(super) articles: Vec<ArticleView>,
    /// What belongs to it, such as the occasion.
    pub(super) own: String,
    pub(super) href: String,
}

/// Who is chosen. None where nobody is, or there is no such customer.
pub(super) async fn customer(
    state: &AppState,
    view: &View,
    schema: &Schema,
) -> Result<Option<CustomerView>, Problem> {
    let Some(id) = &view.customer else { return Ok(None) };
    let customer = state.store.customers().get(id).await?;
    Ok(customer.map(|customer| CustomerView::new(customer, schema)))
}

/// Those in whose id or profile every word stands.
pub(super) async fn find(
    state: &AppState,
    view: &View,
    schema: &Schema,
) -> Result<Vec<CustomerView>, Problem> {
    let found = state.store.customers().list(&view.find, None, FOUND).await?;
    Ok(found.into_iter().map(|customer| CustomerView::new(customer, schema)).collect())
}

/// The chosen customer's outfits.
pub(super) async fn outfits(
    state: &AppState,
    view: &View,
    schema: &Schema,
) -> Result<Vec<OutfitView>, Problem> {
    let Some(customer) = &view.customer else { return Ok(Vec::new()) };
    let records = state.store.outfits().for_customer(customer, 0, OUTFITS).await?;
    let ids: Vec<ArticleId> = records.iter().flat_map(|record| record.outfit.articles()).cloned().collect();
    let articles = article_view::of(state, &ids).await?;
    let mut articles = articles.into_iter();
    let outfit = |record: crate::store::OutfitRecord| {
        let ids = record.outfit.articles();
        let own = super::view::own(&record.outfit.features);
        let opened = view.with(|view| {
            view.slots = ids.iter().cloned().map(Some).collect();
            view.own = own;
        });
        OutfitView {
            articles: articles.by_ref().take(ids.len()).collect(),
            own: profile::line(&record.outfit.features, schema),
            href: opened.href(),
        }
    };
    Ok(records.into_iter().map(outfit).collect())
}
