//! Lessons on disk: `.verdone/guardrails.md`, which is the user's to edit, and their history in the state folder, out of the agents' reach.
//! What is learned and chosen is decided in the core.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use verdone_core::base::id::digest;
use verdone_core::check::lessons::{HISTORY_VERSION, History, Memory};

use crate::base::atomic::{replace_for_good, replace_for_readers, write_atomically};
use crate::base::plain_file::{open_regular, read_regular, real_folder};
use crate::base::seal::state_home;
use crate::project::HOME;
use crate::project::home_gitignore::hide_new_files;

/// The file below the project's root.
pub const FILE: &str = ".verdone/guardrails.md";

/// Larger files are not lists of lessons.
const LARGEST: u64 = 1024 * 1024;
/// Two hundred dropped lessons take less than 200 KB.
const LARGEST_HISTORY: u64 = 4 * 1024 * 1024;

/// How long to wait for another process that learns.
const PATIENCE: Duration = Duration::from_secs(2);

#[derive(Debug, thiserror::Error)]
pub enum LessonsError {
    #[error("{path}: {source}", path = path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{path} is not UTF-8", path = path.display())]
    NotText { path: PathBuf },
    #[error("{path} was written by a newer version of Verdone (format {version})", path = path.display())]
    Newer { path: PathBuf, version: u32 },
    #[error("another process is changing the lessons")]
    Busy,
    #[error("there is no place outside the work tree for the history of lessons: set XDG_STATE_HOME")]
    NoPlace,
}

/// The lessons of one project.
#[derive(Debug, Clone)]
pub struct LessonStore {
    root: PathBuf,
    /// The history's file; `None` if there is no place for it.
    history: Option<PathBuf>,
}

impl LessonStore {
    /// The lessons of the project at `root`, whose work tree is at `top`.
    pub fn new(root: &Path, top: &Path) -> Self {
        let get = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let folder = state_home(get).map(|home| home.join("verdone/lessons"));
        let folder = folder.filter(|folder| !folder.starts_with(top) && !folder.starts_with(root));
        let digest = digest(root.as_os_str().as_encoded_bytes());
        let name = digest.rsplit(':').next().unwrap_or_default();
        let history = folder.map(|folder| folder.join(format!("{}.json", &name[..name.len().min(16)])));
        Self { root: root.to_owned(), history }
    }

    /// The current lessons, for reading. A history that cannot be read is empty.
    pub fn read(&self) -> Memory {
        let history = self.history.as_deref().and_then(|path| read_history(path).ok()).unwrap_or_default();
        let mut memory = Memory { text: guardrails_text(&self.root).unwrap_or_default(), history };
        memory.follow_user();
        memory
    }

    /// Changes the lessons. The line is written before its history: if Verdone dies in between, the line counts as the user's.
    pub fn update(&self, change: impl FnOnce(&mut Memory)) -> Result<(), LessonsError> {
        let path = self.history.as_deref().ok_or(LessonsError::NoPlace)?;
        let _lock = lock(path)?;
        let before = Memory { text: self.text()?, history: read_history(path)? };
        let mut after = before.clone();
        change(&mut after);
        let learned = after.text != before.text;
        if learned {
            self.replace_text(&before.text, &after.text)?;
        }
        if after.history != before.history {
            let mut text = serde_json::to_string_pretty(&after.history).map_err(|error| failed(path)(error.into()))?;
            text.push('\n');
            // Counts may be lost in a power cut, a line's history may not.
            let write = if learned { replace_for_good } else { replace_for_readers };
            write(path, text.as_bytes()).map_err(failed(path))?;
        }
        Ok(())
    }

