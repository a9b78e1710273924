//! SHA-256 digests in lower-case hexadecimal.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

use sha2::{Digest, Sha256};

pub fn sha256(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

pub fn sha256_of_file(path: &Path) -> io::Result<String> {
    sha256_of(File::open(path)?)
}

/// Reads in pieces, because models are large.
pub fn sha256_of(mut file: impl Read) -> io::Result<String> {
    let mut hasher = Sha256::new();
    let mut piece = vec![0; 1 << 16];
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(hex::encode(hasher.finalize())),
            read => hasher.update(&piece[..read]),
        }
    }
}
