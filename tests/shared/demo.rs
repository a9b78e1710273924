//! What the demo release has.

use atelier::domain::Method;

/// The methods of the demo release, in its order: all but `match`.
pub(crate) fn methods() -> Vec<Method> {
    Method::ALL.into_iter().filter(|method| *method != Method::Match).collect()
}
