//! Pages of a list, and its length in words.

use super::figures::count;

/// Where a page is in its list.
#[derive(Debug)]
pub(super) struct Pager {
    page: usize,
    size: usize,
    length: usize,
    /// Whether the list goes on where nothing was read.
    is_cut: bool,
    pub(super) earlier: Option<String>,
    pub(super) later: Option<String>,
}

impl Pager {
    /// `page` counts from 1; one past the end is the last.
    pub(super) fn new(
        page: Option<usize>,
        length: usize,
        size: usize,
        is_cut: bool,
        href: impl Fn(usize) -> String,
    ) -> Self {
        let last = length.div_ceil(size).max(1);
        let page = page.unwrap_or(1).clamp(1, last);
        Self {
            page,
            size,
            length,
            is_cut,
            earlier: (page > 1).then(|| href(page - 1)),
            later: (page < last).then(|| href(page + 1)),
        }
    }

    /// The place of the page's first row.
    pub(super) fn first(&self) -> usize {
        (self.page - 1) * self.size
    }

    /// `37 customers`, `25 to 37 of 37 customers`, `the first 250 articles`.
    pub(super) fn words(&self, one: &str, many: &str) -> String {
        let Self { size, length, is_cut, .. } = *self;
        let number = |number: usize| count(number as u64);
        let things = if length == 1 { one } else { many };
        let all = if is_cut { format!("the first {}", number(length)) } else { number(length) };
        if length <= size {
            return format!("{all} {things}");
        }
        let first = self.first();
        format!("{} to {} of {all} {things}", number(first + 1), number((first + size).min(length)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_say_where_they_are() {
        let at = |page, length, is_cut| Pager::new(page, length, 12, is_cut, |page| format!("?page={page}"));
        let words = |page, length, is_cut| at(page, length, is_cut).words("customer", "customers");
        assert_eq!(words(None, 1, false), "1 customer");
        assert_eq!(words(None, 12, false), "12 customers");
        assert_eq!(words(Some(2), 30, false), "13 to 24 of 30 customers");
        assert_eq!(words(Some(9), 30, true), "25 to 30 of the first 30 customers");
        let middle = at(Some(2), 30, false);
        assert_eq!((middle.earlier.as_deref(), middle.later.as_deref()), (Some("?page=1"), Some("?page=3")));
        assert_eq!((at(None, 0, false).first(), at(None, 12, false).later), (0, None));
    }
}
