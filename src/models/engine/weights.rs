//! Whether an ONNX file's weights are numbers.
//!
//! A NaN in one article's row spoils only the outfits which that article is in: no trial outfit finds it, and
//! customers would. So the file's initialisers are looked through, as bytes: as much of protobuf is read as leads
//! to them. What is no ONNX at all is for ONNX Runtime to say.

/// `TensorProto.DataType` of what can be NaN.
const FLOAT: u64 = 1;
const FLOAT16: u64 = 10;
const DOUBLE: u64 = 11;
const BFLOAT16: u64 = 16;

/// The name of the first initialiser that holds a NaN.
pub(super) fn first_with_nan(model: &[u8]) -> Option<String> {
    const GRAPH: u64 = 7;
    const INITIALIZER: u64 = 5;
    let graphs = Fields(model).filter_map(|(field, value)| value.bytes().filter(|_| field == GRAPH));
    graphs
        .flat_map(Fields)
        .filter_map(|(field, value)| value.bytes().filter(|_| field == INITIALIZER))
        .find_map(name_if_nan)
}

fn name_if_nan(tensor: &[u8]) -> Option<String> {
    const DATA_TYPE: u64 = 2;
    const FLOAT_DATA: u64 = 4;
    const NAME: u64 = 8;
    const RAW_DATA: u64 = 9;
    const DOUBLE_DATA: u64 = 10;
    let (mut kind, mut name, mut raw, mut found) = (0, &b""[..], &b""[..], false);
    for (field, value) in Fields(tensor) {
        match (field, value) {
            (DATA_TYPE, Value::Number(number)) => kind = number,
            (NAME, Value::Bytes(bytes)) => name = bytes,
            (RAW_DATA, Value::Bytes(bytes)) => raw = bytes,
            (FLOAT_DATA, Value::Bytes(bytes)) => found |= has_nan(FLOAT, bytes),
            (DOUBLE_DATA, Value::Bytes(bytes)) => found |= has_nan(DOUBLE, bytes),
            _ => {}
        }
    }
    (found || has_nan(kind, raw)).then(|| String::from_utf8_lossy(name).into_owned())
}

fn has_nan(kind: u64, raw: &[u8]) -> bool {
    /// A number is NaN where its bits without the sign are above those of infinity.
    fn above(raw: &[u8], infinity: u16) -> bool {
        let (halves, _) = raw.as_chunks::<2>();
        // Without leaving early the compiler makes vector code of it.
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
        FLOAT16 => above(raw, 0x7c00),
        BFLOAT16 => above(raw, 0x7f80),
        _ => false,
    }
}

/// The fields of one message, up to where it is no message.
struct Fields<'a>(&'a [u8]);

enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl<'a> Value<'a> {
    fn bytes(self) -> Option<&'a [u8]> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            Self::Number(_) => None,
        }
    }
}

impl<'a> Fields<'a> {
    fn varint(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let (&byte, rest) = self.0.split_first()?;
            self.0 = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn take(&mut self, count: u64) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(usize::try_from(count).ok()?)?;
        self.0 = rest;
        Some(taken)
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = (u64, Value<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let key = self.varint()?;
        let value = match key & 7 {
            0 => Value::Number(self.varint()?),
            1 => Value::Bytes(self.take(8)?),
            2 => {
                let length = self.varint()?;
                Value::Bytes(self.take(length)?)
            }
            5 => Value::Bytes(self.take(4)?),
            _ => return None,
        };
        Some((key >> 3, value))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A field of bytes.
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
        let of = |kind, bytes: &[&[u8]]| first_with_nan(&model(kind, &field(9, &bytes.concat())));
        let found = Some("w".to_owned());
        assert_eq!(of(FLOAT, &[&1_f32.to_le_bytes(), &f32::NAN.to_le_bytes()]), found);
        assert_eq!(of(FLOAT, &[&1_f32.to_le_bytes(), &f32::INFINITY.to_le_bytes()]), None);
        assert_eq!(of(DOUBLE, &[&(-f64::NAN).to_le_bytes()]), found);
        assert_eq!(of(FLOAT16, &[&[0, 0x3c], &[1, 0xfc]]), found, "a negative one");
        assert_eq!(of(FLOAT16, &[&[0, 0x7c]]), None, "infinity");
        assert_eq!(of(BFLOAT16, &[&[0xc0, 0x7f]]), found);
        assert_eq!(of(7, &[&f32::NAN.to_le_bytes()]), None, "whole numbers have none");
        assert_eq!(first_with_nan(&model(FLOAT, &field(4, &f32::NAN.to_le_bytes()))), found);
        assert_eq!(first_with_nan(&model(DOUBLE, &field(10, &f64::NAN.to_le_bytes()))), found);
    }

    proptest! {
        #[test]
        fn nothing_made_up_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = first_with_nan(&bytes);
            let _ = first_with_nan(&field(7, &bytes));
        }
    }
}
