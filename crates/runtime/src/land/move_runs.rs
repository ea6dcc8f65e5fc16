//! The journals of a work tree that goes away move to the user's checkout, where every command that looks back finds them.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use verdone_core::id::RunId;

use crate::store::Store;

/// Moves every run of the project at `root` from the work tree that goes to the one that stays, oldest first. What was moved before
/// a failure stays moved.
pub(super) fn move_runs(goes: &Path, stays: &Path, root: &Path) -> io::Result<Vec<RunId>> {
    let (from, to) = (Store::of(&goes.join(root)), Store::of(&stays.join(root)));
    let names = match from.directories() {
        Ok(names) if names.is_empty() => return Ok(Vec::new()),
        Ok(names) => names,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    to.hide()?;
    let place = fs::canonicalize(to.path())?;
    if place.starts_with(fs::canonicalize(goes)?) {
        return Err(io::Error::other(format!("{} leads into the work tree that goes", to.path().display())));
    }
    // Both work trees have the same `.verdone/`, by a link: the runs are where they belong.
    if place == fs::canonicalize(from.path())? {
        return Ok(Vec::new());
    }
    let mut moved = Vec::new();
    for name in names {
        let Ok(name) = name.into_string() else { return Err(io::Error::other("a folder has a name that is none of a run")) };
        let run = RunId(name);
        let (old, new) = (from.dir(&run), to.dir(&run));
        if fs::symlink_metadata(&new).is_ok() {
            finish_move(&old, &new)?;
            moved.push(run);
            continue;
        }
        match fs::rename(&old, &new) {
            Ok(()) => sync(to.path())?,
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => copy_over(&old, &new)?,
            Err(error) => return Err(error),
        }
        moved.push(run);
    }
    Ok(moved)
}

/// Killed between copy and deletion, an earlier landing left both; ids are never given twice, so they are the same run.
fn finish_move(old: &Path, new: &Path) -> io::Result<()> {
    let taken = |why: &str| io::Error::new(io::ErrorKind::AlreadyExists, format!("{} {why}", new.display()));
    let identity = |dir: &Path| fs::metadata(dir).map(|meta| (meta.dev(), meta.ino()));
    if identity(old)? == identity(new)? {
        return Err(taken("is the same folder"));
    }
    let journal = |dir: &Path| fs::read(dir.join("journal.jsonl")).ok();
    match (journal(old), journal(new)) {
        (Some(left), Some(there)) if left != there => Err(taken("is there already")),
        (Some(_), None) => Err(taken("is there already")),
        (None | Some(_), _) => {
            sync(new.parent().unwrap_or(new))?;
            fs::remove_dir_all(old)
        }
    }
}

/// Where the two lie on different file systems: a whole copy first, under another name, and only then the original goes.
fn copy_over(old: &Path, new: &Path) -> io::Result<()> {
    let parent = new.parent().ok_or_else(|| io::Error::other("a run lies in a folder"))?;
    let copy = tempfile::Builder::new().prefix(".moving-").tempdir_in(parent)?;
    let inner = copy.path().join("run");
    copy_folder(old, &inner)?;
    fs::rename(&inner, new)?;
    sync(parent)?;
    fs::remove_dir_all(old)
}

fn copy_folder(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (kind, target) = (entry.file_type()?, to.join(entry.file_name()));
        if kind.is_dir() {
            copy_folder(&entry.path(), &target)?;
        } else if kind.is_symlink() {
            std::os::unix::fs::symlink(fs::read_link(entry.path())?, &target)?;
        } else if kind.is_file() {
            fs::copy(entry.path(), &target)?;
            sync(&target)?;
        } else {
            return Err(io::Error::other(format!("{} is no file", entry.path().display())));
        }
    }
    sync(to)
}

