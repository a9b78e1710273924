//! Counts as floats.

/// # Panics
/// If the count exceeds 32 bits, which no count here does.
pub fn real(count: usize) -> f64 {
    f64::from(u32::try_from(count).expect("a count fits 32 bits"))
}
