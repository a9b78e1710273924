//! Files that are sent as feeds and imported in the background.

use std::{fmt::Write as _, fs, path::Path};

use atelier_core::domain::Role;
use serde_json::{Value, json};

use super::{Guarded, Service, until};
use crate::harness::{apply, contract, on_sqlite};

/// Hats called `a-0`, `a-1` and so on.
fn hats(numbers: impl Iterator<Item = usize>) -> String {
    numbers.fold(String::new(), |mut lines, n| {
        writeln!(lines, "{{\"id\":\"a-{n}\",\"type\":\"hat\",\"n\":{n}}}").unwrap();
        lines
    })
}

fn fixture(name: &str) -> Vec<u8> {
    fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)).unwrap()
}

impl Service {
    /// Sends a feed, and gives the import once it has ended.
    pub async fn feed(&self, query: &str, body: impl Into<reqwest::Body>) -> Value {
        let answer = self.post(&format!("/feeds/shop?{query}"), "application/octet-stream", body).await;
        let (status, path) = (answer.status(), answer.header("location").to_owned());
        let begun: Value = answer.json();
        assert_eq!(status, 202, "{begun:#}");
        assert_eq!(path, format!("/imports/{}", begun["id"]));
        self.end_of(&path).await
    }

    async fn end_of(&self, path: &str) -> Value {
        until!(!["waiting", "running"].contains(&self.json(path).await["state"].as_str().unwrap()));
        self.json(path).await
    }
}

/// The numbers of a result.
fn counts(import: &Value) -> [u64; 5] {
    ["added", "changed", "unchanged", "retired", "bad"].map(|name| import["result"][name].as_u64().unwrap())
}

#[apply(contract)]
async fn a_feed_is_replaced_merged_and_mirrored(service: Service) {
    let import = service.feed("", "id,type,colour\na,hat,red\nb,coat,blue\n").await;
    assert_eq!((&import["state"], counts(&import)), (&json!("done"), [2, 0, 0, 0, 0]), "{import:#}");
    assert_eq!(service.json("/articles/a").await["colour"], "red");
    let total = import["progress"]["total"].as_u64().unwrap();
    assert_eq!((&import["progress"]["read"], total), (&json!(total), 37), "{import:#}");
    let merged = service.feed("mode=merge", "id,type,colour\na,,green\nc,boot,\n").await;
    assert_eq!(counts(&merged), [1, 1, 0, 0, 0], "{merged:#}");
    assert_eq!(service.json("/articles/a").await, json!({"id": "a", "type": "hat", "colour": "green"}));
    let lacking = "{\"id\":\"a\",\"type\":\"hat\"}\n";
    let refused = service.feed("mode=mirror", lacking).await;
    let failure = refused["result"]["failure"].as_str().unwrap();
    assert_eq!(refused["state"], "failed");
    assert!(failure.contains("lacks 2 of the catalogue's 3 articles (67 %)"), "{failure}");
    assert!(failure.ends_with("send mirror_limit=67"), "{failure}");
    service.get("/articles/b").is(200).await;
    let mirrored = service.feed("mode=mirror&mirror_limit=67", lacking).await;
    assert_eq!(counts(&mirrored), [0, 1, 0, 2, 0], "{mirrored:#}");
    service.get("/articles/b").is(404).await;
    let list = service.json("/imports").await;
    let ids: Vec<&Value> = list["imports"].as_array().unwrap().iter().map(|import| &import["id"]).collect();
    assert_eq!(ids, [&mirrored["id"], &refused["id"], &merged["id"], &import["id"]]);
    let log = service.log(10).await;
    let actions: Vec<&str> = log.iter().map(|entry| entry.action.as_str()).collect();
    assert_eq!(actions, ["articles.bulk"; 3], "each import that stored something");
}

