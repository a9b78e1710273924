//! Signing in and out, and attempts to get in without permission.

use std::{net::IpAddr, time::Duration};

use atelier::{
    people::Token,
    platform::db::{Actor, Author},
};
use atelier_core::domain::Role;
use futures_util::FutureExt;
use reqwest::Client;

use crate::harness::{
    Answer, Browser, Call, Demo, Html, Service, apply, browser, contract, entries, now, on_sqlite, until,
};

const PASSWORD: &str = "a horse in Zurich";
const NEXT: &str = "an alpaca at the lake";
const STYLIST: &str = "Some stylist";

fn sign_in(service: &Service, name: &str, password: &str) -> Call {
    service.form("/sign-in", &[("name", name), ("password", password)])
}

fn use_link(service: &Service, link: &Token, password: &str) -> Call {
    service.form("/sign-in/link", &[("link", link.as_str()), ("password", password)])
}

fn set_password(browser: &Browser, old: &str, new: &str) -> Call {
    browser.post("/password", &[("old", old), ("password", new)])
}

/// The browser that was signed in.
fn signed_in(service: &Service, answer: &Answer) -> Browser {
    let cookie = answer.header("set-cookie").strip_prefix("atelier_session=").expect("a session");
    let (token, rest) = cookie.split_once("; ").unwrap();
    assert_eq!(rest, "Path=/; HttpOnly; SameSite=Lax; Max-Age=604800");
    service.browser_in(Token::parse(token).unwrap())
}

/// A new link of the stylist's.
async fn link(service: &Service) -> Token {
    service.state.access().link(service.find_person(STYLIST).await, now()).await.unwrap()
}

#[apply(on_sqlite)]
async fn a_link_signs_in_once_and_sets_a_password(service: Service) {
    let access = service.state.access();
    let admin = access.without_password(now()).await.unwrap().unwrap();
    let link = access.link(admin.id, now()).await.unwrap();
    let path = format!("/sign-in/{}", link.as_str());
    // The link survives a mail program that opens it first, and a refused password.
    for _ in 0..2 {
        assert!(service.page(&path).is(200).await.text().contains("Welcome, admin"));
    }
    let refused = use_link(&service, &link, "short").is(422).await.text();
    refused.has(["12 to 256 characters, this one 5"]);
    let entered = use_link(&service, &link, PASSWORD).is(303).await;
    assert_eq!(entered.header("location"), "/studio");
    assert!(signed_in(&service, &entered).page("/studio").await.contains(">admin</span>"));

    use_link(&service, &link, "").is(404).await.text().has(["role=\"alert\">this link was already used"]);
    for path in [&*path, "/sign-in/made-up", "/sign-in/%00", &format!("/sign-in/{}", "0".repeat(64))] {
        // The person can sign in otherwise.
        service.page(path).is(404).await.text().has(["<h1>Sign in</h1>"]);
    }
    assert!(access.without_password(now()).await.unwrap().is_none());
    sign_in(&service, "Admin", PASSWORD).is(303).await;
}

