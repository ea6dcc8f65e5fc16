//! Landing: fast-forwards the user's branch to the run's commits. If that branch has moved on, the commits are first re-applied on top of
//! it, and every check that proved them runs again.

mod absorbed;
mod landable;

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use jiff::Timestamp;
use verdone_core::base::finish::StopSignal;
use verdone_core::base::id::Oid;
use verdone_core::base::plural::plural;
use verdone_core::base::sanitise::sanitise_line;
use verdone_core::check::{Check, CheckOptions, CheckOrigin};
use verdone_core::config::Config;
use verdone_core::evidence::{Evidence, NotedCheck};
use verdone_core::journal::event::{Event, Recorded};
use verdone_core::journal::update::{Reporter, Update};
use verdone_core::verify::{JobStory, Outcome, Proof, Surface, Tree, VerifyJob, VerifyReport};
use verdone_text::shell_word::shell_argument;

use crate::base::active_clock::Stopwatch;
use crate::git::{CommitError, Git, GitError, Landing, Merged};
use crate::process::signal::Signals;
use crate::process::{self, VERIFY_VARIABLE};
use crate::project::Project;
use crate::run::recover::{RecoverError, recover};
use crate::run::step::{StepError, io_error};
use crate::store::{Journal, JournalError, LockError, RunLock, Store, StoredRun};
use crate::verify::checks::gates;
use crate::verify::{Bench, BenchPlace, Results, Verification, VerifyError};
use crate::workspace::{WorkspaceError, WorkspaceRequest, Workspaces};

use landable::landable;
pub use landable::{HeldBack, Landable, preview};

