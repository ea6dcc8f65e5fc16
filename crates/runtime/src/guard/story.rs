//! The story that a run passes to its hooks. Read at most once per call, and only by calls that need it.

use std::cell::OnceCell;
use std::io;
use std::path::{Path, PathBuf};

use verdone_core::base::id::encode_component;
use verdone_core::hook::Briefing;
use verdone_core::policy::Mode;

use super::attempt::TurnOf;
use crate::base::atomic::replace_for_readers;
use crate::base::plain_file::read_regular;
use crate::process::RUN_VARIABLE;
use crate::store::Store;

/// In a folder of the run that agents can read but not write.
const NAME: &str = "turns/story.json";
/// Briefings are capped far below this.
const LARGEST: u64 = 256 * 1024;

/// The hook's story, read on first use.
#[derive(Debug, Default)]
pub struct StoryFile {
    path: Option<PathBuf>,
    read: OnceCell<Result<Option<Briefing>, String>>,
}

impl StoryFile {
    /// The story of the run that the hook belongs to. A user's own session has none.
    pub fn open(root: &Path, mode: Mode) -> Self {
        let run = std::env::var(RUN_VARIABLE).ok().filter(|run| mode == Mode::Run && !run.is_empty());
        let path = run.map(|run| Store::new(root).path().join(encode_component(&run)).join(NAME));
        Self { path, read: OnceCell::new() }
    }

    /// The story of a run, by its folder.
    pub(crate) fn at(run_dir: &Path) -> Self {
        Self { path: Some(run_dir.join(NAME)), read: OnceCell::new() }
    }

    /// The story, if the run provided one.
    pub fn get(&self) -> Option<&Briefing> {
        let path = self.path.as_deref()?;
        self.read.get_or_init(|| read(path)).as_ref().ok()?.as_ref()
    }

    /// The turn that it was written for.
    pub(crate) fn turn(&self) -> Option<TurnOf> {
        self.get().filter(|story| story.iteration > 0).map(|story| TurnOf { iteration: story.iteration, turn: story.turn })
    }

    /// Why it could not be read, if it was requested.
    pub(crate) fn fault(&self) -> Option<&str> {
        self.read.get().and_then(|read| read.as_ref().err()).map(String::as_str)
    }
}

/// Writes the story for the hooks of the next turn.
pub(crate) fn write_briefing(run_dir: &Path, briefing: &Briefing) -> io::Result<()> {
    let path = run_dir.join(NAME);
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    replace_for_readers(&path, serde_json::to_string(briefing)?.as_bytes())
}

fn read(path: &Path) -> Result<Option<Briefing>, String> {
    match read_regular(path, LARGEST) {
        Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|error| format!("{NAME} cannot be parsed: {error}")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("{NAME} cannot be read: {error}")),
    }
}
