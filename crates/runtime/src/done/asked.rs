//! What the judge and CI said about a session's work, kept for the files and the commit that they saw: another tree, another question.

use std::fs;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};
use verdone_core::done::{CiFact, JudgeFact, complexity};
use verdone_core::id::{Oid, digest, encode_component};
use verdone_core::prompt::{self, Refute};

use super::{Ask, DoneError, Seen, look};
use crate::atomic::replace_for_readers;
use crate::git::{Git, GitError};
use crate::judge::{Court, ask_ci, ask_judge};
use crate::process::{self, EnvPlan};
use crate::regular::read_regular;
use crate::sessions::own_sessions;
use crate::signal::Signals;
use crate::template::read_template;

const FILE: &str = "asked.json";
const LARGEST: u64 = 256 * 1024;
/// A larger file is known by its size and time.
const LARGEST_READ: u64 = 16 * 1024 * 1024;

/// What was said, and about what.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Kept {
    /// The files that the judge saw.
    files: String,
    pub(super) judge: JudgeFact,
    /// The commit that CI was asked about.
    commit: String,
    pub(super) ci: CiFact,
}

/// What still counts of the last answers.
pub(super) fn kept(root: &Path, session: &str) -> Kept {
    let path = own_sessions(root).join(encode_component(session)).join(FILE);
    let Some(mut kept) = read_regular(&path, LARGEST).ok().and_then(|bytes| serde_json::from_slice::<Kept>(&bytes).ok()) else {
        return Kept::default();
    };
    let now = Git::open(root).and_then(|git| files(&git));
    let same = |was: &str, is: Option<&str>| is.is_some_and(|is| is == was);
    let (now_files, head) = now.map_or((None, None), |(files, head)| (Some(files), head));
    if !same(&kept.files, now_files.as_deref()) && kept.judge != JudgeFact::Off {
        kept.judge =
            JudgeFact::Unknown { why: "the files were changed since the judge saw them: run `verdone done --ask`".to_owned() };
    }
    if !same(&kept.commit, head.as_ref().map(Oid::as_str)) && kept.ci != CiFact::Off {
        kept.ci = CiFact::Unknown { why: "there is a commit that CI was not asked about: run `verdone done --ask`".to_owned() };
    }
    kept
}

/// Asks those provers that the conditions of a session need, and keeps what they say.
pub fn ask(ask: &Ask<'_>, signals: &Signals) -> Result<(), DoneError> {
    let seen = look(ask)?;
    let done = &ask.config.done;
    let dir = own_sessions(ask.root).join(encode_component(ask.session));
    fs::create_dir_all(&dir).map_err(DoneError::Session)?;
    let redactor = process::redactor_from_environment(&[]);
    let grace = ask.config.limits.grace.duration();
    let court = Court { root: ask.root, dir: &dir, env: EnvPlan::default(), redactor: &redactor, grace };
    let broken = |error: GitError| DoneError::Session(io::Error::other(error.to_string()));
    let git = Git::open(ask.root).map_err(broken)?;
    let (before, head) = files(&git).map_err(broken)?;
    let mut kept = Kept { files: before.clone(), ..Kept::default() };
    if done.wants_judge(complexity(done, &seen.facts).value) {
        kept.judge = refute(ask, &seen, &court, signals).map_err(DoneError::Session)?;
        if files(&git).map_err(broken)?.0 != before {
            kept.judge = JudgeFact::Unknown { why: "the judge changed files, so its word counts for nothing".to_owned() };
        }
    }
    if let (true, Some(head)) = (done.wants_ci(), head) {
        kept.ci = ask_ci(&done.ci, &head, &court, signals);
        kept.commit = head.0;
    }
    let text = serde_json::to_string(&kept).map_err(|error| DoneError::Session(error.into()))?;
    replace_for_readers(&dir.join(FILE), text.as_bytes()).map_err(DoneError::Session)
}

fn refute(ask: &Ask<'_>, seen: &Seen, court: &Court<'_>, signals: &Signals) -> io::Result<JudgeFact> {
    let (name, template) = read_template(ask.root, "refute", prompt::REFUTE)?;
    let checks: Vec<String> = ask.config.gate.iter().map(|gate| gate.command.display()).collect();
    let story = seen.story.as_ref();
    let refute = Refute {
        title: story.map_or("The changes of this session", |story| &story.title),
        body: story.map_or("", |story| &story.body),
        criteria: story.map(|story| story.criteria.iter().map(|criterion| criterion.text.as_str()).collect()).unwrap_or_default(),
        base: seen.base.as_deref().unwrap_or_default(),
        changed: &seen.changed,
        checks: &checks,
    };
    match refute.render(&name, &template) {
        Ok(prompt) => ask_judge(ask.config, &prompt, court, signals, &mut |_| {}),
        Err(error) => Ok(JudgeFact::Unknown { why: error.to_string() }),
    }
}

/// Something that changes when HEAD or a file does that HEAD does not have as it is.
fn files(git: &Git) -> Result<(String, Option<Oid>), GitError> {
    let status = git.status()?;
    let mut text = status.head.as_ref().map(|head| head.0.clone()).unwrap_or_default();
    for entry in &status.entries {
        let path = entry.path.to_string();
        // What hooks and commands of ours write is no work.
        if path.split('/').any(|part| part == ".verdone") {
            continue;
        }
        let file = git.top().join(entry.path.as_path());
        let content = match read_regular(&file, LARGEST_READ) {
            Ok(bytes) => digest(&bytes),
            Err(_) => fs::symlink_metadata(&file)
                .map_or_else(|_| "gone".to_owned(), |meta| format!("{} {:?}", meta.len(), meta.modified().ok())),
        };
        text.push_str(&format!("\n{:?} {path} {content}", entry.kind));
    }
    Ok((digest(text.as_bytes()), status.head))
}
