//! The numbers of a chart as a table: for whoever cannot see it, and for copying.

/// A table with a name for each row and column.
#[derive(Debug)]
pub(super) struct Numbers {
    pub(super) caption: String,
    /// The first one is above the rows' names.
    pub(super) columns: Vec<String>,
    pub(super) rows: Vec<(String, Vec<String>)>,
}

/// A chart with its numbers.
#[derive(Debug)]
pub(super) struct Drawn {
    /// An SVG, safe to be put into a page.
    pub(super) svg: String,
    pub(super) numbers: Numbers,
}
