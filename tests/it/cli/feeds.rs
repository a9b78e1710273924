//! Files that change a catalogue in part, mirror a feed, or come from other systems.

use std::{
    fmt::Write as _,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::Stdio,
};

use atelier::platform::db::Store;
use atelier_core::domain::{ArticleId, CustomerId};
use serde_json::{Value, json};

use super::{atelier, path, run, stderr};
use crate::{
    harness::{TestDatabase, apply, contract, on_sqlite},
    web::Demo,
};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

/// Hats called `a-0`, `a-1` and so on.
fn hats(numbers: impl Iterator<Item = usize>) -> String {
    numbers.fold(String::new(), |mut lines, n| {
        writeln!(lines, "{{\"id\":\"a-{n}\",\"type\":\"hat\",\"n\":{n}}}").unwrap();
        lines
    })
}

async fn import(db: &TestDatabase, arguments: &[&str]) -> (bool, String) {
    let output = run(atelier(db, &[&["import"], arguments].concat())).await;
    (output.status.success(), stderr(&output))
}

async fn stored(store: &Store, id: &str) -> Value {
    let article = store.articles().get(&ArticleId::new(id).unwrap()).await.unwrap();
    serde_json::to_value(article).unwrap()
}

#[apply(on_sqlite)]
async fn a_merged_file_keeps_the_rest(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path
    };
    let whole = file("whole.csv", "id,type,colour,in_stock\na,coat,red,true\nb,hat,blue,true\n");
    let people = file("people.csv", "id,age,fit\nc,28,slim\n");
    let (done, said) = import(&db, &["--articles", path(&whole), "--customers", path(&people)]).await;
    assert!(done, "{said}");
    // An empty cell keeps what is stored.
    let stock = file("stock.csv", "id,type,colour,in_stock\na,,,false\nnew,boot,black,true\n");
    let ages = file("ages.jsonl", "{\"id\":\"c\",\"features\":{\"age\":29,\"fit\":null,\"height\":170}}\n");
    let (done, said) =
        import(&db, &["--merge", "--articles", path(&stock), "--customers", path(&ages)]).await;
    assert!(done, "{said}");
    assert!(said.contains("  articles: 1 new, 1 changed, 0 unchanged\n"), "{said}");
    let store = db.open().await;
    assert_eq!(
        stored(&store, "a").await,
        json!({"id": "a", "type": "coat", "colour": "red", "in_stock": false})
    );
    assert_eq!(stored(&store, "b").await["colour"], "blue");
    let customer = store.customers().get(&CustomerId::new("c").unwrap()).await.unwrap().unwrap();
    let features: Vec<&str> = customer.features.iter().map(|(name, _)| name).collect();
    assert_eq!(features, ["age", "height"]);
    let unknown = file("unknown.csv", "id,in_stock\nnowhere,true\nb,false\n");
    let (done, said) = import(&db, &["--merge", "--articles", path(&unknown)]).await;
    assert!(!done);
    let reason =
        "line 2: there is no article \"nowhere\" in the catalogue, and without a type it cannot be added";
    assert!(said.contains(reason) && said.contains("import the one good row with --skip-bad"), "{said}");
    assert_eq!(stored(&store, "b").await["in_stock"], true, "nothing was imported");
}

