//! What fits a customer and is in stock for them: other articles are suggested only on request.

use std::{collections::BTreeMap, fs};

use atelier_core::domain::{Article, Customer, Outfit, Role};
use serde_json::{Map, Value, json};

use super::{Demo, Service, rows};
use crate::{
    cli::complete::Parts,
    harness::{TestDatabase, apply, on_sqlite},
};

/// A sequence that looks random and is the same in every run.
struct Draws(u64);

impl Draws {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % most
    }

    fn one<T: Clone>(&mut self, of: &[T]) -> T {
        let place = self.below(of.len() as u64);
        of[usize::try_from(place).unwrap()].clone()
    }

    fn happens(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

const BOTTOMS: [&str; 6] = ["jeans", "trousers", "chinos", "shorts", "skirt", "leggings"];
const SHOES: [&str; 7] = ["sneaker", "boot", "loafer", "lace-up", "heel", "ballerina", "sandal"];
const WITHOUT_SIZES: [&str; 11] = [
    "bag",
    "backpack",
    "belt",
    "scarf",
    "hat",
    "beanie",
    "cap",
    "jewellery",
    "watch",
    "sunglasses",
    "tights",
];

/// The feature that is the size for articles of this type, and some sizes.
fn scale(kind: &str) -> Option<(&'static str, &'static [&'static str])> {
    match kind {
        kind if BOTTOMS.contains(&kind) => Some(("bottom_size", &["29", "30", "31"])),
        kind if SHOES.contains(&kind) => Some(("shoe_size", &["38", "38,5", "39", "40"])),
        kind if WITHOUT_SIZES.contains(&kind) => None,
        _ => Some(("top_size", &["S", "M", "L"])),
    }
}

/// The customer's size for an article.
fn size_for<'a>(article: &Value, features: &'a Value) -> Option<&'a str> {
    features[scale(article["type"].as_str().unwrap())?.0].as_str()
}

fn is_one_size(size: &Value) -> bool {
    ["One Size", "O/S"].iter().any(|name| same(size, name))
}

fn same(one: &Value, other: &str) -> bool {
    one.as_str().is_some_and(|one| one.eq_ignore_ascii_case(other))
}

fn is_of_size(article: &Value, features: &Value) -> bool {
    match (size_for(article, features), &article["sizes"]) {
        (None, _) | (_, Value::Null) => true,
        (Some(_), Value::Array(sizes)) if sizes.is_empty() => true,
        (Some(size), Value::Array(sizes)) => sizes.iter().any(|one| same(one, size) || is_one_size(one)),
        (Some(size), one) => same(one, size) || is_one_size(one),
    }
}

fn is_of_gender(article: &Value, features: &Value) -> bool {
    match (features["gender"].as_str(), article["gender"].as_str()) {
        (None | Some("diverse"), _) | (_, None | Some("unisex")) => true,
        (Some(gender), Some(wearer)) => (gender == "female") == (wearer == "women"),
    }
}

fn is_in_stock(article: &Value, size: Option<&str>, store: Option<&str>) -> bool {
    // Beside counts of sizes, one without a size is a total.
    let is_of_size = |entry: &Value| !entry["size"].is_null() && !is_one_size(&entry["size"]);
    let counts_sizes = match &article["stock"] {
        Value::Object(sizes) => sizes.keys().any(|size| !is_one_size(&json!(size))),
        Value::Array(entries) => entries.iter().any(is_of_size),
        _ => false,
    };
    let takes = |entry: &Value| {
        entry["count"].as_i64().unwrap() > 0
            && store.is_none_or(|store| entry["store"].is_null() || same(&entry["store"], store))
            && size
                .is_none_or(|size| if is_of_size(entry) { same(&entry["size"], size) } else { !counts_sizes })
    };
    article["in_stock"] != false
        && match &article["stock"] {
            Value::Null => true,
            Value::Object(sizes) => {
                sizes.iter().any(|(size, count)| takes(&json!({"size": size, "count": count})))
            }
            Value::Array(entries) => entries.iter().any(takes),
            count => takes(&json!({"count": count})),
        }
}

