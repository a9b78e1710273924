//! Counts as real numbers.

/// # Panics
/// Past four billion, which nothing here counts to.
pub(crate) fn real(count: usize) -> f64 {
    f64::from(u32::try_from(count).expect("counts here stay under four billion; this is a bug"))
}
