//! `/access`: people, keys and the log, as an admin sees them.

use atelier::{
    people::{Opens, Scope, Token},
    platform::db::{Actor, Author, Entry, SIGN_IN_FAILED},
};
use atelier_core::domain::Role;
use serde_json::{Value, json};

use crate::harness::{Answer, Guarded, Html, Service, apply, contract, now, on_sqlite};

/// The secret that an answer shows once.
fn secret(answer: &Answer, label: &str) -> String {
    answer.text().between(&format!("aria-label=\"{label}\">"), "</pre>")
}

/// The last entries of the log: who, what, to what, and the details.
async fn log(service: &Service, n: usize) -> Vec<(Actor, String, String, Value)> {
    let entries = service.log(n).await;
    entries.into_iter().map(|one| (one.actor, one.action, one.subject, one.details.into())).collect()
}

/// The page of a person.
async fn page_of(service: &Service, name: &str) -> String {
    format!("/access/people/{}", service.find_person(name).await.0)
}

/// The admin who does all this.
async fn me(service: &Service) -> Actor {
    Actor::Person(service.find_person("Some admin").await)
}

#[apply(contract)]
async fn a_new_person_signs_in_by_a_link_shown_once(service: Service) {
    let admin = service.signed_in(Role::Admin).await;
    let me = me(&service).await;
    let added = admin.post("/access", &[("name", " Çiğdem <Ö> "), ("role", "analyst")]).is(200).await;
    assert_eq!(added.header("cache-control"), "no-store");
    let link = secret(&added, "Sign-in link");
    let token = link.strip_prefix(&format!("{}/sign-in/", service.url)).expect("it leads here");
    let person = service.state.access().holder(&Token::parse(token).unwrap(), now()).await.unwrap();
    assert_eq!((person.name.as_str(), person.role), ("Çiğdem <Ö>", Role::Analyst));

    let list = admin.page("/access").await;
    list.between("Çiğdem &#60;Ö&#62;</a>", "</tr>").has(["<td>invited</td>"]);
    list.has(["Some admin</a> <span class=\"quiet\">(you)</span>"]).lacks([token]);
    let expected = [
        (me, "person.link".into(), "Çiğdem <Ö>".into(), json!({})),
        (me, "person.create".into(), "Çiğdem <Ö>".into(), json!({"role": "analyst"})),
    ];
    assert_eq!(log(&service, 2).await, expected);

    // A new link replaces it.
    let page = page_of(&service, "Çiğdem <Ö>").await;
    let html = admin.post(&page, &[("change", "link")]).await.text();
    html.has(["signs them in once, within 24 hours"]);
    assert!(service.state.access().holder(&Token::parse(token).unwrap(), now()).await.is_err());
}

