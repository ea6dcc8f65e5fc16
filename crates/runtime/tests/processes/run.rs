//! Small real processes: deadlines, escapees, floods, pipes kept open.

use std::path::Path;
use std::time::{Duration, Instant};

use verdone_core::base::finish::StopSignal;
use verdone_core::base::redact::Redactor;
use verdone_runtime::process::output::Stream;
use verdone_runtime::process::signal::Signals;
use verdone_runtime::process::{self, Ended, EnvPlan, Exit, HeldUp, LineProcess, Moment, Received, Spawn, SpawnError, Stdin};
use verdone_testkit::PATIENCE;

use crate::alone;

fn spawn<'a>(script: &str, redactor: &'a Redactor) -> Spawn<'a> {
    Spawn {
        inside: None,
        argv: vec![process::SHELL.into(), "-c".into(), script.into()],
        cwd: std::env::temp_dir(),
        env: EnvPlan::default(),
        stdin: Stdin::Null,
        wall: Some(Duration::from_mins(1)),
        idle: None,
        grace: Duration::from_mins(1),
        cap: 1 << 20,
        keep: None,
        redactor,
    }
}

fn run(spawn: &Spawn<'_>) -> Ended {
    process::run(spawn, &Signals::none(), &mut |_| ()).unwrap()
}

/// Whether a process with this word in its command line is left. Zombies have no command line.
fn alive(mark: &str) -> bool {
    std::fs::read_dir("/proc").unwrap().flatten().any(|entry| {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        entry.file_name() != std::process::id().to_string().as_str() && String::from_utf8_lossy(&line).contains(mark)
    })
}

