//! The commit of a story that the gate verified, where the settings ask for it. Done by the worker, never by a hook: the plan is ticked,
//! and what was verified becomes a commit with its evidence, without what the user had changed when the loop began.
//!
//! Where that cannot be told apart, or the repository is in the middle of something, there is no commit: the story is marked all the
//! same, and why is told.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use verdone_core::check::{Check, CheckRun, Where, all_green};
use verdone_core::event::Checkpoint;
use verdone_core::evidence::{Evidence, NotedCheck, SessionStory, note_digest};
use verdone_core::id::{Oid, RunId, StoryId};
use verdone_core::plan::{Status, Story};
use verdone_core::proof::{AsBefore, criteria};
use verdone_core::span::Span;
use verdone_core::stop::{Current, LoopState};
use verdone_core::tamper::Alarm;

use crate::check_runner::{CheckContext, CleanPlaces, Ways, run_checks};
use crate::git::{Candidate, CandidateRules, Commit, CommitError, Git, History, Obstacle, PathSet, RepoPath};
use crate::plan_file::{PlanFile, PlanLocation};
use crate::process::{EnvPlan, redactor_from_environment};
use crate::project::HOME;
use crate::regular::read_regular;
use crate::run::gates_digest;
use crate::seal::Seal;
use crate::signal::Signals;
use crate::site;

use super::files::{Loops, SessionFiles, file_error, write_bytes};
use super::verify::Ask;
use super::{Gate, StopError, tree};

/// The evidence of the last commit, sealed and written before it: a worker that is killed leaves it to the next one.
const OWED: &str = "evidence.json";
const LARGEST: u64 = 1024 * 1024;
/// How many files a sentence names.
const NAMED: usize = 3;

/// The story that is to be committed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct CommitAsk {
    pub(super) story: StoryId,
    session: String,
    plan: PathBuf,
    checkpoint: Checkpoint,
    /// Where the branch stood when it became the story at work.
    base: Option<Oid>,
    turns: u32,
    before: Vec<NotedCheck>,
    gates: String,
    subject: String,
    timeout: Span,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Committed {
    Commit {
        id: Oid,
        /// What went wrong all the same.
        told: Option<String>,
    },
    /// The story is marked and its work stays in no commit: nothing that the agent does would change that.
    Without(String),
    /// The work stays as it is, uncommitted and not marked.
    Refused(String),
}

/// What a worker has at hand: its session's folder, git as its guard knows it, and the seal of its project.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tools<'a> {
    /// The folder of the session.
    pub(super) dir: &'a Path,
    pub(super) git: &'a Git,
    pub(super) seal: &'a Seal,
}

/// What was verified in the work tree.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen<'a> {
    pub(super) env: &'a EnvPlan,
    pub(super) key: &'a str,
    pub(super) runs: &'a [CheckRun],
    /// What looked like tampering.
    pub(super) alarms: &'a [Alarm],
    /// The story's own checks as they were, where the work changed what they run.
    pub(super) as_before: Option<&'a AsBefore>,
}

impl CommitAsk {
    /// Nothing where stories are not committed.
    pub(super) fn of(gate: &Gate<'_>, state: &LoopState, story: &Story, current: &Current, plan: &Path) -> Option<Self> {
        let config = gate.config;
        Some(Self {
            story: story.id.clone(),
            session: gate.session.to_owned(),
            plan: plan.to_owned(),
            checkpoint: state.checkpoint.clone().filter(|_| config.stop.commit)?,
            base: current.base.head.clone(),
            turns: state.blocks + 1,
            before: state.red.get(&story.id).filter(|_| current.was_red).cloned().unwrap_or_default(),
            gates: gates_digest(config),
            subject: config.commit.subject.clone(),
            timeout: config.commit.timeout,
        })
    }
}

/// Those of these checks that failed, as evidence keeps them.
pub(super) fn red_proofs(runs: &[CheckRun]) -> Vec<NotedCheck> {
    runs.iter().filter(|run| !run.outcome.passed()).map(NotedCheck::from).collect()
}

/// Commits the story.
pub(super) fn commit(ask: &Ask, story: &CommitAsk, tools: Tools<'_>, seen: Seen<'_>, signals: &Signals) -> Committed {
    try_to(ask, story, tools, seen, signals).unwrap_or_else(|error| Committed::Refused(error.to_string()))
}

fn try_to(ask: &Ask, story: &CommitAsk, tools: Tools<'_>, seen: Seen<'_>, signals: &Signals) -> Result<Committed, StopError> {
    let held = Loops::of(&ask.root).session(&story.session);
    if !held.is_held() {
        return Ok(Committed::Refused("the loop is over".to_owned()));
    }
    let mut plan = PlanFile::open(PlanLocation::of(story.plan.clone()))?;
    plan.mark(&story.story, Status::Done)?;
    let made = Making { ask, story, tools, seen, signals, plan: &plan, held: &held }.commit();
    if !matches!(made, Ok(Committed::Commit { .. })) {
        plan.unmark()?;
    }
    made
}