/// Whether the article may be suggested, by the filters as the request writes them.
fn may_be_suggested(article: &Value, features: &Value, filters: &Value) -> bool {
    let fit = filters["fit"] != false;
    let fits = !fit || (is_of_size(article, features) && is_of_gender(article, features));
    let size = if fit { size_for(article, features) } else { None };
    fits && (filters["in_stock"] == false || is_in_stock(article, size, filters["store"].as_str()))
}

fn draw_article(draws: &mut Draws, id: &str, kind: &str) -> Value {
    let mut article = json!({"id": id, "type": kind, "price": 10 + draws.below(190)});
    let one_size = ["One Size", "O/S"];
    let sizes = scale(kind).map_or(&["one"][..], |(_, sizes)| sizes);
    let sizes = if draws.happens(5) { &one_size } else { sizes };
    match draws.below(10) {
        0 | 1 => {}
        2 => article["sizes"] = json!(draws.one(sizes)),
        3 => article["sizes"] = json!([]),
        _ => {
            let some: Vec<String> =
                sizes.iter().filter(|_| draws.happens(60)).map(|size| size.to_lowercase()).collect();
            article["sizes"] = json!(some);
        }
    }
    if draws.happens(85) {
        article["gender"] = json!(draws.one(&["women", "men", "unisex"]));
    }
    if draws.happens(40) {
        article["in_stock"] = json!(draws.happens(70));
    }
    match draws.below(5) {
        0 => {}
        1 => article["stock"] = json!(draws.below(3)),
        2 => {
            let counts: Map<String, Value> =
                sizes.iter().map(|size| ((*size).to_owned(), json!(draws.below(2)))).collect();
            article["stock"] = json!(counts);
        }
        _ => {
            let entry = |draws: &mut Draws| {
                let mut entry = json!({"count": draws.below(2)});
                if draws.happens(80) {
                    entry["size"] = json!(draws.one(sizes));
                }
                if draws.happens(70) {
                    entry["store"] = json!(draws.one(&["Zurich", "basel"]));
                }
                entry
            };
            let entries = draws.below(4);
            article["stock"] = (0..entries).map(|_| entry(draws)).collect();
        }
    }
    article
}

fn draw_features(draws: &mut Draws) -> Value {
    let mut features = json!({});
    for (name, values) in [
        ("gender", &["female", "male", "diverse"][..]),
        ("top_size", &["S", "M", "L", "XL"]),
        ("bottom_size", &["29", "30", "31"]),
        ("shoe_size", &["38", "39", "40"]),
    ] {
        if draws.happens(75) {
            features[name] = json!(draws.one(values));
        }
    }
    features
}

fn draw_filters(draws: &mut Draws) -> Value {
    let mut filters = json!({});
    for name in ["fit", "in_stock"] {
        match draws.below(6) {
            0 => filters[name] = json!(false),
            1 => filters[name] = json!(true),
            _ => {}
        }
    }
    if filters["in_stock"] != false && draws.happens(40) {
        filters["store"] = json!(draws.one(&["zurich", "BASEL", "elsewhere"]));
    }
    if draws.happens(60) {
        filters["types"] = json!({"1": [draws.one(&["t-shirt", "jeans", "sneaker", "bag"]), "coat"]});
    }
    filters
}

/// Stores the demo's articles with sizes, stock and prices that are drawn, and returns them by their ids.
async fn store_drawn(service: &Service, draws: &mut Draws) -> BTreeMap<String, Value> {
    let articles: BTreeMap<String, Value> = rows::<Article>()
        .iter()
        .map(|article| (article.id.to_string(), draw_article(draws, article.id.as_str(), article.kind())))
        .collect();
    let lines: Vec<String> = articles.values().map(Value::to_string).collect();
    service.post("/articles/bulk", "application/x-ndjson", lines.join("\n")).is(200).await;
    articles
}

