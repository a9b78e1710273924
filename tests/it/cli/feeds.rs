//! Files that change a catalogue in part, mirror a feed, or come from other systems.

use std::{fs, path::Path};

use atelier::platform::db::Store;
use atelier_core::domain::ArticleId;
use serde_json::{Value, json};

use crate::{
    cli::{atelier, done, ended, file, path, refused},
    harness::{Html, TestDatabase, apply, contract, on_sqlite},
    imports::feeds::hats,
};

async fn stored(store: &Store, id: &str) -> Value {
    let article = store.articles().get(&ArticleId::new(id).unwrap()).await.unwrap();
    serde_json::to_value(article).unwrap()
}

/// The rest of it is asked of streams of patches.
#[apply(on_sqlite)]
async fn a_merged_file_keeps_the_rest(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let whole = file(&folder, "whole.csv", "id,type,colour,in_stock\na,coat,red,true\n");
    done(atelier(&db, &["import", "--articles", path(&whole)])).await;
    // An empty cell keeps what is stored.
    let stock = file(&folder, "stock.csv", "id,type,colour,in_stock\na,,,false\nnew,boot,black,true\n");
    let said = done(atelier(&db, &["import", "--merge", "--articles", path(&stock)])).await;
    said.has(["  articles: 1 new, 1 changed, 0 unchanged\n"]);
    let changed = json!({"id": "a", "type": "coat", "colour": "red", "in_stock": false});
    assert_eq!(stored(&db.open().await, "a").await, changed);
}

/// What a bad row keeps is asked of feeds.
#[apply(on_sqlite)]
async fn a_mirrored_file_retires_what_it_lacks_up_to_a_limit(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let articles = file(&folder, "articles.jsonl", hats(0..1000));
    let mirror = |flags: &[&str]| {
        atelier(&db, &[&["import", "--mirror", "--articles", path(&articles)], flags].concat())
    };
    done(mirror(&[])).await.has(["  articles: 1,000 new, 0 changed, 0 unchanged, 0 retired\n"]);
    // An outfit cannot name an article that leaves with the same import.
    fs::write(&articles, hats(2..1002)).unwrap();
    file(&folder, "customers.csv", "id\nc\n");
    let outfit = "{\"customer\":\"c\",\"articles\":[\"a-0\",\"a-2\",\"a-3\",\"a-4\"]}\n";
    file(&folder, "outfits.jsonl", outfit);
    let said = refused(atelier(&db, &["import", "--mirror", path(folder.path())])).await;
    said.has(["article \"a-0\" is not in the catalogue"]);
    let store = db.open().await;
    assert_eq!(store.articles().count().await, Ok(1000));
    done(mirror(&[])).await.has(["  articles: 2 new, 0 changed, 998 unchanged, 2 retired\n"]);
    assert_eq!(stored(&store, "a-1").await, Value::Null);
    fs::write(&articles, hats(302..1003)).unwrap();
    let said = refused(mirror(&[])).await;
    let reason = "nothing was imported: the file lacks 300 of the catalogue's 1,000 articles (30 %), more than the 20 % \
                  that may be retired at once. Check that it is complete; if it is, use --mirror-limit 30\n";
    assert!(said.ends_with(reason), "{said}");
    assert_eq!(store.articles().count().await, Ok(1000));
    let counts = "1 new, 0 changed, 700 unchanged, 300 retired";
    done(mirror(&["--mirror-limit", "30"])).await.has([counts]);
}

