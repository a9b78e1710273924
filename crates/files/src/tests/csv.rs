//! Reading CSV files, and errors in their rows.

use atelier_core::domain::{Customer, Outfit};

use super::*;

#[test]
fn a_csv_file_is_read_by_the_schema() {
    let folder = Folder::new();
    let path = folder.file(
        "o.csv",
        "\u{feff}customer,articles,split,features.occasion,mood\r\nc-1,a|b|c|d,train,wedding,\r\n\r\n\
         \"c-2\",\"a|b|c|d|e\",,\"two\r\nlines\",1|2\r\nc-3,a|b|c|d,validation,,7",
    );
    let mood = "the schema has no feature \"mood\"; models do not see it";
    assert_eq!(
        read_out(open::<Outfit>(&path)),
        [
            r#"{"customer":"c-1","articles":["a","b","c","d"],"split":"train","features":{"occasion":"wedding"}}"#,
            r#"{"customer":"c-2","articles":["a","b","c","d","e"],"features":{"mood":["1","2"],"occasion":"two\r\nlines"}}"#,
            &format!("4: {mood}"),
            "4: feature \"occasion\" has no value \"two\\r\\nlines\"; models do not see it",
            r#"{"customer":"c-3","articles":["a","b","c","d"],"split":"validation","features":{"mood":7}}"#,
            &format!("6: {mood}"),
        ]
    );
}

#[test]
fn ids_joined_otherwise_are_refused() {
    let folder = Folder::new();
    let cells = ["\"a,b,c,d\"", "a;b;c;d", "a b c d", "\"['a', 'b', 'c', 'd']\"", "a", "\"a|b b|c|d,d\""];
    let rows: Vec<String> = cells.iter().map(|cell| format!("c-1,{cell}\n")).collect();
    let path = folder.file("o.csv", format!("customer,articles\n{}", rows.concat()));
    let joined = |line: u64, found: &str| {
        format!("line {line}: column \"articles\": join the ids with |, as in a|b|c|d; found \"{found}\"")
    };
    assert_eq!(
        messages::<Outfit>(&path),
        [
            joined(2, "a,b,c,d"),
            joined(3, "a;b;c;d"),
            joined(4, "a b c d"),
            joined(5, "['a', 'b', 'c', 'd']"),
            "line 6: an outfit has 2 to 12 articles (`outfit` in the schema), found 1".into(),
        ]
    );
}

#[test]
fn a_csv_file_may_contain_features_as_json() {
    let folder = Folder::new();
    let path = folder.file(
        "c.csv",
        "id,features,age\nc-1,\"{\"\"gender\"\":\"\"male\"\"}\",28\nc-2,\"{\"\"age\"\":1}\",2\n",
    );
    let both = r#"{"id":"c-1","features":{"age":28,"gender":"male"}}"#;
    let twice = "line 3: feature \"age\" is given in two columns";
    assert_eq!(read_out(open::<Customer>(&path)), [both, twice]);
}

#[test]
fn bad_csv_rows_say_why_and_reading_goes_on() {
    let folder = Folder::new();
    let path = folder.file(
        "c.csv",
        &b"id,age,gender\n\nc-1,old,male\nc-2,28\nc-3,28,male,extra\n,28,male\nc-5,\"28\n\",male\nc-6,\xE4,male\n\
           c-7,28,\0\nc-8,28,\"male\nc-9\",\n"[..],
    );
    assert_eq!(
        messages::<Customer>(&path),
        [
            "line 3: feature \"age\" takes a finite number, found the string \"old\"",
            "line 4: the header has 3 cells, but this row has 2",
            "line 5: the header has 3 cells, but this row has 4",
            "line 6: field \"id\" is missing",
            "line 9: cell 2 is not UTF-8 text; if the file is from Windows, read it with --encoding windows-1252",
            "line 10: feature \"gender\" contains the character NUL (\\u0000); remove it",
            "line 11: the header has 3 cells, but this row has 4 (it spans 2 lines: is a closing quote missing?)",
        ]
    );
}

