//! A change and its entry in the audit log are stored together or not at all, whatever the caller does meanwhile.

use std::time::Duration;

use atelier::{
    people::{PersonId, Token},
    platform::db::{Actor, SIGN_IN_FAILED},
    releases as live_release,
};
use atelier_core::domain::{Customer, CustomerId, Features, Role};
use serde_json::{Value, json};
use sqlx::AnyConnection;

use crate::{
    harness::{Browser, Call, Html, Kind, Service, TestDatabase, apply, contract, now, on_sqlite, until},
    releases::operations::releases::two_releases,
};

const CUSTOMERS: usize = 400;
/// Each kind of change that people and programs make, except releases, and the query that counts how often it was made and
/// how many entries there are.
const CHANGES: [(&str, &str); 6] = [
    (
        "role",
        "select (select count(*) from role_changes),
            (select count(*) from audit_log where action = 'person.role' and (
                details like '%\"before\":\"stylist\"%' and details like '%\"after\":\"analyst\"%'
                or details like '%\"before\":\"analyst\"%' and details like '%\"after\":\"stylist\"%'))",
    ),
    (
        "key",
        "select (select count(*) from api_keys), (select count(*) from audit_log where action = 'key.create')",
    ),
    (
        "article",
        "select (select cast(coalesce(sum(revision), 0) as bigint) from articles where id = 'hung'),
            (select count(*) from audit_log where action = 'article.put')",
    ),
    (
        "customer",
        "select (select cast(coalesce(sum(revision), 0) as bigint) from customers where id = 'hung'),
            (select count(*) from audit_log where action = 'customer.put' and subject = 'hung')",
    ),
    (
        "erasure",
        "select (select 400 - count(*) from customers where id like 'many-%'),
            (select count(*) from audit_log where action = 'customer.erase')",
    ),
    (
        "bulk",
        "select (select count(*) from visible_customers where id like 'bulk-%'),
            (select count(*) from audit_log where action = 'customers.bulk' and peer is not null)",
    ),
];

/// A service with customers, where an admin changes the role of an analyst, and a connection that counts.
struct Changing {
    service: Service,
    admin: Browser,
    analyst: PersonId,
    raw: AnyConnection,
}

impl Changing {
    async fn start(db: &TestDatabase) -> Self {
        let service = Service::start(db).await;
        let mut import = service.store.import(now()).await.unwrap();
        let customer = |number| {
            let id = CustomerId::new(format!("many-{number}")).unwrap();
            Customer { id, features: Features::default() }
        };
        import.put(&(0..CUSTOMERS).map(customer).collect::<Vec<_>>()).await.unwrap();
        import.commit().await.unwrap();
        let admin = service.signed_in(Role::Admin).await;
        let (analyst, _) = service.invite("Bo", Role::Analyst).await;
        let mut raw = db.raw().await;
        execute(&mut raw, "create table role_changes (id bigint)").await;
        let count_roles = match db.kind {
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
        };
        execute(&mut raw, count_roles).await;
        Self { service, admin, analyst, raw }
    }

    fn change(&self, name: &str, number: usize) -> Call {
        let Self { service, admin, analyst, .. } = self;
        match name {
            "role" => {
                let role = ["stylist", "analyst"][number % 2];
                admin.post(format!("/access/people/{}", analyst.0), &[("change", "role"), ("role", role)])
            }
            "key" => admin.post("/access/keys", &[("label", "Shop"), ("scope", "catalogue")]),
            "article" => service.put("/articles/hung", json!({"type": "coat", "n": number})),
            "customer" => service.put("/customers/hung", json!({"features": {"age": number}})),
            "erasure" => service.delete(format!("/customers/many-{number}")),
            _ => {
                let line = format!("{{\"id\": \"bulk-{number}\", \"features\": {{}}}}\n");
                service.lines("/customers/bulk", line)
            }
        }
    }

    /// How often something was changed, and how many entries there are.
    async fn count(&mut self, sql: &'static str) -> (i64, i64) {
        sqlx::query_as(sql).fetch_one(&mut self.raw).await.unwrap()
    }
}

async fn execute(raw: &mut AnyConnection, sql: &'static str) {
    sqlx::raw_sql(sql).execute(raw).await.unwrap();
}

/// Sends the request, and closes the connection after that time.
async fn hang_up(call: Call, after: Duration) {
    let _ = tokio::time::timeout(after, call.into_future()).await;
}

#[apply(contract)]
async fn hanging_up_loses_no_entry(db: TestDatabase) {
    let mut changing = Changing::start(&db).await;
    for (name, sql) in CHANGES {
        // Some hang up before anything is read, others between any two steps of the work, also on a slow machine.
        for number in 0..CUSTOMERS {
            let after = Duration::from_micros((500 * (number % 40) * (1 + number / 40)) as u64);
            hang_up(changing.change(name, number), after).await;
            if number > 30 && changing.count(sql).await.0 >= 20 {
                break;
            }
        }
        let (made, entries) = changing.count(sql).await;
        assert!(made >= 10, "{name}: {made} changes are too few to say anything");
        assert_eq!(entries, made, "{name}: {made} changes, {entries} entries");
    }
}

