//! The bytes of a file, inflated if it is compressed.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read},
};

use flate2::bufread::MultiGzDecoder;

const CAPACITY: usize = 1 << 18;
/// How each gzip file begins.
const GZIP: [u8; 2] = [0x1f, 0x8b];
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// A file that is read from its beginning to its end. Its first bytes say whether it is compressed, its name does not
/// matter.
#[derive(Debug)]
pub(super) struct Input {
    source: Source,
    total: u64,
}

#[derive(Debug)]
enum Source {
    Plain(BufReader<Counted>),
    Gzip(Box<BufReader<MultiGzDecoder<BufReader<Counted>>>>),
}

impl Input {
    /// Reads a file of `total` bytes, which may be compressed.
    pub(super) fn new(file: File, total: u64) -> io::Result<Self> {
        let mut plain = BufReader::with_capacity(CAPACITY, Counted { file, read: 0 });
        let source = if plain.fill_buf()?.starts_with(&GZIP) {
            Source::Gzip(Box::new(BufReader::with_capacity(CAPACITY, MultiGzDecoder::new(plain))))
        } else {
            Source::Plain(plain)
        };
        Self::without_mark(source, total)
    }

    /// Reads a file of `total` bytes as it is.
    pub(super) fn plain(file: File, total: u64) -> io::Result<Self> {
        let plain = BufReader::with_capacity(CAPACITY, Counted { file, read: 0 });
        Self::without_mark(Source::Plain(plain), total)
    }

    /// Skips a byte order mark.
    fn without_mark(source: Source, total: u64) -> io::Result<Self> {
        let mut input = Self { source, total };
        if input.fill_buf()?.starts_with(BYTE_ORDER_MARK) {
            input.consume(BYTE_ORDER_MARK.len());
        }
        Ok(input)
    }

    /// The bytes of the file that were read, and all of them.
    pub(super) fn progress(&self) -> (u64, u64) {
        let read = match &self.source {
            Source::Plain(plain) => plain.get_ref().read - plain.buffer().len() as u64,
            Source::Gzip(inflated) => inflated.get_ref().get_ref().get_ref().read,
        };
        (read, self.total)
    }
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.source {
            Source::Plain(plain) => plain.read(buffer),
            Source::Gzip(inflated) => inflated.read(buffer),
        }
    }
}

impl BufRead for Input {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        match &mut self.source {
            Source::Plain(plain) => plain.fill_buf(),
            Source::Gzip(inflated) => inflated.fill_buf(),
        }
    }

    fn consume(&mut self, length: usize) {
        match &mut self.source {
            Source::Plain(plain) => plain.consume(length),
            Source::Gzip(inflated) => inflated.consume(length),
        }
    }
}

/// Counts what is read of a file, which may be a pipe.
#[derive(Debug)]
struct Counted {
    file: File,
    read: u64,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.file.read(buffer)?;
        self.read += length as u64;
        Ok(length)
    }
}
