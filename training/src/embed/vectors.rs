//! The vectors that an encoder has made, in a file to which more are appended.
//!
//! The length of a vector, then for each the SHA-256 of what it was made of and its numbers. A vector that a kill cut off
//! is made again.

use std::{
    collections::HashMap,
    fs::File,
    io::{Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};
use sha2::{Digest, Sha256};

const HEADER: usize = 4;
const KEY: usize = 32;

pub(super) type Key = [u8; KEY];

#[derive(Debug)]
pub(super) struct Vectors {
    path: PathBuf,
    file: File,
    length: usize,
    known: HashMap<Key, Box<[f32]>>,
}

impl Vectors {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let shown = || path.display().to_string();
        let mut file = File::options().read(true).append(true).create(true).open(path).with_context(shown)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).with_context(shown)?;
        let (mut length, mut known, mut whole) = (0, HashMap::new(), 0);
        if let Some((header, rows)) = bytes.split_first_chunk::<HEADER>() {
            length = u32::from_le_bytes(*header) as usize;
            let rows = rows.chunks_exact(KEY + 4 * length);
            whole = bytes.len() - rows.remainder().len();
            known = rows.map(read_row).collect();
        }
        file.set_len(whole as u64).with_context(shown)?;
        file.seek(SeekFrom::End(0)).with_context(shown)?;
        Ok(Self { path: path.to_owned(), file, length, known })
    }

    pub(super) fn length(&self) -> usize {
        self.length
    }

    pub(super) fn get(&self, source: &str) -> Option<&[f32]> {
        self.known.get(&key(source)).map(|vector| &**vector)
    }

    pub(super) fn digests(&self) -> impl Iterator<Item = Key> {
        self.known.values().map(|vector| digest(vector))
    }

    pub(super) fn append(&mut self, source: &str, vector: Vec<f32>) -> Result<()> {
        let mut bytes = Vec::new();
        if self.length == 0 {
            self.length = vector.len();
            bytes.extend(u32::try_from(vector.len()).context("vectors are short")?.to_le_bytes());
        }
        let (expected, found) = (self.length, vector.len());
        ensure!(
            found == expected,
            "the encoder makes vectors of {expected} and of {found} numbers; expected one length"
        );
        bytes.extend(key(source));
        bytes.extend(vector.iter().flat_map(|number| number.to_le_bytes()));
        self.known.insert(key(source), vector.into());
        self.file.write_all(&bytes).with_context(|| format!("cannot write {}", self.path.display()))
    }
}

fn key(source: &str) -> Key {
    Sha256::digest(source).into()
}

/// Of a vector's numbers.
pub(super) fn digest(vector: &[f32]) -> Key {
    let bytes: Vec<u8> = vector.iter().flat_map(|number| number.to_le_bytes()).collect();
    Sha256::digest(bytes).into()
}

fn read_row(row: &[u8]) -> (Key, Box<[f32]>) {
    let (key, numbers) = row.split_first_chunk().expect("a row begins with a key");
    let numbers = numbers.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes));
    (*key, numbers.collect())
}
