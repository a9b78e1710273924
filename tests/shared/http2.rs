//! A certificate for the service's own TLS, and a caller of HTTP/2 that decides how much of its answers it takes.

use std::{path::Path, process::Command, sync::Arc};

use anyhow::{Context, Result, ensure};
use axum::http::Request;
use h2::{
    Ping, PingPong, RecvStream,
    client::{Builder, SendRequest},
};
use tokio::{net::TcpStream, task::JoinHandle};
use tokio_rustls::{
    TlsConnector,
    rustls::{
        ClientConfig, RootCertStore,
        crypto::ring,
        pki_types::{CertificateDer, ServerName, pem::PemObject},
    },
};

pub struct Caller {
    requests: SendRequest<&'static [u8]>,
    pings: PingPong,
    address: String,
    /// Ends with the connection: with an error if it was cut.
    pub connection: JoinHandle<Result<(), h2::Error>>,
}

impl Caller {
    /// Connects to a service that has a certificate for 127.0.0.1 of this authority. Each answer may send `window` bytes
    /// until the caller takes some.
    pub async fn connect(address: &str, authority: &Path, window: u32) -> Result<Self> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(authority)?)?;
        let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec()];
        let stream = TcpStream::connect(address).await?;
        let name = ServerName::try_from("127.0.0.1")?;
        let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
        let (requests, mut connection) = Builder::new().initial_window_size(window).handshake(stream).await?;
        let pings = connection.ping_pong().context("it is taken once")?;
        Ok(Self { requests, pings, address: address.to_owned(), connection: tokio::spawn(connection) })
    }

    pub async fn ping(&mut self) -> Result<()> {
        self.pings.ping(Ping::opaque()).await?;
        Ok(())
    }

    /// The body of the answer to GET, of which nothing is taken yet.
    pub async fn get(&self, path: &str) -> Result<RecvStream> {
        let request = Request::get(format!("https://{}{path}", self.address));
        let request = request.header("accept-encoding", "gzip").body(())?;
        let (answer, _) = self.requests.clone().ready().await?.send_request(request, true)?;
        let answer = answer.await?;
        ensure!(answer.status().is_success(), "{path}: {}", answer.status());
        Ok(answer.into_body())
    }
}

/// Takes a body as it comes.
pub async fn take(mut body: RecvStream) -> Result<usize> {
    let mut length = 0;
    while let Some(bytes) = body.data().await {
        let bytes = bytes.context("the answer broke off")?;
        length += bytes.len();
        body.flow_control().release_capacity(bytes.len())?;
    }
    Ok(length)
}

/// A certificate for `localhost` and 127.0.0.1 from an authority of the test's own, all in one folder: `ca.pem`,
/// `certificate.pem` and `key.pem`.
pub fn issue_certificate(folder: &Path) {
    let openssl = |arguments: &str| {
        let mut command = Command::new("openssl");
        let output = command.current_dir(folder).args(arguments.split(' ')).output().unwrap();
        assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
    };
    let key = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes";
    openssl(&format!(
        "req -x509 {key} -keyout ca-key.pem -out ca.pem -subj /CN=authority -addext basicConstraints=critical,CA:TRUE"
    ));
    openssl(&format!(
        "req {key} -keyout key.pem -out request.pem -subj /CN=localhost -addext \
         subjectAltName=DNS:localhost,IP:127.0.0.1"
    ));
    openssl(
        "x509 -req -in request.pem -CA ca.pem -CAkey ca-key.pem -out certificate.pem -days 7 -copy_extensions copy",
    );
}