#[derive(Debug, thiserror::Error)]
pub enum LandError {
    #[error("there is nothing to land: no run has commits that are not on your branch")]
    Nothing,
    #[error("no run worked on branch {branch}")]
    Unknown { branch: String },
    #[error("several runs have commits to land: {}", branches.join(", "))]
    Several { branches: Vec<String> },
    #[error("cannot land: {reason}")]
    Refused { reason: String, hint: Option<String> },
    #[error("cannot re-apply {} ({subject}): it conflicts in {}", commit.short(), paths.join(", "))]
    Conflict { commit: Oid, subject: String, paths: Vec<String> },
    #[error("{} ({subject}) fails its checks after being re-applied: {reason}", commit.short())]
    Red { commit: Oid, subject: String, reason: String },
    #[error("stopped by {} before every commit was verified: no branch was changed", signal.name())]
    Interrupted { signal: StopSignal },
    #[error(transparent)]
    Commit(#[from] CommitError),
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    #[error(transparent)]
    Verify(#[from] VerifyError),
    #[error(transparent)]
    Step(#[from] StepError),
    #[error(transparent)]
    Recover(#[from] RecoverError),
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    Lock(#[from] LockError),
}

impl LandError {
    /// What to type next.
    pub fn hints(&self) -> Vec<String> {
        match self {
            Self::Nothing => vec!["verdone status shows the last run".to_owned()],
            Self::Unknown { .. } => vec!["verdone land --dry-run lists what can be landed".to_owned()],
            Self::Several { branches } => {
                let command = |branch: &String| format!("verdone land {}", shell_argument(&sanitise_line(branch)));
                branches.iter().take(3).map(command).collect()
            }
            Self::Refused { hint, .. } => hint.iter().cloned().collect(),
            Self::Conflict { commit, .. } => vec![format!("resolve it by hand: git cherry-pick {}", commit.short())],
            Self::Red { .. } => vec!["verdone run --fresh lets the agent redo the story on top of your branch".to_owned()],
            Self::Interrupted { .. }
            | Self::Commit(_)
            | Self::Git(_)
            | Self::Workspace(_)
            | Self::Verify(_)
            | Self::Step(_)
            | Self::Recover(_)
            | Self::Journal(_)
            | Self::Lock(_) => Vec::new(),
        }
    }
}

/// A run's branch with commits that the user's branch does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    pub branch: String,
    pub tip: Oid,
    /// The number of those commits, and of commits that only the user's branch has.
    pub commits: u32,
    pub behind: u32,
    /// The branch to land on.
    pub target: Option<String>,
}

impl Waiting {
    pub fn sentence(&self) -> String {
        let target = self.target.as_deref().unwrap_or("your branch");
        let moved = if self.behind > 0 {
            format!("; {target} has moved on, so landing re-applies and verifies first")
        } else {
            String::new()
        };
        format!("{} on branch {} to land on {target}{moved}", plural(self.commits as usize, "commit", "commits"), self.branch)
    }
}

/// The result of a landing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Landed {
    /// The run's branch, and the user's.
    pub branch: String,
    pub into: String,
    pub from: Oid,
    pub to: Oid,
    pub commits: u32,
    /// The number of commits that stay on the run's branch for now.
    pub left: u32,
    pub reapplied: bool,
}

#[derive(Debug, Clone, Copy)]
pub struct LandRequest<'a> {
    pub project: &'a Project,
    pub config: &'a Config,
    pub branch: Option<&'a str>,
    /// Land only the stories before the first one with a weaker proof.
    pub proof: Option<Proof>,
}

/// Where a run's commits land: the branch that was checked out when the run started, even if another one is checked out now.
#[derive(Debug, Clone)]
pub struct Target {
    /// `None` if HEAD is detached.
    pub name: Option<String>,
    pub tip: Oid,
}

impl Target {
    /// If that branch is gone, uses the current one. `None` in a repository without commits.
    pub fn find(git: &Git, began_on: Option<&str>) -> Result<Option<Self>, GitError> {
        if let Some(name) = began_on
            && let Some(tip) = git.branch_tip(name)?
        {
            return Ok(Some(Self { name: Some(name.to_owned()), tip }));
        }
        let status = git.status()?;
        Ok(status.head.map(|tip| Self { name: status.branch, tip }))
    }

    fn shown(&self) -> &str {
        self.name.as_deref().unwrap_or("HEAD")
    }
}

/// A run's branch, and the branch it started on.
struct WorkedOn {
    branch: String,
    target: Option<String>,
    stored: StoredRun,
}

/// A target, and the branches with commits that it does not have.
type Known = Option<(Target, BTreeMap<String, Oid>)>;

/// All run branches with commits that the user's branch does not have, newest run first.
pub fn waiting(project: &Project) -> Result<Vec<Waiting>, LandError> {
    let git = Git::open(&project.root)?;
    let mut found: Vec<Waiting> = Vec::new();
    // Most runs have the same target.
    let mut targets: HashMap<Option<String>, Known> = HashMap::new();
    for WorkedOn { branch, target, .. } in run_branches(project)? {
        let known = match targets.entry(target) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let target = Target::find(&git, new.key().as_deref())?;
                let unmerged = target.as_ref().map(|target| git.unmerged_branches(&target.tip)).transpose()?;
                new.insert(target.zip(unmerged))
            }
        };
        let Some((target, unmerged)) = known else { continue };
        let Some(tip) = unmerged.remove(&branch) else { continue };
        if found.iter().any(|known| known.branch == branch) {
            continue;
        }
        let (commits, behind) = git.ahead_behind(&tip, &target.tip)?;
        if commits > 0 {
            found.push(Waiting { branch, tip, commits, behind, target: target.name.clone() });
        }
    }
    Ok(found)
}

/// The same for one branch.
pub fn waiting_on(project: &Project, branch: &str) -> Result<Option<Waiting>, LandError> {
    Ok(waiting(project)?.into_iter().find(|waiting| waiting.branch == branch))
}

/// The branches of this project's runs, newest first.
fn run_branches(project: &Project) -> Result<Vec<WorkedOn>, LandError> {
    let store = Store::new(&project.root);
    let ids = store.ids().map_err(|source| JournalError::Io { path: store.path().to_owned(), source })?;
    let mut found = Vec::new();
    for id in ids.into_iter().rev() {
        let stored = store.run(id);
        // A journal that cannot be read names no branch.
        let branch = stored.branches().ok().flatten();
        found.extend(branch.map(|(branch, target)| WorkedOn { branch, target, stored }));
    }
    Ok(found)
}