/// Random articles, customers and filters, compared with the rules as this file writes them down.
#[apply(on_sqlite)]
async fn nothing_that_is_unavailable_is_suggested_unless_asked_for(Demo(service): Demo) {
    let mut draws = Draws(20);
    let articles = store_drawn(&service, &mut draws).await;
    let outfit: Vec<String> = rows::<Outfit>()[0].articles().iter().map(ToString::to_string).collect();
    let (mut excluded, mut widened) = (0, 0);
    for _ in 0..4 {
        let items: Vec<Value> = (0..75)
            .map(|_| {
                json!({"outfit": [outfit[0], null, outfit[2]], "features": draw_features(&mut draws), "k": 250,
                       "filters": draw_filters(&mut draws)})
            })
            .collect();
        let answer = service.ask_ok("/complete/batch", &json!({"items": items})).await;
        for (asked, answer) in items.iter().zip(answer["items"].as_array().unwrap()) {
            let (features, filters) = (&asked["features"], &asked["filters"]);
            let blank = &answer["blanks"][0];
            let types = filters["types"]["1"].as_array();
            let of_type = |article: &Value| types.is_none_or(|types| types.contains(&article["type"]));
            let candidates: Vec<&Value> = articles
                .values()
                .filter(|article| of_type(article) && !same(&article["id"], &outfit[0]))
                .filter(|article| !same(&article["id"], &outfit[2]))
                .collect();
            let allowed =
                candidates.iter().filter(|article| may_be_suggested(article, features, filters)).count();
            assert_eq!(blank["admissible"], allowed, "{asked}: {answer:#}");
            let suggestions = blank["suggestions"].as_array().unwrap();
            assert_eq!(suggestions.len(), allowed.min(250));
            for suggestion in suggestions {
                let id = suggestion["article"]["id"].as_str().unwrap();
                assert!(may_be_suggested(&articles[id], features, filters), "{asked}: {}", articles[id]);
                assert_eq!(suggestion["article"], articles[id], "the article as it is stored");
                widened += usize::from(!may_be_suggested(&articles[id], features, &json!({})));
            }
            excluded += candidates.len() - allowed;
            let warned = answer["warnings"].as_array().unwrap().iter();
            let unknown = warned.filter(|warning| warning["code"] == "unknown-store").count();
            assert_eq!(unknown, usize::from(filters["store"] == "elsewhere"), "{answer:#}");
        }
    }
    assert!(excluded > 10_000 && widened > 1000, "{excluded} {widened}");
}

/// The same rules for sets, diverse suggestions, a total price, the Studio and `atelier complete`.
#[apply(on_sqlite)]
async fn every_way_of_suggesting_leaves_out_what_is_unavailable(Demo(service): Demo, db: TestDatabase) {
    let mut draws = Draws(21);
    let articles = store_drawn(&service, &mut draws).await;
    let outfit: Vec<String> = rows::<Outfit>()[0].articles().iter().map(ToString::to_string).collect();
    let check = |ids: &[String], features: &Value, filters: &Value, way: &str| {
        for id in ids {
            let article = &articles[id];
            assert!(may_be_suggested(article, features, filters), "{way}: {features} {filters} {article}");
        }
        ids.len()
    };
    let browser = service.signed_in(Role::Admin).await;
    let (mut alone, mut in_sets, mut on_pages) = (0, 0, 0);
    let mut customers = Vec::new();
    for n in 0..12 {
        let (features, mut filters) = (draw_features(&mut draws), draw_filters(&mut draws));
        filters.as_object_mut().unwrap().remove("types");
        let mut asked = json!({"outfit": [outfit[0], null, null], "features": features, "filters": filters, "k": 20,
                               "sets": 4, "diversity": draws.one(&[0.0, 0.6])});
        let total = articles[&outfit[0]]["price"].as_i64().unwrap() + 250;
        asked["filters"]["price"] = json!({"total": total});
        let answer = service.ask_ok("/complete", &asked).await;
        let ids = |places: &Value| -> Vec<String> {
            let places = places.as_array().map_or(&[][..], Vec::as_slice);
            places.iter().map(|place| place["article"]["id"].as_str().unwrap().to_owned()).collect()
        };
        for blank in answer["blanks"].as_array().unwrap() {
            alone += check(&ids(&blank["suggestions"]), &features, &filters, "alone");
        }
        for set in answer["sets"].as_array().map_or(&[][..], Vec::as_slice) {
            in_sets += check(&ids(&set["articles"]), &features, &filters, "in a set");
        }

        let customer = format!("drawn-{n}");
        let stored = service.put(&format!("/customers/{customer}"), &json!({"features": features})).await;
        assert!(stored.is_ok());
        let mut page = format!("/studio?customer={customer}&slot={}&slot=&slot=&total={total}", outfit[0]);
        for (name, value) in filters.as_object().unwrap() {
            match (name.as_str(), value) {
                ("fit", Value::Bool(false)) => page += "&unfit=on",
                ("in_stock", Value::Bool(false)) => page += "&sold_out=on",
                ("store", store) => page.extend(["&store=", store.as_str().unwrap()]),
                _ => {}
            }
        }
        for asked in ["", "&ask=1"] {
            let html = browser.page(&format!("{page}{asked}")).await;
            on_pages += check(&articles_of_page(&html, &outfit[0]), &features, &filters, &page);
        }
        customers.push((customer, features));
    }
    let mut offline = 0;
    for (flags, filters) in [
        (&[][..], json!({})),
        (&["--allow-unfit"], json!({"fit": false})),
        (&["--store", "zurich", "--diversity", "0.6"], json!({"store": "zurich"})),
    ] {
        let parts = Parts::new();
        let asked: Vec<Value> = customers
            .iter()
            .map(|(customer, _)| json!({"customer": customer, "articles": [outfit[0], null, outfit[2]]}))
            .collect();
        parts.put("part-0.jsonl", &asked);
        parts.done(&db, &[&["--k", "40"], flags].concat()).await;
        for (customer, article, _) in parts.read("part-0.jsonl").into_values() {
            let (_, features) = customers.iter().find(|(id, _)| *id == customer).unwrap();
            offline += check(&[article], features, &filters, "offline");
        }
    }
    println!("alone {alone}, in sets {in_sets}, on pages {on_pages}, offline {offline}");
    assert!(alone > 200 && in_sets > 40 && on_pages > 100 && offline > 1000);
}

