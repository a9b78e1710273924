//! The frame around every page: the navigation and the signed-in person.

use std::sync::{Arc, OnceLock};

use atelier_core::domain::Role;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Page {
    Studio,
    SideBySide,
    Evaluation,
    Operations,
    Merchandising,
    Access,
}

impl Page {
    const ALL: [Self; 6] = [
        Self::Studio,
        Self::SideBySide,
        Self::Evaluation,
        Self::Operations,
        Self::Merchandising,
        Self::Access,
    ];

    /// Its path, its title, and the lowest role that may see it.
    fn about(self) -> (&'static str, &'static str, Role) {
        match self {
            Self::Studio => ("/studio", "Studio", Role::Stylist),
            Self::SideBySide => ("/side-by-side", "Side by side", Role::Analyst),
            Self::Evaluation => ("/evaluation", "Evaluation", Role::Analyst),
            Self::Operations => ("/operations", "Operations", Role::Analyst),
            Self::Merchandising => ("/merchandising", "Merchandising", Role::Merchandiser),
            Self::Access => ("/access", "Access", Role::Admin),
        }
    }

    pub(crate) fn path(self) -> &'static str {
        self.about().0
    }

    pub(crate) fn title(self) -> &'static str {
        self.about().1
    }

    pub(crate) fn is_shown(self, shell: &Shell) -> bool {
        shell.page == Some(self)
    }
}

/// The frame around a page: what `layout.html` needs. Every page's struct has one as its field `shell`.
#[derive(Debug, Clone)]
pub(crate) struct Shell {
    page: Option<Page>,
    pub(crate) signed_in: Option<SignedIn>,
    /// Whether the page says that this is the demo.
    pub(crate) demo: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct SignedIn {
    pub(crate) name: String,
    pub(crate) role: Role,
    /// The value of each form's field `csrf`.
    pub(crate) csrf: String,
}

/// The frame for a problem page. It is among the request's extensions, and lacks the person until `visitor` has found
/// who is signed in.
#[derive(Debug, Clone)]
pub(crate) struct Frame {
    signed_in: Arc<OnceLock<SignedIn>>,
    demo: bool,
}

impl Frame {
    pub(crate) fn new(demo: bool) -> Self {
        Self { signed_in: Arc::default(), demo }
    }

    pub(crate) fn set(&self, signed_in: SignedIn) {
        // A second look-up for the same request has the same result.
        let _ = self.signed_in.set(signed_in);
    }

    pub(crate) fn shell(&self) -> Shell {
        Shell { page: None, signed_in: self.signed_in.get().cloned(), demo: self.demo }
    }
}

impl Shell {
    pub(crate) fn outside(demo: bool) -> Self {
        Self { page: None, signed_in: None, demo }
    }

    pub(crate) fn signed_in(page: Option<Page>, signed_in: SignedIn, demo: bool) -> Self {
        Self { page, signed_in: Some(signed_in), demo }
    }

    pub(crate) fn pages(&self) -> impl Iterator<Item = Page> {
        let role = self.signed_in.as_ref().map(|signed_in| signed_in.role);
        Page::ALL.into_iter().filter(move |page| role.is_some_and(|role| role >= page.about().2))
    }

    pub(crate) fn may_see(&self, page: Page) -> bool {
        self.pages().any(|other| other == page)
    }

    pub(crate) fn is_admin(&self) -> bool {
        self.signed_in.as_ref().is_some_and(|signed_in| signed_in.role == Role::Admin)
    }

    pub(crate) fn csrf(&self) -> &str {
        self.signed_in.as_ref().map_or("", |signed_in| &signed_in.csrf)
    }
}
