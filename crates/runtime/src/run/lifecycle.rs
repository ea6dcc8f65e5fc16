//! Finds lifecycle scripts, freezes them at the start of the run and runs them. The core decides what their exit means.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use verdone_core::base::finish::StopSignal;
use verdone_core::base::id::{RunId, digest};
use verdone_core::base::redact::Redactor;
use verdone_core::config::{Config, Hooks};
use verdone_core::engine::run::ScriptRun;
use verdone_core::journal::update::{Reporter, Speaker, Update};
use verdone_core::lifecycle::{Facts, Script, ScriptExit, variables};

use crate::base::active_clock::Stopwatch;
use crate::base::fault::{self, Point};
use crate::process::signal::Signals;
use crate::process::{
    self, Background, EnvPlan, Exit, Moment, RUN_VARIABLE, SHELL, Spawn, SpawnError, Stdin, redactor_from_environment,
};
use crate::workspace::ScriptPlace;

/// Where to look for scripts. The first folder that has a script of this name wins; the other script is not run.
const HOMES: [&str; 2] = [".verdone/hooks", ".fresher/hooks"];

#[derive(Debug)]
pub struct ScriptRequest<'a> {
    pub script: Script,
    /// Gets `scripts/<number>-<name>.txt`.
    pub run_dir: &'a Path,
    /// Where it runs. `None` means the checkout.
    pub place: Option<ScriptPlace>,
    pub env: EnvPlan,
    pub timeout: Option<Duration>,
    pub grace: Duration,
    pub cap: u64,
    /// Start it without waiting for it.
    pub background: bool,
    pub redactor: &'a Redactor,
    /// What the redactor knows in addition to our environment. A background script outlives the request and needs its own redactor.
    pub exports: &'a [(String, String)],
}

impl<'a> ScriptRequest<'a> {
    /// As the settings ask for it.
    pub(crate) fn new(
        script: Script,
        config: &Config,
        run_dir: &'a Path,
        redactor: &'a Redactor,
        exports: &'a [(String, String)],
    ) -> Self {
        let hooks = &config.hooks;
        Self {
            script,
            run_dir,
            place: None,
            env: EnvPlan::default(),
            timeout: timeout(hooks, script),
            grace: config.limits.grace.duration(),
            cap: config.limits.output_bytes,
            // The run ends with this script, so wait for it.
            background: script != Script::Finished && script.settings(hooks).background,
            redactor,
            exports,
        }
    }

    /// With the variables of its table. Ours come last, so that exported variables cannot override facts.
    #[must_use]
    pub(crate) fn with_facts(mut self, facts: &Facts<'_>, run: &RunId) -> Self {
        let exported = self.exports.iter().fold(EnvPlan::default(), |env, (name, value)| env.with(name, value));
        let told = variables(self.script, facts).into_iter().fold(exported, |env, (name, value)| env.with(name, value));
        self.env = told.with(RUN_VARIABLE, run.as_str());
        self
    }
}

/// `finished` may also run after a signal, when the user wants to leave, so it always has a limit.
fn timeout(hooks: &Hooks, script: Script) -> Option<Duration> {
    let last = || (script == Script::Finished).then(|| Hooks::default().timeout.duration());
    hooks.timeout.limit().or_else(last)
}

/// The scripts of a project. Scripts edited after this was created are not run.
#[derive(Debug)]
pub struct Scripts {
    root: PathBuf,
    frozen: Vec<(Script, Option<ScriptState>)>,
    ran: u32,
    /// Each process is declared before the place it runs in, so that it is dropped first.
    background: Vec<(Background, Option<ScriptPlace>)>,
}

/// A script on disk: its fingerprint, or why it cannot run.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ScriptState {
    path: PathBuf,
    fingerprint: Result<String, String>,
}

impl Scripts {
    pub fn freeze(root: &Path) -> Self {
        let frozen = Script::ALL.map(|script| (script, inspect(root, script))).into();
        Self { root: root.to_owned(), frozen, ran: 0, background: Vec::new() }
    }

    /// Scripts that exist but cannot run, with the reason.
    pub fn faults(&self) -> Vec<(Script, String)> {
        let fault = |(script, seen): &(Script, Option<ScriptState>)| Some((*script, seen.as_ref()?.fingerprint.clone().err()?));
        self.frozen.iter().filter_map(fault).collect()
    }

    /// Whether there is a script that would run now.
    pub fn would_run(&self, script: Script) -> bool {
        matches!(self.runnable(script), Ok(Some(_)))
    }