impl Tools<'_> {
    /// Writes the evidence that an earlier worker could not, where its commit is the last one.
    pub(super) fn pay_owed(&self) {
        let Some((note, commit)) = self.owed() else { return };
        if matches!(self.git.read_note(&commit), Ok(None)) {
            // It stays owed, and an audit says so.
            let _ = self.git.note(&commit, &note);
        }
    }

    fn owe(&self, note: &str) -> Result<(), StopError> {
        write_bytes(&self.dir.join(OWED), &self.seal.put_on(OWED, note.as_bytes()))
    }

    /// The evidence in the folder, if a worker wrote it, and the commit of HEAD, where that is the one it is about.
    fn owed(&self) -> Option<(String, Oid)> {
        let bytes = read_regular(&self.dir.join(OWED), LARGEST).ok()?;
        let note = String::from_utf8(self.seal.checked(OWED, &bytes)?.to_vec()).ok()?;
        let commit = self.git.head_that_names(&note_digest(note.as_bytes())).ok()??;
        Some((note, commit))
    }
}

struct Making<'a> {
    ask: &'a Ask,
    story: &'a CommitAsk,
    tools: Tools<'a>,
    seen: Seen<'a>,
    signals: &'a Signals,
    plan: &'a PlanFile,
    /// The session, as long as its loop goes on.
    held: &'a SessionFiles,
}