#[apply(on_sqlite)]
async fn forms_of_access_say_what_is_wrong(service: Service) {
    let admin = service.signed_in(Role::Admin).await;
    let (bo, _) = service.invite("Bo", Role::Stylist).await;
    let bo = format!("/access/people/{}", bo.0);
    service.signed_in(Role::Stylist).await;
    let (me, stylist) = (page_of(&service, "Some admin").await, page_of(&service, "Some stylist").await);
    let last_admin = "this is the only admin who can sign in; make another person an admin first";
    let origin = "expected an origin such as https://shop.example, without a slash at the end";
    let scopes = "a scope is complete, catalogue, feedback, events, rules, admin or metrics";
    let days = "a key expires after one of [7, 30, 90, 365] days, or never; found 31";
    let role = "a role is stylist, analyst, merchandiser or admin; found &#34;king&#34;";
    let keys = "/access/keys";
    let (taken, nameless) = ("another person already has that name", "a name has 1 to 128 characters");
    // What was typed stays, in the form that was sent.
    for (path, fields, status, said) in [
        ("/access", "name=some ADMIN&role=analyst", 409, taken),
        ("/access", "name=some ADMIN&role=analyst", 409, "value=\"some ADMIN\" … selected>analyst<"),
        ("/access", "name= &role=stylist", 422, nameless),
        ("/access", "name=Bo&role=king", 422, role),
        (&bo, "change=name&name=some ADMIN", 409, taken),
        (&bo, "change=name&name=some ADMIN", 409, "role=\"alert\"> … id=\"name\" value=\"some ADMIN\""),
        (&bo, "change=name&name= ", 422, nameless),
        // The name of somebody who signed in stays in the audit log.
        (&stylist, "change=remove", 409, "disable them instead"),
        (&stylist, "change=name&name=Eve", 409, "disable them instead"),
        (&me, "change=role&role=stylist", 409, last_admin),
        (&format!("{me}/disable"), "", 409, &format!("Couldn’t save: {last_admin}")),
        (keys, "label=Shop&days=30", 422, "a key needs at least one scope"),
        (keys, "label=Shop&days=30", 422, "value=\"Shop\" … <option value=\"30\" selected>"),
        (keys, "label= &scope=metrics&days=", 422, "\"scope-metrics\" checked … value=\"\" selected>never"),
        (keys, "label=Shop&scope=metrics&scope=everything", 422, scopes),
        (keys, "label=Shop&scope=metrics&days=31", 422, days),
        (keys, "label=Shop&origins=&days=365", 422, "needs the origin of at least one site"),
        (keys, "label=Shop&origins=&days=365", 422, "id=\"site\" value=\"Shop\" … id=\"label\" value=\"\""),
        (keys, "label=Shop&origins=https://boutique.example/&days=365", 422, origin),
        (keys, "label=Shop&origins=boutique.example&days=365", 422, origin),
    ] {
        let form: Vec<(&str, &str)> = fields.split('&').filter_map(|field| field.split_once('=')).collect();
        let refused = admin.post(path, &form).is(status).await.text();
        assert!(said.split(" … ").all(|part| refused.contains(part)), "{path} {fields}: {said} in {refused}");
    }
    assert_eq!(service.store.people().list().await.unwrap().len(), 3);
    assert_eq!(service.store.api_keys().list().await.unwrap(), []);
    assert_eq!(log(&service, 5).await, []);
    for (unknown, status) in [
        ("/access/people/4242", 404),
        ("/access/people/4242/disable", 404),
        ("/access/people/x", 422),
        ("/access/keys/4242/revoke", 404),
    ] {
        admin.get(unknown).is(status).await;
    }
}

#[apply(contract)]
async fn a_double_click_makes_one_thing(service: Service) {
    const SIGNING: &str = "Secret that signs customers";
    let admin = service.signed_in(Role::Admin).await;
    // The second answer is the one that is shown: it has the same secret.
    for (path, fields, labels) in [
        ("/access", "name=Twice&role=stylist", &["Sign-in link"][..]),
        ("/access/keys", "label=Twice&scope=metrics", &["API key"]),
        ("/access/keys", "label=Page&origins=https://shop.example&days=365", &["API key", SIGNING]),
    ] {
        let list = admin.page(path).await;
        let form = list.between("name=\"form\" value=\"", "\"");
        let fields = fields.split('&').filter_map(|field| field.split_once('='));
        let fields: Vec<_> = fields.chain([("form", &*form)]).collect();
        let twice = tokio::join!(admin.post(path, &fields).is(200), admin.post(path, &fields).is(200));
        let [first, second] = <[_; 2]>::from(twice)
            .map(|answer| labels.iter().map(|label| secret(&answer, label)).collect::<Vec<_>>());
        assert_eq!(first, second, "{path} {fields:?}");
    }
    assert_eq!(log(&service, 5).await.len(), 4, "a person, their link, and two keys");
    // Another form of the same page.
    let list = admin.page("/access").await;
    let form = list.between("name=\"form\" value=\"", "\"");
    admin.post("/access", &[("name", "Twice"), ("role", "admin"), ("form", &form)]).is(409).await;
    admin.post("/access/keys", &[("label", "Other"), ("scope", "metrics"), ("form", &form)]).is(200).await;
    assert_eq!(service.store.api_keys().list().await.unwrap().len(), 3);
}

