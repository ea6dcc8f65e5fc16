//! How the processes of a view end, and that none of them stays.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use verdone_runtime::launcher::Mount;
use verdone_runtime::process::signal::Signals;
use verdone_runtime::process::{Exit, Received, SpawnError};
use verdone_testkit::PATIENCE;

use crate::world::{World, alone, as_everybody};

#[test]
fn exit_codes_and_signals_are_exact() {
    as_everybody(|world| {
        let view = world.open();
        for code in [0, 1, 7, 125, 126, 127, 255] {
            assert_eq!(world.shell(&view, &format!("exit {code}")).1, Exit::Code(code));
        }
        for signal in [1, 2, 3, 6, 9, 10, 11, 13, 14, 15, 40] {
            assert_eq!(world.shell(&view, &format!("ulimit -c 0; kill -{signal} $$")).1, Exit::Signal(signal));
        }
        assert_eq!(world.shell(&view, "trap '' USR1; kill -USR1 0; exit 3").1, Exit::Code(3), "a signal to its own group");
        assert_eq!(world.shell(&view, "kill -9 0").1, Exit::Signal(9));
    });
}

#[test]
fn a_program_that_cannot_be_started_says_why() {
    as_everybody(|world| {
        let view = world.open();
        let start = |argv: &[&str]| world.run(view.inside(), argv, |spawn| spawn.env.set.push(("PATH".into(), "/bin".into())));
        assert!(matches!(start(&["no-such-program"]), Err(SpawnError::NotFound { program }) if program == "no-such-program"));
        assert!(matches!(start(&["./file"]), Err(SpawnError::Denied { program }) if program == "./file"));
        let elsewhere = world.run(view.inside(), &["true"], |spawn| spawn.cwd = world.path("absent"));
        assert!(matches!(elsewhere, Err(SpawnError::NoDirectory { path }) if path == world.path("absent")));
        let inside = view.inside();
        drop(view);
        let closed = world.run(inside, &["true"], |_| {});
        assert!(
            matches!(&closed, Err(SpawnError::Failed { source, .. }) if source.to_string().contains("enter the view")),
            "{closed:?}"
        );
    });
}

#[test]
fn a_companion_that_cannot_be_started_says_why() {
    as_everybody(|world| {
        let view = world.open();
        let mut lost = world.companion_of(&view, &["/no/such/agent"]);
        assert_eq!(lost.receive(PATIENCE), Received::Exited);
        assert!(lost.exit_words().contains("cannot execute /no/such/agent"), "{}", lost.exit_words());
        lost.end(PATIENCE, &Signals::none());
    });
}

#[test]
fn the_group_is_asked_before_it_is_killed() {
    as_everybody(|world| {
        let view = world.open();
        let script = "trap 'echo asked; sleep 0.2; echo done; exit 7' TERM; echo up; while :; do sleep 0.02; done";
        let ended =
            world.run(view.inside(), &["sh", "-c", script], |spawn| spawn.wall = Some(Duration::from_millis(500))).unwrap();
        // In between, the shell may report that its `sleep` was terminated.
        let text = &ended.output.text;
        assert!(text.contains("asked\n") && text.ends_with("done\n") && ended.exit == Exit::Wall, "{ended:?}");
        let deaf =
            "trap '' TERM HUP INT; setsid sh -c 'trap \"\" TERM; while :; do sleep 0.02; done' & while :; do sleep 0.02; done";
        let ended = world.run(view.inside(), &["sh", "-c", deaf], |spawn| {
            spawn.wall = Some(Duration::from_millis(200));
            spawn.grace = Duration::from_millis(200);
        });
        assert_eq!(ended.unwrap().exit, Exit::Wall);
        assert_eq!(processes_below(std::process::id()), holders(1), "the killed launcher's namespace is gone too");
    });
}

#[test]
fn a_program_behind_a_shell_has_its_time_to_end() {
    as_everybody(|world| {
        let view = world.open();
        let inner = "trap 'sleep 0.2; echo done; exit' TERM; echo up; while :; do sleep 0.02; done";
        let script = format!("sh -c \"{inner}\"; true");
        let wall = Some(Duration::from_millis(500));
        let ended = world.run(view.inside(), &["sh", "-c", &script], |spawn| spawn.wall = wall).unwrap();
        // In between, a shell may report that its `sleep` was terminated.
        assert!(ended.output.text.ends_with("done\n") && ended.exit == Exit::Wall, "the shell ended at once: {ended:?}");
    });
}

