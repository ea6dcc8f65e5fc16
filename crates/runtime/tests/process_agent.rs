//! Complete turns with real agents. This binary itself plays the scripted agent, so it has a custom main; the tests run one after the
//! other, because a sweep ends every descendant.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use tempfile::TempDir;
use verdone_core::agent::{AgentKind, PromptVia, TurnOutcome};
use verdone_core::base::finish::StopSignal;
use verdone_core::base::id::{RunId, StoryId};
use verdone_core::base::redact::Redactor;
use verdone_core::base::span::Span;
use verdone_core::check::CommandSpec;
use verdone_core::config::{Agents, CommandAgent, Limits, ScriptedAgent};
use verdone_core::journal::event::Place;
use verdone_runtime::agent::{TurnRequest, TurnResult, run_turn, scripted};
use verdone_runtime::process::signal::Signals;
use verdone_runtime::process::{EnvPlan, HeldUp, Moment};

const TESTS: [(&str, fn()); 14] = [
    ("prompts_arrive_on_stdin_as_an_argument_and_in_a_file", prompts_arrive),
    ("a_huge_prompt_arrives_every_way", a_huge_prompt_arrives_every_way),
    ("the_agent_knows_where_it_is", the_agent_knows_where_it_is),
    ("exits_become_outcomes", exits_become_outcomes),
    ("wall_and_idle_limits_end_a_turn", limits_end_a_turn),
    ("an_agent_that_cannot_be_started_says_why", not_runnable),
    ("a_stop_interrupts_the_turn", a_stop_interrupts_the_turn),
    ("prompt_and_redacted_output_are_kept", prompt_and_output_are_kept),
    ("a_script_edits_files", a_script_edits_files),
    ("a_script_uses_git_as_an_agent_would", a_script_uses_git),
    ("a_script_that_ignores_term_is_killed", ignoring_term),
    ("a_daemon_of_a_script_is_ended", a_daemon_is_ended),
    ("a_script_crashes_floods_and_lies", a_script_crashes_floods_and_lies),
    ("a_broken_script_names_its_mistake", a_broken_script_names_its_mistake),
];

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    if arguments.first().is_some_and(|first| first == scripted::ARGUMENT) {
        return scripted::main(&arguments[1..]);
    }
    let mut out = std::io::stdout();
    let filter = arguments.iter().filter_map(|a| a.to_str()).find(|a| !a.starts_with('-')).unwrap_or_default();
    let mut failed = 0;
    for (name, test) in TESTS.iter().filter(|(name, _)| name.contains(filter)) {
        if arguments.iter().any(|argument| argument == "--list") {
            writeln!(out, "{name}: test").unwrap();
            continue;
        }
        let passed = std::panic::catch_unwind(test).is_ok();
        failed += u8::from(!passed);
        writeln!(out, "test {name} ... {}", if passed { "ok" } else { "FAILED" }).unwrap();
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// A project folder and a run's folder, with limits that suit tests.
struct Scene {
    project: TempDir,
    run_dir: TempDir,
    limits: Limits,
    redactor: Redactor,
    signals: Signals,
}

impl Scene {
    fn new() -> Self {
        let limits = Limits { turn_time: Span::from_secs(60), grace: Span::from_millis(500), ..Limits::default() };
        let (project, run_dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::write(project.path().join("PLAN.md"), "- [ ] US-001: first\n- [ ] US-002: second\n").unwrap();
        Self { project, run_dir, limits, redactor: Redactor::default(), signals: Signals::none() }
    }

    fn turn(&self, agent: &Agents, prompt: &str, on: &mut dyn FnMut(Moment<'_>)) -> TurnResult {
        let request = TurnRequest {
            agent,
            prompt,
            cwd: self.project.path(),
            inside: None,
            env: &EnvPlan::default(),
            run_dir: self.run_dir.path(),
            number: 3,
            run: &RunId::from("run-1"),
            place: &Place { story: StoryId::from("US-001"), attempt: 2, turn: 1 },
            iteration: 4,
            plan: Path::new("PLAN.md"),
            tools: None,
            limits: &self.limits,
            held_up: &HeldUp::default(),
            redactor: &self.redactor,
        };
        run_turn(&request, &self.signals, on).unwrap()
    }

    fn command(&self, command: &str) -> TurnResult {
        self.turn(&command_agent(CommandSpec::Shell(command.to_owned()), PromptVia::Stdin), "the prompt", &mut |_| ())
    }

    fn script(&self, steps: &str) -> TurnResult {
        let script = self.run_dir.path().join("script.toml");
        std::fs::write(&script, format!("[[turn]]\nstory = \"US-001\"\nattempt = [1, 2]\nsteps = [\n{steps}\n]\n")).unwrap();
        self.turn(&scripted_agent(&script), "the prompt", &mut |_| ())
    }

    fn file(&self, path: &str) -> String {
        std::fs::read_to_string(self.project.path().join(path)).unwrap()
    }
}

fn command_agent(run: CommandSpec, prompt: PromptVia) -> Agents {
    Agents { name: AgentKind::Command, command: CommandAgent { run: Some(run), prompt }, ..Agents::default() }
}

fn scripted_agent(script: &Path) -> Agents {
    let scripted = ScriptedAgent { script: Some(script.to_str().unwrap().to_owned()) };
    Agents { name: AgentKind::Scripted, scripted, ..Agents::default() }
}

fn crashed(reason: &str) -> TurnOutcome {
    TurnOutcome::Crashed { reason: reason.to_owned() }
}

fn prompts_arrive() {
    let scene = Scene::new();
    let prompt = "do \"it\"; $(touch pwned) `x`\nnow";
    for (command, via) in [
        ("cat", PromptVia::Stdin),
        ("printf %s", PromptVia::Argument),
        ("printf %s \"$1\"", PromptVia::Argument),
        ("cat", PromptVia::File),
    ] {
        let shell = command_agent(CommandSpec::Shell(command.to_owned()), via);
        assert_eq!(scene.turn(&shell, prompt, &mut |_| ()).said, format!("{prompt}\n"), "{command} {via:?}");
    }
    let list = CommandSpec::Argv(vec!["printf".to_owned(), "<%s>".to_owned()]);
    assert_eq!(scene.turn(&command_agent(list, PromptVia::Argument), prompt, &mut |_| ()).said, format!("<{prompt}>\n"));
    let by_name = CommandSpec::Shell("cat \"$VERDONE_PROMPT_FILE\"".to_owned());
    assert_eq!(scene.turn(&command_agent(by_name, PromptVia::Stdin), prompt, &mut |_| ()).said, format!("{prompt}\n"));
    assert!(!scene.project.path().join("pwned").exists());
}

fn a_huge_prompt_arrives_every_way() {
    let scene = Scene::new();
    let prompt = "0123456789abcde\n".repeat(20_000);
    for (command, via, expected) in [
        ("wc -c", PromptVia::Stdin, "320000"),
        ("wc -c <", PromptVia::File, "320000"),
        ("echo", PromptVia::Argument, "turns/3-prompt.md : read the whole file"),
    ] {
        let shell = command_agent(CommandSpec::Shell(command.to_owned()), via);
        let result = scene.turn(&shell, &prompt, &mut |_| ());
        assert!(result.said.contains(expected), "{via:?}: {}", result.said);
    }
}

fn the_agent_knows_where_it_is() {
    let scene = Scene::new();
    let result = scene.command(
        "echo $VERDONE_RUN $VERDONE_STORY $VERDONE_ATTEMPT $VERDONE_TURN $VERDONE_ITERATION; cat \"$VERDONE_PLAN\" | head -1; ls",
    );
    assert_eq!(result.said, "run-1 US-001 2 1 4\n- [ ] US-001: first\nPLAN.md\n");
}

fn exits_become_outcomes() {
    let scene = Scene::new();
    for (command, outcome) in [
        ("echo done", TurnOutcome::Ended),
        ("exit 3", crashed("exit code 3")),
        ("printf 'it \\033[31mbroke\\n\\n'; exit 3", crashed("exit code 3: it broke")),
        ("kill -SEGV $$", crashed("signal 11")),
    ] {
        assert_eq!(scene.command(command).outcome, outcome, "{command}");
    }
}

fn limits_end_a_turn() {
    let mut scene = Scene::new();
    scene.limits.idle_time = Span::from_millis(300);
    assert_eq!(scene.command("exec sleep 3600").outcome, TurnOutcome::Idle { after_ms: 300 });
    scene.limits.idle_time = Span::from_secs(0);
    scene.limits.turn_time = Span::from_millis(300);
    assert_eq!(scene.command("while :; do echo busy; sleep 0.05; done").outcome, TurnOutcome::TimedOut { after_ms: 300 });
}

fn not_runnable() {
    let scene = Scene::new();
    let reason = |result: TurnResult| match result.outcome {
        TurnOutcome::NotRunnable { reason } => reason,
        other => panic!("{other:?}"),
    };
    assert!(reason(scene.command("no-such-agent")).contains("127"));
    assert!(reason(scene.command("/dev/null")).contains("126"));
    let list = CommandSpec::Argv(vec!["no-such-agent".to_owned()]);
    let absent = scene.turn(&command_agent(list, PromptVia::Stdin), "", &mut |_| ());
    assert_eq!(absent.output_file, None);
    assert_eq!(reason(absent), "no-such-agent: not found");
    assert!(reason(scene.turn(&Agents::default(), "", &mut |_| ())).contains("--agent-command"));
}

fn a_stop_interrupts_the_turn() {
    let scene = Scene::new();
    let agent = command_agent(CommandSpec::Shell("echo ready; exec sleep 3600".to_owned()), PromptVia::Stdin);
    let result = scene.turn(&agent, "", &mut |moment| {
        if let Moment::Line { text: "ready", .. } = moment {
            scene.signals.raise(StopSignal::Sigint);
        }
    });
    assert_eq!((result.outcome, result.said.as_str()), (TurnOutcome::Interrupted, "ready\n"));
    assert_eq!(scene.command("echo never").outcome, TurnOutcome::Interrupted);
}

fn prompt_and_output_are_kept() {
    let mut scene = Scene::new();
    scene.redactor = Redactor::new([("MY_TOKEN".to_owned(), "sesame-sesame".to_owned())]);
    let result = scene.command("echo out sesame-sesame; echo sesame-sesame >&2");
    let kept = |file: Option<String>| std::fs::read_to_string(scene.run_dir.path().join(file.unwrap())).unwrap();
    assert_eq!(result.prompt_file.as_deref(), Some("turns/3-prompt.md"));
    assert_eq!(kept(result.prompt_file), "the prompt");
    assert_eq!(result.output_file.as_deref(), Some("outputs/3.txt"));
    let output = kept(result.output_file);
    assert_eq!(output.matches("[redacted:MY_TOKEN]").count(), 2);
    assert!(!output.contains("sesame") && output == result.said);
}

fn a_script_edits_files() {
    let scene = Scene::new();
    let result = scene.script(
        r#"{ say = "Working on it" },
        { create = "src/a.txt", text = "hello\n" },
        { edit = "src/a.txt", find = "hello", replace = "bye" },
        { append = "src/a.txt", text = "more\n" },
        { create = "old.txt" },
        { delete = "old.txt" },
        { run = "cat src/a.txt; exit 2" },
        { sleep = "1ms" },
        { tick = "US-001" },
        { claim = "All done!" }"#,
    );
    assert_eq!(result.outcome, TurnOutcome::Ended);
    assert_eq!(scene.file("src/a.txt"), "bye\nmore\n");
    assert_eq!(scene.file("PLAN.md"), "- [x] US-001: first\n- [ ] US-002: second\n");
    assert!(!scene.project.path().join("old.txt").exists());
    assert_eq!(
        result.said,
        "Working on it\ncreate src/a.txt\nedit src/a.txt\nappend to src/a.txt\ncreate old.txt\ndelete old.txt\n\
         $ cat src/a.txt; exit 2\nbye\nmore\n(exit status: 2)\ntick US-001\nAll done!\n"
    );
    std::os::unix::fs::symlink(scene.run_dir.path(), scene.project.path().join("link")).unwrap();
    for path in ["../x", "/tmp/x", "link/x"] {
        let result = scene.script(&format!("{{ create = \"{path}\" }}"));
        assert_eq!(result.outcome, crashed(&format!("exit code 1: could not use {path}: it is outside the working directory")));
    }
}

fn a_script_uses_git() {
    let scene = Scene::new();
    let git = |arguments: &[&str]| {
        let output = Command::new("git").current_dir(scene.project.path()).args(arguments).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    git(&["init", "-q", "-b", "main"]);
    git(&["config", "user.name", "Tester"]);
    git(&["config", "user.email", "tester@example.org"]);
    let result = scene.script(
        r#"{ commit = "feat: one" }, { create = "b.txt" }, { commit = "feat: two" }, { amend = "feat: amended" },
        { switch = "elsewhere" }, { commit = "feat: away" }"#,
    );
    assert_eq!(result.outcome, TurnOutcome::Ended, "{}", result.said);
    assert_eq!(git(&["log", "--format=%s"]), "feat: away\nfeat: amended\nfeat: one\n");
    assert_eq!(git(&["branch", "--show-current"]), "elsewhere\n");
}

fn ignoring_term() {
    let mut scene = Scene::new();
    scene.limits.turn_time = Span::from_secs(1);
    let result = scene.script("{ ignore_term = true }, { hang = true }");
    assert_eq!(result.outcome, TurnOutcome::TimedOut { after_ms: 1000 });
    assert_eq!(result.said, "ignoring TERM\nhanging\n");
    let least = scene.limits.turn_time.duration() + scene.limits.grace.duration();
    assert!(result.duration >= least, "TERM alone was not enough: {:?}", result.duration);
}

fn a_daemon_is_ended() {
    let scene = Scene::new();
    let pid_file = scene.project.path().join("pid");
    let result = scene.script(
        r#"{ spawn_daemon = "echo $$ > pid; exec sleep 3600" }, { run = "while ! test -s pid; do sleep 0.01; done" }, { say = "bye" }"#,
    );
    assert_eq!((result.outcome, result.leftovers), (TurnOutcome::Ended, 1));
    let pid = std::fs::read_to_string(pid_file).unwrap();
    assert!(!PathBuf::from(format!("/proc/{}", pid.trim())).exists());
}

fn a_script_crashes_floods_and_lies() {
    let mut scene = Scene::new();
    scene.limits.output_bytes = 10_000;
    let result = scene.script("{ flood = 1000000 }, { crash = 3 }, { say = \"unreached\" }");
    assert_eq!(result.outcome, crashed("exit code 3: crash"));
    assert!(result.said.len() < 11_000 && result.said.contains(" bytes cut "));
    let other = scene.run_dir.path().join("other.toml");
    std::fs::write(&other, "[[turn]]\nstory = \"US-009\"\n").unwrap();
    let result = scene.turn(&scripted_agent(&other), "", &mut |_| ());
    assert_eq!(result.outcome, TurnOutcome::Ended);
    assert_eq!(result.said, "the script has no turn for story US-001, attempt 2, turn 1\n");
}

fn a_broken_script_names_its_mistake() {
    let scene = Scene::new();
    let result = scene.script("{ sing = \"la\" }");
    assert!(result.said.contains("script.toml:5:3: unknown field `sing`"), "{}", result.said);
    assert!(matches!(result.outcome, TurnOutcome::Crashed { reason } if reason.starts_with("exit code 2: ")));
    let absent = scene.turn(&scripted_agent(Path::new("absent.toml")), "", &mut |_| ());
    assert!(absent.said.contains("absent.toml: No such file"), "{}", absent.said);
}