/// The articles that a page of the Studio suggests, alone and in sets. `worn` is in the outfit.
fn articles_of_page(html: &str, worn: &str) -> Vec<String> {
    let alone = html.split("id=\"suggestion-").skip(1).map(|rest| {
        let id = rest.split('"').next().unwrap();
        id.split_once('-').unwrap().1.to_owned()
    });
    let sets =
        html.split_once("<ul class=\"sets\">").map_or("", |(_, rest)| rest.split("</ul>").next().unwrap());
    let links = sets.split("href=\"/studio?").skip(1).map(|rest| rest.split('"').next().unwrap());
    let in_sets = links
        .flat_map(|link| link.split("&#38;"))
        .filter_map(|part| part.strip_prefix("slot="))
        .filter(|id| *id != worn)
        .map(str::to_owned);
    alone.chain(in_sets).collect()
}

/// The articles of these types that are suggested for a customer with these features, of those that a test stored: their ids
/// begin with `new-`.
async fn suggested_of(service: &Service, types: &[&str], features: &Value) -> Vec<String> {
    let body = json!({"outfit": [null], "features": features, "filters": {"types": {"0": types}}, "k": 250});
    let answer = service.ask_ok("/complete", &body).await;
    let suggestions = answer["blanks"][0]["suggestions"].as_array().unwrap().iter();
    let ids = suggestions.map(|one| one["article"]["id"].as_str().unwrap());
    let mut ids: Vec<String> = ids.filter_map(|id| id.strip_prefix("new-").map(str::to_owned)).collect();
    ids.sort_unstable();
    ids
}

async fn store_all(service: &Service, articles: &[Value]) -> Value {
    let lines: Vec<String> = articles.iter().map(Value::to_string).collect();
    let stored = service.post("/articles/bulk", "application/x-ndjson", lines.join("\n")).is(200).await;
    stored.json()
}

