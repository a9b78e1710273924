//! TLS of `atelier serve`: reading its files, and reading them again.

use std::{io, net::SocketAddr, sync::Arc};

use tokio::signal::unix::{SignalKind, signal};

use crate::{
    config::Server,
    platform::http::tls::{Tls, TlsError},
};

pub(super) fn read_tls(server: &Server) -> Result<Option<Arc<Tls>>, TlsError> {
    server.tls().map(|(certificate, key)| Tls::read(certificate, key).map(Arc::new)).transpose()
}

pub(super) fn warn_without_tls(tls: Option<&Tls>, listening: SocketAddr) {
    if tls.is_none() && !listening.ip().is_loopback() {
        tracing::warn!(
            "listening on {listening} without TLS: others on the network can read passwords and keys. Set \
             server.certificate and server.key, or let only a proxy with TLS reach this address"
        );
    }
}

/// Reads certificate and key again at each SIGHUP from now on, until the future is dropped. Without TLS the signal does
/// nothing, except that it ends the demo with its terminal.
pub(super) fn reload_on_hangup(
    tls: Option<Arc<Tls>>,
    is_demo: bool,
) -> io::Result<impl Future<Output = ()> + Send> {
    let mut hangup = if is_demo && tls.is_none() { None } else { Some(signal(SignalKind::hangup())?) };
    Ok(async move {
        while let Some(hangup) = &mut hangup
            && hangup.recv().await.is_some()
        {
            match tls.as_ref().map(|tls| tls.reload()) {
                None => tracing::info!("SIGHUP reads the certificate again, and there is none"),
                Some(Ok(())) => tracing::info!("new connections use the certificate that was just read"),
                Some(Err(error)) => tracing::error!(%error, "the certificate in use stays"),
            }
        }
    })
}
