//! A change and its entry in the audit log are stored together or not at all, whatever the caller does meanwhile.

use std::time::{Duration, SystemTime};

use atelier::{
    people::PersonId,
    platform::db::{Actor, Name, SIGN_IN_FAILED},
    releases as live_release,
};
use atelier_core::domain::{Role, Timestamp};
use serde_json::{Value, json};
use sqlx::{AnyConnection, AssertSqlSafe};
use tokio::{io::AsyncWriteExt, net::TcpStream};

use super::{Browser, Service, operations::releases::two_releases, until};
use crate::harness::{Call, Kind, TestDatabase, apply, contract, on_sqlite};

fn now() -> Timestamp {
    SystemTime::now().into()
}

/// A change that can be made many times, and the query that counts how often it was made and how many entries there are.
struct Change {
    name: &'static str,
    request: Box<dyn Fn(usize) -> String + Send + Sync>,
    count: &'static str,
}

fn request(method: &str, path: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}\r\n{headers}\r\n{body}")
}

const JSON: &str = "content-type: application/json\r\n";
const CUSTOMERS: usize = 400;

/// Each kind of change that people and programs make, except releases.
fn changes(admin: &Browser, person: PersonId) -> Vec<Change> {
    let cookie = format!(
        "content-type: application/x-www-form-urlencoded\r\ncookie: atelier_session={}\r\n",
        admin.session.as_str()
    );
    let csrf = admin.session.form_token();
    let form =
        move |path: &str, fields: &str| request("POST", path, &cookie, &format!("{fields}&csrf={csrf}"));
    let other = form.clone();
    let change =
        |name, request: Box<dyn Fn(usize) -> String + Send + Sync>, count| Change { name, request, count };
    vec![
        change(
            "role",
            Box::new(move |number| {
                let role = ["stylist", "analyst"][number % 2];
                form(&format!("/access/people/{}", person.0), &format!("change=role&role={role}"))
            }),
            "select (select count(*) from role_changes),
                (select count(*) from audit_log where action = 'person.role'
                    and details like '%\"before\":\"stylist\"%' and details like '%\"after\":\"analyst\"%'
                    or action = 'person.role'
                    and details like '%\"before\":\"analyst\"%' and details like '%\"after\":\"stylist\"%')",
        ),
        change(
            "key",
            Box::new(move |_| other("/access/keys", "label=Shop&scope=catalogue")),
            "select (select count(*) from api_keys),
                (select count(*) from audit_log where action = 'key.create')",
        ),
        change(
            "article",
            Box::new(|number| {
                request("PUT", "/articles/hung", JSON, &json!({"type": "coat", "n": number}).to_string())
            }),
            "select (select coalesce(sum(revision), 0) from articles where id = 'hung'),
                (select count(*) from audit_log where action = 'article.put')",
        ),
        change(
            "customer",
            Box::new(|number| {
                request("PUT", "/customers/hung", JSON, &json!({"features": {"age": number}}).to_string())
            }),
            "select (select coalesce(sum(revision), 0) from customers where id = 'hung'),
                (select count(*) from audit_log where action = 'customer.put' and subject = 'hung')",
        ),
        change(
            "erasure",
            Box::new(|number| request("DELETE", &format!("/customers/many-{number}"), "", "")),
            "select (select 400 - count(*) from customers where id like 'many-%'),
                (select count(*) from audit_log where action = 'customer.erase')",
        ),
        change(
            "bulk",
            Box::new(|number| {
                let body = format!("{{\"id\": \"bulk-{number}\", \"features\": {{}}}}\n");
                request("POST", "/customers/bulk", "content-type: application/x-ndjson\r\n", &body)
            }),
            "select (select count(*) from visible_customers where id like 'bulk-%'),
                (select count(*) from audit_log where action = 'customers.bulk' and peer is not null)",
        ),
    ]
}

