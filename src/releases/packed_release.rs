//! Releases that arrive packed: a tar archive, plain or compressed with gzip, of one folder of plain files.
//!
//! The archive is untrusted until the checks of loading have passed. Only a release's files are unpacked: no path leaves
//! the folder, no link is followed, and nothing in the archive makes the service keep much in memory.

use std::{
    fs::{self, File},
    io::{self, BufRead, BufReader, Read, Seek, Write},
    path::{Component, Path},
};

use atelier_engine::release::{MANIFEST, Manifest, check_name};
use flate2::read::MultiGzDecoder;
use tar::{Archive, EntryType};

use super::release_folder::AddError;

/// The most files of a release.
const MOST_FILES: usize = 1000;
/// The most bytes of what an archive says about a file, such as its time.
const MOST_ABOUT: u64 = 64 << 10;

/// The bytes of a file's or folder's header.
const HEADER: u64 = 512;

/// Unpacks an archive of at most `most` bytes into a folder, and gives the release's name, which its own folder has.
///
/// # Errors
/// `Archive` if the archive is wrong, `Disk` if the disk refuses.
pub fn unpack(mut packed: &File, into: &Path, most: u64) -> Result<String, AddError> {
    packed.rewind().map_err(AddError::Disk)?;
    let mut packed = BufReader::new(packed);
    if packed.fill_buf().map_err(AddError::Disk)?.starts_with(&[0x1f, 0x8b]) {
        read(MultiGzDecoder::new(packed), into, most)
    } else {
        read(packed, into, most)
    }
}

fn read(packed: impl Read, into: &Path, most: u64) -> Result<String, AddError> {
    let refuse = |reason: String| Err(AddError::Archive(reason));
    let mut archive = Archive::new(packed);
    let entries = archive.entries().map_err(damaged)?;
    let (mut name, mut files, mut bytes) = (None::<String>, Vec::new(), 0_u64);
    // Raw, so that names which extensions of the format give are refused instead of followed.
    for entry in entries.raw(true) {
        let mut entry = entry.map_err(damaged)?;
        let (kind, size) = (entry.header().entry_type(), entry.size());
        // Headers count, so that a small body cannot unpack to any number of them.
        bytes = bytes.saturating_add(size).saturating_add(HEADER);
        if bytes > most {
            return refuse(format!("the archive has more than {most} bytes (limits.release_bytes)"));
        }
        let path = entry.path().map_err(damaged)?.into_owned();
        let shown = path.display();
        match kind {
            EntryType::XHeader | EntryType::XGlobalHeader => {
                check_about(&mut entry, size)?;
                continue;
            }
            EntryType::Directory | EntryType::Regular | EntryType::Continuous => {}
            _ => return refuse(format!("{shown} is neither a file nor a folder; a release has only those")),
        }
        let parts: Option<Vec<&str>> = path
            .components()
            .filter(|part| *part != Component::CurDir)
            .map(|part| if let Component::Normal(part) = part { part.to_str() } else { None })
            .collect();
        let (folder, file) = match (parts.as_deref(), kind) {
            (Some([]), EntryType::Directory) => continue,
            (Some([folder]), EntryType::Directory) => (*folder, None),
            (Some([folder, file]), EntryType::Regular | EntryType::Continuous) => (*folder, Some(*file)),
            _ => {
                return refuse(format!(
                    "{shown} is in the wrong place: an archive has one folder, NAME, with files, NAME/FILE"
                ));
            }
        };
        match &name {
            Some(name) if name != folder => {
                return refuse(format!("the archive has two folders, {name} and {folder}; a release is one"));
            }
            Some(_) => {}
            None => {
                check_name(folder).map_err(AddError::Archive)?;
                fs::create_dir(into.join(folder)).map_err(AddError::Disk)?;
                name = Some(folder.to_owned());
            }
        }
        let Some(file) = file else { continue };
        if check_name(file).is_err() {
            return refuse(format!("{shown} has no plain file name; leave it out"));
        }
        if files.len() == MOST_FILES {
            return refuse(format!("a release has at most {MOST_FILES} files"));
        }
        let mut out = match File::create_new(into.join(folder).join(file)) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return refuse(format!("{shown} appears twice"));
            }
            created => created.map_err(AddError::Disk)?,
        };
        copy(&mut entry, size, &mut out)?;
        files.push(file.to_owned());
    }
    let Some(name) = name else { return refuse("the archive has no files".to_owned()) };
    let folder = into.join(&name);
    let manifest = Manifest::read(&folder).map_err(|error| AddError::Archive(error.to_string()))?;
    if let Some(file) = files.iter().find(|file| *file != MANIFEST && !manifest.files.contains_key(*file)) {
        return refuse(format!("{name}/{file} is not in the manifest, {MANIFEST}; leave it out"));
    }
    File::open(&folder).and_then(|folder| folder.sync_all()).map_err(AddError::Disk)?;
    Ok(name)
}

/// Checks an archive's note on the next file or all: times and the like, but no name and no length.
fn check_about(entry: &mut impl Read, size: u64) -> Result<(), AddError> {
    let mut about = Vec::new();
    entry.take(MOST_ABOUT).read_to_end(&mut about).map_err(damaged)?;
    let about = String::from_utf8_lossy(&about);
    if size > MOST_ABOUT || ["path=", "size=", "GNU.sparse"].iter().any(|word| about.contains(word)) {
        let reason = "the archive has file names or sizes that plain tar cannot hold";
        return Err(AddError::Archive(reason.to_owned()));
    }
    Ok(())
}

/// On disk before the release is.
fn copy(entry: &mut impl Read, size: u64, out: &mut File) -> Result<(), AddError> {
    let mut piece = vec![0; 1 << 16];
    let mut copied = 0;
    loop {
        let read = entry.read(&mut piece).map_err(damaged)?;
        if read == 0 {
            break;
        }
        out.write_all(&piece[..read]).map_err(AddError::Disk)?;
        copied += read as u64;
    }
    if copied != size {
        return Err(AddError::Archive("the archive is cut short; send it again".to_owned()));
    }
    out.sync_all().map_err(AddError::Disk)
}

#[expect(clippy::needless_pass_by_value, reason = "errors are mapped by value")]
fn damaged(error: io::Error) -> AddError {
    AddError::Archive(format!(
        "the body is not a complete tar archive, plain or compressed with gzip: {error}"
    ))
}