/// A shop forgets the maps of its headers, pastes those that the refusal names, and undoes an import.
#[apply(contract)]
async fn a_forgotten_map_takes_nothing_away(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let rows: Vec<String> = (0..400).map(|n| format!("a-{n};coat;{n},5;Marke {n}\n")).collect();
    let articles = file(&folder, "articles.csv", format!("id;type;Preis;Marke\n{}", rows.concat()));
    let import = |flags: &[&str]| {
        atelier(&db, &[&["import", "--mirror", "--articles", path(&articles)], flags].concat())
    };
    let maps = ["--map", "articles.Preis=price", "--map", "articles.Marke=brand"];
    let said = done(import(&maps)).await;
    said.has(["400 new", "; to undo it within a week: atelier import --undo 3\n"]);
    let said = refused(import(&[])).await;
    let lost = "nothing was imported: the file takes brand from 400 of the 400 articles that have it, price from 400 of the 400";
    said.has([lost, "add: --map articles.Marke=brand --map articles.Preis=price", "use --force"]);
    let store = db.open().await;
    assert_eq!(stored(&store, "a-7").await["price"], 7.5);
    done(import(&maps)).await.has(["0 new, 0 changed, 400 unchanged"]);
    // One article is enough, if a column may be what it loses.
    fs::write(&articles, "id;type;Preis;Marke\na-7;coat;9;M\n").unwrap();
    let one = ["import", "--articles", path(&articles)];
    refused(atelier(&db, &one)).await.has(["price from 1 of the 400 articles"]);
    done(atelier(&db, &[&one[..], &["--force"]].concat())).await.has(["1 changed", "--undo 11\n"]);
    assert_eq!(stored(&store, "a-7").await["price"], Value::Null);
    done(atelier(&db, &["import", "--undo", "11"])).await.has(["1 rows restored, 0 removed"]);
    assert_eq!(stored(&store, "a-7").await["price"], 7.5);
    refused(atelier(&db, &["import", "--undo", "11"])).await.has(["import 11 cannot be undone"]);
    // The setting is the limit, and what few articles have may go.
    let rare = |n: usize| if n < 19 { ",\"campaign\":\"spring\"" } else { "" };
    let write = |coloured: std::ops::Range<usize>, rare: fn(usize) -> &'static str| {
        let colour = |n: usize| if coloured.contains(&n) { ",\"colour\":\"red\"" } else { "" };
        let rows =
            (0..400).map(|n| format!("{{\"id\":\"a-{n}\",\"type\":\"coat\"{}{}}}\n", colour(n), rare(n)));
        let articles = folder.path().join("articles.jsonl");
        fs::write(&articles, rows.collect::<Vec<_>>().concat()).unwrap();
        articles
    };
    let rows = path(&write(0..400, rare)).to_owned();
    done(atelier(&db, &["import", "--force", "--articles", &rows])).await;
    write(0..300, |_| "");
    let lost = "the file takes colour from 100 of the 400 articles that have it. At most 20 %";
    refused(atelier(&db, &["import", "--articles", &rows])).await.has([lost, "--map FROM=TO"]);
    let set = ["--set", "feeds.mirror_limit=25", "import", "--articles", &rows];
    done(atelier(&db, &set)).await.has(["119 changed"]);
    let over = ["--set", "feeds.mirror_limit=101", "import", "--articles", &rows];
    refused(atelier(&db, &over)).await.has(["feeds.mirror_limit", "expected 0 to 100 percent"]);
}

#[apply(on_sqlite)]
async fn feeds_are_imported(db: TestDatabase) {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let [xml, tsv, shopify] = ["merchant.xml", "merchant.tsv", "shopify.csv"].map(|name| fixtures.join(name));
    let variant = "merchant.xml, line 7: the variant of this article in line 41 has another material";
    let left_out = "left out, because they are not for sale, not wearable or the parents of variants: 1";
    for (arguments, said) in [
        (&["--articles", path(&xml)][..], &[variant, "  articles: 3 new, 0 changed, 0 unchanged\n"][..]),
        (&["--articles", path(&tsv)], &["  articles: 2 new"]),
        (&["--format", "shopify-csv", "--articles", path(&shopify)], &["  articles: 3 new", left_out]),
    ] {
        done(atelier(&db, &[&["import"], arguments].concat())).await.has(said);
    }
    let parka = stored(&db.open().await, "PK-1-navy-white").await;
    assert_eq!((&parka["stock"], &parka["sizes"]), (&json!({"S": 1, "M": 0}), &json!(["S", "M"])));
    for (arguments, code, said) in [
        (
            &["--merge", "--articles", path(&xml)][..],
            1,
            "is a feed (google-xml), which describes whole articles",
        ),
        (&["--customers", path(&xml)], 1, "is a feed"),
        (
            &["--format", "xml", "--articles", path(&xml)],
            2,
            "expected jsonl, csv, parquet, google-xml, google-tsv or shopify-csv",
        ),
        (&["--merge", "--mirror-limit", "30", "--articles", path(&xml)], 2, "--mirror-limit"),
        (&["--undo", "7", "--articles", path(&xml)], 2, "--undo"),
        (&["--undo", "7", "--orders", path(&xml)], 2, "--undo"),
        (&["--undo", "99"], 1, "import 99 cannot be undone: it changed nothing, ended more than a week ago"),
    ] {
        ended(atelier(&db, &[&["import"], arguments].concat()), code).await.has([said]);
    }
}
