//! Reading text files, and errors in their rows.

use atelier_core::domain::{Customer, Outfit};

use super::*;

#[test]
fn json_lines_are_read_over_blank_lines_and_a_byte_order_mark() {
    let folder = Folder::new();
    let path = folder.file(
        "c.jsonl",
        "\u{feff}{\"id\":\"c-1\",\"features\":{\"age\":28.0,\"gender\":null,\"preferred_colours\":\"red\"}}\r\n\r\n  \n\
         { \"features\" : { \"shoe_size\" : \"38\", \"mood\": 1 } , \"id\" : \"c-2\" }",
    );
    assert_eq!(
        read_out(open::<Customer>(&path)),
        [
            r#"{"id":"c-1","features":{"age":28,"preferred_colours":["red"]}}"#,
            r#"{"id":"c-2","features":{"mood":1,"shoe_size":"38"}}"#,
            "4: the schema has no feature \"mood\"; models do not see it",
        ]
    );
}

#[test]
fn rows_that_are_read_together_are_those_that_are_read_singly() {
    let folder = Folder::new();
    let good = (1..=9).map(|number| format!("{{\"id\":\"c-{number}\",\"features\":{{\"age\":{number}}}}}"));
    let lines: Vec<String> = good.flat_map(|line| [line, String::new(), "{\"id\":".to_owned()]).collect();
    let csv = "id,age\nc-1,20\nc-2,x\nc-3,30\n".to_owned();
    for (name, text) in [("c.jsonl", lines.join("\n")), ("c.csv", csv)] {
        let path = folder.file(name, text);
        let singly: Vec<_> = open::<Customer>(&path).collect();
        assert!(singly.iter().any(Result::is_ok) && singly.iter().any(Result::is_err));
        for n in [1, 4, 100] {
            let mut rows = open::<Customer>(&path);
            let mut together = Vec::new();
            loop {
                let next = rows.next_rows(n);
                assert!(next.len() <= n);
                if next.is_empty() {
                    break;
                }
                together.extend(next);
            }
            assert_eq!(together, singly);
        }
    }
}

/// A stream of lines of a mebibyte each must not be in memory five hundred at a time.
#[test]
fn few_long_rows_are_read_together() {
    let folder = Folder::new();
    let line = |number: u32| format!("{{\"id\":\"{number}{}\"}}", "x".repeat(1_000_000));
    let text: Vec<String> = (0..20).map(line).collect();
    for (name, text) in [
        ("c.jsonl", text.join("\n")),
        ("c.csv", format!("id\n{}", text.join("\n").replace(['{', '"', '}'], ""))),
    ] {
        let mut rows = open::<Customer>(&folder.file(name, text));
        let mut counts = Vec::new();
        while let count @ 1.. = rows.next_rows(500).len() {
            counts.push(count);
        }
        assert_eq!(counts, [9, 9, 2], "{name}");
    }
}

