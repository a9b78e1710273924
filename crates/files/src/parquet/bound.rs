//! Bounds what a small file may expand to: compression and repetition make gigabytes of some kilobytes.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read, Seek, SeekFrom},
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
/// The most bytes of a page's header. It may have statistics with two values of the column.
const MAX_HEADER: u64 = 8 << 20;
/// The most bytes of the pages in memory, over all columns.
const MAX_PAGES: usize = 256 << 20;
/// The most values of the rows in memory, and of a column's pages that they are in: far above usual lists.
pub(super) const MAX_VALUES: usize = 4 << 20;

/// A file that refuses to read a page of an unreasonable size, before the page is decompressed.
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

/// The bytes from a position on.
pub(super) struct Start {
    bytes: BufReader<File>,
    /// Whether they begin with the header of a page, which was not checked yet.
    unchecked: bool,
}

impl Read for Start {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if mem::take(&mut self.unchecked) {
            let start = self.bytes.stream_position()?;
            check_page_header(&mut self.bytes.by_ref().take(MAX_HEADER)).map_err(io::Error::other)?;
            self.bytes.seek(SeekFrom::Start(start))?;
        }
        self.bytes.read(buffer)
    }
}

/// The types of a struct's fields, by their ids from 1, and of the fields in it.
#[derive(Debug, Clone, Copy)]
enum Type {
    Bool,
    Integer,
    Binary,
    Struct(&'static [Type]),
}

/// A page's header, as the format describes it.
const HEADER: &[Type] = {
    use Type::{Binary, Bool, Integer, Struct};
    const STATISTICS: Type = Struct(&[Binary, Binary, Integer, Integer, Binary, Binary, Bool, Bool, Integer]);
    const DATA: Type = Struct(&[Integer, Integer, Integer, Integer, STATISTICS]);
    const DICTIONARY: Type = Struct(&[Integer, Integer, Bool]);
    const DATA_2: Type = Struct(&[Integer, Integer, Integer, Integer, Integer, Integer, Bool, STATISTICS]);
    &[Integer, Integer, Integer, Integer, DATA, Struct(&[]), DICTIONARY, DATA_2]
};
/// The id of the field with the bytes of the page when it is decompressed.
const SIZE: usize = 2;

/// Checks the size in the header, and that the header can be read in one way only: the crate takes the last of two fields with
/// the same id, and reads a known field as its type, whatever type the file gives it.
fn check_page_header(bytes: &mut impl BufRead) -> Result<(), String> {
    match check_struct(bytes, HEADER) {
        Some(0..=MAX_PAGE) => Ok(()),
        Some(size) if size > 0 => {
            Err(format!("a page has {size} bytes, expected at most {} MiB", MAX_PAGE >> 20))
        }
        _ => Err("a page has an invalid header".into()),
    }
}

/// Reads a struct in Thrift's compact protocol, and gives the integer in the field [`SIZE`], or -1. None if the struct is
/// invalid or its fields are not in the order of their ids.
fn check_struct(bytes: &mut impl BufRead, fields: &[Type]) -> Option<i64> {
    let (mut id, mut size) = (0, -1);
    loop {
        let byte = read_byte(bytes)?;
        let (step, found) = (usize::from(byte >> 4), byte & 0x0F);
        if found == 0 {
            return Some(size);
        }
        if step == 0 {
            // The id follows, and may be any.
            return None;
        }
        id += step;
        match (found, fields.get(id - 1)) {
            (1 | 2, None | Some(Type::Bool)) => {}
            (4..=6, None | Some(Type::Integer)) => {
                let number = read_number(bytes)?;
                if id == SIZE {
                    size = (number >> 1).cast_signed() ^ -(number & 1).cast_signed();
                }
            }
            (8, None | Some(Type::Binary)) => {
                let length = read_number(bytes)?;
                let skipped = io::copy(&mut bytes.by_ref().take(length), &mut io::sink()).ok()?;
                (skipped == length).then_some(())?;
            }
            (12, Some(Type::Struct(fields))) => {
                check_struct(bytes, fields)?;
            }
            _ => return None,
        }
    }
}

fn read_byte(bytes: &mut impl BufRead) -> Option<u8> {
    let mut byte = [0];
    bytes.read_exact(&mut byte).ok()?;
    Some(byte[0])
}

fn read_number(bytes: &mut impl BufRead) -> Option<u64> {
    let mut number = 0;
    for shift in (0..u64::BITS).step_by(7) {
        let byte = read_byte(bytes)?;
        number |= u64::from(byte & 0x7F) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// The pages in memory of a row group's columns.
#[derive(Clone, Default)]
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
        let check = |mut bytes: &[u8]| check_page_header(&mut bytes);
        // A dictionary page of 300 bytes, and a data page with statistics.
        assert_eq!(check(&[0x15, 4, 0x15, 0xD8, 4, 0x15, 8, 0x4C, 0x15, 2, 0x15, 0, 0x11, 0, 0]), Ok(()));
        let data = [0x15, 0, 0x15, 8, 0x15, 8, 0x2C, 0x15, 2, 0x15, 0, 0x15, 6, 0x15, 6];
        let statistics = [0x1C, 0x36, 0, 0x28, 1, b'b', 0x18, 1, b'a', 0x11, 0x11, 0, 0, 0];
        assert_eq!(check(&[&data[..], &statistics].concat()), Ok(()));
        let large = check(&[0x15, 4, 0x15, 0x80, 0x80, 0x80, 0x80, 8, 0x15, 8, 0]).unwrap_err();
        assert!(large.contains("a page has 1073741824 bytes, expected at most 64 MiB"), "{large}");
        for damaged in [
            &[][..],
            &[0x15],
            &[0x15, 4, 0x15, 2],
            // No size, and one that the crate reads as 2^30.
            &[0x15, 4, 0x25, 2, 0],
            &[0x15, 4, 0x15, 0xFF, 0xFF, 0xFF, 0xFF, 0x17, 0x15, 2, 0],
            // A second size, in its place and after a struct.
            &[0x15, 4, 0x15, 2, 0x05, 4, 0x80, 0x80, 0x80, 0x80, 8, 0x15, 2, 0],
            &[0x15, 4, 0x15, 2, 0x15, 2, 0x2C, 0x15, 2, 0, 0x05, 4, 0x80, 0x80, 0x80, 0x80, 8, 0],
            // A checksum that is called a text, which hides the second size.
            &[0x15, 4, 0x15, 2, 0x15, 2, 0x18, 8, 0x05, 4, 0x80, 0x80, 0x80, 0x80, 8, 0, 0],
        ] {
            assert!(check(damaged).unwrap_err().contains("invalid header"), "{damaged:?}");
        }
    }
}