#[apply(on_sqlite)]
async fn every_format_is_recognised_by_its_contents(service: Service) {
    use std::io::Write as _;
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(hats(0..3).as_bytes()).unwrap();
    let mut found = Vec::new();
    for (body, query) in [
        (hats(0..2).into_bytes(), ""),
        (gzip.finish().unwrap(), ""),
        (b"\xef\xbb\xbfid;type\nx;hat\n".to_vec(), ""),
        (b"Nr\tArt\nx\that\n".to_vec(), "&map=Nr=id&map=Art=type"),
        (b"id,type\nx,M\xfctze\n".to_vec(), "&encoding=windows-1252"),
        (fixture("articles-pyarrow.parquet"), ""),
        (fixture("merchant.xml"), "&skip_bad=true"),
        (fixture("merchant.tsv"), ""),
        (fixture("shopify.csv"), "&skip_bad=true"),
        (fixture("customers-pandas.parquet"), "&table=customers&skip_bad=true"),
    ] {
        let import = service.feed(&format!("dry_run=true{query}"), body).await;
        assert_eq!(import["state"], "done", "{query}: {import:#}");
        found.push(counts(&import)[0]);
    }
    assert_eq!(found, [2, 3, 1, 1, 1, 3, 3, 2, 3, 3]);
    assert_eq!(service.store.articles().count().await, Ok(0));
}

#[apply(on_sqlite)]
async fn a_dry_run_counts_and_stores_nothing(service: Service) {
    service.feed("", hats(0..10)).await;
    let (before, version) = (service.json("/articles?n=500").await, service.get("/articles/a-1").await);
    let feed = hats(0..5) + "{\"id\":\"a-6\",\"type\":\"coat\"}\n{\"id\":\"new\",\"type\":\"coat\"}\n";
    let import = service.feed("mode=mirror&mirror_limit=50&dry_run=true", feed.clone()).await;
    assert_eq!((&import["state"], counts(&import)), (&json!("done"), [1, 1, 5, 4, 0]), "{import:#}");
    assert_eq!(service.json("/articles?n=500").await, before);
    assert_eq!(service.get("/articles/a-1").await.header("etag"), version.header("etag"));
    assert_eq!(service.log(10).await.len(), 1);
    let import = service.feed("mode=mirror&mirror_limit=50", feed).await;
    assert_eq!(counts(&import), [1, 1, 5, 4, 0], "as the dry run said");
}

#[apply(on_sqlite)]
async fn bad_rows_are_counted_by_kind(service: Service) {
    let rows = hats(0..3)
        + "{\"id\":\"x\"}\n{\"id\":\"y\",\"type\":\"hat\",\"price\":\"cheap\"}\n{\"id\":\"z\"}\nno json\n";
    let import = service.feed("", rows.clone()).await;
    assert_eq!(import["state"], "failed");
    let failure = import["result"]["failure"].as_str().unwrap();
    assert_eq!(failure, "4 of 7 rows are bad; fix them, or store the 3 good ones with skip_bad=true");
    let kinds = import["result"]["errors"].as_array().unwrap();
    let kinds: Vec<_> = kinds.iter().map(|kind| (&kind["rows"], &kind["first"][0]["line"])).collect();
    assert_eq!(kinds, [(&json!(2), &json!(4)), (&json!(1), &json!(5)), (&json!(1), &json!(7))], "{import:#}");
    let second = json!({"line": 6, "detail": "field \"type\" is missing"});
    assert_eq!(import["result"]["errors"][0]["first"][1], second);
    assert_eq!(service.store.articles().count().await, Ok(0));
    let import = service.feed("skip_bad=true", rows).await;
    assert_eq!((&import["state"], counts(&import)), (&json!("done"), [3, 0, 0, 0, 4]), "{import:#}");
    // What an import says about customers has none of their data.
    let import = service.feed("table=customers", "id,age\nErna,28\nErna,29\n").await;
    let said = import["result"].to_string();
    assert!(!said.contains("Erna") && said.contains("is already in line"), "{said}");
}

