//! Files that are sent as feeds and imported in the background.

use std::{fmt::Write, fs, path::Path, time::Duration};

use atelier::imports::{ImportState, Progress};
use atelier_core::domain::{Role, Timestamp};
use serde_json::{Value, json};

use crate::harness::{
    Call, Html, Service, TestDatabase, apply, contract, each, gzip, json::text, json_lines, on_sqlite, pick,
    until,
};

const MIRROR: &str = "mode=mirror&mirror_limit=100";

/// Hats called `a-0`, `a-1` and so on.
pub fn hats(numbers: impl Iterator<Item = usize>) -> String {
    numbers.fold(String::new(), |mut lines, n| {
        writeln!(lines, "{{\"id\":\"a-{n}\",\"type\":\"hat\",\"n\":{n}}}").unwrap();
        lines
    })
}

fn fixture(name: &str) -> Vec<u8> {
    fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)).unwrap()
}

impl Service {
    fn send_feed(&self, query: &str, body: impl Into<reqwest::Body>) -> Call {
        self.post(format!("/feeds/shop?{query}"), "application/octet-stream", body)
    }

    /// Sends a feed, and gives the import once it has ended.
    pub async fn feed(&self, query: &str, body: impl Into<reqwest::Body>) -> Value {
        let answer = self.send_feed(query, body).is(202).await;
        let path = answer.header("location");
        assert_eq!(path, format!("/imports/{}", answer.json()["id"]));
        self.end_of(path).await
    }

    fn undo(&self, import: &Value) -> Call {
        self.post(format!("/imports/{}/undo", import["id"]), "application/json", "")
    }

    async fn end_of(&self, path: &str) -> Value {
        until!(!["waiting", "running"].contains(&self.json(path).await["state"].as_str().unwrap()));
        self.json(path).await
    }
}

/// How an import ended, and the numbers of its result.
fn counts(import: &Value) -> Value {
    pick(import, "state result/added result/changed result/unchanged result/retired result/bad")
}

#[apply(contract)]
async fn a_feed_is_replaced_merged_and_mirrored(service: Service) {
    let import = service.feed("", "id,type,colour\na,hat,red\nb,coat,blue\n").await;
    assert_eq!(counts(&import), json!(["done", 2, 0, 0, 0, 0]), "{import:#}");
    assert_eq!(service.json("/articles/a").await["colour"], "red");
    assert_eq!(pick(&import, "progress/read progress/total"), json!([37, 37]), "{import:#}");
    let merged = service.feed("mode=merge", "id,type,colour\na,,green\nc,boot,\n").await;
    assert_eq!(counts(&merged), json!(["done", 1, 1, 0, 0, 0]), "{merged:#}");
    assert_eq!(service.json("/articles/a").await, json!({"id": "a", "type": "hat", "colour": "green"}));
    let lacking = "{\"id\":\"a\",\"type\":\"hat\"}\n";
    let refused = service.feed("mode=mirror", lacking).await;
    let failure = refused["result"]["failure"].as_str().unwrap();
    assert_eq!(refused["state"], "failed");
    failure.has(["lacks 2 of the catalogue's 3 articles (67 %)", "use mirror_limit=67"]);
    service.get("/articles/b").is(200).await;
    let mirrored = service.feed("mode=mirror&mirror_limit=67", lacking).await;
    assert_eq!(counts(&mirrored), json!(["done", 0, 1, 0, 2, 0]), "{mirrored:#}");
    service.get("/articles/b").is(404).await;
    let ids = [&mirrored["id"], &refused["id"], &merged["id"], &import["id"]];
    assert_eq!(each(&service.json("/imports").await["imports"], "id"), json!(ids));
    let log = service.log(10).await;
    assert_eq!(log.len(), 3, "each import that stored something");
    assert!(log.iter().all(|entry| entry.action == "articles.bulk"), "{log:?}");
}