/// A file's bytes, or which names a folder has.
fn sync(path: &Path) -> io::Result<()> {
    fs::File::open(path)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_between_file_systems_has_everything_and_the_original_goes_last() {
        let dir = tempfile::tempdir().unwrap();
        let (old, new) = (dir.path().join("old"), dir.path().join("new"));
        fs::create_dir_all(old.join("turns/1")).unwrap();
        fs::write(old.join("journal.jsonl"), "one\n").unwrap();
        fs::write(old.join("turns/1/out"), "two\n").unwrap();
        std::os::unix::fs::symlink("nowhere", old.join("link")).unwrap();
        copy_over(&old, &new).unwrap();
        assert!(!old.exists());
        assert_eq!(fs::read_to_string(new.join("journal.jsonl")).unwrap(), "one\n");
        assert_eq!(fs::read_to_string(new.join("turns/1/out")).unwrap(), "two\n");
        assert_eq!(fs::read_link(new.join("link")).unwrap(), Path::new("nowhere"));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "no half copy is left");
    }

    #[test]
    fn a_move_that_was_cut_short_is_finished_and_another_run_is_never_overwritten() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let run = RunId::from("20260101-120000-0000");
        let dirs = [&from, &to].map(|dir| Store::of(dir.path()).dir(&run));
        for dir in &dirs {
            fs::create_dir_all(dir).unwrap();
            fs::write(dir.join("journal.jsonl"), "one\n").unwrap();
        }
        assert_eq!(move_runs(from.path(), to.path(), Path::new("")).unwrap(), [run]);
        assert!(!dirs[0].exists() && dirs[1].join("journal.jsonl").is_file());
        fs::create_dir_all(&dirs[0]).unwrap();
        fs::write(dirs[0].join("journal.jsonl"), "another\n").unwrap();
        move_runs(from.path(), to.path(), Path::new("")).unwrap_err();
        assert_eq!(fs::read_to_string(dirs[0].join("journal.jsonl")).unwrap(), "another\n");
        assert_eq!(fs::read_to_string(dirs[1].join("journal.jsonl")).unwrap(), "one\n");
    }

    #[test]
    fn what_cannot_be_copied_leaves_the_original_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let (old, new) = (dir.path().join("old"), dir.path().join("new"));
        fs::create_dir(&old).unwrap();
        fs::write(old.join("journal.jsonl"), "one\n").unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, old.join("pipe"), rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0).unwrap();
        copy_over(&old, &new).unwrap_err();
        assert!(!new.exists());
        assert_eq!(fs::read_to_string(old.join("journal.jsonl")).unwrap(), "one\n");
    }

    #[test]
    fn runs_that_both_sides_share_are_never_deleted() {
        let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let [goes, stays] = dirs.each_ref().map(tempfile::TempDir::path);
        let run = RunId::from("20260101-120000-0000");
        let journal = Store::of(goes).dir(&run).join("journal.jsonl");
        fs::create_dir_all(journal.parent().unwrap()).unwrap();
        fs::write(&journal, "one\n").unwrap();
        // The one that stays has only a link into the one that goes.
        std::os::unix::fs::symlink(goes.join(".verdone"), stays.join(".verdone")).unwrap();
        move_runs(goes, stays, Path::new("")).unwrap_err();
        assert_eq!(fs::read_to_string(&journal).unwrap(), "one\n");
        // One run alone is a link.
        fs::remove_file(stays.join(".verdone")).unwrap();
        fs::create_dir_all(stays.join(".verdone/runs")).unwrap();
        std::os::unix::fs::symlink(Store::of(goes).dir(&run), Store::of(stays).dir(&run)).unwrap();
        move_runs(goes, stays, Path::new("")).unwrap_err();
        assert_eq!(fs::read_to_string(&journal).unwrap(), "one\n");
        // The one that goes has only a link into the one that stays.
        fs::remove_file(Store::of(stays).dir(&run)).unwrap();
        fs::rename(Store::of(goes).dir(&run), Store::of(stays).dir(&run)).unwrap();
        fs::remove_dir_all(goes.join(".verdone")).unwrap();
        std::os::unix::fs::symlink(stays.join(".verdone"), goes.join(".verdone")).unwrap();
        assert_eq!(move_runs(goes, stays, Path::new("")).unwrap(), []);
        assert_eq!(fs::read_to_string(&journal).unwrap(), "one\n");
    }
}
