//! What an import sees of three files.

use std::fmt::Write as _;

use super::*;
use crate::domain::{Article, ArticleId, Customer, CustomerId, Outfit};

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
    let said: Vec<String> = report.errors.iter().map(|bad| bad.error.to_string()).collect();
    assert_eq!(
        said,
        [
            "line 5: article \"a\" stands in line 2 already",
            "line 4: customer \"c-1\" stands in line 2 already",
            "line 2: customer \"c-9\" is not known; article \"x\" is not in the catalogue; \
             article \"y\" is not in the catalogue",
        ]
    );
    assert_eq!(report.errors[2].to_string(), format!("{}, {}", outfits.display(), said[2]));
    let [mood] = report.warnings.as_slice() else { panic!("one warning, found {:?}", report.warnings) };
    assert_eq!((mood.line, mood.count, &mood.path), (2, 2, &customers));
}

#[test]
fn only_the_first_errors_and_warnings_are_kept_and_the_rest_counted() {
    let folder = Folder::new();
    let mut lines = String::from("id,gender\n");
    for n in 0..50 {
        writeln!(lines, "c-{n},g{n}\n,male").unwrap();
    }
    let path = folder.file("c.csv", lines);
    let mut checker = checker();
    assert_eq!(checker.check(open::<Customer>(&path)).map(Result::unwrap).count(), 50);
    let report = checker.report();
    assert_eq!((report.good, report.bad, report.errors.len()), (50, 50, 20));
    assert_eq!(report.errors[19].error.to_string(), "line 41: field \"id\" is missing");
    assert_eq!((report.warnings.len(), report.more_warnings), (20, 30));
    assert_eq!(report.warnings[19].line, 40);
}

#[test]
fn a_file_that_breaks_off_is_no_bad_row_to_skip() {
    let folder = Folder::new();
    let path = folder.file("c.csv", "id,age\nc-1,28\nc-2,\"29\nc-3,30\n");
    let mut checker = checker();
    let mut rows = checker.check(open::<Customer>(&path));
    assert!(rows.next().unwrap().is_ok());
    let error = rows.next().unwrap().unwrap_err().to_string();
    assert!(error.contains("c.csv: reading stopped at line 3: a quote is opened"), "{error}");
    assert!(rows.next().is_none());
    assert_eq!(checker.report().bad, 0);
}
