//! Signing in and out, and attempts to get in without permission.

use std::{
    net::IpAddr,
    pin::pin,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, SystemTime},
};

use atelier::{
    people::Token,
    platform::db::{Actor, Author, Name},
};
use atelier_core::domain::{Role, Timestamp};
use futures_util::FutureExt;

use super::{Browser, Demo, Service, browser, until};
use crate::harness::{Answer, Call, apply, contract, on_sqlite};

const PASSWORD: &str = "a horse in Zurich";

fn now() -> Timestamp {
    SystemTime::now().into()
}

fn send(service: &Service, path: &str, fields: &[(&str, &str)]) -> Call {
    service.form(path, fields)
}

/// The session that an answer started.
fn session(answer: &Answer) -> String {
    let cookie = answer.header("set-cookie");
    assert!(cookie.contains("; Path=/; HttpOnly; SameSite=Lax; Max-Age=604800"), "{cookie}");
    cookie.split(';').next().unwrap().to_owned()
}

fn get(service: &Service, path: &str, cookie: &str) -> Call {
    service.page(path).header("cookie", cookie)
}

#[apply(on_sqlite)]
async fn a_link_signs_in_once_and_sets_a_password(service: Service) {
    let admin = service.state.access().without_password(now()).await.unwrap().unwrap();
    let link = format!("/sign-in/{}", service.state.access().link(admin.id, now()).await.unwrap().as_str());

    // The link survives a mail program that opens it first, and a refused password.
    for _ in 0..2 {
        let page = service.page(&link).is(200).await;
        assert!(page.text().contains("Welcome, admin"));
    }
    let token = link.rsplit_once('/').unwrap().1;
    let refused = send(&service, "/sign-in/link", &[("link", token), ("password", "short")]).is(422).await;
    assert!(refused.text().contains("12 to 256 characters, this one 5"));

    let entered = send(&service, "/sign-in/link", &[("link", token), ("password", PASSWORD)]).await;
    assert_eq!((entered.status(), entered.header("location")), (303, "/studio"));
    let cookie = session(&entered);
    assert!(get(&service, "/studio", &cookie).await.text().contains(">admin</span>"));

    let again = send(&service, "/sign-in/link", &[("link", token), ("password", "")]).is(404).await;
    let html = again.text();
    assert!(html.contains("role=\"alert\">this link was already used") && html.contains("<h1>Sign in</h1>"));
    for link in [link.as_str(), "/sign-in/made-up"] {
        let page = service.page(link).is(404).await;
        assert!(page.text().contains("<h1>Sign in</h1>"), "the person can sign in otherwise");
    }
    assert!(service.state.access().without_password(now()).await.unwrap().is_none());
    assert!(service.state.access().sign_in("Admin", PASSWORD, None, now()).await.is_ok());
}

