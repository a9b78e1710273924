//! Checks across rows and files.

use std::fmt::Write as _;

use atelier_core::domain::{Customer, CustomerId, Outfit};

use super::*;

fn checker() -> Checker {
    Checker::new([ArticleId::new("old").unwrap()], [CustomerId::new("regular").unwrap()])
}

#[test]
fn references_and_repeated_ids_are_checked_over_the_files() {
    let folder = Folder::new();
    let articles = folder.file("a.csv", "id,type\na,coat\nb,coat\nc,coat\na,hat\nold,hat\n");
    let customers = folder.file("c.csv", "id,mood\nc-1,x\nc-2,y\nc-1,z\n");
    let outfits = folder.file(
        "o.jsonl",
        "{\"customer\":\"c-1\",\"articles\":[\"a\",\"b\",\"c\",\"old\"]}\n\
         {\"customer\":\"c-9\",\"articles\":[\"a\",\"b\",\"x\",\"y\"]}\n\
         {\"customer\":\"regular\",\"articles\":[\"a\",\"b\",\"c\",\"old\"]}\n",
    );
    let mut checker = checker();
    let found: Vec<Article> = checker.check(open(&articles)).map(Result::unwrap).collect();
    assert_eq!(found.iter().map(|a| a.id.as_str()).collect::<Vec<_>>(), ["a", "b", "c", "old"]);
    assert_eq!(found[0].kind(), "coat", "the first one counts");
    assert_eq!(checker.check(open::<Customer>(&customers)).map(Result::unwrap).count(), 2);
    let mut rows = checker.check(open::<Outfit>(&outfits));
    assert_eq!(rows.by_ref().map(Result::unwrap).count(), 2);
    assert_eq!(rows.progress().0, rows.progress().1);
    let report = checker.report();
    assert_eq!((report.good, report.bad), (8, 3));
    let messages: Vec<String> = report.errors.iter().map(|bad| bad.first.to_string()).collect();
    assert_eq!(
        messages,
        [
            "line 5: article \"a\" is already in line 2",
            "line 4: customer \"c-1\" is already in line 2",
            "line 2: customer \"c-9\" is unknown; article \"x\" is not in the catalogue; \
             article \"y\" is not in the catalogue",
        ]
    );
    assert_eq!(report.errors[2].to_string(), format!("{}, {}", outfits.display(), messages[2]));
    let [mood] = report.warnings.as_slice() else { panic!("one warning, found {:?}", report.warnings) };
    assert_eq!(
        mood.to_string(),
        format!("{}, line 2: the schema has no feature \"mood\"; models do not see it", customers.display())
    );
    assert_eq!(mood.rows, 2);
}

#[test]
fn a_retired_id_that_is_a_variants_names_its_article() {
    let folder = Folder::new();
    let articles = folder.file(
        "a.jsonl",
        "{\"id\":\"tee\",\"type\":\"shirt\",\"variants\":[{\"id\":\"tee-s\",\"size\":\"S\"}]}\n",
    );
    let outfits =
        folder.file("o.jsonl", "{\"customer\":\"regular\",\"articles\":[\"tee-s\",\"old\",\"gone\"]}\n");
    let retired = ids(["tee-s", "gone"]);
    let mut checker = checker().with_retired(&retired);
    assert_eq!(checker.check(open::<Article>(&articles)).map(Result::unwrap).count(), 1);
    let found: Vec<Outfit> = checker.check(open(&outfits)).map(Result::unwrap).collect();
    let articles: Vec<&str> = found[0].articles().iter().map(ArticleId::as_str).collect();
    assert_eq!(articles, ["tee", "old", "gone"]);
}

#[test]
fn a_repeated_outfit_is_kept_and_warned_of() {
    let folder = Folder::new();
    let row = |articles: &str, rest: &str| {
        format!("{{\"customer\":\"regular\",\"articles\":[{articles}]{rest}}}\n")
    };
    let (one, turned) = ("\"a\",\"b\",\"c\",\"d\"", "\"d\",\"c\",\"b\",\"a\"");
    let office = ",\"features\":{\"occasion\":\"office\"}";
    let rows = [
        row(one, ""),
        row(one, office),
        row(turned, ""),
        row(one, ",\"features\":{\"occasion\":\"wedding\"}"),
        row(one, ",\"features\":{\"occasion\":\"office\"},\"split\":null"),
        row("\"a\",\"b\",\"c\",\"e\"", ",\"split\":\"train\""),
        row("\"a\",\"b\",\"c\",\"e\"", ",\"split\":\"validation\""),
        row("\"e\",\"b\",\"c\",\"a\"", ",\"split\":\"train\""),
        row(one, ",\"split\":\"validation\""),
    ];
    let outfits = folder.file("o.jsonl", rows.concat());
    let new = || Checker::new(ids(["a", "b", "c", "d", "e"]), [CustomerId::new("regular").unwrap()]);
    let mut checker = new();
    let kept: Vec<Outfit> = checker.check(open(&outfits)).map(Result::unwrap).collect();
    assert_eq!(kept.len(), rows.len(), "all of them are kept");
    let report = checker.report();
    assert_eq!((report.good, report.bad), (9, 0));
    let messages: Vec<_> = report.warnings.iter().map(|noted| (noted.to_string(), noted.rows)).collect();
    let path = outfits.display();
    assert_eq!(
        messages,
        [
            (format!("{path}, line 3: this outfit repeats line 1"), 3),
            (
                format!(
                    "{path}, line 7: this outfit repeats line 6, which is in another split: models would be \
                     tested on an outfit they have learned"
                ),
                2
            ),
        ]
    );
    // A Parquet file has rows and no lines.
    let (path, mut checker) = (folder.rows("o.parquet", &kept), new());
    assert_eq!(checker.check(open::<Outfit>(&path)).count(), rows.len());
    let (warning, path) = (checker.report().warnings[0].to_string(), path.display());
    assert_eq!(warning, format!("{path}, row 3: this outfit repeats row 1"));
}

