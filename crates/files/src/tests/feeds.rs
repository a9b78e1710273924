//! Product feeds of other systems.

use std::{
    fmt::Write as _,
    io::Write,
    time::{Duration, Instant},
};

use atelier_core::domain::{ArticlePatch, Customer, Timestamp};
use flate2::{Compression, write::GzEncoder};
use serde_json::{Value, json};

use super::*;

/// 2026-11-23, within the sale of the fixture.
const NOW: Timestamp = Timestamp::from_millis(1_795_460_000_000);

fn read_any<T: Table>(
    path: &Path,
    format: Option<InputFormat>,
    now: Timestamp,
    dialect: &Dialect,
) -> Result<Rows<T>, FileError> {
    read_open(crate::open(path)?, path, &SCHEMA, format, now, dialect)
}

/// The rows of a file whose name and first line show its format.
fn open_any(path: &Path) -> Rows<Article> {
    read_any(path, None, NOW, &Dialect::default()).unwrap()
}

fn refuse<T: Table>(path: &Path, format: Option<InputFormat>) -> FileError {
    read_any::<T>(path, format, NOW, &Dialect::default()).map(drop).unwrap_err()
}

/// Articles as canonical JSON Lines without their variants, warnings and errors.
fn read_feed(path: &Path, format: Option<InputFormat>, now: Timestamp) -> Vec<String> {
    let rows = read_any::<Article>(path, format, now, &Dialect::default()).unwrap();
    read_out(rows.map(|row| {
        row.map(|mut row| {
            row.value.normalise().unwrap();
            row.value = without_variants(&row.value);
            row
        })
    }))
}

fn without_variants(article: &Article) -> Article {
    let mut attributes = article.attributes().clone();
    attributes.remove("variants");
    Article::new(article.id.clone(), article.kind(), attributes).unwrap()
}

/// Each article's image and variants, and errors.
fn read_variants(path: &Path) -> Vec<Value> {
    let rows = open_any(path);
    rows.map(|row| match row {
        Ok(row) => {
            let of = |name| row.value.attribute(name).cloned().unwrap_or_default();
            json!([row.value.id.as_str(), of("image"), of("variants")])
        }
        Err(error) => error.to_string().into(),
    })
    .collect()
}

#[test]
fn variants_of_a_merchant_feed_keep_what_is_their_own() {
    let folder = Folder::new();
    let tee = "item_group_id=TSH-1|color=navy|product_type=T-Shirts|material=cotton";
    let small = "id=TSH-1-NV-S|size=S|gtin=4006381333931|mpn=T1|price=19.90 EUR|link=/tee?s|image_link=/s.jpg|availability=in_stock";
    let large = "id=TSH-1-NV-L|size=L|size=XL|size=L|price=21.90 EUR|material=linen|availability=preorder";
    let variants = [small, large, "id=TSH-1-NV-L|size=M"].map(|own| item(&format!("{own}|{tee}")));
    let card = item("id=GC|product_type=Geschenke &gt; Geschenkgutschein &gt; 50 Euro");
    let coded = item("id=GC2|google_product_category=53");
    let path = folder.file("feed.xml", xml(&[&variants.concat(), &card[..], &coded].concat()));
    assert_eq!(
        read_variants(&path),
        [
            json!(
                "line 4: two variants of article \"TSH-1-navy\" have the id \"TSH-1-NV-L\"; give each an id of its own, in Shopify a SKU"
            ),
            json!(["TSH-1-navy", "/s.jpg", [
                {"id": "TSH-1-NV-S", "size": "S", "gtin": "4006381333931", "mpn": "T1", "price": 19.9, "link": "/tee?s",
                 "image": "/s.jpg", "stock": true},
                {"id": "TSH-1-NV-L", "size": "L/XL", "price": 21.9, "material": "linen/cotton", "stock": false,
                 "availability": "preorder"},
            ]]),
        ]
    );
    let mut checker = Checker::new([], []);
    let read: Vec<Article> = checker.check(open_any(&path)).map(Result::unwrap).collect();
    assert_eq!(checker.report().left_out, 2, "gift cards");
    let dialect = Dialect { not_worn: NotWorn::new(&["t-shirt"]), ..Dialect::default() };
    let others = read_any::<Article>(&path, None, NOW, &dialect).unwrap();
    assert_eq!(others.map(|row| row.unwrap().value.id.to_string()).collect::<Vec<_>>(), ["GC", "GC2"]);
    assert_eq!(read[0].attribute("sizes"), Some(&json!(["S", "L/XL"])));
    assert_eq!(read[0].folded_words("sizes"), ["s", "l", "xl", "l/xl"]);
    assert_eq!(read[0].attribute("stock"), Some(&json!({"S": 1, "L/XL": 0})));
}

