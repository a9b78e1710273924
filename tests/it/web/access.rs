//! `/access`: people, keys and the log, as an admin sees them.

use std::time::SystemTime;

use atelier::{
    people::{Opens, PersonId, Scope, Token},
    platform::db::{Actor, Author, Entry, Name, SIGN_IN_FAILED},
};
use atelier_core::domain::{Role, Timestamp};
use reqwest::Method;
use serde_json::{Value, json};

use super::{Browser, Guarded, Service};
use crate::harness::{apply, contract, on_sqlite};

fn now() -> Timestamp {
    SystemTime::now().into()
}

/// The text between two pieces of a page.
fn between<'a>(html: &'a str, before: &str, after: &str) -> &'a str {
    let (_, rest) = html.split_once(before).unwrap_or_else(|| panic!("{before} in {html}"));
    rest.split_once(after).unwrap_or_else(|| panic!("{after} in {html}")).0
}

/// The last entries of the log: who, what, to what, and the details.
async fn log(service: &Service, n: usize) -> Vec<(Actor, String, String, Value)> {
    let entries = service.log(n).await;
    entries.into_iter().map(|one| (one.actor, one.action, one.subject, one.details.into())).collect()
}

async fn id_of(service: &Service, name: &str) -> PersonId {
    service.store.people().find_with_password(&Name::new(name).unwrap()).await.unwrap().unwrap().0.id
}

#[apply(on_sqlite)]
async fn a_new_person_signs_in_by_a_link_shown_once(service: Service) {
    let admin = service.signed_in(Role::Admin).await;
    let me = Actor::Person(id_of(&service, "Some admin").await);
    let added = admin.post("/access", &[("name", " Çiğdem <Ö> "), ("role", "analyst")]).await;
    assert_eq!((added.status(), added.header("cache-control")), (200, "no-store"));
    let html = added.text();
    let link = between(&html, "aria-label=\"Sign-in link\">", "</pre>").to_owned();
    let token = link.strip_prefix(&format!("{}/sign-in/", service.url)).expect("it leads here");
    let person = service.state.access().holder(&Token::parse(token).unwrap(), now()).await.unwrap();
    assert_eq!((person.name.as_str(), person.role), ("Çiğdem <Ö>", Role::Analyst));

    let list = admin.page("/access").await;
    let row = between(&list, "Çiğdem &#60;Ö&#62;</a>", "</tr>");
    assert!(row.contains("<td>invited</td>") && !list.contains(token), "{list}");
    assert!(list.contains("Some admin</a> <span class=\"quiet\">(you)</span>"), "{list}");
    let log = log(&service, 2).await;
    assert_eq!(log[1], (me, "person.create".into(), "Çiğdem <Ö>".into(), json!({"role": "analyst"})));
    assert_eq!(log[0], (me, "person.link".into(), "Çiğdem <Ö>".into(), json!({})));

    // A new link replaces it.
    let page = format!("/access/people/{}", person.id.0);
    let html = admin.post(&page, &[("change", "link")]).await.text();
    assert!(html.contains("signs them in once, within 24 hours"), "{html}");
    assert!(service.state.access().holder(&Token::parse(token).unwrap(), now()).await.is_err());
}

#[apply(on_sqlite)]
async fn adding_a_person_explains_errors(service: Service) {
    let admin = service.signed_in(Role::Admin).await;
    let taken = admin.post("/access", &[("name", "some ADMIN"), ("role", "analyst")]).is(409).await;
    let html = taken.text();
    assert!(html.contains("role=\"alert\">another person already has that name"), "{html}");
    assert!(html.contains("value=\"some ADMIN\""), "what was typed is still there: {html}");
    assert!(html.contains("<option selected>analyst</option>"), "{html}");
    let nameless = admin.post("/access", &[("name", " "), ("role", "stylist")]).is(422).await;
    assert!(nameless.text().contains("a name has 1 to 128 characters"));
    let odd = admin.post("/access", &[("name", "Bo"), ("role", "king")]).is(422).await;
    let expected = "a role is stylist, analyst, merchandiser or admin; found &#34;king&#34;";
    assert!(odd.text().contains(expected));
    assert_eq!(service.store.people().list().await.unwrap().len(), 1);
    assert_eq!(log(&service, 5).await, []);
}