#[apply(contract)]
async fn a_feed_takes_no_attribute_away_unless_forced(service: Service) {
    let feed = "id;type;Preis\na;hat;1\nb;hat;2\n";
    service.feed("map=Preis=price", feed).await;
    let refused = service.feed("mode=mirror", feed).await;
    assert_eq!(refused["state"], "failed");
    let failure = refused["result"]["failure"].as_str().unwrap();
    failure.has(["price from 2 of the 2", "map=articles.Preis=price", "use force=true"]).lacks(["--"]);
    assert_eq!(service.json("/articles/a").await["price"], 1);
    let forced = service.feed("mode=mirror&force=true", feed).await;
    assert_eq!(counts(&forced), json!(["done", 0, 2, 0, 0, 0]), "{forced:#}");
    assert_eq!(service.json("/articles/a").await, json!({"id": "a", "type": "hat", "Preis": 1}));
}

/// What was changed, retired and added is as before; what happened since stays.
#[apply(contract)]
async fn an_import_is_undone(db: TestDatabase) {
    let service = Service::start(&db).await;
    let variant = |id: &str| json!([{"id": id, "size": "M"}]);
    let hat = |id: &str, n: u32| json!({"id": id, "type": "hat", "n": n});
    let gone = json!({"id": "gone", "type": "hat", "variants": variant("gone-M")});
    let before = [hat("changed", 1), hat("deleted", 1), gone, hat("since", 1), hat("stays", 1)];
    service.feed("", json_lines(&before)).await;
    let seen = async || {
        (
            service.json("/articles?n=500").await,
            service.get("/articles/changed").await.header("etag").to_owned(),
        )
    };
    let listed = seen().await;
    let after = [hat("changed", 2), hat("deleted", 2), hat("new", 2), hat("since", 2), hat("stays", 1)];
    let mirrored = service.feed("mode=mirror", json_lines(&after)).await;
    assert_eq!(counts(&mirrored), json!(["done", 1, 3, 1, 1, 0]), "{mirrored:#}");
    assert_eq!(service.store.articles().count().await, Ok(5));
    service.get("/articles/gone-M").is(404).await;
    service.patch("/articles/since", json!({"n": 3})).ok().await;
    service.delete("/articles/deleted").is(204).await;
    // Another table's import comes between.
    let people = service.feed("table=customers", "id,age\nerased,28\nolder,28\n").await;
    let aged = service.feed("table=customers", "id,age\nerased,29\nolder,29\nyoung,9\n").await;
    let undone = service.undo(&mirrored).is(200).await.json();
    assert_eq!(pick(&undone, "state result/changed"), json!(["undone", 3]), "{undone:#}");
    service.delete("/articles/since").is(204).await;
    service.put("/articles/since", json!({"type": "hat", "n": 1})).is(201).await;
    service.put("/articles/deleted", json!({"type": "hat", "n": 1})).is(201).await;
    assert_eq!(seen().await, listed, "as before, with versions");
    assert_eq!(service.json("/articles/gone-M").await["id"], "gone");
    assert_eq!(service.actions(8).await.iter().filter(|action| action.starts_with("import.undo")).count(), 1);
    service.undo(&mirrored).is(409).await.text().has(["it is undone"]);
    service.post("/imports/999/undo", "application/json", "").is(404).await;

    service.delete("/customers/erased").is(204).await;
    // An admin undoes it on its page.
    let (admin, page) = (service.signed_in(Role::Admin).await, format!("/operations/imports/{}", aged["id"]));
    let form = format!("{page}/undo");
    admin.page(&page).await.has([&format!("action=\"{form}\"")]);
    admin.post(&form, &[]).is(303).await;
    admin.page(&page).await.has(["undone"]).lacks([&*form]);
    admin.post(&form, &[]).is(409).await.text().has(["cannot be undone"]);
    service.get("/customers/erased").is(404).await;
    assert_eq!(service.json("/customers/older").await["features"]["age"], 28);
    assert_eq!(service.json("/customers/young").await["features"]["age"], 9, "a new customer stays");
    // Erasures are for good, and so is what changed nothing.
    let erased = service.feed("table=customers&mode=delete", "id\nyoung\n").await;
    service.undo(&erased).is(409).await;
    service.undo(&service.feed("", json_lines(&before[..1])).await).is(409).await;
    // While another import runs, it waits for its turn.
    let other = service.store.import(service.state.clock.now().into()).await.unwrap();
    service.undo(&people).is(409).await.text().has(["while another one runs"]);
    other.abandon().await.unwrap();
}

