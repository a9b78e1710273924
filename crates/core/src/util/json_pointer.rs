//! JSON pointers (RFC 6901).

/// A name as a step of a pointer.
pub fn step(name: &str) -> String {
    format!("/{}", name.replace('~', "~0").replace('/', "~1"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_escaped() {
        assert_eq!(step("a/b~c"), "/a~1b~0c");
    }
}
