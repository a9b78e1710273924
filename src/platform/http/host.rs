//! The host that a request names.

use axum::{
    extract::Request,
    http::{HeaderValue, Version, header, uri::Authority},
};

use super::{Kind, Problem};

/// Refuses a request without a Host, with several, or with one that is no host (RFC 9112, section 3.2). HTTP/1.0 knew none.
pub(crate) fn check(request: &Request) -> Result<(), Problem> {
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let found = match (hosts.next(), hosts.next()) {
        (Some(host), None) if is_host(host) => return Ok(()),
        (None, None) if request.version() < Version::HTTP_11 => return Ok(()),
        (None, _) => "no Host".to_owned(),
        (Some(_), Some(_)) => "several Hosts".to_owned(),
        (Some(host), None) => format!("the Host {host:?}"),
    };
    let detail = format!("expected one header Host with a name or an address, found {found}");
    Err(Problem::new(Kind::Malformed, detail))
}

/// It may be empty: then the address has no host.
fn is_host(value: &HeaderValue) -> bool {
    let text = value.to_str().unwrap_or("@");
    text.is_empty() || text.parse::<Authority>().is_ok_and(|authority| !authority.as_str().contains('@'))
}
