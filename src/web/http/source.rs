//! Whether a request without an API key comes from a program on this machine. The service listens on a loopback address,
//! but proxies that serve other machines and browsers that show other sites' pages reach it, too.
//!
//! What cannot be judged counts as foreign.

use std::net::{Ipv4Addr, Ipv6Addr};

use axum::{
    extract::Request,
    http::{
        Extensions, HeaderMap, HeaderName, HeaderValue, Method, Uri, Version, header, request::Parts,
        uri::Authority,
    },
};

use super::https::OverTls;

/// The head of a request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Head<'r> {
    pub(super) method: &'r Method,
    pub(super) uri: &'r Uri,
    pub(super) version: Version,
    pub(super) headers: &'r HeaderMap,
    /// Of our own addresses on this connection.
    scheme: &'static str,
}

impl<'r> From<&'r Request> for Head<'r> {
    fn from(request: &'r Request) -> Self {
        let (method, uri) = (request.method(), request.uri());
        let scheme = scheme(request.extensions());
        Self { method, uri, version: request.version(), headers: request.headers(), scheme }
    }
}

impl<'r> From<&'r Parts> for Head<'r> {
    fn from(parts: &'r Parts) -> Self {
        let Parts { method, uri, version, headers, extensions, .. } = parts;
        Self { method, uri, version: *version, headers, scheme: scheme(extensions) }
    }
}

fn scheme(extensions: &Extensions) -> &'static str {
    if extensions.get::<OverTls>().is_some() { "https://" } else { "http://" }
}

/// Starts of the names of headers that proxies, balancers and content networks add.
const FORWARDING: [&str; 59] = [
    "akamai-",
    "apigw-",
    "cdn-",
    "cf-",
    "client-ip",
    "cloudfront-",
    "early-data",
    "fastly-",
    "fly-",
    "forwarded",
    "front-end-https",
    "incap-",
    "ngrok-",
    "proxy-",
    "remote-",
    "ssl-client-",
    "surrogate-",
    "tailscale-",
    "true-client-",
    "via",
    "wl-proxy-",
    "x-akamai-",
    "x-amz-cf-",
    "x-amzn-",
    "x-appengine-",
    "x-arr-",
    "x-auth-request-",
    "x-azure-",
    "x-bluecoat-",
    "x-cdn",
    "x-client-",
    "x-cloud-trace-",
    "x-cluster-",
    "x-coming-from",
    "x-edge-",
    "x-envoy-",
    "x-forward",
    "x-from-ip",
    "x-gateway-",
    "x-goog-",
    "x-haproxy-",
    "x-host",
    "x-http-host",
    "x-https",
    "x-iinfo",
    "x-ms-client-",
    "x-nf-",
    "x-original",
    "x-originating-",
    "x-proto",
    "x-proxy",
    "x-real-",
    "x-remote-",
    "x-scheme",
    "x-ssl",
    "x-sucuri-",
    "x-url-scheme",
    "x-varnish",
    "x-vercel-",
];

/// Refuses a request that another machine or another site may have caused. The reason follows "this request".
///
/// With `strict`, the request must also look like one that no proxy sent: nginx, for example, sends HTTP/1.0 unless it is
/// told otherwise.
pub(super) fn check_local(head: Head<'_>, strict: bool) -> Result<(), String> {
    check_forwarding(head.headers)?;
    if strict && head.version < Version::HTTP_11 {
        return Err(format!(
            "used {:?}, as nginx does for a proxy without `proxy_http_version 1.1`; expected HTTP/1.1 or HTTP/2",
            head.version
        ));
    }
    let host = find_host(head)?;
    check_site(head, host)
}

fn check_forwarding(headers: &HeaderMap) -> Result<(), String> {
    let added = |name: &&HeaderName| FORWARDING.iter().any(|start| name.as_str().starts_with(start));
    match headers.keys().find(added) {
        Some(name) => Err(format!("came through a proxy: it has the header {name}")),
        None => Ok(()),
    }
}