#[apply(on_sqlite)]
async fn what_cannot_be_imported_is_refused_at_once(service: Service) {
    for (query, body, said) in [
        ("", "", "the feed is empty"),
        ("", "nr,art\n1,hat\n", "articles need the columns \"id\" and \"type\""),
        ("", "nr,kategorie\n1,hat\n", "map=articles.nr=id map=articles.kategorie=type"),
        ("map=x=y", "id,type\n1,hat\n", "map=x=y: no CSV or Parquet file has a column \"x\""),
        ("table=customers", "<rss/>", "which describes whole articles"),
        ("format=xlsx", "id,type\n", "expected jsonl, csv, parquet, google-xml, google-tsv, shopify-csv"),
        ("format=parquet", "id,type\n", "not a readable Parquet file"),
        ("delimiter=x", "id,type\n", "expected \",\""),
        ("encoding=x", "id,type\n", "of the Encoding Standard"),
        ("map=x", "id,type\n", "expected the name in the file"),
        ("mode=mirror&table=customers", "id\n", "mirror is for articles"),
        ("mode=merge&table=outfits", "id\n", "merge is not for outfits"),
        ("mode=mirror&mirror_limit=101", "id\n", "expected 0 to 100 percent"),
        ("mirror_limit=1", "id\n", "only mode=mirror has a limit"),
        ("mode=all", "id\n", "unknown variant `all`"),
        ("table=people", "id\n", "unknown variant `people`"),
        ("dryrun=true", "id\n", "unknown field `dryrun`"),
    ] {
        let answer = service.post(&format!("/feeds/shop?{query}"), "text/csv", body).await;
        let (status, problem) = (answer.status(), answer.text());
        assert_eq!(status, 422, "{query}: {problem}");
        assert!(problem.replace("\\\"", "\"").contains(said), "{query}: {problem}");
    }
    for (path, status) in [("/feeds/Shop", 422), ("/feeds/-a", 422), ("/feeds/a.b", 422)] {
        assert_eq!(service.post(path, "text/csv", "id,type\na,hat\n").await.status(), status, "{path}");
    }
    service.post("/feeds/shop", "multipart/form-data; boundary=x", "--x--").is(415).await;
    assert_eq!(service.json("/imports").await, json!({"imports": []}));
    for path in ["/imports/1", "/imports/x"] {
        let expected = if path.ends_with('1') { 404 } else { 422 };
        assert_eq!(service.get(path).await.status(), expected);
        assert_eq!(service.delete(path).await.status(), expected);
    }
}

/// While another import runs, a job waits, and can be cancelled; ended ones cannot.
#[apply(contract)]
async fn imports_wait_for_each_other(service: Service) {
    let mut other = service.store.import(service.state.clock.now().into()).await.unwrap();
    let mut paths = Vec::new();
    for n in 0..3 {
        let answer = service.post("/feeds/shop", "text/csv", format!("id,type,n\na,hat,{n}\n")).is(202).await;
        paths.push(answer.header("location").to_owned());
    }
    // Within a moment the first would have begun.
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    for path in &paths {
        let import = service.json(path).await;
        assert_eq!(
            (&import["state"], &import["started_at"]),
            (&json!("waiting"), &Value::Null),
            "{import:#}"
        );
    }
    service.delete(&paths[1]).is(202).await;
    assert_eq!(service.end_of(&paths[1]).await["state"], "cancelled");
    service.delete(&paths[1]).is(409).await;
    other.leave_out("articles", 0);
    other.commit().await.unwrap();
    for path in [&paths[0], &paths[2]] {
        let import = service.end_of(path).await;
        assert_eq!(import["state"], "done", "{import:#}");
    }
    assert_eq!(service.json("/articles/a").await["n"], 2, "first come, first served");
}

#[apply(contract)]
async fn the_last_thirty_of_a_table_are_kept(service: Service) {
    let customers = service.feed("table=customers", "id\nc\n").await;
    let mut ids = Vec::new();
    for _ in 0..32 {
        ids.push(service.feed("dry_run=true", "id,type\na,hat\n").await["id"].clone());
    }
    ids.reverse();
    ids.truncate(30);
    ids.push(customers["id"].clone());
    let list = service.json("/imports").await;
    let kept: Vec<&Value> = list["imports"].as_array().unwrap().iter().map(|import| &import["id"]).collect();
    assert_eq!(kept, ids.iter().collect::<Vec<_>>());
    assert_eq!(list["imports"][0]["result"].get("errors"), None, "a list has no rows");
}