#[apply(contract)]
async fn a_password_signs_in_and_signing_out_ends_the_session(service: Service) {
    let ada = service.signed_in(Role::Stylist).await;
    ada.post("/password", &[("password", PASSWORD)]).is(303).await;
    let log = service.log(9).await;
    let said: Vec<_> = log.iter().map(|entry| (entry.action.as_str(), entry.subject.as_str())).collect();
    assert_eq!(said, [("sign-in", STYLIST), ("password.set", STYLIST)]);

    let wrong = sign_in(&service, "some stylist", "a horse in Basle").is(401).await.text();
    wrong.has(["wrong name or password", r#"value="some stylist""#]).lacks(["Basle"]);
    sign_in(&service, "nobody", PASSWORD).await.text().has(["wrong name or password"]);

    let enter = async || signed_in(&service, &sign_in(&service, "some stylist", PASSWORD).await);
    let (ada, phone) = (enter().await, enter().await);
    ada.get("/studio").is(200).await;
    let out = ada.post("/sign-out", &[]).is(303).await;
    assert_eq!(out.header("location"), "/sign-in");
    assert!(out.header("set-cookie").contains("Max-Age=0"));
    ada.get("/studio").is(303).await;
    phone.get("/studio").is(200).await;
}

/// A signed-in stylist with the password, and the same person in another browser.
async fn two_browsers(service: &Service) -> (Browser, Browser) {
    let laptop = service.signed_in(Role::Stylist).await;
    let laptop = signed_in(service, &set_password(&laptop, "", PASSWORD).await);
    (laptop, service.signed_in(Role::Stylist).await)
}

#[apply(contract)]
async fn a_new_password_asks_for_the_old_one(service: Service) {
    let without = service.signed_in(Role::Analyst).await;
    assert!(!without.page("/password").await.contains("name=\"old\""), "there is no old one to ask for");
    let (laptop, phone) = two_browsers(&service).await;
    assert!(laptop.page("/password").await.contains("name=\"old\""));
    for old in ["", "a horse in Basle", &"x".repeat(300)] {
        let refused = set_password(&laptop, old, NEXT).is(422).await;
        assert!(refused.text().contains("role=\"alert\">the old password is wrong"), "{old}");
    }
    phone.get("/studio").is(200).await;

    let changed = set_password(&laptop, PASSWORD, NEXT).is(303).await;
    let continued = signed_in(&service, &changed);
    for (browser, status, why) in [
        (&continued, 200, "this browser stays signed in"),
        (&phone, 303, "others do not"),
        (&laptop, 303, "nor does the token of before"),
    ] {
        assert_eq!(browser.get("/studio").await.status, status, "{why}");
    }
    // A page that was open before has the form token of before.
    let stale = [("csrf", &*laptop.session.form_token()), ("old", NEXT), ("password", PASSWORD)];
    continued.post_bare("/password", &stale).is(403).await;
    sign_in(&service, STYLIST, NEXT).is(303).await;

    // A link replaces a forgotten password, and ends the sessions too.
    use_link(&service, &link(&service).await, PASSWORD).is(303).await;
    continued.get("/studio").is(303).await;
}

#[apply(on_sqlite)]
async fn a_session_does_not_help_to_guess_the_password(service: Service) {
    let (laptop, phone) = two_browsers(&service).await;
    // Those of a stranger do not count here.
    for _ in 0..6 {
        sign_in(&service, "SOME stylist", "a wrong password").await;
    }
    for browser in [&laptop, &phone, &laptop, &phone, &laptop] {
        set_password(browser, "a wrong password", NEXT).is(422).await;
    }
    // Even the right one must wait. A link does not.
    set_password(&laptop, PASSWORD, NEXT).is(429).await;
    use_link(&service, &link(&service).await, "").is(303).await;
}

#[apply(contract)]
async fn one_of_two_new_passwords_wins(service: Service) {
    let (laptop, phone) = two_browsers(&service).await;
    let theirs = "a thief in the night";
    let (one, other) =
        tokio::join!(set_password(&laptop, PASSWORD, NEXT), set_password(&phone, PASSWORD, theirs));
    let won = [&one, &other].map(|answer| answer.status == 303);
    assert!(won[0] != won[1], "{one:?} {other:?}");
    for (password, works) in [(NEXT, won[0]), (theirs, won[1]), (PASSWORD, false)] {
        assert_eq!(sign_in(&service, STYLIST, password).await.status == 303, works, "{password}");
    }
}

/// Which ones are easy is asked of `find_weakness`.
#[apply(on_sqlite)]
async fn easy_passwords_are_refused(service: Service) {
    let ada = service.signed_in(Role::Stylist).await;
    for (password, reason) in [
        ("password1234", "close to a common password"),
        ("            ", "repeats itself"),
        ("I am some stylist, hello", "contains your name"),
        ("too short", "12 to 256 characters, this one 9"),
        ("x".repeat(300).as_str(), "12 to 256 characters, this one 300"),
    ] {
        let html = ada.post("/password", &[("password", password)]).is(422).await.text();
        html.has(["role=\"alert\">", reason]).lacks([password]);
    }
    let link = link(&service).await;
    let html = use_link(&service, &link, "password1234").is(422).await.text();
    html.has(["too easy to guess", "Welcome, Some stylist"]);
    use_link(&service, &link, PASSWORD).is(303).await;
}

/// As many sign-ins as wait for a hash, each from an address of its own. Each keeps its place until it is dropped, because it is
/// polled only once.
async fn occupy_line(service: &Service) -> Vec<impl Future<Output = ()> + use<>> {
    let mut line = Vec::new();
    let fill = |line: &mut Vec<_>| {
        for number in 0..100 {
            let peer = Some(IpAddr::from([10, 0, 0, number]));
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
    // The first may compute already. The next then keeps the turn, so nothing else ends.
    line.remove(0).await;
    fill(&mut line);
    assert_eq!(line.len(), 64);
    line
}

#[apply(on_sqlite)]
async fn a_full_line_refuses_every_name_alike(service: Service) {
    let ada = service.signed_in(Role::Stylist).await;
    set_password(&ada, "", PASSWORD).await;
    service.signed_in(Role::Analyst).await;
    let (gone, _) = service.invite("Gone", Role::Stylist).await;
    service.store.people().set_disabled(gone, true, now()).await.unwrap();
    // With a password, without one, disabled, unknown: each takes a place in the line, so each computes a hash.
    let names = [STYLIST, "Some analyst", "Gone", "nobody"];
    let line = occupy_line(&service).await;
    for name in names {
        let refused = sign_in(&service, name, PASSWORD).await;
        assert_eq!((refused.status, refused.header("retry-after")), (429, "1"), "{name}");
        assert!(refused.text().contains("Too many people are signing in"), "{name}");
        // What needs no hash is answered at once, and the same for everyone.
        assert_eq!(sign_in(&service, name, &"x".repeat(257)).await.status, 401, "{name}");
    }
    // Callers who hang up leave the line, and have counted nothing.
    drop(line);
    for name in names {
        let expected = if name == STYLIST { 303 } else { 401 };
        assert_eq!(sign_in(&service, name, PASSWORD).await.status, expected, "{name}");
    }
    for _ in 0..5 {
        sign_in(&service, "waiting 17", "x").is(401).await;
    }
    sign_in(&service, &"x".repeat(1 << 14), "x").is(413).await;
}

/// A browser at an address of this machine.
fn browser_at(address: [u8; 4]) -> Client {
    let client = Client::builder().local_address(IpAddr::from(address));
    client.redirect(reqwest::redirect::Policy::none()).build().unwrap()
}

/// A sign-in as the stylist or as somebody else, on a device that may be known.
async fn try_as(client: &Client, service: &Service, device: &str, name: &str, password: &str) -> Answer {
    let call = Call(client.post(format!("{}/sign-in", service.url))).header("cookie", device);
    call.form(&[("name", name), ("password", password)]).await
}

/// The cookie by which a device is known that has signed in.
fn device(answer: &Answer) -> String {
    let cookies = answer.headers("set-cookie");
    let cookie = cookies.into_iter().find(|cookie| cookie.starts_with("atelier_device=")).expect("a cookie");
    assert!(cookie.ends_with("; Path=/; HttpOnly; SameSite=Lax; Max-Age=34560000"), "{cookie}");
    cookie.split(';').next().unwrap().to_owned()
}

#[apply(on_sqlite)]
async fn a_known_device_and_another_address_wait_for_no_crowd(service: Service) {
    let ada = service.signed_in(Role::Stylist).await;
    let first = device(&set_password(&ada, "", PASSWORD).await);
    let (client, elsewhere) = (browser(), browser_at([127, 0, 0, 2]));
    let try_on = async |device: &str, name: &str, password| {
        try_as(&client, &service, device, name, password).await.status
    };
    // Strangers at many addresses fill their line, not that of known devices.
    let waiting = occupy_line(&service).await;
    assert_eq!(try_on("", STYLIST, PASSWORD).await, 429);
    assert_eq!(try_on(&first, "bo", PASSWORD).await, 429, "it is known as one person only");
    assert_eq!(try_on(&first, STYLIST, PASSWORD).await, 303);
    drop(waiting);
    // Strangers at one address do not fill it.
    let names: Vec<String> = (0..80).map(|number| format!("crowd {number}")).collect();
    let crowd = names.iter().map(|name| try_on("", name, PASSWORD));
    let other = try_as(&elsewhere, &service, "", STYLIST, PASSWORD);
    let (crowd, other) = tokio::join!(futures_util::future::join_all(crowd), other);
    let tried = crowd.iter().filter(|status| **status == 401).count();
    assert!((16..40).contains(&tried), "{tried} of 80");
    assert_eq!(other.status, 303);

    // After a new password the devices of before are strangers.
    let second = device(&use_link(&service, &link(&service).await, NEXT).await);
    assert_eq!(try_on(&second, STYLIST, NEXT).await, 303);
    // Guesses on a known device are slowed down, too.
    for _ in 0..5 {
        assert_eq!(try_on(&second, STYLIST, "a wrong password").await, 401);
    }
    assert_eq!(try_on(&second, STYLIST, NEXT).await, 429);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(try_on(&first, STYLIST, NEXT).await, 303, "a stranger does not wait for these");
}

/// Issue 65: the right password from a new device was refused for a quarter of an hour.
#[apply(on_sqlite)]
async fn wrong_passwords_refuse_another_address_for_a_second_at_most(service: Service) {
    let ada = service.signed_in(Role::Stylist).await;
    let known = device(&set_password(&ada, "", PASSWORD).await);
    let at = |address| {
        let (client, service) = (browser_at([127, 0, 0, address]), &service);
        async move |device: &str, password: &str| try_as(&client, service, device, STYLIST, password).await
    };
    let (stranger, other) = (at(1), at(2));
    let mut refused = Vec::new();
    for _ in 0..12 {
        refused.push(stranger("", "a wrong password").await.status);
    }
    assert_eq!(refused, [[401; 5].as_slice(), &[429; 7]].concat());
    assert_eq!(stranger("", PASSWORD).await.status, 429);
    assert_eq!(other("", PASSWORD).await.status, 303);
    assert_eq!(stranger(&known, PASSWORD).await.status, 303, "a known device does not wait for strangers");
    // Right ones give attempts back.
    for _ in 0..6 {
        assert_eq!(other("", PASSWORD).await.status, 303);
    }
    // From all addresses together there are 60 guesses, and then one a second.
    let mut tried = 13;
    let wait = 'guess: loop {
        let guesser = at(u8::try_from(tried).unwrap());
        for _ in 0..5 {
            let answer = guesser("", "a wrong password").await;
            if answer.status == 429 {
                break 'guess answer.header("retry-after").to_owned();
            }
            tried += 1;
        }
    };
    assert!((60..80).contains(&tried), "{tried} guesses");
    assert_eq!(wait, "1");
    assert_eq!(stranger(&known, PASSWORD).await.status, 303);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(other("", PASSWORD).await.status, 303);
}

/// Issue 65: the log named nobody else's for as long as a stranger went on.
#[apply(on_sqlite)]
async fn failures_of_one_address_take_no_place_of_others(service: Service) {
    let (ada, replaced) = service.invite("Ada", Role::Stylist).await;
    service.state.access().link(ada, now()).await.unwrap();
    for _ in 0..80 {
        use_link(&service, &replaced, "").is(404).await;
    }
    try_as(&browser_at([127, 0, 0, 2]), &service, "", "ada", "a wrong password").await;
    until!(service.actions(1).await == ["sign-in.failed Ada"]);
    assert_eq!(service.log(100).await.len(), 11, "ten of the stranger's");
    service.state.access().flush(now()).await;
    let all = entries(&service.store, 100).await;
    let attempts: u64 = all.iter().filter_map(|entry| entry.details.get("attempts")?.as_u64()).sum();
    assert_eq!(attempts, 81, "the others are counted");
}

#[apply(on_sqlite)]
async fn parallel_attempts_count_one_by_one(service: Service) {
    service.invite("Çiğdem", Role::Stylist).await;
    // A password that is too long for anyone does not count as an attempt.
    for _ in 0..7 {
        let answer = sign_in(&service, "Çiğdem", &"x".repeat(257)).is(401).await;
        assert!(answer.text().contains("wrong name or password"));
    }
    // One account, however it is written.
    let names = ["Çiğdem", "çiğdem", "ÇIĞDEM", " çiğdem ", "ÇiĞdem"];
    let service = &service;
    let attempts = (0..15).map(async |number| sign_in(service, names[number % 5], "a wrong password").await);
    let mut answers = futures_util::future::join_all(attempts).await;
    answers.sort_unstable_by_key(|answer| answer.status);
    let statuses: Vec<u16> = answers[..6].iter().map(|answer| answer.status).collect();
    assert_eq!(statuses, [401, 401, 401, 401, 401, 429], "five are free");
    let wait: u64 = answers[5].header("retry-after").parse().unwrap();
    assert!((50..=60).contains(&wait), "{wait}");
    sign_in(service, "bo", "x").is(401).await.text().has(["wrong name or password"]);
}

#[apply(contract)]
async fn a_link_expires_and_a_newer_one_replaces_it(service: Service) {
    let access = service.state.access();
    let (ada, old) = service.invite("Ada", Role::Stylist).await;
    let new = access.link(ada, now()).await.unwrap();
    assert!(access.enter(&old, None, now()).await.is_err());
    assert!(access.enter(&new, None, now() + Duration::from_hours(25)).await.is_err());
    let session = access.enter(&new, None, now()).await.unwrap();
    assert!(access.session(&session, now()).await.unwrap().is_some());
    assert!(access.session(&session, now() + Duration::from_hours(24 * 8)).await.unwrap().is_none());
}

#[apply(on_sqlite)]
async fn forged_forms_change_nothing(service: Service) {
    let ada = service.signed_in(Role::Admin).await;
    let bo = service.signed_in(Role::Stylist).await.session.form_token();
    let forged = [("csrf", &*bo), ("note", "likes blue")];
    let refused = ada.post_bare("/sign-out", &forged).is(403).await.text();
    // What was typed is not lost.
    refused.has(["so nothing was changed", "Your note was: likes blue"]);
    ada.get("/studio").is(200).await;
    sign_in(&service, "a", "b").header("sec-fetch-site", "cross-site").is(403).await;
    // Over plain HTTP a browser sends only the origin.
    sign_in(&service, "a", "b").header("origin", "http://evil.example").is(403).await;
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
    set_password(&ada, "", PASSWORD).await;
    for (next, to) in [("/studio?customer=c-1&slot=", "/studio?customer=c-1&slot="), ("//x", "/studio")] {
        let fields = [("name", STYLIST), ("password", PASSWORD), ("next", next)];
        assert_eq!(service.form("/sign-in", &fields).await.header("location"), to);
    }
    // Those who are signed in already go there at once.
    let ada = service.signed_in(Role::Stylist).await;
    for (next, to) in [
        ("/personas", "/personas"),
        ("/studio%3Ffind%3D%2501", "/studio?find=%01"),
        ("/%FF", "/studio"),
        ("/%0d%0aSet-Cookie:%20x=1", "/studio"),
        ("https://elsewhere", "/studio"),
        ("//elsewhere", "/studio"),
        ("/%5Celsewhere", "/studio"),
        ("/%09x", "/studio"),
        ("/%7f", "/studio"),
        ("/a%20b", "/studio"),
        ("/%C3%A4", "/studio"),
    ] {
        let path = format!("/sign-in?next={next}");
        assert_eq!(ada.get(&path).is(303).await.header("location"), to, "{next}");
        service.page(&path).is(200).await;
    }
    let odd = service.get("/studio?find=%C3%A4&x=%0d%0a%01%00").is(303).await;
    assert!(odd.header("location").starts_with("/sign-in?next=%2Fstudio%3F"), "{odd:?}");
    assert_eq!(service.get("/").await.header("location"), "/sign-in");
}

#[apply(on_sqlite)]
async fn over_https_the_cookie_belongs_to_the_host(service: Service) {
    // As a balancer passes it on.
    let over_https = |call: Call| call.header("x-forwarded-proto", "https");
    let get = |path: &str, cookie: &str| over_https(service.page(path)).header("cookie", cookie);
    let plain = service.signed_in(Role::Stylist).await;
    let (_, link) = service.invite("Ada", Role::Admin).await;
    let entered = over_https(use_link(&service, &link, "")).await;
    let (host_cookie, rest) = entered.header("set-cookie").split_once("; ").unwrap();
    assert_eq!(rest, "Path=/; HttpOnly; SameSite=Lax; Max-Age=604800; Secure");
    let token = host_cookie.strip_prefix("__Host-atelier_session=").expect("a cookie of this host");
    get("/access", host_cookie).is(200).await;
    // Another host of the domain, or anyone on the network, can set a cookie of the plain name.
    let planted = format!("atelier_session={}", plain.session.as_str());
    get("/studio", &planted).is(303).await;
    // The host's cookie counts.
    get("/access", &format!("{planted}; {host_cookie}")).is(200).await;
    // Over http the old name goes on working, and the new one says nothing.
    plain.get("/studio").is(200).await;
    service.page("/access").header("cookie", host_cookie).is(303).await;

    for path in ["/access", "/nothing", "/static/atelier.css", "/livez"] {
        let answer = get(path, host_cookie).await;
        assert_eq!(answer.header("strict-transport-security"), "max-age=31536000", "{path}");
        assert_eq!(service.get(path).await.header("strict-transport-security"), "", "{path} over http");
    }
    // Each further proxy adds its own protocol; the browser's comes first.
    for (reported, is_https) in [("HTTPS, http", true), ("http, https", false), ("http", false), ("", false)]
    {
        let answer = service.get("/livez").header("x-forwarded-proto", reported).await;
        assert_eq!(!answer.header("strict-transport-security").is_empty(), is_https, "{reported}");
    }
    let csrf = Token::parse(token).unwrap().form_token();
    let out = service.form("/sign-out", &[("csrf", &csrf)]).header("cookie", host_cookie);
    let ended = over_https(out).await;
    assert!(ended.header("set-cookie").starts_with("__Host-atelier_session=; Path=/;"), "{ended:?}");
    get("/access", host_cookie).is(303).await;
}

#[apply(on_sqlite)]
async fn private_answers_are_stored_nowhere(Demo(service): Demo) {
    let admin = service.signed_in(Role::Admin).await;
    let mut answers = vec![sign_in(&service, "nobody", "x").await];
    for path in ["/studio?customer=c-00001", "/access", "/evaluation/cases.csv", "/password", "/nothing"] {
        answers.push(admin.get(path).await);
    }
    // Signed out, and programs.
    for path in ["/sign-in", "/studio", "/articles", "/customers?n=1", "/customers/none", "/metrics", "/"] {
        answers.push(service.get(path).await);
    }
    for answer in answers {
        assert_eq!(answer.header("cache-control"), "no-store", "{}: {}", answer.request, answer.status);
    }
    for path in ["/static/atelier.css", "/pictures/coat.svg"] {
        assert!(service.get(path).await.header("cache-control").starts_with("public, max-age="), "{path}");
    }
}

#[apply(on_sqlite)]
async fn a_links_address_stays_secret(service: Service) {
    let (_, link) = service.invite("Ada", Role::Stylist).await;
    let path = format!("/sign-in/{}", link.as_str());
    // With a character too many, as copied from a sentence, it is a problem page and still a secret.
    for (path, status) in [(path.clone(), 200), (format!("{path}."), 404)] {
        let page = service.page(&path).is(status).await;
        // No Referer with the address goes out.
        assert_eq!(page.headers("referrer-policy"), ["strict-origin"], "{path}");
        let html = page.text();
        for part in html.split('"').filter(|part| part.starts_with('/')) {
            assert!(!part.contains(link.as_str()), "an address with the token in {html}");
        }
    }
    // The form sends the token in its body.
    service.form(&path, &[("password", "")]).is(405).await;
    assert!(service.state.access().holder(&link, now()).await.is_ok());
}

#[apply(on_sqlite)]
async fn every_answer_has_security_headers(service: Service) {
    for path in ["/sign-in", "/livez", "/nothing", "/docs", "/static/atelier.css", "/openapi.json"] {
        let answer = service.page(path).await;
        let policy = answer.header("content-security-policy");
        assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self';"), "{path}");
        assert!(!policy.contains("unsafe"), "{policy}");
        let others = ["x-content-type-options", "x-frame-options"].map(|name| answer.header(name));
        assert_eq!(others, ["nosniff", "DENY"], "{path}");
    }
    let html = service.page("/sign-in").await.text();
    // The style sheet's fonts, too, which pages name to load them early.
    let css = service.page("/static/atelier.css").await.text();
    let fonts = css.split("url(").skip(1).filter_map(|rest| rest.split(')').next());
    for part in html.split('"').filter(|part| part.starts_with("/static/")).chain(fonts) {
        let asset = service.get(part).is(200).await;
        assert_eq!(asset.header("cache-control"), "public, max-age=31536000, immutable", "{part}");
    }
    assert!(!html.contains("<style") && !html.contains("style=") && !html.contains("<script>"), "{html}");
}

#[apply(contract)]
async fn the_first_admin_is_created_once(service: Service) {
    let access = service.state.access();
    let both = tokio::join!(access.without_password(now()), access.without_password(now()));
    assert_eq!(both.0.unwrap().unwrap(), both.1.unwrap().unwrap());
    assert_eq!(service.store.people().list().await.unwrap().len(), 1);
}