#[apply(on_sqlite)]
async fn a_mirrored_file_retires_what_it_lacks(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("articles.jsonl");
    fs::write(&file, hats(0..10)).unwrap();
    let (done, said) = import(&db, &["--mirror", "--articles", path(&file)]).await;
    assert!(done && said.contains("  articles: 10 new, 0 changed, 0 unchanged, 0 retired\n"), "{said}");
    fs::write(&file, hats(2..12)).unwrap();
    // An outfit cannot name an article that leaves with the same import.
    fs::write(folder.path().join("customers.csv"), "id\nc\n").unwrap();
    let outfits = folder.path().join("outfits.jsonl");
    fs::write(&outfits, "{\"customer\":\"c\",\"articles\":[\"a-0\",\"a-2\",\"a-3\",\"a-4\"]}\n").unwrap();
    let (done, said) = import(&db, &["--mirror", path(folder.path())]).await;
    assert!(!done && said.contains("article \"a-0\" is not in the catalogue"), "{said}");
    let store = db.open().await;
    assert_eq!(store.articles().count().await, Ok(10));
    fs::remove_file(outfits).unwrap();
    let revision = store.articles().revision().await.unwrap();
    let (done, said) = import(&db, &["--mirror", path(folder.path())]).await;
    assert!(done && said.contains("  articles: 2 new, 0 changed, 8 unchanged, 2 retired\n"), "{said}");
    assert_eq!(store.articles().revision().await, Ok(revision + 4), "two articles came, two left");
    assert_eq!(
        (stored(&store, "a-1").await, stored(&store, "a-11").await["n"].clone()),
        (Value::Null, json!(11))
    );
    let entries = store.audit().list(None, 9).await.unwrap();
    let entry = entries.iter().find(|entry| entry.action == "articles.bulk").unwrap();
    assert_eq!(Value::from(entry.details.clone()), json!({"added": 2, "changed": 0, "bad": 0, "retired": 2}));
}

#[apply(on_sqlite)]
async fn too_many_missing_articles_stop_a_mirror(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("articles.jsonl");
    fs::write(&file, hats(0..1000)).unwrap();
    assert!(import(&db, &["--articles", path(&file)]).await.0);
    fs::write(&file, hats(300..1001)).unwrap();
    let (done, said) = import(&db, &["--mirror", "--articles", path(&file)]).await;
    assert!(!done);
    let reason = "nothing was imported. The file lacks 300 of the catalogue's 1,000 articles (30 %), more than the 20 % \
                  that --mirror may retire at once. Check that the file is complete; if it is, use --mirror-limit 30\n";
    assert!(said.ends_with(reason), "{said}");
    let store = db.open().await;
    assert_eq!(store.articles().count().await, Ok(1000));
    let (done, said) = import(&db, &["--mirror", "--mirror-limit", "30", "--articles", path(&file)]).await;
    assert!(done && said.contains("1 new, 0 changed, 700 unchanged, 300 retired"), "{said}");
    assert_eq!(store.articles().count().await, Ok(701));
    fs::write(&file, "").unwrap();
    let (done, said) = import(&db, &["--mirror", "--mirror-limit", "99", "--articles", path(&file)]).await;
    assert!(!done && said.contains("lacks 701 of the catalogue's 701 articles (100 %)"), "{said}");
    let (done, said) = import(&db, &["--mirror-limit", "30", "--articles", path(&file)]).await;
    assert!(!done && said.contains("--mirror"), "{said}");
}

#[apply(on_sqlite)]
async fn bad_rows_keep_their_articles(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("articles.jsonl");
    fs::write(&file, hats(0..10)).unwrap();
    assert!(import(&db, &["--articles", path(&file)]).await.0);
    fs::write(&file, hats(2..10) + "{\"id\":\"a-1\"}\n{\"id\":\"new\",\"type\":\"hat\"}\n").unwrap();
    assert!(!import(&db, &["--mirror", "--articles", path(&file)]).await.0);
    let (done, said) = import(&db, &["--mirror", "--skip-bad", "--articles", path(&file)]).await;
    assert!(done && said.contains("1 new, 0 changed, 8 unchanged, 1 retired\n"), "{said}");
    let store = db.open().await;
    assert_eq!((stored(&store, "a-0").await, &stored(&store, "a-1").await["n"]), (Value::Null, &json!(1)));
    fs::write(&file, hats(2..10) + "{\"type\":\"hat\"}\n").unwrap();
    let (done, said) = import(&db, &["--mirror", "--skip-bad", "--articles", path(&file)]).await;
    assert!(done && said.contains("0 new, 0 changed, 8 unchanged\n"), "{said}");
    assert!(said.contains("no article was retired, because the id of a bad row cannot be read"), "{said}");
    assert_eq!(store.articles().count().await, Ok(10));
}

