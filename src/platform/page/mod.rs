//! The pages for stylists, analysts, merchandisers and admins.
//!
//! Each page is a private template struct with its handler, in the module of its name; its template mirrors the
//! URL. A view's whole state is in its address, so every view is a link and works without a script (`address` describes
//! its parameters); htmx only avoids reloading the full page. Pages call what the JSON endpoints call; they are not part of
//! `/openapi.json`.

pub(crate) mod address;
pub(crate) mod assets;
pub(crate) mod change;
pub(crate) mod docs;
pub(crate) mod fault;
pub(crate) mod figures;
pub(crate) mod form;
pub(crate) mod format;
pub(crate) mod operations;
pub(crate) mod pager;
pub(crate) mod problem;
mod refused;
pub(crate) mod session;
pub(crate) mod shell;
pub(crate) mod wording;

pub(crate) use self::{
    address::Address,
    form::{Form, OpenForm, PageQuery},
    pager::Pager,
    refused::Refused,
    shell::{Page, Shell},
};