async fn start(db: &TestDatabase) -> (Service, Vec<Change>, AnyConnection) {
    let service = Service::start(db).await;
    let mut import = service.store.import(now()).await.unwrap();
    let customers: Vec<_> = (0..CUSTOMERS).map(|number| customer(&format!("many-{number}"))).collect();
    import.put(&customers).await.unwrap();
    import.commit().await.unwrap();
    let admin = service.signed_in(Role::Admin).await;
    let bo = service.store.people().create(&Name::new("Bo").unwrap(), Role::Analyst, now()).await.unwrap();
    let changes = changes(&admin, bo.id);
    let mut raw = db.raw().await;
    execute(&mut raw, "create table role_changes (id bigint)").await;
    execute(
        &mut raw,
        match db.kind {
            Kind::Sqlite => {
                "create trigger count_roles after update of role on people when old.role <> new.role
             begin insert into role_changes values (new.id); end"
            }
            Kind::Postgres => {
                "create function count_role() returns trigger language plpgsql as
             $$ begin insert into role_changes values (new.id); return new; end $$;
             create trigger count_roles after update of role on people for each row
                when (old.role <> new.role) execute function count_role()"
            }
        },
    )
    .await;
    (service, changes, raw)
}

fn customer(id: &str) -> atelier_core::domain::Customer {
    let id = atelier_core::domain::CustomerId::new(id).unwrap();
    atelier_core::domain::Customer { id, features: atelier_core::domain::Features::default() }
}

async fn execute(raw: &mut AnyConnection, sql: &'static str) {
    sqlx::raw_sql(sql).execute(raw).await.unwrap();
}

async fn count(raw: &mut AnyConnection, change: &Change) -> (i64, i64) {
    let sql =
        change.count.replace("coalesce(sum(revision), 0)", "cast(coalesce(sum(revision), 0) as bigint)");
    sqlx::query_as(AssertSqlSafe(sql)).fetch_one(raw).await.unwrap()
}

/// Sends the request, and closes the connection after that time.
async fn hang_up(service: &Service, request: &str, after: Duration) {
    let address = service.url.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    tokio::time::sleep(after).await;
}

#[apply(contract)]
async fn hanging_up_loses_no_entry(db: TestDatabase) {
    let (service, changes, mut raw) = start(&db).await;
    for change in &changes {
        // Some hang up before anything is read, others between any two steps of the work, also on a slow machine.
        for number in 0..CUSTOMERS {
            let after = Duration::from_micros((500 * (number % 40) * (1 + number / 40)) as u64);
            hang_up(&service, &(change.request)(number), after).await;
            if number > 30 && count(&mut raw, change).await.0 >= 20 {
                break;
            }
        }
        let (made, entries) = count(&mut raw, change).await;
        assert!(made >= 10, "{}: {made} changes are too few to say anything", change.name);
        assert_eq!(entries, made, "{}: {made} changes, {entries} entries", change.name);
    }
}

#[apply(on_sqlite)]
async fn hanging_up_does_not_stop_an_activation(db: TestDatabase) {
    let models = two_releases();
    crate::web::fill(&db).await;
    let service = Service::start_in(&db, atelier::config::Limits::default(), models.path().to_owned()).await;
    service.releases.serve("demo").await.unwrap();
    hang_up(&service, &request("POST", "/releases/less/activate", "", ""), Duration::from_millis(30)).await;
    until!(service.releases.current().unwrap().name() == "less");
    let entry = service.log(1).await.remove(0);
    assert_eq!((entry.action.as_str(), entry.subject.as_str()), ("release.activate", "less"));
    assert_eq!(live_release::activated(&service.store).await.unwrap().as_deref(), Some("less"));
}

