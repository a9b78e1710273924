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
use tokio::time::timeout;

use super::{atelier, fill, run, serve::Served, stderr};
use crate::{
    harness::{TestDatabase, apply, on_sqlite, tools},
    http2::{Caller, issue_certificate, take},
    web::{models, until},
};

fn clients() -> Result<(), String> {
    tools::openssl()?;
    tools::curl()
}

fn serve(db: &TestDatabase, folder: &Path) -> Command {
    let mut command = atelier(db, &["serve", "--address", "127.0.0.1:0"]);
    set(&mut command, folder);
    command
}

fn set(command: &mut Command, folder: &Path) {
    command.env("ATELIER__SERVER__CERTIFICATE", folder.join("certificate.pem"));
    command.env("ATELIER__SERVER__KEY", folder.join("key.pem"));
}

/// Headers and body of an answer, if curl trusts the certificate.
async fn ask(served: &Served, authority: Option<&Path>, target: &str) -> Result<String, String> {
    ask_with(served, authority, target, &[]).await
}

/// With more of curl's arguments.
async fn ask_with(
    served: &Served,
    authority: Option<&Path>,
    target: &str,
    arguments: &[&str],
) -> Result<String, String> {
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--show-error", "--include"]).args(arguments);
    if let Some(authority) = authority {
        curl.arg("--cacert").arg(authority);
    }
    curl.arg(format!("{}{target}", served.url));
    let output = run(curl).await;
    if output.status.success() { Ok(String::from_utf8(output.stdout).unwrap()) } else { Err(stderr(&output)) }
}

