//! JSON pointers (RFC 6901).

/// A name as a step of a pointer.
pub fn step(name: &str) -> String {
    format!("/{}", name.replace('~', "~0").replace('/', "~1"))
}