#[apply(on_sqlite)]
async fn sizes_are_compared_as_shops_write_them(Demo(service): Demo) {
    let articles = [
        json!({"id": "new-comma", "type": "sneaker", "sizes": ["40,5"], "stock": {"40,5": 3}}),
        json!({"id": "new-point", "type": "sneaker", "sizes": ["40.5", "41"], "stock": {"40,5": 1, "41": 0}}),
        json!({"id": "new-third", "type": "sneaker", "sizes": ["42 2/3"]}),
        json!({"id": "new-one", "type": "sneaker", "sizes": ["One Size"], "stock": {"OS": 2}}),
        json!({"id": "new-none", "type": "sneaker", "sizes": "Einheitsgröße", "stock": {"O/S": 0}}),
        json!({"id": "new-two", "type": "sneaker", "sizes": "39/40"}),
    ];
    store_all(&service, &articles).await;
    for (size, expected) in [
        ("40,5", &["comma", "one", "point"][..]),
        ("40.5", &["comma", "one", "point"]),
        ("40", &["one", "two"]),
        ("41", &["one"]),
        ("5", &["one"]),
        ("3", &["one"]),
        ("42 2/3", &["one", "third"]),
    ] {
        assert_eq!(
            suggested_of(&service, &["sneaker"], &json!({"shoe_size": size})).await,
            expected,
            "{size}"
        );
    }
}

#[apply(on_sqlite)]
async fn types_are_compared_in_the_singular(Demo(service): Demo) {
    let articles = [
        json!({"id": "new-m", "type": "Rain Jackets", "sizes": ["M"], "gender": "women"}),
        json!({"id": "new-l", "type": "Rain Jackets", "sizes": ["L"], "gender": "women"}),
    ];
    let stored = store_all(&service, &articles).await;
    assert!(!stored["warnings"].to_string().contains("in any size"), "{stored}");
    for types in [&["Rain Jackets"], &["rain-jacket"]] {
        assert_eq!(suggested_of(&service, types, &json!({})).await, ["l", "m"]);
        assert_eq!(suggested_of(&service, types, &json!({"top_size": "M"})).await, ["m"]);
        let never = json!({"nogo_types": ["rain-jacket"]});
        assert!(suggested_of(&service, types, &never).await.is_empty());
    }
}

#[apply(on_sqlite)]
async fn sizes_that_no_customer_is_asked_for_are_warned_of(Demo(service): Demo, db: TestDatabase) {
    let articles = [
        json!({"id": "new-1", "type": "Jacken", "sizes": ["38"]}),
        json!({"id": "new-2", "type": "Jacken", "sizes": ["40"]}),
        json!({"id": "new-3", "type": "Schals", "sizes": ["One Size"]}),
        json!({"id": "new-4", "type": "parka", "sizes": ["M"]}),
    ];
    let stored = store_all(&service, &articles).await;
    let warnings = stored["warnings"].as_array().unwrap();
    let expected = "customers get 2 articles in any size, because the schema of release demo requires sizes of none of these \
                    types: \"Jacken\"";
    assert!(warnings.iter().any(|warning| warning["detail"] == expected), "{stored:#}");
    assert_eq!(suggested_of(&service, &["Jacken"], &json!({"top_size": "M"})).await, ["1", "2"]);
    for (article, pointer, said) in [
        (json!({"type": "Jacken", "sizes": ["38"]}), "/type", "in any size"),
        (json!({"type": "Jacken", "stock": {"38": 1, "40": 0}}), "/type", "in any size"),
        (
            json!({"type": "parka", "sizes": [["S"], true]}),
            "/sizes",
            "sizes must be a text, a number or a list",
        ),
        (json!({"type": "parka", "gender": true}), "/gender", "so the article fits every customer"),
        (
            json!({"type": "parka", "gender": "Damen"}),
            "/gender",
            "gender \"damen\" is not one of the words that the schema of release demo requires (",
        ),
        (
            json!({"type": "parka", "embedding": [0.1, 0.2]}),
            "/embedding",
            "release demo was trained with none",
        ),
    ] {
        let stored = service.put("/articles/new-5", &article).await;
        let stored: Value = stored.json();
        let warned = |warning: &Value| {
            warning["pointer"] == pointer && warning["detail"].as_str().unwrap().contains(said)
        };
        assert!(stored["warnings"].as_array().unwrap().iter().any(warned), "{article}: {stored:#}");
    }

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("articles.csv");
    fs::write(&file, "id,type,sizes\na,Hosen,38|40\nb,Jacken,38\nc,Hosen,42\n").unwrap();
    let file = crate::cli::path(&file);
    let import = crate::cli::atelier(&db, &["--set", "models.folder=models", "import", "--articles", file]);
    let said = crate::cli::stderr(&crate::cli::run(import).await);
    let expected =
        expected.replace("2 articles", "3 articles").replace("\"Jacken\"", "\"Hosen\", \"Jacken\"");
    assert!(said.contains(&format!("note: {expected}\n")), "{said}");
}