/// An id, or a variant's, that an import retired is free, and what the import keeps is gone after a week.
#[apply(contract)]
async fn an_import_is_kept_for_a_week(db: TestDatabase) {
    let service = Service::start(&db).await;
    let hat = |id: &str, variant: &str| json!({"type": "hat", "id": id, "variants": [{"id": variant}]});
    let [old, new] = [("old", "v-1"), ("new", "v-2")].map(|(id, variant)| hat(id, variant));
    service.feed("", format!("{old}\n{}\n", hat("other", "v-3"))).await;
    let mirrored = service.feed(MIRROR, format!("{new}\n{}\n", hat("other", "v-4"))).await;
    service
        .put("/articles/cap", json!({"type": "cap", "variants": [{"id": "v-1"}, {"id": "v-3"}]}))
        .is(201)
        .await;
    service.put("/articles/old", json!({"type": "cap"})).is(201).await;
    service.feed("mode=merge", "{\"id\":\"old\",\"n\":1}\n").await;
    let refused = service.undo(&mirrored).is(422).await.json();
    text(&refused["detail"]).has(["\"v-3\" is the id of another article or variant by now"]);
    let now: Timestamp = service.state.clock.now().into();
    let later = now + Duration::from_hours(7 * 24 + 1);
    let kept = async || {
        let kept = "select count(old_type) + (select count(*) from undoable_imports) from articles";
        sqlx::query_scalar::<_, i64>(kept).fetch_one(&mut db.raw().await).await.unwrap()
    };
    assert!(kept().await > 0 && !service.store.has_old_imports(now).await.unwrap());
    assert!(service.store.has_old_imports(later).await.unwrap());
    service.store.clean_up_imports(later).await.unwrap();
    assert_eq!(kept().await, 0);
    service.undo(&mirrored).is(409).await;
    assert_eq!(service.json("/articles/v-1").await["id"], "cap");
}

/// A stream and a feed say the same of the same rows.
#[apply(on_sqlite)]
async fn a_stream_and_a_feed_warn_alike(service: Service) {
    let rows = "{\"id\":\"c\",\"features\":{\"shoe\":40}}\n{\"id\":\"d\",\"features\":{\"shoe\":41}}\n";
    let streamed = service.lines("/customers/bulk", rows).ok().await;
    let feed = service.feed("table=customers", rows).await;
    let expected = json!([1, "the schema has no feature \"shoe\"; models do not see it (2 rows in all)"]);
    assert_eq!(pick(&streamed["warnings"][0], "line detail"), expected);
    // Without a customer's data.
    let expected = json!([1, "the schema has no feature \"shoe\" (2 rows in all)"]);
    assert_eq!(pick(&feed["result"]["warnings"][0], "line detail"), expected);
}

#[apply(on_sqlite)]
async fn every_format_is_recognised_by_its_contents(service: Service) {
    for (body, query, added) in [
        (hats(0..2).into_bytes(), "", 2),
        (gzip(hats(0..3).as_bytes()), "", 3),
        (b"\xef\xbb\xbfid;type\nx;hat\n".to_vec(), "", 1),
        (b"Nr\tArt\nx\that\n".to_vec(), "&map=Nr=id&map=Art=type", 1),
        (b"id,type\nx,M\xfctze\n".to_vec(), "&encoding=windows-1252", 1),
        (fixture("articles-pyarrow.parquet"), "", 3),
        (fixture("merchant.xml"), "&skip_bad=true", 3),
        (fixture("merchant.tsv"), "", 2),
        (fixture("shopify.csv"), "&skip_bad=true", 3),
        (fixture("customers-pandas.parquet"), "&table=customers&skip_bad=true", 3),
    ] {
        let import = service.feed(&format!("dry_run=true{query}"), body).await;
        assert_eq!(pick(&import, "state result/added"), json!(["done", added]), "{query}: {import:#}");
    }
    assert_eq!(service.store.articles().count().await, Ok(0));
}

