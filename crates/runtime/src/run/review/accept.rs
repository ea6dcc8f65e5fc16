//! `verdone accept`: a person accepts the work. Its checks run again on the run's tip, and it is committed there.

use jiff::Timestamp;
use tempfile::TempDir;
use verdone_core::base::id::{Oid, StoryId};
use verdone_core::base::redact::Redactor;
use verdone_core::check::CommandSpec;
use verdone_core::done::stated_complexity;
use verdone_core::engine::run::{Attempt, State};
use verdone_core::evidence::{Acceptance, Evidence, with_own_trailers};
use verdone_core::journal::event::Event;
use verdone_core::journal::update::{Reporter, Update};
use verdone_core::protect::{check_scripts, files_read_by};
use verdone_core::verify::{JobGate, JobStory, Outcome, Proof, Surface, VerifyJob, VerifyReport, changes_of};
use verdone_plan::{ReviewState, Status};

use super::{Review, ReviewError, ReviewRequest, find};
use crate::base::active_clock::Stopwatch;
use crate::git::{ChangedPath, CommitError, Git, Merged};
use crate::process::signal::Signals;
use crate::process::{self, VERIFY_VARIABLE};
use crate::project::plan_file::{PlanFile, PlanLocation};
use crate::run::land::Target;
use crate::run::recover::recover;
use crate::run::step;
use crate::run::{RunPlan, freeze};
use crate::store::{Journal, RunLock, Store, StoredRun};
use crate::verify::checks::gates_digest;
use crate::verify::checks::{gates, in_project};
use crate::verify::{Bench, BenchPlace, Results, Trees, TreesRequest, Verification};
use crate::workspace::{HookOutcome, WorkspaceRequest, Workspaces};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptedStory {
    pub story: StoryId,
    pub title: String,
    pub commit: Oid,
    pub proof: Proof,
    pub branch: String,
}

pub fn accept(request: &ReviewRequest<'_>, signals: &Signals, reporter: &mut dyn Reporter) -> Result<AcceptedStory, ReviewError> {
    let ReviewRequest { project, config, story } = *request;
    let git = Git::open(&project.root)?;
    let _lock = RunLock::acquire(git.git_dir())?;
    recover(project, signals, reporter)?;
    let store = Store::new(&project.root);
    let review = find(&store, story)?;
    let stored = store.run(review.run.clone());
    let by = git.identity()?;
    let head = git.status()?.head.ok_or(ReviewError::Unborn)?;
    let (branch, tip) = branch_tip(&git, &review)?;
    let folder = tempfile::tempdir()?;
    let name = format!("accept-{}", review.run);
    let objects = git.object_folders()?;
    let mut spaces = Workspaces::new(&WorkspaceRequest { project, config, run: &name, run_dir: folder.path(), objects });
    spaces.open(&git)?;
    let file = PlanFile::open(PlanLocation::new(project.root.join(&review.plan)))?;
    let plan = RunPlan::open(&git, file, &tip, &head, &folder.path().join("plan"))?;
    let redactor = process::redactor_from_environment(&[]);
    let accepting =
        Accepting { request, git: &git, stored: &stored, review, by, branch, tip, plan, spaces, folder, redactor, signals };
    accepting.accept(reporter)
}

/// The run's branch and its tip. If it has landed completely or is gone, it is first moved to the tip of the user's branch.
fn branch_tip(git: &Git, review: &Review) -> Result<(String, Oid), ReviewError> {
    let target = Target::find(git, review.target.as_deref())?.ok_or(ReviewError::Unborn)?;
    let branch = review.branch.clone().unwrap_or_else(|| format!("verdone/{}", review.run));
    match git.branch_tip(&branch)? {
        Some(tip) if !git.is_part_of(&tip, &target.tip)? => Ok((branch, tip)),
        Some(tip) => {
            git.advance_branch(&branch, &target.tip, &tip)?;
            Ok((branch, target.tip))
        }
        None => {
            git.set_branch(&branch, &target.tip, None)?;
            Ok((branch, target.tip))
        }
    }
}

struct Accepting<'a> {
    request: &'a ReviewRequest<'a>,
    git: &'a Git,
    stored: &'a StoredRun,
    review: Review,
    by: String,
    branch: String,
    tip: Oid,
    plan: RunPlan,
    spaces: Workspaces,
    folder: TempDir,
    redactor: Redactor,
    signals: &'a Signals,
}

