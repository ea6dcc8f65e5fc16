//! `loop.json` of a session: what the copy outside of the project says while the loop holds, and all that is left of it afterwards.

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

const LOOP: &str = "loop.json";
/// A file that no copy stands for.
const ASIDE: &str = "loop-without-copy.json";
/// Longer than a hook needs between writing one and the other.
const MOMENT: Duration = Duration::from_millis(30);

/// A session's loop, and what is odd about its file.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) state: Option<LoopState>,
    pub(crate) note: Option<String>,
}

impl SessionFiles {
    /// Whether there was ever a loop, as far as a look tells.
    pub(crate) fn has_loop(&self) -> bool {
        fs::symlink_metadata(self.dir.join(LOOP)).is_ok() || self.is_held()
    }

    /// Whether a loop holds the session: a copy is there only while one does. Where nobody can tell, one does.
    pub(crate) fn is_held(&self) -> bool {
        match &self.custody {
            Some((custody, name)) => custody.has(name),
            None => fs::symlink_metadata(self.dir.join(LOOP)).is_ok(),
        }
    }

    /// The loop: one that goes on by its copy alone, one that is over by its file. Changes nothing.
    pub(crate) fn state(&self) -> Result<Option<LoopState>, StopError> {
        match self.kept()? {
            Some(body) => parse_state(&self.dir.join(LOOP), &body).map(Some),
            None => Ok(self.ended()),
        }
    }

    /// The same at the end of a turn: a file that is not what we wrote is put back, and one that no copy stands for is set aside.
    pub(crate) fn found(&self) -> Result<Found, StopError> {
        let path = self.dir.join(LOOP);
        let mut kept = self.kept()?;
        if kept.is_some() && !self.is_like(kept.as_deref()) {
            // Another hook of the session may be writing both.
            thread::sleep(MOMENT);
            kept = self.kept()?;
        }
        match kept {
            Some(body) if self.is_like(Some(&body)) => Ok(Found { state: Some(parse_state(&path, &body)?), note: None }),
            Some(body) => self.by_copy(&body),
            None => match self.ended() {
                None if fs::symlink_metadata(&path).is_ok() => self.without_copy(),
                state => Ok(Found { state, note: None }),
            },
        }
    }

    /// The copy of a loop that holds.
    fn kept(&self) -> Result<Option<Vec<u8>>, StopError> {
        let Some((custody, name)) = &self.custody else {
            // No loop can be started without a place for its copy: this one was, by somebody who had one.
            return if self.has_loop() && self.ended().is_none() { Err(StopError::NoSecret) } else { Ok(None) };
        };
        match custody.get(name) {
            Kept::Copy(body) => Ok(Some(body)),
            Kept::Nothing => Ok(None),
            Kept::Broken(path) => Err(StopError::Copy { path, end: format!("verdone loop stop --session {name}") }),
        }
    }

    /// What the file says of a loop that is over. Anybody could write that one goes on.
    fn ended(&self) -> Option<LoopState> {
        read_state(&self.dir.join(LOOP)).ok().flatten().filter(|state| !state.is_active())
    }

    fn without_copy(&self) -> Result<Found, StopError> {
        let path = self.dir.join(LOOP);
        fs::rename(&path, self.dir.join(ASIDE)).map_err(|source| file_error(&path, source))?;
        let note = format!(
            "there was a file of a loop in this session's folder, but Verdone keeps no copy of such a loop, so it holds nothing. It is \
             called {ASIDE} now; `verdone loop start` starts a loop."
        );
        Ok(Found { state: None, note: Some(note) })
    }

    fn is_like(&self, kept: Option<&[u8]>) -> bool {
        read_regular(&self.dir.join(LOOP), LARGEST).is_ok_and(|bytes| Some(bytes.as_slice()) == kept)
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
            custody.remove(name)?;
        }
        remove(&self.dir.join(LOOP))
    }

    fn put_back(&self, body: &[u8]) -> Result<(), StopError> {
        self.dir.parent().map_or(Ok(()), make)?;
        fs::create_dir_all(&self.dir).map_err(|source| file_error(&self.dir, source))?;
        write_bytes(&self.dir.join(LOOP), body)
    }

    pub(super) fn put(&self, state: &LoopState) -> Result<(), StopError> {
        let (custody, name) = self.custody.as_ref().ok_or(StopError::NoSecret)?;
        let text = text_of(&self.dir.join(LOOP), state)?;
        if state.is_active() {
            custody.put(name, text.as_bytes(), true)?;
        }
        self.put_back(text.as_bytes())?;
        if state.is_active() { Ok(()) } else { custody.remove(name) }
    }

    /// The same where only counters changed: losing one in a crash holds nobody longer than the limit, and a sync costs more than all
    /// the rest of an answer. One that cannot be written is a fault all the same: a loop that cannot count would hold for ever.
    pub(super) fn put_counters(&self, state: &LoopState) -> Result<(), StopError> {
        let (custody, name) = self.custody.as_ref().ok_or(StopError::NoSecret)?;
        let path = self.dir.join(LOOP);
        let text = text_of(&path, state)?;
        custody.put(name, text.as_bytes(), false)?;
        replace_for_readers(&path, text.as_bytes()).map_err(|source| file_error(&path, source))
    }
}

fn read_state(path: &Path) -> Result<Option<LoopState>, StopError> {
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
