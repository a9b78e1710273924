//! Pages of a list, and its length in words.

use atelier_core::util::notation::Notation;

/// Where a page is in its list.
#[derive(Debug)]
pub(crate) struct Pager {
    page: usize,
    size: usize,
    length: usize,
    /// Whether the list goes on where nothing was read.
    is_cut: bool,
    notation: Notation,
    pub(crate) earlier: Option<String>,
    pub(crate) later: Option<String>,
}

impl Pager {
    /// `page` counts from 1; one past the end is the last. A list that is cut is read further for a later page.
    pub(crate) fn new(
        page: Option<usize>,
        length: usize,
        size: usize,
        is_cut: bool,
        notation: &Notation,
        href: impl Fn(usize) -> String,
    ) -> Self {
        let last = length.div_ceil(size).max(1);
        let page = page.unwrap_or(1).clamp(1, last);
        Self {
            page,
            size,
            length,
            is_cut,
            notation: notation.clone(),
            earlier: (page > 1).then(|| href(page - 1)),
            later: (page < last).then(|| href(page + 1)),
        }
    }

    pub(crate) fn first(&self) -> usize {
        (self.page - 1) * self.size
    }

    pub(crate) fn part_of<'a, T>(&self, rows: &'a [T]) -> &'a [T] {
        &rows[self.first()..rows.len().min(self.first() + self.size)]
    }

    pub(crate) fn count(&self) -> String {
        self.notation.count(self.length as u64)
    }

    /// `37 customers`, `25 to 37 of 37 customers`, `1 to 12 of over 1,000 customers`.
    pub(crate) fn words(&self, one: &str, many: &str) -> String {
        let Self { size, length, is_cut, .. } = *self;
        let number = |number: usize| self.notation.count(number as u64);
        let things = if length == 1 { one } else { many };
        let all = if is_cut { format!("over {}", number(length.saturating_sub(1))) } else { number(length) };
        if length <= size {
            return format!("{all} {things}");
        }
        let first = self.first();
        format!("{} to {} of {all} {things}", number(first + 1), number((first + size).min(length)))
    }
}
