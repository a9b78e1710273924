//! What a signed-in person may do.

use crate::named;

/// A person's role. Each role includes the permissions of the roles before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    Stylist,
    Analyst,
    Merchandiser,
    Admin,
}

impl Role {
    pub const ALL: [Self; 4] = [Self::Stylist, Self::Analyst, Self::Merchandiser, Self::Admin];
}

named!(
    Role,
    "a role is stylist, analyst, merchandiser or admin",
    Stylist = "stylist",
    Analyst = "analyst",
    Merchandiser = "merchandiser",
    Admin = "admin"
);
