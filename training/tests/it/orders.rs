//! Outfits from a shop's orders.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Home, assert_has};

/// Forty articles of ten types, each with two variants, and three customers.
fn shop() -> Home {
    let home = Home::new();
    let article = |number| {
        let variants = json!([{"id": format!("a{number}-S")}, {"id": 9000 + number}]);
        json!({"id": format!("a{number}"), "type": format!("t{}", number % 10), "variants": variants})
    };
    home.write_rows("shop/articles.jsonl", (0..40).map(article));
    home.write("shop/customers.csv", "id,age\nann,30\nbob,40\ncleo,50\n");
    home
}

const HEADER: &str = "order,customer,article,variant,time,returned,price\n";

/// The standard error of an import of these lines.
fn import(home: &Home, lines: &str, flags: &str) -> String {
    home.write("orders.csv", format!("{HEADER}{lines}"));
    home.outputs_of(&format!("import shop --orders orders.csv --out data{flags}")).1
}

/// The lines of an order of articles, joined by spaces.
fn order(id: usize, customer: &str, time: &str, articles: &str) -> String {
    let line = |article| format!("{id},{customer},{article},,{time},,9.99\n");
    articles.split(' ').map(line).collect()
}

#[test]
fn baskets_become_outfits_and_the_rest_is_counted() {
    let home = shop();
    let many = (0..15).map(|number| format!("a{number}")).collect::<Vec<_>>().join(" ");
    let lines = [
        order(1, "ann", "2026-01-01", "a0 a1 a2 a3 a0"),
        // Variants, in the column of articles and in their own; two sizes of one article are one.
        order(2, "bob", "01.02.2026 10:00", "a10-S 9011 a12 9012"),
        "2,bob,,a13-S,2026-02-01 10:00:00,no,5\n2,bob,a14,,2026-02-01,yes,5\n".to_owned(),
        // Two orders within a week are one outfit, a third one later is not.
        order(3, "cleo", "2026-03-01", "a20"),
        order(4, "cleo", "2026-03-06", "a21 a22 a23 a24"),
        order(5, "cleo", "2026-03-20", "a25"),
        // Refilled, and of strangers.
        order(6, "ann", "2026-04-01", "a3 a2 a1 a0"),
        order(7, "dora", "2026-04-02", "a0 a1 a2 a4"),
        order(8, "", "2026-04-02", "a0 a1"),
        order(9, "bob", "2026-04-03", "gone gone-too a30"),
        order(10, "bob", "2026-05-01", &many),
    ]
    .concat();
    let said = import(&home, &lines, "");
    let became = "lines of 10 orders became 4 outfits, 1 of them from several orders";
    let expected = [
        &format!("{} {became}", lines.lines().count()),
        "the latest 1 are for validation",
        "left out: 1 lines were returned",
        "left out: 2 lines have no customer",
        "left out: 4 lines have an unknown customer (the first is \"dora\")",
        "left out: 2 lines have an unknown article (the first is \"gone\")",
        "left out: 2 orders have fewer than",
        "left out: 1 outfits repeat one that the customer bought before",
        "1 outfits have more than",
    ];
    assert_has(&said, &expected);
    assert!(!said.contains("refill"), "{said}");
    let outfits = home.rows("data/outfits.jsonl");
    let found = outfits.iter().map(|outfit| {
        let articles: BTreeSet<&str> =
            outfit["articles"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        json!([outfit["customer"], outfit["split"], articles])
    });
    let found: Vec<Value> = found.collect();
    let expected = [
        json!(["ann", "train", ["a0", "a1", "a2", "a3"]]),
        json!(["bob", "train", ["a10", "a11", "a12", "a13"]]),
        json!(["cleo", "train", ["a20", "a21", "a22", "a23", "a24"]]),
    ];
    assert_eq!(found[..3], expected);
    let [last] = &found[3..] else { panic!("{found:?}") };
    assert_eq!((&last[0], &last[1]), (&json!("bob"), &json!("validation")));
    assert!((8..15).contains(&last[2].as_array().unwrap().len()), "{last}");
}

#[test]
fn orders_that_refill_one_type_are_warned_of() {
    let home = shop();
    // At least three of four articles are of one type.
    let lines =
        (1..9).map(|day| order(day, "ann", &format!("2026-01-0{day}"), &format!("a7 a17 a27 a{}", 30 + day)));
    let said = import(&home, &lines.collect::<String>(), "");
    let warning = "more than half of the articles are of one type in 8 of 8 outfits, most often \"t7\"";
    assert_has(&said, &[warning]);
}

#[test]
fn what_customers_had_is_what_they_bought_before() {
    let home = shop();
    let lines = (0..10).map(|number| {
        let articles: Vec<String> = (4 * number..4 * number + 4).map(|at| format!("a{at}")).collect();
        order(number, "ann", &format!("2026-01-{:02}", number + 1), &articles.join(" "))
    });
    let said = import(&home, &lines.collect::<String>(), " --validation 0.1");
    assert_has(&said, &["became the feature \"had\""]);
    let had = |table: &str| -> Vec<Option<usize>> {
        let rows = home.rows(&format!("{table}.jsonl"));
        rows.iter().map(|row| Some(row["features"]["had"].as_array()?.len())).collect()
    };
    // Four more with each outfit. The last, for validation, has what the customer has.
    let expected: Vec<Option<usize>> = (0..9).map(|number| Some(4 * number)).chain([None]).collect();
    assert_eq!(had("data/outfits"), expected);
    assert_eq!(had("data/customers")[0], Some(36));
    home.output_of("import data --out again");
    assert_eq!(had("again/outfits"), expected, "a second import does not look ahead either");
}

#[test]
fn orders_that_make_no_outfit_or_cannot_be_read_say_why() {
    let home = shop();
    let [ann, bob] = [(1, "ann"), (2, "bob")].map(|(id, name)| order(id, name, "2026-01-01", "a0 a1 a2 a3"));
    for (name, text, reasons) in [
        (
            "orders.csv",
            "order,customer,article,time\n1,ann,a0,2026-01-01\n",
            &["left out: 1 orders have fewer than", "the orders make no outfit"][..],
        ),
        (
            "orders.csv",
            "id,customer,article,time\n1,ann,a0,2026-01-01\n",
            &["orders need a column \"order\", found \"id\""],
        ),
        (
            "orders.jsonl",
            r#"{"order":1,"customer":"ann","article":"a0","time":"11/21/2026"}"#,
            &["line 1: field \"time\" must be a time such as"],
        ),
        (
            "orders.csv",
            "order,customer,article,time\n1,ann,a0,2026-01-01\n1,bob,a1,2026-01-01\n",
            &["line 3: the order is of customer \"ann\" in an earlier line, of \"bob\" here"],
        ),
        ("orders.csv", &format!("{HEADER}{ann}{bob}"), &["all orders are of one time"]),
        (
            "orders.csv",
            &[
                HEADER,
                &ann,
                &order(2, "bob", "2026-02-01", "a0 a1 a2 a3"),
                &order(3, "bob", "2099-01-01", "a0"),
            ]
            .concat(),
            &["line 10: the time 2099-01-01", " is in the future"],
        ),
    ] {
        home.write(name, text);
        home.assert_refused(&format!("import shop --orders {name} --out data"), reasons);
        assert!(!home.at("data").exists(), "{text}");
    }
}