#[test]
fn variants_of_shopifys_products_keep_what_is_their_own() {
    let folder = Folder::new();
    let header = "Handle,Title,Type,Option1 Name,Option1 Value,Option2 Name,Option2 Value,Option3 Name,Option3 Value,\
                  Variant SKU,Variant Barcode,Variant Inventory Tracker,Variant Inventory Qty,Variant Price,Image Src,\
                  Variant Image,Gift Card\n";
    let rows = "jeans,Jeans,Jeans,Farbe,Blau,Maß,W32,Länge,L32,J-B-32-32,'4006381333931,shopify,0,79,/front.jpg,/blue.jpg,false\n\
                jeans,,,,Blau,,W32,,L34,J-B-32-34,,shopify,2,79,/back.jpg,/blue.jpg,\n\
                jeans,,,,Rot,,W32,,L32,,,shopify,1,69,/side.jpg,/red.jpg,\n\
                jeans,,,,Rot,,W32,,L32,,,shopify,1,69,,,\n\
                bag,Bag,Bags,Title,Default Title,,,,,,,,,9,/bag.jpg,,\n\
                card,Card,Gift Card,Title,Default Title,,,,,GC,,,,9,,,\n\
                other,Card,Things,Title,Default Title,,,,,GC2,,,,9,,,true\n";
    let path = folder.file("products.csv", format!("{header}{rows}"));
    let options = |colour: &str, length: &str| json!({"Farbe": colour, "Maß": "W32", "Länge": length});
    assert_eq!(
        read_variants(&path),
        [
            json!(
                "line 5: two variants of article \"jeans-rot\" have the id \"jeans-rot-w32-l32\"; give each an id of its own, in Shopify a SKU"
            ),
            json!(["jeans-blau", "/blue.jpg", [
                {"id": "J-B-32-32", "size": "W32", "options": options("Blau", "L32"), "gtin": "4006381333931", "price": 79,
                 "image": "/blue.jpg", "stock": 0},
                {"id": "J-B-32-34", "size": "W32", "options": options("Blau", "L34"), "price": 79, "image": "/blue.jpg",
                 "stock": 2},
            ]]),
            json!(["jeans-rot", "/red.jpg", [
                {"id": "jeans-rot-w32-l32", "size": "W32", "options": options("Rot", "L32"), "price": 69,
                 "image": "/red.jpg", "stock": 1},
            ]]),
            json!(["bag", "/bag.jpg", [{"id": "bag", "price": 9, "stock": true}]]),
        ]
    );
}

#[test]
fn sizes_of_a_product_without_skus_may_differ_in_signs() {
    let folder = Folder::new();
    let rows = "Handle,Type,Option1 Name,Option1 Value,Variant Price\n\
                bra,Bras,Size,C,9\nbra,,,C+,9\nbra,,,38 1/2,9\nbra,,,A|B,9\n";
    let read = read_variants(&folder.file("products.csv", rows));
    let [bra] = read.as_slice() else { panic!("one article, found {read:?}") };
    let ids: Vec<&Value> = bra[2].as_array().unwrap().iter().map(|variant| &variant["id"]).collect();
    assert_eq!(ids, ["bra-c", "bra-c+", "bra-38-1/2", "bra-ab"]);
}

