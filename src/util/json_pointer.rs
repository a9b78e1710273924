//! JSON pointers (RFC 6901): how a place in a request is named.

/// A name as one step of a pointer.
pub(crate) fn step(name: &str) -> String {
    format!("/{}", name.replace('~', "~0").replace('/', "~1"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pointer_escapes_what_it_must() {
        assert_eq!(step("a/b~c"), "/a~1b~0c");
    }
}
