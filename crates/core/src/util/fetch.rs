//! Fetches a file from a server that may be anyone's, for a service that can reach more than its caller.
//!
//! Each connection uses an address that this request resolved and checked. Neither a redirect nor a changed DNS answer leads
//! to a private network. For threads that may block. Must not know what is in the file.

use std::{
    fmt,
    io::{self, BufRead, BufReader, Write},
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    time::{Duration, Instant},
};

use flate2::bufread::MultiGzDecoder;
use sha2::{Digest, Sha256};
use ureq::{
    Agent, Body, Error, Timeout,
    config::Config,
    http::{
        HeaderName, HeaderValue, Request, Response, StatusCode, Uri,
        header::{
            ACCEPT_ENCODING, AUTHORIZATION, CONTENT_ENCODING, ETAG, IF_MODIFIED_SINCE, IF_NONE_MATCH,
            LAST_MODIFIED, LOCATION,
        },
    },
    unversioned::{
        resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver},
        transport::{DefaultConnector, NextTimeout},
    },
};
use url::{Host, Url};

use super::http_client::{HttpError, Origin, configure, explain, take_credentials, trusted};

const REDIRECTS: usize = 5;
const PIECE: usize = 1 << 16;
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// The most bytes of a header that the next request sends back.
const VALIDATOR: usize = 1024;

/// Where a file is, with the credentials for its server.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    /// Without credentials and fragment.
    url: Url,
    authorization: Option<HeaderValue>,
}

/// Which servers may be asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Reach {
    /// Servers of the internet, over https.
    #[default]
    Public,
    /// Also this machine and private networks, over http too.
    Private,
}

/// How much is fetched, and how long it may take.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    pub reach: Reach,
    /// Bytes of the file once it is inflated.
    pub bytes: u64,
    pub deadline: Instant,
    /// How long the server may take for its first byte, and for each `stall_bytes` after it.
    pub stall: Duration,
    pub stall_bytes: u64,
}

/// By what a server tells whether a file has changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Validators {
    pub etag: Option<String>,
    pub last_modified: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fetched {
    /// The server says that the file is the one with these validators.
    Unchanged,
    /// The file was written, inflated if it was compressed.
    Written { validators: Validators, sha256: String },
}

/// The text is not the address of a file, or its server is not asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    #[error("expected an address such as https://shop.example/feed.xml")]
    NoUrl,
    #[error(
        "expected an address that begins with https://; http:// is for private networks, which feeds.private_addresses \
         in atelier.toml allows"
    )]
    NotHttps,
    #[error(
        "the address leads to a private network or to this machine; if that is meant, set feeds.private_addresses = true \
         in atelier.toml"
    )]
    Private,
    #[error("the address leads to a network that serves no files, such as a cloud's metadata or multicast")]
    Never,
    #[error("the address begins with http:// and leads to the internet; use https://")]
    Plain,
}

/// Why a file was not fetched. Says nothing of what the server sent.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    #[error("{origin}: {reason}")]
    Address { origin: Origin, reason: AddressError },
    #[error(transparent)]
    Http(#[from] HttpError),
    #[error("{origin} answered with status {status}; {}", advice(*status))]
    Status { origin: Origin, status: u16 },
    #[error("more than {REDIRECTS} redirects; give the address at which the file is")]
    Redirects,
    #[error("{origin} redirects to an address that cannot be read; give the address at which the file is")]
    Location { origin: Origin },
    #[error("{origin} redirects from https:// to http://; give an address that stays at https://")]
    Downgrade { origin: Origin },
    #[error("{origin} sent an encoding other than gzip, although only gzip was asked for")]
    Encoding { origin: Origin },
    #[error("the file from {origin} says that it is in gzip, and cannot be inflated")]
    Gzip { origin: Origin },
    #[error("the file has more than {most} bytes (limits.bulk_bytes)")]
    TooLarge { most: u64 },
    #[error("{origin} sends too slowly: less than {bytes} bytes in {} s (limits.transfer_ms)", within.as_secs())]
    Stalled { origin: Origin, bytes: u64, within: Duration },
    #[error("the file cannot be written to a temporary file: {0}")]
    Disk(io::Error),
}