/// How many suggestions for all of the demo's outfits have an article of another size, of the other gender, and out of
/// stock, and how many suggestions there are.
async fn count_unavailable(service: &Service, filters: &Value) -> [usize; 4] {
    let customers: BTreeMap<String, Value> = rows::<Customer>()
        .iter()
        .map(|customer| {
            let line = atelier_files::json_line(customer, &atelier_core::domain::Schema::default_schema());
            let customer: Value = serde_json::from_str(&line).unwrap();
            (customer["id"].as_str().unwrap().to_owned(), customer["features"].clone())
        })
        .collect();
    let mut items = Vec::new();
    for outfit in rows::<Outfit>() {
        for slot in 0..outfit.articles().len() {
            let mut slots: Vec<Value> = outfit.articles().iter().map(|id| json!(id.as_str())).collect();
            slots[slot] = Value::Null;
            items.push(json!({"customer": outfit.customer.as_str(), "outfit": slots, "filters": filters}));
        }
    }
    let mut counts = [0; 4];
    for items in items.chunks(250) {
        let answer = service.ask_ok("/complete/batch", &json!({"items": items})).await;
        for (asked, answer) in items.iter().zip(answer["items"].as_array().unwrap()) {
            let features = &customers[asked["customer"].as_str().unwrap()];
            for suggestion in answer["blanks"][0]["suggestions"].as_array().unwrap() {
                let article = &suggestion["article"];
                counts[0] += usize::from(!is_of_size(article, features));
                counts[1] += usize::from(!is_of_gender(article, features));
                counts[2] += usize::from(!is_in_stock(article, size_for(article, features), None));
                counts[3] += 1;
            }
        }
    }
    counts
}

#[apply(on_sqlite)]
async fn the_demo_suggests_what_fits_and_is_in_stock(Demo(service): Demo) {
    let [sizes, genders, out_of_stock, all] = count_unavailable(&service, &json!({})).await;
    assert_eq!((sizes, genders, out_of_stock), (0, 0, 0));
    assert!(all > 5 * 1600, "{all}");
    let widened = count_unavailable(&service, &json!({"fit": false, "in_stock": false})).await;
    println!("of {} suggestions without the filters: {widened:?}", widened[3]);
    assert!(widened[..3].iter().all(|count| *count > 0), "{widened:?}");
}

/// Stores the demo's first coat with these attributes and returns its id.
async fn store_coat(service: &Service, attributes: Value) -> String {
    let coat = rows::<Article>().into_iter().find(|article| article.kind() == "coat").unwrap();
    let mut body = attributes;
    body["type"] = json!("coat");
    let put = service.put(&format!("/articles/{}", coat.id), &body).await;
    assert_eq!(put.status(), 200, "{}", put.text());
    coat.id.to_string()
}

/// A question for coats.
fn coats(features: &Value, filters: &Value) -> Value {
    let mut filters = filters.clone();
    filters["types"] = json!({"0": ["coat"]});
    json!({"outfit": [null], "features": features, "filters": filters, "k": 250})
}

