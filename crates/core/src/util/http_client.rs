//! The HTTP requests that Atelier itself makes: to a model server, to a trace collector, and to itself for a health
//! check. `fetch` asks for feeds, whose servers are strangers.
//!
//! For threads that may block: one deadline covers name lookup, connection, TLS, request and answer. No redirects and
//! no proxies: both ends belong to the operator. Must not know what a request is for.

use std::{
    fmt, io,
    sync::{Arc, LazyLock, Mutex, PoisonError},
    time::{Duration, Instant},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use percent_encoding::percent_decode_str;
use serde::Deserialize;
use ureq::{
    Agent, AsSendBody, Error,
    config::{Config, ConfigBuilder},
    http::{HeaderMap, HeaderValue, Request, Uri, header::AUTHORIZATION},
    tls::{Certificate, RootCerts, TlsConfig},
    typestate::AgentScope,
    unversioned::{
        resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver},
        transport::{DefaultConnector, NextTimeout},
    },
};
use url::Url;

/// An answer with its whole body.
pub type Response = ureq::http::Response<Vec<u8>>;

/// How long a connection without requests is kept.
const MAX_IDLE: Duration = Duration::from_mins(1);

/// Asks one server over one connection, which stays open between requests.
#[derive(Debug)]
pub struct Client {
    origin: Origin,
    agent: Agent,
    addresses: Addresses,
    /// Whether the last request was answered, so that its connection may still be open.
    kept: bool,
}

/// A server's `http://host:port` or `https://host:port`, with a path that it may be mounted under, and credentials.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Origin {
    /// Without the credentials, and without a slash at the end.
    url: String,
    /// Marked as sensitive, so that nothing prints it.
    authorization: Option<HeaderValue>,
}

/// The text is not a server's URL.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected http://HOST:PORT or https://HOST:PORT, found {0:?}")]
pub struct NoOrigin(String);

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    #[error("{origin} cannot be reached: {source}")]
    Unreachable { origin: Origin, source: io::Error },
    #[error(
        "TLS with {origin} failed: {reason}; check that it speaks TLS, and that SSL_CERT_FILE names the authority of \
         its certificate if that is your own"
    )]
    Tls { origin: Origin, reason: String },
    #[error("{origin} did not answer in time")]
    Late { origin: Origin },
    #[error("{origin} did not answer as an HTTP server does: {reason}")]
    Answer { origin: Origin, reason: String },
}

impl Client {
    pub fn new(origin: Origin) -> Self {
        Self::trusting(origin, trusted)
    }

    /// For a program that asks itself, under another name than its certificate has.
    pub fn without_verification(origin: Origin) -> Self {
        Self::trusting(origin, || TlsConfig::builder().disable_verification(true).build())
    }

    fn trusting(origin: Origin, tls: impl FnOnce() -> TlsConfig) -> Self {
        let mut config = configure().max_idle_connections(1).max_idle_age(MAX_IDLE);
        if origin.is_https() {
            config = config.tls_config(tls());
        }
        let addresses = Addresses::default();
        let agent = Agent::with_parts(config.build(), DefaultConnector::default(), addresses.clone());
        Self { origin, agent, addresses, kept: false }
    }

    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// `most` is the most bytes of the answer's body.
    pub fn get(&mut self, path: &str, most: u64, deadline: Instant) -> Result<Response, HttpError> {
        let mut request = Request::new(());
        *request.uri_mut() = self.origin.uri(path);
        self.send(request, most, deadline)
    }

    /// The request may arrive twice: if a kept connection turns out to be closed, it is sent again over a new one.
    pub fn post(
        &mut self,
        path: &str,
        headers: HeaderMap,
        body: &[u8],
        most: u64,
        deadline: Instant,
    ) -> Result<Response, HttpError> {
        let mut request = Request::post(self.origin.uri(path)).body(body).expect("it has a URI");
        *request.headers_mut() = headers;
        self.send(request, most, deadline)
    }

