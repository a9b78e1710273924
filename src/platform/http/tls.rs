//! The service's own TLS: its certificate and key, read at start and again when they are replaced.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, PoisonError, RwLock},
};

use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        Error, InconsistentKeys, ServerConfig,
        crypto::ring,
        pki_types::{
            CertificateDer, PrivateKeyDer,
            pem::{self, PemObject},
        },
    },
};

/// As a TLS handshake names it.
pub(crate) const HTTP_2: &[u8] = b"h2";

/// A certificate with its key, and the files that they come from.
pub struct Tls {
    certificate: PathBuf,
    key: PathBuf,
    acceptor: RwLock<TlsAcceptor>,
}

/// Why TLS cannot be used. Each begins with the setting that names the file.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("{setting}: cannot read {}: {reason}; name a readable PEM file", path.display())]
    Read { setting: &'static str, path: PathBuf, reason: String },
    #[error("{setting}: {} has no {expected}; name a PEM file with one", path.display())]
    Empty { setting: &'static str, path: PathBuf, expected: &'static str },
    #[error(
        "server.key: {} is not the key of the certificate {}; name the key that it was made with",
        key.display(), certificate.display()
    )]
    Mismatch { certificate: PathBuf, key: PathBuf },
    #[error("server.certificate: {} cannot be used: {reason}", certificate.display())]
    Unusable { certificate: PathBuf, reason: String },
}

impl Tls {
    /// Reads the files, which are PEM: the certificate with those of its authorities after it, and its private key.
    pub fn read(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        let acceptor = RwLock::new(acceptor(certificate, key)?);
        Ok(Self { certificate: certificate.to_owned(), key: key.to_owned(), acceptor })
    }

    /// Reads the files again, for new connections. After an error the old ones stay.
    pub fn reload(&self) -> Result<(), TlsError> {
        let acceptor = acceptor(&self.certificate, &self.key)?;
        *self.acceptor.write().unwrap_or_else(PoisonError::into_inner) = acceptor;
        Ok(())
    }

    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        self.acceptor.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Without the key.
impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls").field("certificate", &self.certificate).finish_non_exhaustive()
    }
}

fn acceptor(certificate: &Path, key: &Path) -> Result<TlsAcceptor, TlsError> {
    let setting = "server.certificate";
    let read = |error| explain(error, setting, certificate, "certificate");
    let chain = CertificateDer::pem_file_iter(certificate).map_err(read)?;
    let chain: Vec<_> = chain.collect::<Result<_, _>>().map_err(read)?;
    if chain.is_empty() {
        return Err(TlsError::Empty { setting, path: certificate.to_owned(), expected: "certificate" });
    }
    let secret = PrivateKeyDer::from_pem_file(key);
    let secret = secret.map_err(|error| explain(error, "server.key", key, "private key"))?;
    let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the provider has the default versions");
    let config = builder.with_no_client_auth().with_single_cert(chain, secret);
    let mut config = config.map_err(|error| match error {
        Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
            TlsError::Mismatch { certificate: certificate.to_owned(), key: key.to_owned() }
        }
        error => TlsError::Unusable { certificate: certificate.to_owned(), reason: error.to_string() },
    })?;
    config.alpn_protocols = vec![HTTP_2.to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn explain(error: pem::Error, setting: &'static str, path: &Path, expected: &'static str) -> TlsError {
    let path = path.to_owned();
    match error {
        pem::Error::NoItemsFound => TlsError::Empty { setting, path, expected },
        pem::Error::Io(error) => TlsError::Read { setting, path, reason: error.to_string() },
        error => TlsError::Read { setting, path, reason: error.to_string() },
    }
}