#[apply(on_sqlite)]
async fn stock_follows_the_customers_size_and_the_store(Demo(service): Demo) {
    let is_suggested = async |id: &str, features: Value, filters: Value| {
        let answer = service.ask_ok("/complete", &coats(&features, &filters)).await;
        answer["blanks"][0]["suggestions"].as_array().unwrap().iter().any(|one| one["article"]["id"] == *id)
    };
    let (m, l) = (json!({"top_size": "M"}), json!({"top_size": "L"}));
    let by_size = json!({"sizes": ["S", "M", "L"], "stock": {"M": 0, "L": 3}});
    let id = store_coat(&service, by_size).await;
    assert!(!is_suggested(&id, m.clone(), json!({})).await, "it is made in M, but M is sold out");
    assert!(is_suggested(&id, l.clone(), json!({})).await);
    assert!(is_suggested(&id, json!({}), json!({})).await, "any size is in stock");
    assert!(is_suggested(&id, m.clone(), json!({"in_stock": false})).await);
    assert!(is_suggested(&id, m.clone(), json!({"fit": false})).await, "L is in stock");
    assert!(!is_suggested(&id, json!({"top_size": "XL"}), json!({"in_stock": false})).await);

    // Within a second on every replica, as any change of an article.
    store_coat(&service, json!({"sizes": ["S", "M", "L"], "stock": {"M": 1, "L": 0}})).await;
    assert!(is_suggested(&id, m.clone(), json!({})).await);
    assert!(!is_suggested(&id, l.clone(), json!({})).await);

    let by_store = json!({"stock": [{"size": "M", "store": "Zurich", "count": 2}, {"size": "L", "store": "Basel", "count": 1},
                                    {"size": "S", "count": 1}]});
    store_coat(&service, by_store).await;
    for (features, store, suggested) in [
        (&m, "zurich", true),
        (&m, "Basel", false),
        (&l, "Basel", true),
        (&json!({"top_size": "S"}), "Basel", true),
        (&json!({}), "Bern", true),
        (&l, "Bern", false),
    ] {
        let found = is_suggested(&id, features.clone(), json!({"store": store})).await;
        assert_eq!(found, suggested, "{features} in {store}");
    }
    let refused = coats(&m, &json!({"store": "Zurich", "in_stock": false}));
    let (status, problem) = service.ask("/complete", &refused).await;
    assert_eq!((status, &problem["errors"][0]["pointer"]), (422, &json!("/filters/store")));
    // `/compare` has the same filters.
    let mut compared = coats(&m, &json!({"store": "Basel"}));
    compared["methods"] = json!(["none"]);
    let answer = service.ask_ok("/compare", &compared).await;
    let suggestions = answer["columns"][0]["suggestions"].as_array().unwrap();
    assert!(!suggestions.is_empty() && suggestions.iter().all(|one| one["article"]["id"] != *id));

    store_coat(&service, json!({"stock": {"M": 5}, "in_stock": false})).await;
    assert!(!is_suggested(&id, m, json!({})).await, "the shop takes it out");
}

#[apply(on_sqlite)]
async fn what_would_widen_is_said(Demo(service): Demo) {
    let id = store_coat(&service, json!({"sizes": ["L"], "gender": "women", "stock": {"L": 0}})).await;
    let others: Vec<Value> = rows::<Article>()
        .iter()
        .filter(|article| article.kind() == "coat" && article.id.as_str() != id)
        .map(|article| json!(article.id.as_str()))
        .collect();
    let warnings = async |features: Value, mut filters: Value| {
        filters["exclude"] = json!(others);
        service.ask_ok("/complete", &coats(&features, &filters)).await["warnings"].clone()
    };
    let l = json!({"top_size": "L"});
    let warned = warnings(l.clone(), json!({})).await;
    assert_eq!(
        warned[0],
        json!({"code": "nothing-admissible",
               "detail": "no article passes the filters for slot 0; there are 1 without `in_stock` (what is in stock)"})
    );
    let warned = warnings(json!({"gender": "male", "top_size": "L"}), json!({"price": {"max": 5}})).await;
    assert_eq!(
        warned[0]["detail"],
        "no article passes the filters for slot 0; there are 1 without `price` (the price) and `fit` (what fits) and \
         `in_stock` (what is in stock)"
    );
    assert_eq!(warnings(l, json!({"in_stock": false})).await[0]["code"], "short-outfit");
    // A request with a store cannot leave out `in_stock` alone.
    let zurich = json!([{"size": "L", "store": "Zurich", "count": 2}]);
    store_coat(&service, json!({"sizes": ["L"], "stock": zurich, "in_stock": false})).await;
    assert_eq!(
        warnings(json!({"top_size": "L"}), json!({"store": "Zurich"})).await[0]["detail"],
        "no article passes the filters for slot 0; there are 1 without `in_stock` (what is in stock) and `store` (what is in \
         the store)"
    );
}