/// What a process that was killed left: the running one is found at the next start, the waiting one when it is silent.
#[apply(contract)]
async fn a_killed_import_is_interrupted(service: Service) {
    use atelier::imports::{ImportState, Progress};
    use atelier_core::domain::Timestamp;
    let imports = service.store.imports();
    let now: Timestamp = service.state.clock.now().into();
    let add = async |now| imports.add("shop", "articles", &json!({}), 10, now).await.unwrap();
    let (running, waiting) = (add(now).await, add(now).await);
    let gauge = Progress { read: 3, total: 10 };
    assert_eq!(imports.report(running, ImportState::Running, gauge, now).await, Ok(false));
    service.store.clean_up_imports().await.unwrap();
    let import = service.json(&format!("/imports/{}", running.0)).await;
    assert_eq!((&import["state"], &import["progress"]["read"]), (&json!("interrupted"), &json!(3)));
    // Killed after its rows were stored.
    let stored = add(now).await;
    let mut import = service.store.import(now).await.unwrap();
    assert_eq!(imports.report(stored, ImportState::Running, gauge, now).await, Ok(false));
    let names =
        ["added", "changed", "unchanged", "retired", "deleted", "absent", "left_out", "bad", "other_bad"];
    import.note_result(
        stored,
        &names.iter().map(|name| ((*name).to_owned(), serde_json::Value::from(0))).collect(),
    );
    import.commit().await.unwrap();
    service.store.clean_up_imports().await.unwrap();
    assert_eq!(service.json(&format!("/imports/{}", stored.0)).await["state"], "done");
    let later = now + std::time::Duration::from_secs(21);
    imports
        .report(waiting, ImportState::Waiting, gauge, now + std::time::Duration::from_secs(2))
        .await
        .unwrap();
    imports.interrupt_silent(later).await.unwrap();
    assert_eq!(service.json(&format!("/imports/{}", waiting.0)).await["state"], "waiting");
    imports.interrupt_silent(later + std::time::Duration::from_secs(2)).await.unwrap();
    assert_eq!(service.json(&format!("/imports/{}", waiting.0)).await["state"], "interrupted");
}

/// The end of the service interrupts what waits, and refuses what comes.
#[apply(on_sqlite)]
async fn the_end_of_the_service_interrupts_imports(service: Service) {
    let other = service.store.import(service.state.clock.now().into()).await.unwrap();
    let answer = service.post("/feeds/shop", "text/csv", "id,type\na,hat\n").await;
    let path = answer.header("location").to_owned();
    service.state.jobs().stop().await;
    let import = service.json(&path).await;
    assert_eq!(import["state"], "interrupted", "{import:#}");
    service.post("/feeds/shop", "text/csv", "id,type\na,hat\n").is(503).await;
    drop(other);
}

#[apply(on_sqlite)]
async fn people_see_what_a_feed_did(service: Service) {
    let analyst = service.signed_in(Role::Analyst).await;
    assert!(analyst.page("/operations/imports").await.contains("<strong>No imports</strong>"));
    let import = service.feed("", "id,type,price\n,hat,1\n<b>,hat,cheap\ny,hat,1\n").await;
    let list = analyst.page("/operations/imports").await;
    let path = format!("/operations/imports/{}", import["id"]);
    assert!(list.contains(&format!("<a href=\"{path}\">shop</a>")) && list.contains("2 bad"), "{list}");
    let html = analyst.page(&path).await;
    assert!(
        html.contains("2 of 3 rows are bad") && html.contains("line 2: field &#34;id&#34; is missing"),
        "{html}"
    );
    assert!(!html.contains("<b>"), "{html}");
    analyst.get("/operations/imports/99").is(404).await;
    let stylist = service.signed_in(Role::Stylist).await;
    stylist.get("/operations/imports").is(403).await;
}

#[apply(on_sqlite)]
async fn a_feed_needs_a_key_for_the_catalogue(Guarded(service): Guarded) {
    service.post("/feeds/shop", "text/csv", "id,type\na,hat\n").is(401).await;
    service.get("/imports").is(401).await;
}