/// A unique `sleep` duration.
fn mark() -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("3600.{}{:04}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

#[test]
fn exit_codes_and_signals_are_told_apart() {
    let (_one, redactor) = (alone(), Redactor::default());
    for (script, exit) in [
        ("exit 0", Exit::Code(0)),
        ("exit 3", Exit::Code(3)),
        ("exit 126", Exit::Code(126)),
        ("no-such-program-here", Exit::Code(127)),
        ("kill -USR1 $$", Exit::Signal(10)),
    ] {
        assert_eq!(run(&spawn(script, &redactor)).exit, exit, "{script}");
    }
}

#[test]
fn what_cannot_be_started_says_why() {
    let (_one, redactor, dir) = (alone(), Redactor::default(), tempfile::tempdir().unwrap());
    let plain = dir.path().join("plain.txt");
    std::fs::write(&plain, "text").unwrap();
    let try_argv = |argv: Vec<std::ffi::OsString>, cwd: &Path| {
        let spawn = Spawn { argv, cwd: cwd.to_owned(), ..spawn("", &redactor) };
        process::run(&spawn, &Signals::none(), &mut |_| ()).unwrap_err()
    };
    assert!(
        matches!(try_argv(vec!["no-such-program".into()], dir.path()), SpawnError::NotFound { program } if program == "no-such-program")
    );
    assert!(matches!(try_argv(vec![plain.into()], dir.path()), SpawnError::Denied { .. }));
    assert!(matches!(try_argv(vec!["true".into()], &dir.path().join("gone")), SpawnError::NoDirectory { .. }));
    assert!(matches!(try_argv(Vec::new(), dir.path()), SpawnError::Empty));
    assert!(matches!(try_argv(vec!["a\0b".into()], dir.path()), SpawnError::Failed { .. }));
}

#[test]
fn the_wall_time_ends_a_busy_process() {
    let (_one, redactor) = (alone(), Redactor::default());
    let spawn = Spawn { wall: Some(Duration::from_millis(300)), ..spawn("while :; do echo busy; done", &redactor) };
    let ended = run(&spawn);
    assert_eq!(ended.exit, Exit::Wall);
    assert!(ended.duration < spawn.grace, "{:?}", ended.duration);
}

#[test]
fn the_idle_time_ends_a_silent_process_but_not_a_talking_one() {
    let (_one, redactor) = (alone(), Redactor::default());
    let talking = spawn("for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 0.5; done", &redactor);
    assert_eq!(run(&Spawn { idle: Some(Duration::from_secs(3)), ..talking }).exit, Exit::Code(0));
    let silent = spawn("echo one; exec sleep 3600", &redactor);
    let ended = run(&Spawn { idle: Some(Duration::from_millis(300)), ..silent });
    assert_eq!((ended.exit, ended.output.text.as_str()), (Exit::Idle, "one\n"));
}

#[test]
fn a_process_that_ignores_term_is_killed_after_the_grace() {
    let (_one, redactor) = (alone(), Redactor::default());
    let script = "trap 'echo heard' TERM; while :; do sleep 0.05; done";
    let limits = Spawn { wall: Some(Duration::from_millis(300)), grace: Duration::from_secs(1), ..spawn(script, &redactor) };
    let ended = run(&limits);
    assert_eq!(ended.exit, Exit::Wall);
    assert!(ended.output.text.contains("heard\n"), "output during the grace is kept: {}", ended.output.text);
    assert!(ended.duration >= Duration::from_millis(1300), "{:?}", ended.duration);
}

#[test]
fn escapees_by_setsid_and_double_fork_are_ended() {
    let (_one, redactor, mark) = (alone(), Redactor::default(), mark());
    for script in [
        format!("setsid sleep {mark} >/dev/null 2>&1 & exit 0"),
        format!("(setsid sh -c 'sleep {mark} & exit 0' >/dev/null 2>&1 &) ; exit 0"),
        format!("setsid sh -c \"trap '' TERM HUP; while :; do sleep {mark}; done\" >/dev/null 2>&1 & exit 0"),
        format!("sleep {mark} >/dev/null 2>&1 & exit 0"),
    ] {
        // The shell may have ended before its child has executed `sleep`: the sweep must find the child anyway.
        let ended = run(&Spawn { grace: Duration::from_millis(300), ..spawn(&script, &redactor) });
        assert_eq!(ended.exit, Exit::Code(0));
        assert!(!alive(&mark), "{script}");
    }
}

#[test]
fn leftovers_are_counted_and_nobody_is_left_when_a_process_is_ended() {
    let (_one, redactor, mark) = (alone(), Redactor::default(), mark());
    let script = format!("sleep {mark} & setsid sh -c 'echo up; exec sleep {mark}' & wait");
    let signals = Signals::none();
    let ended = process::run(&spawn(&script, &redactor), &signals, &mut |moment| {
        if let Moment::Line { text: "up", .. } = moment {
            signals.raise(StopSignal::Sigint);
        }
    })
    .unwrap();
    assert_eq!(ended.exit, Exit::Interrupted(StopSignal::Sigint));
    assert_eq!(ended.leftovers, 1, "the one that left the group");
    assert!(!alive(&mark));
}

#[test]
fn processes_that_were_there_before_are_spared() {
    let (_one, redactor, mark) = (alone(), Redactor::default(), mark());
    let mut before = std::process::Command::new("sleep").arg(&mark).spawn().unwrap();
    assert_eq!(run(&spawn("exit 0", &redactor)).leftovers, 0);
    assert!(before.try_wait().unwrap().is_none());
    assert_eq!(process::end_leftovers(&[before.id()], Duration::from_secs(1), &Signals::none()), 0);
    assert!(before.try_wait().unwrap().is_none());
    assert_eq!(process::end_leftovers(&[], Duration::from_secs(1), &Signals::none()), 1);
    assert!(!alive(&mark));
}

#[test]
fn strays_of_a_dead_run_are_found_by_their_environment() {
    let (_one, mark) = (alone(), mark());
    let run = format!("run-{mark}");
    let sleep = |run: &str| std::process::Command::new("sleep").arg(&mark).env("VERDONE_RUN", run).spawn().unwrap();
    let (_stray, mut other) = (sleep(&run), sleep("another-run"));
    assert_eq!(process::end_strays(&[&run.as_str().into()], Duration::from_secs(5), &Signals::none()), 1);
    assert!(other.try_wait().unwrap().is_none());
    other.kill().unwrap();
    other.wait().unwrap();
    assert!(!alive(&mark));
}

#[test]
fn a_process_that_wants_the_terminal_is_ended_at_once() {
    let (_one, redactor) = (alone(), Redactor::default());
    for signal in ["TTIN", "TTOU"] {
        let spawn = spawn(&format!("kill -{signal} $$; echo never mind"), &redactor);
        let ended = run(&spawn);
        assert_eq!(ended.exit, Exit::Terminal);
        assert!(ended.duration < spawn.grace, "{:?}", ended.duration);
    }
}

#[test]
fn a_pipe_held_by_a_grandchild_does_not_hang_the_run() {
    let (_one, redactor, mark) = (alone(), Redactor::default(), mark());
    let begin = Instant::now();
    let spawn = spawn(&format!("echo said; setsid sleep {mark} & exit 4"), &redactor);
    let ended = run(&spawn);
    assert_eq!((ended.exit, ended.leftovers), (Exit::Code(4), 1));
    assert_eq!(ended.output.text, "said\n");
    assert!(begin.elapsed() < spawn.grace, "{:?}", begin.elapsed());
    assert!(!alive(&mark));
}

#[test]
fn a_flood_is_digested_whole_and_kept_in_part() {
    let (_one, redactor) = (alone(), Redactor::default());
    let ended = run(&Spawn { cap: 10_000, ..spawn("echo first; yes | head -c 2000000; echo last", &redactor) });
    let whole = [b"first\n".as_slice(), &b"y\n".repeat(1_000_000), b"last\n"].concat();
    assert_eq!(ended.output.total_bytes, whole.len() as u64);
    assert_eq!(ended.output.digest, verdone_core::base::id::digest(&whole));
    assert!(ended.output.text.len() < 11_000);
    assert!(ended.output.text.starts_with("first\ny\n") && ended.output.text.ends_with("y\nlast\n"));
    assert!(ended.output.text.contains(" bytes cut ...]\n"));
}

#[test]
fn a_flood_without_a_line_end_comes_in_pieces() {
    let (_one, redactor) = (alone(), Redactor::default());
    let (mut pieces, mut longest) = (0, 0);
    let spawn = Spawn { cap: 10_000, ..spawn("head -c 8000000 /dev/zero; printf '\\377end'", &redactor) };
    let ended = process::run(&spawn, &Signals::none(), &mut |moment| {
        if let Moment::Line { text, .. } = moment {
            pieces += 1;
            longest = longest.max(text.len());
        }
    })
    .unwrap();
    assert_eq!(ended.output.total_bytes, 8_000_004);
    assert!(pieces > 40 && longest <= 16 * 1024, "{pieces} pieces, longest {longest}");
    assert!(ended.output.text.len() < 11_000 && ended.output.text.ends_with("\u{fffd}end\n"));
}

#[test]
fn a_child_that_never_reads_its_stdin_blocks_nobody() {
    let (_one, redactor) = (alone(), Redactor::default());
    let big = || Stdin::Bytes(vec![b'x'; 4 << 20]);
    let never = Spawn { stdin: big(), wall: Some(Duration::from_millis(300)), ..spawn("exec sleep 3600", &redactor) };
    assert_eq!(run(&never).exit, Exit::Wall);
    let closes = Spawn { stdin: big(), ..spawn("exec <&-; echo went on", &redactor) };
    let ended = run(&closes);
    assert_eq!((ended.exit, ended.output.text.as_str()), (Exit::Code(0), "went on\n"));
    let reads = Spawn { stdin: big(), ..spawn("wc -c", &redactor) };
    assert_eq!(run(&reads).output.text.trim(), (4 << 20).to_string());
}

#[test]
fn the_first_signal_asks_and_a_second_kills_at_once() {
    let (_one, redactor, mark) = (alone(), Redactor::default(), mark());
    let script = format!("trap '' TERM; echo ready; while :; do sleep {mark}; done");
    let (signals, begin) = (Signals::none(), Instant::now());
    let spawn = spawn(&script, &redactor);
    let ended = process::run(&spawn, &signals, &mut |moment| match moment {
        Moment::Line { text, .. } => {
            assert_eq!(text, "ready");
            signals.raise(StopSignal::Sigint);
        }
        Moment::Tick if signals.requested().is_some() => signals.raise(StopSignal::Sigterm),
        Moment::Tick => {}
    })
    .unwrap();
    assert_eq!(ended.exit, Exit::Interrupted(StopSignal::Sigint));
    assert!(begin.elapsed() < spawn.grace, "{:?}", begin.elapsed());
    assert!(!alive(&mark));

    let ended = run_with(&spawn, &signals);
    assert_eq!(ended.exit, Exit::Interrupted(StopSignal::Sigint), "nothing is started any more");
    assert_eq!(ended.output.total_bytes, 0);
}

fn run_with(spawn: &Spawn<'_>, signals: &Signals) -> Ended {
    process::run(spawn, signals, &mut |_| ()).unwrap()
}

#[test]
fn a_real_signal_wakes_a_waiting_supervisor() {
    let (_one, redactor) = (alone(), Redactor::default());
    let signals = Signals::install().unwrap();
    let script = format!("kill -TERM {}; exec sleep 3600", std::process::id());
    let ended = run_with(&spawn(&script, &redactor), &signals);
    assert_eq!(ended.exit, Exit::Interrupted(StopSignal::Sigterm));
    assert_eq!(signals.requested(), Some(StopSignal::Sigterm));
}

#[test]
fn only_what_the_caller_excuses_does_not_count_towards_the_limits() {
    let (_one, redactor) = (alone(), Redactor::default());
    let wall = Spawn { wall: Some(Duration::from_millis(900)), ..spawn("sleep 1.5", &redactor) };
    let idle = Spawn { idle: Some(Duration::from_millis(900)), ..spawn("sleep 1.5", &redactor) };
    for (spawn, cut) in [(wall, Exit::Wall), (idle, Exit::Idle)] {
        let run = |excuses: bool| {
            let held_up = HeldUp::default();
            let mut on = |moment: Moment<'_>| {
                if matches!(moment, Moment::Tick) {
                    std::thread::sleep(Duration::from_millis(400));
                    if excuses {
                        held_up.excuse(Duration::from_millis(400));
                    }
                }
            };
            process::run_excusing(&spawn, &Signals::none(), &held_up, &mut on).unwrap().exit
        };
        assert_eq!((run(false), run(true)), (cut, Exit::Code(0)));
    }
}