#[apply(on_sqlite)]
async fn hanging_up_does_not_stop_an_activation(db: TestDatabase) {
    let models = two_releases();
    let service = Service::of(&db, &models).await;
    service.releases.serve("demo").await.unwrap();
    hang_up(service.send("/releases/less/activate", json!({})), Duration::from_millis(30)).await;
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
    let upload = tokio::spawn(service.lines("/events/bulk", lines.join("\n")).into_future());
    let recorded = async || service.store.events().counts(0).await.unwrap().first().map_or(0, |(_, n, _)| *n);
    until!(recorded().await > 0);
    upload.abort();
    assert!(recorded().await < ALL, "all was recorded before the caller hung up, so this says nothing");
    until!(recorded().await == ALL);
}

#[apply(contract)]
async fn a_change_whose_entry_fails_is_taken_back(db: TestDatabase) {
    let mut changing = Changing::start(&db).await;
    changing.service.bring_in_demo().await;
    changing.service.releases.serve("demo").await.unwrap();
    let store = changing.service.store.clone();
    let revision = store.settings().revision().await.unwrap();
    let refuse_entries = match db.kind {
        Kind::Sqlite => {
            "create trigger no_entry before insert on audit_log begin select raise(abort, 'no entry'); end"
        }
        Kind::Postgres => {
            "create function no_entry() returns trigger language plpgsql as
             $$ begin raise exception 'no entry'; end $$;
             create trigger no_entry before insert on audit_log for each row execute function no_entry()"
        }
    };
    execute(&mut changing.raw, refuse_entries).await;
    for (name, sql) in CHANGES {
        let before = changing.count(sql).await;
        // The person's role is analyst, so this is a change.
        changing.change(name, 0).is(500).await;
        assert_eq!(changing.count(sql).await, before, "{name}");
    }
    changing.service.send("/releases/demo/activate", json!({})).is(500).await;
    changing.service.put("/routing", json!({"default_method": "np"})).is(500).await;
    assert_eq!(store.settings().revision().await, Ok(revision), "neither release nor routing was set");
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
    let with_peer = entries.inspect(|entry| assert_eq!(entry.peer, Some([127, 0, 0, 1].into()), "{entry:?}"));
    with_peer.map(|entry| (entry.action, entry.subject, entry.actor, entry.details.into())).collect()
}

fn entry(action: &str, subject: &str, by: Actor, details: Value) -> (String, String, Actor, Value) {
    (action.to_owned(), subject.to_owned(), by, details)
}

#[apply(contract)]
async fn signing_in_and_out_are_entries_with_the_peer(service: Service) {
    let (ada, link) = service.invite("Ada", Role::Stylist).await;
    send(&service, "/sign-in/link", &[("link", link.as_str()), ("password", PASSWORD)]).is(303).await;
    send(&service, "/sign-in", &[("name", "ada"), ("password", "a horse in Basle")]).is(401).await;
    until!(log(&service).await.len() == 4);
    let right = send(&service, "/sign-in", &[("name", "ada"), ("password", PASSWORD)]).await;
    let cookie = right.header("set-cookie").split([';', '=']).nth(1).unwrap();
    let browser = service.signed_in(Role::Stylist).await.with(Token::parse(cookie).unwrap());
    browser.post("/sign-out", &[]).is(303).await;
    let by = Actor::Person(ada);
    assert_eq!(
        log(&service).await,
        [
            entry("link.use", "Ada", by, json!({})),
            entry("password.set", "Ada", by, json!({})),
            entry("sign-in", "Ada", by, json!({})),
            entry(SIGN_IN_FAILED, "Ada", Actor::Visitor, json!({"attempts": 1})),
            entry("sign-in", "Ada", by, json!({})),
            entry("sign-out", "Ada", by, json!({})),
        ]
    );
}

#[apply(on_sqlite)]
async fn a_wrong_old_password_is_an_entry_of_the_person(service: Service) {
    let (ada, link) = service.invite("Ada", Role::Admin).await;
    let session = service.state.access().enter(&link, Some(PASSWORD), now()).await.unwrap();
    let browser = service.signed_in(Role::Stylist).await.with(session);
    let fields = [("old", "a horse in Basle"), ("password", "an alpaca at the lake")];
    browser.post("/password", &fields).is(422).await;
    let failed = entry("password.failed", "Ada", Actor::Person(ada), json!({"attempts": 1}));
    until!(log(&service).await.contains(&failed));
    browser.page("/access/audit?actor=visitor").await.has(["No entries match"]);
    let own = browser.page(format!("/access/audit?actor=person-{}", ada.0)).await;
    own.has(["password.failed</th><td>Ada</td>"]);
}

#[apply(on_sqlite)]
async fn failed_sign_ins_reveal_no_typed_name(service: Service) {
    // A password in the field of the name.
    send(&service, "/sign-in", &[("name", PASSWORD), ("password", "")]).is(401).await;
    until!(!log(&service).await.is_empty());
    let failed = entry(SIGN_IN_FAILED, "unknown name", Actor::Visitor, json!({"attempts": 1}));
    assert_eq!(log(&service).await, [failed]);
    let admin = service.signed_in(Role::Admin).await;
    let page = admin.page("/access/audit?action=sign-in.failed&actor=visitor").await;
    page.has(["<td>not signed in</td><td>127.0.0.1</td>"]).lacks([PASSWORD]);
}