fn advice(status: u16) -> &'static str {
    match status {
        401 | 403 => "check the credentials",
        404 | 410 => "check the address",
        429 | 500.. => "the server may be busy",
        _ => "expected 200 or 304",
    }
}

impl Address {
    /// `https://user:password@host/path?query`.
    pub fn parse(text: &str, reach: Reach) -> Result<Self, AddressError> {
        let mut url = Url::parse(text).map_err(|_| AddressError::NoUrl)?;
        let authorization = match url.scheme() {
            "http" | "https" => take_credentials(&mut url),
            _ => return Err(AddressError::NoUrl),
        };
        url.set_fragment(None);
        check(&url, reach)?;
        Ok(Self { url, authorization })
    }

    /// A value of the header `Authorization`.
    pub fn with_authorization(self, value: &str) -> Option<Self> {
        let mut authorization = HeaderValue::try_from(value).ok()?;
        authorization.set_sensitive(true);
        Some(Self { authorization: Some(authorization), ..self })
    }

    pub fn authorization(&self) -> Option<&str> {
        self.authorization.as_ref()?.to_str().ok()
    }

    /// With the values of the query, which may be secrets, and without the credentials.
    pub fn full(&self) -> &str {
        self.url.as_str()
    }

    /// Whether what is a secret between us and one server is none of the other's.
    pub fn same_origin(&self, other: &Self) -> bool {
        self.url.origin() == other.url.origin()
    }
}

/// Without the values of the query and without the credentials.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(query) = self.url.query() else { return f.write_str(self.url.as_str()) };
        let (before, _) = self.url.as_str().split_once('?').expect("it has a query");
        let hide =
            |part: &str| part.split_once('=').map_or("…".to_owned(), |(name, _)| format!("{name}=…"));
        let shown: Vec<String> = query.split('&').map(hide).collect();
        write!(f, "{before}?{}", shown.join("&"))
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Writes the file at the address to `out`, unless it is the one with these validators.
pub fn fetch(
    address: &Address,
    validators: &Validators,
    bounds: Bounds,
    out: &mut impl Write,
) -> Result<Fetched, FetchError> {
    let mut url = address.url.clone();
    let mut authorization = address.authorization.clone();
    for _ in 0..=REDIRECTS {
        let origin = Origin::of(&url);
        let mut answer = ask(&url, authorization.as_ref(), validators, bounds)
            .map_err(|error| refine(origin.clone(), bounds, error))?;
        match answer.status() {
            StatusCode::OK => return receive(&mut answer, origin, bounds, out),
            StatusCode::NOT_MODIFIED if *validators != Validators::default() => {
                return Ok(Fetched::Unchanged);
            }
            StatusCode::MOVED_PERMANENTLY
            | StatusCode::FOUND
            | StatusCode::SEE_OTHER
            | StatusCode::TEMPORARY_REDIRECT
            | StatusCode::PERMANENT_REDIRECT => {
                let next =
                    redirected(&url, &answer).ok_or(FetchError::Location { origin: origin.clone() })?;
                if url.scheme() == "https" && next.scheme() == "http" {
                    return Err(FetchError::Downgrade { origin });
                }
                check(&next, bounds.reach)
                    .map_err(|reason| FetchError::Address { origin: Origin::of(&next), reason })?;
                if next.origin() != url.origin() {
                    authorization = None;
                }
                url = next;
            }
            status => return Err(FetchError::Status { origin, status: status.as_u16() }),
        }
    }
    Err(FetchError::Redirects)
}