#[apply(on_sqlite)]
async fn a_dry_run_counts_and_stores_nothing(service: Service) {
    service.feed("", hats(0..10)).await;
    let stored = async || (service.json("/articles?n=500").await, service.get("/articles/a-1").await.headers);
    let (before, headers) = stored().await;
    let feed = hats(0..5) + "{\"id\":\"a-6\",\"type\":\"coat\"}\n{\"id\":\"new\",\"type\":\"coat\"}\n";
    let import = service.feed("mode=mirror&mirror_limit=50&dry_run=true", feed.clone()).await;
    assert_eq!(counts(&import), json!(["done", 1, 1, 5, 4, 0]), "{import:#}");
    let (after, headers_after) = stored().await;
    assert_eq!((after, &headers_after["etag"]), (before, &headers["etag"]));
    assert_eq!(service.log(10).await.len(), 1);
    let import = service.feed("mode=mirror&mirror_limit=50", feed).await;
    assert_eq!(counts(&import), json!(["done", 1, 1, 5, 4, 0]), "as the dry run said");
}

#[apply(on_sqlite)]
async fn bad_rows_are_counted_by_kind(service: Service) {
    let rows = hats(0..3)
        + "{\"id\":\"x\"}\n{\"id\":\"y\",\"type\":\"hat\",\"price\":\"cheap\"}\n{\"id\":\"z\"}\nno json\n";
    let import = service.feed("", rows.clone()).await;
    let failure = "4 of 7 rows are bad; fix them, or store the 3 good ones with skip_bad=true";
    assert_eq!(pick(&import, "state result/failure"), json!(["failed", failure]));
    let kinds = &import["result"]["errors"];
    assert_eq!(each(kinds, "rows"), json!([2, 1, 1]), "{import:#}");
    assert_eq!(each(kinds, "first/0/line"), json!([4, 5, 7]), "{import:#}");
    assert_eq!(kinds[0]["first"][1], json!({"line": 6, "detail": "field \"type\" is missing"}));
    assert_eq!(service.store.articles().count().await, Ok(0));
    let import = service.feed("skip_bad=true", rows).await;
    assert_eq!(counts(&import), json!(["done", 3, 0, 0, 0, 4]), "{import:#}");
    // What an import says about customers has none of their data.
    let import = service.feed("table=customers", "id,age\nErna,28\nErna,29\n").await;
    import["result"].to_string().has(["is already in line"]).lacks(["Erna"]);
}

#[apply(on_sqlite)]
async fn what_cannot_be_imported_is_refused_at_once(service: Service) {
    for (query, body, said) in [
        ("", "", "the feed is empty"),
        ("", "nr,art\n1,hat\n", "articles need the columns \"id\" and \"type\""),
        ("", "nr,kategorie\n1,hat\n", "map=articles.nr=id map=articles.kategorie=type"),
        ("map=x=y", "id,type\n1,hat\n", "map=x=y: no CSV or Parquet file has a column \"x\""),
        ("table=customers", "<rss/>", "which describes whole articles"),
        ("format=xlsx", "id,type\n", "expected jsonl, csv, parquet, google-xml, google-tsv or shopify-csv"),
        ("format=parquet", "id,type\n", "not a readable Parquet file"),
        ("delimiter=x", "id,type\n", "expected \",\""),
        ("encoding=x", "id,type\n", "of the Encoding Standard"),
        ("map=x", "id,type\n", "expected the name in the file"),
        ("mode=mirror&table=customers", "id\n", "mirror is for articles"),
        ("mode=merge&table=outfits", "id\n", "merge is not for outfits"),
        ("mode=mirror&mirror_limit=101", "id\n", "expected 0 to 100 percent"),
        ("mode=merge&mirror_limit=1", "id\n", "only mode=replace and mode=mirror have a limit"),
        ("mode=all", "id\n", "unknown variant `all`"),
        ("table=people", "id\n", "unknown variant `people`"),
        ("dryrun=true", "id\n", "unknown field `dryrun`"),
    ] {
        service.send_feed(query, body).is(422).await.text().replace("\\\"", "\"").has([said]);
    }
    for name in ["a%00b", &"a".repeat(129)[..]] {
        service.post(format!("/feeds/{name}"), "text/csv", "id,type\na,hat\n").is(422).await;
    }
    assert_eq!(service.json("/imports").await, json!({"imports": []}));
}

