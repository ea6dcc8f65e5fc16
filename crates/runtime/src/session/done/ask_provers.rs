//! Asks the judge and CI about a session's work and stores the answers.

use std::fs;
use std::io;
use std::path::Path;

use jiff::Timestamp;
use verdone_core::agent::AgentKind;
use verdone_core::base::id::{Oid, StoryId, encode_component};
use verdone_core::base::redact::Redactor;
use verdone_core::config::Limits;
use verdone_core::done::{GateFact, JudgeChoice, JudgeRecord, complexity};
use verdone_core::engine::prompt::{self, RefutePrompt};
use verdone_core::journal::event::Place;

use super::answers::{About, Answers, make_folder};
use super::{ConditionRequest, DoneError, SessionFacts, collect_facts};
use crate::agent::judge::{ClientContext, ProverContext, ask_ci, ask_judge, limits_of};
use crate::base::digest_cache::KnownFiles;
use crate::base::seal::Seal;
use crate::git::{Git, GitError, RepoPath};
use crate::preflight;
use crate::process::signal::Signals;
use crate::process::watchdog::Watchdog;
use crate::process::{self, EnvPlan};
use crate::project::find_git_top;
use crate::project::template::read_template;
use crate::session::look_at_tree;
use crate::store::{RunLock, Store};

/// Larger files are not shown to the judge.
const LARGEST_READ: u64 = 16 * 1024 * 1024;

/// The result of a request to ask a judge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judging {
    /// The conditions do not need a judge.
    NotNeeded,
    Asked,
    /// It already gave a clear answer about exactly this work. Asking again until the answer fits would prove nothing.
    Stands,
}

/// Asks the provers that the session's conditions need, and stores their answers.
pub fn ask(ask: &ConditionRequest<'_>, signals: &Signals) -> Result<Judging, DoneError> {
    let seen = collect_facts(ask)?;
    let done = &ask.config.done;
    let dir = make_folder(ask.root, ask.session).map_err(DoneError::Session)?;
    let broken = |error: &dyn std::error::Error| DoneError::Session(io::Error::other(error.to_string()));
    let git = Git::open(ask.root).map_err(|error| broken(&error))?;
    let top = find_git_top(ask.root)?;
    let seal = Seal::from_environment(ask.root, &top).ok_or(DoneError::NoSecret)?;
    let redactor = process::redactor_from_environment(&[]);
    let limits = limits_of(ask.config);
    let now = || look_at_tree(ask.root, &top, &seen.ours).map_err(|error| broken(&error));
    let before = now()?;
    let about = About::new(&before, seen.story.as_ref());
    let mut answers = Answers::read(ask.root, &top, ask.session);
    let left_usd = ask.config.limits.cost_usd.limit().map(|limit| answers.left_of(limit));
    let asking = Asking { ask, git: &git, dir: &dir, redactor: &redactor, limits: &limits, left_usd, signals };
    let wanted = done.wants_judge(complexity(done, &seen.facts).value);
    let judging = match answers.about(&about) {
        _ if !wanted => Judging::NotNeeded,
        Some(record) if !record.proved_nothing() => Judging::Stands,
        Some(_) | None => Judging::Asked,
    };
    if judging == Judging::Asked {
        // Make sure that the answer can be stored before paying for it.
        answers.write(ask.root, ask.session, &seal)?;
        let mut record = asking.refute(&seen).map_err(DoneError::Session)?;
        // Files are not restored: the user or agent of this session may have changed them.
        if now()?.content != before.content {
            record = record.void("files changed while the judge was reading them, so its answer is ignored");
        }
        // Another process may have asked in the meantime.
        answers = Answers::read(ask.root, &top, ask.session);
        answers.keep(about, record);
        // Save the paid answer before waiting for CI.
        answers.write(ask.root, ask.session, &seal)?;
    }
    if let (true, Some(head)) = (done.wants_ci() && seen.facts.git.uncommitted().is_empty(), &before.head) {
        answers.keep_ci(head, ask_ci(&done.ci, head, &asking.court(None), signals, &mut |_| {}));
        answers.write(ask.root, ask.session, &seal)?;
    }
    Ok(judging)
}