/// The articles are read, written and retired; then the import waits for the customers, which come through a pipe.
#[apply(on_sqlite)]
async fn a_killed_mirror_leaves_the_old_catalogue(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("articles.jsonl");
    fs::write(&file, hats(0..5000)).unwrap();
    assert!(import(&db, &["--articles", path(&file)]).await.0);
    let before = db.open().await.articles().revision().await.unwrap();
    fs::write(&file, hats(500..5500).replace("hat", "cap")).unwrap();
    let pipe = folder.path().join("customers.jsonl");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());

    let mut import =
        atelier(&db, &["import", "--mirror", "--articles", path(&file), "--customers", path(&pipe)]);
    let mut child = import.stderr(Stdio::null()).spawn().unwrap();
    tokio::task::spawn_blocking(move || {
        let mut writer = fs::OpenOptions::new().write(true).open(pipe).unwrap();
        // A pipe holds 64 KiB: when this returns, customers are read, so the articles are done.
        let customers: Vec<String> =
            (0..20_000).map(|n| format!("{{\"id\":\"c-{n}\",\"features\":{{\"age\":30}}}}\n")).collect();
        writer.write_all(customers.concat().as_bytes()).unwrap();
        assert_eq!(child.try_wait().unwrap(), None, "it waits for more");
        child.kill().unwrap();
        child.wait().unwrap();
    })
    .await
    .unwrap();

    let store = db.open().await;
    assert_eq!(store.articles().count().await, Ok(5000));
    assert_eq!(store.articles().revision().await, Ok(before));
    for n in [0, 499, 500, 4999] {
        assert_eq!(stored(&store, &format!("a-{n}")).await["type"], "hat");
    }
    assert_eq!((stored(&store, "a-5000").await, store.customers().count().await), (Value::Null, Ok(0)));
    fs::remove_file(folder.path().join("customers.jsonl")).unwrap();
    let again = run(atelier(&db, &["import", "--mirror", path(folder.path())])).await;
    assert!(
        stderr(&again).contains("500 new, 4,500 changed, 0 unchanged, 500 retired"),
        "{}",
        stderr(&again)
    );
}

#[apply(on_sqlite)]
async fn feeds_are_imported_and_exported(db: TestDatabase) {
    let (done, said) = import(&db, &["--articles", path(&fixture("merchant.xml"))]).await;
    assert!(done, "{said}");
    assert!(
        said.contains("merchant.xml, line 7: the variant of this article in line 41 has another material"),
        "{said}"
    );
    assert!(said.contains("  articles: 3 new, 0 changed, 0 unchanged\n"), "{said}");
    let (done, said) = import(&db, &["--articles", path(&fixture("merchant.tsv"))]).await;
    assert!(done && said.contains("  articles: 2 new"), "{said}");
    let (done, said) =
        import(&db, &["--format", "shopify-csv", "--articles", path(&fixture("shopify.csv"))]).await;
    assert!(done && said.contains("  articles: 3 new"), "{said}");
    assert!(
        said.contains("left out, because they are not for sale, not wearable or the parents of variants: 1"),
        "{said}"
    );
    let store = db.open().await;
    let parka = stored(&store, "PK-1-navy-white").await;
    assert_eq!((&parka["stock"], &parka["sizes"]), (&json!({"S": 1, "M": 0}), &json!(["S", "M"])));

    let (done, said) = import(&db, &["--merge", "--articles", path(&fixture("merchant.xml"))]).await;
    assert!(!done && said.contains("is a feed (google-xml), which describes whole articles"), "{said}");
    let (done, said) = import(&db, &["--customers", path(&fixture("merchant.xml"))]).await;
    assert!(!done && said.contains("is a feed"), "{said}");
    let (done, said) = import(&db, &["--format", "xml", "--articles", path(&fixture("merchant.xml"))]).await;
    assert!(
        !done && said.contains("expected jsonl, csv, parquet, google-xml, google-tsv, shopify-csv"),
        "{said}"
    );

    let folder = tempfile::tempdir().unwrap();
    for format in ["jsonl", "csv", "parquet"] {
        let out = folder.path().join(format);
        let exported = run(atelier(&db, &["export", "--format", format, path(&out)])).await;
        assert!(exported.status.success(), "{}", stderr(&exported));
        let (done, said) = import(&db, &["--articles", path(&out.join(format!("articles.{format}")))]).await;
        assert!(done && said.contains("  articles: 0 new, 0 changed, 8 unchanged\n"), "{said}");
    }
}