#[apply(on_sqlite)]
async fn a_double_click_adds_one_person(service: Service) {
    let admin = service.signed_in(Role::Admin).await;
    // The second answer is the one that is shown: it has the same link.
    let list = admin.page("/access").await;
    let form = between(&list, "name=\"form\" value=\"", "\"").to_owned();
    let mut links = Vec::new();
    for _ in 0..2 {
        let fields = [("name", "Twice"), ("role", "stylist"), ("form", &*form)];
        let html = admin.post("/access", &fields).await.text();
        links.push(between(&html, "aria-label=\"Sign-in link\">", "</pre>").to_owned());
    }
    assert_eq!(links[0], links[1]);
    let link = links[0].strip_prefix(&service.url).unwrap();
    assert_eq!(service.page(link).await.status(), 200, "{link}");
    let fields = [("name", "Twice"), ("role", "admin"), ("form", &*form)];
    assert_eq!(admin.post("/access", &fields).await.status(), 409, "another form");
    assert_eq!(log(&service, 5).await.len(), 2, "one person, one link");
}

#[apply(on_sqlite)]
async fn a_role_is_changed_and_an_account_disabled(service: Service) {
    let admin = service.signed_in(Role::Admin).await;
    let bo = service.signed_in(Role::Stylist).await;
    let id = id_of(&service, "Some stylist").await;
    let page = format!("/access/people/{}", id.0);
    assert!(admin.page(&page).await.contains("<option selected>stylist</option>"));

    let changed = admin.post(&page, &[("change", "role"), ("role", "analyst")]).await;
    assert_eq!((changed.status(), changed.header("location")), (303, page.as_str()));
    assert!(
        bo.page("/studio").await.contains("<span class=\"chip\">analyst</span>"),
        "it takes effect at once"
    );

    let asked = admin.page(&format!("{page}/disable")).await;
    assert!(asked.contains("<h1>Disable Some stylist?</h1>"), "{asked}");
    assert_eq!(bo.get("/studio").await.status(), 200, "the confirmation page changes nothing");
    let disabled = admin.post(&format!("{page}/disable"), &[]).await;
    assert_eq!((disabled.status(), disabled.header("location")), (303, "/access"));
    bo.get("/studio").is(303).await;
    assert!(admin.page("/access").await.contains("<td>disabled 20"));
    let link = admin.post(&page, &[("change", "link")]).is(409).await;
    assert!(link.text().contains("so a link would not work; enable them first"));
    admin.post(&page, &[("change", "enable")]).is(303).await;
    assert_eq!(service.store.people().get(id).await.unwrap().unwrap().disabled_at, None);

    let me = Actor::Person(id_of(&service, "Some admin").await);
    let said: Vec<_> =
        log(&service, 5).await.into_iter().map(|(by, action, _, details)| (by, action, details)).collect();
    assert_eq!(
        said,
        [
            (me, "person.enable".into(), json!({})),
            (me, "person.disable".into(), json!({})),
            (me, "person.role".into(), json!({"before": "stylist", "after": "analyst"})),
        ]
    );
    for unknown in ["/access/people/4242", "/access/people/4242/disable"] {
        admin.get(unknown).is(404).await;
    }
    admin.get("/access/people/x").is(422).await;
}

#[apply(on_sqlite)]
async fn somebody_invited_is_renamed_and_removed(service: Service) {
    let admin = service.signed_in(Role::Admin).await;
    admin.post("/access", &[("name", "Bo"), ("role", "stylist")]).await;
    let page = format!("/access/people/{}", id_of(&service, "Bo").await.0);
    let html = admin.page(&page).await;
    assert!(html.contains("Invited, never signed in.") && html.contains("id=\"rename\""), "{html}");
    let list = admin.page("/access").await;
    assert!(between(&list, ">Bo</a>", "</tr>").contains("<td class=\"when\">never</td>"), "{list}");
    assert!(!between(&list, "Some admin</a>", "</tr>").contains("never"), "{list}");

    for (name, status, said) in
        [("some ADMIN", 409, "another person already has that name"), (" ", 422, "a name has 1 to 128")]
    {
        let refused = admin.post(&page, &[("change", "name"), ("name", name)]).await;
        assert_eq!(refused.status(), status);
        let html = refused.text();
        assert!(html.contains(&format!("role=\"alert\">{said}")), "{html}");
        assert!(html.contains(&format!("id=\"name\" value=\"{name}\"")), "what was typed stays: {html}");
    }
    admin.post(&page, &[("change", "name"), ("name", "Bo Ek")]).is(303).await;
    assert!(admin.page(&page).await.contains("<h1>Bo Ek</h1>"));
    let removed = admin.post(&page, &[("change", "remove")]).await;
    assert_eq!((removed.status(), removed.header("location")), (303, "/access"));
    admin.get(&page).is(404).await;
    let said: Vec<_> =
        log(&service, 2).await.into_iter().map(|(_, action, subject, _)| (action, subject)).collect();
    let entry = |action: &str, subject: &str| (action.to_owned(), subject.to_owned());
    assert_eq!(said, [entry("person.remove", "Bo Ek"), entry("person.rename", "Bo")]);

    // The name of somebody who signed in stays in the audit log.
    service.signed_in(Role::Stylist).await;
    let page = format!("/access/people/{}", id_of(&service, "Some stylist").await.0);
    let html = admin.page(&page).await;
    assert!(html.contains("Last sign-in 20") && !html.contains("id=\"rename\""), "{html}");
    let refused = admin.post(&page, &[("change", "remove")]).is(409).await;
    assert!(refused.text().contains("disable them instead"));
}