/// Implements `verdone land`.
pub fn land(request: &LandRequest<'_>, signals: &Signals, reporter: &mut dyn Reporter) -> Result<Landed, LandError> {
    let git = Git::open(&request.project.root)?;
    let _lock = RunLock::acquire(git.git_dir())?;
    let waited = waiting(request.project)?;
    recover(request.project, signals, reporter)?;
    let WorkedOn { branch, target, stored } = match (choose(request), waited.into_iter().next()) {
        // An interrupted landing has just been finished.
        (Err(LandError::Nothing), Some(Waiting { branch, tip, target, .. })) => {
            let into = target.unwrap_or_else(|| "HEAD".to_owned());
            return Ok(Landed { branch, into, from: tip.clone(), to: tip, commits: 0, left: 0, reapplied: false });
        }
        (chosen, _) => chosen?,
    };
    let tip = git.branch_tip(&branch)?.ok_or_else(|| LandError::Unknown { branch: branch.clone() })?;
    let target = Target::find(&git, target.as_deref())?.ok_or(LandError::Nothing)?;
    let head = target.tip.clone();
    let (commits, behind) = git.ahead_behind(&tip, &head)?;
    if commits == 0 {
        let into = target.shown().to_owned();
        return Ok(Landed { branch, into, from: head.clone(), to: head, commits, left: 0, reapplied: false });
    }
    let all = git.commits_to_land(&tip, &head)?;
    let count = landable(&git, &Store::new(&request.project.root), &all, request.proof)?.or_refuse()?.count;
    let mut journal = Journal::reopen(&stored.dir)?;
    journal.append(cut_off_before_branch_moved(&git, &stored, &tip)?, Timestamp::now())?;
    let reapplied = behind > 0;
    let (before, mut moved) = (tip.clone(), Vec::new());
    let chain = if reapplied {
        // Fail before running checks in vain.
        if let Some(at) = git.checked_out_at(&branch)? {
            return Err(GitError::CheckedOut { name: branch, at, why: None }.into());
        }
        let text = format!("Re-applying {} on top of {}", plural(commits as usize, "commit", "commits"), target.shown());
        reporter.report(Update::Notice { text: &text });
        let reapplying = Reapplying { request, git: &git, run: stored.id.as_str(), signals };
        let (new, evident) = reapplying.all(&all, &head, reporter)?;
        moved = evident;
        new
    } else {
        all
    };
    // Commits that may not land yet stay on the run's branch.
    let (branch_tip, tip) = (chain[chain.len() - 1].clone(), chain[count - 1].clone());
    let mut events: Vec<Event> = moved.iter().map(ReappliedCommit::event).collect();
    events.push(Event::LandingStarted { to: tip.clone() });
    journal.append(events, Timestamp::now())?;
    if reapplied {
        git.set_branch(&branch, &branch_tip, Some(&before))?;
    }
    let landed = land_tip(&git, target.name.as_deref(), &tip);
    let events = match &landed {
        Ok(landed) => {
            let (branch, from, to) = (landed.into.clone(), landed.from.clone(), landed.to.clone());
            vec![Event::Landed { branch, from, to, left: (chain.len() - count) as u32 }]
        }
        // Only some of its files are in place. The next command finishes this landing and records it.
        Err(_) if git.interrupted_landing().is_some_and(|mark| mark.to == tip) => Vec::new(),
        Err(error) => {
            // A refused landing changes nothing.
            if reapplied {
                git.set_branch(&branch, &before, Some(&branch_tip))?;
            }
            let refused = Event::LandingRefused { reason: error.to_string() };
            std::iter::once(refused).chain(moved.iter().map(ReappliedCommit::revert_event)).collect()
        }
    };
    journal.append(events, Timestamp::now())?;
    Ok(Landed { branch, commits: count as u32, left: (chain.len() - count) as u32, reapplied, ..landed? })
}

