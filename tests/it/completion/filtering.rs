//! Lists of articles with conditions.

use serde_json::{Value, json};

use crate::harness::{
    Service, apply, contract,
    json::{list, text},
    on_sqlite,
};

fn ids(page: &Value) -> Vec<String> {
    list(&page["items"]).iter().map(|item| text(&item["id"]).to_owned()).collect()
}

#[apply(contract)]
async fn a_list_has_what_its_conditions_admit(service: Service) {
    for article in [
        json!({"id": "a", "type": "coat", "colour": "Navy", "price": 79.9, "in_stock": true, "sizes": ["S", "M"]}),
        json!({"id": "b", "type": "coat", "colour": "red", "price": 79, "name": "Navy Seal", "sizes": ["L"]}),
        json!({"id": "c", "type": "Coat", "colour": "navy blue", "in_stock": false, "stock": {"M": 1}}),
        json!({"id": "d", "type": "rain coat", "colour": "ÄRMELGRÜN 50%", "a:b": "x_y", "code": "79"}),
        json!({"id": "e", "type": "bag", "material": [["nylon"], {"outer": "Lea\u{200e}ther"}]}),
    ] {
        service.put(format!("/articles/{}", text(&article["id"])), &article).is(201).await;
    }
    for (query, found) in [
        ("type=coat", &["a", "b"][..]),
        ("type=rain%20coat", &["d"]),
        ("type=%00", &[]),
        ("where=colour:navy", &["a"]),
        ("where=colour:NAVY%20blue", &["c"]),
        ("where=colour:%C3%A4rmelgr%C3%BCn%2050%25", &["d"]),
        ("where=sizes:m", &["a"]),
        ("where=price:79", &["b"]),
        ("where=price:79.9&where=colour:navy", &["a"]),
        ("where=price:79&where=colour:navy", &[]),
        ("where=code:79", &["d"]),
        ("where=in_stock:false", &["c"]),
        ("where=in_stock:TRUE&type=coat", &["a"]),
        ("where=type:COAT", &["a", "b", "c"]),
        ("where=stock:1", &["c"]),
        ("where=material:LEATHER", &["e"]),
        ("search=%EF%BC%AC%EF%BD%85ather", &["e"]),
        ("where=nothing:such", &[]),
        ("search=navy&type=coat&where=sizes:L", &["b"]),
        ("search=coat&where=colour:red", &["b"]),
    ] {
        assert_eq!(ids(&service.json(format!("/articles?{query}")).await), found, "{query}");
    }
}

#[apply(contract)]
async fn filtered_pages_continue_at_the_cursor(service: Service) {
    // Every fourth is navy, every fifth is not in stock; more than a page of the database's.
    let line = |n: usize| {
        let colour = if n.is_multiple_of(4) { "navy" } else { "red" };
        format!("{}\n", json!({"id": format!("a-{n:04}"), "type": "coat", "colour": colour, "n": n % 5}))
    };
    let lines: String = (0..2500).map(line).collect();
    service.lines("/articles/bulk", lines).is(200).await;
    for (query, every) in [("where=colour:navy", 4), ("where=n:0", 5), ("where=n:0&where=colour:navy", 20)] {
        let (mut found, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = service.json(format!("/articles?type=coat&n=90&{query}{cursor}")).await;
            found.extend(ids(&page));
            let Value::String(next) = &page["next_cursor"] else { break };
            assert_eq!(ids(&page).len(), 90);
            cursor = format!("&cursor={next}");
        }
        let all: Vec<String> = (0..2500).step_by(every).map(|n| format!("a-{n:04}")).collect();
        assert_eq!(found, all, "{query}");
    }
}

#[apply(on_sqlite)]
async fn wrong_conditions_are_refused(service: Service) {
    let many = "&where=a:b".repeat(17);
    for query in ["where=navy", "where=:navy", "where=colour:", "where=", &*many] {
        let problem = service.get(format!("/articles?{query}")).is(422).await.json();
        assert_eq!(problem["errors"][0]["parameter"], "where", "{query}: {problem}");
    }
    service.get("/articles?type=a&type=b").is(422).await;
}