#[apply(contract)]
async fn an_admin_ends_the_sessions_of_anyone(service: Service) {
    let admin = service.signed_in(Role::Admin).await;
    let (laptop, phone) = (service.signed_in(Role::Stylist).await, service.signed_in(Role::Stylist).await);
    let id = id_of(&service, "Some stylist").await;
    let link = service.state.access().link(id, now()).await.unwrap();
    let page = format!("/access/people/{}", id.0);
    assert!(admin.page(&page).await.contains("Sign out everywhere"));
    let ended = admin.post(&page, &[("change", "sign-out")]).await;
    assert_eq!((ended.status(), ended.header("location")), (303, page.as_str()));
    for browser in [&laptop, &phone] {
        browser.get("/studio").is(303).await;
        let refused = browser.post("/studio/outfits", &[("view", "slot=")]).is(401).await;
        assert!(refused.text().contains("href=\"/sign-in?next="));
    }
    assert!(service.state.access().holder(&link, now()).await.is_err(), "a link does not sign in again");
    assert_eq!(admin.get("/access").await.status(), 200, "other people stay signed in");
    service.signed_in(Role::Stylist).await.get("/studio").is(200).await;
    let me = Actor::Person(id_of(&service, "Some admin").await);
    assert_eq!(log(&service, 1).await, [(me, "person.sign_out".into(), "Some stylist".into(), json!({}))]);
    // Their own, too.
    let own = format!("/access/people/{}", id_of(&service, "Some admin").await.0);
    admin.post(&own, &[("change", "sign-out")]).is(303).await;
    admin.get("/access").is(303).await;
}

#[apply(on_sqlite)]
async fn a_disabled_account_comes_back_without_its_sessions(service: Service) {
    let (admin, bo) = (service.signed_in(Role::Admin).await, service.signed_in(Role::Stylist).await);
    let id = id_of(&service, "Some stylist").await;
    let link = service.state.access().link(id, now()).await.unwrap();
    let page = format!("/access/people/{}", id.0);
    admin.post(&format!("{page}/disable"), &[]).is(303).await;
    admin.post(&page, &[("change", "enable")]).is(303).await;
    bo.get("/studio").is(303).await;
    let opened = service.page(&format!("/sign-in/{}", link.as_str())).await;
    assert_eq!(opened.status(), 404, "a link of before does not come back either");
}

#[apply(on_sqlite)]
async fn the_last_admin_cannot_be_demoted_or_disabled(service: Service) {
    let admin = service.signed_in(Role::Admin).await;
    let page = format!("/access/people/{}", id_of(&service, "Some admin").await.0);
    let role = admin.post(&page, &[("change", "role"), ("role", "stylist")]).is(409).await;
    let said = "this is the only admin who can sign in; make another person an admin first";
    assert!(role.text().contains(said));
    let disabled = admin.post(&format!("{page}/disable"), &[]).is(409).await;
    let html = disabled.text();
    assert!(html.contains(&format!("Couldn’t save: {said}")), "{html}");
    assert!(!admin.page("/access").await.contains("<td>disabled"));
    assert_eq!(log(&service, 5).await, []);
}