/// While another import runs, a job waits, and can be cancelled; ended ones cannot.
#[apply(contract)]
async fn imports_wait_for_each_other(service: Service) {
    let mut other = service.store.import(service.state.clock.now().into()).await.unwrap();
    let mut paths = Vec::new();
    for n in 0..3 {
        let answer = service.send_feed("", format!("id,type,n\na,hat,{n}\n")).is(202).await;
        paths.push(answer.header("location").to_owned());
    }
    // Within a moment the first would have begun.
    tokio::time::sleep(Duration::from_millis(500)).await;
    for path in &paths {
        let import = service.json(path).await;
        assert_eq!(pick(&import, "state started_at"), json!(["waiting", null]), "{import:#}");
    }
    service.delete(&paths[1]).is(202).await;
    assert_eq!(service.end_of(&paths[1]).await["state"], "cancelled");
    service.delete(&paths[1]).is(409).await;
    other.leave_out("articles", 0);
    other.commit().await.unwrap();
    for path in [&paths[0], &paths[2]] {
        assert_eq!(service.end_of(path).await["state"], "done", "{path}");
    }
    assert_eq!(service.json("/articles/a").await["n"], 2, "first come, first served");
}

#[apply(contract)]
async fn the_last_thirty_of_a_table_are_kept(service: Service) {
    let customers = service.feed("table=customers", "id\nc\n").await;
    let mut ids = vec![customers["id"].clone()];
    for _ in 0..32 {
        ids.push(service.feed("dry_run=true", "id,type\na,hat\n").await["id"].clone());
    }
    ids.drain(1..3);
    ids.reverse();
    let list = service.json("/imports").await;
    assert_eq!(each(&list["imports"], "id"), json!(ids));
    assert_eq!(list["imports"][0]["result"].get("errors"), None, "a list has no rows");
}

/// What a process that was killed left: the running one is found at the next start, the waiting one when it is silent.
#[apply(contract)]
async fn a_killed_import_is_interrupted(service: Service) {
    let imports = service.store.imports();
    let now: Timestamp = service.state.clock.now().into();
    let add = async |now| imports.add("shop", "articles", &json!({}), 10, now).await.unwrap();
    let state = async |id: i64| pick(&service.json(format!("/imports/{id}")).await, "state progress/read");
    let (running, waiting, stored) = (add(now).await, add(now).await, add(now).await);
    let gauge = Progress { read: 3, total: 10 };
    assert_eq!(imports.report(running, ImportState::Running, gauge, now).await, Ok(false));
    service.store.clean_up_imports(now).await.unwrap();
    assert_eq!(state(running.0).await, json!(["interrupted", 3]));
    // Killed after its rows were stored.
    let mut import = service.store.import(now).await.unwrap();
    assert_eq!(imports.report(stored, ImportState::Running, gauge, now).await, Ok(false));
    let names =
        ["added", "changed", "unchanged", "retired", "deleted", "absent", "left_out", "bad", "other_bad"];
    import.note_result(stored, &names.iter().map(|name| ((*name).to_owned(), Value::from(0))).collect());
    import.commit().await.unwrap();
    service.store.clean_up_imports(now).await.unwrap();
    assert_eq!(state(stored.0).await[0], "done");
    let later = |seconds| now + Duration::from_secs(seconds);
    imports.report(waiting, ImportState::Waiting, gauge, later(2)).await.unwrap();
    for (seconds, expected) in [(21, "waiting"), (23, "interrupted")] {
        imports.interrupt_silent(later(seconds)).await.unwrap();
        assert_eq!(state(waiting.0).await[0], expected, "after {seconds} s");
    }
}

/// The end of the service interrupts what waits, and refuses what comes.
#[apply(on_sqlite)]
async fn the_end_of_the_service_interrupts_imports(service: Service) {
    let other = service.store.import(service.state.clock.now().into()).await.unwrap();
    let answer = service.send_feed("", "id,type\na,hat\n").is(202).await;
    service.state.jobs().stop().await;
    assert_eq!(service.json(answer.header("location")).await["state"], "interrupted");
    service.send_feed("", "id,type\na,hat\n").is(503).await;
    drop(other);
}

