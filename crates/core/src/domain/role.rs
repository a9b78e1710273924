//! Rights of a signed-in person.

use crate::named;

named! {
    "a role is stylist, analyst, merchandiser or admin"
    /// A person's role. Each role includes the permissions of the roles before it.
    #[derive(PartialOrd, Ord, Hash)]
    pub enum Role {
        Stylist = "stylist",
        Analyst = "analyst",
        Merchandiser = "merchandiser",
        Admin = "admin",
    }
}
