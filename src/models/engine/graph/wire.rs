//! Protobuf's wire format, as far as cutting a message needs it: a message is fields with a number each, and
//! what is not looked into stays as it was, byte for byte.

/// One field of a message.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Field<'a> {
    pub(super) number: u64,
    pub(super) value: Value<'a>,
    /// With its number and length, as it stands in the message.
    pub(super) whole: &'a [u8],
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Value<'a> {
    Number(u64),
    Fixed32([u8; 4]),
    Fixed64([u8; 8]),
    /// Text, a message, or many numbers.
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

/// A message's fields in their order; None where it is none.
pub(super) fn fields(message: &[u8]) -> Option<Vec<Field<'_>>> {
    let mut fields = Vec::new();
    let mut rest = message;
    while !rest.is_empty() {
        let whole = rest;
        let tag = varint(&mut rest)?;
        let value = match tag & 7 {
            0 => Value::Number(varint(&mut rest)?),
            1 => Value::Fixed64(*take(&mut rest, 8)?.first_chunk()?),
            2 => {
                let length = usize::try_from(varint(&mut rest)?).ok()?;
                Value::Bytes(take(&mut rest, length)?)
            }
            5 => Value::Fixed32(*take(&mut rest, 4)?.first_chunk()?),
            // Groups are of a time before ONNX.
            _ => return None,
        };
        fields.push(Field { number: tag >> 3, value, whole: &whole[..whole.len() - rest.len()] });
    }
    Some(fields)
}

/// Whole numbers that stand one behind the other.
pub(super) fn packed(mut bytes: &[u8]) -> Option<Vec<u64>> {
    let mut numbers = Vec::new();
    while !bytes.is_empty() {
        numbers.push(varint(&mut bytes)?);
    }
    Some(numbers)
}

/// Adds a field that holds text or a message.
pub(super) fn put_bytes(to: &mut Vec<u8>, number: u64, bytes: &[u8]) {
    put_varint(to, number << 3 | 2);
    put_varint(to, bytes.len() as u64);
    to.extend_from_slice(bytes);
}

/// Adds a field that holds a number.
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

fn varint(bytes: &mut &[u8]) -> Option<u64> {
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

fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(count)?;
    *bytes = rest;
    Some(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_together_comes_apart() {
        let mut message = Vec::new();
        put_number(&mut message, 1, 300);
        put_bytes(&mut message, 7, b"hidden");
        message.extend([0x15, 0, 0, 0x80, 0x3f]);
        put_number(&mut message, 20, u64::MAX);
        let found = fields(&message).unwrap();
        assert_eq!(found.iter().map(|field| field.number).collect::<Vec<_>>(), [1, 7, 2, 20]);
        assert_eq!((found[0].value, found[3].value), (Value::Number(300), Value::Number(u64::MAX)));
        assert_eq!((found[1].text(), found[0].text()), (Some("hidden"), None));
        assert_eq!(found[2].value, Value::Fixed32(1.0_f32.to_le_bytes()));
        assert_eq!(found.iter().flat_map(|field| field.whole).copied().collect::<Vec<_>>(), message);
        assert_eq!(packed(&[1, 0xac, 2]), Some(vec![1, 300]));
        for end in 1..message.len() {
            // Cut between two fields it is a shorter message, cut within one it is none.
            let whole: usize = fields(&message[..end]).iter().flatten().map(|field| field.whole.len()).sum();
            assert!(whole == end || whole == 0, "{end}");
        }
        assert_eq!(fields(&[0x0b]), None, "a group");
        assert_eq!(fields(&[0xff; 11]), None, "a number without an end");
    }
}