/// A stream is recorded in parts.
#[apply(on_sqlite)]
async fn hanging_up_does_not_stop_a_stream_of_events(db: TestDatabase) {
    const ALL: u64 = 10_000;
    let service = Service::start(&db).await;
    let line = |n: u64| json!({"id": format!("s-{n}"), "kind": "viewed", "article": "a"}).to_string();
    let lines: Vec<String> = (0..ALL).map(line).collect();
    let address = service.url.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    let bulk = request("POST", "/events/bulk", "content-type: application/x-ndjson\r\n", &lines.join("\n"));
    stream.write_all(bulk.as_bytes()).await.unwrap();
    let recorded = async || service.store.events().counts(0).await.unwrap().first().map_or(0, |(_, n, _)| *n);
    until!(recorded().await > 0);
    drop(stream);
    assert!(recorded().await < ALL, "all was recorded before the caller hung up, so this says nothing");
    until!(recorded().await == ALL);
}

#[apply(contract)]
async fn a_change_whose_entry_fails_is_taken_back(db: TestDatabase) {
    let (service, changes, mut raw) = start(&db).await;
    service.bring_in_demo().await;
    service.releases.serve("demo").await.unwrap();
    let before = service.store.settings().revision().await.unwrap();
    execute(&mut raw, match db.kind {
        Kind::Sqlite => {
            "create trigger no_entry before insert on audit_log begin select raise(abort, 'no entry'); end"
        }
        Kind::Postgres => {
            "create function no_entry() returns trigger language plpgsql as
             $$ begin raise exception 'no entry'; end $$;
             create trigger no_entry before insert on audit_log for each row execute function no_entry()"
        }
    })
    .await;
    for change in &changes {
        let before = count(&mut raw, change).await;
        // The person's role is analyst, so this is a change.
        let text = (change.request)(0).replace("\r\nhost", "\r\nconnection: close\r\nhost");
        let answer = exchange(&service, &text).await;
        assert!(answer.starts_with("HTTP/1.1 500"), "{}: {answer}", change.name);
        assert_eq!(count(&mut raw, change).await, before, "{}", change.name);
    }
    assert_eq!(service.ask("/releases/demo/activate", &json!({})).await.0, 500);
    service.put("/routing", &json!({"default_method": "np"})).is(500).await;
    assert_eq!(service.store.settings().revision().await, Ok(before), "neither release nor routing was set");
}