/// Re-applied commits are recorded in the journal before the run's branch moves. On the way back, the branch moves before the journal
/// records it. If that was interrupted in between, the branch is right, and the returned events bring the journal in line with it.
pub(crate) fn cut_off_before_branch_moved(git: &Git, stored: &StoredRun, tip: &Oid) -> Result<Vec<Event>, LandError> {
    let last = stored.find_from_end(|events| {
        let is_landing =
            |event: &Event| matches!(event, Event::LandingStarted { .. } | Event::Landed { .. } | Event::LandingRefused { .. });
        let at = events.iter().rposition(|recorded| is_landing(&recorded.event))?;
        let Event::LandingStarted { to } = &events[at].event else { return Some(None) };
        let is_reapplied = |recorded: &&Recorded| matches!(recorded.event, Event::Reapplied { .. });
        let count = events[..at].iter().rev().take_while(is_reapplied).count();
        // The first event of a run is a different one, so there must be more events before these.
        (count < at).then(|| Some((to.clone(), events[at - count..at].to_vec())))
    })?;
    let Some(Some((to, reapplied))) = last.filter(|_| git.interrupted_landing().is_none()) else { return Ok(Vec::new()) };
    if reapplied.is_empty() || git.is_part_of(&to, tip)? {
        return Ok(Vec::new());
    }
    let mut events = vec![Event::LandingRefused { reason: "it was interrupted".to_owned() }];
    for recorded in reapplied {
        let Event::Reapplied { was, commit, .. } = recorded.event else { continue };
        let note = git.read_note(&was)?.and_then(|note| Evidence::from_note(note.as_bytes()).ok());
        events.extend(note.map(|first| self::reapplied(&commit, &(was, first))));
    }
    Ok(events)
}

fn choose(request: &LandRequest<'_>) -> Result<WorkedOn, LandError> {
    let waiting = waiting(request.project)?;
    let wanted = match request.branch {
        Some(branch) => branch.to_owned(),
        None => match &waiting[..] {
            [] => return Err(LandError::Nothing),
            [only] => only.branch.clone(),
            several => {
                return Err(LandError::Several { branches: several.iter().map(|waiting| waiting.branch.clone()).collect() });
            }
        },
    };
    let found = run_branches(request.project)?.into_iter().find(|run| run.branch == wanted);
    found.ok_or(LandError::Unknown { branch: wanted })
}

/// Fast-forwards one of the user's branches to a commit. Also updates the checkout's files if that branch is checked out.
pub fn land_tip(git: &Git, branch: Option<&str>, tip: &Oid) -> Result<Landed, LandError> {
    match git.land_files(branch, tip)? {
        Landing::Landed { from } => {
            let branch = branch.unwrap_or_default().to_owned();
            let from = from.unwrap_or_else(|| tip.clone());
            let (commits, _) = git.ahead_behind(tip, &from)?;
            Ok(Landed { branch: branch.clone(), into: branch, from, to: tip.clone(), commits, left: 0, reapplied: false })
        }
        Landing::Refused(refusal) => Err(LandError::Refused { reason: refusal.to_string(), hint: refusal.hint() }),
    }
}

/// A commit with its evidence, before and after it was re-applied.
pub(crate) struct ReappliedCommit {
    from: (Oid, Evidence),
    to: (Oid, Evidence),
}

impl ReappliedCommit {
    pub(crate) fn event(&self) -> Event {
        reapplied(&self.from.0, &self.to)
    }

    /// The event if it could not land after all.
    fn revert_event(&self) -> Event {
        reapplied(&self.to.0, &self.from)
    }
}

fn reapplied(was: &Oid, (commit, evidence): &(Oid, Evidence)) -> Event {
    let (was, commit) = (was.clone(), commit.clone());
    let Evidence { story, tree, base, .. } = evidence.clone();
    Event::Reapplied { story, was, commit, tree, base, evidence: evidence.digest() }
}

/// Re-applies a run's commits on top of another commit and verifies each one there.
pub(crate) struct Reapplying<'a> {
    pub(crate) request: &'a LandRequest<'a>,
    pub(crate) git: &'a Git,
    pub(crate) run: &'a str,
    pub(crate) signals: &'a Signals,
}