    /// Runs a script if it exists, and shows its output.
    pub(crate) fn run_shown(
        &mut self,
        request: ScriptRequest<'_>,
        signals: &Signals,
        clock: Stopwatch,
        reporter: &mut dyn Reporter,
    ) -> io::Result<Option<ScriptRun>> {
        let script = request.script;
        // A stopped run still runs `finished`; only another signal ends it.
        let further = Signals::none();
        let (signals, _subscription) = if script == Script::Finished {
            let to = further.clone();
            (&further, Some(signals.subscribe(move || to.raise(StopSignal::Sigint))))
        } else {
            (signals, None)
        };
        let mut on = |moment: Moment<'_>| match moment {
            Moment::Line { stream, text } => {
                reporter.report(Update::Output { speaker: Speaker::Script(script.name()), stream, line: text });
            }
            Moment::Tick => reporter.report(clock.tick()),
        };
        self.run(request, signals, &mut on)
    }

    /// Runs a script if it exists. Its failures become its exit; only errors with our own files are returned as errors.
    pub fn run(
        &mut self,
        mut request: ScriptRequest<'_>,
        signals: &Signals,
        on: &mut dyn FnMut(Moment<'_>),
    ) -> io::Result<Option<ScriptRun>> {
        let script = request.script;
        let path = match self.runnable(script) {
            Ok(None) => return Ok(None),
            Ok(Some(path)) => path,
            Err(reason) => {
                return Ok(Some(ScriptRun { script, exit: ScriptExit::NotRunnable { reason }, duration_ms: 0, output: None }));
            }
        };
        self.ran += 1;
        self.background.retain_mut(|(process, _)| !process.has_ended());
        let file = format!("scripts/{}-{}.txt", self.ran, script.name());
        let keep = request.run_dir.join(&file);
        let place = request.place.as_ref();
        let mut env = request.env.clone();
        if let Some(place) = place {
            env.set.extend(place.env.set.iter().cloned());
            env.unset.extend(place.env.unset.iter().cloned());
        }
        let inside = place.and_then(|place| place.inside.clone());
        // A background script is not waited for, so a failure to execute it in a view would go unnoticed.
        let by_shell = request.background && inside.is_some() && names_no_interpreter(&path);
        let mut argv = vec![path.into_os_string()];
        if by_shell {
            argv.insert(0, SHELL.into());
        }
        let mut spawn = Spawn {
            inside,
            argv,
            cwd: place.map_or_else(|| self.root.clone(), |place| place.cwd.clone()),
            env,
            stdin: Stdin::Null,
            wall: request.timeout,
            idle: None,
            grace: request.grace,
            cap: request.cap,
            keep: Some(keep.clone()),
            redactor: request.redactor,
        };
        fault::pass(Point::ScriptBegin);
        let mut started = self.start(&mut request, &spawn, signals, on);
        // Like a shell, run a script without a `#!` line with the shell.
        if matches!(&started, Err(SpawnError::Failed { source, .. }) if source.raw_os_error() == Some(NO_FORMAT)) {
            spawn.argv.insert(0, SHELL.into());
            started = self.start(&mut request, &spawn, signals, on);
        }
        fault::pass(Point::ScriptDone);
        let (exit, duration) = match started {
            Ok(ended) => ended,
            Err(SpawnError::Keep { source, .. }) => return Err(source),
            Err(error) => (ScriptExit::NotRunnable { reason: error.to_string() }, Duration::ZERO),
        };
        let output = keep.exists().then_some(file);
        Ok(Some(ScriptRun { script, exit, duration_ms: duration.as_millis() as u64, output }))
    }

    /// Ends background scripts that are still running.
    pub fn end_background(&mut self, grace: Duration, signals: &Signals) {
        for (process, _place) in self.background.drain(..) {
            process.end(grace, signals);
        }
    }

    fn start(
        &mut self,
        request: &mut ScriptRequest<'_>,
        spawn: &Spawn<'_>,
        signals: &Signals,
        on: &mut dyn FnMut(Moment<'_>),
    ) -> Result<(ScriptExit, Duration), SpawnError> {
        if request.background {
            let process = Background::start(spawn, redactor_from_environment(request.exports))?;
            self.background.push((process, request.place.take()));
            return Ok((ScriptExit::Background, Duration::ZERO));
        }
        let ended = process::run(spawn, signals, on)?;
        Ok((exit_of(ended.exit, request.timeout), ended.duration))
    }

    /// The script to run, `None` if it does not exist, or why it may not run.
    fn runnable(&self, script: Script) -> Result<Option<PathBuf>, String> {
        let before = self.frozen.iter().find(|(name, _)| *name == script).and_then(|(_, seen)| seen.as_ref());
        let now = inspect(&self.root, script);
        match (before, now) {
            (None, None) => Ok(None),
            (None, Some(_)) => Err("it was added during the run".to_owned()),
            (Some(_), None) => Err("it was removed during the run".to_owned()),
            (Some(before), Some(now)) if *before != now => Err("it was edited during the run".to_owned()),
            (Some(_), Some(now)) => now.fingerprint.map(|_| Some(now.path)),
        }
    }
}

/// Whether the file is neither a program nor a script with a `#!` line.
fn names_no_interpreter(path: &Path) -> bool {
    let mut begin = [0; 4];
    let read = fs::File::open(path).and_then(|file| io::Read::read(&mut &file, &mut begin));
    read.is_ok_and(|count| !begin[..count].starts_with(b"#!") && begin[..count] != *b"\x7fELF")
}

/// ENOEXEC: neither a program nor a script with a `#!` line.
const NO_FORMAT: i32 = 8;

fn exit_of(exit: Exit, timeout: Option<Duration>) -> ScriptExit {
    match exit {
        Exit::Code(code) => ScriptExit::Code(code),
        Exit::Signal(signal) => ScriptExit::Signal(signal),
        Exit::Wall | Exit::Idle => ScriptExit::TimedOut { after_ms: timeout.unwrap_or_default().as_millis() as u64 },
        Exit::Terminal => ScriptExit::NotRunnable { reason: "it tried to use the terminal".to_owned() },
        Exit::Interrupted(_) => ScriptExit::Interrupted,
    }
}

fn inspect(root: &Path, script: Script) -> Option<ScriptState> {
    let home = HOMES.iter().map(|home| root.join(home)).find(|home| home.join(script.name()).symlink_metadata().is_ok())?;
    let path = home.join(script.name());
    let fingerprint = fingerprint(&path).map(|own| own + &tools(&home.join("custom")));
    Some(ScriptState { path, fingerprint })
}

/// Fingerprint of content and mode, or why it cannot run.
fn fingerprint(path: &Path) -> Result<String, String> {
    let meta = fs::metadata(path).map_err(|error| error.to_string())?;
    if !meta.is_file() {
        return Err("it is not a file".to_owned());
    }
    let mode = meta.permissions().mode();
    if mode & 0o111 == 0 {
        return Err("it is not executable".to_owned());
    }
    let bytes = fs::read(path).map_err(|error| error.to_string())?;
    Ok(format!("{mode:o} {}", digest(&bytes)))
}

/// The executables that scripts call: if one was edited, the scripts would run it.
fn tools(custom: &Path) -> String {
    let entries = fs::read_dir(custom).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths.iter().fold(String::new(), |mut all, path| {
        if let Ok(seen) = fingerprint(path) {
            let _ = write!(all, "\n{} {seen}", path.display());
        }
        all
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(path: &Path, text: &str, mode: u32) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn our_script_wins_over_freshers_and_one_alone_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let (ours, theirs) = (dir.path().join(".verdone/hooks/started"), dir.path().join(".fresher/hooks/started"));
        assert_eq!(Scripts::freeze(dir.path()).runnable(Script::Started), Ok(None));
        write(&theirs, "t", 0o755);
        assert_eq!(Scripts::freeze(dir.path()).runnable(Script::Started), Ok(Some(theirs)));
        write(&ours, "o", 0o755);
        assert_eq!(Scripts::freeze(dir.path()).runnable(Script::Started), Ok(Some(ours.clone())));
        // If our script cannot run, theirs does not run instead.
        write(&ours, "o", 0o644);
        assert_eq!(Scripts::freeze(dir.path()).runnable(Script::Started), Err("it is not executable".to_owned()));
    }

    #[test]
    fn what_changed_since_the_start_is_not_run() {
        type Change = fn(&Path);
        let cases: [(Change, &str); 6] = [
            (|hooks| write(&hooks.join("started"), "other", 0o755), "it was edited during the run"),
            (|hooks| write(&hooks.join("started"), "text", 0o777), "it was edited during the run"),
            (|hooks| write(&hooks.join("custom/tool"), "other", 0o755), "it was edited during the run"),
            (|hooks| write(&hooks.join("custom/new"), "new", 0o755), "it was edited during the run"),
            (|hooks| write(&hooks.join("../../.verdone/hooks/started"), "over it", 0o755), "it was edited during the run"),
            (|hooks| fs::remove_file(hooks.join("started")).unwrap(), "it was removed during the run"),
        ];
        for (change, reason) in cases {
            let dir = tempfile::tempdir().unwrap();
            let hooks = dir.path().join(".fresher/hooks");
            write(&hooks.join("started"), "text", 0o755);
            write(&hooks.join("custom/tool"), "tool", 0o755);
            let scripts = Scripts::freeze(dir.path());
            assert!(scripts.runnable(Script::Started).unwrap().is_some());
            change(&hooks);
            assert_eq!(scripts.runnable(Script::Started), Err(reason.to_owned()));
            write(&hooks.join("finished"), "late", 0o755);
            assert_eq!(scripts.runnable(Script::Finished), Err("it was added during the run".to_owned()));
        }
    }

    #[test]
    fn what_is_no_script_is_not_run() {
        let dir = tempfile::tempdir().unwrap();
        let hooks = dir.path().join(".verdone/hooks");
        fs::create_dir_all(hooks.join("started")).unwrap();
        std::os::unix::fs::symlink("nowhere", hooks.join("finished")).unwrap();
        let scripts = Scripts::freeze(dir.path());
        assert_eq!(scripts.runnable(Script::Started), Err("it is not a file".to_owned()));
        assert!(scripts.runnable(Script::Finished).unwrap_err().contains("No such file"));
    }
}