async fn exchange(service: &Service, request: &str) -> String {
    let address = service.url.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    tokio::io::AsyncReadExt::read_to_end(&mut stream, &mut answer).await.unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

const PASSWORD: &str = "a horse in Zurich";

fn send(service: &Service, path: &str, fields: &[(&str, &str)]) -> Call {
    // What a header claims is not kept.
    let claims = service.form(path, fields).header("x-forwarded-for", "203.0.113.9");
    claims.header("forwarded", "for=203.0.113.9")
}

/// Actions, subjects, actors and details, oldest first. All have the test's address.
async fn log(service: &Service) -> Vec<(String, String, Actor, Value)> {
    let entries = service.log(100).await.into_iter().rev();
    entries
        .map(|entry| {
            assert_eq!(entry.peer, Some([127, 0, 0, 1].into()), "{entry:?}");
            (entry.action, entry.subject, entry.actor, entry.details.into())
        })
        .collect()
}

#[apply(contract)]
async fn signing_in_and_out_are_entries_with_the_peer(service: Service) {
    let ada = service.store.people().create(&Name::new("Ada").unwrap(), Role::Stylist, now()).await.unwrap();
    let link = service.state.access().link(ada.id, now()).await.unwrap();
    send(&service, "/sign-in/link", &[("link", link.as_str()), ("password", PASSWORD)]).is(303).await;
    send(&service, "/sign-in", &[("name", "ada"), ("password", "a horse in Basle")]).is(401).await;
    until!(log(&service).await.len() == 4);
    let right = send(&service, "/sign-in", &[("name", "ada"), ("password", PASSWORD)]).await;
    let cookie = right.header("set-cookie").split([';', '=']).nth(1).unwrap();
    let session = atelier::people::Token::parse(cookie).unwrap();
    let signed_in = Browser { session, ..service.signed_in(Role::Stylist).await };
    signed_in.post("/sign-out", &[]).is(303).await;
    let by = Actor::Person(ada.id);
    let entry = |action: &str, by, details| (action.to_owned(), "Ada".to_owned(), by, details);
    assert_eq!(
        log(&service).await,
        [
            entry("link.use", by, json!({})),
            entry("password.set", by, json!({})),
            entry("sign-in", by, json!({})),
            entry(SIGN_IN_FAILED, Actor::Visitor, json!({"attempts": 1})),
            entry("sign-in", by, json!({})),
            entry("sign-out", by, json!({})),
        ]
    );
    send(&service, "/sign-in/link", &[("link", link.as_str())]).is(404).await;
}

#[apply(on_sqlite)]
async fn a_wrong_old_password_is_an_entry_of_the_person(service: Service) {
    let ada = service.store.people().create(&Name::new("Ada").unwrap(), Role::Admin, now()).await.unwrap();
    let link = service.state.access().link(ada.id, now()).await.unwrap();
    let session = service.state.access().enter(&link, Some(PASSWORD), now()).await.unwrap();
    let browser = Browser { session, ..service.signed_in(Role::Stylist).await };
    let fields = [("old", "a horse in Basle"), ("password", "an alpaca at the lake")];
    browser.post("/password", &fields).is(422).await;
    let failed = async || service.log(100).await.into_iter().find(|entry| entry.action == "password.failed");
    until!(failed().await.is_some());
    let entry = failed().await.unwrap();
    assert_eq!((entry.actor, entry.subject.as_str()), (Actor::Person(ada.id), "Ada"));
    assert_eq!((entry.peer, entry.details["attempts"].as_u64()), (Some([127, 0, 0, 1].into()), Some(1)));
    let visitors = browser.page("/access/audit?actor=visitor").await;
    assert!(visitors.contains("No entries match"), "{visitors}");
    let own = browser.page(&format!("/access/audit?actor=person-{}", ada.id.0)).await;
    assert!(own.contains("password.failed</th><td>Ada</td>"), "{own}");
}

#[apply(on_sqlite)]
async fn failed_sign_ins_reveal_no_typed_name(service: Service) {
    // A password in the field of the name.
    send(&service, "/sign-in", &[("name", PASSWORD), ("password", "")]).is(401).await;
    until!(!log(&service).await.is_empty());
    let (action, subject, actor, details) = log(&service).await.remove(0);
    assert_eq!((action.as_str(), subject.as_str(), actor), (SIGN_IN_FAILED, "unknown name", Actor::Visitor));
    assert_eq!(details, json!({"attempts": 1}));
    let admin = service.signed_in(Role::Admin).await;
    let page = admin.page("/access/audit?action=sign-in.failed&actor=visitor").await;
    assert!(page.contains("<td>not signed in</td><td>127.0.0.1</td>") && !page.contains(PASSWORD), "{page}");
}

#[apply(on_sqlite)]
async fn a_failed_activation_is_an_entry(db: TestDatabase) {
    let models = two_releases();
    std::fs::write(models.path().join("less/gsu.onnx"), "damaged").unwrap();
    crate::web::fill(&db).await;
    let service = Service::start_in(&db, atelier::config::Limits::default(), models.path().to_owned()).await;
    service.releases.serve("demo").await.unwrap();
    let (status, refused) = service.ask("/releases/less/activate", &json!({})).await;
    assert_eq!(status, 409);
    assert_eq!(service.ask("/releases/none/activate", &json!({})).await.0, 404);
    let log = log(&service).await;
    let (action, subject, actor, details) = &log[0];
    assert_eq!((action.as_str(), subject.as_str(), *actor), ("release.refused", "less", Actor::Service));
    assert_eq!(details["reason"], refused["detail"]);
    assert_eq!((log[1].0.as_str(), log[1].1.as_str(), log.len()), ("release.refused", "none", 2));
}
