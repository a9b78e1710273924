//! What the demo release has.

use atelier_core::domain::Method;

/// The methods of the demo release, in its order.
pub(crate) fn methods() -> Vec<Method> {
    Method::ALL.to_vec()
}
