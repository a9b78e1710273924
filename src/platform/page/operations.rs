//! The tabs of Operations, which each feature shows on its page there.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tab {
    Live,
    Acceptance,
    Articles,
    Imports,
    Feeds,
    Releases,
    Experiments,
    Routing,
}
