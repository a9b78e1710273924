//! `atelier serve` with a certificate of its own.

use std::{
    fs,
    io::{self, ErrorKind, Read, Write},
    net::TcpStream,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use futures_util::future::try_join_all;
use tempfile::TempDir;
use tokio::time::timeout;

use crate::{
    cli::{atelier, printed, refused, run, serve, serve::Served, stderr},
    harness::{Html, TestDatabase, apply, on_sqlite, tools, until},
    http2::{Caller, issue_certificate, take},
};

fn clients() -> Result<(), String> {
    tools::openssl()?;
    tools::curl()
}

/// A service with a certificate, in a folder with that and its authority's.
struct Secure {
    served: Served,
    folder: TempDir,
}

impl Secure {
    async fn start(db: &TestDatabase, limits: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        issue_certificate(folder.path());
        let mut command = with_certificate(serve(db, &[]), folder.path());
        command.envs(limits.iter().map(|(name, value)| (format!("ATELIER__LIMITS__{name}"), value)));
        Self { served: Served::launch(command).await, folder }
    }

    /// With a caller over HTTP/2 that takes as many bytes of each answer.
    async fn with_caller(db: &TestDatabase, limits: &[(&str, &str)], window: u32) -> (Self, Caller) {
        let secure = Self::start(db, limits).await;
        let authority = secure.folder.path().join("ca.pem");
        let caller = Caller::connect(secure.served.address(), &authority, window).await.unwrap();
        (secure, caller)
    }

    /// Headers and body of an answer, if curl trusts the certificate.
    async fn ask(&self, authority: &str, target: &str, arguments: &[&str]) -> Result<String, String> {
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--show-error", "--include", "--cacert"])
            .arg(self.folder.path().join(authority));
        curl.args(arguments).arg(format!("{}{target}", self.served.url));
        let output = run(curl).await;
        if output.status.success() {
            Ok(String::from_utf8(output.stdout).unwrap())
        } else {
            Err(stderr(&output))
        }
    }

    /// The same with the service's own authority.
    async fn get(&self, target: &str, arguments: &[&str]) -> String {
        self.ask("ca.pem", target, arguments).await.unwrap()
    }
}

fn with_certificate(mut command: Command, folder: &Path) -> Command {
    command.env("ATELIER__SERVER__CERTIFICATE", folder.join("certificate.pem"));
    command.env("ATELIER__SERVER__KEY", folder.join("key.pem"));
    command
}

#[apply(on_sqlite)]
#[needs(clients)]
async fn callers_that_trust_the_authority_are_served(db: TestDatabase) {
    let secure = Secure::start(&db, &[]).await;
    let (served, folder) = (&secure.served, secure.folder.path());
    assert!(served.url.starts_with("https://127.0.0.1:"), "the printed link: {}", served.url);
    for (flag, version) in [("--http2", "HTTP/2 200"), ("--http1.1", "HTTP/1.1 200")] {
        let answer = secure.get("livez", &[flag]).await;
        assert!(answer.starts_with(version), "{answer}");
    }
    let stranger = tempfile::tempdir().unwrap();
    issue_certificate(stranger.path());
    let stranger = stranger.path().join("ca.pem");
    let refused = secure.ask(stranger.to_str().unwrap(), "livez", &[]).await.unwrap_err();
    refused.has(["certificate"]);

    // The health check trusts the service that it belongs to, under whatever name.
    let check = atelier(&db, &["--set", &format!("server.address={}", served.address()), "check-health"]);
    let checked = run(with_certificate(check, folder)).await;
    let said = String::from_utf8_lossy(&checked.stdout).into_owned() + &stderr(&checked);
    assert!(said.contains("release") && !said.contains("TLS"), "readyz answered: {said}");

    // A page over plain HTTP is of another site.
    let ours = served.url.trim_end_matches('/');
    for (origin, status) in [(ours, 404), (&*ours.replace("https:", "http:"), 401)] {
        let origin = format!("Origin: {origin}");
        let answer =
            secure.get("releases/nowhere/activate", &["--request", "POST", "--header", &origin]).await;
        assert!(answer.starts_with(&format!("HTTP/2 {status} ")), "{origin}: {answer}");
    }

    // Plain HTTP gets no answer.
    let mut plain = TcpStream::connect(served.address()).unwrap();
    plain.write_all(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP"), "{answer:?}");
    secure.served.stop().await;
}

/// Neither does a body that the service does not read.
#[apply(on_sqlite)]
#[needs(clients)]
async fn a_head_that_is_too_large_does_not_end_a_connection_of_http_2(db: TestDatabase) {
    let secure = Secure::start(&db, &[]).await;
    let large = format!("x-filler: {}", "x".repeat(70_000));
    let refused = secure.ask("ca.pem", "livez", &["--header", &large]).await;
    assert!(!refused.is_ok_and(|answer| answer.starts_with("HTTP/2 200")));
    let body = secure.folder.path().join("body");
    fs::write(&body, vec![b'x'; 20 << 20]).unwrap();
    let (body, post) = (format!("@{}", body.display()), format!("{}livez", secure.served.url));
    let authority = secure.folder.path().join("ca.pem");
    let next = ["--next", "--silent", "--include", "--cacert", authority.to_str().unwrap()];
    let answers = secure.get("nowhere", &[&["--data-binary", &body, &post], &next[..]].concat()).await;
    answers.has(["HTTP/2 405", "HTTP/2 404"]);
    secure.served.stop().await;
}

/// What else is of the host over HTTPS is asked behind a balancer.
#[apply(on_sqlite)]
#[needs(clients)]
async fn a_person_signs_in_over_tls(db: TestDatabase) {
    let secure = Secure::start(&db, &[]).await;
    let print = || printed(with_certificate(atelier(&db, &["sign-in-link"]), secure.folder.path()));
    let told = print().await;
    let link = told.strip_prefix(&format!("Atelier is at {}sign-in/", secure.served.url)).expect(&told);
    let form = format!("link={}&password=violet+tram+kneads+gravel", link.split(' ').next().unwrap());
    let answer = secure.get("sign-in/link", &["--data", &form]).await;
    assert!(answer.starts_with("HTTP/2 303 "), "{answer}");
    answer.has(["strict-transport-security: max-age=31536000", "; SameSite=Lax; Max-Age=604800; Secure"]);
    let cookie = format!("__Host-atelier_session={}", answer.between("__Host-atelier_session=", ";"));
    let page = secure.get("access", &["--cookie", &cookie]).await;
    assert!(page.starts_with("HTTP/2 200 "), "{page}");
    let Secure { served, folder } = secure;
    served.stop().await;
    let told = printed(with_certificate(atelier(&db, &["sign-in-link"]), folder.path())).await;
    assert!(told.starts_with("Atelier is at https://127.0.0.1:8080/sign-in/"), "{told}");
}

#[apply(on_sqlite)]
#[needs(tools::openssl)]
async fn a_silent_handshake_is_cut(db: TestDatabase) {
    let secure = Secure::start(&db, &[("HEAD_MS", "300"), ("IDLE_MS", "600000")]).await;
    let mut silent = TcpStream::connect(secure.served.address()).unwrap();
    assert_eq!(silent.read(&mut [0]).unwrap(), 0);
    // The beginning of a ClientHello.
    let mut half = TcpStream::connect(secure.served.address()).unwrap();
    half.write_all(&[0x16, 0x03, 0x01, 0x02]).unwrap();
    assert!(half.read(&mut [0]).is_ok_and(|read| read == 0));
    secure.served.stop().await;
}

/// More than a test waits for.
const LONG: Duration = Duration::from_mins(1);

#[apply(on_sqlite)]
#[needs(tools::openssl)]
async fn a_connection_with_an_answer_that_nobody_takes_is_cut(db: TestDatabase) {
    for window in [0, 1, 1000] {
        let limits = [("TRANSFER_MS", "500"), ("STREAM_MS", "600000"), ("IDLE_MS", "600000")];
        let (secure, caller) = Secure::with_caller(&db, &limits, window).await;
        // Others that are taken do not save it.
        let untaken = caller.get("/openapi.json").await.unwrap();
        let cut = timeout(LONG, async {
            while !caller.connection.is_finished() {
                let _ = caller.get("/nowhere").await;
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        });
        cut.await.unwrap_or_else(|_| panic!("an answer with a window of {window} bytes stays"));
        caller.connection.await.unwrap().unwrap_err();
        drop(untaken);
        secure.served.stop().await;
    }
}

#[apply(on_sqlite)]
#[needs(tools::openssl)]
async fn a_caller_that_reads_may_have_128_requests_at_once(db: TestDatabase) {
    let (secure, caller) = Secure::with_caller(&db, &[], 1 << 16).await;
    let ask = async || take(caller.get("/openapi.json").await?).await;
    let lengths = try_join_all((0..128).map(|_| ask())).await.unwrap();
    assert!(lengths.iter().all(|length| *length == lengths[0] && *length > 10_000), "{lengths:?}");
    secure.served.stop().await;
}

#[apply(on_sqlite)]
#[needs(tools::openssl)]
async fn an_idle_connection_of_http_2_has_its_time_and_hears_that_it_ends(db: TestDatabase) {
    let limits = [("HEAD_MS", "300"), ("IDLE_MS", "3000")];
    let (secure, mut caller) = Secure::with_caller(&db, &limits, 1 << 16).await;
    take(caller.get("/openapi.json").await.unwrap()).await.unwrap();
    let began = Instant::now();
    // A frame that is about the connection begins no request.
    caller.ping().await.unwrap();
    let ended = timeout(LONG, &mut caller.connection).await.unwrap().unwrap();
    assert!(began.elapsed() > Duration::from_secs(2), "{:?}", began.elapsed());
    // Without a farewell the end of TLS would be missing. The caller's own farewell may come too late to be sent.
    let error = ended.err().and_then(|error| error.get_io().map(io::Error::kind));
    assert!(matches!(error, None | Some(ErrorKind::BrokenPipe | ErrorKind::ConnectionReset)), "{error:?}");
    secure.served.stop().await;
}

#[apply(on_sqlite)]
#[needs(clients)]
async fn a_replaced_certificate_is_used_after_a_hangup(db: TestDatabase) {
    let secure = Secure::start(&db, &[]).await;
    let folder = secure.folder.path();
    fs::copy(folder.join("ca.pem"), folder.join("old.pem")).unwrap();
    let ask = async |authority| secure.ask(authority, "livez", &[]).await;
    ask("old.pem").await.unwrap();

    // Half of a replacement is reported, and the certificate in use stays.
    fs::write(folder.join("key.pem"), "").unwrap();
    secure.served.signal("HUP");
    ask("old.pem").await.unwrap();
    issue_certificate(folder);
    until!({
        secure.served.signal("HUP");
        ask("ca.pem").await.is_ok()
    });
    ask("old.pem").await.unwrap_err();
    let said = "new connections use the certificate that was just read";
    secure.served.stop().await.has([said]);
}

#[apply(on_sqlite)]
#[needs(tools::openssl)]
async fn files_that_cannot_be_used_are_named(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    issue_certificate(folder.path());
    fs::rename(file("key.pem"), file("other-key.pem")).unwrap();
    issue_certificate(folder.path());
    fs::write(file("empty.pem"), "").unwrap();
    for (certificate, key, expected) in [
        ("none.pem", "key.pem", "server.certificate: cannot read "),
        ("empty.pem", "key.pem", "empty.pem has no certificate; name a PEM file with one"),
        ("key.pem", "key.pem", "key.pem has no certificate"),
        ("certificate.pem", "none.pem", "server.key: cannot read "),
        ("certificate.pem", "certificate.pem", "certificate.pem has no private key"),
        ("certificate.pem", "other-key.pem", "server.key: "),
    ] {
        let mut command = serve(&db, &[]);
        command.env("ATELIER__SERVER__CERTIFICATE", file(certificate));
        command.env("ATELIER__SERVER__KEY", file(key));
        refused(command).await.has([expected]);
    }
}

/// A hangup changes nothing then.
#[apply(on_sqlite)]
async fn other_addresses_without_tls_are_warned_of(db: TestDatabase) {
    for (address, warned) in [("0.0.0.0:0", true), ("127.0.0.1:0", false)] {
        let served = Served::launch(atelier(&db, &["serve", "--address", address])).await;
        served.signal("HUP");
        served.get("livez").await;
        let log = served.stop().await;
        log.has(["SIGHUP reads the certificate again, and there is none"]);
        let said = "without TLS: others on the network can read passwords and keys";
        assert_eq!(log.contains(said), warned, "{address}: {log}");
    }
}