#[test]
fn cells_of_a_column_of_texts_are_texts() {
    let folder = Folder::new();
    let rows = "id,type,sku,code,width,mixed,n\n1,coat,AB-7,123,7,\"\"\"M\"\"\",5\n2,coat,00123,0123,8.5,38,6\n\
                3,coat,1E5,12,,39,1E5\n4,coat,x,true,9,,\n";
    let articles: Vec<Article> = values(&folder.file("a.csv", rows));
    let column = |name: &str| {
        let values = articles.iter().map(|article| article.attribute(name).cloned().unwrap_or_default());
        values.collect::<serde_json::Value>().to_string()
    };
    assert_eq!(column("sku"), r#"["AB-7","00123","1E5","x"]"#);
    assert_eq!(column("code"), r#"["123","0123","12","true"]"#);
    assert_eq!(
        (column("width").as_str(), column("n").as_str()),
        ("[7,8.5,null,9]", r#"["5","6","1E5",null]"#)
    );
    assert_eq!(column("mixed"), r#"["M",38,39,null]"#, "a text that is written as JSON");
    // Values written with both types come back.
    let sizes = [serde_json::json!({"size": "M"}), serde_json::json!({"size": 38})];
    let mixed: Vec<Article> = (0..9).map(|n| article(&n.to_string(), &sizes[n / 8])).collect();
    assert_eq!(values::<Article>(&folder.rows("mixed.csv", &mixed)), mixed);
}

#[test]
fn delimiters_at_the_end_say_nothing() {
    let folder = Folder::new();
    let path = folder.file(
        "c.csv",
        "sep=;\r\n id ;\u{a0}age;;\r\nc-1;28;;\r\nc-2;29\r\nc-3;30;\r\n;;;\r\nc-4;31;;x\r\n;\r\n",
    );
    let aged =
        |customer: u32, age: u32| format!("{{\"id\":\"c-{customer}\",\"features\":{{\"age\":{age}}}}}");
    let longer = "line 7: the header has 2 cells, but this row has 4".to_owned();
    assert_eq!(read_out(open::<Customer>(&path)), [aged(1, 28), aged(2, 29), aged(3, 30), longer]);
}

/// Longer than the buffers of reading and decoding.
#[test]
fn text_in_another_encoding_is_decoded_as_it_is_read() {
    let folder = Folder::new();
    let lines: Vec<String> = (0..40_000).map(|n| format!("a-{n};M\u{fc}tze;\u{20ac}{n}\n")).collect();
    let text = format!("id;type;gr\u{f6}\u{df}e\n{}", lines.concat());
    let expected: Vec<Article> = values(&folder.file("utf8.csv", &text));
    assert_eq!(expected.len(), 40_000);
    let utf_16 = |to_bytes: fn(u16) -> [u8; 2]| {
        std::iter::once(0xFEFF).chain(text.encode_utf16()).flat_map(to_bytes).collect::<Vec<u8>>()
    };
    let windows = encoding_rs::WINDOWS_1252.encode(&text).0.into_owned();
    let dialect = Dialect { encoding: Some("windows-1252".parse().unwrap()), ..Dialect::default() };
    for bytes in [
        text.clone().into_bytes(),
        windows,
        utf_16(u16::to_le_bytes),
        utf_16(u16::to_be_bytes),
        [b"\xEF\xBB\xBF", text.as_bytes()].concat(),
    ] {
        let rows = read_as::<Article>(&folder.file("a.csv", &bytes), &SCHEMA, &dialect).unwrap();
        assert!(rows.map(|row| row.unwrap().value).eq(expected.iter().cloned()));
    }
    let mut broken = utf_16(u16::to_le_bytes);
    broken.extend([0x00, 0xD8, 0x0A, 0x00]);
    let error = open::<Article>(&folder.file("a.csv", broken)).last().unwrap().unwrap_err();
    assert!(error.is_fatal() && error.reason.ends_with("it is not text in UTF-16LE"), "{error}");
}

#[test]
fn spaces_around_ids_and_in_empty_cells_say_nothing() {
    let folder = Folder::new();
    let coats =
        folder.file("a.csv", "id,type,price,stock,name,note\n B\u{a0}, coat ,\" \", ,\" padded \", \n");
    assert_eq!(read_out(open::<Article>(&coats)), [r#"{"id":"B","type":"coat","name":" padded "}"#]);
    let customers = folder.file("c.csv", "id,age,height\nc-1 , ,\"+180,5\"\n \t,28,\n");
    let tall = r#"{"id":"c-1","features":{"height":180.5}}"#;
    assert_eq!(read_out(open::<Customer>(&customers)), [tall, "line 3: field \"id\" is missing"]);
    let outfits = folder.file("o.csv", "customer,articles,split\n c-1,a | b|c|d ,train \n");
    let outfit = r#"{"customer":"c-1","articles":["a","b","c","d"],"split":"train"}"#;
    assert_eq!(read_out(open::<Outfit>(&outfits)), [outfit]);
    // A text of white space comes back nevertheless.
    let blank = [article("a", &serde_json::json!({"name": " ", "price": " "}))];
    assert_eq!(values::<Article>(&folder.rows("blank.csv", &blank)), blank);
}