    /// The whole text of the file, for a change. Links are not followed: an agent of a session could have made one.
    fn text(&self) -> Result<String, LessonsError> {
        let path = self.root.join(FILE);
        match read_regular(&path, LARGEST) {
            Ok(bytes) => String::from_utf8(bytes).map_err(|_| LessonsError::NotText { path }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
            Err(source) => Err(LessonsError::Io { path, source }),
        }
    }

    fn replace_text(&self, before: &str, after: &str) -> Result<(), LessonsError> {
        let path = self.root.join(FILE);
        real_folder(&self.root, Path::new(HOME)).map_err(failed(&path))?;
        // The user may have saved the file meanwhile.
        if self.text()? != before {
            return Err(LessonsError::Busy);
        }
        if !path.exists() {
            hide_new_files(&self.root).map_err(failed(&path))?;
        }
        write_atomically(&path, after.as_bytes()).map_err(failed(&path))
    }
}

/// The text of the project's guardrails, for prompts. `None` if there is no such file.
pub(crate) fn guardrails_text(root: &Path) -> Option<String> {
    let path = root.join(FILE);
    // Opening a pipe would block until somebody writes to it.
    if !path.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(LARGEST).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn read_history(path: &Path) -> Result<History, LessonsError> {
    let bytes = match read_regular(path, LARGEST_HISTORY) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(History::default()),
        Err(error) => return Err(failed(path)(error)),
    };
    let version = serde_json::from_slice::<serde_json::Value>(&bytes).ok().and_then(|value| value["v"].as_u64()).unwrap_or(0);
    if version > u64::from(HISTORY_VERSION) {
        return Err(LessonsError::Newer { path: path.to_owned(), version: u32::try_from(version).unwrap_or(u32::MAX) });
    }
    // A broken history is forgotten: then the lines in the file count as the user's, and none of them is dropped.
    Ok(serde_json::from_slice(&bytes).unwrap_or_default())
}

/// Held until it is dropped.
fn lock(history: &Path) -> Result<File, LessonsError> {
    let path = history.with_extension("lock");
    let folder = path.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(folder).map_err(failed(folder))?;
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).read(true).write(true);
    let file = open_regular(&path, &mut options).map_err(failed(&path))?;
    let began = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::Error(source)) => return Err(failed(&path)(source)),
            Err(TryLockError::WouldBlock) if began.elapsed() > PATIENCE => return Err(LessonsError::Busy),
            Err(TryLockError::WouldBlock) => thread::sleep(Duration::from_millis(5)),
        }
    }
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> LessonsError {
    let path = path.to_owned();
    move |source| LessonsError::Io { path, source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;
    use verdone_core::check::lessons::{Kind, LearnSettings, Lesson, Origin, Status};

    struct Place {
        dir: tempfile::TempDir,
        store: LessonStore,
    }

    impl Place {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let (root, history) = (dir.path().join("work"), dir.path().join("state/verdone/lessons/x.json"));
            fs::create_dir_all(root.join(HOME)).unwrap();
            Self { store: LessonStore { root, history: Some(history) }, dir }
        }

        fn file(&self) -> PathBuf {
            self.store.root.join(FILE)
        }

        fn learn(&self, check: &str) -> Result<(), LessonsError> {
            let lesson = Lesson::new(Kind::CheckFailed).with_check(check);
            let origin = Origin::Attempt { run: "r".to_owned(), story: "s".to_owned(), attempt: 1 };
            self.store.update(|memory| memory.learn(lesson, origin, &LearnSettings::default(), Timestamp::now()))
        }
    }

    #[test]
    fn lessons_are_appended_and_their_history_is_kept_outside() {
        let place = Place::new();
        fs::write(place.file(), "mine, without a line break").unwrap();
        place.learn("a").unwrap();
        place.learn("a").unwrap();
        assert!(!place.store.root.join(".verdone/.gitignore").exists(), "the user's own file stays visible");
        assert_eq!(fs::read_to_string(place.file()).unwrap(), "mine, without a line break\n- A check failed: `a`\n");
        let memory = place.store.read();
        assert_eq!(memory.history.lessons.values().map(|entry| entry.times).collect::<Vec<_>>(), [2]);
        fs::remove_file(place.file()).unwrap();
        place.learn("a").unwrap();
        assert!(!place.file().exists(), "what the user deleted does not come back");
        assert_eq!(place.store.read().history.lessons.values().next().unwrap().status, Status::DroppedByUser);
        assert!(place.dir.path().join("state/verdone/lessons/x.json").is_file());
    }

    #[test]
    fn a_link_a_pipe_or_bytes_that_are_no_text_are_left_alone() {
        let place = Place::new();
        let target = place.dir.path().join("target");
        fs::write(&target, "elsewhere\n").unwrap();
        std::os::unix::fs::symlink(&target, place.file()).unwrap();
        assert!(place.learn("a").is_err());
        assert_eq!(fs::read_to_string(&target).unwrap(), "elsewhere\n");
        fs::remove_file(place.file()).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, place.file(), rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0).unwrap();
        assert!(place.learn("a").is_err());
        assert_eq!(guardrails_text(&place.store.root), None);
        fs::remove_file(place.file()).unwrap();
        fs::write(place.file(), b"\xff\n").unwrap();
        assert!(matches!(place.learn("a"), Err(LessonsError::NotText { .. })));
        assert_eq!(fs::read(place.file()).unwrap(), b"\xff\n");
    }

    #[test]
    fn a_newer_history_is_not_overwritten_and_a_broken_one_is_forgotten() {
        let place = Place::new();
        place.learn("a").unwrap();
        let history = place.store.history.clone().unwrap();
        fs::write(&history, "{\"v\":2}").unwrap();
        assert!(matches!(place.learn("b"), Err(LessonsError::Newer { version: 2, .. })));
        fs::write(&history, "{\"v\":").unwrap();
        place.learn("a").unwrap();
        assert_eq!(fs::read_to_string(place.file()).unwrap(), "- A check failed: `a`\n", "it is there already");
        assert!(place.store.read().history.lessons.values().all(|entry| entry.is_users));
    }

    #[test]
    fn a_file_that_verdone_creates_is_hidden_from_git_status() {
        let place = Place::new();
        place.learn("a").unwrap();
        let ignore = fs::read_to_string(place.store.root.join(".verdone/.gitignore")).unwrap();
        assert!(ignore.contains("\nguardrails.md\n"), "{ignore}");
    }

    #[test]
    fn two_processes_lose_no_lesson() {
        let place = Place::new();
        thread::scope(|scope| {
            for thread in 0..4 {
                let place = &place;
                scope.spawn(move || (0..5).for_each(|n| place.learn(&format!("check {thread} {n}")).unwrap()));
            }
        });
        assert_eq!(fs::read_to_string(place.file()).unwrap().lines().count(), 20);
        assert_eq!(place.store.read().history.lessons.len(), 20);
    }
}
