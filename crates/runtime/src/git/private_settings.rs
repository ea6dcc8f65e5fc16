//! The settings of a private repository: the user's local ones, without secrets and without settings that would point it
//! elsewhere.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use super::Git;
use super::error::GitError;
use crate::base::plain_file::read_linked;

const LARGEST: u64 = 64 * 1024 * 1024;

/// Appended last, so that they win: the user's file system monitor does not work in a view.
const FIXED: &str = "\n[core]\n\tfsmonitor = false\n\tbare = false\n";

/// Settings that are tied to the real repository's location or contain secrets.
const LEFT_OUT: [&str; 6] =
    ["core.worktree", "core.bare", "extensions.worktreeconfig", "include.path", "credential.helper", "http.extraheader"];

/// The whole config file. Starts a process only if reading the text is not enough: it includes other files, has settings of a
/// linked work tree, or contains secrets.
pub(super) fn private_settings(git: &Git) -> Result<Vec<u8>, GitError> {
    let path = git.common_dir.join("config");
    let text = read_linked(&path, LARGEST).map_err(GitError::io(&path))?;
    let text = without_place(text);
    let mut out = if is_plain(&text) { text } else { effective_settings(git)? };
    out.extend_from_slice(FIXED.as_bytes());
    Ok(out)
}

/// Removes the line with the work tree's location, which git writes into each submodule's repository.
fn without_place(text: Vec<u8>) -> Vec<u8> {
    if text.windows(2).any(|pair| pair == b"\\\n") {
        return text;
    }
    let is_place = |line: &&[u8]| line.starts_with(b"\tworktree = ");
    text.split_inclusive(|byte| *byte == b'\n').filter(|line| !is_place(line)).collect::<Vec<_>>().concat()
}

fn is_plain(text: &[u8]) -> bool {
    let lower = text.to_ascii_lowercase();
    let has = |word: &str| lower.windows(word.len()).any(|window| window == word.as_bytes());
    let has_login = lower.split(|byte| *byte == b'\n').any(|line| {
        let scheme = line.windows(3).position(|window| window == b"://");
        scheme.is_some_and(|at| line[at..].contains(&b'@'))
    });
    !has_login && !["include", "worktree", "extraheader", "credential"].iter().any(|word| has(word))
}

/// All settings of the local files, as git reads them.
fn effective_settings(git: &Git) -> Result<Vec<u8>, GitError> {
    let listed = git.plumbing("config").args(["--list", "-z", "--show-scope", "--includes"]).run()?;
    let fields: Vec<&[u8]> = listed.split(|byte| *byte == 0).collect();
    let mut out = Vec::new();
    for pair in fields.chunks_exact(2).filter(|pair| matches!(pair[0], b"local" | b"worktree")) {
        let (name, value) = match pair[1].iter().position(|byte| *byte == b'\n') {
            Some(end) => (&pair[1][..end], Some(&pair[1][end + 1..])),
            None => (pair[1], None),
        };
        write_setting(&mut out, name, value);
    }
    Ok(out)
}

fn write_setting(out: &mut Vec<u8>, name: &[u8], value: Option<&[u8]>) {
    let (Some(first), Some(last)) = (name.iter().position(|byte| *byte == b'.'), name.iter().rposition(|byte| *byte == b'.'))
    else {
        return;
    };
    let (section, key) = (&name[..first], &name[last + 1..]);
    let plain = String::from_utf8_lossy(&[section, b".", key].concat()).to_ascii_lowercase();
    if LEFT_OUT.contains(&plain.as_str()) || section == b"includeif" {
        return;
    }
    out.push(b'[');
    out.extend_from_slice(section);
    if first < last {
        out.extend_from_slice(b" \"");
        for byte in without_login(&name[first + 1..last]) {
            if matches!(byte, b'"' | b'\\') {
                out.push(b'\\');
            }
            out.push(byte);
        }
        out.push(b'"');
    }
    out.extend_from_slice(b"]\n\t");
    out.extend_from_slice(key);
    if let Some(value) = value {
        out.extend_from_slice(b" = \"");
        for byte in without_login(value) {
            match byte {
                b'"' | b'\\' => out.extend([b'\\', byte]),
                b'\n' => out.extend(b"\\n"),
                _ => out.push(byte),
            }
        }
        out.push(b'"');
    }
    out.push(b'\n');
}

/// A URL without name and password: `https://name:secret@host/` becomes `https://host/`.
fn without_login(value: &[u8]) -> Vec<u8> {
    let Some(start) = value.windows(3).position(|window| window == b"://").map(|at| at + 3) else { return value.to_vec() };
    let rest = &value[start..];
    let host_end = rest.iter().position(|byte| *byte == b'/').unwrap_or(rest.len());
    let Some(at) = rest[..host_end].iter().rposition(|byte| *byte == b'@') else { return value.to_vec() };
    // For ssh this is only the user name, not a secret.
    let is_secret = rest[..at].contains(&b':') || OsStr::from_bytes(value).as_encoded_bytes().starts_with(b"http");
    if is_secret { [&value[..start], &rest[at + 1..]].concat() } else { value.to_vec() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_lose_their_passwords_and_nothing_else() {
        for (value, expected) in [
            ("https://me:token@example.org/x.git", "https://example.org/x.git"),
            ("https://token@example.org/x.git", "https://example.org/x.git"),
            ("ssh://git@example.org/x.git", "ssh://git@example.org/x.git"),
            ("git@example.org:x.git", "git@example.org:x.git"),
            ("https://example.org/a@b", "https://example.org/a@b"),
        ] {
            assert_eq!(without_login(value.as_bytes()), expected.as_bytes());
        }
    }

    #[test]
    fn the_place_of_a_submodule_is_left_out() {
        let before = b"[core]\n\tbare = false\n\tworktree = ../../../lib\n[remote \"origin\"]\n".to_vec();
        assert_eq!(without_place(before), b"[core]\n\tbare = false\n[remote \"origin\"]\n");
        let continued = b"[alias]\n\tx = one \\\n\tworktree = two\n".to_vec();
        assert_eq!(without_place(continued.clone()), continued);
    }

    #[test]
    fn plain_settings_need_no_process() {
        assert!(is_plain(b"[remote \"origin\"]\n\turl = git@example.org:x.git\n[core]\n\tbare = false\n"));
        for text in ["[include]\n\tpath = x", "[core]\n\tworktree = /x", "url = https://a:b@c/d", "[http]\n\textraHeader = x"] {
            assert!(!is_plain(text.as_bytes()), "{text}");
        }
    }
}