/// Excel writes its country's delimiter, booleans and decimals.
#[test]
fn shopifys_products_may_be_saved_by_excel() {
    let folder = Folder::new();
    let rows = "Handle;Title;Type;Published;Option1 Name;Option1 Value;Variant Price;Gift Card\n\
                muetze;M\u{fc}tze;Hats;WAHR;Title;Default Title;19,90;FALSCH\n\
                hidden;Hut;Hats;FALSCH;Title;Default Title;9;FALSCH\n\
                card;Karte;Things;WAHR;Title;Default Title;9;WAHR\n";
    let windows = encoding_rs::WINDOWS_1252.encode(rows).0.into_owned();
    let dialect = |delimiter: Option<&str>| Dialect {
        delimiter: delimiter.map(|name| name.parse().unwrap()),
        encoding: Some("windows-1252".parse().unwrap()),
        ..Dialect::default()
    };
    let named = Some(InputFormat::Feed(Feed::ShopifyCsv));
    for (name, content, format, delimiter) in [
        ("a.csv", windows.clone(), None, None),
        ("marked.csv", [b"sep=;\r\n", &windows[..]].concat(), None, None),
        ("tabs.txt", rows.replace(';', "\t").into_bytes(), None, None),
        ("tabs.csv", rows.replace(';', "\t").into_bytes(), None, None),
        ("commas.csv", rows.replace(',', ".").replace(';', ",").into_bytes(), None, None),
        ("named.dat", windows, named, Some(";")),
    ] {
        let path = folder.file(name, content);
        let rows = read_any::<Article>(&path, format, NOW, &dialect(delimiter)).unwrap();
        let read: Vec<Article> = rows.map(|row| row.unwrap().value).collect();
        let [hat] = read.as_slice() else { panic!("{name}: {read:?}") };
        assert_eq!(
            (hat.id.as_str(), hat.attribute("name"), hat.attribute("price")),
            ("muetze", Some(&json!("M\u{fc}tze")), Some(&json!(19.9))),
            "{name}"
        );
    }
    let commas = dialect(Some(","));
    let path = folder.path("a.csv");
    let refused = read_any::<Article>(&path, None, NOW, &commas).map(drop).unwrap_err().to_string();
    assert!(refused.contains("Shopify's products need a column"), "{refused}");
}

fn feed(name: &str) -> Vec<String> {
    read_feed(&fixture(name), None, NOW)
}

/// An item of fields such as `id=a|size=S`.
fn item(fields: &str) -> String {
    let fields = fields.split('|').map(|field| {
        let (name, value) = field.split_once('=').unwrap();
        format!("<g:{name}>{value}</g:{name}>")
    });
    format!("<item>{}</item>\n", fields.collect::<String>())
}

fn xml(items: &str) -> String {
    format!(
        "<rss version=\"2.0\" xmlns:g=\"http://base.google.com/ns/1.0\"><channel>\n{items}</channel></rss>"
    )
}

#[test]
fn variants_of_a_merchant_feed_are_one_article_for_each_colour() {
    assert_eq!(
        feed("merchant.xml"),
        [
            r#"{"id":"DR-7","type":"Dresses","availability":"preorder","colour":"Red","currency":"EUR","google_product_category":"Apparel & Accessories > Clothing > Dresses","in_stock":false,"name":"Silk dress","price":89.9,"stock":0,"url":"https://shop.example/dress"}"#,
            r#"{"id":"PK-1-navy-white","type":"Parkas","age_group":"adult","brand":"Fjell & Söhne","colour":"Navy/White","currency":"EUR","gender":"women","google_product_category":"5598","image":"https://shop.example/parka-navy.jpg","in_stock":true,"item_group_id":"PK-1","material":"Cotton","name":"Fjell & Söhne parka, S","price":149,"product_type":"Women > Coats > Parkas","regular_price":199,"size_system":"EU","sizes":["S","M"],"stock":{"M":0,"S":1},"url":"https://shop.example/parka?colour=navy&size=s"}"#,
            "7: the variant of this article in line 41 has another material, \"Wool\"; \"Cotton\" is kept",
            r#"{"id":"PK-1-red","type":"Parkas","colour":"Red","currency":"EUR","in_stock":true,"item_group_id":"PK-1","name":"Fjell & Söhne parka, red","price":199,"product_type":"Women > Coats > Parkas","sizes":["S"]}"#,
        ]
    );
}

