//! Finds the files that match a pattern from the settings: `target/junit/*.xml`, `.env`, `/etc/hosts`. Does not follow links to folders.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use verdone_plan::scope::ScopeMatcher;
use verdone_text::pattern::is_plain;

/// A pattern that visits more files than this is probably a mistake.
const MOST: usize = 50_000;

/// The matching regular files, sorted. A path without wildcards means that file, or everything below that folder.
pub(crate) fn matching(root: &Path, pattern: &str) -> io::Result<Vec<PathBuf>> {
    matching_at(root, Path::new(""), pattern)
}

/// The same for a folder that appears at a path below the start of the pattern.
pub(crate) fn matching_at(folder: &Path, at: &Path, pattern: &str) -> io::Result<Vec<PathBuf>> {
    let parts: Vec<&str> = pattern.split('/').collect();
    let first = parts.iter().position(|part| !is_plain(part)).unwrap_or(parts.len());
    let base = if pattern.starts_with('/') { format!("/{}", parts[..first].join("/")) } else { parts[..first].join("/") };
    // The pattern starts in this folder or above it.
    let (base, above) = match (Path::new(&base).strip_prefix(at), at.strip_prefix(&base)) {
        (Ok(below), _) => (folder.join(below), Path::new("")),
        (Err(_), Ok(above)) => (folder.to_owned(), above),
        (Err(_), Err(_)) => return Ok(Vec::new()),
    };
    let rest = [parts[first..].join("/")];
    let covered = ScopeMatcher::new(&rest, false).map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
    let mut walk = Walk { found: Vec::new(), seen: 0 };
    match fs::symlink_metadata(&base) {
        Ok(meta) if meta.is_dir() => {
            walk.below(&base, Path::new(""), &|path| covered.has(&above.join(path).to_string_lossy()))?;
        }
        Ok(meta) if meta.is_file() && rest[0].is_empty() => walk.found.push(base),
        Ok(_) => {}
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {}
        Err(error) => return Err(error),
    }
    walk.found.sort();
    Ok(walk.found)
}

struct Walk {
    found: Vec<PathBuf>,
    seen: usize,
}

impl Walk {
    fn below(&mut self, base: &Path, folder: &Path, fits: &dyn Fn(&str) -> bool) -> io::Result<()> {
        for entry in fs::read_dir(base.join(folder))? {
            let entry = entry?;
            self.seen += 1;
            if self.seen > MOST {
                return Err(io::Error::other(format!("more than {MOST} files and folders")));
            }
            let (kind, path) = (entry.file_type()?, folder.join(entry.file_name()));
            if kind.is_dir() && entry.file_name() != ".git" {
                self.below(base, &path, fits)?;
            } else if kind.is_file() && fits(&path.to_string_lossy()) {
                self.found.push(base.join(path));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_find_plain_files_and_follow_no_link() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        for name in ["a/b/one.xml", "a/two.xml", "a/three.txt", ".env"] {
            fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
            fs::write(root.join(name), "").unwrap();
        }
        std::os::unix::fs::symlink(root.join("a"), root.join("link")).unwrap();
        std::os::unix::fs::symlink("a/two.xml", root.join("two.xml")).unwrap();
        let found = |pattern: &str| -> Vec<String> {
            let found = matching(root, pattern).unwrap();
            found.iter().map(|path| path.strip_prefix(root).unwrap().display().to_string()).collect()
        };
        assert_eq!(found("a/**/*.xml"), ["a/b/one.xml", "a/two.xml"]);
        assert_eq!(found("a/*.xml"), ["a/two.xml"]);
        assert_eq!(found("a"), ["a/b/one.xml", "a/three.txt", "a/two.xml"]);
        assert_eq!(found(".env"), [".env"]);
        assert_eq!(found(&format!("{}/a/*.txt", root.display())), ["a/three.txt"]);
        let seen = |at: &str, pattern: &str| -> Vec<String> {
            let found = matching_at(&root.join("a"), Path::new(at), pattern).unwrap();
            found.iter().map(|path| path.strip_prefix(root).unwrap().display().to_string()).collect()
        };
        for pattern in ["x/y/**/*.xml", "**/*.xml", "x/*/**/*.xml", "x/y/*.xml", "x/*/*.xml"] {
            let expected: &[&str] = if pattern.contains("**") { &["a/b/one.xml", "a/two.xml"] } else { &["a/two.xml"] };
            assert_eq!(seen("x/y", pattern), expected, "{pattern}");
        }
        assert_eq!(seen("x", "x/two.xml"), ["a/two.xml"]);
        for (at, none) in [("x", "two.xml"), ("x", "*.xml"), ("x", "xy/two.xml"), ("x/y", "x/*.xml"), ("x", "/x/two.xml")] {
            assert!(seen(at, none).is_empty(), "{at}: {none}");
        }
        for none in ["nothing", "nothing/*", ".env/x", "link", "link/*.xml", "two.xml"] {
            assert!(found(none).is_empty(), "{none}");
        }
    }
}