    fn send<B: AsSendBody + Clone>(
        &mut self,
        mut request: Request<B>,
        most: u64,
        deadline: Instant,
    ) -> Result<Response, HttpError> {
        if let Some(authorization) = &self.origin.authorization {
            request.headers_mut().entry(AUTHORIZATION).or_insert_with(|| authorization.clone());
        }
        let mut answer = self.exchange(request.clone(), most, deadline);
        if self.kept && matches!(answer, Err(Error::Io(_))) {
            // Perhaps the server closed the connection, or moved to another address; only a new connection tells.
            self.addresses.forget();
            answer = self.exchange(request, most, deadline);
        }
        self.kept = answer.is_ok();
        answer.map_err(|error| {
            self.addresses.forget();
            explain(self.origin.clone(), error)
        })
    }

    fn exchange(
        &self,
        request: Request<impl AsSendBody>,
        most: u64,
        deadline: Instant,
    ) -> Result<Response, Error> {
        let left = deadline.saturating_duration_since(Instant::now());
        let request = self.agent.configure_request(request).timeout_global(Some(left)).build();
        let (head, mut body) = self.agent.run(request)?.into_parts();
        let body = body.with_config().limit(most).read_to_vec()?;
        Ok(Response::from_parts(head, body))
    }
}

/// An agent that follows no redirects, uses no proxies, and leaves the status to the caller.
pub(super) fn configure() -> ConfigBuilder<AgentScope> {
    Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .proxy(None)
        .user_agent(concat!("atelier/", env!("CARGO_PKG_VERSION")))
}

pub(super) fn trusted() -> TlsConfig {
    TlsConfig::builder().root_certs(AUTHORITIES.clone()).build()
}

pub(super) fn explain(origin: Origin, error: Error) -> HttpError {
    match error {
        Error::Timeout(_) => HttpError::Late { origin },
        // How rustls reports its errors where a socket is expected.
        Error::Io(error) if error.kind() == io::ErrorKind::InvalidData && origin.is_https() => {
            HttpError::Tls { origin, reason: error.to_string() }
        }
        Error::Rustls(error) => HttpError::Tls { origin, reason: error.to_string() },
        Error::Io(source) => HttpError::Unreachable { origin, source },
        Error::HostNotFound => {
            let source = io::Error::new(io::ErrorKind::NotFound, "its name has no address");
            HttpError::Unreachable { origin, source }
        }
        other => HttpError::Answer { origin, reason: other.to_string() },
    }
}

/// The server's addresses, kept while it answers: ureq looks them up for each request, even where it needs no new
/// connection.
#[derive(Debug, Clone, Default)]
struct Addresses(Arc<Mutex<Option<ResolvedSocketAddrs>>>);

