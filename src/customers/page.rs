//! A customer as pages show them: what people call them, with their photo, id and profile.

use std::collections::{HashMap, HashSet};

use atelier_core::domain::{Customer, CustomerId, PHOTO, Schema};

use crate::platform::{
    http::{AppState, Problem},
    page::{
        form,
        wording::{self, ProfileWord},
    },
};

#[derive(Clone)]
pub(crate) struct CustomerView {
    pub(crate) id: String,
    /// The customer's name, if their profile has one.
    pub(crate) name: Option<String>,
    pub(crate) photo: Option<String>,
    pub(crate) words: Vec<ProfileWord>,
    /// The studio for this customer.
    pub(crate) href: String,
}

impl CustomerView {
    pub(crate) fn new(customer: &Customer, schema: &Schema) -> Self {
        let photo = customer.features.get(PHOTO).and_then(|photo| photo.words().first());
        Self {
            name: schema.display_name(&customer.features),
            photo: photo.filter(|photo| photo.starts_with("https://")).cloned(),
            words: wording::describe(&customer.features, schema),
            ..Self::unknown(&customer.id)
        }
    }

    /// One who is not in the database.
    fn unknown(id: &CustomerId) -> Self {
        let href = form::address("/studio", &[("customer", id.as_str())]);
        Self { id: id.to_string(), name: None, photo: None, words: Vec::new(), href }
    }

    /// The name, or else the id.
    pub(crate) fn title(&self) -> &str {
        self.name.as_ref().unwrap_or(&self.id)
    }

    /// Both, if there is a name.
    pub(crate) fn label(&self) -> String {
        self.name.as_ref().map_or_else(|| self.id.clone(), |name| format!("{name} · {}", self.id))
    }

    pub(crate) fn line(&self) -> String {
        self.words.iter().map(|word| word.words.as_str()).collect::<Vec<_>>().join(", ")
    }
}

#[derive(Default)]
pub(crate) struct CustomerViews(HashMap<CustomerId, CustomerView>);

impl CustomerViews {
    pub(crate) async fn read(
        state: &AppState,
        ids: impl IntoIterator<Item = &CustomerId>,
        schema: &Schema,
    ) -> Result<Self, Problem> {
        let ids: HashSet<CustomerId> = ids.into_iter().cloned().collect();
        let ids: Vec<CustomerId> = ids.into_iter().collect();
        let customers = state.store.customers().get_many(&ids).await?;
        let view = |customer: Customer| (customer.id.clone(), CustomerView::new(&customer, schema));
        Ok(Self(customers.into_iter().map(view).collect()))
    }

    /// None of one who is not in the database.
    pub(crate) fn get(&self, id: &CustomerId) -> Option<&CustomerView> {
        self.0.get(id)
    }

    pub(crate) fn view(&self, id: &CustomerId) -> CustomerView {
        self.get(id).cloned().unwrap_or_else(|| CustomerView::unknown(id))
    }

    pub(crate) fn label(&self, id: &CustomerId) -> String {
        self.view(id).label()
    }
}