#[apply(contract)]
async fn a_role_is_changed_and_an_account_disabled(service: Service) {
    let admin = service.signed_in(Role::Admin).await;
    let bo = service.signed_in(Role::Stylist).await;
    let page = page_of(&service, "Some stylist").await;
    let sent = service.state.access().link(service.find_person("Some stylist").await, now()).await.unwrap();
    admin.page(&page).await.has(["<option selected>stylist</option>"]);

    let changed = admin.post(&page, &[("change", "role"), ("role", "analyst")]).is(303).await;
    assert_eq!(changed.header("location"), page);
    // It takes effect at once.
    bo.page("/studio").await.has(["<span class=\"chip\">analyst</span>"]);

    // The page that asks changes nothing.
    admin.page(&format!("{page}/disable")).await.has(["<h1>Disable Some stylist?</h1>"]);
    bo.get("/studio").is(200).await;
    let disabled = admin.post(format!("{page}/disable"), &[]).is(303).await;
    assert_eq!(disabled.header("location"), "/access");
    bo.get("/studio").is(303).await;
    admin.page("/access").await.has(["<td>disabled 20"]);
    let link = admin.post(&page, &[("change", "link")]).is(409).await;
    link.text().has(["so a link would not work; enable them first"]);
    admin.post(&page, &[("change", "enable")]).is(303).await;
    admin.page("/access").await.lacks(["<td>disabled 20"]);
    // What ended with it is gone for good.
    bo.get("/studio").is(303).await;
    assert!(service.state.access().holder(&sent, now()).await.is_err());

    let me = me(&service).await;
    let entry = |action: &str, details| (me, action.to_owned(), "Some stylist".to_owned(), details);
    let expected = [
        entry("person.enable", json!({})),
        entry("person.disable", json!({})),
        entry("person.role", json!({"before": "stylist", "after": "analyst"})),
    ];
    assert_eq!(log(&service, 5).await, expected);
}

#[apply(contract)]
async fn somebody_invited_is_renamed_and_removed(service: Service) {
    let admin = service.signed_in(Role::Admin).await;
    service.signed_in(Role::Stylist).await;
    service.invite("Bo", Role::Stylist).await;
    let page = page_of(&service, "Bo").await;
    admin.page(&page).await.has(["Invited, never signed in.", "id=\"rename\""]);
    let list = admin.page("/access").await;
    list.between(">Bo</a>", "</tr>").has(["<td class=\"when\">never</td>"]);
    list.between("Some admin</a>", "</tr>").lacks(["never"]);
    let html = admin.page(page_of(&service, "Some stylist").await).await;
    html.has(["Last sign-in 20"]).lacks(["id=\"rename\""]);

    admin.post(&page, &[("change", "name"), ("name", "Bo Ek")]).is(303).await;
    admin.page(&page).await.has(["<h1>Bo Ek</h1>"]);
    let removed = admin.post(&page, &[("change", "remove")]).is(303).await;
    assert_eq!(removed.header("location"), "/access");
    admin.get(&page).is(404).await;
    let said: Vec<_> =
        log(&service, 2).await.into_iter().map(|(_, action, subject, _)| action + " " + &subject).collect();
    assert_eq!(said, ["person.remove Bo Ek", "person.rename Bo"]);
}

#[apply(contract)]
async fn an_admin_ends_the_sessions_of_anyone(service: Service) {
    let admin = service.signed_in(Role::Admin).await;
    let (laptop, phone) = (service.signed_in(Role::Stylist).await, service.signed_in(Role::Stylist).await);
    let id = service.find_person("Some stylist").await;
    let link = service.state.access().link(id, now()).await.unwrap();
    let page = page_of(&service, "Some stylist").await;
    admin.page(&page).await.has(["Sign out everywhere"]);
    let ended = admin.post(&page, &[("change", "sign-out")]).is(303).await;
    assert_eq!(ended.header("location"), page);
    for browser in [&laptop, &phone] {
        browser.get("/studio").is(303).await;
        let refused = browser.post("/studio/outfits", &[("view", "slot=")]).is(401).await;
        refused.text().has(["href=\"/sign-in?next="]);
    }
    assert!(service.state.access().holder(&link, now()).await.is_err(), "a link does not sign in again");
    // Other people stay signed in, and they can sign in again.
    admin.get("/access").is(200).await;
    service.signed_in(Role::Stylist).await.get("/studio").is(200).await;
    let me = me(&service).await;
    assert_eq!(log(&service, 1).await, [(me, "person.sign_out".into(), "Some stylist".into(), json!({}))]);
    // Their own, too.
    admin.post(page_of(&service, "Some admin").await, &[("change", "sign-out")]).is(303).await;
    admin.get("/access").is(303).await;
}

