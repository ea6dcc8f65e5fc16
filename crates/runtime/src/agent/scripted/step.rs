//! Runs the steps. Each one announces itself before it acts, as agents do.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::script::Step;
use super::{ARGUMENT, DAEMON, say};
use crate::process::SHELL;

pub(super) enum Next {
    Step,
    Exit(u8),
}

pub(super) fn perform(step: &Step) -> Result<Next, String> {
    match step {
        Step::Say(text) | Step::Claim(text) => say(text),
        Step::Create { path, text, executable } => create(path, text, *executable)?,
        Step::Append { path, text } => append(path, text)?,
        Step::Edit { path, find, replace } => edit(path, find, replace)?,
        Step::Delete(path) => delete(path)?,
        Step::Run(command) => run(command)?,
        Step::Sleep(span) => std::thread::sleep(span.duration()),
        Step::Crash(code) => return Ok(crash(*code)),
        Step::Tick(story) => tick(story)?,
        Step::Commit(message) => commit(message)?,
        Step::Amend(message) => git(&["commit", "--quiet", "--amend", "--all", "--message", message])?,
        Step::Switch(branch) => switch(branch)?,
        Step::IgnoreTerm => ignore_term()?,
        Step::SpawnDaemon(command) => spawn_daemon(command)?,
        Step::Flood(bytes) => flood(*bytes),
        Step::Hang => hang(),
    }
    Ok(Next::Step)
}

fn create(path: &str, text: &str, executable: bool) -> Result<(), String> {
    let file = inside(path)?;
    say(&format!("create {path}"));
    let parent = file.parent().map_or(Ok(()), fs::create_dir_all);
    let written = parent.and_then(|()| fs::write(&file, text)).and_then(|()| {
        if !executable {
            return Ok(());
        }
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755))
    });
    written.map_err(|error| format!("create {path}: {error}"))
}

fn append(path: &str, text: &str) -> Result<(), String> {
    let file = inside(path)?;
    say(&format!("append to {path}"));
    let opened = fs::OpenOptions::new().append(true).create(true).open(file);
    opened.and_then(|mut file| file.write_all(text.as_bytes())).map_err(|error| format!("append to {path}: {error}"))
}

fn edit(path: &str, find: &str, replace: &str) -> Result<(), String> {
    let file = inside(path)?;
    say(&format!("edit {path}"));
    let before = fs::read_to_string(&file).map_err(|error| format!("edit {path}: {error}"))?;
    if !before.contains(find) {
        return Err(format!("edit {path}: it does not contain {find:?}"));
    }
    fs::write(&file, before.replacen(find, replace, 1)).map_err(|error| format!("edit {path}: {error}"))
}

fn delete(path: &str) -> Result<(), String> {
    let file = inside(path)?;
    say(&format!("delete {path}"));
    fs::remove_file(file).map_err(|error| format!("delete {path}: {error}"))
}

fn run(command: &str) -> Result<(), String> {
    say(&format!("$ {command}"));
    let status = Command::new(SHELL).args(["-c", command]).stdin(Stdio::null()).status();
    let status = status.map_err(|error| format!("run {command}: {error}"))?;
    if !status.success() {
        say(&format!("({status})"));
    }
    Ok(())
}

fn crash(code: u8) -> Next {
    say("crash");
    Next::Exit(code)
}

/// Ticks the story's box without doing the work, as crudely as a lying agent would.
fn tick(story: &str) -> Result<(), String> {
    let plan = std::env::var_os("VERDONE_PLAN").map(PathBuf::from).ok_or("tick: VERDONE_PLAN is not set")?;
    say(&format!("tick {story}"));
    let before = fs::read_to_string(&plan).map_err(|error| format!("tick {story}: {error}"))?;
    let after = ticked(&before, story).ok_or_else(|| format!("tick {story}: no open box for it in the plan"))?;
    fs::write(&plan, after).map_err(|error| format!("tick {story}: {error}"))
}

fn ticked(plan: &str, story: &str) -> Option<String> {
    let at = plan.find(story)?;
    let line = plan[..at].rfind('\n').map_or(0, |end| end + 1);
    let (open, done) = if plan.trim_start().starts_with(['{', '[']) && !plan.contains("[ ]") {
        ("\"passes\": false", "\"passes\": true")
    } else {
        ("[ ]", "[x]")
    };
    let found = line + plan[line..].find(open)?;
    Some(format!("{}{done}{}", &plan[..found], &plan[found + open.len()..]))
}

