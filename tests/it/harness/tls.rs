//! TLS in front of a test's own server, with an authority of the test's own that only `SSL_CERT_FILE` makes trusted.

use std::{path::PathBuf, sync::Arc};

use tempfile::TempDir;
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        crypto::ring,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    },
};

use crate::http2::issue_certificate;

pub struct Tls {
    pub port: u16,
    folder: TempDir,
}

impl Tls {
    /// Passes on to `host:port` what callers send to `localhost`.
    pub async fn start(server: String) -> Self {
        let folder = TempDir::new().unwrap();
        issue_certificate(folder.path());
        let certificate = CertificateDer::from_pem_file(folder.path().join("certificate.pem")).unwrap();
        let key = PrivateKeyDer::from_pem_file(folder.path().join("key.pem")).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, server) = (acceptor.clone(), server.clone());
                tokio::spawn(async move {
                    // A caller that does not trust the certificate hangs up.
                    let Ok(mut stream) = acceptor.accept(stream).await else { return };
                    let mut server = TcpStream::connect(server).await.unwrap();
                    let _ = copy_bidirectional(&mut stream, &mut server).await;
                });
            }
        });
        Self { port, folder }
    }

    /// For `SSL_CERT_FILE`.
    pub fn authority(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }
}