#[apply(on_sqlite)]
async fn a_key_is_shown_once_and_revoked_after_confirmation(Guarded(service): Guarded) {
    let admin = service.signed_in(Role::Admin).await;
    assert!(admin.page("/access/keys").await.contains("<strong>No keys yet</strong>"));
    let none = admin.post("/access/keys", &[("label", "Shop"), ("days", "30")]).is(422).await;
    let html = none.text();
    assert!(html.contains("a key needs at least one scope") && html.contains("value=\"Shop\""), "{html}");
    assert!(html.contains("<option value=\"30\" selected>"), "{html}");
    let nameless = admin.post("/access/keys", &[("label", " "), ("scope", "metrics"), ("days", "")]).await;
    let html = nameless.text();
    assert!(html.contains("id=\"scope-metrics\" checked") && !html.contains("id=\"scope-admin\" checked"));
    assert!(html.contains("<option value=\"\" selected>never"), "{html}");
    for (name, value, said) in [
        ("scope", "everything", "a scope is complete, catalogue, feedback, events, rules, admin or metrics"),
        ("days", "31", "a key expires after one of [7, 30, 90, 365] days, or never; found 31"),
    ] {
        let fields = [("label", "Shop"), ("scope", "metrics"), (name, value)];
        let odd = admin.post("/access/keys", &fields).await;
        assert_eq!(odd.status(), 422, "{value}");
        assert!(odd.text().contains(said), "{value}");
    }

    let fields = [("label", "Shop & Söhne"), ("scope", "catalogue"), ("scope", "metrics"), ("days", "30")];
    let made = admin.post("/access/keys", &fields).await;
    assert_eq!((made.status(), made.header("cache-control")), (200, "no-store"));
    let html = made.text();
    let key = between(&html, "aria-label=\"API key\">", "</pre>").to_owned();
    let ask = async |path: &str| {
        let request = service.get(path).key(&key);
        request.await.status()
    };
    assert_eq!((ask("/articles").await, ask("/methods").await), (200, 403));
    let list = admin.page("/access/keys").await;
    assert!(list.contains("Shop &#38; Söhne") && list.contains("<td>catalogue, metrics</td>"), "{list}");
    assert!(!list.contains(&key[4..]), "the key is never shown again");
    let kept = &service.store.api_keys().list().await.unwrap()[0];
    let lifetime = kept.expires_at.unwrap().millis() - kept.created_at.millis();
    assert_eq!(lifetime, 30 * 86_400_000);

    let revoke = format!("/access/keys/{}/revoke", kept.id.0);
    assert!(admin.page(&revoke).await.contains("Revoke the key Shop &#38; Söhne?"));
    assert_eq!(ask("/articles").await, 200, "the confirmation page changes nothing");
    for _ in 0..2 {
        let revoked = admin.post(&revoke, &[]).await;
        assert_eq!((revoked.status(), revoked.header("location")), (303, "/access/keys"));
    }
    assert_eq!(ask("/articles").await, 401);
    assert!(admin.page("/access/keys").await.contains(">revoked 20"));
    let me = Actor::Person(id_of(&service, "Some admin").await);
    let details = json!({"key": kept.id.0, "scopes": ["catalogue", "metrics"], "days": 30});
    let (subject, revoked) = ("Shop & Söhne".to_owned(), json!({"key": kept.id.0}));
    let expected =
        [(me, "key.revoke".into(), subject.clone(), revoked), (me, "key.create".into(), subject, details)];
    assert_eq!(log(&service, 5).await, expected, "revoking it again changes nothing");
    admin.get("/access/keys/4242/revoke").is(404).await;

    // A double click sends the form twice, and the second answer is shown: it has the same key.
    let before = service.store.api_keys().list().await.unwrap().len();
    let form = between(&list, "name=\"form\" value=\"", "\"").to_owned();
    let mut twice = Vec::new();
    for label in ["Twice", "Twice", "Other"] {
        let fields = [("label", label), ("scope", "metrics"), ("form", &form)];
        let html = admin.post("/access/keys", &fields).await.text();
        twice.push(between(&html, "aria-label=\"API key\">", "</pre>").to_owned());
    }
    assert!(twice[0] == twice[1] && twice[1] != twice[2]);
    let keys = service.store.api_keys().list().await.unwrap();
    assert_eq!(keys.len(), before + 2);
}