#[test]
fn stopping_the_group_stops_the_program() {
    as_everybody(|world| {
        let view = world.open();
        let mut ticker = world.companion(&view, "while :; do echo tick; sleep 0.02; done");
        assert!(matches!(ticker.receive(PATIENCE), Received::Line(..)));
        ticker.stop();
        while ticker.receive(Duration::from_millis(500)) != Received::Nothing {}
        ticker.go_on();
        assert!(matches!(ticker.receive(PATIENCE), Received::Line(..)));
        let (status, leftovers) = ticker.end(Duration::from_millis(50), &Signals::none());
        assert_eq!((std::os::unix::process::ExitStatusExt::signal(&status.unwrap()), leftovers), (Some(15), 0));
    });
}

#[test]
fn what_a_command_leaves_running_ends_with_it() {
    as_everybody(|world| {
        let view = world.open();
        let begin = Instant::now();
        let text =
            world.says(&view, "setsid nohup sleep 600 > /dev/null 2>&1 & (sleep 600 &) ; trap '' TERM; sleep 600 & echo started");
        assert_eq!(text, "started\n");
        assert!(begin.elapsed() < PATIENCE, "nobody waits for the pipes: {:?}", begin.elapsed());
        assert_eq!(processes_below(std::process::id()), holders(1));
        drop(view);
        assert_eq!(processes_below(std::process::id()), holders(0));
    });
}

/// What remains after `kill -9` of the process that has a view with running commands.
#[test]
fn everything_ends_when_verdone_is_killed() {
    if std::env::var_os(VICTIM).is_some() {
        be_killed();
        return;
    }
    as_everybody(|world| {
        let mark = world.path("up");
        let victim = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "ending::everything_ends_when_verdone_is_killed"])
            .env(VICTIM, &mark)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let mut victim = victim.unwrap();
        wait_until("the victim's commands run", || mark.exists());
        let below = processes_below(victim.id());
        assert!(below.len() >= 5, "holder, launcher, first process, shell and sleepers: {below:?}");
        let all = all_below(victim.id());
        victim.kill().unwrap();
        victim.wait().unwrap();
        wait_until("all are gone", || all.iter().all(|pid| living_name(*pid).is_none()));
    });
}

const VICTIM: &str = "VERDONE_TEST_VICTIM";

fn be_killed() {
    let _alone = alone();
    let mark = PathBuf::from(std::env::var_os(VICTIM).unwrap());
    let home = mark.parent().unwrap();
    let world = World::below(home);
    let mut plan = world.plan();
    plan.mounts.push(Mount::Bind { from: home.to_owned(), at: home.to_owned(), write: true });
    let view = world.open_plan(&plan).unwrap();
    let script = format!(
        "trap '' TERM HUP INT; setsid nohup sleep 600 > /dev/null 2>&1 & (setsid sleep 600 &); sleep 0.2; : > '{}'; sleep 600",
        mark.display()
    );
    let _ = world.shell(&view, &script);
}

#[track_caller]
fn wait_until(what: &str, done: impl Fn() -> bool) {
    let begin = Instant::now();
    while !done() {
        assert!(begin.elapsed() < PATIENCE, "{what}: not in time");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The names of this process's descendants.
fn processes_below(root: u32) -> Vec<String> {
    all_below(root).into_iter().filter_map(living_name).collect()
}

/// `None` for a process that is gone or a zombie.
fn living_name(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (name, rest) = stat.split_once('(')?.1.rsplit_once(") ")?;
    (!rest.starts_with('Z')).then(|| name.to_owned())
}

fn all_below(root: u32) -> Vec<u32> {
    let parents: Vec<(u32, u32)> = fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| {
            let pid: u32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            let parent = stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()?;
            Some((pid, parent))
        })
        .collect();
    let mut found = vec![root];
    let mut at = 0;
    while at < found.len() {
        let parent = found[at];
        found.extend(parents.iter().filter(|(_, known)| *known == parent).map(|(pid, _)| *pid));
        at += 1;
    }
    found.split_off(1)
}

fn holders(count: usize) -> Vec<String> {
    vec!["verdone".to_owned(); count]
}

#[test]
fn a_sweep_leaves_an_open_view_alone() {
    as_everybody(|world| {
        let view = world.open();
        world.run_outside(&["true"]);
        assert_eq!(verdone_runtime::process::end_leftovers(&[], Duration::ZERO, &Signals::none()), 0);
        assert_eq!(world.says(&view, "cat file"), "the workspace's\n");
    });
}

#[test]
fn a_holder_that_was_killed_does_not_hang_its_view() {
    as_everybody(|world| {
        let view = world.open();
        let holder = all_below(std::process::id()).pop().unwrap();
        Command::new("kill").args(["-9", &holder.to_string()]).status().unwrap();
        let begin = Instant::now();
        drop(view);
        // A holder that is alive has 2 seconds to end.
        assert!(begin.elapsed() < Duration::from_secs(2), "{:?}", begin.elapsed());
    });
}
