//! What the two text formats share when they are read.

use std::io::{self, BufRead};

/// Longest row: far above any that makes sense, far below what memory can hold.
pub(super) const LONGEST: usize = 16 << 20;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Takes the byte order mark off the front, if there is one, and says how long it was.
pub(super) fn skip_byte_order_mark(input: &mut impl BufRead) -> io::Result<u64> {
    if input.fill_buf()?.starts_with(BYTE_ORDER_MARK) {
        input.consume(BYTE_ORDER_MARK.len());
        return Ok(BYTE_ORDER_MARK.len() as u64);
    }
    Ok(0)
}

/// The reason of a row that could not be read because the disk or the network failed.
pub(super) fn stopped(error: &io::Error) -> String {
    format!("the file cannot be read any further: {error}")
}
