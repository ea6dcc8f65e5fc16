//! Authenticates files in places where an agent can write. The mark requires the user's secret, which is stored outside the project and
//! readable only by the user. Files without a valid mark were not written by us.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};
use verdone_text::hex;

use crate::base::plain_file::read_regular;

const SECRET: usize = 32;

/// The seal of one project. Seals of other projects are not valid here.
#[derive(Debug)]
pub(crate) struct Seal {
    root: PathBuf,
    secret: [u8; SECRET],
}

impl Seal {
    /// `state_home` is the user's folder for program state. It must not be inside the work tree.
    pub(crate) fn open(root: &Path, git_top: &Path, state_home: &Path) -> Option<Self> {
        let home = state_home.join("verdone");
        fs::create_dir_all(&home).ok()?;
        let home = fs::canonicalize(home).ok()?;
        if home.starts_with(git_top) || home.starts_with(root) {
            return None;
        }
        let secret = secret(&home.join("gate-results.key")).ok()?;
        Some(Self { root: root.to_owned(), secret })
    }

    /// The same, with the state home from the environment.
    pub(crate) fn from_environment(root: &Path, git_top: &Path) -> Option<Self> {
        let home = state_home(|name| std::env::var(name).ok().filter(|value| !value.is_empty()))?;
        Self::open(root, git_top, &home)
    }

    /// Adds the mark to a text. A mark is valid only for its purpose.
    pub(crate) fn put_on(&self, purpose: &str, body: &[u8]) -> Vec<u8> {
        [self.mark(purpose, body).as_bytes(), b"\n", body].concat()
    }

    /// Removes the mark from a text. `None` if the mark is not ours.
    pub(crate) fn checked<'b>(&self, purpose: &str, bytes: &'b [u8]) -> Option<&'b [u8]> {
        let (mark, body) = bytes.split_at_checked(2 * SECRET)?;
        let body = body.strip_prefix(b"\n")?;
        same(mark, self.mark(purpose, body).as_bytes()).then_some(body)
    }

    /// HMAC-SHA256 of the project's path, the purpose and the text.
    pub(crate) fn mark(&self, purpose: &str, body: &[u8]) -> String {
        let padded = |with: u8| -> [u8; 64] { std::array::from_fn(|at| self.secret.get(at).copied().unwrap_or(0) ^ with) };
        let mut inner = Sha256::new().chain_update(padded(0x36));
        for part in [self.root.as_os_str().as_encoded_bytes(), purpose.as_bytes()] {
            inner = inner.chain_update((part.len() as u64).to_be_bytes()).chain_update(part);
        }
        let inner = inner.chain_update(body).finalize();
        hex(&Sha256::new().chain_update(padded(0x5c)).chain_update(inner).finalize())
    }
}

/// The user's folder for program state: `XDG_STATE_HOME`, else `~/.local/state`.
pub(crate) fn state_home(get: impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let absolute = |name: &str| get(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")))
}

/// The user's secret, created if missing. A secret that others can read is replaced.
fn secret(path: &Path) -> io::Result<[u8; SECRET]> {
    if let Some(known) = known_secret(path) {
        return Ok(known);
    }
    let mut fresh = [0; SECRET];
    fs::File::open("/dev/urandom")?.read_exact(&mut fresh)?;
    let parent = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    // Temporary files are readable only by the user.
    let mut file = tempfile::NamedTempFile::new_in(parent)?;
    file.write_all(&fresh)?;
    file.as_file().sync_all()?;
    let is_there = fs::symlink_metadata(path).is_ok();
    if is_there {
        file.persist(path)?;
        return Ok(fresh);
    }
    match file.persist_noclobber(path) {
        Ok(_) => Ok(fresh),
        // Another process was faster.
        Err(_) => known_secret(path).ok_or_else(|| io::Error::other("the secret cannot be read")),
    }
}

fn known_secret(path: &Path) -> Option<[u8; SECRET]> {
    let meta = fs::symlink_metadata(path).ok()?;
    let of_others = meta.mode() & 0o077;
    let private = meta.is_file() && of_others == 0 && meta.uid() == rustix::process::geteuid().as_raw();
    let bytes = read_regular(path, SECRET as u64).ok().filter(|_| private)?;
    bytes.try_into().ok()
}

/// Compares in constant time.
fn same(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_counts_for_its_text_its_purpose_and_its_project_alone() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let seal = Seal::open(&at("one"), &at("one"), &at("state")).unwrap();
        let marked = seal.put_on("verdict", b"green");
        assert_eq!(seal.checked("verdict", &marked), Some(&b"green"[..]));
        assert_eq!(Seal::open(&at("one"), &at("one"), &at("state")).unwrap().checked("verdict", &marked), Some(&b"green"[..]));
        assert_eq!(seal.checked("request", &marked), None);
        assert_eq!(Seal::open(&at("two"), &at("two"), &at("state")).unwrap().checked("verdict", &marked), None);
        assert_eq!(Seal::open(&at("one"), &at("one"), &at("other state")).unwrap().checked("verdict", &marked), None);
        let forged = [&marked[..2 * SECRET], b"\nGREEN"].concat();
        for text in [&forged[..], b"green", b"", b"\n"] {
            assert_eq!(seal.checked("verdict", text), None);
        }
        assert!(Seal::open(&at("one"), dir.path(), &at("state")).is_none(), "a secret in the work tree is none");
    }

    #[test]
    fn the_state_home_is_where_the_user_says() {
        let get = |all: &'static [(&str, &str)]| {
            state_home(move |name| all.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
        };
        assert_eq!(get(&[("HOME", "/h"), ("XDG_STATE_HOME", "/s")]), Some(PathBuf::from("/s")));
        assert_eq!(get(&[("HOME", "/h"), ("XDG_STATE_HOME", "s")]), Some(PathBuf::from("/h/.local/state")));
        assert_eq!(get(&[("HOME", "")]), None);
    }
}
