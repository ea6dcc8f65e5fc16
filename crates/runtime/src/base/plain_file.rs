//! Opens files that should be ours or git's. An agent may have put a pipe there, which would block us forever, or a link that leads
//! elsewhere. Links are not followed, and only regular files are read or written.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

/// Opens a regular file. Refuses anything else without blocking.
pub(crate) fn open_regular(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC).bits().cast_signed();
    let file = options.custom_flags(flags).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::new(io::ErrorKind::InvalidData, "not a plain file")) }
}

/// The bytes of a regular file of at most `most` bytes.
pub(crate) fn read_regular(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = open_regular(path, OpenOptions::new().read(true))?;
    let mut bytes = Vec::new();
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("larger than {most} bytes")));
    }
    Ok(bytes)
}

/// The same, but follows links, for paths where the user may have placed one.
pub(crate) fn read_linked(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    read_regular(&fs::canonicalize(path)?, most)
}

/// A folder below another, created if missing. No part of the path may be a link.
pub(crate) fn real_folder(root: &Path, path: &Path) -> io::Result<PathBuf> {
    let mut folder = root.to_owned();
    for part in path.components() {
        folder.push(part);
        let found = match fs::symlink_metadata(&folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // Another process may have created it in between.
                fs::create_dir(&folder).or_else(already_exists)?;
                fs::symlink_metadata(&folder)
            }
            found => found,
        };
        if !found?.is_dir() {
            let why = format!("{} is not a folder, and links are not followed", folder.display());
            return Err(io::Error::new(io::ErrorKind::NotADirectory, why));
        }
    }
    Ok(folder)
}

fn already_exists(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::AlreadyExists { Ok(()) } else { Err(error) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_plain_file_of_a_sensible_size_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("file"), "text").unwrap();
        fs::create_dir(at("folder")).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, at("pipe"), rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0).unwrap();
        for (link, to) in [("link-to-file", "file"), ("link-to-pipe", "pipe")] {
            std::os::unix::fs::symlink(at(to), at(link)).unwrap();
        }
        assert_eq!(read_regular(&at("file"), 4).unwrap(), b"text");
        assert_eq!(read_regular(&at("file"), 3).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(read_regular(&at("none"), 4).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(read_linked(&at("link-to-file"), 4).unwrap(), b"text");
        assert!(read_linked(&at("link-to-pipe"), 4).is_err());
        for name in ["folder", "pipe", "link-to-file", "link-to-pipe"] {
            assert!(read_regular(&at(name), 4).is_err(), "{name}");
            assert!(open_regular(&at(name), OpenOptions::new().read(true).write(true).create(true)).is_err(), "{name}");
        }
    }
}