#[test]
fn ticks_come_while_nothing_is_said() {
    let (_one, redactor) = (alone(), Redactor::default());
    let mut ticks = 0;
    process::run(&spawn("sleep 1", &redactor), &Signals::none(), &mut |moment| {
        ticks += u32::from(matches!(moment, Moment::Tick));
    })
    .unwrap();
    assert!(ticks >= 2, "{ticks}");
}

#[test]
fn secrets_reach_neither_the_file_nor_the_caller() {
    let (_one, dir) = (alone(), tempfile::tempdir().unwrap());
    let redactor = Redactor::new([("DEPLOY_TOKEN".to_owned(), "hunter2-hunter2".to_owned())]);
    let kept = dir.path().join("outputs/1.txt");
    std::fs::create_dir(dir.path().join("outputs")).unwrap();
    let outside = dir.path().join("outside.txt");
    std::fs::write(&outside, "untouched").unwrap();
    std::os::unix::fs::symlink(&outside, &kept).unwrap();
    let script = "printf 'a hunter2-'; sleep 0.2; echo hunter2 b; echo hunter2-hunter2 >&2; \
                  printf -- '-----BEGIN PRIVATE KEY-----\\nMIIBVgIBADANBg\\n-----END PRIVATE KEY-----\\n'";
    let spawn = Spawn { keep: Some(kept.clone()), ..spawn(script, &redactor) };
    let mut heard = String::new();
    let ended = process::run(&spawn, &Signals::none(), &mut |moment| {
        if let Moment::Line { text, .. } = moment {
            heard.push_str(text);
        }
    })
    .unwrap();
    let file = std::fs::read_to_string(&kept).unwrap();
    assert!(file.contains("a [redacted:DEPLOY_TOKEN] b\n"), "{file}");
    assert_eq!(file, ended.output.text);
    for text in [&file, &heard] {
        assert!(!text.contains("hunter2") && !text.contains("MIIB"), "{text}");
    }
    assert_eq!(std::fs::read_to_string(&outside).unwrap(), "untouched", "a planted link is not followed");
}

