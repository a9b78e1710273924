//! Every answer in one Parquet table, with a row per case and two columns per file, to find the cases where
//! methods differ most.

use std::{fs::File, io, path::Path, sync::Arc};

use anyhow::{Context, Result};
use parquet::{
    basic::{Compression, LogicalType, Repetition, Type as PhysicalType, ZstdLevel},
    data_type::{BoolType, ByteArray, ByteArrayType, DataType, FloatType, Int32Type},
    errors::ParquetError,
    file::{properties::WriterProperties, writer::SerializedFileWriter},
    schema::types::Type,
};

use super::{Answers, Case, Cases};
use crate::data::Data;

/// One column's name, its Parquet type, and its cells.
struct Column {
    name: String,
    cells: Cells,
}

enum Cells {
    Numbers(Vec<i32>),
    Floats(Vec<f32>),
    Truths(Vec<bool>),
    Texts(Vec<ByteArray>),
}

/// Writes the table. Each name in `files` is a prefix of two columns: `gsu` makes `gsu.rank` (from 1;
/// articles with equal logits share their mean rank) and `gsu.cross_entropy` (in nats).
///
/// The other columns are `outfit`, the row of the outfits' file from 0; `slot`, the masked slot;
/// `customer`; `seen`, whether the customer has an outfit outside validation; `articles`, the complete
/// outfit, joined by `|` as in CSV; `article`, the masked article; and `type`, its type.
pub fn write_ranks(path: &Path, data: &Data, cases: &Cases, files: &[(String, &Answers)]) -> Result<()> {
    let mut columns = case_columns(data, cases);
    for (name, answers) in files {
        let floats = |value: fn(&crate::judge::Verdict) -> f64| {
            #[expect(clippy::cast_possible_truncation, reason = "seven digits are enough")]
            Cells::Floats(answers.verdicts.iter().map(|verdict| value(verdict) as f32).collect())
        };
        columns.push(Column { name: format!("{name}.rank"), cells: floats(|verdict| verdict.rank) });
        columns.push(Column {
            name: format!("{name}.cross_entropy"),
            cells: floats(|verdict| verdict.cross_entropy),
        });
    }
    write(path, &columns).with_context(|| format!("cannot write {}", path.display()))
}

fn case_columns(data: &Data, cases: &Cases) -> Vec<Column> {
    let cases = cases.as_slice();
    let number = |value: u32| i32::try_from(value).expect("outfits are fewer than two billion");
    let numbers =
        |value: &dyn Fn(&Case) -> u32| Cells::Numbers(cases.iter().map(|c| number(value(c))).collect());
    let texts = |value: &dyn Fn(&Case) -> String| {
        Cells::Texts(cases.iter().map(|case| ByteArray::from(value(case).into_bytes())).collect())
    };
    let customer = |case: &Case| data.outfits().customer(case.outfit);
    let id = |article: u32| {
        data.vocabulary().article(article).expect("an outfit's articles are in the vocabulary").as_str()
    };
    let outfit = |case: &Case| {
        let ids: Vec<&str> =
            data.outfits().articles(case.outfit).iter().map(|&article| id(article)).collect();
        ids.join("|")
    };
    let columns = [
        ("outfit", numbers(&|case| case.outfit)),
        ("slot", numbers(&|case| case.slot)),
        ("customer", texts(&|case| data.customers()[customer(case) as usize].to_string())),
        ("seen", Cells::Truths(cases.iter().map(|case| data.is_seen(customer(case))).collect())),
        ("articles", texts(&outfit)),
        ("article", texts(&|case| id(case.target).to_owned())),
        ("type", texts(&|case| data.types()[data.type_of(case.target)].clone())),
    ];
    columns.map(|(name, cells)| Column { name: name.to_owned(), cells }).into()
}

fn write(path: &Path, columns: &[Column]) -> Result<(), ParquetError> {
    let field = |Column { name, cells }: &Column| {
        let (kind, logical) = match cells {
            Cells::Numbers(_) => (PhysicalType::INT32, None),
            Cells::Floats(_) => (PhysicalType::FLOAT, None),
            Cells::Truths(_) => (PhysicalType::BOOLEAN, None),
            Cells::Texts(_) => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
        };
        let column = Type::primitive_type_builder(name, kind).with_repetition(Repetition::REQUIRED);
        column.with_logical_type(logical).build().map(Arc::new)
    };
    let fields = columns.iter().map(field).collect::<Result<_, _>>()?;
    let schema = Type::group_type_builder("ranks").with_fields(fields).build()?;
    let properties = WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default()));
    let file = File::create(path).map_err(|error: io::Error| ParquetError::External(Box::new(error)))?;
    let mut writer = SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties.build()))?;
    let mut group = writer.next_row_group()?;
    for column in columns {
        let mut next = group.next_column()?.expect("as many columns as fields");
        match &column.cells {
            Cells::Numbers(cells) => put::<Int32Type>(&mut next, cells),
            Cells::Floats(cells) => put::<FloatType>(&mut next, cells),
            Cells::Truths(cells) => put::<BoolType>(&mut next, cells),
            Cells::Texts(cells) => put::<ByteArrayType>(&mut next, cells),
        }?;
        next.close()?;
    }
    group.close()?;
    writer.close()?;
    Ok(())
}

fn put<T: DataType>(
    column: &mut parquet::file::writer::SerializedColumnWriter<'_>,
    cells: &[T::T],
) -> Result<usize, ParquetError> {
    column.typed::<T>().write_batch(cells, None, None)
}