#[apply(on_sqlite)]
async fn the_audit_log_is_complete_and_paged(service: Service) {
    let admin = service.signed_in(Role::Admin).await;
    let me = Actor::Person(id_of(&service, "Some admin").await);
    let label = Name::new("Shop").unwrap();
    let (_, key) = service
        .state
        .access()
        .issue_key(&label, &Opens::Scopes(vec![Scope::Catalogue]), None, now())
        .await
        .unwrap();
    let key_id = key.id.0;
    let note = async |actor, action: &str, subject: &str, details: Value| {
        let store = service.store.by(Author { actor, peer: Some([10, 1, 2, 3].into()) });
        store.audit().append(&Entry::new(action, subject, details), now()).await.unwrap();
    };
    for number in 0..60 {
        note(Actor::Key(key.id), "article.put", &format!("article-{number:02}"), json!({"new": true})).await;
    }
    note(me, "person.role", "Bo", json!({"before": "stylist", "after": "admin"})).await;
    note(Actor::Service, "routing.set", "<b>", json!({"after": null, "scopes": ["a", "b"]})).await;
    note(Actor::Visitor, SIGN_IN_FAILED, "unknown name", json!({"attempts": 7})).await;

    let first = admin.page("/access/audit").await;
    assert!(first.contains("<td>&#60;b&#62;</td>") && first.contains("<td>this machine</td>"), "{first}");
    assert!(first.contains("<span>stylist → admin</span>") && first.contains("none → none"), "{first}");
    assert!(first.contains("<span class=\"quiet\">scopes</span> a, b"), "{first}");
    assert!(first.contains(&format!("<td>Shop (key {key_id})</td>")), "{first}");
    let failed =
        "<td>not signed in</td><td>10.1.2.3</td><th scope=\"row\">sign-in.failed</th><td>unknown name</td>";
    assert!(first.contains(failed) && first.contains("<span class=\"quiet\">attempts</span> 7"), "{first}");
    assert!(first.contains("article-13<") && !first.contains("article-12<"), "fifty entries");
    let older = between(&first, "<a class=\"button\" rel=\"next\" href=\"/access/audit?", "\">Next</a>")
        .replace("&#38;", "&");
    let second = admin.page(&format!("/access/audit?{older}")).await;
    assert!(second.contains("article-12<") && second.contains("article-00<"), "{second}");
    assert!(!second.contains("article-13<") && !second.contains(">Next<"), "{second}");

    let only = async |query: &str| {
        let html = admin.page(&format!("/access/audit?{query}")).await;
        (html.matches("<th scope=\"row\">").count(), html)
    };
    // The admin's account and link, made by the service, and the change of a role.
    assert_eq!(only("action=person").await.0, 3);
    assert_eq!(only("action=person&actor=service").await.0, 2);
    assert_eq!(only(&format!("actor=key-{key_id}&action=article.put")).await.0, 50);
    assert_eq!(only("actor=service&action=routing").await.0, 1);
    assert_eq!(only("actor=visitor").await.0, 1);
    assert_eq!(only("action=sign-in").await.0, 2);
    let (found, html) = only("actor=service&action=article").await;
    assert!(found == 0 && html.contains("No entries match."), "{html}");
    assert!(html.contains("<option value=\"service\" selected>"), "{html}");
    for odd in ["actor=x", "actor=person-x", "action=%00", "before=x"] {
        assert_eq!(admin.get(&format!("/access/audit?{odd}")).await.status(), 422, "{odd}");
    }
}

const PAGES: [&str; 3] = ["/access", "/access/keys", "/access/audit"];

#[apply(on_sqlite)]
async fn only_admins_change_anything(service: Service) {
    let analyst = service.signed_in(Role::Analyst).await;
    let admin = id_of(&service, "Some analyst").await.0;
    for path in PAGES {
        assert_eq!(analyst.get(path).await.status(), 403, "{path}");
    }
    for path in forms(admin) {
        let answer = analyst.post(&path, &[("change", "role"), ("role", "admin")]).await;
        assert_eq!(answer.status(), 403, "{path}");
        let answer = service.call(Method::POST, &path).await;
        assert_eq!(answer.status(), 401, "{path}");
    }
    assert_eq!(log(&service, 5).await, []);
}

fn forms(person: i64) -> [String; 5] {
    [
        "/access".into(),
        format!("/access/people/{person}"),
        format!("/access/people/{person}/disable"),
        "/access/keys".into(),
        "/access/keys/1/revoke".into(),
    ]
}

#[apply(on_sqlite)]
async fn changes_need_a_form_of_the_same_session(service: Service) {
    let admin: Browser = service.signed_in(Role::Admin).await;
    let id = id_of(&service, "Some admin").await.0;
    for path in forms(id) {
        let fields =
            [("name", "Eve"), ("role", "admin"), ("label", "Eve"), ("scope", "admin"), ("csrf", "x")];
        let forged = admin.post_bare(&path, &fields).await;
        assert_eq!(forged.status(), 403, "{path}");
        assert!(forged.text().contains("so nothing was changed"), "{path}");
    }
    assert_eq!(service.store.people().list().await.unwrap().len(), 1);
    assert_eq!(service.store.api_keys().list().await.unwrap(), []);
}
