//! What fits a customer and is in stock for them: other articles are suggested only on request.

use std::collections::BTreeMap;

use atelier_core::domain::{Article, Outfit, Role};
use rand::{Rng, SeedableRng, rngs::StdRng, seq::IndexedRandom};
use serde_json::{Value, json};

use crate::harness::{
    Demo, Html, Service, apply, ids,
    json::{codes, list, text, with},
    on_sqlite, rows,
};

/// Perhaps gives an object a member.
fn set(draws: &mut StdRng, object: &mut Value, name: &str, chance: f64, values: &[&str]) {
    if draws.random_bool(chance) {
        object[name] = json!(values.choose(draws));
    }
}

const BOTTOMS: &str = "jeans trousers chinos shorts skirt leggings";
const SHOES: &str = "sneaker boot loafer lace-up heel ballerina sandal";
const WITHOUT_SIZES: &str = "bag backpack belt scarf hat beanie cap jewellery watch sunglasses tights";

/// The feature that is the size for articles of this type, and some sizes.
fn scale(kind: &str) -> Option<(&'static str, &'static [&'static str])> {
    let is_one_of = |kinds: &str| kinds.split(' ').any(|other| other == kind);
    match kind {
        _ if is_one_of(BOTTOMS) => Some(("bottom_size", &["29", "30", "31"])),
        _ if is_one_of(SHOES) => Some(("shoe_size", &["38", "38,5", "39", "40"])),
        _ if is_one_of(WITHOUT_SIZES) => None,
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
    let Some(size) = size_for(article, features) else { return true };
    let sizes = match &article["sizes"] {
        Value::Array(sizes) => &sizes[..],
        one => std::slice::from_ref(one),
    };
    sizes.is_empty() || sizes.iter().any(|one| one.is_null() || same(one, size) || is_one_size(one))
}

fn is_of_gender(article: &Value, features: &Value) -> bool {
    match (features["gender"].as_str(), article["gender"].as_str()) {
        (None | Some("diverse"), _) | (_, None | Some("unisex")) => true,
        (Some(gender), Some(wearer)) => (gender == "female") == (wearer == "women"),
    }
}

fn is_in_stock(article: &Value, size: Option<&str>, store: Option<&str>) -> bool {
    let entries = match &article["stock"] {
        Value::Null => return article["in_stock"] != false,
        Value::Object(sizes) => {
            sizes.iter().map(|(size, count)| json!({"size": size, "count": count})).collect()
        }
        Value::Array(entries) => entries.clone(),
        count => vec![json!({"count": count})],
    };
    // Beside counts of sizes, one without a size is a total.
    let is_of_size = |entry: &Value| !entry["size"].is_null() && !is_one_size(&entry["size"]);
    let counts_sizes = entries.iter().any(is_of_size);
    let takes = |entry: &Value| match size {
        Some(size) if is_of_size(entry) => same(&entry["size"], size),
        Some(_) => !counts_sizes,
        None => true,
    };
    let is_in =
        |entry: &Value| store.is_none_or(|store| entry["store"].is_null() || same(&entry["store"], store));
    let mut stocked = entries.iter().filter(|entry| entry["count"] != 0);
    article["in_stock"] != false && stocked.any(|entry| is_in(entry) && takes(entry))
}

/// Whether the article may be suggested, by the filters as the request writes them.
fn may_be_suggested(article: &Value, features: &Value, filters: &Value) -> bool {
    let fit = filters["fit"] != false;
    let fits = !fit || (is_of_size(article, features) && is_of_gender(article, features));
    let size = if fit { size_for(article, features) } else { None };
    fits && (filters["in_stock"] == false || is_in_stock(article, size, filters["store"].as_str()))
}

fn draw_article(draws: &mut StdRng, id: &str, kind: &str) -> Value {
    let mut article = json!({"id": id, "type": kind, "price": draws.random_range(10..200)});
    let sizes = scale(kind).map_or(&["one"][..], |(_, sizes)| sizes);
    let sizes = if draws.random_bool(0.05) { &["One Size", "O/S"] } else { sizes };
    match draws.random_range(0..10) {
        0 | 1 => {}
        2 => article["sizes"] = json!(sizes.choose(draws)),
        3 => article["sizes"] = json!([]),
        _ => {
            let some = sizes.iter().filter(|_| draws.random_bool(0.6));
            article["sizes"] = some.map(|size| size.to_lowercase()).collect();
        }
    }
    set(draws, &mut article, "gender", 0.85, &["women", "men", "unisex"]);
    if draws.random_bool(0.4) {
        article["in_stock"] = json!(draws.random_bool(0.7));
    }
    let entries = draws.random_range(0..4);
    match draws.random_range(0..5) {
        0 => {}
        1 => article["stock"] = json!(draws.random_range(0..3)),
        2 => {
            let mut count = || json!(draws.random_range(0..2));
            article["stock"] = sizes.iter().map(|size| ((*size).to_owned(), count())).collect();
        }
        _ => {
            let entry = |_| {
                let mut entry = json!({"count": draws.random_range(0..2)});
                set(draws, &mut entry, "size", 0.8, sizes);
                set(draws, &mut entry, "store", 0.7, &["Zurich", "basel"]);
                entry
            };
            article["stock"] = (0..entries).map(entry).collect();
        }
    }
    article
}

fn draw_features(draws: &mut StdRng) -> Value {
    let mut features = json!({});
    for (name, values) in [
        ("gender", &["female", "male", "diverse"][..]),
        ("top_size", &["S", "M", "L", "XL"]),
        ("bottom_size", &["29", "30", "31"]),
        ("shoe_size", &["38", "39", "40"]),
    ] {
        set(draws, &mut features, name, 0.75, values);
    }
    features
}

fn draw_filters(draws: &mut StdRng) -> Value {
    let mut filters = json!({});
    for name in ["fit", "in_stock"] {
        if draws.random_bool(0.33) {
            filters[name] = json!(draws.random_bool(0.5));
        }
    }
    if filters["in_stock"] != false {
        set(draws, &mut filters, "store", 0.4, &["zurich", "BASEL", "elsewhere"]);
    }
    if draws.random_bool(0.6) {
        let kind = ["t-shirt", "jeans", "sneaker", "bag"].choose(draws);
        filters["types"] = json!({"1": [kind, "coat"]});
    }
    filters
}

/// Stores the demo's articles with sizes, stock and prices that are drawn, and returns them by their ids.
async fn store_drawn(service: &Service, draws: &mut StdRng) -> BTreeMap<String, Value> {
    let articles: BTreeMap<String, Value> = rows::<Article>()
        .iter()
        .map(|article| (article.id.to_string(), draw_article(draws, article.id.as_str(), article.kind())))
        .collect();
    store_all(service, articles.values()).await;
    articles
}

/// Random articles, customers and filters, compared with the rules as this file writes them down.
#[apply(on_sqlite)]
async fn nothing_that_is_unavailable_is_suggested_unless_asked_for(Demo(service): Demo) {
    let mut draws = StdRng::seed_from_u64(20);
    let articles = store_drawn(&service, &mut draws).await;
    let worn: Vec<String> = rows::<Outfit>()[0].articles().iter().map(ToString::to_string).collect();
    let (mut excluded, mut widened) = (0, 0);
    for _ in 0..4 {
        let mut question = || {
            json!({"outfit": [worn[0], null, worn[2]], "features": draw_features(&mut draws), "k": 250,
                   "filters": draw_filters(&mut draws)})
        };
        let items: Vec<Value> = (0..75).map(|_| question()).collect();
        let answer = service.ask_ok("/complete/batch", json!({"items": items})).await;
        for (asked, answer) in items.iter().zip(list(&answer["items"])) {
            let (features, filters, blank) = (&asked["features"], &asked["filters"], &answer["blanks"][0]);
            let types = filters["types"]["1"].as_array();
            let candidates = articles.iter().filter(|(id, article)| {
                types.is_none_or(|types| types.contains(&article["type"]))
                    && **id != worn[0]
                    && **id != worn[2]
            });
            let (allowed, others): (Vec<_>, Vec<_>) =
                candidates.partition(|(_, article)| may_be_suggested(article, features, filters));
            assert_eq!(blank["admissible"], allowed.len(), "{asked}: {answer:#}");
            let suggestions = list(&blank["suggestions"]);
            assert_eq!(suggestions.len(), allowed.len().min(250));
            for suggestion in suggestions {
                let article = &articles[text(&suggestion["article"]["id"])];
                assert!(may_be_suggested(article, features, filters), "{asked}: {article}");
                assert_eq!(suggestion["article"], *article, "the article as it is stored");
                widened += usize::from(!may_be_suggested(article, features, &json!({})));
            }
            excluded += others.len();
            let is_unknown = codes(&answer["warnings"]).contains(&"unknown-store");
            assert_eq!(is_unknown, filters["store"] == "elsewhere", "{answer:#}");
        }
    }
    assert!(excluded > 10_000 && widened > 1000, "{excluded} {widened}");

    // The same for sets, diverse suggestions and a total price.
    let total = articles[&worn[0]]["price"].as_i64().unwrap() + 250;
    let mut question = || {
        let filters = with(draw_filters(&mut draws), json!({"price": {"total": total}}));
        let diversity = [0.0, 0.6].choose(&mut draws);
        json!({"outfit": [worn[0], null, null], "features": draw_features(&mut draws), "filters": filters, "k": 20,
               "sets": 4, "diversity": diversity})
    };
    let items: Vec<Value> = (0..24).map(|_| question()).collect();
    let answer = service.ask_ok("/complete/batch", json!({"items": items})).await;
    let (mut alone, mut in_sets) = (0, 0);
    for (asked, answer) in items.iter().zip(list(&answer["items"])) {
        let found: Vec<_> = list(&answer["blanks"]).iter().flat_map(|one| ids(&one["suggestions"])).collect();
        let sets = answer["sets"].as_array().into_iter().flatten();
        let placed: Vec<_> = sets.flat_map(|set| ids(&set["articles"])).collect();
        (alone, in_sets) = (alone + found.len(), in_sets + placed.len());
        for article in found.iter().chain(&placed).map(|id| &articles[id]) {
            assert!(may_be_suggested(article, &asked["features"], &asked["filters"]), "{asked}: {article}");
        }
    }
    assert!(alone > 200 && in_sets > 40, "{alone} {in_sets}");
}

/// The articles of these types that are suggested for a customer with these features, of those that a test stored: their ids
/// begin with `new-`.
async fn suggested_of(service: &Service, types: &[&str], features: Value) -> Vec<String> {
    let body = json!({"outfit": [null], "features": features, "filters": {"types": {"0": types}}, "k": 250});
    let all = ids(&service.suggest(body).await);
    let mut found: Vec<String> = all.iter().filter_map(|id| Some(id.strip_prefix("new-")?.into())).collect();
    found.sort_unstable();
    found
}

async fn store_all<'a>(service: &Service, articles: impl IntoIterator<Item = &'a Value>) -> Value {
    let lines: Vec<String> = articles.into_iter().map(Value::to_string).collect();
    service.lines("/articles/bulk", lines.join("\n")).ok().await
}

#[apply(on_sqlite)]
async fn sizes_and_types_are_compared_as_shops_write_them(Demo(service): Demo) {
    let articles = [
        json!({"id": "new-comma", "type": "Sneakers", "sizes": ["40,5"], "stock": {"40,5": 3}}),
        json!({"id": "new-point", "type": "sneaker", "sizes": ["40.5", "41"], "stock": {"40,5": 1, "41": 0}}),
        json!({"id": "new-one", "type": "SNEAKER", "sizes": ["One Size"], "stock": {"OS": 2}}),
        json!({"id": "new-rain", "type": "Rain Jackets", "sizes": ["M"], "gender": "women"}),
        json!({"id": "new-cape", "type": "Cape/Poncho"}),
    ];
    let stored = store_all(&service, &articles).await;
    assert!(!stored["warnings"].to_string().contains("in any size"), "{stored}");
    let rain = &["Rain Jackets", "rain-jacket"][..];
    for (types, features, expected) in [
        (&["sneaker"][..], json!({"shoe_size": "40,5"}), &["comma", "one", "point"][..]),
        (&["Sneakers"], json!({"shoe_size": "40.5"}), &["comma", "one", "point"]),
        (&["sneaker"], json!({"shoe_size": "41"}), &["one"]),
        (&["sneaker"], json!({"shoe_size": "5"}), &["one"]),
        (&rain[..1], json!({"top_size": "M"}), &["rain"]),
        (&rain[1..], json!({"top_size": "L"}), &[]),
        (&rain[1..], json!({"nogo_types": ["rain-jacket"]}), &[]),
        (&["Ponchos"], json!({}), &["cape"]),
        (&["poncho"], json!({"nogo_types": ["CAPE"]}), &[]),
    ] {
        let found = suggested_of(&service, types, features.clone()).await;
        assert_eq!(found, expected, "{types:?} for {features}");
    }
}

#[apply(on_sqlite)]
async fn sizes_that_no_customer_is_asked_for_are_warned_of(Demo(service): Demo) {
    let articles = [
        json!({"id": "new-1", "type": "Jacken", "sizes": ["38"]}),
        json!({"id": "new-2", "type": "Jacken", "sizes": ["40"]}),
        json!({"id": "new-3", "type": "Schals", "sizes": ["One Size"]}),
        json!({"id": "new-4", "type": "parka", "sizes": ["M"]}),
        json!({"id": "new-5", "type": "Hosen", "sizes": ["42"]}),
    ];
    let stored = store_all(&service, &articles).await;
    let expected = "customers get 3 articles in any size, because the schema of release demo requires sizes of none of these \
                    types: \"Jacken\", \"Hosen\"";
    assert!(list(&stored["warnings"]).iter().any(|warning| warning["detail"] == expected), "{stored:#}");
    assert_eq!(suggested_of(&service, &["Jacken"], json!({"top_size": "M"})).await, ["1", "2"]);
    for (article, pointer, said) in [
        (json!({"type": "Jacken", "sizes": ["38"]}), "/type", "in any size"),
        (json!({"type": "Jacken", "stock": {"38": 1, "40": 0}}), "/type", "in any size"),
        (json!({"type": "parka", "sizes": [["S"], true]}), "/sizes", "must be a text, a number or a list"),
        (json!({"type": "parka", "gender": true}), "/gender", "so the article fits every customer"),
        (json!({"type": "parka", "gender": "Damen"}), "/gender", "gender \"damen\" is not one of the words"),
        (json!({"type": "parka", "embedding": [0.1, 0.2]}), "/embedding", "demo was trained with none"),
    ] {
        let stored = service.put("/articles/new-6", &article).await.json();
        let warned =
            |warning: &Value| warning["pointer"] == pointer && text(&warning["detail"]).contains(said);
        assert!(list(&stored["warnings"]).iter().any(warned), "{article}: {stored:#}");
    }
}

/// Stores the demo's first coat with these attributes and returns its id, and those of the other coats.
async fn store_coat(service: &Service, attributes: Value) -> (String, Vec<String>) {
    let mut coats: Vec<String> = rows::<Article>()
        .iter()
        .filter(|article| article.kind() == "coat")
        .map(|article| article.id.to_string())
        .collect();
    let first = coats.remove(0);
    service.put(format!("/articles/{first}"), with(attributes, json!({"type": "coat"}))).is(200).await;
    (first, coats)
}

#[apply(on_sqlite)]
async fn what_would_widen_is_said(Demo(service): Demo) {
    let sold_out = json!({"sizes": ["L"], "gender": "women", "stock": {"L": 0}});
    // A request with a store cannot leave out `in_stock` alone.
    let elsewhere =
        json!({"sizes": ["L"], "stock": [{"size": "L", "store": "Zurich", "count": 2}], "in_stock": false});
    let (l, man) = (json!({"top_size": "L"}), json!({"gender": "male", "top_size": "L"}));
    for (coat, features, filters, widening) in [
        (&sold_out, &l, json!({}), "`in_stock` (what is in stock)"),
        (
            &sold_out,
            &man,
            json!({"price": {"max": 5}}),
            "`price` (the price) and `fit` (what fits) and `in_stock` (what is in stock)",
        ),
        (
            &elsewhere,
            &l,
            json!({"store": "Zurich"}),
            "`in_stock` (what is in stock) and `store` (what is in the store)",
        ),
        (&sold_out, &l, json!({"in_stock": false}), ""),
    ] {
        let (_, others) = store_coat(&service, coat.clone()).await;
        let filters = with(filters, json!({"types": {"0": ["coat"]}, "exclude": others}));
        let asked = json!({"outfit": [null], "features": features, "filters": filters, "k": 250});
        let warning = service.complete(asked).await["warnings"][0].take();
        if widening.is_empty() {
            assert_eq!(warning["code"], "short-outfit", "{filters}");
        } else {
            let detail = format!("no article passes the filters for slot 0; there are 1 without {widening}");
            assert_eq!(warning, json!({"code": "nothing-admissible", "detail": detail}), "{filters}");
        }
    }
}

#[apply(on_sqlite)]
async fn a_size_that_nothing_has_is_warned_of(Demo(service): Demo) {
    let asked = json!({"outfit": [null], "features": {"top_size": "5XL", "shoe_size": "38"},
                       "filters": {"types": {"0": ["coat"]}}});
    let answer = service.complete(asked).await;
    assert_eq!(answer["blanks"][0]["admissible"], 0, "never silently another size");
    assert_eq!(codes(&answer["warnings"])[..2], ["nothing-admissible", "nothing-fits"]);
    let detail = text(&answer["warnings"][1]["detail"]);
    assert!(detail.contains("no article fits this customer's top size: none has sizes 5xl"), "{detail}");
}

#[apply(on_sqlite)]
async fn the_pages_filter_as_well(Demo(service): Demo) {
    let (_, others) = store_coat(&service, json!({"sizes": ["S"], "name": "The only coat"})).await;
    let features = json!({"features": {"gender": "female", "top_size": "M"}});
    service.put("/customers/c-m", features).await;
    let others: String = others.iter().map(|id| "&exclude=".to_owned() + id).collect();
    let browser = service.signed_in(Role::Admin).await;
    let studio = format!("/studio?customer=c-m&slot=&type=0:coat{others}");
    let words = [
        "No articles match",
        "Include what doesn’t fit: 1 article.",
        "Suggestions fit the customer’s gender and top size. Without bottom size or shoe size in the profile, any fits.",
    ];
    let sizes = ["<div><dt>Gender</dt><dd>female</dd></div><div><dt>Top size</dt><dd>M</dd></div>"];
    browser.page("/studio?customer=c-m").await.has(sizes);
    browser.page(&studio).await.has(words).lacks(["The only coat", "`fit`", "slot 0"]);
    let unfit = ["id=\"unfit\" aria-describedby=\"fit-words\" checked", "The only coat"];
    browser.page(format!("{studio}&unfit=on")).await.has(unfit);
    browser.page(format!("{studio}&if.top_size=S")).await.has(["The only coat"]);
    store_coat(&service, json!({"sizes": ["M"], "stock": {"M": 0}, "name": "The only coat"})).await;
    for page in [studio.as_str(), "/side-by-side?customer=c-m&slot=&type=coat&method=none&k=50"] {
        for (more, is_shown) in [("", false), ("&sold_out=on", true)] {
            let html = browser.page(format!("{page}{more}")).await;
            assert_eq!(html.contains("The only coat"), is_shown, "{page}{more}");
        }
    }
}
