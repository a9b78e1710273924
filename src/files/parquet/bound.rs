//! Bounds what a small file may expand to: compression and repetition make gigabytes of some kilobytes.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read},
    mem,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use ::parquet::{
    column::page::{Page, PageMetadata, PageReader},
    errors::ParquetError,
    file::{
        reader::{ChunkReader, Length},
        serialized_reader::SerializedFileReader,
    },
};
use bytes::Bytes;

/// The most bytes of a page. Most writers make pages of one megabyte.
const MAX_PAGE: i64 = 64 << 20;
/// The most bytes of the pages in memory, over all columns.
const MAX_PAGES: usize = 256 << 20;
/// The most values of the rows in memory, and of a column's pages that they are in: far above usual lists.
pub(super) const MAX_VALUES: usize = 4 << 20;

/// A file that refuses to read a page of an unreasonable size, before the page is decompressed.
#[derive(Debug)]
pub(super) struct BoundedFile {
    file: File,
    /// Whether the file's description was read, so that only pages follow.
    opened: Arc<AtomicBool>,
}

impl BoundedFile {
    pub(super) fn open(file: File) -> Result<SerializedFileReader<Self>, ParquetError> {
        let opened = Arc::new(AtomicBool::new(false));
        let reader = SerializedFileReader::new(Self { file, opened: Arc::clone(&opened) })?;
        opened.store(true, Ordering::Relaxed);
        Ok(reader)
    }
}

impl Length for BoundedFile {
    fn len(&self) -> u64 {
        self.file.len()
    }
}

impl ChunkReader for BoundedFile {
    type T = Start;

    /// Once the file is open, only headers of pages are read from it. The crate does not read where it knows the header
    /// already.
    fn get_read(&self, start: u64) -> Result<Start, ParquetError> {
        Ok(Start { bytes: self.file.get_read(start)?, unchecked: self.opened.load(Ordering::Relaxed) })
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        self.file.get_bytes(start, length)
    }
}

/// The bytes from a place on.
#[derive(Debug)]
pub(super) struct Start {
    bytes: BufReader<File>,
    /// Whether they begin with the header of a page, which was not checked yet.
    unchecked: bool,
}

impl Read for Start {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if mem::take(&mut self.unchecked) {
            check_page_header(self.bytes.fill_buf()?).map_err(io::Error::other)?;
        }
        self.bytes.read(buffer)
    }
}

/// The header begins with its type and its size, both as Thrift's compact protocol writes integers.
fn check_page_header(mut bytes: &[u8]) -> Result<(), String> {
    let kind = read_integer(&mut bytes);
    let size = read_integer(&mut bytes);
    match (kind, size) {
        (Some(_), Some(size)) if size <= MAX_PAGE => Ok(()),
        (Some(_), Some(size)) => {
            Err(format!("a page has {size} bytes, expected at most {} MiB", MAX_PAGE >> 20))
        }
        _ => Err("a page has an invalid header".into()),
    }
}

/// Reads a field that follows the one before it.
fn read_integer(bytes: &mut &[u8]) -> Option<i64> {
    /// One field further, of the type i32.
    const NEXT_I32: u8 = 0x15;
    let (field, mut rest) = bytes.split_first()?;
    if *field != NEXT_I32 {
        return None;
    }
    let mut number = 0_u64;
    for shift in (0..35).step_by(7) {
        let (byte, after) = rest.split_first()?;
        rest = after;
        number |= u64::from(byte & 0x7F) << shift;
        if byte & 0x80 == 0 {
            *bytes = rest;
            return Some((number >> 1).cast_signed() ^ -(number & 1).cast_signed());
        }
    }
    None
}

/// The pages in memory of a row group's columns.
#[derive(Debug, Clone, Default)]
pub(super) struct Held(Arc<AtomicUsize>);

/// The pages of a column. They are refused if those in memory become too large.
pub(super) struct BoundedPages {
    pages: Box<dyn PageReader>,
    held: Held,
    /// The bytes of the column's last data page and dictionary.
    own: [usize; 2],
    /// The values that the column's pages had since the batch began, if it has lists.
    values: Option<Arc<AtomicUsize>>,
}

impl BoundedPages {
    pub(super) fn new(pages: Box<dyn PageReader>, held: Held, values: Option<Arc<AtomicUsize>>) -> Self {
        Self { pages, held, own: [0; 2], values }
    }

    fn check(&mut self, page: &Page) -> Result<(), ParquetError> {
        let (own, Held(held)) = (&mut self.own[usize::from(page.is_dictionary_page())], &self.held);
        let before = mem::replace(own, page.buffer().len());
        let held = held.fetch_add(*own, Ordering::Relaxed) + *own;
        self.held.0.fetch_sub(before, Ordering::Relaxed);
        if held - before > MAX_PAGES {
            let most = MAX_PAGES >> 20;
            return Err(ParquetError::General(format!(
                "the pages of its columns have more than {most} MiB; write smaller pages"
            )));
        }
        let Some(values) = self.values.as_ref().filter(|_| page.is_data_page()) else { return Ok(()) };
        let found = page.num_values() as usize;
        if values.fetch_add(found, Ordering::Relaxed) + found > MAX_VALUES {
            return Err(too_many_values());
        }
        Ok(())
    }
}

pub(super) fn too_many_values() -> ParquetError {
    ParquetError::General(format!(
        "its lists have more than {MAX_VALUES} values at once; write smaller pages"
    ))
}

impl PageReader for BoundedPages {
    fn get_next_page(&mut self) -> Result<Option<Page>, ParquetError> {
        let page = self.pages.get_next_page()?;
        page.as_ref().map_or(Ok(()), |page| self.check(page))?;
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>, ParquetError> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<(), ParquetError> {
        self.pages.skip_next_page()
    }

    fn at_record_boundary(&mut self) -> Result<bool, ParquetError> {
        self.pages.at_record_boundary()
    }
}

impl Iterator for BoundedPages {
    type Item = Result<Page, ParquetError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_header_says_the_size() {
        let check = check_page_header;
        // A dictionary page of 300 bytes.
        assert_eq!(check(&[0x15, 0x04, 0x15, 0xD8, 0x04, 0x15]), Ok(()));
        let large = check(&[0x15, 0x04, 0x15, 0x80, 0x80, 0x80, 0x80, 0x08]).unwrap_err();
        assert!(large.contains("a page has 1073741824 bytes, expected at most 64 MiB"), "{large}");
        for damaged in
            [&[][..], &[0x15], &[0x15, 0x04, 0x16, 0x02], &[0x15, 4, 0x15, 255, 255, 255, 255, 255]]
        {
            assert!(check(damaged).unwrap_err().contains("invalid header"), "{damaged:?}");
        }
    }
}
