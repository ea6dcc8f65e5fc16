//! What a view depends on outside of the project. Read once, so that tests can replace it.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use crate::process::own_program;

/// The system and its user.
#[derive(Debug, Clone, Default)]
pub struct System {
    pub home: Option<PathBuf>,
    pub environment: Vec<(OsString, OsString)>,
    /// All mount points.
    pub mounts: Vec<PathBuf>,
    /// Shared temporary folders.
    pub temp: Vec<PathBuf>,
    /// Folders at the top of the file system, except the kernel's.
    pub roots: Vec<PathBuf>,
    /// Verdone's own binary.
    pub program: Option<PathBuf>,
}

/// The only one of the kernel's folders that contains files of users.
const SHARED_MEMORY: &str = "/dev/shm";

impl System {
    pub fn read() -> Self {
        let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
        let is_folder = |path: &PathBuf| fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir());
        let mut roots: Vec<PathBuf> = fs::read_dir("/").into_iter().flatten().flatten().map(|entry| entry.path()).collect();
        roots.retain(|path| is_folder(path) && !["/proc", "/sys", "/dev"].iter().any(|kernel| path == Path::new(kernel)));
        roots.push(PathBuf::from(SHARED_MEMORY));
        roots.sort();
        Self {
            home: home.map(|home| fs::canonicalize(&home).unwrap_or(home)),
            environment: std::env::vars_os().collect(),
            mounts: fs::read("/proc/self/mountinfo").map_or_else(|_| Vec::new(), |text| mount_points(&text)),
            temp: ["/tmp", "/var/tmp"].map(PathBuf::from).into_iter().filter(is_folder).collect(),
            roots,
            program: own_program().ok(),
        }
    }

    pub(super) fn variable(&self, name: &str) -> Option<&OsStr> {
        let found = self.environment.iter().rev().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_os_str()).filter(|value| !value.is_empty())
    }

    /// A variable that contains an absolute path.
    pub(super) fn path_variable(&self, name: &str) -> Option<PathBuf> {
        self.variable(name).map(PathBuf::from).filter(|path| path.is_absolute())
    }
}

/// Parses the fifth field of each line, in which the kernel writes blanks and backslashes as octal numbers.
fn mount_points(text: &[u8]) -> Vec<PathBuf> {
    let field = |line: &[u8]| line.split(|byte| *byte == b' ').nth(4).map(<[u8]>::to_vec);
    let mut all: Vec<PathBuf> = text
        .split(|byte| *byte == b'\n')
        .filter_map(field)
        .map(|name| PathBuf::from(OsString::from_vec(unescaped(&name))))
        .collect();
    all.sort();
    all.dedup();
    all
}

fn unescaped(name: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(name.len());
    let mut at = 0;
    while at < name.len() {
        let octal = name
            .get(at + 1..at + 4)
            .filter(|digits| name[at] == b'\\' && digits.iter().all(|digit| (b'0'..b'8').contains(digit)));
        if let Some(digits) = octal {
            out.push(digits.iter().fold(0, |value: u8, digit| value.wrapping_mul(8).wrapping_add(digit - b'0')));
            at += 4;
        } else {
            out.push(name[at]);
            at += 1;
        }
    }
    out
}

/// Folders of a list like PATH.
pub(super) fn listed(value: &OsStr) -> Vec<PathBuf> {
    let parts = value.as_bytes().split(|byte| *byte == b':').filter(|part| !part.is_empty());
    parts.map(|part| PathBuf::from(OsStr::from_bytes(part))).filter(|path| path.is_absolute()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_points_are_read_with_their_odd_names() {
        let text = b"36 35 98:0 / / rw,noatime - ext4 /dev/root rw\n\
                     40 36 0:5 /sub /home/u/my\\040disk\\134x rw shared:1 - nfs h:/x rw\n\
                     41 36 0:5 / /home/u/\xff rw - tmpfs t rw\nbroken\n";
        let found = mount_points(text);
        let expected = [Path::new("/"), Path::new("/home/u/my disk\\x"), Path::new(OsStr::from_bytes(b"/home/u/\xff"))];
        assert_eq!(found, expected);
        assert!(System::read().mounts.contains(&PathBuf::from("/proc")), "this machine has one");
    }
}
