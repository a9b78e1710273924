//! The address that a request came from, for the audit log.

use std::net::{IpAddr, SocketAddr};

use axum::http::Extensions;

/// The other end of the request's connection, in the request's extensions. Behind a proxy it is the proxy: an address in a
/// header proves nothing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer(pub(crate) SocketAddr);

impl Peer {
    /// None without a connection.
    pub(crate) fn ip(extensions: &Extensions) -> Option<IpAddr> {
        extensions.get::<Self>().map(|peer| peer.0.ip().to_canonical())
    }
}