#[test]
fn bad_json_lines_say_what_is_wrong() {
    let folder = Folder::new();
    let outfits = folder.file(
        "o.jsonl",
        [
            r#"{"customer":"c","articles":["a"]}"#,
            r#"{"customer":"c","articles":7}"#,
            r#"{"articles":["a","b","c","d"]}"#,
            r#"{"customer":"c","articles":["a","b","c","a"]}"#,
            r#"{"customer":"c","articles":["a","b","c","d"],"split":"test"}"#,
            r#"{"customer":"c","articles":["a","b","c","d"],"color":"red"}"#,
            r#"{"customer":"c","articles":["a","b","c","#,
            r#"["c",["a","b","c","d"]]"#,
            r#"{"customer":"c","articles":["a","b"," c","d"]}"#,
            r#"{"customer":"c","articles":["a","b","c","d"],"features":"wedding"}"#,
        ]
        .join("\n"),
    );
    assert_eq!(
        messages::<Outfit>(&outfits),
        [
            "line 1: an outfit has 2 to 12 articles (`outfit` in the schema), found 1",
            "line 2: field \"articles\" must be a list of ids, found a number",
            "line 3: field \"customer\" is missing",
            "line 4: article \"a\" appears twice in the outfit",
            "line 5: a split is train or validation; found \"test\"",
            "line 6: unknown field \"color\": an outfit has \"customer\", \"articles\", \"split\" and \"features\"",
            "line 7: not JSON: it ends too early, after character 40; a row is one object on one line",
            "line 8: a row must be an object, found a list; write each object on its own line \
             (pandas: `lines=True`)",
            "line 9: field \"articles\": an id cannot begin or end with a space",
            "line 10: field \"features\" must be an object, found a string",
        ]
    );
    let customers = folder.file(
        "c.jsonl",
        [
            r#"{"id":"c","features":{"age":"old","gender":["male"],"country":true}}"#,
            r#"{"id":"c","features":{"gender":{"a":1},"preferred_colours":[true]}}"#,
            r#"{"id":"c","features":{"mood":["a",1.5]}}"#,
            r#"{"id":"c","age":28}"#,
            r#"{"id":"c","features":{"gender":"a\u0000b"}}"#,
            r#"{"id":"c","features":{"":"x"}}"#,
        ]
        .join("\n"),
    );
    assert_eq!(
        messages::<Customer>(&customers),
        [
            "line 1: feature \"country\" takes a string or a whole number, found true; \
             feature \"age\" takes a finite number, found the string \"old\"; \
             feature \"gender\" takes a string or a whole number, found a list of 1",
            "line 2: feature \"gender\" takes a string or a whole number, found an object; \
             feature \"preferred_colours\" takes a list of strings or whole numbers, found a list that contains true",
            "line 3: feature \"mood\" takes a string, a number or a list of strings, found a list that contains the number 1.5",
            "line 4: unknown field \"age\": a customer has \"id\" and \"features\"",
            "line 5: feature \"gender\" contains the character NUL (\\u0000); remove it",
            "line 6: a feature needs a name, found an empty one",
        ]
    );
    let articles = folder.file(
        "a.jsonl",
        [
            &br#"{"id":"a","type":" coat"}"#[..],
            br#"{"id":"","type":"coat"}"#,
            br#"{"id":"a","type":"coat","x":[{"y\u0000":1}]}"#,
            br#"{"id":"a","type":"coat","x":{"y":["\u0001","x\u0000"]}}"#,
            b"{\"id\":\"a\",\"type\":\"\xFF\"}",
            br#"{"id":"a","type":"coat","colour":null,"x":["\u0001",true]}"#,
        ]
        .join(&b'\n'),
    );
    assert_eq!(
        messages::<Article>(&articles),
        [
            "line 1: an article's type cannot be empty or invisible, begin or end with a space, or contain control characters or '|'; \
             found \" coat\"",
            "line 2: field \"id\": an id cannot be empty",
            "line 3: field \"x\" contains the character NUL (\\u0000); remove it",
            "line 4: field \"x\" contains the character NUL (\\u0000); remove it",
            "line 5: not UTF-8 text from byte 19 on",
        ]
    );
}