/// Asks over a new connection: a kept one would go to an address that another request has checked.
fn ask(
    url: &Url,
    authorization: Option<&HeaderValue>,
    validators: &Validators,
    bounds: Bounds,
) -> Result<Response<Body>, Error> {
    let config = configure()
        .max_idle_connections(0)
        .timeout_global(Some(bounds.deadline.saturating_duration_since(Instant::now())))
        .timeout_resolve(Some(bounds.stall))
        .timeout_connect(Some(bounds.stall))
        // All of the headers, which could come byte by byte.
        .timeout_recv_response(Some(bounds.stall))
        .timeout_per_read(Some(bounds.stall))
        .tls_config(trusted())
        .build();
    let agent = Agent::with_parts(config, DefaultConnector::default(), Checked(bounds.reach));
    let mut request = Request::get(url.as_str()).header(ACCEPT_ENCODING, "gzip").body(())?;
    let headers = request.headers_mut();
    let mut set =
        |name: HeaderName, value: Option<HeaderValue>| value.map(|value| headers.insert(name, value));
    let value = |text: &Option<String>| text.as_ref().and_then(|text| HeaderValue::try_from(text).ok());
    set(AUTHORIZATION, authorization.cloned());
    set(IF_NONE_MATCH, value(&validators.etag));
    set(IF_MODIFIED_SINCE, value(&validators.last_modified));
    agent.run(request)
}

fn redirected(url: &Url, answer: &Response<Body>) -> Option<Url> {
    let mut next = url.join(answer.headers().get(LOCATION)?.to_str().ok()?).ok()?;
    if !["http", "https"].contains(&next.scheme()) {
        return None;
    }
    // The server's own credentials are none that an admin gave.
    take_credentials(&mut next);
    Some(next)
}

fn refine(origin: Origin, bounds: Bounds, error: Error) -> FetchError {
    match error {
        Error::Timeout(Timeout::PerRead | Timeout::RecvResponse) => stalled(origin, bounds),
        Error::Other(error) => match error.downcast::<AddressError>() {
            Ok(reason) => FetchError::Address { origin, reason: *reason },
            Err(error) => explain(origin, Error::Other(error)).into(),
        },
        error => explain(origin, error).into(),
    }
}

fn receive(
    answer: &mut Response<Body>,
    origin: Origin,
    bounds: Bounds,
    out: &mut impl Write,
) -> Result<Fetched, FetchError> {
    let kept = |name: HeaderName| {
        let value = answer.headers().get(name)?.to_str().ok()?;
        (value.len() <= VALIDATOR).then(|| value.to_owned())
    };
    let validators = Validators { etag: kept(ETAG), last_modified: kept(LAST_MODIFIED) };
    let is_gzip = match answer.headers().get(CONTENT_ENCODING).map(HeaderValue::as_bytes) {
        None | Some(b"" | b"identity") => false,
        Some(b"gzip" | b"x-gzip") => true,
        Some(_) => return Err(FetchError::Encoding { origin }),
    };
    let body = answer.body_mut().with_config().limit(u64::MAX).reader();
    let mut source: Box<dyn BufRead> = Box::new(BufReader::with_capacity(PIECE, body));
    if is_gzip {
        source = Box::new(BufReader::with_capacity(PIECE, MultiGzDecoder::new(source)));
    }
    let failed = |error: io::Error, inflating: bool| match error.kind() {
        // As flate2 reports what it cannot inflate.
        io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof
            if inflating =>
        {
            FetchError::Gzip { origin: origin.clone() }
        }
        _ => refine(origin.clone(), bounds, error.into()),
    };
    // A file may be compressed where the server does not say so, as `feed.xml.gz` is.
    let is_compressed = source.fill_buf().map_err(|error| failed(error, is_gzip))?.starts_with(&GZIP);
    if is_compressed {
        source = Box::new(BufReader::with_capacity(PIECE, MultiGzDecoder::new(source)));
    }
    let (mut digest, mut length) = (Sha256::new(), 0);
    let (mut since, mut sent) = (Instant::now(), 0);
    loop {
        let bytes = source.fill_buf().map_err(|error| failed(error, is_gzip || is_compressed))?;
        let read = bytes.len() as u64;
        if read == 0 {
            break;
        }
        length += read;
        if length > bounds.bytes {
            return Err(FetchError::TooLarge { most: bounds.bytes });
        }
        digest.update(bytes);
        out.write_all(bytes).map_err(FetchError::Disk)?;
        let read = bytes.len();
        source.consume(read);
        sent += read as u64;
        if sent >= bounds.stall_bytes {
            (since, sent) = (Instant::now(), 0);
        } else if since.elapsed() > bounds.stall {
            return Err(stalled(origin, bounds));
        }
    }
    Ok(Fetched::Written { validators, sha256: hex::encode(digest.finalize()) })
}