/// State shared by the questions about one session.
struct Asking<'a> {
    ask: &'a ConditionRequest<'a>,
    git: &'a Git,
    /// The session's folder.
    dir: &'a Path,
    redactor: &'a Redactor,
    limits: &'a Limits,
    /// The remaining budget for all judges of this session, if there is a limit.
    left_usd: Option<f64>,
    signals: &'a Signals,
}

impl Asking<'_> {
    fn court<'c>(&'c self, seat: Option<ClientContext<'c>>) -> ProverContext<'c> {
        let Self { ask, dir, redactor, limits, .. } = self;
        ProverContext { root: ask.root, inside: None, dir, env: EnvPlan::default(), redactor, limits, seat }
    }

    fn refute(&self, seen: &SessionFacts) -> io::Result<JudgeRecord> {
        let config = self.ask.config;
        let judge = JudgeChoice::from_settings(&config.done.judge, &config.agent);
        match (self.prompt(seen), judge) {
            (Err(why), judge) => Ok(JudgeRecord::new(judge.name()).void(why)),
            (Ok(prompt), JudgeChoice::Client(kind)) => self.in_separate_run(kind, &prompt),
            (Ok(prompt), JudgeChoice::Command { .. } | JudgeChoice::Nobody { .. }) => {
                ask_judge(config, &prompt, &self.court(None), self.signals, &mut |_| {})
            }
        }
    }

    /// Returns the prompt, or why the judge cannot be asked.
    fn prompt(&self, seen: &SessionFacts) -> Result<String, String> {
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
        let refute = RefutePrompt {
            title: story.map_or("The changes of this session", |story| &story.title),
            body: story.map_or("", |story| &story.body),
            criteria: criteria.unwrap_or_default(),
            base: base.as_ref().map(Oid::as_str).unwrap_or_default(),
            checks: &checks,
            changed: &seen.changed,
            protected: &[],
            diff: &diff,
        };
        refute.render(&name, &template).map_err(|error| error.to_string())
    }

    /// The client's hooks need a run. This creates one without a journal, and moves it to the session's files afterwards.
    fn in_separate_run(&self, kind: AgentKind, prompt: &str) -> io::Result<JudgeRecord> {
        let (root, config) = (self.ask.root, self.ask.config);
        let nobody = |why: String| Ok(JudgeRecord::new(kind.name()).void(format!("the judge could not be asked: {why}")));
        if let Some(finding) = preflight::nested() {
            return nobody(finding.message);
        }
        let _lock = match RunLock::acquire(self.git.git_dir()) {
            Ok(lock) => lock,
            Err(error) => return nobody(error.to_string()),
        };
        let aside = self.dir.join("judge");
        fs::create_dir_all(&aside)?;
        let (run, run_dir) = Store::new(root).create(self.git.common_dir(), Timestamp::now())?;
        // Continue without a watchdog if it cannot be started: a client whose pipe is closed exits by itself.
        let watchdog = Watchdog::start(self.limits.grace.duration()).and_then(|starting| starting.watch(&run)).ok();
        process::adopt_orphans();
        let place = Place { story: StoryId::from("judge"), attempt: 1, turn: 1 };
        let (top, left_usd) = (self.git.top(), self.left_usd);
        let seat = ClientContext { run: &run, run_dir: &run_dir, top, plan: root, place: &place, left_usd };
        let court = ProverContext { dir: &run_dir, ..self.court(Some(seat)) };
        let record = ask_judge(config, prompt, &court, self.signals, &mut |_| {});
        if let Some(watchdog) = watchdog {
            watchdog.dismiss();
        }
        // If it cannot be moved, it stays among the runs. The paid answer still counts.
        let _ = fs::rename(&run_dir, aside.join(encode_component(run.as_str())));
        record
    }
}

/// A sentence about the result of some checks, or `None` if there are none.
fn told(what: &str, fact: &GateFact) -> Option<String> {
    match fact {
        GateFact::NotConfigured => None,
        GateFact::NotDue => Some(format!("{what}: none had to run for this change")),
        GateFact::Green { checks } => Some(format!("{what}: green: {}", checks.join("; "))),
        GateFact::Unknown { why } => Some(format!("{what}: unknown: {why}")),
        GateFact::Red { failed } => Some(format!("{what}: red: {}", failed.join("; "))),
    }
}
