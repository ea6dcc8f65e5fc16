//! What the judge and CI said about a session's work, kept for the files and the commit that they saw: another tree, another question.

use std::fs;
use std::io;
use std::path::Path;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use verdone_core::config::Limits;
use verdone_core::done::{CiFact, GateFact, Judge, JudgeFact, JudgeRecord, complexity};
use verdone_core::event::Place;
use verdone_core::id::{Oid, StoryId, digest, encode_component};
use verdone_core::prompt::{self, Refute};
use verdone_core::redact::Redactor;

use super::{Ask, DoneError, Seen, look};
use crate::atomic::replace_for_readers;
use crate::git::{Git, GitError, RepoPath};
use crate::hook::make_sessions;
use crate::judge::{Court, Seat, ask_ci, ask_judge, limits_of};
use crate::known_files::KnownFiles;
use crate::process::{self, EnvPlan};
use crate::regular::read_regular;
use crate::run::refuse_nested;
use crate::seal::Seal;
use crate::sessions::own_sessions;
use crate::signal::Signals;
use crate::store::{RunLock, Store};
use crate::template::read_template;
use crate::watchdog::Watchdog;

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
    /// The question behind it.
    pub(super) record: Option<JudgeRecord>,
    /// The commit that CI was asked about.
    commit: String,
    pub(super) ci: CiFact,
}

/// What still counts of the last answers. Nothing of what we did not write: the file lies where an agent can write.
pub(super) fn kept(root: &Path, session: &str) -> Kept {
    let path = own_sessions(root).join(encode_component(session)).join(FILE);
    let Ok(bytes) = read_regular(&path, LARGEST) else { return Kept::default() };
    let Ok(git) = Git::open(root) else { return Kept::default() };
    let ours = Seal::from_environment(root, git.top())
        .and_then(|seal| serde_json::from_slice::<Kept>(seal.checked(&purpose(session), &bytes)?).ok());
    let Some(mut kept) = ours else { return Kept::default() };
    let same = |was: &str, is: Option<&str>| is.is_some_and(|is| is == was);
    let (now_files, head) = files(&git).map_or((None, None), |(files, head)| (Some(files), head));
    if !same(&kept.files, now_files.as_deref()) && kept.judge != JudgeFact::Off {
        kept.judge =
            JudgeFact::Unknown { why: "the files were changed since the judge saw them: run `verdone done --ask`".to_owned() };
    }
    if !same(&kept.commit, head.as_ref().map(Oid::as_str)) && kept.ci != CiFact::Off {
        kept.ci = CiFact::Unknown { why: "there is a commit that CI was not asked about: run `verdone done --ask`".to_owned() };
    }
    kept
}

/// What is said about one session counts for no other.
fn purpose(session: &str) -> String {
    format!("asked about {session}")
}

/// Asks those provers that the conditions of a session need, and keeps what they say.
pub fn ask(ask: &Ask<'_>, signals: &Signals) -> Result<(), DoneError> {
    let seen = look(ask)?;
    let done = &ask.config.done;
    let dir = own_sessions(ask.root).join(encode_component(ask.session));
    make_sessions(&own_sessions(ask.root)).and_then(|()| fs::create_dir_all(&dir)).map_err(DoneError::Session)?;
    let broken = |error: GitError| DoneError::Session(io::Error::other(error.to_string()));
    let git = Git::open(ask.root).map_err(broken)?;
    let seal = Seal::from_environment(ask.root, git.top()).ok_or(DoneError::NoSecret)?;
    let redactor = process::redactor_from_environment(&[]);
    let limits = limits_of(ask.config);
    let asking = Asking { ask, git: &git, dir: &dir, redactor: &redactor, limits: &limits, signals };
    let (before, head) = files(&git).map_err(broken)?;
    let mut kept = Kept { files: before.clone(), ..Kept::default() };
    if done.wants_judge(complexity(done, &seen.facts).value) {
        let mut record = asking.refute(&seen).map_err(DoneError::Session)?;
        // Nothing is put back: whoever works in this session may have changed them as well.
        if files(&git).map_err(broken)?.0 != before {
            record = record.void("files were changed while the judge looked at them, so its word counts for nothing");
        }
        (kept.judge, kept.record) = (record.said.clone(), Some(record));
    }
    if let (true, Some(head)) = (done.wants_ci(), head) {
        kept.ci = ask_ci(&done.ci, &head, &asking.court(None), signals);
        kept.commit = head.0;
    }
    let text = serde_json::to_vec(&kept).map_err(|error| DoneError::Session(error.into()))?;
    replace_for_readers(&dir.join(FILE), &seal.put_on(&purpose(ask.session), &text)).map_err(DoneError::Session)
}

/// What the questions about one session share.
struct Asking<'a> {
    ask: &'a Ask<'a>,
    git: &'a Git,
    /// Of the session.
    dir: &'a Path,
    redactor: &'a Redactor,
    limits: &'a Limits,
    signals: &'a Signals,
}