#[apply(on_sqlite)]
async fn people_see_what_a_feed_did(service: Service) {
    let analyst = service.signed_in(Role::Analyst).await;
    analyst.page("/operations/imports").await.has(["<strong>No imports</strong>"]);
    let import = service.feed("", "id,type,price\n,hat,1\n<b>,hat,cheap\ny,hat,1\n").await;
    let path = format!("/operations/imports/{}", import["id"]);
    analyst.page("/operations/imports").await.has([&format!("<a href=\"{path}\">shop</a>"), "2 bad"]);
    let said = ["2 of 3 rows are bad", "line 2: field &#34;id&#34; is missing"];
    analyst.page(path).await.has(said).lacks(["<b>"]);
    analyst.get("/operations/imports/99").is(404).await;
}

/// In a mirror, a bad row keeps its article, or that of its variant. Without an id that can be read it keeps all.
#[apply(on_sqlite)]
async fn bad_rows_of_a_mirror_keep_their_articles(service: Service) {
    let jsonl = |rest: &str| hats(0..1) + rest;
    let csv = |rest: &str| format!("id,type,price\na-0,hat,1\n{rest}");
    let tsv = |rest: &str| format!("id\ttitle\tproduct_type\tprice\na-0\tA\tHats\t1 EUR\n{rest}");
    let shopify = |rest: &str| {
        let head = "Handle,Title,Type,Option1 Name,Option1 Value,Variant SKU,Variant Price";
        format!("{head}\na-0,A,Hat,Size,M,s-0,1\n{rest}")
    };
    let item = |id: &str, rest: &str| {
        format!("<item><g:id>{id}</g:id><g:product_type>Hats</g:product_type>{rest}</item>")
    };
    let xml = |items: &[String]| {
        let items = item("a-0", "") + &items.concat();
        format!("<rss xmlns:g=\"http://base.google.com/ns/1.0\"><channel>{items}</channel></rss>")
    };
    let sku = |id: &str, rest: &str| item(id, &format!("<g:item_group_id>kept</g:item_group_id>{rest}"));
    let jsonl_of_both = jsonl("{\"id\":\"kept\",\"type\":\"hat\"}\n{\"id\":\"gone\",\"type\":\"hat\"}\n");
    let csv_of_both = csv("kept,hat,1\ngone,hat,1\n");
    let tsv_of_both = tsv("kept\tB\tHats\t1 EUR\ngone\tC\tHats\t1 EUR\n");
    let xml_of_both = xml(&[item("kept", ""), item("gone", "")]);
    let skus_of_both = xml(&[sku("k-1", ""), sku("k-2", ""), item("gone", "")]);
    let shopify_of_both = shopify("kept,B,Hat,Size,M,s-1,1\ngone,C,Hat,Size,M,s-2,1\n");
    let bad = "<g:price>cheap</g:price>";
    for (name, first, second, keeps) in [
        ("jsonl", &jsonl_of_both, jsonl("{\"id\":\"kept\",\"type\":7}\n"), true),
        ("broken", &jsonl_of_both, jsonl("{\"id\":\"kept\",\n"), false),
        ("space", &jsonl_of_both, jsonl("{\"id\":\" kept \",\"type\":\"hat\"}\n"), false),
        ("price", &csv_of_both, csv("kept,hat,cheap\n"), true),
        ("cells", &csv_of_both, csv("kept,hat,7,8\n"), true),
        ("shifted", &csv_of_both, "type,id\nhat,a-0\nhat,new,kept\n".into(), false),
        ("no id", &csv_of_both, csv(",hat,1\n"), false),
        ("quotation mark", &csv_of_both, csv("new,\"hat,1\nkept,hat,1\nother,ha\"t,1\n"), true),
        ("tsv", &tsv_of_both, tsv("kept\tB\tHats\tcheap\n"), true),
        ("xml", &xml_of_both, xml(&[item("kept", bad)]), true),
        ("entity", &xml_of_both, xml(&[item("kept", "<g:title>a&nbsp;b</g:title>")]), true),
        ("entity in the id", &xml_of_both, xml(&[item("kept&nbsp;", "")]), false),
        ("variant", &skus_of_both, xml(&[sku("k-1", bad), item("k-2", bad)]), true),
        ("shopify", &shopify_of_both, shopify("kept,B,Hat,Size,M,s-1,cheap\n"), true),
    ] {
        service.feed(MIRROR, first.clone()).await;
        let import = service.feed(&format!("{MIRROR}&skip_bad=true"), second).await;
        let expected = json!(["done", u8::from(keeps)]);
        assert_eq!(pick(&import, "state result/retired"), expected, "{name}: {import:#}");
        assert_eq!(service.get("/articles/kept").await.status, 200, "{name}");
        assert_eq!(service.get("/articles/gone").await.status, if keeps { 404 } else { 200 }, "{name}");
        let says_so = import["result"]["warnings"].to_string().contains("no article was retired");
        assert_eq!(says_so, !keeps, "{name}: {import:#}");
    }
}

