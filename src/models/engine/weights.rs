//! Finds NaN among an ONNX file's weights.
//!
//! A NaN in one article's row spoils only the outfits with that article. The trial questions would miss it, and
//! customers would not. So all initialisers are searched, as bytes. Malformed files are ONNX Runtime's to report.

use super::protobuf::{Field, Value, valid_fields};

/// Values of `TensorProto.DataType` that can be NaN.
const FLOAT: u64 = 1;
const FLOAT16: u64 = 10;
const DOUBLE: u64 = 11;
const BFLOAT16: u64 = 16;

/// The name of the first initialiser that holds a NaN.
pub(super) fn first_with_nan(model: &[u8]) -> Option<String> {
    const GRAPH: u64 = 7;
    const INITIALIZER: u64 = 5;
    let messages = |message, number| {
        valid_fields(message).filter(move |field| field.number == number).filter_map(Field::bytes)
    };
    messages(model, GRAPH).flat_map(|graph| messages(graph, INITIALIZER)).find_map(name_if_nan)
}

fn name_if_nan(tensor: &[u8]) -> Option<String> {
    const DATA_TYPE: u64 = 2;
    const FLOAT_DATA: u64 = 4;
    const NAME: u64 = 8;
    const RAW_DATA: u64 = 9;
    const DOUBLE_DATA: u64 = 10;
    let (mut kind, mut name, mut raw, mut found) = (0, &b""[..], &b""[..], false);
    for field in valid_fields(tensor) {
        match (field.number, field.value) {
            (DATA_TYPE, Value::Number(number)) => kind = number,
            (NAME, Value::Bytes(bytes)) => name = bytes,
            (RAW_DATA, Value::Bytes(bytes)) => raw = bytes,
            (FLOAT_DATA, Value::Bytes(bytes)) => found |= has_nan(FLOAT, bytes),
            (FLOAT_DATA, Value::Fixed32(bytes)) => found |= has_nan(FLOAT, &bytes),
            (DOUBLE_DATA, Value::Bytes(bytes)) => found |= has_nan(DOUBLE, bytes),
            (DOUBLE_DATA, Value::Fixed64(bytes)) => found |= has_nan(DOUBLE, &bytes),
            _ => {}
        }
    }
    (found || has_nan(kind, raw)).then(|| String::from_utf8_lossy(name).into_owned())
}

fn has_nan(kind: u64, raw: &[u8]) -> bool {
    /// A number is NaN if its bits without the sign are above those of infinity.
    fn any_above(raw: &[u8], infinity: u16) -> bool {
        let (halves, _) = raw.as_chunks::<2>();
        // Without an early exit, the compiler vectorises the loop.
        halves.iter().fold(false, |found, half| found | (u16::from_le_bytes(*half) & 0x7fff > infinity))
    }
    match kind {
        FLOAT => {
            let (words, _) = raw.as_chunks::<4>();
            words.iter().fold(false, |found, word| found | f32::from_le_bytes(*word).is_nan())
        }
        DOUBLE => {
            let (words, _) = raw.as_chunks::<8>();
            words.iter().fold(false, |found, word| found | f64::from_le_bytes(*word).is_nan())
        }
        FLOAT16 => any_above(raw, 0x7c00),
        BFLOAT16 => any_above(raw, 0x7f80),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// An encoded field of bytes.
    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        let length = u8::try_from(bytes.len()).unwrap();
        [&[number << 3 | 2, length], bytes].concat()
    }

    fn model(kind: u64, data: &[u8]) -> Vec<u8> {
        let kind = [2 << 3, u8::try_from(kind).unwrap()];
        let tensor = [&kind[..], &field(8, b"w"), data].concat();
        field(7, &[field(1, b"a node"), field(5, &tensor)].concat())
    }

    #[test]
    fn a_nan_is_found_in_every_width() {
        let find = |kind, bytes: &[&[u8]]| first_with_nan(&model(kind, &field(9, &bytes.concat())));
        let found = Some("w".to_owned());
        assert_eq!(find(FLOAT, &[&1_f32.to_le_bytes(), &f32::NAN.to_le_bytes()]), found);
        assert_eq!(find(FLOAT, &[&1_f32.to_le_bytes(), &f32::INFINITY.to_le_bytes()]), None);
        assert_eq!(find(DOUBLE, &[&(-f64::NAN).to_le_bytes()]), found);
        assert_eq!(find(FLOAT16, &[&[0, 0x3c], &[1, 0xfc]]), found, "negative");
        assert_eq!(find(FLOAT16, &[&[0, 0x7c]]), None, "infinity");
        assert_eq!(find(BFLOAT16, &[&[0xc0, 0x7f]]), found);
        assert_eq!(find(7, &[&f32::NAN.to_le_bytes()]), None, "an integer type");
        assert_eq!(first_with_nan(&model(FLOAT, &field(4, &f32::NAN.to_le_bytes()))), found);
        assert_eq!(first_with_nan(&model(DOUBLE, &field(10, &f64::NAN.to_le_bytes()))), found);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = first_with_nan(&bytes);
            let _ = first_with_nan(&field(7, &bytes));
        }
    }
}
