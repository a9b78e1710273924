//! TLS in front of a test's own server, with a certificate of the test's own that only `SSL_CERT_FILE` makes trusted.

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
};

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

pub struct Tls {
    pub port: u16,
    folder: TempDir,
}

impl Tls {
    /// Passes on to `host:port` what callers send to `localhost`.
    pub async fn start(server: String) -> Self {
        let folder = TempDir::new().unwrap();
        let certificate = make_certificate(folder.path());
        let key = PrivateKeyDer::from_pem_file(folder.path().join("key.pem")).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![CertificateDer::from_pem_file(certificate).unwrap()], key)
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
    pub fn certificate(&self) -> PathBuf {
        self.folder.path().join("certificate.pem")
    }
}

fn make_certificate(folder: &Path) -> PathBuf {
    let key = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout key.pem";
    let certificate = "-out certificate.pem -subj /CN=localhost -addext subjectAltName=DNS:localhost \
                       -addext basicConstraints=critical,CA:FALSE";
    let mut command = Command::new("openssl");
    command.current_dir(folder).args(key.split(' ')).args(certificate.split(' '));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    folder.join("certificate.pem")
}
