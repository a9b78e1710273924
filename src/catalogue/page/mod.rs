//! The pages.

pub(crate) mod article_view;
pub(crate) mod pictures;
