//! The address that a request came from.

use std::net::{IpAddr, SocketAddr};

use axum::{
    extract::Request,
    http::{Extensions, HeaderMap, HeaderValue},
};

use crate::config::Networks;

/// The other end of the request's connection, in the request's extensions; or the caller that a trusted proxy names. An address in a
/// header proves nothing else.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer(pub(crate) SocketAddr);

impl Peer {
    /// None without a connection.
    pub(crate) fn ip(extensions: &Extensions) -> Option<IpAddr> {
        extensions.get::<Self>().map(|peer| peer.0.ip().to_canonical())
    }

    pub(crate) fn see_through(trusted: &Networks, request: &mut Request) {
        let Some(peer) = Self::ip(request.extensions()) else { return };
        let caller = caller(peer, request.headers(), trusted);
        if caller != peer {
            request.extensions_mut().insert(Self(SocketAddr::new(caller, 0)));
        }
    }
}

/// Each proxy appends its own caller, so only what trusted ones appended counts.
fn caller(peer: IpAddr, headers: &HeaderMap, trusted: &Networks) -> IpAddr {
    let lines = headers.get_all("x-forwarded-for").iter().map(HeaderValue::as_bytes);
    let named: Vec<&[u8]> = lines.flat_map(|line| line.split(|byte| *byte == b',')).collect();
    let mut caller = peer;
    for named in named.into_iter().rev() {
        let named = str::from_utf8(named).unwrap_or_default().trim();
        let bare = named.strip_prefix('[').and_then(|named| named.strip_suffix(']')).unwrap_or(named);
        let address = bare.parse().or_else(|_| named.parse::<SocketAddr>().map(|with_port| with_port.ip()));
        match address {
            Ok(address) if trusted.contain(caller) => caller = address.to_canonical(),
            _ => break,
        }
    }
    caller
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_trusted_proxies_name_their_caller() {
        let trusted = Networks::parse("10.0.0.0/8 ::1").unwrap();
        for (peer, named, expected) in [
            // A stranger's word.
            ("192.0.2.1", &["203.0.113.9"][..], "192.0.2.1"),
            ("10.0.0.1", &[], "10.0.0.1"),
            ("10.0.0.1", &["203.0.113.9"], "203.0.113.9"),
            ("::1", &["203.0.113.9:1234"], "203.0.113.9"),
            // The caller's own claims come before.
            ("10.0.0.1", &["6.6.6.6, 203.0.113.9, 10.9.9.9"], "203.0.113.9"),
            ("10.0.0.1", &["6.6.6.6", "2001:db8::7"], "2001:db8::7"),
            ("10.0.0.1", &["6.6.6.6, nonsense"], "10.0.0.1"),
            ("10.0.0.1", &["::ffff:203.0.113.9"], "203.0.113.9"),
            ("10.0.0.1", &["[2001:db8::7]"], "2001:db8::7"),
            // One part that is no text hides no other.
            ("10.0.0.1", &["\u{ff}, 203.0.113.9"], "203.0.113.9"),
        ] {
            let bytes = |line: &&str| line.chars().map(|char| char as u8).collect::<Vec<u8>>();
            let value = |line| HeaderValue::from_bytes(&bytes(line)).unwrap();
            let lines = named.iter().map(|line| ("x-forwarded-for".parse().unwrap(), value(line)));
            let found = caller(peer.parse().unwrap(), &lines.collect(), &trusted).to_string();
            assert_eq!(found, expected, "{peer} {named:?}");
        }
    }
}