#[apply(on_sqlite)]
async fn a_password_signs_in_and_signing_out_ends_the_session(service: Service) {
    let ada = service.signed_in(Role::Stylist).await;
    ada.post("/password", &[("password", PASSWORD)]).is(303).await;
    let log = service.log(9).await;
    let said: Vec<_> = log.iter().map(|entry| (entry.action.as_str(), entry.subject.as_str())).collect();
    assert_eq!(said, [("sign-in", "Some stylist"), ("password.set", "Some stylist")]);
    // Setting the password started a new session.
    ada.get("/studio").is(303).await;

    let wrong =
        send(&service, "/sign-in", &[("name", "some stylist"), ("password", "a horse in Basle")]).await;
    assert_eq!(wrong.status(), 401);
    let html = wrong.text();
    assert!(html.contains("wrong name or password"), "{html}");
    assert!(html.contains(r#"value="some stylist""#) && !html.contains("Basle"), "{html}");
    let unknown = send(&service, "/sign-in", &[("name", "nobody"), ("password", PASSWORD)]).await;
    assert!(unknown.text().contains("wrong name or password"));

    let right = send(&service, "/sign-in", &[("name", "some stylist"), ("password", PASSWORD)]).await;
    let cookie = session(&right);
    get(&service, "/studio", &cookie).is(200).await;
    let token = atelier::people::Token::parse(cookie.split_once('=').unwrap().1).unwrap();
    let ada = Browser { session: token, ..ada };
    let out = ada.post("/sign-out", &[]).await;
    assert_eq!((out.status(), out.header("location")), (303, "/sign-in"));
    assert!(out.header("set-cookie").contains("Max-Age=0"));
    ada.get("/studio").is(303).await;
}

const NEXT: &str = "an alpaca at the lake";

/// A signed-in stylist with the password, and the same person in another browser.
async fn two_browsers(service: &Service) -> (Browser, Browser) {
    let laptop = service.signed_in(Role::Stylist).await;
    let set = laptop.post("/password", &[("password", PASSWORD)]).await;
    (browser_with(&laptop, &session(&set)), service.signed_in(Role::Stylist).await)
}

fn browser_with(browser: &Browser, cookie: &str) -> Browser {
    browser.with(Token::parse(cookie.split_once('=').unwrap().1).unwrap())
}

#[apply(on_sqlite)]
async fn a_new_password_asks_for_the_old_one(service: Service) {
    let without = service.signed_in(Role::Analyst).await;
    assert!(!without.page("/password").await.contains("name=\"old\""), "there is no old one to ask for");
    let (laptop, phone) = two_browsers(&service).await;
    assert!(laptop.page("/password").await.contains("name=\"old\""));
    for old in ["", "a horse in Basle", &"x".repeat(300)] {
        let refused = laptop.post("/password", &[("old", old), ("password", NEXT)]).await;
        assert_eq!(refused.status(), 422, "{old}");
        assert!(refused.text().contains("role=\"alert\">the old password is wrong"), "{old}");
    }
    assert_eq!(phone.get("/studio").await.status(), 200, "nothing has changed");

    let changed = laptop.post("/password", &[("old", PASSWORD), ("password", NEXT)]).is(303).await;
    let continued = browser_with(&laptop, &session(&changed));
    assert_eq!(continued.get("/studio").await.status(), 200, "this browser stays signed in");
    assert_eq!(phone.get("/studio").await.status(), 303, "others do not");
    assert_eq!(laptop.get("/studio").await.status(), 303, "nor does the token of before");
    // A page that was open before has the form token of before.
    let stale = [("csrf", &*laptop.session.form_token()), ("old", NEXT), ("password", PASSWORD)];
    continued.post_bare("/password", &stale).is(403).await;
    let fields = [("name", "Some stylist"), ("password", NEXT)];
    send(&service, "/sign-in", &fields).is(303).await;

    // A link replaces a forgotten password, and ends the sessions too.
    let id = service.state.access().session(&continued.session, now()).await.unwrap().unwrap().person.id;
    let link = service.state.access().link(id, now()).await.unwrap();
    send(&service, "/sign-in/link", &[("link", link.as_str()), ("password", PASSWORD)]).is(303).await;
    continued.get("/studio").is(303).await;
}

#[apply(on_sqlite)]
async fn a_session_does_not_help_to_guess_the_password(service: Service) {
    let (laptop, phone) = two_browsers(&service).await;
    for guess in 0..5 {
        let browser = if guess % 2 == 0 { &laptop } else { &phone };
        browser.post("/password", &[("old", "a wrong password"), ("password", NEXT)]).is(422).await;
    }
    let slowed = laptop.post("/password", &[("old", PASSWORD), ("password", NEXT)]).await;
    assert_eq!(slowed.status(), 429, "even the right one must wait");
    // Guesses at the sign-in form count together with these.
    let fields = [("name", "SOME stylist"), ("password", PASSWORD)];
    send(&service, "/sign-in", &fields).is(429).await;
    // A stranger can cause this, too. A link does not wait.
    let name = Name::new("Some stylist").unwrap();
    let id = service.store.people().find_with_password(&name).await.unwrap().unwrap().0.id;
    let link = service.state.access().link(id, now()).await.unwrap();
    send(&service, "/sign-in/link", &[("link", link.as_str())]).is(303).await;
}

#[apply(contract)]
async fn one_of_two_new_passwords_wins(service: Service) {
    let (laptop, phone) = two_browsers(&service).await;
    let ours = [("old", PASSWORD), ("password", NEXT)];
    let theirs = [("old", PASSWORD), ("password", "a thief in the night")];
    let (one, other) = tokio::join!(laptop.post("/password", &ours), phone.post("/password", &theirs));
    let won = [&one, &other].map(|answer| answer.status() == 303);
    assert!(won[0] != won[1], "{one:?} {other:?}");
    for (password, works) in [(NEXT, won[0]), ("a thief in the night", won[1]), (PASSWORD, false)] {
        let answer = send(&service, "/sign-in", &[("name", "Some stylist"), ("password", password)]).await;
        assert_eq!(answer.status() == 303, works, "{password}");
    }
}

#[apply(on_sqlite)]
async fn easy_passwords_are_refused(service: Service) {
    let ada = service.signed_in(Role::Stylist).await;
    for (password, reason) in [
        ("password1234", "close to a common password"),
        ("Passw0rd2026!", "close to a common password"),
        ("p4$$w0rdp4$$w0rd", "repeats itself"),
        ("password-password", "too few words"),
        ("qwertyuiop123", "close to a common password"),
        ("zxcvbnm,./asdfgh", "keys in a row"),
        ("1q2w3e4r5t6y", "close to a common password"),
        ("atelier20262027", "too easy to guess"),
        ("0123456789012", "letters or digits in a row"),
        ("            ", "repeats itself"),
        ("correcthorsebatterystaple", "too few words"),
        ("Correct-Horse-Battery-Staple1", "too few words"),
        ("harrypotter1", "close to a common password"),
        ("elizabeth1234", "close to a common name"),
        ("iloveyou2023!", "close to a common password"),
        ("michaeljordan23", "close to a common password"),
        ("manchesterunited", "close to a common password"),
        ("SummerWinter26", "too few words"),
        ("Willkommen2026!", "too few words"),
        ("Sommer2026!!", "too few words"),
        ("ichliebedich", "too few words"),
        ("stylist16121976", "date or a year"),
        ("Gurke2026!Gurke2026", "too easy to guess"),
        ("SOME-stylist", "contains your name"),
        ("I am some stylist, hello", "contains your name"),
        ("too short", "12 to 256 characters, this one 9"),
    ] {
        let refused = ada.post("/password", &[("password", password)]).await;
        assert_eq!(refused.status(), 422, "{password}");
        let html = refused.text();
        assert!(html.contains("role=\"alert\">") && html.contains(reason), "{password}: {html}");
        assert!(!html.contains(password), "a password is not shown");
    }
    let id = service.state.access().session(&ada.session, now()).await.unwrap().unwrap().person.id;
    let link = service.state.access().link(id, now()).await.unwrap();
    let refused =
        send(&service, "/sign-in/link", &[("link", link.as_str()), ("password", "password1234")]).await;
    assert_eq!(refused.status(), 422);
    let html = refused.text();
    assert!(html.contains("too easy to guess") && html.contains("Welcome, Some stylist"), "{html}");
    assert!(service.state.access().holder(&link, now()).await.is_ok(), "the link is not wasted");

    let (mut ada, mut old) = (ada, "");
    for password in
        [PASSWORD, "kv7!pQz2mWx9", "alpaca tuba moss", "ein Alpaka am Zürichsee", "мой дядя самых честных"]
    {
        let set = ada.post("/password", &[("old", old), ("password", password)]).await;
        assert_eq!(set.status(), 303, "{password}: {}", set.text());
        (ada, old) = (browser_with(&ada, &session(&set)), password);
    }
}

#[apply(on_sqlite)]
async fn guessing_passwords_is_slowed_down(service: Service) {
    let mut statuses = Vec::new();
    for _ in 0..6 {
        let answer = send(&service, "/sign-in", &[("name", "ada"), ("password", "x")]).await;
        statuses.push(answer.status());
        if answer.status() == 429 {
            let wait: u64 = answer.header("retry-after").parse().unwrap();
            assert!((1..=2).contains(&wait), "{wait}");
        }
    }
    assert_eq!(statuses, [401, 401, 401, 401, 401, 429]);
    send(&service, "/sign-in", &[("name", "bo"), ("password", "x")]).is(401).await;
}

/// As many sign-ins from this machine as wait for a hash. Each keeps its place until it is dropped, because it is polled only
/// once.
async fn occupy_line(service: &Service) -> Vec<impl Future<Output = ()> + use<>> {
    let peer = Some(IpAddr::from([127, 0, 0, 1]));
    let mut line = Vec::new();
    let fill = |line: &mut Vec<_>| {
        for number in 0.. {
            let access = service.state.access().by(Author { actor: Actor::Visitor, peer });
            let mut waiting = Box::pin(async move {
                let _ = access.sign_in(&format!("waiting {number}"), "a wrong password", None, now()).await;
            });
            if waiting.as_mut().now_or_never().is_some() {
                return;
            }
            line.push(waiting);
        }
    };
    fill(&mut line);
    // The first two may compute already. The next two then keep the turns, so nothing else ends.
    for _ in 0..2 {
        line.remove(0).await;
    }
    fill(&mut line);
    assert!(line.len() >= 18, "{} places", line.len());
    line
}

#[apply(on_sqlite)]
async fn a_full_line_refuses_every_name_alike(service: Service) {
    let ada = service.signed_in(Role::Stylist).await;
    ada.post("/password", &[("password", PASSWORD)]).await;
    service.signed_in(Role::Analyst).await;
    let people = service.store.people();
    let gone = people.create(&Name::new("Gone").unwrap(), Role::Stylist, now()).await.unwrap();
    people.set_disabled(gone.id, true, now()).await.unwrap();
    // With a password, without one, disabled, unknown: each takes a place in the line, so each computes a hash.
    let names = ["Some stylist", "Some analyst", "Gone", "nobody"];
    let line = occupy_line(&service).await;
    for name in names {
        let refused = send(&service, "/sign-in", &[("name", name), ("password", PASSWORD)]).await;
        assert_eq!((refused.status(), refused.header("retry-after")), (429, "1"), "{name}");
        assert!(refused.text().contains("too many people are signing in"), "{name}");
        // What needs no hash is answered at once, and the same for everyone.
        let impossible = "x".repeat(257);
        let refused = send(&service, "/sign-in", &[("name", name), ("password", &impossible)]).await;
        assert_eq!(refused.status(), 401, "{name}");
    }
    // Callers who hang up leave the line, and have counted nothing.
    drop(line);
    for name in names {
        let answer = send(&service, "/sign-in", &[("name", name), ("password", PASSWORD)]).await;
        assert_eq!(answer.status(), if name == "Some stylist" { 303 } else { 401 }, "{name}");
    }
    for _ in 0..5 {
        send(&service, "/sign-in", &[("name", "waiting 17"), ("password", "x")]).is(401).await;
    }
    send(&service, "/sign-in", &[("name", &"x".repeat(1 << 14)), ("password", "x")]).is(413).await;
}

/// A browser at an address of this machine.
fn browser_at(address: [u8; 4]) -> reqwest::Client {
    let client = reqwest::Client::builder().local_address(IpAddr::from(address));
    client.redirect(reqwest::redirect::Policy::none()).build().unwrap()
}

/// The status of a sign-in as the stylist or as somebody else, on a device that may be known.
async fn try_on(
    client: &reqwest::Client,
    service: &Service,
    device: &str,
    name: &str,
    password: &str,
) -> u16 {
    let fields = [("name", name), ("password", password)];
    let call = Call(client.post(format!("{}/sign-in", service.url))).form(&fields);
    call.header("cookie", device).await.status
}

#[apply(on_sqlite)]
async fn one_address_keeps_nobody_else_from_signing_in(service: Service) {
    let ada = service.signed_in(Role::Stylist).await;
    ada.post("/password", &[("password", PASSWORD)]).await;
    let (service, attacker) = (&service, &browser_at([127, 0, 0, 1]));
    let (attacking, refused) = (&AtomicBool::new(true), &AtomicBool::new(false));
    // More at once than there are places.
    let attack = futures_util::future::join_all((0..90).map(async |first| {
        for number in (first..).step_by(90).take_while(|_| attacking.load(Ordering::Relaxed)) {
            let status = try_on(attacker, service, "", &format!("n{number}"), "a wrong password").await;
            refused.fetch_or(status == 429, Ordering::Relaxed);
        }
    }));
    let others = async {
        // The attack fills the line.
        until!(refused.load(Ordering::Relaxed));
        let mut statuses = Vec::new();
        for number in 0..20 {
            let there = browser_at([127, 0, 0, 2 + number % 3]);
            statuses.push(try_on(&there, service, "", "Some stylist", PASSWORD).await);
        }
        attacking.store(false, Ordering::Relaxed);
        statuses
    };
    let (_, others) = tokio::join!(attack, others);
    assert_eq!(others, [303; 20]);
}

/// The cookie by which a device is known that has signed in.
fn device(answer: &Answer) -> String {
    let cookies = answer.headers("set-cookie");
    let cookie = cookies.into_iter().find(|cookie| cookie.starts_with("atelier_device=")).expect("a cookie");
    assert!(cookie.ends_with("; Path=/; HttpOnly; SameSite=Lax; Max-Age=34560000"), "{cookie}");
    cookie.split(';').next().unwrap().to_owned()
}

#[apply(on_sqlite)]
async fn a_known_device_comes_before_strangers(service: Service) {
    let ada = service.signed_in(Role::Stylist).await;
    let first = device(&ada.post("/password", &[("password", PASSWORD)]).await);
    let client = browser();
    let try_on = async |device: &str, name, password| try_on(&client, &service, device, name, password).await;
    let waiting = occupy_line(&service).await;
    assert_eq!(try_on(&first, "bo", PASSWORD).await, 429, "it is known as one person only");
    let mut signed_in = pin!(try_on(&first, "Some stylist", PASSWORD));
    let waited = tokio::time::timeout(Duration::from_millis(500), &mut signed_in).await;
    assert!(waited.is_err(), "it has a place, and a turn when one of the others ends");
    drop(waiting);
    assert_eq!(signed_in.await, 303);

    // Strangers make the name wait on other devices.
    for _ in 0..5 {
        try_on("", "Some stylist", "a wrong password").await;
    }
    assert_eq!(try_on("", "Some stylist", PASSWORD).await, 429);
    assert_eq!(try_on(&first, "Some stylist", PASSWORD).await, 303);
    // After a new password the devices of before are strangers.
    let id = service
        .state
        .access()
        .session(&service.signed_in(Role::Stylist).await.session, now())
        .await
        .unwrap()
        .unwrap()
        .person
        .id;
    let page = service.state.access().link(id, now()).await.unwrap();
    let entered = send(&service, "/sign-in/link", &[("link", page.as_str()), ("password", NEXT)]).await;
    let second = device(&entered);
    assert_eq!(try_on(&first, "Some stylist", NEXT).await, 429);
    assert_eq!(try_on(&second, "Some stylist", NEXT).await, 303);
    // Guesses on a known device are slowed down, too.
    for _ in 0..5 {
        assert_eq!(try_on(&second, "Some stylist", "a wrong password").await, 401);
    }
    assert_eq!(try_on(&second, "Some stylist", NEXT).await, 429);
}

#[apply(on_sqlite)]
async fn an_impossible_password_is_not_counted(service: Service) {
    let impossible = "x".repeat(257);
    for _ in 0..7 {
        let answer = send(&service, "/sign-in", &[("name", "ada"), ("password", &impossible)]).is(401).await;
        assert!(answer.text().contains("wrong name or password"));
    }
    let possible = send(&service, "/sign-in", &[("name", "ada"), ("password", "x")]).await;
    assert_eq!(possible.status(), 401, "it was the first attempt");
}

#[apply(on_sqlite)]
async fn parallel_attempts_count_one_by_one(service: Service) {
    let people = service.store.people();
    people.create(&Name::new("Çiğdem").unwrap(), Role::Stylist, now()).await.unwrap();
    // One account, however it is written.
    let names = ["Çiğdem", "çiğdem", "ÇIĞDEM", " çiğdem ", "ÇiĞdem"];
    let service = &service;
    let attempts = (0..15).map(|number| async move {
        let name = names[number % names.len()];
        send(service, "/sign-in", &[("name", name), ("password", "a wrong password")]).await.status()
    });
    let mut statuses = futures_util::future::join_all(attempts).await;
    statuses.sort_unstable();
    assert_eq!(statuses[..6], [401, 401, 401, 401, 401, 429], "five are free");
}

#[apply(contract)]
async fn a_link_expires_and_a_newer_one_replaces_it(service: Service) {
    let access = service.state.access();
    let ada = service.store.people().create(&Name::new("Ada").unwrap(), Role::Stylist, now()).await.unwrap();
    let old = access.link(ada.id, now()).await.unwrap();
    let new = access.link(ada.id, now()).await.unwrap();
    assert!(access.enter(&old, None, now()).await.is_err());
    assert!(access.enter(&new, None, now() + Duration::from_hours(25)).await.is_err());
    service.store.people().set_disabled(ada.id, true, now()).await.unwrap();
    assert!(access.enter(&new, None, now()).await.is_err());
    service.store.people().set_disabled(ada.id, false, now()).await.unwrap();
    assert!(access.enter(&new, None, now()).await.is_err(), "a link of before does not come back");
    let new = access.link(ada.id, now()).await.unwrap();
    let session = access.enter(&new, None, now()).await.unwrap();
    assert!(access.session(&session, now()).await.unwrap().is_some());
    assert!(access.session(&session, now() + Duration::from_hours(24 * 8)).await.unwrap().is_none());
    for nonsense in ["x", "%00", &"0".repeat(64)] {
        service.page(&format!("/sign-in/{nonsense}")).is(404).await;
    }
}

#[apply(on_sqlite)]
async fn a_page_for_another_role_is_forbidden(service: Service) {
    let stylist = service.signed_in(Role::Stylist).await;
    let analyst = service.signed_in(Role::Analyst).await;
    for (path, of_analysts) in [("/evaluation", true), ("/operations", true), ("/access", false)] {
        let answer = stylist.get(path).await;
        assert_eq!(answer.status(), 403, "{path}");
        let html = answer.text();
        assert!(html.contains("yours is stylist"), "{path}: {html}");
        assert_eq!(analyst.get(path).await.status() == 403, !of_analysts, "{path}");
        let answer = service.get(path).await;
        assert_eq!((answer.status(), answer.header("location")), (303, &*next(path)));
    }
    // A page's header links only to pages that the role may see.
    let html = stylist.page("/studio").await;
    assert!(html.contains(r#"href="/studio""#) && !html.contains(r#"href="/evaluation""#), "{html}");
}

fn next(path: &str) -> String {
    format!("/sign-in?next={}", path.replace('/', "%2F"))
}

#[apply(on_sqlite)]
async fn forged_forms_change_nothing(service: Service) {
    let ada = service.signed_in(Role::Admin).await;
    let bo = service.signed_in(Role::Stylist).await.session.form_token();
    for csrf in ["", "x", &bo] {
        let answer = ada.post_bare("/sign-out", &[("csrf", csrf)]).await;
        assert_eq!(answer.status(), 403, "{csrf}");
    }
    let refused = ada.post_bare("/sign-out", &[("csrf", &*bo), ("note", "likes blue")]).await.text();
    assert!(refused.contains("Your note was: likes blue"), "what was typed is not lost: {refused}");
    assert_eq!(ada.get("/studio").await.status(), 200, "the session still works");
    let form = || service.form("/sign-in", &[("name", "a"), ("password", "b")]);
    form().header("sec-fetch-site", "cross-site").is(403).await;
    // Over plain HTTP a browser sends only the origin.
    form().header("origin", "http://evil.example").is(403).await;
    service.send("/sign-in", serde_json::Value::from("x")).is(415).await;
}

#[apply(on_sqlite)]
async fn a_sign_in_returns_to_the_requested_page(service: Service) {
    let asked = service.get("/studio?customer=c-1&slot=").await;
    let next = asked.header("location");
    assert_eq!(next, "/sign-in?next=%2Fstudio%3Fcustomer%3Dc-1%26slot%3D");
    let html = service.page(next).await.text();
    assert!(html.contains(r#"value="/studio?customer=c-1&#38;slot=""#), "{html}");
    let ada = service.signed_in(Role::Stylist).await;
    ada.post("/password", &[("password", PASSWORD)]).await;
    for (next, to) in [("/studio?customer=c-1&slot=", "/studio?customer=c-1&slot="), ("//x", "/studio")] {
        let fields = [("name", "Some stylist"), ("password", PASSWORD), ("next", next)];
        assert_eq!(send(&service, "/sign-in", &fields).await.header("location"), to);
    }
    let home = service.get("/").await;
    assert_eq!(home.header("location"), "/sign-in");
}

/// Asks with a session's cookie, as a balancer passes it on.
fn get_over_https(service: &Service, path: &str, cookie: &str) -> Call {
    get(service, path, cookie).header("x-forwarded-proto", "https")
}

#[apply(on_sqlite)]
async fn over_https_the_cookie_belongs_to_the_host(service: Service) {
    let plain = service.signed_in(Role::Stylist).await;
    let admin = service.store.people().create(&Name::new("Ada").unwrap(), Role::Admin, now()).await.unwrap();
    let link = service.state.access().link(admin.id, now()).await.unwrap();
    let entered =
        service.form("/sign-in/link", &[("link", link.as_str())]).header("x-forwarded-proto", "https").await;
    let cookie = entered.header("set-cookie").to_owned();
    assert!(cookie.starts_with("__Host-atelier_session="), "{cookie}");
    assert!(cookie.ends_with("; Path=/; HttpOnly; SameSite=Lax; Max-Age=604800; Secure"), "{cookie}");
    let host_cookie = cookie.split(';').next().unwrap();
    get_over_https(&service, "/access", host_cookie).is(200).await;
    // Another host of the domain, or anyone on the network, can set a cookie of the plain name.
    let planted = format!("atelier_session={}", plain.session.as_str());
    get_over_https(&service, "/studio", &planted).is(303).await;
    let both = get_over_https(&service, "/access", &format!("{planted}; {host_cookie}")).await;
    assert_eq!(both.status(), 200, "the host's cookie counts");
    assert_eq!(plain.get("/studio").await.status(), 200, "over http the old name goes on working");
    get(&service, "/access", host_cookie).is(303).await;

    for path in ["/access", "/nothing", "/static/atelier.css", "/livez"] {
        let answer = get_over_https(&service, path, host_cookie).await;
        assert_eq!(answer.header("strict-transport-security"), "max-age=31536000", "{path}");
        assert_eq!(service.get(path).await.header("strict-transport-security"), "", "{path} over http");
    }
    let token = Token::parse(host_cookie.split_once('=').unwrap().1).unwrap();
    let out = service.form("/sign-out", &[("csrf", &token.form_token())]).header("cookie", host_cookie);
    let ended = out.header("x-forwarded-proto", "https").await;
    assert!(ended.header("set-cookie").starts_with("__Host-atelier_session=; Path=/;"), "{ended:?}");
    get_over_https(&service, "/access", host_cookie).is(303).await;
}

#[apply(on_sqlite)]
async fn private_answers_are_stored_nowhere(Demo(service): Demo) {
    let admin = service.signed_in(Role::Admin).await;
    for path in [
        "/studio",
        "/studio?customer=c-00001",
        "/access",
        "/access/audit",
        "/operations",
        "/evaluation/cases.csv",
        "/password",
        "/nothing",
    ] {
        let answer = admin.get(path).await;
        assert_eq!(answer.header("cache-control"), "no-store", "{path}: {}", answer.status());
    }
    // Signed out, and programs.
    for path in ["/sign-in", "/studio", "/articles", "/customers?n=1", "/customers/none", "/metrics", "/"] {
        let answer = service.get(path).await;
        assert_eq!(answer.header("cache-control"), "no-store", "{path}: {}", answer.status());
    }
    let refused = send(&service, "/sign-in", &[("name", "nobody"), ("password", "x")]).await;
    assert_eq!(refused.header("cache-control"), "no-store");
    for path in ["/static/atelier.css", "/pictures/coat.svg"] {
        assert!(service.get(path).await.header("cache-control").starts_with("public, max-age="), "{path}");
    }
}

#[apply(on_sqlite)]
async fn a_links_address_stays_secret(service: Service) {
    let admin = service.state.access().without_password(now()).await.unwrap().unwrap();
    let link = service.state.access().link(admin.id, now()).await.unwrap();
    // With a character too many, as copied from a sentence, it is a problem page and still a secret.
    for (path, status) in
        [(format!("/sign-in/{}", link.as_str()), 200), (format!("/sign-in/{}.", link.as_str()), 404)]
    {
        let page = service.page(&path).await;
        assert_eq!(page.status(), status);
        let policies: Vec<_> = page.headers("referrer-policy");
        assert_eq!(policies, ["strict-origin"], "no Referer with the address goes out");
        let html = page.text();
        for part in html.split('"').filter(|part| part.starts_with('/')) {
            assert!(!part.contains(link.as_str()), "an address with the token in {html}");
        }
    }
    let posted = send(&service, &format!("/sign-in/{}", link.as_str()), &[("password", "")]).await;
    assert_eq!(posted.status(), 405, "the form sends the token in its body");
    assert!(service.state.access().holder(&link, now()).await.is_ok());
}

#[apply(on_sqlite)]
async fn every_answer_has_security_headers(service: Service) {
    for path in ["/sign-in", "/livez", "/nothing", "/docs", "/static/atelier.css", "/openapi.json"] {
        let answer = service.page(path).await;
        let policy = answer.header("content-security-policy");
        assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self';"), "{path}");
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(answer.header("x-content-type-options"), "nosniff", "{path}");
        assert_eq!(answer.header("x-frame-options"), "DENY", "{path}");
    }
    let html = service.page("/sign-in").await.text();
    for part in html.split(['"']).filter(|part| part.starts_with("/static/")) {
        let asset = service.get(part).await;
        assert_eq!(asset.status(), 200, "{part}");
        assert_eq!(asset.header("cache-control"), "public, max-age=31536000, immutable", "{part}");
    }
    assert!(!html.contains("<style") && !html.contains("style=") && !html.contains("<script>"), "{html}");
    service.get("/static/../Cargo.toml").is(404).await;
    service.get("/static/..%2FCargo.toml").is(404).await;
}

#[apply(contract)]
async fn the_first_admin_is_created_once(service: Service) {
    let access = service.state.access();
    let both = tokio::join!(access.without_password(now()), access.without_password(now()));
    assert_eq!(both.0.unwrap().unwrap(), both.1.unwrap().unwrap());
    assert_eq!(service.store.people().list().await.unwrap().len(), 1);
}