#[apply(contract)]
async fn a_key_is_shown_once_and_revoked_after_confirmation(Guarded(service): Guarded) {
    let admin = service.signed_in(Role::Admin).await;
    admin.page("/access/keys").await.has(["<strong>No keys yet</strong>"]);
    let fields = [("label", "Shop & Söhne"), ("scope", "catalogue"), ("scope", "metrics"), ("days", "30")];
    let made = admin.post("/access/keys", &fields).is(200).await;
    assert_eq!(made.header("cache-control"), "no-store");
    let key = secret(&made, "API key");
    service.get("/articles").key(&key).is(200).await;
    service.get("/methods").key(&key).is(403).await;
    // The key is never shown again.
    let list = admin.page("/access/keys").await;
    list.has(["Shop &#38; Söhne", "<td>catalogue, metrics</td>"]).lacks([&key[4..]]);
    let kept = &service.store.api_keys().list().await.unwrap()[0];
    let lifetime = kept.expires_at.unwrap().millis() - kept.created_at.millis();
    assert_eq!(lifetime, 30 * 86_400_000);

    let revoke = format!("/access/keys/{}/revoke", kept.id.0);
    list.has([format!("href=\"{revoke}\"")]);
    // The page that asks changes nothing.
    admin.page(&revoke).await.has(["Revoke the key Shop &#38; Söhne?"]);
    service.get("/articles").key(&key).is(200).await;
    for _ in 0..2 {
        let revoked = admin.post(&revoke, &[]).is(303).await;
        assert_eq!(revoked.header("location"), "/access/keys");
    }
    service.get("/articles").key(&key).is(401).await;
    admin.page("/access/keys").await.has([">revoked 20"]);
    let me = me(&service).await;
    let entry = |action: &str, details| (me, action.to_owned(), "Shop & Söhne".to_owned(), details);
    let expected = [
        entry("key.revoke", json!({"key": kept.id.0})),
        entry("key.create", json!({"key": kept.id.0, "scopes": ["catalogue", "metrics"], "days": 30})),
    ];
    assert_eq!(log(&service, 5).await, expected, "revoking it again changes nothing");
}

#[apply(contract)]
async fn the_audit_log_is_complete_and_paged(service: Service) {
    let admin = service.signed_in(Role::Admin).await;
    let me = me(&service).await;
    let (_, key) = service.issue_for(Opens::Scopes(vec![Scope::Catalogue])).await;
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
    first.has([
        "<td>&#60;b&#62;</td>",
        "<td>this machine</td>",
        "<span>stylist → admin</span>",
        "none → none",
        "<span class=\"quiet\">scopes</span> a, b",
        &format!("<td>Shop (key {key_id})</td>"),
        "<td>not signed in</td><td>10.1.2.3</td><th scope=\"row\">sign-in.failed</th><td>unknown name</td>",
        "<span class=\"quiet\">attempts</span> 7",
        "article-13<",
    ]);
    first.lacks(["article-12<"]);
    let older = first.between("<a class=\"button\" rel=\"next\" href=\"", "\">Next</a>");
    let second = admin.page(&older).await;
    second.has(["article-12<", "article-00<"]).lacks(["article-13<", ">Next<"]);

    for (query, found) in [
        // The admin's account and link.
        ("action=person&actor=service", 2),
        (&format!("actor=key-{key_id}&action=article.put"), 50),
        ("actor=visitor", 1),
        ("actor=service&action=article", 0),
        // No pattern.
        ("action=%25", 0),
    ] {
        let html = admin.page(&format!("/access/audit?{query}")).await;
        assert_eq!(html.matches("<th scope=\"row\">").count(), found, "{query}");
        assert_eq!(html.contains("No entries match."), found == 0, "{query}");
        let is_chosen = html.contains("<option value=\"service\" selected>");
        assert_eq!(is_chosen, query.contains("=service"), "{query}");
    }
    for odd in ["actor=x", "actor=person-x", "action=%00", "before=x"] {
        admin.get(format!("/access/audit?{odd}")).is(422).await;
    }
}