impl Addresses {
    fn forget(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl Resolver for Addresses {
    fn resolve(
        &self,
        uri: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, Error> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.is_none() {
            *kept = Some(DefaultResolver::default().resolve(uri, config, timeout)?);
        }
        let mut addresses = self.empty();
        kept.iter().flatten().for_each(|address| addresses.push(*address));
        Ok(addresses)
    }
}

/// The authorities that this machine trusts, or those of `SSL_CERT_FILE` and `SSL_CERT_DIR` alone. A machine without
/// any, such as a slim container, trusts Mozilla's.
static AUTHORITIES: LazyLock<RootCerts> = LazyLock::new(|| {
    let found = rustls_native_certs::load_native_certs();
    for error in &found.errors {
        tracing::warn!(%error, "certificates of authorities cannot be read");
    }
    if found.certs.is_empty() {
        return RootCerts::WebPki;
    }
    found.certs.iter().map(|certificate| Certificate::from_der(certificate).to_owned()).into()
});

impl Origin {
    /// `http://host`, `https://user:password@host:port`, any of them with a path behind. Credentials are
    /// percent-encoded, as in any URL.
    pub fn parse(url: &str) -> Result<Self, NoOrigin> {
        Self::read(url).ok_or_else(|| {
            // A password may stand before the last `@`.
            let shown = url.rsplit_once('@').map(|(_, rest)| format!("…@{rest}"));
            NoOrigin(shown.unwrap_or_else(|| url.to_owned()))
        })
    }

    fn read(text: &str) -> Option<Self> {
        let mut url = Url::parse(text).ok()?;
        let only_path = url.query().is_none() && url.fragment().is_none() && !url.path().contains('@');
        if !["http", "https"].contains(&url.scheme()) || !only_path {
            return None;
        }
        let authorization = take_credentials(&mut url);
        Some(Self { url: url.as_str().trim_end_matches('/').to_owned(), authorization })
    }

    /// The server of a URL.
    pub(super) fn of(url: &Url) -> Self {
        Self { url: url.origin().ascii_serialization(), authorization: None }
    }

    fn is_https(&self) -> bool {
        self.url.starts_with("https://")
    }

    /// `path` starts with a slash.
    fn uri(&self, path: &str) -> Uri {
        format!("{}{path}", self.url).parse().expect("an origin with a path is a URI")
    }
}

impl TryFrom<String> for Origin {
    type Error = NoOrigin;

    fn try_from(url: String) -> Result<Self, NoOrigin> {
        Self::parse(&url)
    }
}

/// Never with the credentials.
impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.url)
    }
}

/// Takes the credentials out of an http URL, as basic authentication.
pub(super) fn take_credentials(url: &mut Url) -> Option<HeaderValue> {
    let (user, password) = (url.username(), url.password());
    if user.is_empty() && password.is_none() {
        return None;
    }
    let credentials = format!("{user}:{}", password.unwrap_or_default());
    let decoded: Vec<u8> = percent_decode_str(&credentials).collect();
    let mut value = HeaderValue::try_from(format!("Basic {}", STANDARD.encode(decoded)))
        .expect("base64 fits into a header");
    value.set_sensitive(true);
    url.set_username("").and_then(|()| url.set_password(None)).expect("it has a host");
    Some(value)
}

#[cfg(test)]
pub(super) mod tests {
    use std::{
        io::{Read, Write},
        net::{SocketAddr, TcpListener},
        thread::{self, JoinHandle},
    };

    use super::*;

    /// Answers one connection after the other, each with these bytes in turn, and returns what it was sent.
    pub(in crate::util) fn serve(connections: Vec<Vec<Vec<u8>>>) -> (SocketAddr, JoinHandle<Vec<String>>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let served = thread::spawn(move || {
            let mut requests = Vec::new();
            for answers in connections {
                let (mut stream, _) = listener.accept().unwrap();
                for answer in answers {
                    let mut buffer = [0; 4096];
                    let read = stream.read(&mut buffer).unwrap();
                    requests.push(String::from_utf8_lossy(&buffer[..read]).into_owned());
                    // The client may have enough before the end.
                    let _ = stream.write_all(&answer);
                }
            }
            requests
        });
        (address, served)
    }

    fn server(connections: Vec<Vec<&'static str>>) -> (SocketAddr, JoinHandle<Vec<String>>) {
        let answers = |texts: Vec<&str>| texts.into_iter().map(|text| text.as_bytes().to_vec()).collect();
        serve(connections.into_iter().map(answers).collect())
    }

    fn client(address: SocketAddr) -> Client {
        Client::new(Origin::parse(&format!("http://me:p%40ss@{address}/models/")).unwrap())
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(10)
    }

