//! Which requests may do without an API key where none is required: those of programs, not those of other sites' pages.
//!
//! A browser runs the scripts of any site on the machine or in the network of the service. Such a script can send requests
//! there, and it can read the answers if DNS gives its own site the service's address (DNS rebinding). This module cannot
//! tell a program from a proxy that serves strangers, so the settings that need it warn.

use std::net::IpAddr;

use axum::{
    extract::Request,
    http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, header, uri::Authority},
};

use super::{https::OverTls, peer::Peer};

/// Refuses a request that the page of another site may have caused. The reason follows "this request".
pub(crate) fn check_program(request: &Request) -> Result<(), String> {
    // A caller without a connection is a test's.
    let nearby = Peer::ip(request.extensions()).is_none_or(|peer| peer.is_loopback());
    let host = find_host(request.uri(), request.headers(), nearby)?;
    let scheme = if request.extensions().get::<OverTls>().is_some() { "https://" } else { "http://" };
    check_site(request.method(), request.headers(), scheme, host)
}

/// The request's host, if no site can have it. HTTP/1.0 may have none. Callers on this machine have no reason to name
/// another address than a loopback one.
fn find_host<'r>(uri: &'r Uri, headers: &'r HeaderMap, nearby: bool) -> Result<Option<&'r str>, String> {
    let host = headers.get(header::HOST).map(HeaderValue::to_str).transpose();
    let host = host.map_err(|_| "has a Host that is not ASCII".to_owned())?;
    let target = uri.authority().map(Authority::as_str);
    if let (Some(host), Some(target)) = (host, target)
        && !host.eq_ignore_ascii_case(target)
    {
        return Err(format!("has the Host {host:?} and the address {target:?}"));
    }
    match host.or(target) {
        Some(host) if !is_ours(host, nearby) => {
            let expected = if nearby { "" } else { ", another address, a name without a dot" };
            Err(format!(
                "has the Host {host:?}; expected localhost, a loopback address{expected}: no site can have those"
            ))
        }
        host => Ok(host),
    }
}

/// A browser names the site whose page sent a request: in Origin, in Sec-Fetch-Site or, if it is old, in Referer. A page
/// cannot change what it is told, only leave Referer out, and then Origin is `null`.
fn check_site(method: &Method, headers: &HeaderMap, scheme: &str, host: Option<&str>) -> Result<(), String> {
    let foreign = |name: HeaderName| {
        let ours = |value: &&HeaderValue| host.is_some_and(|host| is_page_of(value, scheme, host));
        headers.get_all(name).iter().find(|value| !ours(value))
    };
    if let Some(origin) = foreign(header::ORIGIN) {
        return Err(format!("was sent by a page of another site: its Origin is {origin:?}"));
    }
    // Any site may link to what a GET answers, and cannot read it.
    if matches!(*method, Method::GET | Method::HEAD) {
        return Ok(());
    }
    let sites = headers.get_all("sec-fetch-site");
    if let Some(site) = sites.iter().find(|site| *site != "none" && *site != "same-origin") {
        return Err(format!("was sent by a page of another site: its Sec-Fetch-Site is {site:?}"));
    }
    match foreign(header::REFERER) {
        Some(page) => Err(format!("was sent by a page of another site: its Referer is {page:?}")),
        None => Ok(()),
    }
}

/// Whether an origin or an address belongs to the host that a request was sent to.
fn is_page_of(value: &HeaderValue, scheme: &str, host: &str) -> bool {
    let rest = value.to_str().ok().and_then(|text| text.strip_prefix(scheme));
    rest.and_then(|rest| rest.split('/').next()).is_some_and(|named| named.eq_ignore_ascii_case(host))
}

/// Whether a host such as `localhost:8080`, `127.0.0.1` or `[::1]:8080` cannot be the name of another site: names of sites
/// have a dot, and DNS does not resolve addresses.
fn is_ours(host: &str, nearby: bool) -> bool {
    let Some(authority) = host.parse::<Authority>().ok().filter(|_| !host.contains('@')) else {
        return false;
    };
    let name = authority.host();
    let address = match name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some(address) => address.parse().map(IpAddr::V6),
        None => name.parse().map(IpAddr::V4),
    };
    match address {
        Ok(address) => !nearby || address.is_loopback(),
        Err(_) => name.eq_ignore_ascii_case("localhost") || (!nearby && !name.contains(['.', '[', ','])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_ours_if_no_site_can_have_it() {
        for own in ["localhost", "LocalHost:8080", "127.0.0.1:8080", "127.9.9.9", "[::1]:8080", "[::1]"] {
            assert!(is_ours(own, true) && is_ours(own, false), "{own}");
        }
        for served in ["10.0.0.7", "0.0.0.0", "[::]", "[::ffff:127.0.0.1]", "atelier:8080"] {
            assert!(!is_ours(served, true) && is_ours(served, false), "{served}");
        }
        let others = "|evil.example:8080|localhost.evil.example|localhost.|127.0.0.1.evil.example|evil@localhost|127.1|\
                      ::1|[evil]|localhost, evil.example";
        for other in others.split('|') {
            assert!(!is_ours(other, true) && !is_ours(other, false), "{other}");
        }
        assert!(!is_ours("0x7f000001", true));
    }

    #[test]
    fn a_page_belongs_to_its_scheme_host_and_port() {
        let is_ours =
            |page: &str| is_page_of(&HeaderValue::from_str(page).unwrap(), "http://", "localhost:8080");
        for ours in ["http://localhost:8080", "http://localhost:8080/docs", "http://LOCALHOST:8080/"] {
            assert!(is_ours(ours), "{ours}");
        }
        let foreign = "null||localhost:8080|https://localhost:8080|http://localhost|http://localhost:80801|\
                       http://localhost:8080.evil.example/|http://127.0.0.1:8080|http://localhost:8080@evil.example/";
        for foreign in foreign.split('|') {
            assert!(!is_ours(foreign), "{foreign}");
        }
    }
}