#[test]
fn whole_numbers_are_ids_and_floats_are_not() {
    let folder = Folder::new();
    let path = folder.file(
        "o.jsonl",
        "{\"customer\":17,\"articles\":[1,\"2\",18446744073709551615,-4]}\n\
         {\"customer\":17.0,\"articles\":[1,2,3,4]}\n\
         {\"customer\":17,\"articles\":[1,2,3,1e2]}\n\
         {\"customer\":17,\"articles\":[1,2,3,100000000000000000000]}\n\
         {\"customer\":true,\"articles\":[1,2,3,4]}\n\
         {\"customer\":17,\"articles\":[1,2,3,\"1\"]}\n",
    );
    assert_eq!(
        read_out(open::<Outfit>(&path)),
        [
            r#"{"customer":"17","articles":["1","2","18446744073709551615","-4"]}"#,
            "line 2: field \"customer\" must be a string or a whole number, found 17.0",
            "line 3: each of \"articles\" must be a string or a whole number, found 100.0",
            "line 4: each of \"articles\" must be a string or a whole number, found 1e+20",
            "line 5: field \"customer\" must be a string or a whole number, found true or false",
            "line 6: article \"1\" appears twice in the outfit",
        ]
    );
    let articles =
        folder.file("a.jsonl", "{\"id\":9007199254740993,\"type\":\"coat\"}\n{\"id\":1,\"type\":2}\n");
    let to_the_last_digit = r#"{"id":"9007199254740993","type":"coat"}"#;
    let wrong = "line 2: field \"type\" must be a string, found a number";
    assert_eq!(read_out(open::<Article>(&articles)), [to_the_last_digit, wrong]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_failing_disk_does_not_look_like_the_end_of_the_file() {
    let folder = Folder::new();
    // Reading the beginning of a process's own memory fails, as a bad disk does.
    for name in ["c.jsonl", "c.csv"] {
        let path = folder.path(name);
        std::os::unix::fs::symlink("/proc/self/mem", &path).unwrap();
        let error = read::<Customer>(&path, &SCHEMA).unwrap_err().to_string();
        assert_eq!(error, format!("cannot read {}: Input/output error (os error 5)", path.display()));
    }
}

#[test]
fn rows_of_unreasonable_size_are_refused() {
    let folder = Folder::new();
    let long = "x".repeat(17 << 20);
    let path = folder.file(
        "a.jsonl",
        format!("{{\"id\":\"a\",\"type\":\"coat\",\"x\":\"{long}\"}}\n{{\"id\":\"b\",\"type\":\"coat\"}}\n"),
    );
    let rows: Vec<_> = open::<Article>(&path).collect();
    assert_eq!(rows[0].as_ref().unwrap_err().to_string(), "line 1: the line is longer than 1 MiB");
    assert_eq!(rows[1].as_ref().unwrap().value.id.as_str(), "b", "what follows is read");
    let path = folder.file("a.csv", format!("id,type\na,coat\nb,\"{long}\nc,coat\n"));
    let rows: Vec<_> = open::<Article>(&path).collect();
    let error = rows[1].as_ref().unwrap_err();
    assert_eq!(error.to_string(), "line 3: this row is longer than 1 MiB; is a closing quote missing?");
    assert!(error.is_fatal());
    assert_eq!(rows.len(), 2);
    let deep = format!("{{\"id\":\"a\",\"type\":\"coat\",\"x\":{}", "[".repeat(1 << 19));
    let path = folder.file("deep.jsonl", deep);
    assert!(messages::<Article>(&path)[0].starts_with("line 1: lists and objects are nested too deeply"));
}

#[test]
fn a_file_that_is_not_the_table_is_refused_as_a_whole() {
    let folder = Folder::new();
    fs::create_dir(folder.path("spark.parquet")).unwrap();
    for (name, content, said) in [
        ("a.csv", "", "FILE: the file is empty; expected a header with the names of the columns"),
        ("a.csv", "id,colour\n", "FILE: articles need a column \"type\", found \"id\", \"colour\""),
        ("a.csv", "id,type,id\n", "FILE: column \"id\" appears twice"),
        ("a.csv", ",id,type\n", "FILE: column 1 has no name; name it or remove it (pandas: `index=False`)"),
        ("a.parquet", "id,type\n", "FILE: not a readable Parquet file: "),
        ("a.xlsx", "PK", "FILE: unknown format; the file name must end in"),
        ("none.csv", "none", "cannot read FILE: No such file"),
        ("spark.parquet", "none", "cannot read FILE: it is a folder; name a file in it"),
    ] {
        let path = if content == "none" { folder.path(name) } else { folder.file(name, content) };
        let error = refuse::<Article>(&path);
        assert!(error.starts_with(said), "{said}: {error}");
    }
    let twice = refuse::<Customer>(&folder.file("c.csv", "id,age,features.age\n"));
    assert!(twice.ends_with(": column \"features.age\" appears twice"), "{twice}");
}
