//! The articles: variants, search, and their copies in memory.

pub(crate) mod api;
pub mod changes;
pub(crate) mod page;
pub(crate) mod resource;
pub mod search;
mod sql;

pub(crate) use self::sql::article_id;
pub use self::sql::{ArticleFilter, Articles};