/// The request's host, if it names this machine whatever DNS says. HTTP/1.0 may have none.
fn find_host(head: Head<'_>) -> Result<Option<&str>, String> {
    let host = head.headers.get(header::HOST).map(HeaderValue::to_str).transpose();
    let host = host.map_err(|_| "has a Host that is not ASCII".to_owned())?;
    let target = head.uri.authority().map(Authority::as_str);
    if let (Some(host), Some(target)) = (host, target)
        && !host.eq_ignore_ascii_case(target)
    {
        return Err(format!("has the Host {host:?} and the address {target:?}"));
    }
    match host.or(target) {
        Some(host) if is_loopback(host) => Ok(Some(host)),
        Some(host) => Err(format!(
            "has the Host {host:?}; expected localhost, 127.0.0.1 or another loopback address, which DNS cannot redirect"
        )),
        None => Ok(None),
    }
}

/// A browser names the site whose page sent a request: in Origin, in Sec-Fetch-Site or, if it is old, in Referer. A page
/// cannot change what it is told, only leave Referer out, and then Origin is `null`.
fn check_site(head: Head<'_>, host: Option<&str>) -> Result<(), String> {
    let foreign = |name: HeaderName| {
        let ours = |value: &&HeaderValue| host.is_some_and(|host| is_page_of(value, head.scheme, host));
        head.headers.get_all(name).iter().find(|value| !ours(value))
    };
    if let Some(origin) = foreign(header::ORIGIN) {
        return Err(format!("was sent by a page of another site: its Origin is {origin:?}"));
    }
    // Any site may link to what a GET answers, and cannot read it.
    if matches!(*head.method, Method::GET | Method::HEAD) {
        return Ok(());
    }
    let sites = head.headers.get_all("sec-fetch-site");
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
    let place = value.to_str().ok().and_then(|text| text.strip_prefix(scheme));
    place.and_then(|place| place.split('/').next()).is_some_and(|place| place.eq_ignore_ascii_case(host))
}

/// Whether a host such as `localhost:8080`, `127.0.0.1` or `[::1]:8080` is this machine for everybody.
fn is_loopback(host: &str) -> bool {
    let Some(authority) = host.parse::<Authority>().ok().filter(|_| !host.contains('@')) else {
        return false;
    };
    let name = authority.host();
    let address = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<Ipv4Addr>().is_ok_and(|address| address.is_loopback())
        || address.and_then(|text| text.parse::<Ipv6Addr>().ok()).is_some_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_names_and_addresses_are_this_machine() {
        for own in ["localhost", "LocalHost:8080", "127.0.0.1:8080", "127.9.9.9", "[::1]:8080", "[::1]"] {
            assert!(is_loopback(own), "{own}");
        }
        for other in [
            "",
            "evil.example:8080",
            "localhost.evil.example",
            "localhost.",
            "127.0.0.1.evil.example",
            "evil@localhost",
            "10.0.0.7",
            "0.0.0.0",
            "127.1",
            "0x7f000001",
            "[::]",
            "[::ffff:127.0.0.1]",
            "::1",
            "[evil]",
            "localhost, evil.example",
        ] {
            assert!(!is_loopback(other), "{other}");
        }
    }

    #[test]
    fn a_page_belongs_to_its_scheme_host_and_port() {
        let is_ours =
            |page: &'static str| is_page_of(&HeaderValue::from_static(page), "http://", "localhost:8080");
        for ours in ["http://localhost:8080", "http://localhost:8080/docs", "http://LOCALHOST:8080/"] {
            assert!(is_ours(ours), "{ours}");
        }
        for foreign in [
            "null",
            "",
            "localhost:8080",
            "https://localhost:8080",
            "http://localhost",
            "http://localhost:80801",
            "http://localhost:8080.evil.example/",
            "http://127.0.0.1:8080",
            "http://localhost:8080@evil.example/",
        ] {
            assert!(!is_ours(foreign), "{foreign}");
        }
    }
}