impl Accepting<'_> {
    fn accept(mut self, reporter: &mut dyn Reporter) -> Result<AcceptedStory, ReviewError> {
        let text = format!("Verifying {} on top of {}", self.review.place.story, self.tip.short());
        reporter.report(Update::Notice { text: &text });
        let (commit, evidence) = match self.review.waiting {
            ReviewState::Stacked => self.stacked(reporter)?,
            ReviewState::Aside => self.aside(reporter)?,
        };
        let Review { place, title, reasons, .. } = self.review.clone();
        let mut journal = Journal::reopen(&self.stored.dir)?;
        let accepted = Event::Accepted {
            story: place.story.clone(),
            commit: commit.clone(),
            tree: evidence.tree.clone(),
            base: evidence.base.clone(),
            proof: evidence.proof,
            by: self.by.clone(),
            reasons,
            evidence: evidence.digest(),
        };
        journal.append(vec![accepted], Timestamp::now())?;
        self.mark(&evidence, &commit, reporter);
        Ok(AcceptedStory { story: place.story, title, commit, proof: evidence.proof, branch: self.branch })
    }

    /// Re-applies kept work on top of the run's branch.
    fn aside(&mut self, reporter: &mut dyn Reporter) -> Result<(Oid, Evidence), ReviewError> {
        let story = self.review.place.story.clone();
        let work = self.review.work.clone();
        let merged = match self.git.merge_onto(&work, &self.tip)? {
            Merged::Clean { tree } => tree,
            Merged::Conflict { paths } => {
                let paths = paths.iter().map(ToString::to_string).collect();
                return Err(ReviewError::Conflict { story, work, paths });
            }
        };
        if self.plan.is_committed() {
            self.plan.mark(&story, Status::Done)?;
        }
        let mut tree = self.with_plan(&merged)?;
        let mut evidence = self.evidence(&tree, reporter)?;
        let kind = self.plan.plan().story(&story).and_then(|story| story.kind);
        let mut message = evidence.commit_message(&self.request.config.commit.subject, kind);
        if self.git.has_commit_hooks()? {
            let signals = self.signals.clone();
            let timeout = self.request.config.commit.timeout.duration();
            let called_off = || signals.stop().is_some();
            match self.spaces.run_commit_hooks(self.git, &tree, &self.tip, &message, timeout, &called_off)? {
                HookOutcome::Refused { said } => {
                    return Err(ReviewError::Hook { said: self.redactor.redact(&said).into_owned() });
                }
                HookOutcome::Passed { tree: rewritten, message: edited } => {
                    message = with_own_trailers(&edited, &message);
                    let rewritten = self.with_plan(&rewritten)?;
                    if rewritten != tree {
                        evidence = self.evidence(&rewritten, reporter)?.in_place_of(&evidence);
                        tree = rewritten;
                    }
                }
            }
        }
        let timeout = self.request.config.commit.timeout.duration();
        let commit = match self.git.commit_tree(&tree, Some(&self.tip), &message, timeout) {
            Ok(commit) => commit,
            Err(CommitError::Refused { message, .. }) => return Err(ReviewError::Hook { said: message }),
            Err(error @ CommitError::Git(_)) => return Err(error.into()),
        };
        self.git.note(&commit, &evidence.to_note())?;
        self.git.advance_branch(&self.branch, &commit, &self.tip)?;
        Ok((commit, evidence))
    }

    /// Work that later stories built on is already on the run's branch; its checks must pass at the tip.
    fn stacked(&mut self, reporter: &mut dyn Reporter) -> Result<(Oid, Evidence), ReviewError> {
        let commit = self.review.work.clone();
        let tree = self.git.tree_of(&self.tip)?;
        self.verify(&tree, reporter)?;
        let first = self.git.read_note(&commit)?.and_then(|note| Evidence::from_note(note.as_bytes()).ok());
        let evidence = match first {
            Some(first) => {
                let accepted = Evidence { outcome: Outcome::Accepted, accepted: Some(self.acceptance()), ..first.clone() };
                accepted.in_place_of(&first)
            }
            None => self.evidence(&self.git.tree_of(&commit)?, reporter)?,
        };
        self.git.note(&commit, &evidence.to_note())?;
        Ok((commit, evidence))
    }

    fn acceptance(&self) -> Acceptance {
        Acceptance { by: self.by.clone(), at: Timestamp::now().to_string(), reasons: self.review.reasons.clone() }
    }

    fn with_plan(&self, tree: &Oid) -> Result<Oid, ReviewError> {
        let changes: Vec<_> = self.plan.texts().into_iter().map(|(path, bytes)| (path, Some(("100644", bytes)))).collect();
        if changes.is_empty() { Ok(tree.clone()) } else { Ok(self.git.replace_in_tree(tree, &changes)?) }
    }

    fn evidence(&mut self, tree: &Oid, reporter: &mut dyn Reporter) -> Result<Evidence, ReviewError> {
        let report = self.verify(tree, reporter)?;
        let mut attempt = Attempt::new(self.review.place.clone(), &self.review.title);
        attempt.base = Some(self.tip.clone());
        attempt.gates = Some(gates_digest(self.request.config));
        attempt.previous = self.git.last_evidence(&self.tip)?;
        let state = State { run: Some(self.review.run.clone()), seal: Some(self.spaces.seal()), ..State::default() };
        let proof = report.proof.unwrap_or(Proof::Unchecked);
        let evidence = Evidence::for_attempt(&state, &attempt, (proof, Outcome::Accepted), &report);
        Ok(Evidence { accepted: Some(self.acceptance()), ..evidence })
    }

    /// Runs all checks on this tree. Skips the pristine tree and the test counts: the person has reviewed those changes.
    fn verify(&mut self, tree: &Oid, reporter: &mut dyn Reporter) -> Result<VerifyReport, ReviewError> {
        let job = self.job(tree)?;
        let (trees, job) = job;
        let mut number = 0;
        let mut bench = Bench {
            git: self.git,
            spaces: &mut self.spaces,
            head: &self.tip,
            config: self.request.config,
            run_dir: self.folder.path(),
            number: &mut number,
            mark: (VERIFY_VARIABLE, self.review.run.as_str()),
            redactor: &self.redactor,
            signals: self.signals,
            clock: Stopwatch::start(),
            place: BenchPlace::default(),
        };
        let mut results = Results::default();
        let mut verification = Verification::new(job, Some(trees), &results);
        verification.advance(&mut bench, &mut results, reporter)?;
        let report = verification.report();
        if report.outcome == Outcome::Accepted {
            return Ok(report);
        }
        let (story, work) = (self.review.place.story.clone(), self.review.work.clone());
        if let Some(signal) = self.signals.requested().filter(|_| report.was_interrupted()) {
            return Err(ReviewError::Interrupted { story, signal });
        }
        Err(ReviewError::Red { story, work, reason: report.sentence() })
    }

    fn job(&self, tree: &Oid) -> Result<(Trees, VerifyJob), ReviewError> {
        let ReviewRequest { project, config, .. } = *self.request;
        let Review { place, plan, .. } = &self.review;
        let not_in_plan = || ReviewError::NotInPlan { story: place.story.clone(), plan: plan.clone() };
        let story = self.plan.plan().story(&place.story).ok_or_else(not_in_plan)?;
        let frozen = freeze(self.plan.plan(), config, &project.root);
        let own = frozen.get(&self.review.place.story).cloned().unwrap_or_default();
        let gates = gates(config);
        let commands: Vec<&CommandSpec> = frozen.values().flatten().chain(&gates).map(|check| &check.command).collect();
        let base = self.git.tree_of(&self.tip)?;
        let folder = self.git.repo_path(&project.root).map(|folder| folder.to_string()).unwrap_or_default();
        let trees = Trees::compare(&TreesRequest {
            git: self.git,
            settings: &config.protect,
            folder: &folder,
            scope: &story.scope,
            check_scripts: &check_scripts(commands),
            subjects: &files_read_by(own.iter().map(|check| &check.command)),
            start: None,
            base: &base,
            attempt: tree,
            ours: self.plan.paths(),
        })?;
        let (protected, autorun) = changes_of(trees.plan());
        let complexity = stated_complexity(&config.done, story.complexity).value;
        let job = VerifyJob {
            story: Some(JobStory {
                criteria: story.criteria.iter().map(|criterion| criterion.text.clone()).collect(),
                complexity: complexity.into(),
                ..JobStory::of_checks(self.review.place.story.clone(), own)
            }),
            gates: gates.into_iter().map(JobGate::from).collect(),
            changed: Some(in_project(&folder, &self.changed(&base, tree)?)),
            base: Some(base),
            protected,
            autorun,
            at_most: Some(self.review.proof),
            ..VerifyJob::of_gates(Surface::Accept, Vec::new(), tree.clone())
        };
        Ok((trees, job))
    }

    /// The story's changes, for gates that apply only to some files. At the tip, stacked work is one change among others.
    fn changed(&self, base: &Oid, tree: &Oid) -> Result<Vec<ChangedPath>, ReviewError> {
        let mut changed = match self.review.waiting {
            ReviewState::Aside => self.git.changed_paths(Some(base), tree)?,
            ReviewState::Stacked => self.git.changed_paths(self.review.base.as_ref(), &self.review.work)?,
        };
        changed.retain(|change| !self.plan.paths().contains(&change.path));
        Ok(changed)
    }

    fn mark_and_record(&mut self, evidence: &Evidence, commit: &Oid) -> Result<(), ReviewError> {
        self.plan.mark_users_file(&evidence.story, Status::Done)?;
        let subject = self.git.subject(commit)?;
        let entry = step::entry(&self.stored.dir, &self.request.project.root, evidence, commit, &subject);
        Ok(self.plan.record_story(&entry)?)
    }

    /// Updates the user's plan and progress file, unless the commit contains them.
    fn mark(&mut self, evidence: &Evidence, commit: &Oid, reporter: &mut dyn Reporter) {
        if self.plan.is_committed() {
            return;
        }
        if let Err(error) = self.mark_and_record(evidence, commit) {
            reporter.report(Update::Notice { text: &format!("{} could not be ticked: {error}", evidence.story) });
        }
    }
}