fn stalled(origin: Origin, Bounds { stall_bytes, stall, .. }: Bounds) -> FetchError {
    FetchError::Stalled { origin, bytes: stall_bytes, within: stall }
}

/// Whether the scheme is right, and the server's address if the URL has it in place of a name.
fn check(url: &Url, reach: Reach) -> Result<(), AddressError> {
    if url.scheme() == "http" && reach == Reach::Public {
        return Err(AddressError::NotHttps);
    }
    let address = match url.host() {
        Some(Host::Ipv4(address)) => address.into(),
        Some(Host::Ipv6(address)) => address.into(),
        _ => return Ok(()),
    };
    may_connect(address, url.scheme() == "https", reach)
}

/// Looks names up, and leaves only addresses that may be asked.
#[derive(Debug)]
struct Checked(Reach);

impl Resolver for Checked {
    fn resolve(
        &self,
        uri: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, Error> {
        let found = DefaultResolver::default().resolve(uri, config, timeout)?;
        let (mut allowed, mut refused) = (self.empty(), None);
        for address in &found {
            match may_connect(address.ip(), uri.scheme_str() == Some("https"), self.0) {
                Ok(()) => allowed.push(*address),
                Err(reason) => refused = Some(reason),
            }
        }
        match refused {
            Some(reason) if allowed.is_empty() => Err(Error::Other(Box::new(reason))),
            _ => Ok(allowed),
        }
    }
}

fn may_connect(address: IpAddr, is_https: bool, reach: Reach) -> Result<(), AddressError> {
    match (network(address), reach) {
        (None, _) => Err(AddressError::Never),
        (Some(Reach::Private), Reach::Public) => Err(AddressError::Private),
        (Some(Reach::Public), _) if !is_https => Err(AddressError::Plain),
        _ => Ok(()),
    }
}

/// The network of an address. None is for those that never have a feed: link-local ones, at which clouds hand out
/// credentials, multicast, documentation, and whatever no registry has given to servers.
fn network(address: IpAddr) -> Option<Reach> {
    match address {
        IpAddr::V4(address) => network_v4(address),
        IpAddr::V6(address) => network_v6(address),
    }
}

/// <https://www.iana.org/assignments/iana-ipv4-special-registry>
fn network_v4(address: Ipv4Addr) -> Option<Reach> {
    match address.octets() {
        // Within what follows, the metadata of Alibaba's cloud; then the agent's server of Azure's.
        [100, 100, 100, 200]
        | [168, 63, 129, 16]
        | [0 | 224.., ..]
        | [169, 254, ..]
        | [192, 0, 0 | 2, _]
        | [192, 88, 99, _]
        | [198, 18 | 19, ..]
        | [198, 51, 100, _]
        | [203, 0, 113, _] => None,
        [10 | 127, ..] | [192, 168, ..] | [172, 16..=31, ..] | [100, 64..=127, ..] => Some(Reach::Private),
        _ => Some(Reach::Public),
    }
}

/// <https://www.iana.org/assignments/iana-ipv6-special-registry>
fn network_v6(address: Ipv6Addr) -> Option<Reach> {
    let [.., high, low] = address.segments();
    let embedded = || {
        let [[a, b], [c, d]] = [high, low].map(u16::to_be_bytes);
        network_v4(Ipv4Addr::new(a, b, c, d))
    };
    match address.segments() {
        // An IPv4 address in IPv6's notation, or behind NAT64.
        [0, 0, 0, 0, 0, 0xffff, ..] | [0x64, 0xff9b, 0, 0, 0, 0, ..] => embedded(),
        // The metadata of Amazon's cloud; tunnels, which hold another address; documentation.
        [0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254]
        | [0x2001, ..0x200 | 0xdb8, ..]
        | [0x2002, ..]
        | [0x3fff, ..0x1000, ..] => None,
        [0, 0, 0, 0, 0, 0, 0, 1] | [0xfc00..=0xfdff, ..] => Some(Reach::Private),
        [0x2000..=0x3fff, ..] => Some(Reach::Public),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::{
        net::{SocketAddr, TcpListener},
        thread::{self, JoinHandle},
    };

    use flate2::{Compression, write::GzEncoder};

    use super::*;
    use crate::util::http_client::tests::serve;

    const CLOSE: &str = "Connection: close\r\n";

    /// Answers a connection with each of these.
    fn server(answers: Vec<Vec<u8>>) -> (SocketAddr, JoinHandle<Vec<String>>) {
        serve(answers.into_iter().map(|answer| vec![answer]).collect())
    }

    fn requests(served: JoinHandle<Vec<String>>) -> Vec<String> {
        served.join().unwrap().iter().map(|request| request.to_lowercase()).collect()
    }

    fn answer(head: &str, body: &[u8]) -> Vec<u8> {
        let head = format!("HTTP/1.1 {head}\r\n{CLOSE}Content-Length: {}\r\n\r\n", body.len());
        [head.as_bytes(), body].concat()
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut out = GzEncoder::new(Vec::new(), Compression::fast());
        out.write_all(bytes).unwrap();
        out.finish().unwrap()
    }

    fn bounds() -> Bounds {
        let second = Duration::from_secs(1);
        let deadline = Instant::now() + 20 * second;
        Bounds { reach: Reach::Private, bytes: 1 << 20, deadline, stall: 10 * second, stall_bytes: 1 << 16 }
    }

    fn get(url: &str, bounds: Bounds) -> Result<(Fetched, Vec<u8>), FetchError> {
        let mut out = Vec::new();
        let address = Address::parse(url, bounds.reach).unwrap();
        fetch(&address, &Validators::default(), bounds, &mut out).map(|fetched| (fetched, out))
    }

    #[test]
    fn only_servers_of_the_internet_are_public() {
        let public = "93.184.215.14 172.15.0.1 172.32.0.1 100.63.255.255 100.128.0.1 2606:4700::1111 \
                      64:ff9b::5db8:d70e ::ffff:93.184.215.14";
        let private = "10.0.0.1 127.0.0.1 127.255.0.9 172.16.0.1 172.31.255.1 192.168.1.1 100.64.0.1 100.127.255.255 \
                       ::1 fc00::1 fdff::1 ::ffff:10.0.0.1 ::ffff:127.0.0.1 64:ff9b::7f00:1 64:ff9b::10.0.0.1";
        let never = "0.0.0.0 0.1.2.3 169.254.169.254 224.0.0.1 255.255.255.255 240.0.0.1 192.0.2.1 192.0.0.8 \
                     198.18.0.1 198.51.100.7 203.0.113.7 168.63.129.16 100.100.100.200 :: fe80::1 ff02::1 \
                     2001:db8::1 2001::1 2002:a00:1:: 3fff::1 fd00:ec2::254 ::ffff:169.254.169.254 \
                     64:ff9b::a9fe:a9fe 64:ff9b:1::1 ::7f00:1 fec0::1 100::1";
        for (addresses, reach) in
            [(public, Some(Reach::Public)), (private, Some(Reach::Private)), (never, None)]
        {
            for address in addresses.split(' ') {
                assert_eq!(network(address.parse().unwrap()), reach, "{address}");
            }
        }
    }

    #[test]
    fn disguised_addresses_are_refused() {
        let private = "https://127.0.0.1/f https://2130706433/ https://0x7f.1/ https://0177.0.0.1/ https://127.1/ \
                       https://[::1]/ https://[::ffff:127.0.0.1]/ https://good.example@10.0.0.1/ https://10.0.0.1./ \
                       https://①②⑦.0.0.1/";
        let never = "https://169.254.169.254/ https://a:b@169.254.169.254/ https://2852039166/ https://0/";
        let no_url = "|shop.example/feed|ftp://shop.example/|file:///etc/passwd|https://|https://[fe80::1%25eth0]/|\
                      https://a b/|data:text/plain,a";
        for (urls, reach, error) in [
            (private.split(' '), Reach::Public, AddressError::Private),
            (never.split(' '), Reach::Public, AddressError::Never),
            (never.split(' '), Reach::Private, AddressError::Never),
            (no_url.split('|'), Reach::Private, AddressError::NoUrl),
        ] {
            for url in urls {
                assert_eq!(Address::parse(url, reach).as_ref(), Err(&error), "{url}");
            }
        }
        assert_eq!(Address::parse("http://shop.example/", Reach::Public), Err(AddressError::NotHttps));
        let plain = Address::parse("http://93.184.215.14/", Reach::Private);
        assert_eq!(plain, Err(AddressError::Plain));
    }

    /// A name says nothing of where it leads.
    #[test]
    fn the_address_of_a_name_is_checked() {
        let (address, _served) = server(vec![]);
        for host in ["localhost", "LOCALHOST"] {
            let url = format!("https://{host}:{}/?token=hush", address.port());
            let error = get(&url, Bounds { reach: Reach::Public, ..bounds() }).unwrap_err().to_string();
            assert!(error.contains("a private network or to this machine"), "{error}");
            assert!(!error.contains("hush"), "{error}");
        }
    }

    #[test]
    fn redirects_are_checked_and_get_no_credentials() {
        let (other, others) = server(vec![answer("200 OK", b"id\n")]);
        let moved = |to: &str| answer(&format!("302 Found\r\nLocation: {to}"), b"");
        let away = format!("http://x:y@{other}/feed?a=b");
        let (first, firsts) = server(vec![moved("/again"), moved(&away)]);
        let (_, file) = get(&format!("http://me:secret@{first}/"), bounds()).unwrap();
        assert_eq!(file, b"id\n");
        let (firsts, others) = (requests(firsts), requests(others));
        let has = |request: &String| request.contains("authorization: basic bwu6c2vjcmv0");
        assert!(firsts.iter().all(has), "{firsts:?}");
        assert!(
            others[0].starts_with("get /feed?a=b ") && !others[0].contains("authorization"),
            "{others:?}"
        );

        let never = "a network that serves no files";
        for (to, redirects, said) in [
            ("http://169.254.169.254/latest/meta-data/", 1, never),
            ("http://[::ffff:169.254.169.254]/", 1, never),
            ("https://0.0.0.0/", 1, never),
            ("ftp://shop.example/", 1, "redirects to an address that cannot be read"),
            ("/", REDIRECTS + 1, "more than 5 redirects"),
        ] {
            let (first, _) = server((0..redirects).map(|_| moved(to)).collect());
            let error = get(&format!("http://{first}/"), bounds()).unwrap_err().to_string();
            assert!(error.contains(said), "{to}: {error}");
        }
    }

    #[test]
    fn an_unchanged_file_is_not_sent_again() {
        let first = answer("200 OK\r\nETag: \"v1\"\r\nLast-Modified: Thu, 26 Nov 2026 10:00:00 GMT", b"id\n");
        let (address, served) =
            server(vec![first, answer("304 Not Modified", b""), answer("304 Not Modified", b"")]);
        let address = Address::parse(&format!("http://{address}/"), Reach::Private).unwrap();
        let none = Validators::default();
        let sent = fetch(&address, &none, bounds(), &mut Vec::new()).unwrap();
        let Fetched::Written { validators, sha256 } = sent else { panic!("it was sent") };
        let digest = super::super::digest::sha256(b"id\n");
        assert_eq!((validators.etag.as_deref(), sha256), (Some("\"v1\""), digest));
        let again = fetch(&address, &validators, bounds(), &mut Vec::new()).unwrap();
        assert_eq!(again, Fetched::Unchanged);
        let error = fetch(&address, &none, bounds(), &mut Vec::new()).unwrap_err();
        assert!(matches!(error, FetchError::Status { status: 304, .. }), "{error}");
        let requests = requests(served);
        assert!(requests[1].contains("if-none-match: \"v1\""), "{requests:?}");
        assert!(requests[1].contains("if-modified-since: thu, 26 nov 2026 10:00:00 gmt"), "{requests:?}");
        assert!(!requests[2].contains("if-"), "{requests:?}");
    }

    #[test]
    fn a_file_has_a_limit_inflated_too() {
        let text = vec![b'a'; 1 << 21];
        let zipped = gzip(&text);
        let (address, _served) = server(vec![
            answer("200 OK", &text),
            answer("200 OK\r\nContent-Encoding: gzip", &zipped),
            answer("200 OK", &zipped),
            answer("200 OK\r\nContent-Encoding: gzip", &gzip(&zipped)),
            answer("200 OK\r\nContent-Encoding: gzip", &gzip(&zipped)),
        ]);
        let url = format!("http://{address}/");
        for _ in 0..4 {
            let error = get(&url, bounds()).unwrap_err();
            assert!(matches!(error, FetchError::TooLarge { most: 0x10_0000 }), "{error}");
        }
        let (_, file) = get(&url, Bounds { bytes: 1 << 21, ..bounds() }).unwrap();
        assert!(file == text);
    }

    #[test]
    fn errors_say_what_happened_and_not_what_was_sent() {
        let damaged = &gzip(b"hush hush hush")[..12];
        let (address, _served) = server(vec![
            answer("403 Forbidden", b"hush"),
            answer("200 OK\r\nContent-Encoding: br", b"hush"),
            answer("200 OK\r\nContent-Encoding: gzip", b"hush"),
            answer("200 OK\r\nContent-Encoding: gzip", damaged),
            format!("HTTP/1.1 200 OK\r\n{CLOSE}Content-Length: 99\r\n\r\nhush").into_bytes(),
            b"hush".to_vec(),
        ]);
        let url = format!("http://me:hush@{address}/hush?token=hush");
        for expected in [
            "answered with status 403; check the credentials",
            "an encoding other than gzip",
            "cannot be inflated",
            "cannot be inflated",
            "cannot be reached: Peer disconnected",
            "did not answer as an HTTP server does",
        ] {
            let error = get(&url, bounds()).unwrap_err();
            assert!(error.to_string().contains(expected), "{error}");
            assert!(!format!("{error} {error:?}").contains("hush"), "{error:?}");
        }
    }

    #[test]
    fn slow_servers_are_given_up() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let _dripping = thread::spawn(move || {
            // A slow body, and headers that do not end.
            for head in ["HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n", "HTTP/1.1 200 OK\r\nX: "] {
                let (mut stream, _) = listener.accept().unwrap();
                let mut sent = stream.write_all(head.as_bytes());
                while sent.is_ok() {
                    thread::sleep(Duration::from_millis(20));
                    sent = stream.write_all(b"a");
                }
            }
            // And one that sends nothing.
            let (mut silent, _) = listener.accept().unwrap();
            let _ = io::copy(&mut silent, &mut io::sink());
        });
        for _ in 0..3 {
            let error = get(&url, Bounds { stall: Duration::from_millis(200), ..bounds() }).unwrap_err();
            assert!(matches!(error, FetchError::Stalled { .. }), "{error}");
        }
    }

    #[test]
    fn an_address_is_shown_without_secrets() {
        let address =
            Address::parse("https://me:p%40ss@shop.example/f.xml?token=hush&hush&a=#hush", Reach::Public)
                .unwrap();
        assert_eq!(address.to_string(), "https://shop.example/f.xml?token=…&…&a=…");
        assert_eq!(address.full(), "https://shop.example/f.xml?token=hush&hush&a=");
        assert_eq!(address.authorization(), Some("Basic bWU6cEBzcw=="));
        let address = address.with_authorization("Bearer hush").unwrap();
        assert_eq!(address.authorization(), Some("Bearer hush"));
        assert!(!format!("{address:?} {:?}", address.authorization).contains("hush"));
        assert_eq!(address.with_authorization("a\nb"), None);
    }
}