#[test]
fn a_tab_separated_feed_has_sale_prices_for_a_time() {
    let boot = |price: &str| {
        format!(
            r#"{{"id":"SH-1-black","type":"Boots","colour":"Black","currency":"EUR","gender":"men","in_stock":true,"item_group_id":"SH-1","name":"Leather boot",{price},"sizes":["42","43"],"stock":{{"42":1,"43":0}}}}"#
        )
        .replace("\"sizes\"", "\"product_type\":\"Shoes > Boots\",\"sizes\"")
    };
    let tote = r#"{"id":"BG-2","type":"Totes","currency":"EUR","in_stock":true,"name":"Tote \"Anna\"","price":59,"product_type":"Bags > Totes"}"#;
    let on_sale = boot("\"price\":99").replace("\"sizes\"", "\"regular_price\":129,\"sizes\"");
    assert_eq!(feed("merchant.tsv"), [tote, &on_sale]);
    let later = read_feed(&fixture("merchant.tsv"), None, Timestamp::from_millis(1_800_000_000_000));
    assert_eq!(later, [tote, &boot("\"price\":129")]);
}

#[test]
fn a_sale_in_another_currency_is_refused() {
    let folder = Folder::new();
    let read = |price: &str, sale: &str| {
        let header = "id\tproduct_type\tprice\tsale_price\n";
        let path = folder.file("feed.tsv", format!("{header}a\tHats\t{price}\t{sale}\n"));
        read_feed(&path, None, NOW).remove(0)
    };
    assert_eq!(
        read("20.00 EUR", "10.00 USD"),
        "line 2: sale_price is in USD, and price in EUR; expected one currency"
    );
    for sale in ["10.00 eur", "10.00"] {
        assert!(read("20.00 EUR", sale).contains("\"price\":10,"), "{sale}");
    }
}

#[test]
fn an_entry_for_the_product_beside_its_variants_is_no_article() {
    let folder = Folder::new();
    let read = |rows: &[&str]| {
        let header = "id\titem_group_id\tproduct_type\tavailability\tcolor\tsize\tmaterial\n";
        let rows = open_any(&folder.file("feed.tsv", format!("{header}{}", rows.join("\n"))));
        let mut checker = Checker::new([], []);
        let articles = checker.check(rows).map(Result::unwrap);
        let mut read: Vec<String> =
            articles.map(|article| format!("{} {}", article.id, article.in_stock())).collect();
        read.extend(checker.report().errors.iter().map(|error| error.first.to_string()));
        (read.join("; "), checker.report().left_out)
    };
    let is = |said: &str, left_out| (said.to_owned(), left_out);
    let sold_out = ["a-1\tA\tHats\tout_of_stock\tred\tS", "a-2\tA\tHats\tout_of_stock\tred\tM"];
    // Before its variants or after them, with its own group or without.
    for parent in ["A\t\tHats\tin_stock", "A\tA\tHats\tin_stock"] {
        assert_eq!(read(&[parent, sold_out[0], sold_out[1]]), is("A-red false", 1), "{parent}");
        assert_eq!(read(&[sold_out[0], sold_out[1], parent]), is("A-red false", 1), "{parent}");
    }
    // The variants have no colour: the article has the same id.
    let plain = read(&["A\t\tHats\tin_stock", "a-1\tA\tHats\tout_of_stock\t\tS"]);
    assert_eq!(plain, is("A false", 1));
    // Without variants it is an article, and so is one whose siblings differ in something else.
    assert_eq!(read(&["A\t\tHats\tin_stock"]), is("A true", 0));
    let siblings = ["A\tA\tHats\tin_stock\t\t\twool", "a-2\tA\tHats\tout_of_stock\t\t\tfelt"];
    assert_eq!(read(&siblings), is("A true", 0));
    // Another product has the same id.
    let other =
        ["1\tA\tHats\tin_stock\tnavy white\tS", "2\tA-navy\tHats\t\twhite", "3\tA\tHats\t\tnavy white\tM"];
    let told = "A-navy-white true; line 3: article \"A-navy-white\" is already in line 2";
    assert_eq!(read(&other), is(told, 0));
}

