//! Protobuf's wire format, as far as ONNX files need it. A message is a sequence of numbered fields.

/// One field of a message.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Field<'a> {
    pub(super) number: u64,
    pub(super) value: Value<'a>,
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
}

/// A message's fields up to its end, or up to where it is malformed.
pub(super) fn valid_fields(mut message: &[u8]) -> impl Iterator<Item = Field<'_>> {
    std::iter::from_fn(move || take_field(&mut message))
}

/// Whether it is a message up to its end.
pub(super) fn is_valid(mut message: &[u8]) -> bool {
    while !message.is_empty() {
        if take_field(&mut message).is_none() {
            return false;
        }
    }
    true
}

fn take_field<'a>(message: &mut &'a [u8]) -> Option<Field<'a>> {
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
    Some(Field { number: tag >> 3, value })
}

/// Integers that follow each other without field numbers.
pub(super) fn read_packed(mut bytes: &[u8]) -> Option<Vec<u64>> {
    let mut numbers = Vec::new();
    while !bytes.is_empty() {
        numbers.push(take_varint(&mut bytes)?);
    }
    Some(numbers)
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
    fn fields_are_read_up_to_where_a_message_is_malformed() {
        let message = [&[8, 0xac, 2, 0x3a, 6][..], b"hidden", &[0x15, 0, 0, 0x80, 0x3f]].concat();
        let found: Vec<Field<'_>> = valid_fields(&message).collect();
        assert_eq!(found.iter().map(|field| field.number).collect::<Vec<_>>(), [1, 7, 2]);
        assert_eq!((found[0].value, found[1].bytes()), (Value::Number(300), Some(&b"hidden"[..])));
        assert_eq!(found[2].value, Value::Fixed32(1.0_f32.to_le_bytes()));
        assert_eq!(read_packed(&[1, 0xac, 2]), Some(vec![1, 300]));
        assert_eq!(valid_fields(&message[..message.len() - 1]).count(), 2);
        assert!(is_valid(&message) && !is_valid(&message[..message.len() - 1]));
        assert_eq!(valid_fields(&[0x0b]).count(), 0, "a group");
        assert_eq!(valid_fields(&[0xff; 11]).count(), 0, "an endless number");
    }
}
