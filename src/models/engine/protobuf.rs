//! Protobuf's wire format, as far as ONNX files need it. A message is a sequence of numbered fields. Fields that are
//! not looked into can be copied byte for byte.

/// One field of a message.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Field<'a> {
    pub(super) number: u64,
    pub(super) value: Value<'a>,
    /// The encoded field, with its number and length.
    pub(super) encoded: &'a [u8],
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Value<'a> {
    Number(u64),
    Fixed32([u8; 4]),
    Fixed64([u8; 8]),
    /// Text, a message, or packed numbers.
    Bytes(&'a [u8]),
}

impl<'a> Field<'a> {
    pub(super) fn bytes(self) -> Option<&'a [u8]> {
        if let Value::Bytes(bytes) = self.value { Some(bytes) } else { None }
    }

    pub(super) fn text(self) -> Option<&'a str> {
        str::from_utf8(self.bytes()?).ok()
    }
}

/// A message's fields in their order, or None if it is malformed.
pub(super) fn read_fields(mut message: &[u8]) -> Option<Vec<Field<'_>>> {
    let mut fields = Vec::new();
    while !message.is_empty() {
        fields.push(take_field(&mut message)?);
    }
    Some(fields)
}

/// A message's fields up to its end, or up to where it is malformed.
pub(super) fn valid_fields(mut message: &[u8]) -> impl Iterator<Item = Field<'_>> {
    std::iter::from_fn(move || take_field(&mut message))
}

fn take_field<'a>(message: &mut &'a [u8]) -> Option<Field<'a>> {
    let from = *message;
    let tag = take_varint(message)?;
    let value = match tag & 7 {
        0 => Value::Number(take_varint(message)?),
        1 => Value::Fixed64(*take_bytes(message, 8)?.first_chunk()?),
        2 => {
            let length = usize::try_from(take_varint(message)?).ok()?;
            Value::Bytes(take_bytes(message, length)?)
        }
        5 => Value::Fixed32(*take_bytes(message, 4)?.first_chunk()?),
        // Groups are older than ONNX.
        _ => return None,
    };
    Some(Field { number: tag >> 3, value, encoded: &from[..from.len() - message.len()] })
}

/// Integers that follow each other without field numbers.
pub(super) fn read_packed(mut bytes: &[u8]) -> Option<Vec<u64>> {
    let mut numbers = Vec::new();
    while !bytes.is_empty() {
        numbers.push(take_varint(&mut bytes)?);
    }
    Some(numbers)
}

/// Appends a field that holds text or a message.
pub(super) fn put_bytes(to: &mut Vec<u8>, number: u64, bytes: &[u8]) {
    put_varint(to, number << 3 | 2);
    put_varint(to, bytes.len() as u64);
    to.extend_from_slice(bytes);
}

/// Appends a field that holds a number.
pub(super) fn put_number(to: &mut Vec<u8>, number: u64, value: u64) {
    put_varint(to, number << 3);
    put_varint(to, value);
}

fn put_varint(to: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        to.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    to.push(value.to_le_bytes()[0]);
}

fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn take_bytes<'a>(bytes: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(count)?;
    *bytes = rest;
    Some(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_that_are_put_are_read_back() {
        let mut message = Vec::new();
        put_number(&mut message, 1, 300);
        put_bytes(&mut message, 7, b"hidden");
        message.extend([0x15, 0, 0, 0x80, 0x3f]);
        put_number(&mut message, 20, u64::MAX);
        let found = read_fields(&message).unwrap();
        assert_eq!(found.iter().map(|field| field.number).collect::<Vec<_>>(), [1, 7, 2, 20]);
        assert_eq!((found[0].value, found[3].value), (Value::Number(300), Value::Number(u64::MAX)));
        assert_eq!((found[1].text(), found[0].text()), (Some("hidden"), None));
        assert_eq!(found[2].value, Value::Fixed32(1.0_f32.to_le_bytes()));
        assert_eq!(found.iter().flat_map(|field| field.encoded).copied().collect::<Vec<_>>(), message);
        assert_eq!(read_packed(&[1, 0xac, 2]), Some(vec![1, 300]));
        for end in 1..message.len() {
            // Cut between two fields, it is a shorter message; cut within a field, it is malformed.
            let length: usize =
                read_fields(&message[..end]).iter().flatten().map(|field| field.encoded.len()).sum();
            assert!(length == end || length == 0, "{end}");
        }
        assert_eq!(read_fields(&[0x0b]), None, "a group");
        assert_eq!(read_fields(&[0xff; 11]), None, "an endless number");
    }
}
