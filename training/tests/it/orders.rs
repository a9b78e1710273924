//! Outfits from a shop's orders.

use std::{collections::BTreeSet, fmt::Write, fs};

use serde_json::Value;

use super::Home;

/// Forty articles of ten types, each with two variants, and three customers.
fn shop() -> Home {
    let home = Home::new();
    let mut articles = String::new();
    for number in 0..40 {
        let kind = number % 10;
        writeln!(
            articles,
            "{{\"id\":\"a{number}\",\"type\":\"t{kind}\",\"variants\":[{{\"id\":\"a{number}-S\"}},{{\"id\":{}}}]}}",
            9000 + number
        )
        .unwrap();
    }
    home.write("shop/articles.jsonl", &articles);
    home.write("shop/customers.csv", "id,age\nann,30\nbob,40\ncleo,50\n");
    home
}

/// The standard error of an import of these lines.
fn import(home: &Home, lines: &str, flags: &str) -> String {
    home.write("orders.csv", &format!("order,customer,article,variant,time,returned,price\n{lines}"));
    let output = home.run(&format!("import shop --orders orders.csv --out data{flags}"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stderr).unwrap()
}

/// Who bought what: the customer, the sorted articles, and the split.
fn outfits(home: &Home) -> Vec<(String, Vec<String>, String)> {
    let text = fs::read_to_string(home.at("data/outfits.jsonl")).unwrap();
    let outfit = |line: &str| {
        let row: Value = serde_json::from_str(line).unwrap();
        let articles: BTreeSet<&str> =
            row["articles"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        let text = |name: &str| row[name].as_str().unwrap().to_owned();
        (text("customer"), articles.into_iter().map(str::to_owned).collect(), text("split"))
    };
    text.lines().map(outfit).collect()
}

fn order(lines: &mut String, id: &str, customer: &str, time: &str, articles: &[&str]) {
    for article in articles {
        writeln!(lines, "{id},{customer},{article},,{time},,9.99").unwrap();
    }
}

#[test]
fn baskets_become_outfits_and_the_rest_is_counted() {
    let home = shop();
    let mut lines = String::new();
    order(&mut lines, "1", "ann", "2026-01-01", &["a0", "a1", "a2", "a3", "a0"]);
    // Variants, in the column of articles and in their own; two sizes of one article are one.
    order(&mut lines, "2", "bob", "01.02.2026 10:00", &["a10-S", "9011", "a12", "9012"]);
    lines += "2,bob,,a13-S,2026-02-01 10:00:00,no,5\n2,bob,a14,,2026-02-01,yes,5\n";
    // Two orders within a week are one outfit, a third one later is not.
    order(&mut lines, "3", "cleo", "2026-03-01", &["a20"]);
    order(&mut lines, "4", "cleo", "2026-03-06", &["a21", "a22", "a23", "a24"]);
    order(&mut lines, "5", "cleo", "2026-03-20", &["a25"]);
    // Refilled, and of strangers.
    order(&mut lines, "6", "ann", "2026-04-01", &["a3", "a2", "a1", "a0"]);
    order(&mut lines, "7", "dora", "2026-04-02", &["a0", "a1", "a2", "a4"]);
    order(&mut lines, "8", "", "2026-04-02", &["a0", "a1"]);
    order(&mut lines, "9", "bob", "2026-04-03", &["gone", "gone-too", "a30"]);
    let many: Vec<String> = (0..15).map(|number| format!("a{number}")).collect();
    order(&mut lines, "10", "bob", "2026-05-01", &many.iter().map(String::as_str).collect::<Vec<_>>());

    let said = import(&home, &lines, "");
    let lines_of_file = lines.lines().count();
    for expected in [
        format!("{lines_of_file} lines of 10 orders became 4 outfits, 1 of them from several orders"),
        "the latest 1 are for validation".to_owned(),
        "left out: 1 lines were returned".to_owned(),
        "left out: 2 lines have no customer".to_owned(),
        "left out: 4 lines have an unknown customer (the first is \"dora\")".to_owned(),
        "left out: 2 lines have an unknown article (the first is \"gone\")".to_owned(),
        "left out: 2 orders have fewer than".to_owned(),
        "left out: 1 outfits repeat one that the customer bought before".to_owned(),
        "1 outfits have more than".to_owned(),
    ] {
        assert!(said.contains(&expected), "{expected:?} is not in {said}");
    }
    assert!(!said.contains("refill"), "{said}");
    let found = outfits(&home);
    let of = |customer: &str, articles: &[&str], split: &str| {
        (customer.to_owned(), articles.iter().map(|&id| id.to_owned()).collect(), split.to_owned())
    };
    assert_eq!(found[0], of("ann", &["a0", "a1", "a2", "a3"], "train"));
    assert_eq!(found[1], of("bob", &["a10", "a11", "a12", "a13"], "train"));
    assert_eq!(found[2], of("cleo", &["a20", "a21", "a22", "a23", "a24"], "train"));
    assert_eq!((found[3].0.as_str(), found[3].2.as_str(), found.len()), ("bob", "validation", 4));
    assert!((8..15).contains(&found[3].1.len()), "{found:?}");
}

#[test]
fn orders_that_refill_one_type_are_warned_of() {
    let home = shop();
    let mut lines = String::new();
    for day in 1..9 {
        // At least three of four articles are of one type.
        order(
            &mut lines,
            &day.to_string(),
            "ann",
            &format!("2026-01-0{day}"),
            &["a7", "a17", "a27", &format!("a{}", 30 + day)],
        );
    }
    let said = import(&home, &lines, "");
    let warning = "more than half of the articles are of one type in 8 of 8 outfits, most often \"t7\"";
    assert!(said.contains(warning), "{said}");
}

#[test]
fn what_customers_had_is_what_they_bought_before() {
    let home = shop();
    let mut lines = String::new();
    for number in 0..10 {
        let articles: Vec<String> = (0..4).map(|slot| format!("a{}", (4 * number + slot) % 40)).collect();
        let articles: Vec<&str> = articles.iter().map(String::as_str).collect();
        order(&mut lines, &number.to_string(), "ann", &format!("2026-01-{:02}", number + 1), &articles);
    }
    let said = import(&home, &lines, " --validation 0.1");
    assert!(said.contains("became the feature \"had\""), "{said}");
    let had = |home: &Home, folder: &str| -> Vec<Option<usize>> {
        let text = fs::read_to_string(home.at(folder).join("outfits.jsonl")).unwrap();
        let rows = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        rows.map(|row| Some(row["features"]["had"].as_array()?.len())).collect()
    };
    // Four more with each outfit. The last, for validation, has what the customer has.
    let expected: Vec<Option<usize>> = (0..9).map(|number| Some(4 * number)).chain([None]).collect();
    assert_eq!(had(&home, "data"), expected);
    let customers = fs::read_to_string(home.at("data/customers.jsonl")).unwrap();
    let ann: Value = serde_json::from_str(customers.lines().next().unwrap()).unwrap();
    assert_eq!(ann["features"]["had"].as_array().unwrap().len(), 36);
    home.output_of("import data --out again");
    assert_eq!(had(&home, "again"), expected, "a second import does not look ahead either");
}

#[test]
fn orders_that_make_no_outfit_or_cannot_be_read_say_why() {
    let home = shop();
    let refuse = |name: &str, text: &str| {
        home.write(name, text);
        let error = home.error_of(&format!("import shop --orders {name} --out data"));
        assert!(!home.at("data").exists(), "{error}");
        error
    };
    let alone = refuse("orders.csv", "order,customer,article,time\n1,ann,a0,2026-01-01\n");
    assert!(
        alone.contains("left out: 1 orders have fewer than") && alone.contains("the orders make no outfit"),
        "{alone}"
    );
    let header = refuse("orders.csv", "id,customer,article,time\n1,ann,a0,2026-01-01\n");
    assert!(header.contains("orders need a column \"order\", found \"id\""), "{header}");
    let one_time = "{\"order\":1,\"customer\":\"ann\",\"article\":\"a0\",\"time\":\"11/21/2026\"}\n";
    let time = refuse("orders.jsonl", one_time);
    assert!(time.contains("line 1: field \"time\" must be a time such as"), "{time}");
    let mixed =
        refuse("orders.csv", "order,customer,article,time\n1,ann,a0,2026-01-01\n1,bob,a1,2026-01-01\n");
    assert!(
        mixed.contains("line 3: the order is of customer \"ann\" in an earlier line, of \"bob\" here"),
        "{mixed}"
    );
    let mut lines = "order,customer,article,variant,time,returned,price\n".to_owned();
    order(&mut lines, "1", "ann", "2026-01-01", &["a0", "a1", "a2", "a3"]);
    order(&mut lines, "2", "bob", "2026-01-01", &["a0", "a1", "a2", "a3"]);
    assert!(refuse("orders.csv", &lines).contains("all orders are of one time"));
}