#[apply(on_sqlite)]
async fn stock_that_cannot_be_read_is_refused(service: Service) {
    for (stock, said) in [
        (json!("plenty"), "stock is a count, counts by size as in {\"M\": 3, \"L\": 0}"),
        (json!({"M": "three"}), "the stock of size \"M\" is a whole number; found \"three\""),
        (json!([{"size": "M"}]), "entry 1 of stock has no count"),
        (json!([{"size": "M", "qty": 3}]), "entry 1 has \"qty\""),
    ] {
        let body = json!({"type": "coat", "stock": stock});
        let answer = service.put("/articles/a", &body).await;
        assert_eq!(answer.status(), 422, "{body}");
        let problem: Value = answer.json();
        assert_eq!(problem["errors"][0]["pointer"], "/stock");
        assert!(problem["errors"][0]["detail"].as_str().unwrap().contains(said), "{problem}");
    }
    for (stock, stored) in [
        (json!({"M": 3.0, "L": -1}), json!({"M": 3, "L": -1})),
        (json!("{\"M\": 3}"), json!({"M": 3})),
        (json!(7), json!(7)),
        (json!([]), json!([])),
    ] {
        let body = json!({"type": "coat", "stock": stock});
        assert!(service.put("/articles/a", &body).await.is_ok(), "{body}");
        assert_eq!(service.json("/articles/a").await["stock"], stored);
    }
}

#[apply(on_sqlite)]
async fn a_size_that_nothing_has_is_warned_of(Demo(service): Demo) {
    let features = json!({"top_size": "5XL", "shoe_size": "38"});
    let answer = service.ask_ok("/complete", &coats(&features, &json!({}))).await;
    assert_eq!(answer["blanks"][0]["admissible"], 0, "never silently another size");
    let codes: Vec<&str> =
        answer["warnings"].as_array().unwrap().iter().map(|one| one["code"].as_str().unwrap()).collect();
    assert_eq!(codes[..2], ["nothing-admissible", "nothing-fits"]);
    let detail = answer["warnings"][1]["detail"].as_str().unwrap();
    assert!(detail.contains("no article fits this customer's top size: none has sizes 5xl"), "{detail}");
}

#[apply(on_sqlite)]
async fn the_pages_filter_as_well(Demo(service): Demo) {
    let id = store_coat(&service, json!({"sizes": ["S"], "name": "The only coat"})).await;
    let body = json!({"features": {"gender": "female", "top_size": "M"}});
    service.put("/customers/c-m", &body).await;
    let others: Vec<String> = rows::<Article>()
        .iter()
        .filter(|article| article.kind() == "coat" && article.id.as_str() != id)
        .map(|article| format!("&exclude={}", article.id))
        .collect();
    let others = others.concat();
    let browser = service.signed_in(Role::Admin).await;
    let studio = format!("/studio?customer=c-m&slot=&type=0:coat{others}");
    let html = browser.page(&studio).await;
    assert!(!html.contains("The only coat") && html.contains("No articles match"), "{html}");
    assert!(html.contains("Include what doesn’t fit: 1 article."), "{html}");
    assert!(!html.contains("`fit`") && !html.contains("slot 0"), "{html}");
    let words = "Suggestions fit the customer’s gender and top size. Without bottom size or shoe size in the profile, any fits.";
    assert!(html.contains(words) && html.contains("Include what doesn’t fit"), "{html}");
    let html = browser.page(&format!("{studio}&unfit=on")).await;
    assert!(
        html.contains("The only coat")
            && html.contains("id=\"unfit\" aria-describedby=\"fit-words\" checked")
    );
    // What if they were of that size?
    let html = browser.page(&format!("{studio}&if.top_size=S")).await;
    assert!(html.contains("The only coat"), "{html}");
    store_coat(&service, json!({"sizes": ["M"], "stock": {"M": 0}, "name": "The only coat"})).await;
    assert!(!browser.page(&studio).await.contains("The only coat"));
    assert!(browser.page(&format!("{studio}&sold_out=on")).await.contains("The only coat"));

    let columns = "/side-by-side?customer=c-m&slot=&type=coat&method=none&k=50";
    let html = browser.page(columns).await;
    assert!(!html.contains("The only coat"), "{html}");
    let html = browser.page(&format!("{columns}&sold_out=on")).await;
    assert!(html.contains("The only coat"), "{html}");
}