/// The other variants of the article are as the feed says.
#[apply(contract)]
async fn a_bad_row_keeps_its_variant(service: Service) {
    let feed = |price: &str, size: &str| {
        let item = |id: &str, size: &str, price: &str| {
            format!(
                "<item><g:id>{id}</g:id><g:item_group_id>g</g:item_group_id><g:product_type>Hats</g:product_type>\
                 <g:size>{size}</g:size><g:price>{price}</g:price></item>"
            )
        };
        let items = item("s-1", size, "10 EUR") + &item("s-2", "M", price);
        format!("<rss xmlns:g=\"http://base.google.com/ns/1.0\"><channel>{items}</channel></rss>")
    };
    service.feed(MIRROR, feed("20 EUR", "S")).await;
    let before = service.json("/articles/g").await;
    let import = service.feed(&format!("{MIRROR}&skip_bad=true"), feed("cheap", "XS")).await;
    assert_eq!(pick(&import, "result/changed result/bad"), json!([1, 1]), "{import:#}");
    let after = service.json("/articles/g").await;
    assert_eq!(after["variants"][0]["size"], "XS", "{after:#}");
    assert_eq!(after["variants"][1], before["variants"][1], "{after:#}");
}

/// As DELETE of each, in one transaction: of customers nothing stays.
#[apply(contract)]
async fn many_are_deleted_at_once(service: Service) {
    service.feed("", hats(0..20)).await;
    service.feed("table=customers", "id,age\nErna,28\nOtto,30\nUdo,31\n").await;
    service.send("/outfits", json!({"customer": "Erna", "articles": ["a-1", "a-2"]})).is(201).await;
    let delete =
        |table: &str, lines: &'static str| service.lines(format!("/{table}/bulk?mode=delete"), lines);
    for lines in [
        "{\"id\":\"a-1\"}\n{\"nr\":1}\n",
        "{\"id\":\"a-1\"}\n{\"id\":\"a-1\"}\n",
        "{\"id\":\"a-1\",\"type\":\"hat\"}\n",
    ] {
        delete("articles", lines).is(422).await;
    }
    assert_eq!(service.store.articles().count().await, Ok(20), "all or nothing");
    let done = delete("articles", "{\"id\":\"a-1\"}\n{\"id\":\"a-2\"}\n{\"id\":\"none\"}\n").ok().await;
    assert_eq!(pick(&done, "deleted absent changed"), json!([2, 1, 0]), "{done:#}");
    service.get("/articles/a-1").is(404).await;
    let done = delete("customers", "{\"id\":\"Erna\"}\n{\"id\":\"Otto\"}\n{\"id\":\"none\"}\n").ok().await;
    assert_eq!(pick(&done, "deleted absent"), json!([2, 1]), "{done:#}");
    for (path, status) in [("/customers/Erna", 404), ("/customers/Udo", 200), ("/outfits/1", 404)] {
        service.get(path).is(status).await;
    }
    let log = service.log(100).await;
    assert_eq!((log[0].action.as_str(), &log[0].details["erased"]), ("customers.bulk", &json!(2)));
    format!("{log:?}").lacks(["Erna"]);
    // A feed does the same.
    let import = service.feed("mode=delete&dry_run=true", "id\na-3\nnone\n").await;
    assert_eq!(pick(&import, "result/deleted result/absent"), json!([1, 1]), "{import:#}");
    service.get("/articles/a-3").is(200).await;
    service.feed("mode=delete&table=customers", "id\nUdo\n").await;
    service.get("/customers/Udo").is(404).await;
}