#[test]
fn a_value_that_a_row_repeats_counts_once() {
    let folder = Folder::new();
    let path = folder.file("c.csv", "id,preferred_colours\nc-1,mauve|mauve\nc-2,red\nc-3,mauve|red|mauve\n");
    let mut checker = checker();
    assert_eq!(checker.check(open::<Customer>(&path)).map(Result::unwrap).count(), 3);
    let [mauve] = checker.report().warnings.as_slice() else { panic!("one warning") };
    assert_eq!((mauve.line, mauve.rows), (2, 2));
}

#[test]
fn many_errors_of_a_kind_do_not_hide_others() {
    let folder = Folder::new();
    let mut customers = String::from("id,age\nc-1,28\n");
    for n in 2..9000 {
        writeln!(customers, "c-{n},\"old; \"\"{n}\"\" found\"").unwrap();
    }
    customers += "c-1,29\nc-9,30,31\nc-1,29\n";
    let customers = folder.file("c.csv", customers);
    let mut outfits = String::new();
    for n in 1..40 {
        writeln!(outfits, "{{\"customer\":\"c-{n}\",\"articles\":[\"a\",\"b\",\"c\",\"x{n}\"]}}").unwrap();
        writeln!(outfits, "{{\"customer\":\"c-1\",\"articles\":[\"a{n}\",\"b\",\"c\",\"a{n}\"]}}").unwrap();
    }
    let outfits = folder.file("o.jsonl", outfits);
    let articles = ids(["a", "b", "c"]);
    let mut checker = Checker::new(articles, []);
    checker.check(open::<Customer>(&customers)).for_each(|row| drop(row.unwrap()));
    checker.check(open::<Outfit>(&outfits)).for_each(|row| drop(row.unwrap()));
    let found: Vec<String> = checker.report().findings();
    let expected = [
        "c.csv, line 3: feature \"age\" takes a finite number, found the string \"old; \\\"2\\\" found\" (8,998 rows in all; also 4, 5, \
         6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, …)",
        "c.csv, line 9001: customer \"c-1\" is already in line 2 (2 rows in all; also 9003)",
        "c.csv, line 9002: the header has 2 cells, but this row has 3",
        "o.jsonl, line 1: article \"x1\" is not in the catalogue",
        "o.jsonl, line 2: article \"a1\" appears twice in the outfit (39 rows in all; also 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, \
         24, 26, 28, 30, 32, 34, 36, 38, 40, …)",
        "o.jsonl, line 3: customer \"c-2\" is unknown; article \"x2\" is not in the catalogue (38 rows in all; also 5, 7, 9, 11, \
         13, 15, 17, 19, 21, 23, 25, 27, 29, 31, 33, 35, 37, 39, 41, …)",
    ];
    assert_eq!(
        found,
        expected.map(|line| format!("{}/{line}", folder.path("").display()).replace("//", "/"))
    );
    let listed: Vec<u64> = checker.report().bad_rows().iter().map(|bad| bad.line).collect();
    assert_eq!(listed.len(), 20);
    assert!(listed.ends_with(&[9001, 9002]), "{listed:?}");
}

#[test]
fn a_file_that_breaks_off_cannot_be_skipped() {
    let folder = Folder::new();
    let path = folder.file("c.csv", "id,age\nc-1,28\nc-2,\"29\nc-3,30\n");
    let mut checker = checker();
    let mut rows = checker.check(open::<Customer>(&path));
    assert!(rows.next().unwrap().is_ok());
    let error = rows.next().unwrap().unwrap_err().to_string();
    assert!(
        error.ends_with("c.csv: reading stopped at line 3: a quote that opens in this row is never closed"),
        "{error}"
    );
    assert!(rows.next().is_none());
    assert_eq!(checker.report().bad, 0);
}