/// In a mirror, a bad row keeps its article, or that of its variant. Without an id that can be read it keeps all.
#[apply(on_sqlite)]
async fn bad_rows_of_a_mirror_keep_their_articles(service: Service) {
    const XML: &str = "<rss xmlns:g=\"http://base.google.com/ns/1.0\"><channel>";
    let xml = |items: &str| format!("{XML}{items}</channel></rss>");
    let item = |id: &str, rest: &str| {
        format!("<item><g:id>{id}</g:id><g:product_type>Hats</g:product_type>{rest}</item>")
    };
    let sku = |id: &str, rest: &str| item(id, &format!("<g:item_group_id>kept</g:item_group_id>{rest}"));
    let shopify = "Handle,Title,Type,Option1 Name,Option1 Value,Variant SKU,Variant Price\n";
    let bad_price = "<g:price>cheap</g:price>";
    for (name, first, second, keeps) in [
        ("jsonl", hats(0..1) + "{\"id\":\"kept\",\"type\":\"hat\"}\n{\"id\":\"gone\",\"type\":\"hat\"}\n",
            hats(0..1) + "{\"id\":\"kept\",\"type\":7}\n", true),
        ("price", "id,type,price\na-0,hat,1\nkept,hat,1\ngone,hat,1\n".into(), "id,type,price\na-0,hat,1\nkept,hat,cheap\n".into(), true),
        ("cells", "id,type\na-0,hat\nkept,hat\ngone,hat\n".into(), "id,type\na-0,hat\nkept,hat,7,8\n".into(), true),
        ("shifted", "id,type\na-0,hat\nkept,hat\ngone,hat\n".into(), "type,id\nhat,a-0\nhat,new,kept\n".into(), false),
        ("no id", "id,type\na-0,hat\nkept,hat\ngone,hat\n".into(), "id,type\na-0,hat\n,hat\n".into(), false),
        ("broken", hats(0..1) + "{\"id\":\"kept\",\"type\":\"hat\"}\n{\"id\":\"gone\",\"type\":\"hat\"}\n",
            hats(0..1) + "{\"id\":\"kept\",\n", false),
        ("quotation mark", "id,type,price\na-0,hat,1\nkept,hat,1\ngone,hat,1\n".into(),
            "id,type,price\na-0,hat,1\nnew,\"hat,1\nkept,hat,1\nother,ha\"t,1\n".into(), true),
        ("space", hats(0..1) + "{\"id\":\"kept\",\"type\":\"hat\"}\n{\"id\":\"gone\",\"type\":\"hat\"}\n",
            hats(0..1) + "{\"id\":\" kept \",\"type\":\"hat\"}\n", false),
        ("tsv", "id\ttitle\tproduct_type\tprice\na-0\tA\tHats\t1 EUR\nkept\tB\tHats\t1 EUR\ngone\tC\tHats\t1 EUR\n".into(),
            "id\ttitle\tproduct_type\tprice\na-0\tA\tHats\t1 EUR\nkept\tB\tHats\tcheap\n".into(), true),
        ("xml", xml(&[item("a-0", ""), item("kept", ""), item("gone", "")].concat()),
            xml(&[item("a-0", ""), item("kept", bad_price)].concat()), true),
        ("entity", xml(&[item("a-0", ""), item("kept", ""), item("gone", "")].concat()),
            xml(&[item("a-0", ""), item("kept", "<g:title>a&nbsp;b</g:title>")].concat()), true),
        ("entity in the id", xml(&[item("a-0", ""), item("kept", ""), item("gone", "")].concat()),
            xml(&[item("a-0", ""), item("kept&nbsp;", "")].concat()), false),
        ("variant", xml(&[item("a-0", ""), sku("k-1", ""), sku("k-2", ""), item("gone", "")].concat()),
            xml(&[item("a-0", ""), sku("k-1", bad_price), item("k-2", bad_price)].concat()), true),
        ("shopify", format!("{shopify}a-0,A,Hat,Size,M,s-0,1\nkept,B,Hat,Size,M,s-1,1\ngone,C,Hat,Size,M,s-2,1\n"),
            format!("{shopify}a-0,A,Hat,Size,M,s-0,1\nkept,B,Hat,Size,M,s-1,cheap\n"), true),
    ] {
        service.feed("mode=mirror&mirror_limit=100", first).await;
        let import = service.feed("mode=mirror&mirror_limit=100&skip_bad=true", second).await;
        assert_eq!(import["state"], "done", "{name}: {import:#}");
        let retired = &import["result"]["retired"];
        assert_eq!(retired, &json!(u8::from(keeps)), "{name}: {import:#}");
        assert_eq!(service.get("/articles/kept").await.status(), 200, "{name}");
        assert_eq!(service.get("/articles/gone").await.status(), if keeps { 404 } else { 200 }, "{name}");
        let says_so = import["result"]["notes"].to_string().contains("no article was retired");
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
    service.feed("mode=mirror&mirror_limit=100", feed("20 EUR", "S")).await;
    let before = service.json("/articles/g").await;
    let import = service.feed("mode=mirror&mirror_limit=100&skip_bad=true", feed("cheap", "XS")).await;
    assert_eq!((counts(&import)[1], counts(&import)[4]), (1, 1), "{import:#}");
    let after = service.json("/articles/g").await;
    assert_eq!(after["variants"][0]["size"], "XS", "{after:#}");
    assert_eq!(after["variants"][1], before["variants"][1], "{after:#}");
}

/// As DELETE of each, in one transaction: of customers nothing stays.
#[apply(contract)]
async fn many_are_deleted_at_once(service: Service) {
    service.feed("", hats(0..20)).await;
    service.feed("table=customers", "id,age\nErna,28\nOtto,30\nUdo,31\n").await;
    let outfit = json!({"customer": "Erna", "articles": ["a-1", "a-2"]});
    assert_eq!(service.ask("/outfits", &outfit).await.0, 201);
    let delete = async |path: &str, lines: &str| {
        let answer =
            service.post(&format!("{path}/bulk?mode=delete"), "application/x-ndjson", lines.to_owned()).await;
        (answer.status(), answer.json())
    };
    for lines in [
        "{\"id\":\"a-1\"}\n{\"nr\":1}\n",
        "{\"id\":\"a-1\"}\n{\"id\":\"a-1\"}\n",
        "{\"id\":\"a-1\",\"type\":\"hat\"}\n",
    ] {
        let (status, problem) = delete("/articles", lines).await;
        assert_eq!(status, 422, "{problem:#}");
    }
    assert_eq!(service.store.articles().count().await, Ok(20), "all or nothing");
    let (status, done) = delete("/articles", "{\"id\":\"a-1\"}\n{\"id\":\"a-2\"}\n{\"id\":\"none\"}\n").await;
    assert_eq!(
        (status, &done["deleted"], &done["absent"], &done["changed"]),
        (200, &json!(2), &json!(1), &json!(0)),
        "{done:#}"
    );
    service.get("/articles/a-1").is(404).await;
    let (status, done) =
        delete("/customers", "{\"id\":\"Erna\"}\n{\"id\":\"Otto\"}\n{\"id\":\"none\"}\n").await;
    assert_eq!((status, &done["deleted"], &done["absent"]), (200, &json!(2), &json!(1)), "{done:#}");
    service.get("/customers/Erna").is(404).await;
    service.get("/customers/Udo").is(200).await;
    let log = service.log(100).await;
    assert_eq!((log[0].action.as_str(), &log[0].details["erased"]), ("customers.bulk", &json!(2)));
    assert!(!format!("{log:?}").contains("Erna"), "{log:?}");
    service.get("/outfits/1").is(404).await;
    // A feed does the same.
    let import = service.feed("mode=delete&dry_run=true", "id\na-3\nnone\n").await;
    assert_eq!(
        (&import["result"]["deleted"], &import["result"]["absent"]),
        (&json!(1), &json!(1)),
        "{import:#}"
    );
    service.get("/articles/a-3").is(200).await;
    service.feed("mode=delete&table=customers", "id\nUdo\n").await;
    service.get("/customers/Udo").is(404).await;
}
