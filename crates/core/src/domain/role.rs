//! What a signed-in person may do.

use crate::named;

/// A person's role. Each role includes the permissions of the roles before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    Stylist,
    Analyst,
    Admin,
}

named!(
    Role,
    "a role is stylist, analyst or admin",
    Stylist = "stylist",
    Analyst = "analyst",
    Admin = "admin"
);