#[test]
fn children_get_the_planned_environment() {
    let (_one, redactor) = (alone(), Redactor::default());
    let env = EnvPlan::default().with("VERDONE_RUN", "r1").with("X_SET", "yes").without("HOME");
    let ended = run(&Spawn { env, ..spawn("echo \"$VERDONE_RUN ${X_SET} ${HOME-unset} ${CLAUDECODE-unset}\"", &redactor) });
    assert_eq!(ended.output.text, "r1 yes unset unset\n");
}

/// A process that reads its input, and ends at the end of input.
fn companion(script: &str) -> LineProcess {
    let redactor = Redactor::default();
    LineProcess::start(&Spawn { wall: None, grace: Duration::ZERO, cap: 0, ..spawn(script, &redactor) }, &Signals::none())
        .unwrap()
}

fn line(text: &str) -> Received {
    Received::Line(Stream::Stdout, text.as_bytes().to_vec())
}

#[test]
fn a_companion_answers_line_by_line_and_ends_when_nobody_speaks_any_more() {
    let _one = alone();
    let mut cat = companion("while read -r x; do echo \"heard $x\"; done; printf unfinished");
    cat.say(b"one\n".to_vec());
    assert_eq!(cat.receive(PATIENCE), line("heard one"));
    cat.say(b"two\nthree\n".to_vec());
    assert_eq!(cat.receive(PATIENCE), line("heard two"));
    assert_eq!(cat.receive(PATIENCE), line("heard three"));
    assert_eq!(cat.receive(Duration::from_millis(1)), Received::Nothing);
    let (status, left) = cat.end(PATIENCE, &Signals::none());
    assert!(status.unwrap().success());
    assert_eq!(left, 0);
}

#[test]
fn a_companion_that_ends_by_itself_is_heard_to_its_end() {
    let _one = alone();
    let mut gone = companion("echo bye; printf rest; exit 3");
    assert_eq!(gone.receive(PATIENCE), line("bye"));
    assert_eq!(gone.receive(PATIENCE), line("rest"));
    assert_eq!(gone.receive(PATIENCE), Received::Exited);
    assert_eq!(gone.end(PATIENCE, &Signals::none()).0.unwrap().code(), Some(3));
}

#[test]
fn a_companion_that_does_not_listen_makes_nobody_wait() {
    let _one = alone();
    let deaf = companion("trap '' TERM; while :; do sleep 0.05; done");
    deaf.say(vec![b'x'; 4 * 1024 * 1024]);
    let (status, _) = deaf.end(Duration::from_millis(100), &Signals::none());
    assert!(!status.unwrap().success());
}

#[test]
fn a_line_without_an_end_keeps_nobody_from_looking_at_the_clock() {
    let _one = alone();
    let mut flood = companion("while :; do printf xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done");
    assert_eq!(flood.receive(Duration::from_millis(100)), Received::Nothing);
    let (status, _) = flood.end(Duration::from_millis(100), &Signals::none());
    assert!(!status.unwrap().success());
}