impl Making<'_> {
    fn commit(&self) -> Result<Committed, StopError> {
        if let Some(why) = self.stands_in_the_way() {
            return Ok(Committed::Without(why));
        }
        let ours = self.ours();
        let earlier = self.tools.git.earlier_changes(&self.story.checkpoint, &ours)?;
        if !earlier.staged.is_empty() {
            let why = format!("you had staged changes when the loop began: {}", named(&earlier.staged));
            return Ok(Committed::Without(why));
        }
        if !earlier.mixed.is_empty() {
            let why = format!(
                "{} had changes of yours when the loop began, and was changed again since: nobody can tell them apart",
                named(&earlier.mixed)
            );
            return Ok(Committed::Without(why));
        }
        let candidate = self.candidate(&earlier.same)?;
        if let Some(refused) = is_refused(&candidate) {
            return Ok(refused);
        }
        // What is in the tree is what was verified: nothing was changed before it was made, nor meanwhile.
        if tree::look(&self.ask.root, &self.ask.top, &self.ask.ours)?.key != self.seen.key {
            return Ok(Committed::Refused("files were changed after they were verified".to_owned()));
        }
        let theirs = self.tools.git.changed_untracked(&self.story.checkpoint)?.into_iter().filter(|path| !ours.contains(path));
        let apart: Vec<RepoPath> = earlier.same.into_iter().chain(theirs).collect();
        let runs = if apart.is_empty() { self.seen.runs.to_vec() } else { self.run_on(&candidate.tree)? };
        if self.signals.requested().is_some() {
            return Ok(Committed::Refused("the verification of what would be committed did not end".to_owned()));
        }
        if let Some(why) = self.falls_short(&runs, &apart) {
            return Ok(Committed::Without(why));
        }
        let evidence = self.evidence(&candidate.tree, &runs)?;
        if let Some(id) = self.made_before(&evidence) {
            return Ok(self.noted(id, None));
        }
        let note = evidence.to_note();
        self.tools.owe(&note)?;
        let message = evidence.commit_message(&self.story.subject);
        let called_off = || self.signals.requested().is_some() || !self.held.is_held();
        match self.tools.git.commit_unless(&candidate, &message, self.story.timeout.duration(), &called_off) {
            Ok(Commit { id, tree, .. }) if tree == candidate.tree => Ok(self.noted(id, Some(&note))),
            Ok(made) => {
                self.tools.git.take_back(&made, candidate.head.as_ref())?;
                Ok(Committed::Refused("a git hook changed files, so the commit was not what was verified".to_owned()))
            }
            Err(CommitError::Refused { message, .. }) => Ok(Committed::Refused(message)),
            Err(CommitError::Git(error)) => Err(error.into()),
        }
    }

    fn stands_in_the_way(&self) -> Option<String> {
        let detached = self.story.checkpoint.branch.is_none();
        let operation = self.tools.git.operation_in_progress();
        let begun = |what| format!("a {what} was begun and is not finished");
        detached.then(|| "the loop was started on a detached HEAD".to_owned()).or_else(|| operation.map(begun))
    }

    /// Files that no commit and no comparison counts as the user's: the plan, its progress, and what no verification looks at.
    fn ours(&self) -> PathSet {
        let plan = self.plan.protected_paths().into_iter();
        let home = [self.ask.root.join(HOME)];
        let paths =
            plan.chain(self.ask.ours.iter().cloned()).chain(home).chain(tree::of_the_client(&self.ask.root, &self.ask.top));
        paths.filter_map(|path| self.tools.git.repo_path(&path)).collect()
    }

    fn candidate(&self, apart: &[RepoPath]) -> Result<Candidate, StopError> {
        let not_judged = tree::of_the_client(&self.ask.root, &self.ask.top).chain([self.ask.root.join(HOME)]);
        let excluded = not_judged.filter_map(|path| self.tools.git.repo_path(&path)).chain(apart.iter().cloned()).collect();
        let rules = CandidateRules { excluded, largest_file: self.ask.largest_file };
        Ok(self.tools.git.candidate(&self.story.checkpoint, &rules)?)
    }

    /// Every check once more, on the files that would be committed and no others.
    fn run_on(&self, tree: &Oid) -> Result<Vec<CheckRun>, StopError> {
        let ask = self.ask;
        let clean = |check: &Check| {
            let mut check = check.clone();
            let terms = &mut check.terms;
            if terms.place != Where::Clean {
                (terms.place, terms.setup, terms.share) = (Where::Clean, ask.clean.setup.clone(), ask.clean.share.clone());
            }
            check
        };
        let checks: Vec<Check> = ask.checks.iter().map(clean).collect();
        let places = CleanPlaces::of(self.tools.git, tree, &ask.root, &ask.clean, self.signals);
        let place_of = |check: &Check| places.place_of(check);
        let redactor = redactor_from_environment(&[]);
        let context = CheckContext {
            written: None,
            inside: None,
            cwd: &ask.root,
            run_dir: self.tools.dir,
            number: 2,
            env: self.seen.env.clone(),
            cap: ask.output_bytes,
            grace: ask.grace.duration(),
            redactor: &redactor,
            ways: Ways { place_of: Some(&place_of), ..site::ways(&ask.gates) },
        };
        let results = run_checks(&checks, &context, self.signals, &mut |_| {});
        let results = results.map_err(|source| file_error(self.tools.dir, source))?;
        Ok(results.into_iter().map(|result| result.run).collect())
    }

    /// Why what would be committed is not proven without what is set apart.
    fn falls_short(&self, runs: &[CheckRun], apart: &[RepoPath]) -> Option<String> {
        let whole = runs.len() == self.ask.checks.len();
        if whole && all_green(runs) {
            return None;
        }
        let failed = runs.iter().find(|run| run.blocks()).map(|run| format!("`{}` {}", run.name, run.outcome.words()));
        let failed = failed.unwrap_or_else(|| "not every check ran".to_owned());
        Some(format!("without {}, which had changes of yours when the loop began, {failed}", named(apart)))
    }

    fn evidence(&self, tree: &Oid, runs: &[CheckRun]) -> Result<Evidence, StopError> {
        let about = self.story;
        let story = self.plan.plan().story(&about.story);
        let chain = self.tools.git.chain_of(&about.checkpoint.id)?;
        let told = SessionStory {
            run: chain.unwrap_or_else(|| RunId(format!("loop-{}", about.checkpoint.id.short()))),
            session: about.session.clone(),
            story: about.story.clone(),
            title: story.map(|story| story.title.clone()).unwrap_or_default(),
            base: about.base.clone(),
            turns: about.turns,
            before: about.before.clone(),
            criteria: story.map(|story| criteria(story, runs, None)).unwrap_or_default(),
            doubted: self.seen.as_before.is_some_and(|seen| !seen.holds()),
            gates: about.gates.clone(),
            previous: self.tools.git.last_evidence_of_head()?,
        };
        Ok(Evidence::of_session(told, tree, runs))
    }

    /// The commit of a worker that was killed before it could say so.
    fn made_before(&self, evidence: &Evidence) -> Option<Oid> {
        let (note, commit) = self.tools.owed()?;
        let before = Evidence::from_note(note.as_bytes()).ok()?;
        let same = before.story == evidence.story && before.session == evidence.session && before.tree == evidence.tree;
        same.then_some(commit)
    }

    fn noted(&self, id: Oid, note: Option<&str>) -> Committed {
        // The one of a worker that was killed lies in the folder.
        let owed = || self.tools.owed().map(|(note, _)| note);
        let note = note.map(str::to_owned).or_else(owed);
        let noted = note.map_or(Ok(()), |note| self.tools.git.note(&id, &note));
        let told =
            noted.err().map(|error| format!("{} was made, but its evidence note could not be written: {error}", id.short()));
        Committed::Commit { id, told }
    }
}

/// Why there will be no commit of it.
fn is_refused(candidate: &Candidate) -> Option<Committed> {
    if let History::Moved { reason } = &candidate.history {
        return Some(Committed::Refused(reason.clone()));
    }
    candidate.obstacles.first().map(|obstacle| match obstacle {
        Obstacle::Operation(_) | Obstacle::Unmerged(_) => Committed::Without(obstacle.to_string()),
        Obstacle::Submodule(_)
        | Obstacle::Nested(_)
        | Obstacle::NestedChanged(_)
        | Obstacle::TooLarge { .. }
        | Obstacle::Protected(_)
        | Obstacle::Hidden(_) => Committed::Refused(obstacle.to_string()),
    })
}

fn named(paths: &[RepoPath]) -> String {
    let names: Vec<String> = paths.iter().take(NAMED).map(ToString::to_string).collect();
    let more = paths.len().saturating_sub(NAMED);
    if more > 0 { format!("{} and {more} more", names.join(", ")) } else { names.join(", ") }
}