impl Reapplying<'_> {
    /// Re-applies commits on top of another one. Returns the new commits, and those of them that have evidence.
    pub(crate) fn all(
        &self,
        commits: &[Oid],
        onto: &Oid,
        reporter: &mut dyn Reporter,
    ) -> Result<(Vec<Oid>, Vec<ReappliedCommit>), LandError> {
        let LandRequest { project, config, .. } = *self.request;
        let folder = tempfile::tempdir().map_err(io_error("saving the output of checks"))?;
        let name = format!("land-{}", self.run);
        let objects = self.git.object_folders()?;
        let mut spaces = Workspaces::new(&WorkspaceRequest { project, config, run: &name, run_dir: folder.path(), objects });
        spaces.open(self.git)?;
        let (mut onto, mut made, mut all) = (onto.clone(), Vec::new(), Vec::new());
        for commit in commits.iter().cloned() {
            let subject = self.git.subject(&commit)?;
            let tree = match self.git.merge_onto(&commit, &onto)? {
                Merged::Clean { tree } => tree,
                Merged::Conflict { paths } => {
                    let paths = paths.iter().map(ToString::to_string).collect();
                    return Err(LandError::Conflict { commit, subject, paths });
                }
            };
            reporter.report(Update::Notice { text: &format!("Verifying {subject}") });
            let evidence = self.git.read_note(&commit)?.and_then(|note| Evidence::from_note(note.as_bytes()).ok());
            if let Some(evidence) = &evidence {
                self.refuse_absorbed(&commit, &tree, &onto, evidence.story.as_str())?;
            }
            let report = self.verify(&mut spaces, &tree, &onto, evidence.as_ref(), folder.path(), reporter)?;
            if let Some(signal) = self.signals.requested().filter(|_| report.was_interrupted()) {
                return Err(LandError::Interrupted { signal });
            }
            if report.outcome != Outcome::Accepted {
                return Err(LandError::Red { commit, subject, reason: report.sentence() });
            }
            let runs = report.runs_on(Tree::Attempt);
            let new = self.git.commit_again(&commit, &tree, &onto)?;
            if let Some(first) = evidence {
                // Only the original checks: gates added later are not part of this evidence.
                let same = |proof: &NotedCheck| runs.iter().find(|run| run.name == proof.name && run.command == proof.command);
                let after = first.after.iter().filter_map(same).map(NotedCheck::from).collect();
                let previous = self.git.last_evidence(&onto)?;
                let moved = Evidence { tree, base: Some(onto), previous, after, ..first.clone() }.in_place_of(&first);
                self.git.note(&new, &moved.to_note())?;
                all.push(ReappliedCommit { from: (commit, first), to: (new.clone(), moved) });
            }
            made.push(new.clone());
            onto = new;
        }
        Ok((made, all))
    }

    /// Runs the checks that proved the story, including gates from the command line, and the current gates.
    fn verify(
        &self,
        spaces: &mut Workspaces,
        tree: &Oid,
        head: &Oid,
        evidence: Option<&Evidence>,
        run_dir: &Path,
        reporter: &mut dyn Reporter,
    ) -> Result<VerifyReport, LandError> {
        let config = self.request.config;
        let known: Vec<Check> =
            evidence.into_iter().flat_map(|evidence| &evidence.after).map(|proof| again(proof, config)).collect();
        let is_new = |gate: &Check| !known.iter().any(|check| check.command == gate.command);
        let new: Vec<Check> = gates(config).into_iter().filter(is_new).collect();
        let (own, mut gates): (Vec<Check>, Vec<Check>) = known.into_iter().partition(|check| check.origin == CheckOrigin::Story);
        gates.extend(new);
        let story = evidence.map(|evidence| JobStory::of_checks(evidence.story.clone(), own));
        let job = VerifyJob { story, ..VerifyJob::of_gates(Surface::Accept, gates, tree.clone()) };
        let redactor = process::redactor_from_environment(&[]);
        let mut bench = Bench {
            git: self.git,
            spaces,
            head,
            config,
            run_dir,
            number: &mut 0,
            mark: (VERIFY_VARIABLE, self.run),
            redactor: &redactor,
            signals: self.signals,
            clock: Stopwatch::start(),
            place: BenchPlace::default(),
        };
        let mut results = Results::default();
        let mut verification = Verification::new(job, None, &results);
        verification.advance(&mut bench, &mut results, reporter)?;
        Ok(verification.report())
    }
}

/// A check from the evidence, to run again.
fn again(proof: &NotedCheck, config: &Config) -> Check {
    // A gate that still exists has terms that the evidence does not contain. It applied then, so it applies now.
    if let Some(gate) = gates(config).into_iter().find(|gate| gate.name == proof.name && gate.command == proof.command) {
        let terms = CheckOptions { when: CheckOptions::default().when, ..gate.terms };
        return Check { terms, ..gate };
    }
    let terms = CheckOptions { advisory: proof.advisory, ..CheckOptions::default() };
    let (name, origin) = (proof.name.clone(), proof.origin.clone());
    Check { name, origin, command: proof.command.clone(), timeout: config.limits.check_time, terms }
}
