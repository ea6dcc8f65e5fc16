//! `loop.json` of a session, and how it and its copy outside of the project stand for each other.

use std::fs;
use std::io;
use std::path::Path;
use std::thread;
use std::time::Duration;

use serde::Serialize;
use verdone_core::stop::{LOOP_VERSION, LoopState};

use crate::atomic::replace_for_readers;
use crate::regular::read_regular;

use super::StopError;
use super::custody::Kept;
use super::files::{LARGEST, SessionFiles, file_error, make, remove, write_bytes};

pub(super) const LOOP: &str = "loop.json";
/// Longer than a hook needs between writing one and the other.
const MOMENT: Duration = Duration::from_millis(30);

/// A session's loop, and what is odd about its file.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) state: Option<LoopState>,
    pub(crate) note: Option<String>,
}

impl SessionFiles {
    fn has_copy(&self) -> bool {
        self.custody.as_ref().is_some_and(|(custody, name)| custody.has(name))
    }

    /// Whether a loop was ever started for it, as far as a look tells.
    pub(crate) fn has_loop(&self) -> bool {
        fs::symlink_metadata(self.dir.join(LOOP)).is_ok() || self.has_copy()
    }

    /// Whether a loop holds the session. What cannot be read does: the agent may have broken it.
    pub(crate) fn is_held(&self) -> bool {
        let holds = || read_state(&self.dir.join(LOOP)).map_or(true, |state| state.is_some_and(|state| state.is_active()));
        // A copy is there only while the loop holds.
        self.has_copy() || (self.has_loop() && holds())
    }

    /// The loop, by its copy where there is one. Changes nothing.
    pub(crate) fn state(&self) -> Result<Option<LoopState>, StopError> {
        let path = self.dir.join(LOOP);
        match self.custody.as_ref().map(|(custody, name)| custody.get(name)) {
            Some(Kept::Copy(body)) => parse_state(&path, &body).map(Some),
            Some(Kept::Nothing | Kept::Broken) | None => read_state(&path),
        }
    }

    /// The same for who decides about the session: where the file is not what we wrote, the copy counts, and the file is put back.
    pub(crate) fn found(&self) -> Result<Found, StopError> {
        let path = self.dir.join(LOOP);
        let Some((custody, name)) = &self.custody else { return Ok(Found { state: read_state(&path)?, note: None }) };
        let mut kept = custody.get(name);
        if let Kept::Copy(_) = kept
            && !self.is_like(&kept)
        {
            // Another hook of the session may be writing both.
            thread::sleep(MOMENT);
            kept = custody.get(name);
        }
        let is_broken = match &kept {
            Kept::Copy(body) if self.is_like(&kept) => {
                return Ok(Found { state: Some(parse_state(&path, body)?), note: None });
            }
            Kept::Copy(body) => return self.by_copy(body),
            Kept::Nothing => false,
            Kept::Broken => true,
        };
        let state = read_state(&path)?;
        let Some(active) = state.as_ref().filter(|state| state.is_active()) else {
            return if is_broken { Err(StopError::Copy) } else { Ok(Found { state, note: None }) };
        };
        let again = custody.put(name, text_of(&path, active)?.as_bytes(), true);
        let what = if is_broken { "is not one that Verdone wrote" } else { "was gone" };
        let then = if again { "it was made again" } else { "it cannot be made again" };
        let note = format!(
            "Verdone's copy of this loop outside of the project {what}; {then}, and the loop's file in the project counts."
        );
        Ok(Found { state, note: Some(note) })
    }

    fn is_like(&self, kept: &Kept) -> bool {
        matches!(kept, Kept::Copy(body) if read_regular(&self.dir.join(LOOP), LARGEST).is_ok_and(|bytes| bytes == *body))
    }

    fn by_copy(&self, body: &[u8]) -> Result<Found, StopError> {
        let path = self.dir.join(LOOP);
        let state = parse_state(&path, body)?;
        let what = if fs::symlink_metadata(&path).is_ok() { "was changed" } else { "was gone" };
        self.put_back(body)?;
        let note = format!(
            "the file of this session's loop {what}; Verdone put it back from its own copy. The loop goes on: only the user ends it, \
             with `verdone loop stop`."
        );
        Ok(Found { state: Some(state), note: Some(note) })
    }

    /// Whatever is left of it.
    pub(super) fn forget_loop(&self) -> Result<(), StopError> {
        if let Some((custody, name)) = &self.custody {
            custody.remove(name);
        }
        remove(&self.dir.join(LOOP))
    }

    fn put_back(&self, body: &[u8]) -> Result<(), StopError> {
        self.dir.parent().map_or(Ok(()), make)?;
        fs::create_dir_all(&self.dir).map_err(|source| file_error(&self.dir, source))?;
        write_bytes(&self.dir.join(LOOP), body)
    }

    pub(super) fn put(&self, state: &LoopState) -> Result<(), StopError> {
        let text = text_of(&self.dir.join(LOOP), state)?;
        if let Some((custody, name)) = self.custody.as_ref().filter(|_| state.is_active()) {
            custody.put(name, text.as_bytes(), true);
        }
        self.put_back(text.as_bytes())?;
        if let Some((custody, name)) = self.custody.as_ref().filter(|_| !state.is_active()) {
            custody.remove(name);
        }
        Ok(())
    }

    /// The same where only counters changed: losing one in a crash holds nobody longer than the limit, and a sync costs more than all
    /// the rest of an answer.
    pub(super) fn put_counters(&self, state: &LoopState) -> Result<(), StopError> {
        let path = self.dir.join(LOOP);
        let text = text_of(&path, state)?;
        if let Some((custody, name)) = &self.custody {
            custody.put(name, text.as_bytes(), false);
        }
        replace_for_readers(&path, text.as_bytes()).map_err(|source| file_error(&path, source))
    }
}

pub(super) fn read_state(path: &Path) -> Result<Option<LoopState>, StopError> {
    match read_regular(path, LARGEST) {
        Ok(bytes) => parse_state(path, &bytes).map(Some),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(file_error(path, source)),
    }
}

pub(super) fn parse_state(path: &Path, bytes: &[u8]) -> Result<LoopState, StopError> {
    let state: LoopState = serde_json::from_slice(bytes).map_err(|source| StopError::Broken { path: path.to_owned(), source })?;
    if state.version > LOOP_VERSION {
        return Err(StopError::Newer { path: path.to_owned(), version: state.version });
    }
    Ok(state)
}

pub(super) fn text_of(path: &Path, value: &impl Serialize) -> Result<String, StopError> {
    serde_json::to_string(value).map_err(|source| StopError::Broken { path: path.to_owned(), source })
}
