//! The bytes of a file: inflated if it is compressed, and as UTF-8.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read},
    mem,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use encoding_rs::{Decoder, DecoderResult, Encoding, UTF_8};
use flate2::bufread::MultiGzDecoder;

const CAPACITY: usize = 1 << 18;
/// How each gzip file begins.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// A file that is read from its beginning to its end. Its first bytes say whether it is compressed, and whether it is in
/// UTF-8 or UTF-16; its name does not matter.
pub(super) struct Input {
    source: Box<dyn BufRead + Send + Sync>,
    /// The bytes read ahead, and how many are consumed.
    head: Vec<u8>,
    at: usize,
    read: Arc<AtomicU64>,
    total: u64,
    /// Whether a byte order mark said the encoding.
    marked: bool,
}

impl Input {
    /// Reads a file of `total` bytes, which may be compressed.
    pub(super) fn new(file: File, total: u64) -> io::Result<Self> {
        let mut input = Self::bytes(file, total);
        if input.fill_buf()?.starts_with(&GZIP) {
            let inflated = MultiGzDecoder::new(input.source);
            input.source = Box::new(BufReader::with_capacity(CAPACITY, inflated));
        }
        if let Some((encoding, length)) = Encoding::for_bom(input.fill_buf()?) {
            input.consume(length);
            input = input.decode_all(encoding);
            input.marked = true;
        }
        Ok(input)
    }

    /// Reads UTF-8 of `total` bytes as it is.
    pub(super) fn plain(file: File, total: u64) -> io::Result<Self> {
        let mut input = Self::bytes(file, total);
        if let Some((_, length)) = Encoding::for_bom(input.fill_buf()?).filter(|(e, _)| *e == UTF_8) {
            input.consume(length);
        }
        Ok(input)
    }

    fn bytes(file: File, total: u64) -> Self {
        let read = Arc::new(AtomicU64::new(0));
        let counted = Counted { file, read: read.clone() };
        Self { read, total, ..Self::of(BufReader::with_capacity(CAPACITY, counted)) }
    }

    /// Reads text that is at hand.
    pub(super) fn of(source: impl BufRead + Send + Sync + 'static) -> Self {
        Self {
            source: Box::new(source),
            head: Vec::new(),
            at: 0,
            read: Arc::default(),
            total: 0,
            marked: false,
        }
    }

    /// Reads the text in this encoding, unless a byte order mark says another, or it is plainly UTF-8: the files of an import may
    /// differ.
    pub(super) fn decode(mut self, encoding: &'static Encoding) -> io::Result<Self> {
        let head = self.peek()?;
        let is_plain = !head.is_ascii() && is_utf8(head);
        Ok(if self.marked || is_plain { self } else { self.decode_all(encoding) })
    }

    fn decode_all(mut self, encoding: &'static Encoding) -> Self {
        if encoding != UTF_8 {
            let source = Box::new(io::Cursor::new(mem::take(&mut self.head)).chain(self.source));
            let decoder = encoding.new_decoder_without_bom_handling();
            let text = Decoded { source, decoder, ended: false };
            self.source = Box::new(BufReader::with_capacity(CAPACITY, text));
        }
        self
    }

    /// The text that comes next, up to a limit, which is read again later.
    pub(super) fn peek(&mut self) -> io::Result<&[u8]> {
        if self.head.is_empty() {
            (&mut self.source).take(CAPACITY as u64).read_to_end(&mut self.head)?;
        }
        Ok(&self.head[self.at..])
    }

    /// The bytes of the file that were read, and all of them.
    pub(super) fn progress(&self) -> (u64, u64) {
        (self.read.load(Ordering::Relaxed), self.total)
    }
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.fill_buf()?.read(buffer)?;
        self.consume(length);
        Ok(length)
    }
}

impl BufRead for Input {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.at < self.head.len() { Ok(&self.head[self.at..]) } else { self.source.fill_buf() }
    }

    fn consume(&mut self, length: usize) {
        if self.at < self.head.len() {
            self.at += length;
        } else {
            self.source.consume(length);
        }
    }
}

/// Whether the beginning of a text, in which a character may be cut at the end, is UTF-8.
pub(super) fn is_utf8(head: &[u8]) -> bool {
    std::str::from_utf8(head).map_or_else(|error| error.error_len().is_none(), |_| true)
}

/// Counts what is read of a file, which may be a pipe.
struct Counted {
    file: File,
    read: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.file.read(buffer)?;
        self.read.fetch_add(length as u64, Ordering::Relaxed);
        Ok(length)
    }
}

/// Text in another encoding, as UTF-8.
struct Decoded {
    source: Box<dyn BufRead + Send + Sync>,
    decoder: Decoder,
    ended: bool,
}

impl Read for Decoded {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut length = 0;
        while length == 0 && !self.ended {
            let bytes = self.source.fill_buf()?;
            let at_end = bytes.is_empty();
            let (result, read, written) =
                self.decoder.decode_to_utf8_without_replacement(bytes, buffer, at_end);
            self.source.consume(read);
            length = written;
            match result {
                DecoderResult::InputEmpty => self.ended = at_end,
                DecoderResult::OutputFull => {}
                DecoderResult::Malformed(..) => {
                    let name = self.decoder.encoding().name();
                    return Err(io::Error::new(
                        io::ErrorKind::InvalidData,
                        format!("it is not text in {name}"),
                    ));
                }
            }
        }
        Ok(length)
    }
}
