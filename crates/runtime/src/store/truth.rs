//! A second copy of everything that belongs into a journal, in a file without a name: an agent can write over the journal itself.
//!
//! On disk and not in memory, because a journal has no end. Nothing is taken from it that its digest does not vouch for.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use sha2::{Digest as _, Sha256};

use crate::atomic::write_atomically_with;

#[derive(Debug)]
pub(super) struct Truth {
    file: File,
    length: u64,
    digest: Sha256,
}

impl Truth {
    pub(super) fn new(dir: &Path) -> io::Result<Self> {
        Ok(Self { file: tempfile::tempfile_in(dir)?, length: 0, digest: Sha256::new() })
    }

    /// Not synced: it has to outlive an agent, not a crash.
    pub(super) fn extend(&mut self, lines: &[u8]) -> io::Result<()> {
        self.file.write_all_at(lines, self.length)?;
        self.length += lines.len() as u64;
        self.digest.update(lines);
        Ok(())
    }

    /// Whether a file has these bytes and no others.
    pub(super) fn is_in(&self, path: &Path) -> io::Result<bool> {
        let file = File::open(path)?;
        Ok(file.metadata()?.len() == self.length
            && copy(&file, self.length, &mut io::sink())? == self.digest.clone().finalize()[..])
    }

    #[cfg(test)]
    pub(super) fn forge(&mut self, bytes: &[u8], at: u64) {
        self.file.write_all_at(bytes, at).unwrap();
    }

    /// Writes these bytes in place of whatever is at `path`.
    pub(super) fn write_to(&self, path: &Path) -> io::Result<()> {
        write_atomically_with(path, |to| {
            let copied = copy(&self.file, self.length, to)?;
            if copied != self.digest.clone().finalize()[..] {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "the journal and its copy were both changed by somebody else",
                ));
            }
            Ok(())
        })
    }
}

/// Copies from the beginning of a file and gives the digest of what was copied.
fn copy(from: &File, length: u64, to: &mut dyn io::Write) -> io::Result<Vec<u8>> {
    let mut digest = Sha256::new();
    let mut buffer = vec![0; 64 * 1024];
    let mut at = 0;
    while at < length {
        let part = buffer.len().min(usize::try_from(length - at).unwrap_or(usize::MAX));
        let read = from.read_at(&mut buffer[..part], at)?;
        if read == 0 {
            break;
        }
        digest.update(&buffer[..read]);
        to.write_all(&buffer[..read])?;
        at += read as u64;
    }
    Ok(digest.finalize().to_vec())
}