#[apply(on_sqlite)]
#[needs(clients)]
async fn callers_that_trust_the_authority_are_served(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    issue_certificate(folder.path());
    let served = Served::launch(serve(&db, folder.path()), folder.path()).await;
    assert!(served.url.starts_with("https://127.0.0.1:"), "the printed link: {}", served.url);
    let authority = folder.path().join("ca.pem");
    let answer = ask(&served, Some(&authority), "livez").await.unwrap();
    assert!(answer.starts_with("HTTP/2 200"), "{answer}");
    let older = ask_with(&served, Some(&authority), "livez", &["--http1.1"]).await.unwrap();
    assert!(older.starts_with("HTTP/1.1 200"), "{older}");
    let page = ask(&served, Some(&authority), "sign-in").await.unwrap().to_ascii_lowercase();
    assert!(page.contains("strict-transport-security: "), "requests over TLS count as https: {page}");
    let refused = ask(&served, None, "livez").await.unwrap_err();
    assert!(refused.contains("certificate"), "{refused}");

    // The health check trusts the service that it belongs to, under whatever name.
    let address = served.url.trim_start_matches("https://").trim_end_matches('/').to_owned();
    let mut check = atelier(&db, &["--set", &format!("server.address={address}"), "check-health"]);
    set(&mut check, folder.path());
    let checked = run(check).await;
    assert!(!stderr(&checked).contains("TLS"), "{}", stderr(&checked));
    let body = String::from_utf8_lossy(&checked.stdout).into_owned() + &stderr(&checked);
    assert!(body.contains("release"), "readyz answered: {body}");

    // Plain HTTP gets no answer.
    let mut plain = TcpStream::connect(&address).unwrap();
    plain.write_all(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP"), "{answer:?}");
    served.stop().await;
}

#[apply(on_sqlite)]
#[needs(clients)]
async fn a_connection_of_http_2_answers_many_requests_at_once(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    issue_certificate(folder.path());
    let mut command = serve(&db, folder.path());
    command.arg("--models").arg(models());
    fill(&db).await;
    let served = Served::launch(command, folder.path()).await;
    let authority = folder.path().join("ca.pem");
    until!(ask(&served, Some(&authority), "readyz").await.unwrap().starts_with("HTTP/2 200"));
    let mut requests = Command::new("curl");
    requests.args(["--silent", "--show-error", "--parallel", "--parallel-max", "50", "--http2", "--fail"]);
    requests.args(["--write-out", "%{http_version} %{http_code} %{num_connects}\n", "--cacert"]);
    requests.arg(&authority).args(["--json", r#"{"outfit": [null, null], "k": 3}"#]);
    let target = format!("{}complete", served.url);
    requests.args(["--output", "/dev/null", &target].repeat(100));
    let output = run(requests).await;
    let lines = String::from_utf8(output.stdout).unwrap();
    assert_eq!(lines.lines().filter(|line| line.starts_with("2 200 ")).count(), 100, "{lines}");
    let connections = lines.lines().filter(|line| line.ends_with(" 1")).count();
    assert!((1..=2).contains(&connections), "{connections} connections");
    // Its head is limited, too, and a body that the service does not read leaves the connection as it was.
    let large = ["--header".to_owned(), format!("x-filler: {}", "x".repeat(70_000))];
    let large: Vec<&str> = large.iter().map(String::as_str).collect();
    let refused = ask_with(&served, Some(&authority), "livez", &large).await;
    assert!(!refused.is_ok_and(|answer| answer.starts_with("HTTP/2 200")));
    let body = folder.path().join("body");
    fs::write(&body, vec![b'x'; 20 << 20]).unwrap();
    let body = format!("@{}", body.display());
    let twice = ["--data-binary", &body, "--next", "--silent", "--include"];
    let post = format!("{}livez", served.url);
    let twice = [&["--cacert", authority.to_str().unwrap(), &post], &twice[..]].concat();
    let answers = ask_with(&served, Some(&authority), "nowhere", &twice).await.unwrap();
    assert!(answers.contains("HTTP/2 405") && answers.contains("HTTP/2 404"), "{answers}");
    served.stop().await;
}

#[apply(on_sqlite)]
#[needs(clients)]
async fn a_service_over_tls_knows_its_own_pages(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    issue_certificate(folder.path());
    let mut command = serve(&db, folder.path());
    command.arg("--models").arg(models());
    fill(&db).await;
    let served = Served::launch(command, folder.path()).await;
    let authority = folder.path().join("ca.pem");
    let ours = served.url.trim_end_matches('/').to_owned();
    let plain = ours.replace("https:", "http:");
    for (headers, status) in [
        (vec![], 404),
        (vec![format!("Origin: {ours}")], 404),
        (vec![format!("Origin: {ours}"), "Sec-Fetch-Site: same-origin".to_owned()], 404),
        (vec![format!("Referer: {ours}/docs")], 404),
        (vec!["Origin: https://evil.example".to_owned()], 401),
        (vec!["Origin: https://127.0.0.1:1".to_owned()], 401),
        (vec![format!("Origin: {plain}")], 401),
        (vec![format!("Referer: {plain}/docs")], 401),
    ] {
        let headers: Vec<&str> = headers.iter().flat_map(|header| ["--header", header]).collect();
        let arguments = [&["--request", "POST"], &headers[..]].concat();
        let answer =
            ask_with(&served, Some(&authority), "releases/nowhere/activate", &arguments).await.unwrap();
        assert!(answer.starts_with(&format!("HTTP/2 {status} ")), "{headers:?}: {answer}");
        assert_eq!(answer.contains("a page of another site"), status == 401, "{headers:?}: {answer}");
    }
    served.stop().await;
}

#[apply(on_sqlite)]
#[needs(clients)]
async fn a_person_signs_in_over_tls(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    issue_certificate(folder.path());
    let served = Served::launch(serve(&db, folder.path()), folder.path()).await;
    let authority = folder.path().join("ca.pem");
    let print = async || {
        let mut printing = atelier(&db, &["sign-in-link"]);
        set(&mut printing, folder.path());
        String::from_utf8(run(printing).await.stdout).unwrap()
    };
    let printed = print().await;
    let link = printed.strip_prefix(&format!("Atelier is at {}sign-in/", served.url)).expect(&printed);
    let secret = link.split(' ').next().unwrap();

    let jar = folder.path().join("cookies");
    let jar = jar.to_str().unwrap();
    let send = async |target: &str, form: &str| {
        let arguments = ["--cookie", jar, "--cookie-jar", jar, "--data", form];
        // curl sends a form as a POST, and none as a GET.
        let arguments = if form.is_empty() { &arguments[..4] } else { &arguments[..] };
        ask_with(&served, Some(&authority), target, arguments).await.unwrap()
    };
    let password = "violet+tram+kneads+gravel";
    let entered = send("sign-in/link", &format!("link={secret}&password={password}")).await;
    let begun = |answer: &str| {
        assert!(answer.starts_with("HTTP/2 303 "), "{answer}");
        let cookie = answer.lines().find_map(|line| line.strip_prefix("set-cookie: ")).expect(answer);
        assert!(cookie.starts_with("__Host-atelier_session="), "{cookie}");
        assert!(cookie.ends_with("; Path=/; HttpOnly; SameSite=Lax; Max-Age=604800; Secure"), "{cookie}");
        assert!(answer.contains("strict-transport-security: max-age=31536000"), "{answer}");
    };
    begun(&entered);
    let page = send("access", "").await;
    assert!(page.starts_with("HTTP/2 200 ") && page.contains("strict-transport-security: "), "{page}");
    let csrf = page.split("name=\"csrf\" value=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
    let out = send("sign-out", &format!("csrf={csrf}")).await;
    assert!(out.contains("set-cookie: __Host-atelier_session=; Path=/;"), "{out}");
    assert!(send("access", "").await.starts_with("HTTP/2 303 "));
    begun(&send("sign-in", &format!("name=admin&password={password}")).await);
    assert!(send("access", "").await.starts_with("HTTP/2 200 "));
    served.stop().await;
    let printed = print().await;
    assert!(printed.starts_with("Atelier is at https://127.0.0.1:8080/sign-in/"), "{printed}");
}

#[apply(on_sqlite)]
#[needs(tools::openssl)]
async fn a_silent_handshake_is_cut(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    issue_certificate(folder.path());
    let mut command = serve(&db, folder.path());
    command.env("ATELIER__LIMITS__HEAD_MS", "300").env("ATELIER__LIMITS__IDLE_MS", "600000");
    let served = Served::launch(command, folder.path()).await;
    let address = served.url.trim_start_matches("https://").trim_end_matches('/').to_owned();
    let mut silent = TcpStream::connect(&address).unwrap();
    assert_eq!(silent.read(&mut [0]).unwrap(), 0);
    // The beginning of a ClientHello.
    let mut half = TcpStream::connect(&address).unwrap();
    half.write_all(&[0x16, 0x03, 0x01, 0x02]).unwrap();
    assert!(half.read(&mut [0]).is_ok_and(|read| read == 0));
    served.stop().await;
}

/// Calls a service over HTTP/2 that has these limits.
async fn call_http2(
    db: &TestDatabase,
    folder: &Path,
    limits: &[(&str, &str)],
    window: u32,
) -> (Served, Caller) {
    issue_certificate(folder);
    let mut command = serve(db, folder);
    command.envs(limits.iter().map(|(name, value)| (format!("ATELIER__LIMITS__{name}"), value)));
    let served = Served::launch(command, folder).await;
    let address = served.url.trim_start_matches("https://").trim_end_matches('/').to_owned();
    let caller = Caller::connect(&address, &folder.join("ca.pem"), window).await.unwrap();
    (served, caller)
}

/// More than a test waits for.
const LONG: Duration = Duration::from_mins(1);

#[apply(on_sqlite)]
#[needs(tools::openssl)]
async fn a_connection_with_an_answer_that_nobody_takes_is_cut(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    for window in [0, 1, 1000] {
        let limits = [("TRANSFER_MS", "500"), ("STREAM_MS", "600000"), ("IDLE_MS", "600000")];
        let (served, caller) = call_http2(&db, folder.path(), &limits, window).await;
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
        served.stop().await;
    }
}

#[apply(on_sqlite)]
#[needs(tools::openssl)]
async fn answers_that_nobody_takes_do_not_delay_the_stop(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let (served, caller) = call_http2(&db, folder.path(), &[], 0).await;
    let _untaken = try_join_all((0..50).map(|_| caller.get("/openapi.json"))).await.unwrap();
    let began = Instant::now();
    served.stop().await;
    // Five seconds for the caller, and what a busy machine takes. It was twenty.
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
}

#[apply(on_sqlite)]
#[needs(tools::openssl)]
async fn a_caller_that_reads_may_have_128_requests_at_once(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let (served, caller) = call_http2(&db, folder.path(), &[], 1 << 16).await;
    let bodies = try_join_all((0..128).map(|_| caller.get("/openapi.json"))).await.unwrap();
    let lengths = try_join_all(bodies.into_iter().map(take)).await.unwrap();
    assert!(lengths.iter().all(|length| *length == lengths[0] && *length > 10_000), "{lengths:?}");
    served.stop().await;
}

#[apply(on_sqlite)]
#[needs(tools::openssl)]
async fn an_idle_connection_of_http_2_has_its_time_and_hears_that_it_ends(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let limits = [("HEAD_MS", "300"), ("IDLE_MS", "3000")];
    let (served, mut caller) = call_http2(&db, folder.path(), &limits, 1 << 16).await;
    take(caller.get("/openapi.json").await.unwrap()).await.unwrap();
    let began = Instant::now();
    // A frame that is about the connection begins no request.
    caller.ping().await.unwrap();
    let ended = timeout(LONG, &mut caller.connection).await.unwrap().unwrap();
    assert!(began.elapsed() > Duration::from_secs(2), "{:?}", began.elapsed());
    // Without a farewell the end of TLS would be missing. The caller's own farewell may come too late to be sent.
    let error = ended.err().and_then(|error| error.get_io().map(io::Error::kind));
    assert!(matches!(error, None | Some(ErrorKind::BrokenPipe | ErrorKind::ConnectionReset)), "{error:?}");
    served.stop().await;
}

#[apply(on_sqlite)]
#[needs(clients)]
async fn a_replaced_certificate_is_used_after_a_hangup(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    issue_certificate(folder.path());
    let served = Served::launch(serve(&db, folder.path()), folder.path()).await;
    let old = folder.path().join("old.pem");
    fs::copy(folder.path().join("ca.pem"), &old).unwrap();
    ask(&served, Some(&old), "livez").await.unwrap();

    // Half of a replacement is reported, and the certificate in use stays.
    fs::write(folder.path().join("key.pem"), "").unwrap();
    served.signal("HUP");
    ask(&served, Some(&old), "livez").await.unwrap();
    issue_certificate(folder.path());
    let new = folder.path().join("ca.pem");
    until!({
        served.signal("HUP");
        ask(&served, Some(&new), "livez").await.is_ok()
    });
    ask(&served, Some(&old), "livez").await.unwrap_err();
    let log = served.stop().await;
    assert!(log.contains("new connections use the certificate that was just read"), "{log}");
}

#[apply(on_sqlite)]
async fn without_a_certificate_a_hangup_changes_nothing(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(&db, folder.path()).await;
    served.signal("HUP");
    served.get("livez").await;
    let log = served.stop().await;
    assert!(log.contains("SIGHUP reads the certificate again, and there is none"), "{log}");
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
        let mut command = atelier(&db, &["serve", "--address", "127.0.0.1:0"]);
        command.env("ATELIER__SERVER__CERTIFICATE", file(certificate));
        command.env("ATELIER__SERVER__KEY", file(key));
        let output = run(command).await;
        assert_eq!(output.status.code(), Some(1), "{certificate} {key}");
        assert!(stderr(&output).contains(expected), "{certificate} {key}: {}", stderr(&output));
    }
    let mut command = atelier(&db, &["serve"]);
    command.env("ATELIER__SERVER__CERTIFICATE", file("certificate.pem"));
    let output = run(command).await;
    let stderr = stderr(&output);
    assert!(stderr.contains("server.certificate is set without server.key: TLS needs both"), "{stderr}");
}

#[apply(on_sqlite)]
async fn other_addresses_without_tls_are_warned_of(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let other = atelier(&db, &["serve", "--address", "0.0.0.0:0"]);
    let log = Served::launch(other, folder.path()).await.stop().await;
    assert!(log.contains("without TLS: others on the network can read passwords and keys"), "{log}");
    let own = atelier(&db, &["serve", "--address", "127.0.0.1:0"]);
    let log = Served::launch(own, folder.path()).await.stop().await;
    assert!(!log.contains("without TLS"), "{log}");
}