    #[test]
    fn a_connection_is_kept_and_replaced_once_it_is_closed() {
        let (address, served) = server(vec![
            vec![
                "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nab",
                "HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n",
            ],
            vec!["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\nab\r\n1\r\nc\r\n0\r\n\r\n"],
            vec!["HTTP/1.0 200 OK\r\nX-A: b\r\n\r\nto the end"],
        ]);
        let mut client = client(address);
        let mut ask = || client.get("/x", 1 << 10, soon()).unwrap();
        assert_eq!((ask().body().as_slice(), ask().status().as_u16()), (&b"ab"[..], 404));
        assert_eq!(ask().body(), b"abc");
        let last = ask();
        assert_eq!(
            (last.body().as_slice(), last.headers()["x-a"].as_bytes()),
            (&b"to the end"[..], &b"b"[..])
        );
        let requests = served.join().unwrap();
        assert_eq!(requests.len(), 4);
        let head = requests[0].to_lowercase();
        assert!(head.starts_with("get /models/x http/1.1\r\n"), "{head}");
        assert!(head.contains(&format!("\r\nhost: {address}\r\n")), "{head}");
        // me:p@ss
        assert!(requests[0].contains("Basic bWU6cEBzcw=="), "{head}");
    }

    #[test]
    fn errors_say_what_happened() {
        let (address, served) = server(vec![vec!["HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"]]);
        let ask = |address| client(address).get("/", 1 << 10, soon()).unwrap_err();
        assert!(matches!(ask(address), HttpError::Unreachable { .. }));
        served.join().unwrap();
        let error = ask(address).to_string();
        assert!(error.starts_with(&format!("http://{address}/models cannot be reached: ")), "{error}");
        let (address, _served) = server(vec![vec!["SSH-2.0-OpenSSH\r\n\r\n"]]);
        assert!(matches!(ask(address), HttpError::Answer { .. }));

        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = client(silent.local_addr().unwrap());
        let error = client.get("/", 1 << 10, Instant::now() + Duration::from_millis(30)).unwrap_err();
        assert!(matches!(error, HttpError::Late { .. }), "{error}");
    }

    #[test]
    fn a_body_is_read_up_to_its_limit() {
        let (address, _served) = server(vec![vec!["HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc"]]);
        assert_eq!(client(address).get("/", 3, soon()).unwrap().body(), b"abc");
        let chunked = |body: &str| format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{body}");
        for (answer, most) in [
            ("HTTP/1.1 200 OK\r\nContent-Length: 999999999999\r\n\r\nabcd".to_owned(), 3),
            (chunked("ffffffffffffffff\r\nabcd"), 3),
            (chunked("2\r\nab\r\n2\r\ncd\r\n0\r\n\r\n"), 3),
            ("HTTP/1.0 200 OK\r\n\r\nabcd".to_owned(), 3),
            (chunked("10000000000000000\r\nabcd"), 1 << 10),
            (chunked("-1\r\nabcd"), 1 << 10),
        ] {
            let (address, _served) = serve(vec![vec![answer.clone().into_bytes()]]);
            let error = client(address).get("/", most, soon()).unwrap_err();
            assert!(matches!(error, HttpError::Answer { .. }), "{answer}: {error}");
            assert_eq!(error.to_string().contains("limit: 3"), most == 3, "{answer}: {error}");
        }
    }

    #[test]
    fn a_server_is_named_by_its_url() {
        for (url, shown) in [
            ("http://triton:8000/", "http://triton:8000"),
            ("http://models", "http://models"),
            ("https://[::1]:80/a/b", "https://[::1]:80/a/b"),
            ("https://u:p@triton/v", "https://triton/v"),
        ] {
            assert_eq!(Origin::parse(url).unwrap().to_string(), shown);
        }
        let refused = "ftp://triton|triton:8000|http://|http://:80|http://a:b|http://a b|http://a/?b";
        for refused in refused.split('|') {
            assert!(Origin::parse(refused).is_err(), "{refused}");
        }
    }

    #[test]
    fn credentials_are_never_printed() {
        let origin = Origin::parse("https://me:secret@triton").unwrap();
        assert!(!format!("{origin} {origin:?}").contains("secret"));
        let client = Client::new(Origin::parse("http://me:secret@triton").unwrap());
        assert!(!format!("{client:?}").contains("secret"));
        for wrong in ["me:secret@triton", "https://me:sec/ret@triton", "https://me:secret@triton#a"] {
            let error = Origin::parse(wrong).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("ret"), "{error}");
        }
    }
}
