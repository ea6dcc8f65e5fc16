//! The process that verifies for the gate: it outlives the hook that asked, runs the checks, looks for tampering, commits where that is
//! asked for, and leaves a sealed verdict.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use verdone_core::check::{Check, CheckRun, Where, all_green};
use verdone_core::finish::StopSignal;
use verdone_core::id::{Oid, StoryId};
use verdone_core::proof::AsBefore;
use verdone_core::redact::Redactor;
use verdone_core::tamper::{Alarm, Response};

use crate::check_runner::{CheckContext, CleanPlaces, Guarded, Ways, run_checks};
use crate::clean_tree::CleanTree;
use crate::git::{Git, GitError};
use crate::known_files::KnownFiles;
use crate::process::{own_session, redactor_from_environment};
use crate::same_checks::SameChecks;
use crate::seal::Seal;
use crate::signal::Signals;
use crate::site;

use super::alarms::{sight_of, unread};
use super::commit::{self, Committed, Tools, commit};
use super::files::file_error;
use super::same::SameAsk;
use super::verify::{Ask, LOCK, NAP, PATIENCE, Verdict, answered, lock_file, put, requested};
use super::{StopError, tree};

/// The hidden first argument of the binary.
pub const ARGUMENT: &str = "stop-verify";
/// Checks may change what they check this often before they have to settle.
const ROUNDS: usize = 3;

/// What the binary does when its first argument is [`ARGUMENT`]; gets the arguments after it.
pub fn main(arguments: &[OsString]) -> ExitCode {
    own_session();
    let [dir] = arguments else { return ExitCode::from(2) };
    match work(Path::new(dir)) {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever waits sees that there is no verdict.
        Err(_) => ExitCode::FAILURE,
    }
}

fn work(dir: &Path) -> Result<(), StopError> {
    let lock = lock_file(dir).map_err(|source| file_error(dir, source))?;
    // A look at the lock takes it for a moment.
    let began = Instant::now();
    while lock.try_lock().is_err() {
        if began.elapsed() > PATIENCE {
            return Ok(());
        }
        thread::sleep(NAP);
    }
    fs::write(dir.join(LOCK), std::process::id().to_string()).map_err(|source| file_error(dir, source))?;
    let Some((ask, seal)) = requested(dir)? else { return Ok(()) };
    let signals = Signals::install().unwrap_or_else(|_| Signals::none());
    let overdue = deadline(&ask, &signals);
    fs::create_dir_all(dir.join("checks")).map_err(|source| file_error(dir, source))?;
    let guarded = Guarded::begin(ask.grace.duration());
    let git = guarded.git(Git::open(&ask.root)?);
    let redactor = redactor_from_environment(&[]);
    let worker = Worker { dir, ask: &ask, seal: &seal, signals: &signals, overdue: &overdue, guarded, git, redactor };
    let Some(verdict) = worker.verdict()? else { return Ok(()) };
    put(&dir.join(ask.slot()), &seal, ask.slot(), &verdict)
}

/// When all of it has to be over, the checks are ended like by a signal.
fn deadline(ask: &Ask, signals: &Signals) -> Arc<AtomicBool> {
    let overdue = Arc::new(AtomicBool::new(false));
    if let Some(limit) = ask.deadline.limit() {
        let (signals, flag) = (signals.clone(), Arc::clone(&overdue));
        // Without the thread every check still has its own limit.
        let _ = thread::Builder::new().name("deadline".to_owned()).spawn(move || {
            thread::sleep(limit);
            flag.store(true, Ordering::SeqCst);
            signals.raise(StopSignal::Sigterm);
        });
    }
    overdue
}

struct Worker<'a> {
    dir: &'a Path,
    ask: &'a Ask,
    seal: &'a Seal,
    signals: &'a Signals,
    overdue: &'a AtomicBool,
    guarded: Guarded,
    git: Git,
    redactor: Redactor,
}

