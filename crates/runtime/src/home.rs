//! The directories that a run lives in: `.verdone/`, its runs, and the run's own. An agent may move one away and leave a link or a
//! file in its place; then what we write would go somewhere else, or nowhere.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub struct Home {
    root: PathBuf,
    /// From the outermost to the run's own.
    places: Vec<Place>,
}

#[derive(Debug)]
struct Place {
    path: PathBuf,
    /// Device and number: what tells the directory wherever it is moved to.
    identity: (u64, u64),
}

impl Home {
    /// Remembers those that are directories now. A link of the user's own is left alone.
    pub fn of(root: &Path, run_dir: &Path) -> Self {
        let home = root.join(".verdone");
        let paths = [home.clone(), home.join("runs"), run_dir.to_owned()];
        let place = |path: PathBuf| {
            let meta = fs::symlink_metadata(&path).ok().filter(fs::Metadata::is_dir)?;
            Some(Place { path, identity: (meta.dev(), meta.ino()) })
        };
        Self { root: root.to_owned(), places: paths.into_iter().filter_map(place).collect() }
    }

    /// Makes each of them a directory again; the very one, where a link still leads to it. Answers with what was repaired.
    pub fn mend(&self) -> io::Result<Vec<String>> {
        let mut mended = Vec::new();
        for place in &self.places {
            match fs::symlink_metadata(&place.path) {
                Ok(meta) if meta.is_dir() => continue,
                Ok(meta) if meta.is_symlink() => place.come_back()?,
                Ok(_) => place.set_aside()?,
                Err(error) if error.kind() == io::ErrorKind::NotFound => fs::create_dir_all(&place.path)?,
                Err(error) => return Err(error),
            }
            mended.push(crate::site::shown(&place.path, &self.root));
        }
        Ok(mended)
    }
}

impl Place {
    fn come_back(&self) -> io::Result<()> {
        let target = fs::canonicalize(&self.path).ok();
        fs::remove_file(&self.path)?;
        let is_it = |target: &PathBuf| fs::metadata(target).is_ok_and(|meta| (meta.dev(), meta.ino()) == self.identity);
        match target.filter(is_it) {
            Some(target) => fs::rename(target, &self.path),
            None => fs::create_dir_all(&self.path),
        }
    }

    /// What an agent put there is kept inside.
    fn set_aside(&self) -> io::Result<()> {
        let parent = self.path.parent().ok_or(io::ErrorKind::InvalidInput)?;
        let away = tempfile::Builder::new().prefix(".verdone-").tempdir_in(parent)?;
        let found = away.path().join("found");
        fs::rename(&self.path, &found)?;
        fs::create_dir_all(&self.path)?;
        fs::rename(&found, self.path.join("found-in-its-place"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn project() -> (tempfile::TempDir, PathBuf, Home) {
        let dir = tempfile::tempdir().unwrap();
        let run = dir.path().join(".verdone/runs/r1");
        fs::create_dir_all(&run).unwrap();
        fs::write(run.join("journal.jsonl"), "ours").unwrap();
        let home = Home::of(dir.path(), &run);
        (dir, run, home)
    }

    #[test]
    fn a_directory_that_a_link_leads_to_comes_back() {
        for name in [".verdone", ".verdone/runs", ".verdone/runs/r1"] {
            let (dir, run, home) = project();
            fs::rename(dir.path().join(name), dir.path().join("elsewhere")).unwrap();
            symlink(dir.path().join("elsewhere"), dir.path().join(name)).unwrap();
            assert_eq!(home.mend().unwrap(), [name]);
            assert!(fs::symlink_metadata(dir.path().join(name)).unwrap().is_dir());
            assert_eq!(fs::read_to_string(run.join("journal.jsonl")).unwrap(), "ours");
            assert!(!dir.path().join("elsewhere").exists());
            assert!(home.mend().unwrap().is_empty());
        }
    }

    #[test]
    fn a_link_to_somewhere_else_is_replaced_and_nothing_there_is_moved() {
        let (dir, run, home) = project();
        let other = tempfile::tempdir().unwrap();
        fs::remove_dir_all(dir.path().join(".verdone")).unwrap();
        symlink(other.path(), dir.path().join(".verdone")).unwrap();
        assert_eq!(home.mend().unwrap(), [".verdone", ".verdone/runs", ".verdone/runs/r1"]);
        assert!(run.is_dir() && other.path().is_dir());
    }

    #[test]
    fn a_file_in_its_place_is_kept_inside() {
        let (dir, run, home) = project();
        fs::remove_dir_all(dir.path().join(".verdone")).unwrap();
        fs::write(dir.path().join(".verdone"), "a file").unwrap();
        home.mend().unwrap();
        assert!(run.is_dir());
        assert_eq!(fs::read_to_string(dir.path().join(".verdone/found-in-its-place")).unwrap(), "a file");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing is left beside it");
    }
}