impl Asking<'_> {
    fn court<'c>(&'c self, seat: Option<Seat<'c>>) -> Court<'c> {
        let Self { ask, dir, redactor, limits, .. } = self;
        Court { root: ask.root, dir, env: EnvPlan::default(), redactor, limits, seat }
    }

    fn refute(&self, seen: &Seen) -> io::Result<JudgeRecord> {
        let config = self.ask.config;
        let judge = Judge::of(&config.done.judge, &config.agent);
        match (self.prompt(seen), judge) {
            (Err(why), judge) => Ok(JudgeRecord::of(judge.name()).void(why)),
            (Ok(prompt), Judge::Claude) => self.in_a_run_of_its_own(&prompt),
            (Ok(prompt), Judge::Command { .. } | Judge::Nobody { .. }) => {
                ask_judge(config, &prompt, &self.court(None), self.signals, &mut |_| {})
            }
        }
    }

    /// What cannot be asked, and why.
    fn prompt(&self, seen: &Seen) -> Result<String, String> {
        let words = |error: GitError| error.to_string();
        let (name, template) = read_template(self.ask.root, "refute", prompt::REFUTE).map_err(|error| error.to_string())?;
        let own = ("the story's own checks".to_owned(), &seen.facts.own_checks);
        let stages = seen.facts.gates.iter().map(|(stage, fact)| (format!("gates of the stage {stage:?}"), fact));
        let checks: Vec<String> = stages.chain([own]).filter_map(|(what, fact)| told(&what, fact)).collect();
        let base = match &seen.base {
            Some(base) => Some(Oid(base.clone())),
            None => self.git.status().map_err(words)?.head,
        };
        let paths: Vec<RepoPath> = seen.changed.iter().filter_map(|path| RepoPath::from_shown(path)).collect();
        let now = self.git.tree_now(LARGEST_READ, &mut KnownFiles::default()).map_err(words)?;
        let diff = self.git.diff_text(base.as_ref(), &now.tree, &paths).map_err(words)?;
        let story = seen.story.as_ref();
        let criteria = story.map(|story| story.criteria.iter().map(|criterion| criterion.text.as_str()).collect());
        let refute = Refute {
            title: story.map_or("The changes of this session", |story| &story.title),
            body: story.map_or("", |story| &story.body),
            criteria: criteria.unwrap_or_default(),
            base: base.as_ref().map(Oid::as_str).unwrap_or_default(),
            checks: &checks,
            changed: &seen.changed,
            alarms: &[],
            diff: &diff,
        };
        refute.render(&name, &template).map_err(|error| error.to_string())
    }

    /// A client has hooks, and they have to find a run: one without a journal, that ends up among the files of the session.
    fn in_a_run_of_its_own(&self, prompt: &str) -> io::Result<JudgeRecord> {
        let (root, config) = (self.ask.root, self.ask.config);
        let nobody = |why: String| Ok(JudgeRecord::of(Judge::Claude.name()).void(format!("the judge could not be asked: {why}")));
        if let Err(error) = refuse_nested() {
            return nobody(error.to_string());
        }
        let _lock = match RunLock::take(self.git.git_dir()) {
            Ok(lock) => lock,
            Err(error) => return nobody(error.to_string()),
        };
        let (run, run_dir) = Store::of(root).create(self.git.common_dir(), Timestamp::now())?;
        // One that cannot be started is no reason not to ask: a client whose pipe is closed ends by itself.
        let watchdog = Watchdog::start(self.limits.grace.duration()).and_then(|starting| starting.watch(&run)).ok();
        process::adopt_orphans();
        let place = Place { story: StoryId::from("judge"), attempt: 1, turn: 1 };
        let left_usd = config.limits.cost_usd.limit();
        let seat = Seat { run: &run, run_dir: &run_dir, top: self.git.top(), plan: root, place: &place, left_usd };
        let court = Court { dir: &run_dir, ..self.court(Some(seat)) };
        let record = ask_judge(config, prompt, &court, self.signals, &mut |_| {});
        if let Some(watchdog) = watchdog {
            watchdog.dismiss();
        }
        let aside = self.dir.join("judge");
        fs::create_dir_all(&aside)?;
        fs::rename(&run_dir, aside.join(encode_component(run.as_str())))?;
        record
    }
}

/// What is known of some checks; nothing where there are none.
fn told(what: &str, fact: &GateFact) -> Option<String> {
    match fact {
        GateFact::NotConfigured => None,
        GateFact::NotDue => Some(format!("{what}: none had to run for this change")),
        GateFact::Green { checks } => Some(format!("{what}: green: {}", checks.join("; "))),
        GateFact::Unknown { why } => Some(format!("{what}: unknown: {why}")),
        GateFact::Red { failed } => Some(format!("{what}: red: {}", failed.join("; "))),
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