impl Worker<'_> {
    /// Nothing where somebody called it off.
    fn verdict(&self) -> Result<Option<Verdict>, StopError> {
        let began = Instant::now();
        self.tools().pay_owed();
        let mut verdict = match self.known()? {
            Some(known) => known,
            None => self.checked()?,
        };
        if verdict.green && !verdict.compares_like(self.ask) {
            self.compare(&mut verdict);
        }
        verdict.timed_out = self.overdue.load(Ordering::SeqCst);
        if self.signals.requested().is_some() && !verdict.timed_out {
            return Ok(None);
        }
        if verdict.timed_out {
            // What it was compared with may have been cut short.
            (verdict.green, verdict.as_before) = (false, Vec::new());
        }
        let response = self.ask.alarms.as_ref().map_or(Response::Report, |alarms| alarms.settings.gravest(&verdict.alarms).0);
        if verdict.green {
            verdict.commit = self.committed(&verdict, response);
        }
        if verdict.green && response < Response::Refuse {
            verdict.next = self.next(verdict.next, 1 + verdict.runs.len())?;
        }
        verdict.ms = began.elapsed().as_millis() as u64;
        Ok(Some(verdict))
    }

    /// What the checks of the next story say; known where they were tried for that very one.
    fn next(
        &self,
        known: Option<(StoryId, Vec<CheckRun>)>,
        number: usize,
    ) -> Result<Option<(StoryId, Vec<CheckRun>)>, StopError> {
        match &self.ask.next {
            Some((story, _)) if known.as_ref().is_some_and(|(known, _)| known == story) => Ok(known),
            Some((story, checks)) => Ok(Some((story.clone(), self.run(checks, &self.context(number))?))),
            None => Ok(None),
        }
    }

    /// What was seen green of this very tree is not run again for its commit.
    fn known(&self) -> Result<Option<Verdict>, StopError> {
        let plain = Ask { commit: None, ..self.ask.clone() };
        if self.ask.commit.is_none() || self.look()? != self.ask.tree {
            return Ok(None);
        }
        let known = answered(self.dir, self.seal, plain.slot(), &plain.id())?;
        let known = known.filter(|it| it.green && it.tree == self.ask.tree && it.compares_like(&plain));
        let known = known.filter(|it| it.sight == self.ask.sight());
        Ok(known.map(|known| Verdict { asked: self.ask.id(), id: self.ask.id(), ..known }))
    }

    /// Runs the checks until they leave the tree as it is.
    fn checked(&self) -> Result<Verdict, StopError> {
        let ask = self.ask;
        let mut before = self.look()?;
        let mut verdict = Verdict {
            // Of a tree that is another one already, nothing is said.
            asked: if before == ask.tree { ask.id() } else { String::new() },
            ..Verdict::default()
        };
        for _ in 0..ROUNDS {
            // What the work tree is, as a tree of git, is asked only for gates that want a clean one.
            let clean = ask.checks.iter().any(|check| check.terms.place == Where::Clean);
            let now = clean.then(|| self.work_tree()).transpose()?;
            let places = now.as_ref().map(|now| CleanPlaces::of(&self.git, now, &ask.root, &ask.clean, self.signals));
            let place_of = places.as_ref().map(|places| |check: &Check| places.place_of(check));
            let ways = Ways { place_of: place_of.as_ref().map(|place_of| place_of as _), ..site::ways(&ask.gates) };
            verdict.runs = self.run(&ask.checks, &CheckContext { ways, ..self.context(1) })?;
            let after = self.look()?;
            verdict.settled = after == before;
            before = after;
            let passed = verdict.runs.len() == ask.checks.len() && all_green(&verdict.runs);
            verdict.green = passed && verdict.settled;
            if verdict.settled || !passed || self.signals.requested().is_some() {
                break;
            }
        }
        verdict.id = ask.id_on(&before);
        verdict.tree = before;
        Ok(verdict)
    }

    /// Looks for what the work did to what judges it. What cannot be compared is an alarm, and in doubt.
    fn compare(&self, verdict: &mut Verdict) {
        // First of all: where git sees other files than the checks did, no tree of it tells anything.
        (verdict.sight, verdict.alarms) = self.git_alarms();
        let work = self.work_tree();
        let alarms =
            work.as_ref().map_err(ToString::to_string).and_then(|now| self.alarms(now).map_err(|error| error.to_string()));
        match alarms {
            Ok(alarms) => verdict.alarms.extend(alarms),
            Err(why) => verdict.alarms.push(unread(&why)),
        }
        verdict.as_before = self.as_they_were(work.as_ref(), verdict.runs.len());
        verdict.work = work.ok();
        verdict.compared = self.ask.comparisons();
        // What was put in place for the comparison alone was not what the checks saw.
        verdict.settled = self.look().is_ok_and(|now| now == verdict.tree);
        verdict.green = verdict.settled;
    }

    fn git_alarms(&self) -> (Option<String>, Vec<Alarm>) {
        let Some(asked) = self.ask.alarms.as_ref().filter(|asked| asked.git.is_some()) else { return (None, Vec::new()) };
        match sight_of(self.ask) {
            Ok(now) => (Some(now.digest()), asked.git_alarms(self.ask, &now)),
            Err(error) => (None, vec![unread(&error.to_string())]),
        }
    }

    fn alarms(&self, now: &Oid) -> Result<Vec<Alarm>, GitError> {
        self.ask.alarms.as_ref().map_or(Ok(Vec::new()), |alarms| alarms.look(self.ask, &self.git, now))
    }

    /// Own checks of stories as they were, where something that decides them changed, or nobody can tell.
    fn as_they_were(&self, work: Result<&Oid, &GitError>, ran: usize) -> Vec<(StoryId, AsBefore)> {
        let next = self.ask.next.as_ref().map_or(0, |(_, checks)| checks.len());
        let ignored = if self.ask.same.is_empty() { Ok(Vec::new()) } else { self.git.ignored_by_rules() };
        let seen = |same: &SameAsk| {
            let changed = match (work, &ignored) {
                (Ok(now), Ok(ignored)) => same.changed(self.ask, &self.git, now, ignored).map_err(|error| error.to_string()),
                (Err(error), _) | (_, Err(error)) => Err(error.to_string()),
            };
            match changed {
                Ok(changed) => changed.map(|changed| self.as_before(changed, 1 + ran + next)),
                Err(why) => Some(AsBefore { unproven: Some(why), ..AsBefore::default() }),
            }
        };
        self.ask.same.iter().filter_map(|same| Some((same.story.clone(), seen(same)?))).collect()
    }

    /// Checks in a clean tree of the work with their files as they were.
    fn as_before(&self, same: SameChecks, number: usize) -> AsBefore {
        let ask = self.ask;
        let ran = CleanTree::make(&self.git, &same.tree, &ask.root, &ask.clean, self.signals)
            .map_err(|error| error.to_string())
            .and_then(|clean| {
                let context = CheckContext { cwd: clean.root(), ..self.context(number) };
                self.run(&same.checks, &context).map_err(|error| error.to_string())
            });
        match ran {
            Ok(runs) => AsBefore { files: same.files, runs, ..AsBefore::default() },
            Err(why) => AsBefore { files: same.files, unproven: Some(why), ..AsBefore::default() },
        }
    }

    /// What came of the commit; nothing where none is asked for, or the work is refused anyhow.
    fn committed(&self, verdict: &Verdict, response: Response) -> Option<Committed> {
        let story = self.ask.commit.as_ref()?;
        match response {
            Response::Report => {
                let Verdict { tree: key, runs, alarms, .. } = verdict;
                let (env, as_before) = (self.guarded.env(), verdict.as_before(&story.story));
                let seen = commit::Seen { env: &env, key, runs, alarms, as_before };
                Some(commit(self.ask, story, self.tools(), seen, self.signals))
            }
            // What a human should look at first is not for us to commit.
            Response::Ask => {
                let why = self.ask.alarms.as_ref().and_then(|alarms| alarms.settings.refusal(&verdict.alarms));
                Some(Committed::Without(why.unwrap_or_default()))
            }
            Response::Refuse => None,
        }
    }

    fn tools(&self) -> Tools<'_> {
        Tools { dir: self.dir, git: &self.git, seal: self.seal }
    }

    fn run(&self, checks: &[Check], context: &CheckContext<'_>) -> Result<Vec<CheckRun>, StopError> {
        let results = run_checks(checks, context, self.signals, &mut |_| {}).map_err(|source| file_error(self.dir, source))?;
        Ok(results.into_iter().map(|result| result.run).collect())
    }

    fn context(&self, number: usize) -> CheckContext<'_> {
        CheckContext {
            written: None,
            inside: None,
            cwd: &self.ask.root,
            run_dir: self.dir,
            number: number as u32,
            env: self.guarded.env(),
            cap: self.ask.output_bytes,
            grace: self.ask.grace.duration(),
            redactor: &self.redactor,
            ways: site::ways(&self.ask.gates),
        }
    }

    fn look(&self) -> Result<String, StopError> {
        Ok(tree::look(&self.ask.root, &self.ask.top, &self.ask.ours)?.key)
    }

    fn work_tree(&self) -> Result<Oid, GitError> {
        Ok(self.git.tree_now(self.ask.largest_file, &mut KnownFiles::of(&self.ask.root, &self.ask.top))?.tree)
    }
}
