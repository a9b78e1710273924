//! Small files that expand to much more than they are.

use ::parquet::{
    basic::{Compression, ZstdLevel},
    file::properties::{EnabledStatistics, WriterPropertiesBuilder},
};

use super::*;

/// Writes articles with these columns besides id and type.
fn write(path: &Path, columns: &str, properties: WriterPropertiesBuilder, written: &[WriteColumn]) {
    let message =
        format!("message m {{ required binary id (UTF8); required binary type (UTF8); {columns} }}");
    let properties = properties
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_statistics_enabled(EnabledStatistics::None)
        .build();
    write_parquet(path, &message, properties, written);
}

/// A Parquet file of articles with one more column, each value stored once if `dictionary`.
fn articles(folder: &Folder, rows: usize, dictionary: bool, x: (&str, WriteColumn)) -> PathBuf {
    let path = folder.path("articles.parquet");
    let properties = WriterProperties::builder()
        .set_dictionary_enabled(dictionary)
        .set_dictionary_page_size_limit(usize::MAX)
        .set_data_page_size_limit(usize::MAX);
    let ids: Vec<String> = (0..rows).map(|row| format!("a-{row}")).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    write(&path, x.0, properties, &[texts(&ids), texts(&vec!["coat"; rows]), x.1]);
    path
}

fn text(length: usize) -> ByteArray {
    ByteArray::from("x".repeat(length).as_str())
}

/// A required column of texts.
fn plain(values: Vec<ByteArray>) -> (&'static str, WriteColumn) {
    ("required binary x (UTF8);", column::<ByteArrayType>(values, None))
}

#[test]
fn a_long_value_in_every_row_is_read_row_by_row_and_bounded() {
    let folder = Folder::new();
    let x = |length| plain(vec![text(length); 1100]);
    let path = articles(&folder, 1100, true, x(900_000));
    assert!(fs::metadata(&path).unwrap().len() < 32_000);
    let mut rows = open::<Article>(&path);
    for number in 1..=5 {
        assert!(rows.next().unwrap().is_ok());
        assert!((number * 900_000..number * 901_000).contains(&rows.bytes()), "{}", rows.bytes());
    }
    let path = articles(&folder, 1100, true, x(2_000_000));
    let mut rows = open::<Article>(&path);
    let error = rows.next().unwrap().unwrap_err();
    assert_eq!(error.to_string(), "row 1: column \"x\" makes the row longer than 1 MiB");
    assert!(!error.is_fatal());
    assert_eq!(rows.count(), 1099);
}

#[test]
fn a_list_of_unreasonable_length_is_refused() {
    let folder = Folder::new();
    let x = |length: usize| {
        let first = std::iter::once(0);
        let repetitions = first.chain(std::iter::repeat_n(1, length - 1)).chain([0]).collect();
        let definitions = std::iter::repeat_n(1, length).chain([0]).collect();
        let levels = Some((definitions, repetitions));
        ("repeated binary x (UTF8);", column::<ByteArrayType>(vec![text(1); length], levels))
    };
    let path = articles(&folder, 2, true, x(5_000_000));
    assert!(fs::metadata(&path).unwrap().len() < 32_000);
    let error = open::<Article>(&path).next().unwrap().unwrap_err();
    assert!(error.is_fatal() && error.to_string().contains("more than 4194304 values at once"), "{error}");
    // A shorter one is one bad row.
    let path = articles(&folder, 2, true, x(500_000));
    let rows: Vec<_> = open::<Article>(&path).collect();
    let error = rows[0].as_ref().unwrap_err();
    assert_eq!(error.to_string(), "row 1: column \"x\" makes the row longer than 1 MiB");
    assert!(rows[1].is_ok());
}

#[test]
fn a_page_of_unreasonable_size_is_refused_before_it_is_decompressed() {
    let folder = Folder::new();
    let path = articles(&folder, 1, false, plain(vec![text(70 << 20)]));
    assert!(fs::metadata(&path).unwrap().len() < 32_000);
    let error = open::<Article>(&path).next().unwrap().unwrap_err().to_string();
    assert!(error.starts_with("row 1: the file is damaged here: a page has 734"), "{error}");
    assert!(error.ends_with("bytes, expected at most 64 MiB"), "{error}");
}

#[test]
fn pages_of_all_columns_are_bounded_together() {
    let folder = Folder::new();
    let path = folder.path("articles.parquet");
    let names: Vec<String> = (0..5).map(|number| format!("required binary x{number} (UTF8);")).collect();
    let properties = WriterProperties::builder().set_dictionary_enabled(false);
    let lengths = [4, 4].into_iter().chain([60 << 20; 5]);
    let columns: Vec<_> = lengths.map(|length| column::<ByteArrayType>(vec![text(length)], None)).collect();
    write(&path, &names.concat(), properties, &columns);
    let error = open::<Article>(&path).next().unwrap().unwrap_err().to_string();
    assert!(error.contains("the pages of its columns have more than 256 MiB"), "{error}");
}