#[test]
fn a_size_is_in_stock_as_its_variants_say() {
    let folder = Folder::new();
    let head = "id\titem_group_id\tproduct_type\tsize\tavailability\n";
    for (rows, stock) in [
        // A size in two spellings is one.
        (
            "1\tg\tHats\t40,5\tin_stock\n2\tg\tHats\t40.5\tout_of_stock\n3\tg\tHats\t41\tout_of_stock\n",
            r#""sizes":["40,5","41"],"stock":{"40,5":1,"41":0}"#,
        ),
        // A sold-out size stays so, whatever other variants say.
        (
            "1\tg\tHats\tS\tin stock\n2\tg\tHats\tM\tout of stock\n3\tg\tHats\tL\t\n",
            r#""sizes":["S","M","L"],"stock":{"L":1,"M":0,"S":1}"#,
        ),
        (
            "4\tg\tHats\tM\tout of stock\n5\tg\tHats\t\tin stock\n",
            r#""sizes":["M"],"stock":[{"count":0,"size":"M"},{"count":1}]"#,
        ),
    ] {
        let hat = r#"{"id":"g","type":"Hats","in_stock":true,"item_group_id":"g","product_type":"Hats","#;
        let path = folder.file("feed.tsv", format!("{head}{rows}"));
        assert_eq!(read_feed(&path, None, NOW), [format!("{hat}{stock}}}")]);
    }
    // Tracked and sold out in cotton, not tracked in linen.
    let header = "Handle,Type,Option1 Name,Option1 Value,Option2 Name,Option2 Value,Variant Inventory Tracker,\
                  Variant Inventory Qty,Variant Price\n";
    let rows = "tee,Shirt,Size,M,Fabric,Cotton,shopify,0,10\ntee,,,m,,Linen,,,10\n";
    let shirts = read_feed(&folder.file("products.csv", format!("{header}{rows}")), None, NOW);
    assert!(shirts[0].contains(r#""sizes":["M"],"stock":{"M":1}"#), "{shirts:?}");
}

#[test]
fn shopifys_products_have_options_and_counts() {
    assert_eq!(
        feed("shopify.csv"),
        [
            r#"{"id":"linen-shirt-white","type":"Shirt","brand":"Lumen","colour":"White","image":"https://cdn.example/white.jpg","in_stock":true,"item_group_id":"linen-shirt","name":"Linen shirt","price":49.9,"product_type":"Apparel & Accessories > Clothing > Shirts","regular_price":69.9,"sizes":["S","M"],"stock":{"M":0,"S":3},"tags":["summer","linen"]}"#,
            r#"{"id":"linen-shirt-navy","type":"Shirt","brand":"Lumen","colour":"Navy","image":"https://cdn.example/navy.jpg","in_stock":true,"item_group_id":"linen-shirt","name":"Linen shirt","price":49.9,"product_type":"Apparel & Accessories > Clothing > Shirts","sizes":["S"],"stock":{"S":1},"tags":["summer","linen"]}"#,
            r#"{"id":"wool-scarf","type":"Scarves","brand":"Lumen","in_stock":true,"item_group_id":"wool-scarf","name":"Wool scarf","price":35,"product_type":"Apparel & Accessories > Clothing Accessories > Scarves"}"#,
        ]
    );
}

#[test]
fn googles_namespace_is_read_as_shops_write_it() {
    let folder = Folder::new();
    let item = |prefix: &str| {
        format!(
            "<channel><item><{prefix}id>a</{prefix}id><title>Hat</title><{prefix}product_type>Hats</{prefix}product_type>\
             <{prefix}price>12.500 KWD</{prefix}price></item></channel>"
        )
    };
    let read = |attribute: &str, prefix: &str| {
        let feed = format!("<rss {attribute}>{}</rss>", item(prefix));
        read_feed(&folder.file("feed.xml", feed), None, NOW)
    };
    let hat = r#"{"id":"a","type":"Hats","currency":"KWD","name":"Hat","price":12.5,"product_type":"Hats"}"#;
    for (attribute, prefix) in [
        ("xmlns:g=\"http://base.google.com/ns/1.0\"", "g:"),
        ("xmlns:g=\"https://base.google.com/ns/1.0\"", "g:"),
        ("xmlns:g=\"http://base.google.com/ns/1.0/\"", "g:"),
        ("xmlns=\"http://base.google.com/ns/1.0\"", ""),
        ("xmlns=\"https://base.google.com/ns/1.0\"", ""),
        ("", "g:"),
    ] {
        assert_eq!(read(attribute, prefix), [hat], "{attribute}");
    }
    // An Atom feed with another prefix.
    assert_eq!(
        feed("merchant-atom.xml"),
        [
            r#"{"id":"DR-7","type":"Dresses","currency":"EUR","in_stock":true,"name":"Silk dress","price":89.9,"product_type":"Women > Dresses","url":"https://shop.example/dress?a=1&b=2"}"#
        ]
    );
    let other = "line 1: expected elements of Google's namespace, as in <g:price> with xmlns:g=\"http://base.google.com/ns/1.0\" in \
                 the first element, found <id>, <title>, <product_type>, <price>";
    assert_eq!(read("", ""), [other]);
    assert!(
        read("xmlns:x=\"http://example.com\"", "x:")[0].contains("expected elements of Google's namespace")
    );
}

#[test]
fn categories_of_google_may_be_numbers() {
    let folder = Folder::new();
    let path = folder.file("feed.tsv", "id\tgoogle_product_category\na\t2271\nb\t99\nc\t99\n");
    let note = "the type is \"category 99\": there is no \"product_type\", and google_product_category 99 has no name here";
    assert_eq!(
        read_feed(&path, None, NOW),
        [
            r#"{"id":"a","type":"Dresses","google_product_category":"2271"}"#,
            r#"{"id":"b","type":"category 99","google_product_category":"99"}"#,
            &format!("3: {note}"),
            r#"{"id":"c","type":"category 99","google_product_category":"99"}"#,
            &format!("4: {note}"),
        ]
    );
}

#[test]
fn an_inventory_that_is_not_in_the_file_is_noted() {
    let folder = Folder::new();
    let path = folder.file(
        "products.csv",
        "Handle,Title,Type,Option1 Name,Option1 Value,Variant Inventory Tracker,Variant Inventory Policy,Variant Price,\
         Google Shopping / Gender\n\
         a,Hat,Hat,Kleidergröße,S,shopify,deny,10,Female\n\
         a,,,,M,shopify,deny,10,\n\
         b,Cap,Cap,Title,Default Title,,deny,10,\n\
         c,Bag,Bag,Title,Default Title,shopify,continue,10,\n",
    );
    assert_eq!(
        read_feed(&path, None, NOW),
        [
            r#"{"id":"a","type":"Hat","gender":"women","in_stock":true,"item_group_id":"a","name":"Hat","price":10,"sizes":["S","M"]}"#,
            "2: the inventory is tracked, but the file has no \"Variant Inventory Qty\" of it: it counts as in stock",
            r#"{"id":"b","type":"Cap","in_stock":true,"item_group_id":"b","name":"Cap","price":10}"#,
            r#"{"id":"c","type":"Bag","in_stock":true,"item_group_id":"c","name":"Bag","price":10}"#,
        ]
    );
}

#[test]
fn bad_entries_are_named_and_the_others_read() {
    let folder = Folder::new();
    let path = folder.file(
        "feed.xml",
        xml(&[
            item("id=a|price=1 EUR"),
            item("id=a|product_type=Hats|price=cheap"),
            item("id=a|product_type=Hats|availability=perhaps"),
            item("title=&nbsp;"),
            item("id=a|product_type=Hats"),
        ]
        .concat()),
    );
    assert_eq!(
        read_feed(&path, None, NOW),
        [
            "line 2: an article needs a type: neither \"product_type\" nor \"google_product_category\" is given",
            "line 3: price is a number and a currency, as in 15.00 USD, found \"cheap\"",
            "line 4: availability is in_stock, out_of_stock, preorder or backorder, found \"perhaps\"",
            "line 5: the entity &nbsp; is not one of XML's own",
            r#"{"id":"a","type":"Hats","product_type":"Hats"}"#,
        ]
    );
    // On one line they have numbers.
    let path =
        folder.file("feed.xml", xml("<item><g:id>a</g:id></item><item/><item><g:title>b</g:title></item>"));
    let numbered = "line 2: in item 3 of the file, the attribute \"id\" is missing";
    assert_eq!(read_feed(&path, None, NOW)[1], numbered);
}

#[test]
fn hostile_xml_and_feeds_without_entries_are_refused() {
    let folder = Folder::new();
    let bomb =
        "<?xml version=\"1.0\"?>\n<!DOCTYPE rss [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;&a;\">]>\n<rss/>";
    let long = xml(&format!("<item><g:title>{}</g:title></item>", "x".repeat(2 << 20)));
    let deep = xml(&"<a>".repeat(100));
    let other = "<rss><channel><title>Shop</title><product><id>a</id></product></channel></rss>";
    let found = "line 1: a Merchant feed has an <item> or <entry> for each variant, found <rss>, <channel>, <title>, <product>, \
                 <id>";
    for (content, reason) in [
        (other, found),
        ("<feed/>", "found <feed>"),
        (bomb, "line 2: the file has a document type declaration (<!DOCTYPE …>); remove it"),
        (&long, "an item is longer than 1 MiB"),
        (&deep, "line 2: elements are nested more than 16 deep"),
        (&xml("<item><g:id>a</item>"), "not readable as XML: ill-formed document"),
        ("<rss>\n<channel>", "line 2: the file ends before its last element"),
        ("<body><p/></body>", "line 1: a Merchant feed begins with <rss> or <feed>, found <body>"),
        (
            "<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><rss/>",
            "the encoding must be UTF-8, found ISO-8859-1",
        ),
        ("<rss><channel>\u{0}\n", "the file ends before its last element"),
    ] {
        let read = read_feed(&folder.file("feed.xml", content), None, NOW);
        assert!(read.len() == 1 && read[0].contains(reason), "{reason}: {read:?}");
    }
    for (name, header, reason) in [
        ("feed.tsv", "id\ttitle\tprice\n", "line 1: a feed has a row for each variant, found only a header"),
        ("feed.csv", "Handle,Option1 Name,Variant Price\n", "found only a header"),
    ] {
        let read = read_feed(&folder.file(name, header), None, NOW);
        assert!(read.len() == 1 && read[0].ends_with(reason), "{reason}: {read:?}");
    }
    for page in ["<html><body/></html>", "\n<!DOCTYPE HTML PUBLIC \"\">"] {
        let refused = refuse::<Article>(&folder.file("feed.xml", page), None);
        assert!(matches!(refused, FileError::NoRows { .. }), "{page}");
    }
}

#[test]
fn a_feed_is_recognised_or_named() {
    let folder = Folder::new();
    let tsv = fs::read(fixture("merchant.tsv")).unwrap();
    let named = folder.file("articles.csv", &tsv);
    let format = "google-tsv".parse().unwrap();
    assert_eq!(read_feed(&named, Some(format), NOW), feed("merchant.tsv"));
    let ours = folder.file("ours.csv", "id,type,handle,price,option1 name\na,hat,b,1,c\n");
    assert_eq!(
        read_feed(&ours, None, NOW)[0],
        r#"{"id":"a","type":"hat","handle":"b","option1 name":"c","price":1}"#
    );
    let path = fixture("merchant.xml");
    let as_articles = "import it as articles, and let them replace stored ones";
    let unknown = "unknown format; name it with --format, or end";
    let no_id = "a Merchant feed needs a column \"id\", found \"sku\", \"title\"";
    let header = folder.file("feed.tsv", "sku\ttitle\n");
    for (error, said) in [
        (refuse::<Customer>(&path, None), as_articles),
        (refuse::<ArticlePatch>(&path, None), as_articles),
        (refuse::<Article>(&folder.file("feed.dat", &tsv), None), unknown),
        (refuse::<Article>(&header, Some(InputFormat::Feed(Feed::GoogleTsv))), no_id),
    ] {
        assert!(error.to_string().contains(said), "{said}: {error}");
    }
}

#[test]
fn files_may_be_compressed() {
    let folder = Folder::new();
    let pack = |bytes: &[u8]| {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    };
    let lines = "\u{feff}{\"id\":\"a\",\"type\":\"hat\"}\n{\"id\":\"b\",\"type\":\"hat\"}\n";
    let plain = values::<Article>(&folder.file("articles.jsonl", lines));
    assert_eq!(plain.len(), 2);
    // Also in several members, as `cat` makes them, and whatever the name says.
    let (first, second) = lines.split_at(lines.find('\n').unwrap() + 1);
    let members = [pack(first.as_bytes()), pack(second.as_bytes())].concat();
    for name in ["articles.jsonl.gz", "articles.jsonl"] {
        assert_eq!(values::<Article>(&folder.file(name, &members)), plain, "{name}");
    }
    let csv = folder.file("articles.csv.gz", pack(b"id,type\na,hat\nb,hat\n"));
    assert_eq!(values::<Article>(&csv), plain);
    for name in ["merchant.xml", "merchant.tsv", "shopify.csv"] {
        let packed = folder.file(&format!("{name}.gz"), pack(&fs::read(fixture(name)).unwrap()));
        assert_eq!(read_feed(&packed, None, NOW), feed(name), "{name}");
    }
    let mut rows = open::<Article>(&folder.file("half.jsonl.gz", &members[..members.len() - 12]));
    while rows.by_ref().next().is_some_and(|row| row.is_ok()) {}
    let cut = folder.file("articles.jsonl", &pack(lines.repeat(1000).as_bytes())[..90]);
    let last = open::<Article>(&cut).last().unwrap().unwrap_err();
    assert!(last.is_fatal() && last.reason.contains("cannot read the rest of the file"), "{last}");
    fs::remove_file(folder.path("articles.jsonl")).unwrap();
    fs::remove_file(folder.path("articles.csv.gz")).unwrap();
    assert_eq!(Files::in_folder(folder.0.path()).unwrap().articles, Some(folder.path("articles.jsonl.gz")));
}

/// Sizes that differ, categories without a name, what all variants share, and words that the schema does not list: these were
/// compared with all before them. 40,000 sizes took 93 seconds, ten times that in a debug build.
#[test]
fn an_article_may_have_tens_of_thousands_of_variants() {
    let mut google = "id\titem_group_id\tgoogle_product_category\tsize\tavailability\n".to_owned();
    let mut shopify =
        "Handle,Type,Tags,Option1 Name,Option1 Value,Variant Inventory Tracker,Variant Inventory Qty,Variant Price\n"
            .to_owned();
    for n in 0..40_000 {
        let stock = if n % 2 == 0 { "in_stock" } else { "out_of_stock" };
        writeln!(google, "{n}\tg\t{}\tsize {n}\t{stock}", 900_000 + n).unwrap();
        let (tags, option) = if n == 0 { ("tag ".repeat(100_000), "Size") } else { Default::default() };
        writeln!(shopify, "g,Hats,{tags},{option},size {n},shopify,{},9", n % 2).unwrap();
    }
    let words: Vec<String> = (0..40_000).map(|n| format!("\"word {n}\"")).collect();
    let customer = format!("{{\"id\":\"c\",\"features\":{{\"preferred_colours\":[{}]}}}}\n", words.join(","));
    let folder = Folder::new();
    let path = |name: &str, text: String| folder.file(name, text);
    let began = Instant::now();
    for path in [path("google.tsv", google), path("shopify.csv", shopify)] {
        let mut checker = Checker::new([], []);
        let rows = open_any(&path);
        let read: Vec<Article> = checker.check(rows).map(Result::unwrap).collect();
        assert_eq!(read.len(), 1, "{:?}", checker.report());
        assert_eq!(read[0].stock().unwrap().len(), 40_000);
        assert_eq!(read[0].attribute("sizes").unwrap().as_array().unwrap().len(), 40_000);
    }
    let mut checker = Checker::new([], []);
    let rows = read::<Customer>(&path("customers.jsonl", customer), &SCHEMA).unwrap();
    assert_eq!(checker.check(rows).map(Result::unwrap).count(), 1);
    assert_eq!(checker.report().more_warnings, 39_980);
    assert!(began.elapsed() < Duration::from_mins(1), "{:?}", began.elapsed());
}