#[apply(on_sqlite)]
async fn a_feeds_articles_are_suggested_to_those_they_fit(Demo(service): Demo, db: TestDatabase) {
    let (done, said) = import(&db, &["--articles", path(&fixture("merchant.xml"))]).await;
    assert!(done, "{said}");
    let suggested = async |features: Value| {
        let body =
            json!({"features": features, "outfit": [null], "filters": {"types": {"0": ["Parkas"]}}, "k": 50});
        let (status, answer) = service.ask("/complete", &body).await;
        let suggestions = answer["blanks"][0]["suggestions"].as_array().filter(|_| status == 200);
        let is_of_feed = |one: &&Value| one["article"]["id"] == "PK-1-navy-white";
        suggestions.is_some_and(|suggestions| suggestions.iter().any(|one| is_of_feed(&one)))
    };
    service.releases.refresh().await.unwrap();
    assert!(suggested(json!({})).await);
    for (features, is_suggested) in [
        (json!({"gender": "female"}), true),
        (json!({"gender": "male"}), false),
        (json!({"gender": "diverse"}), true),
        (json!({"gender": "female", "top_size": "S"}), true),
        (json!({"gender": "female", "top_size": "M"}), false),
        (json!({"gender": "female", "top_size": "XL"}), false),
    ] {
        assert_eq!(suggested(features.clone()).await, is_suggested, "{features}");
    }
}

#[apply(on_sqlite)]
async fn an_empty_feed_retires_nothing(db: TestDatabase) {
    assert!(import(&db, &["--articles", path(&fixture("merchant.xml"))]).await.0);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("feed.xml");
    fs::write(&file, "<rss xmlns:g=\"http://base.google.com/ns/1.0\"><products/></rss>").unwrap();
    let (done, said) = import(&db, &["--mirror", "--mirror-limit", "100", "--articles", path(&file)]).await;
    let reason = "reading stopped at line 1: a Merchant feed has an <item> or <entry> for each variant, found <rss>, <products>";
    assert!(!done && said.contains(reason), "{said}");
    assert_eq!(db.open().await.articles().count().await, Ok(3));
}

/// 30,000 variants of 3,000 products in two colours and five sizes.
#[apply(contract)]
async fn a_large_feed_changes_nothing_the_second_time(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("feed.tsv");
    let mut feed =
        "id\titem_group_id\ttitle\tlink\tavailability\tprice\tcolor\tsize\tproduct_type\tbrand\n".to_owned();
    // Sizes come last, as a feed that is sorted by id has them: an article's variants are far apart.
    for size in ["XS", "S", "M", "L", "XL"] {
        for product in 0..3000 {
            for colour in ["Navy", "Red"] {
                let stock = if (product + size.len()) % 7 == 0 { "out of stock" } else { "in stock" };
                writeln!(
                    feed,
                    "{product}-{colour}-{size}\tp-{product}\tCoat {product}, {size}\thttps://shop.example/{product}\t{stock}\t{}.00 EUR\t{colour}\t{size}\tWomen > Coats\tBrand {}",
                    40 + product % 90,
                    product % 50
                )
                .unwrap();
            }
        }
    }
    fs::write(&file, feed).unwrap();
    for expected in
        ["6,000 new, 0 changed, 0 unchanged, 0 retired", "0 new, 0 changed, 6,000 unchanged, 0 retired"]
    {
        let began = std::time::Instant::now();
        let (done, said) = import(&db, &["--mirror", "--articles", path(&file)]).await;
        println!("{expected}: {:.2} s", began.elapsed().as_secs_f64());
        assert!(done && said.contains(expected), "{said}");
    }
}
