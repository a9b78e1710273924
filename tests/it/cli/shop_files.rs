//! Files as a German shop has them: windows-1252 or UTF-16, semicolons or tabs, its own headers, decimal commas.

use std::{fs, path::PathBuf};

use atelier_core::domain::{ArticleId, CustomerId, FeatureValue};
use serde_json::{Value, json};

use crate::{
    cli::{atelier, done, path, refused, run, stderr},
    harness::{Html, TestDatabase, apply, on_sqlite},
};

fn german(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/german").join(name)
}

/// The flags that a refusal proposes, as a shell splits them.
fn proposed(said: &str) -> Vec<String> {
    let flags = said.lines().find_map(|line| line.strip_prefix("if these columns are what they seem, add: "));
    let script = format!("printf '%s\\n' {}", flags.unwrap_or_else(|| panic!("no flags: {said}")));
    let output = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[apply(on_sqlite)]
async fn a_german_shop_pastes_the_flags_that_a_refusal_proposes(db: TestDatabase) {
    for articles in ["artikel.csv", "artikel.txt"] {
        let [articles, customers, outfits] = [articles, "kunden.csv", "outfits.csv"].map(german);
        let files =
            ["--articles", path(&articles), "--customers", path(&customers), "--outfits", path(&outfits)];
        let import = |flags: &[&str]| atelier(&db, &[&["import"], &files[..], flags].concat());
        let said = refused(import(&[])).await;
        said.has([
            "kunden.csv: the header is not UTF-8 text, and customers need a column \"id\"",
            "outfits need the columns \"customer\" and \"articles\", found",
        ]);
        let flags = proposed(&said);
        let expected = "--encoding windows-1252 --map articles.Art.-Nr.=id";
        assert!(articles.ends_with("artikel.txt") || flags.join(" ").starts_with(expected), "{flags:?}");
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let own = ["--map", "customers.name=", "--map", "customers.e-mail=", "--map", "Bestellnummer="];
        let said = done(import(&[&flags[..], &own].concat())).await;
        let counts =
            if articles.ends_with("artikel.csv") { "8 new" } else { "0 new, 0 changed, 8 unchanged" };
        said.has([&format!("articles: {counts}"), "feature \"gender\" has no value \"weiblich\""]);
        assert!(!said.contains("the schema has no feature"), "{said}");
    }
    let store = db.open().await;
    assert_eq!((store.customers().count().await, store.outfits().count().await), (Ok(8), Ok(8)));
    let article = store.articles().get(&ArticleId::new("001001").unwrap()).await.unwrap().unwrap();
    let attribute = |name: &str| article.attribute(name).cloned().unwrap_or_default();
    assert_eq!(article.kind(), "Jacke");
    assert_eq!(attribute("name"), "Jacke „Größe1“;\nzweizeilig, mit \"Zitat\"");
    assert_eq!((attribute("price"), attribute("brand")), (json!(1299), json!("Söhne & Töchter")));
    assert_eq!((attribute("Modell"), attribute("stock")), (json!("00123"), json!(1)));
    for (id, model) in [("001000", "1E5"), ("001003", "12")] {
        let article = store.articles().get(&ArticleId::new(id).unwrap()).await.unwrap().unwrap();
        assert_eq!(article.attribute("Modell"), Some(&Value::from(model)));
    }
    let customer = store.customers().get(&CustomerId::new("77").unwrap()).await.unwrap().unwrap();
    let features: Vec<(&str, &FeatureValue)> = customer.features.iter().collect();
    let number = FeatureValue::Number;
    let text = |text: &str| FeatureValue::Text(text.into());
    let expected = [
        ("age", &number(20.5)),
        ("country", &text("Germany")),
        ("gender", &text("weiblich")),
        ("height", &number(160.5)),
        ("weight", &number(1070.5)),
    ];
    assert_eq!(features, expected);
}

#[apply(on_sqlite)]
async fn a_flag_that_does_not_fit_says_which_would(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("articles.csv");
    let import = async |flags: &[&str]| {
        stderr(&run(atelier(&db, &[&["import", "--articles", path(&file)], flags].concat())).await)
    };
    fs::write(&file, "id;type;Preis\na;coat;12,5\n").unwrap();
    let said = import(&["--delimiter", ","]).await;
    assert!(said.contains("found \"id;type;Preis\""), "{said}");
    assert_eq!(proposed(&said), ["--delimiter", ";"]);
    for (flags, said) in [
        (["--map", "Farbe=colour"], "--map Farbe=colour: no CSV or Parquet file has a column \"Farbe\""),
        (["--delimiter", "semicolon"], "expected \",\", \";\", \"|\" or tab, found \"semicolon\""),
        (["--encoding", "klingon"], "expected utf-8, windows-1252, utf-16le or another name"),
    ] {
        import(&flags).await.has([said]);
    }
    // What fits is imported, with a note.
    let said = import(&[]).await;
    said.has(["\"Preis\" may be the price; if so, add: --map articles.Preis=price\n", "1 new"]);
    fs::write(&file, b"id,type,name\na,coat,M\nb,coat,\"M\xfctze\"\n").unwrap();
    let said = import(&[]).await;
    let reason = "line 3: cell 3 is not UTF-8 text; if the file is from Windows, read it with --encoding windows-1252\n";
    assert!(said.contains(reason), "{said}");
    assert!(import(&["--encoding", "cp1252", "--force"]).await.contains("1 new, 1 changed"));
    let text: Vec<u8> = "type\tWert\tid\ncoat\t1E5\ta\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    fs::write(&file, text).unwrap();
    assert_eq!(proposed(&import(&[]).await), ["--encoding", "utf-16le"]);
    let said =
        import(&["--encoding", "utf-16le", "--map", "wert=articles", "--map", "articles.Wert=sku"]).await;
    let forced = ["--encoding", "utf-16le", "--force", "--map", "articles.Wert=sku"];
    assert!(said.contains("--map wert=articles: no CSV"), "{said}");
    assert!(import(&forced).await.contains("1 changed"));
}
