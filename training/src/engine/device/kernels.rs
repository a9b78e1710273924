//! The kernels' source, and what each kernel takes, read off the source itself: a launch with other
//! arguments is a bug that stops here, before it could reach a driver.

use std::{collections::HashMap, sync::LazyLock};

use super::{Argument, Device};

/// All kernels, one program.
pub(super) const SOURCE: &str = concat!(
    include_str!("kernels/shared.cu"),
    include_str!("kernels/rows.cu"),
    include_str!("kernels/norm.cu"),
    include_str!("kernels/attention.cu"),
    include_str!("kernels/head.cu"),
    include_str!("kernels/adamw.cu"),
);

/// A parameter of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    In,
    Out,
    Indices,
    Count,
    Real,
}

/// What each kernel takes, by its name.
pub(super) static SIGNATURES: LazyLock<HashMap<&'static str, Vec<Kind>>> = LazyLock::new(|| {
    let kernels = SOURCE.split("\nKERNEL ").skip(1);
    kernels
        .map(|kernel| {
            let (name, rest) = kernel.split_once('(').expect("a kernel has parameters; this is a bug");
            let (parameters, _) = rest.split_once(')').expect("a list of parameters ends; this is a bug");
            (name, parameters.split(',').map(kind).collect())
        })
        .collect()
});

fn kind(parameter: &str) -> Kind {
    let kinds = [
        ("const float *", Kind::In),
        ("const unsigned *", Kind::Indices),
        ("float *", Kind::Out),
        ("unsigned ", Kind::Count),
        ("float ", Kind::Real),
    ];
    let parameter = parameter.trim();
    let found = kinds.into_iter().find(|(start, _)| parameter.starts_with(start));
    found.unwrap_or_else(|| panic!("a kernel's parameter is `{parameter}`; this is a bug")).1
}

/// # Panics
/// If the kernel does not exist or takes something else.
pub(super) fn check<D: Device>(kernel: &str, arguments: &[Argument<'_, D>]) {
    let given = arguments.iter().map(|argument| match argument {
        Argument::In(..) => Kind::In,
        Argument::Out(..) => Kind::Out,
        Argument::Indices(..) => Kind::Indices,
        Argument::Count(_) => Kind::Count,
        Argument::Real(_) => Kind::Real,
    });
    let given: Vec<Kind> = given.collect();
    let taken =
        SIGNATURES.get(kernel).unwrap_or_else(|| panic!("no kernel is called {kernel}; this is a bug"));
    assert_eq!(given, *taken, "what {kernel} is given and what it takes; this is a bug");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_the_sources_own() {
        assert_eq!(SIGNATURES.len(), SOURCE.matches("\nKERNEL ").count());
        assert_eq!(SIGNATURES["add"], [Kind::Out, Kind::In, Kind::Count]);
        assert_eq!(SIGNATURES["gather"].len(), 7);
        assert_eq!(SIGNATURES["drop"][1..3], [Kind::Indices, Kind::Indices]);
        assert_eq!(SIGNATURES["adamw"].last(), Some(&Kind::Real));
    }
}
