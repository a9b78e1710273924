//! Small files that expand to much more than they are.

use std::{fs::File, path::Path, sync::Arc};

use ::parquet::{
    basic::{Compression, ZstdLevel},
    data_type::{ByteArray, ByteArrayType},
    file::{
        properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder},
        reader::FileReader,
        serialized_reader::SerializedFileReader,
        writer::SerializedFileWriter,
    },
    schema::parser::parse_message_type,
};
use atelier_core::domain::Article;

use super::*;

/// A text column that is called `x`, with its definition and repetition levels.
struct Texts {
    kind: &'static str,
    values: Vec<ByteArray>,
    levels: Option<(Vec<i16>, Vec<i16>)>,
}

/// Begins a Parquet file of articles with these columns besides id and type.
fn begin(path: &Path, columns: &str, properties: WriterPropertiesBuilder) -> SerializedFileWriter<File> {
    let schema = format!("message m {{ required binary id (UTF8); required binary type (UTF8); {columns} }}");
    let properties = properties
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_statistics_enabled(EnabledStatistics::None)
        .build();
    let schema = Arc::new(parse_message_type(&schema).unwrap());
    SerializedFileWriter::new(File::create(path).unwrap(), schema, Arc::new(properties)).unwrap()
}

/// A Parquet file of articles, each value stored once if `dictionary`.
fn articles(folder: &Folder, rows: usize, dictionary: bool, x: &Texts) -> PathBuf {
    let path = folder.path("articles.parquet");
    let properties = WriterProperties::builder()
        .set_dictionary_enabled(dictionary)
        .set_dictionary_page_size_limit(usize::MAX)
        .set_data_page_size_limit(usize::MAX);
    let mut writer = begin(&path, x.kind, properties);
    let mut group = writer.next_row_group().unwrap();
    let ids: Vec<ByteArray> = (0..rows).map(|row| ByteArray::from(format!("a-{row}").as_str())).collect();
    let (definitions, repetitions) = x.levels.as_ref().map(|(d, r)| (&d[..], &r[..])).unzip();
    for (values, definitions, repetitions) in [
        (&ids, None, None),
        (&vec![ByteArray::from("coat"); rows], None, None),
        (&x.values, definitions, repetitions),
    ] {
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<ByteArrayType>().write_batch(values, definitions, repetitions).unwrap();
        column.close().unwrap();
    }
    group.close().unwrap();
    writer.close().unwrap();
    path
}

fn text(length: usize) -> ByteArray {
    ByteArray::from("x".repeat(length).as_str())
}

#[test]
fn a_long_value_in_every_row_is_read_row_by_row_and_bounded() {
    let folder = Folder::new();
    let x =
        |length| Texts { kind: "required binary x (UTF8);", values: vec![text(length); 1100], levels: None };
    let path = articles(&folder, 1100, true, &x(900_000));
    assert!(fs::metadata(&path).unwrap().len() < 32_000);
    let mut rows = open::<Article>(&path);
    for number in 1..=5 {
        assert!(rows.next().unwrap().is_ok());
        assert!((number * 900_000..number * 901_000).contains(&rows.bytes()), "{}", rows.bytes());
    }
    let path = articles(&folder, 1100, true, &x(2_000_000));
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
        Texts {
            kind: "repeated binary x (UTF8);",
            values: vec![text(1); length],
            levels: Some((definitions, repetitions)),
        }
    };
    let path = articles(&folder, 2, true, &x(5_000_000));
    assert!(fs::metadata(&path).unwrap().len() < 32_000);
    let error = open::<Article>(&path).next().unwrap().unwrap_err();
    assert!(error.is_fatal() && error.to_string().contains("more than 4194304 values at once"), "{error}");
    // A shorter one is one bad row.
    let path = articles(&folder, 2, true, &x(500_000));
    let rows: Vec<_> = open::<Article>(&path).collect();
    let error = rows[0].as_ref().unwrap_err();
    assert_eq!(error.to_string(), "row 1: column \"x\" makes the row longer than 1 MiB");
    assert!(rows[1].is_ok());
}

#[test]
fn a_page_of_unreasonable_size_is_refused_before_it_is_decompressed() {
    let folder = Folder::new();
    let x = |length| Texts { kind: "required binary x (UTF8);", values: vec![text(length)], levels: None };
    let path = articles(&folder, 1, false, &x(70 << 20));
    assert!(fs::metadata(&path).unwrap().len() < 32_000);
    let error = open::<Article>(&path).next().unwrap().unwrap_err().to_string();
    assert!(error.starts_with("row 1: the file is damaged here: a page has 734"), "{error}");
    assert!(error.ends_with("bytes, expected at most 64 MiB"), "{error}");
}

/// The header of the page says 5 bytes first, and its size after that, which the reader would take.
#[test]
fn a_page_with_two_sizes_is_refused() {
    let folder = Folder::new();
    let x = Texts { kind: "required binary x (UTF8);", values: vec![text(70 << 20)], levels: None };
    let path = articles(&folder, 1, false, &x);
    let mut bytes = fs::read(&path).unwrap();
    let file = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
    let column = file.metadata().row_group(0).column(2);
    let second = [0x15, 10, 0x05, 4];
    // The column is the last one, so only its length changes. The length follows the uncompressed one.
    let lengths = |more: i64| {
        let [all, stored] = [column.uncompressed_size(), column.compressed_size() + more].map(number);
        [&[0x16][..], &all, &[0x16], &stored, &[0x26]].concat()
    };
    let (before, after) = (lengths(0), lengths(3));
    let place = bytes.windows(before.len()).rposition(|window| window == before).unwrap();
    bytes.splice(place..place + before.len(), after.clone());
    assert_eq!(before.len(), after.len());
    let header = usize::try_from(column.data_page_offset()).unwrap();
    assert_eq!(bytes[header..header + 3], [0x15, 0, 0x15]);
    bytes.splice(header + 2..header + 3, second);
    fs::write(&path, bytes).unwrap();
    let error = open::<Article>(&path).next().unwrap().unwrap_err();
    assert_eq!(error.to_string(), "row 1: the file is damaged here: a page has an invalid header");
    assert!(error.is_fatal());
}

/// A number in Thrift's compact protocol.
fn number(number: i64) -> Vec<u8> {
    let mut left = number.cast_unsigned() << 1;
    let mut bytes = Vec::new();
    while left > 0x7F {
        bytes.push(left.to_le_bytes()[0] | 0x80);
        left >>= 7;
    }
    bytes.push(left.to_le_bytes()[0]);
    bytes
}

#[test]
fn pages_of_all_columns_are_bounded_together() {
    let folder = Folder::new();
    let path = folder.path("articles.parquet");
    let names: Vec<String> = (0..5).map(|number| format!("required binary x{number} (UTF8);")).collect();
    let properties = WriterProperties::builder().set_dictionary_enabled(false);
    let mut writer = begin(&path, &names.concat(), properties);
    let mut group = writer.next_row_group().unwrap();
    for column in 0..7 {
        let mut writer = group.next_column().unwrap().unwrap();
        let value = text(if column < 2 { 4 } else { 60 << 20 });
        writer.typed::<ByteArrayType>().write_batch(&[value], None, None).unwrap();
        writer.close().unwrap();
    }
    group.close().unwrap();
    writer.close().unwrap();
    let error = open::<Article>(&path).next().unwrap().unwrap_err().to_string();
    assert!(error.contains("the pages of its columns have more than 256 MiB"), "{error}");
}