fn commit(message: &str) -> Result<(), String> {
    git(&["add", "--all"])?;
    git(&["commit", "--quiet", "--allow-empty", "--message", message])
}

fn switch(branch: &str) -> Result<(), String> {
    git(&["switch", "--quiet", branch]).or_else(|_| git(&["switch", "--quiet", "--create", branch]))
}

fn git(arguments: &[&str]) -> Result<(), String> {
    say(&format!("git {}", arguments.join(" ")));
    let status = Command::new("git").args(arguments).stdin(Stdio::null()).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("git {}: {status}", arguments.join(" "))),
        Err(error) => Err(format!("git {}: {error}", arguments.join(" "))),
    }
}

fn ignore_term() -> Result<(), String> {
    // Registers a flag that is never read, so that the signal has no effect.
    let flag = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGTERM, flag).map_err(|error| format!("ignore TERM: {error}"))?;
    say("ignoring TERM");
    Ok(())
}

fn spawn_daemon(command: &str) -> Result<(), String> {
    say(&format!("start in the background: {command}"));
    let exe = std::env::current_exe().map_err(|error| format!("start {command}: {error}"))?;
    // Deliberately not waited for: it should outlive us.
    let started = Command::new(exe).args([ARGUMENT, DAEMON, command]).stdin(Stdio::null()).spawn();
    started.map(drop).map_err(|error| format!("start {command}: {error}"))
}

fn flood(bytes: u64) {
    const LINE: &[u8] = b"a line of the flood, as long as lines of build tools often are: about eighty bytes\n";
    let mut out = std::io::stdout().lock();
    let mut left = bytes;
    while left > 0 {
        let n = usize::try_from(left).unwrap_or(usize::MAX).min(LINE.len());
        if out.write_all(&LINE[LINE.len() - n..]).is_err() {
            return;
        }
        left -= n as u64;
    }
    let _ = out.flush();
}

fn hang() {
    say("hanging");
    loop {
        std::thread::park();
    }
}

/// Resolves a script's path inside the working directory, following links: a demo script must not write elsewhere.
fn inside(path: &str) -> Result<PathBuf, String> {
    let outside = || format!("use {path}: it is outside the working directory");
    let mut clean = PathBuf::new();
    for part in Path::new(path).components() {
        match part {
            Component::Normal(name) => clean.push(name),
            Component::CurDir => {}
            Component::ParentDir if clean.pop() => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return Err(outside()),
        }
    }
    if clean.as_os_str().is_empty() {
        return Err(outside());
    }
    let here = std::env::current_dir().and_then(|dir| dir.canonicalize()).map_err(|error| format!("use {path}: {error}"))?;
    let file = here.join(clean);
    let real = file.ancestors().find_map(|ancestor| ancestor.canonicalize().ok());
    if real.is_some_and(|real| real.starts_with(&here)) { Ok(file) } else { Err(outside()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lying_tick_finds_the_storys_box() {
        for (plan, expected) in [
            ("- [ ] US-001: a\n- [ ] US-002: b\n", "- [ ] US-001: a\n- [x] US-002: b\n"),
            ("### US-001\n- [ ] x\n### US-002: b\n- [ ] y\n", "### US-001\n- [ ] x\n### US-002: b\n- [x] y\n"),
            ("{\"id\": \"US-002\",\n \"passes\": false}", "{\"id\": \"US-002\",\n \"passes\": true}"),
        ] {
            assert_eq!(ticked(plan, "US-002").as_deref(), Some(expected));
        }
        assert_eq!(ticked("- [x] US-002\n", "US-002"), None);
        assert_eq!(ticked("- [ ] US-001\n", "US-002"), None);
    }

    #[test]
    fn paths_stay_inside_the_working_directory() {
        for path in ["../x", "/etc/x", "a/../../x", "", ".", "a/.."] {
            assert!(inside(path).is_err(), "{path}");
        }
        for path in ["x", "./a/b", "a/../b"] {
            assert!(inside(path).is_ok(), "{path}");
        }
    }
}
