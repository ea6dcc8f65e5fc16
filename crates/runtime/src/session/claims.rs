//! Claims that agents make with `verdone claim`: one line each, append-only, in the folder of the session or of the run's sessions. A claim
//! is the weakest form of proof, and readers must say so.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use verdone_core::agent::client_variables::SESSION_VARIABLE;
use verdone_core::base::id::encode_component;
use verdone_core::base::redact::Redactor;
use verdone_core::base::sanitise::sanitise_line;
use verdone_core::done::Claim;

use crate::guard::append_in;
use crate::process::RUN_VARIABLE;
use crate::store::Store;
use crate::store::sessions::{each_line, own_sessions, sessions_in_workspace};

const FILE: &str = "claims.jsonl";
/// A note is a sentence or two.
const LONGEST_NOTE: usize = 2_000;
/// More than this could only be meant to fill the disk.
const LARGEST: u64 = 1024 * 1024;

#[derive(Debug, thiserror::Error)]
pub enum ClaimError {
    #[error("the current session is unknown")]
    NoSession,
    #[error("the note is empty")]
    NoNote,
    #[error("there are too many claims")]
    TooMany,
    #[error("cannot save the claim: {0}")]
    Io(#[from] io::Error),
}

/// Who made a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Speaker {
    /// The agent of a run, identified by the run's folder.
    Run(PathBuf),
    /// One of the user's own sessions, by its id.
    Session(String),
}

impl Speaker {
    /// Finds the speaker: the given session, the run we are in, or the session we are in.
    pub fn find(root: &Path, session: Option<&str>) -> Result<Self, ClaimError> {
        if let Some(session) = session {
            return Ok(Self::Session(session.to_owned()));
        }
        let set = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
        if let Some(run) = set(RUN_VARIABLE) {
            // The agent can change this variable, so the folder must exist.
            let dir = Store::new(root).path().join(encode_component(&run));
            if fs::symlink_metadata(&dir).is_ok_and(|meta| meta.is_dir()) {
                return Ok(Self::Run(dir));
            }
        }
        set(SESSION_VARIABLE).map(Self::Session).ok_or(ClaimError::NoSession)
    }
}

/// Stores a claim. Removes secrets and control characters from the note and limits its length.
pub fn keep(
    root: &Path,
    speaker: &Speaker,
    name: &str,
    note: &str,
    complexity: Option<u8>,
    redactor: &Redactor,
) -> Result<Claim, ClaimError> {
    let note = redactor.redact(sanitise_line(note).trim()).into_owned();
    if note.is_empty() {
        return Err(ClaimError::NoNote);
    }
    let note = note[..note.floor_char_boundary(LONGEST_NOTE)].to_owned();
    let claim = Claim { at: Timestamp::now().to_string(), name: name.to_owned(), note, complexity };
    let line = format!("{}\n", serde_json::to_string(&claim).map_err(io::Error::from)?);
    let (sessions, session) = match speaker {
        Speaker::Run(dir) => (sessions_in_workspace(dir), None),
        Speaker::Session(id) => (own_sessions(root), Some(id.as_str())),
    };
    let dir = session.map_or_else(|| sessions.clone(), |id| sessions.join(encode_component(id)));
    if length(&dir) > LARGEST {
        return Err(ClaimError::TooMany);
    }
    append_in(&sessions, session, FILE, &line)?;
    Ok(claim)
}

/// Reads the claims in a folder, starting at an offset. Skips unreadable lines.
pub fn read(dir: &Path, from: u64) -> io::Result<Vec<Claim>> {
    let mut claims = Vec::new();
    each_line(&dir.join(FILE), from, &mut |line| {
        claims.extend(line.filter(|_| claims.len() < 10_000).and_then(|line| serde_json::from_str::<Claim>(line).ok()));
    })?;
    Ok(claims)
}

/// The claims of one of the user's own sessions.
pub fn of_session(root: &Path, session: &str) -> io::Result<Vec<Claim>> {
    read(&own_sessions(root).join(encode_component(session)), 0)
}

/// The length of the claims file in a folder.
pub fn length(dir: &Path) -> u64 {
    fs::symlink_metadata(dir.join(FILE)).map_or(0, |meta| meta.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_claim_is_appended_cut_and_redacted_whatever_the_session_is_called() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().join("project");
        fs::create_dir(&root).unwrap();
        let redactor = Redactor::new([("API_TOKEN".to_owned(), "hunter2hunter2".to_owned())]);
        for session in ["abc", "../x", "", "\0", "a/b", &"long".repeat(2_560)] {
            let speaker = Speaker::Session(session.to_owned());
            keep(&root, &speaker, "mine", "first \u{1b}[31mhunter2hunter2", None, &redactor).unwrap();
            keep(&root, &speaker, "mine", &"é".repeat(5_000), Some(8), &redactor).unwrap();
            let claims = of_session(&root, session).unwrap();
            assert_eq!(claims.len(), 2, "{session:.20}");
            assert!(
                claims[0].note.starts_with("first ") && !claims[0].note.contains("hunter2") && !claims[0].note.contains('\u{1b}')
            );
            assert!(claims[1].note.len() <= LONGEST_NOTE && claims[1].complexity == Some(8));
        }
        let outside: Vec<_> = fs::read_dir(temp.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(outside, ["project"], "no id leads out of the project");
        assert!(matches!(
            keep(&root, &Speaker::Session("abc".to_owned()), "mine", " \n", None, &redactor),
            Err(ClaimError::NoNote)
        ));
    }

    #[test]
    fn a_link_or_nonsense_in_the_place_of_claims_is_no_claim() {
        let temp = tempfile::tempdir().unwrap();
        let dir = own_sessions(temp.path()).join("s");
        fs::create_dir_all(&dir).unwrap();
        fs::write(temp.path().join("victim"), "").unwrap();
        symlink(temp.path().join("victim"), dir.join(FILE)).unwrap();
        let speaker = Speaker::Session("s".to_owned());
        assert!(keep(temp.path(), &speaker, "mine", "x", None, &Redactor::default()).is_err());
        assert!(of_session(temp.path(), "s").is_err());
        assert_eq!(fs::read(temp.path().join("victim")).unwrap(), b"");
        fs::remove_file(dir.join(FILE)).unwrap();
        fs::write(dir.join(FILE), "{\n[]\n{\"at\":1}\n\u{0}\n").unwrap();
        assert_eq!(of_session(temp.path(), "s").unwrap(), []);
        fs::write(dir.join(FILE), "x".repeat(LARGEST as usize + 1)).unwrap();
        assert!(matches!(keep(temp.path(), &speaker, "mine", "x", None, &Redactor::default()), Err(ClaimError::TooMany)));
    }
}
