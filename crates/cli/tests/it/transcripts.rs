//! The built binary as a user or a script sees it: the output on each stream, and the exit code.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

/// A home, and a project in it.
struct Place {
    _temp: tempfile::TempDir,
    home: PathBuf,
    project: PathBuf,
}

struct Printed {
    code: i32,
    out: String,
    err: String,
}

impl Place {
    /// A folder that is not a repository.
    fn bare() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(temp.path()).unwrap();
        let (home, project) = (root.join("home"), root.join("project"));
        fs::create_dir(&home).unwrap();
        fs::create_dir(&project).unwrap();
        Self { _temp: temp, home, project }
    }

    fn repository(files: &[(&str, &str)]) -> Self {
        let place = Self::bare();
        let mut git = Command::new("git");
        git.args(["init", "-q"]).current_dir(&place.project).env_clear().env("HOME", &place.home);
        git.envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
        assert!(git.status().unwrap().success());
        for (name, text) in files {
            place.write(name, text);
        }
        place
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.project.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.project.join(name)).unwrap()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_verdone"));
        command.args(arguments).current_dir(&self.project).env_clear().env("HOME", &self.home).stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> Printed {
        self.see(self.command(arguments))
    }

    fn run_with(&self, environment: &[(&str, &str)], arguments: &[&str]) -> Printed {
        let mut command = self.command(arguments);
        command.envs(environment.iter().copied());
        self.see(command)
    }

    /// Replaces this test's paths with `HOME` and `PROJECT`, so that transcripts are the same everywhere.
    fn see(&self, mut command: Command) -> Printed {
        let output = command.output().unwrap();
        let tidy = |bytes: Vec<u8>| {
            let text = String::from_utf8(bytes).unwrap();
            text.replace(&path(&self.project), "PROJECT").replace(&path(&self.home), "HOME")
        };
        Printed { code: output.status.code().unwrap(), out: tidy(output.stdout), err: tidy(output.stderr) }
    }
}

fn path(path: &Path) -> String {
    path.display().to_string()
}

const COMMANDS: [&[&str]; 33] = [
    &[],
    &["init"],
    &["run"],
    &["plan"],
    &["plan", "new"],
    &["plan", "approve"],
    &["plan", "lint"],
    &["plan", "show"],
    &["status"],
    &["log"],
    &["show"],
    &["undo"],
    &["land"],
    &["workspace"],
    &["workspace", "list"],
    &["workspace", "shell"],
    &["workspace", "remove"],
    &["report"],
    &["doctor"],
    &["install"],
    &["uninstall"],
    &["demo"],
    &["config"],
    &["config", "show"],
    &["config", "schema"],
    &["policy"],
    &["policy", "check"],
    &["policy", "list"],
    &["policy", "test"],
    &["hook"],
    &["completions"],
    &["man"],
    &["help"],
];

#[test]
fn every_command_has_help_with_a_sentence_and_an_example() {
    let place = Place::bare();
    for words in COMMANDS {
        for flag in ["-h", "--help"] {
            let seen = place.run(&[words, &[flag]].concat());
            assert_eq!((seen.code, seen.err.as_str()), (0, ""), "{words:?} {flag}");
            assert!(seen.out.lines().next().is_some_and(|line| line.len() > 15), "{words:?}: {}", seen.out);
            assert!(seen.out.contains("Example"), "{words:?}: {}", seen.out);
        }
    }
}

#[test]
fn the_scripted_agent_is_no_command_of_the_user() {
    let place = Place::bare();
    assert!(!place.run(&["--help"]).out.contains("scripted-agent"));
    let seen = place.run(&["scripted-agent"]);
    assert_eq!((seen.code, seen.err.as_str()), (2, "scripted agent: expected one argument, the script\n"));
    let seen = place.run(&["scripted-agent", "missing.toml"]);
    assert_eq!(seen.code, 2);
    assert!(seen.err.starts_with("scripted agent: missing.toml: "), "{}", seen.err);
}

#[test]
fn usage_errors_end_with_two_and_say_what_to_do() {
    let place = Place::repository(&[]);
    for (arguments, message) in [
        (&[][..], "Usage: verdone"),
        (&["rum"][..], "'run'"),
        (&["run", "--max-iteration", "3"][..], "--max-iterations"),
        (&["run", "--max-iterations", "many"][..], "invalid value 'many'"),
        (&["run", "--max-iterations", "-1"][..], "-1"),
        (&["run", "--mode", "dreaming"][..], "[possible values: planning, building]"),
        (&["run", "--color", "sometimes"][..], "[possible values: auto, always, never]"),
        (&["run", "--color", "always", "--no-color"][..], "cannot be used with"),
        (&["run", "PLAN.md", "--prd", "1"][..], "cannot be used with"),
        (&["run", "--json", "--quiet"][..], "cannot be used with"),
        (&["show"][..], "no run was started here yet"),
        (&["plan"][..], "Usage: verdone plan"),
        (&["plan", "new"][..], "<REQUEST>"),
        (&["config"][..], "Usage: verdone config"),
        (&["config", "shwo"][..], "a similar subcommand exists: 'show'"),
        (&["completions", "tcsh"][..], "[possible values: bash"),
        (&["init", "extra"][..], "unexpected argument 'extra'"),
        (&["-C", "/no/such/folder", "config", "show"][..], "error: -C: /no/such/folder is not a folder"),
    ] {
        let seen = place.run(arguments);
        assert_eq!((seen.code, seen.out.as_str()), (2, ""), "{arguments:?}: {}", seen.err);
        assert!(seen.err.contains(message), "{arguments:?}: {}", seen.err);
    }
}

#[test]
fn version_is_one_line() {
    let seen = Place::bare().run(&["--version"]);
    assert_eq!((seen.code, seen.out), (0, format!("verdone {}\n", env!("CARGO_PKG_VERSION"))));
}

#[test]
fn init_writes_what_it_found_and_asks_nothing_without_a_terminal() {
    let place = Place::repository(&[
        ("package.json", r#"{"scripts":{"test":"node --test","lint":"eslint ."}}"#),
        ("PLAN.md", "- [ ] US-001: One\n"),
        ("TODO.md", "- [ ] Two\n"),
    ]);
    let seen = place.run_with(&[("PATH", &path_with(&place, "npm"))], &["init"]);
    assert_eq!((seen.code, seen.err.as_str()), (0, ""));
    assert_eq!(
        seen.out,
        "\
Wrote .verdone/config.toml and .verdone/.gitignore.
Gates
  correctness  test  npm test
  quality      lint  npm run lint
Protected: tests and configuration, by the conventions of JavaScript; `verdone protect` lists the files, [protect] changes that.
Agent: none yet. Set `run` under [agent.command], or install Claude Code.
Plan: PLAN.md
Other files that look like plans: TODO.md
Next: set the agent's command, then `verdone run`.
"
    );
    assert_eq!(place.read(".verdone/.gitignore"), "runs/\nguardrails.md\nproposed-stories.md\n");
    let shown = place.run(&["config", "show"]);
    assert_eq!((shown.code, shown.err.as_str()), (0, ""), "the written config is a good config");
    assert!(shown.out.contains("gate.lint"), "{}", shown.out);
}

#[test]
fn init_never_overwrites_without_force_and_then_keeps_a_copy() {
    let place = Place::repository(&[(".verdone/config.toml", "plan = \"mine.md\"\n"), ("Makefile", "test:\n\ttrue\n")]);
    let seen = place.run(&["init"]);
    assert_eq!((seen.code, seen.out.as_str()), (2, ""));
    assert_eq!(
        seen.err,
        "error: PROJECT/.verdone/config.toml already exists\nhint: verdone init --force rewrites it and keeps a copy\n"
    );
    assert_eq!(place.read(".verdone/config.toml"), "plan = \"mine.md\"\n");

    let seen = place.run_with(&[("PATH", &path_with(&place, "make"))], &["init", "--force", "--json"]);
    assert_eq!((seen.code, seen.err.as_str()), (0, ""));
    let written: Value = serde_json::from_str(&seen.out).unwrap();
    assert_eq!(written["config"], "PROJECT/.verdone/config.toml");
    assert_eq!(written["backup"], "PROJECT/.verdone/config.toml.bak");
    assert_eq!(written["gates"][0]["command"], "make test");
    assert_eq!(written["gates"][0]["stage"], "correctness");
    assert_eq!(place.read(".verdone/config.toml.bak"), "plan = \"mine.md\"\n");
    assert!(place.read(".verdone/config.toml").contains("make test"));
}

#[test]
fn init_proposes_pytest_only_where_it_is_installed() {
    let place = Place::repository(&[("tests/test_api.py", "def test_it(): pass\n"), ("bin/python3", "#!/bin/sh\nexit 1\n")]);
    let git =
        std::env::split_paths(&std::env::var_os("PATH").unwrap()).map(|folder| folder.join("git")).find(|git| git.is_file());
    std::os::unix::fs::symlink(git.unwrap(), place.project.join("bin/git")).unwrap();
    let path = path(&place.project.join("bin"));
    let init = || {
        let made = Command::new("chmod").args(["-R", "+x", &path]).status().unwrap();
        assert!(made.success());
        place.run_with(&[("PATH", &path)], &["init", "--force"]).out
    };
    let out = init();
    assert!(out.contains("No gate was added"), "{out}");
    assert!(out.contains("Note: Found tests/test_api.py. pytest is not installed, so it is not proposed as a gate.\n"), "{out}");
    place.write("tests/test_api.py", "import unittest\n");
    let out = init();
    assert!(out.contains("correctness  test  python3 -m unittest discover -s tests\n"), "{out}");
    place.write("bin/python3", "#!/bin/sh\nexit 0\n");
    let out = init();
    assert!(out.contains("correctness  test  python3 -m pytest\n"), "{out}");
    place.write("bin/pytest", "#!/bin/sh\n");
    let out = init();
    assert!(out.contains("correctness  test  pytest\n"), "{out}");
}

#[test]
fn init_without_checks_says_how_to_go_on() {
    let place = Place::repository(&[]);
    let seen = place.run(&["init"]);
    assert_eq!(seen.code, 0);
    assert!(seen.out.contains("No gate was added: add a [[gate]]"), "{}", seen.out);
    assert!(seen.out.contains("No plan was found"), "{}", seen.out);
}

#[test]
fn outside_of_a_repository_the_hint_is_git_init() {
    let place = Place::bare();
    for arguments in [&["init"][..], &["run", "PLAN.md"][..]] {
        let seen = place.run(arguments);
        assert_eq!((seen.code, seen.out.as_str()), (2, ""));
        assert_eq!(seen.err, "error: PROJECT is not inside a git repository\nhint: git init\n");
    }
    assert!(!place.project.join(".verdone").exists());
}

#[test]
fn init_in_a_subfolder_configures_the_whole_project_unless_told_otherwise() {
    let place =
        Place::repository(&[("web/package.json", r#"{"scripts":{"test":"vitest run"}}"#), ("Makefile", "test:\n\ttrue\n")]);
    let programs = format!("{}:{}", path_with(&place, "make"), path_with(&place, "npm"));
    let seen = place.run_with(&[("PATH", &programs)], &["-C", "web", "init"]);
    assert_eq!(seen.code, 0);
    assert_eq!(seen.err, "note: using the project's root, PROJECT (to configure only this folder: verdone init --here)\n");
    assert!(place.read(".verdone/config.toml").contains("make test") && !place.project.join("web/.verdone").exists());

    let again = place.run(&["-C", "web", "init"]);
    assert_eq!(again.code, 2, "the project has a config: {}", again.err);
    let seen = place.run_with(&[("PATH", &programs)], &["-C", "web", "init", "--here"]);
    assert_eq!((seen.code, seen.err.as_str()), (0, ""));
    assert!(place.read("web/.verdone/config.toml").contains("npm test"));
}

#[test]
fn init_adds_no_gate_whose_program_is_missing_and_says_so() {
    let place = Place::repository(&[("go.mod", "module x\n")]);
    let seen = place.run_with(&[("PATH", &path_without("go"))], &["init"]);
    assert_eq!(seen.code, 0);
    assert!(seen.out.contains("Note: go is not installed, so gate \"test\" (go test ./...) was not added\n"), "{}", seen.out);
    assert!(!place.read(".verdone/config.toml").contains("\n[[gate]]"));
}

#[test]
fn init_with_yes_chooses_the_installed_agent_and_writes_a_starter_plan_that_no_run_takes_for_a_plan() {
    let place = Place::repository(&[("bin/claude", "#!/bin/sh\n")]);
    assert!(Command::new("chmod").args(["+x", &path(&place.project.join("bin/claude"))]).status().unwrap().success());
    let with_client = format!("{}:{}", path(&place.project.join("bin")), std::env::var("PATH").unwrap());
    let seen = place.run_with(&[("PATH", &with_client)], &["init", "--yes"]);
    assert_eq!((seen.code, seen.err.as_str()), (0, ""));
    assert!(
        seen.out.contains("Agent: Claude Code\nPlan: PLAN.md is a starter plan; write your stories there.\n"),
        "{}",
        seen.out
    );
    assert!(seen.out.ends_with("Next: write a story in PLAN.md, then `verdone run`.\n"), "{}", seen.out);
    let config = place.read(".verdone/config.toml");
    assert!(config.contains("name = \"claude\"") && config.lines().count() <= 15, "{config}");
    let run = place.run_with(&[("PATH", &with_client)], &["run"]);
    assert!(run.code != 0 && run.err.contains("PLAN.md"), "{}", run.err);
}

/// PATH with a program of this name that does nothing.
fn path_with(place: &Place, program: &str) -> String {
    let folder = place.home.join("programs");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(program), "#!/bin/sh\n").unwrap();
    assert!(Command::new("chmod").args(["-R", "+x", &path(&folder)]).status().unwrap().success());
    format!("{}:{}", path(&folder), std::env::var("PATH").unwrap())
}

/// The folders of PATH that do not have this program.
fn path_without(program: &str) -> String {
    let all = std::env::var_os("PATH").unwrap();
    let folders = std::env::split_paths(&all).filter(|folder| !folder.join(program).exists());
    std::env::join_paths(folders.collect::<Vec<_>>()).unwrap().into_string().unwrap()
}

#[test]
fn config_show_names_the_origin_of_every_value() {
    let config =
        "plan = \"PLAN.md\"\n[limits]\nturns = 2\n[[gate]]\nname = \"test\"\ncommand = \"make test\"\ntimeout = \"5m\"\n";
    let place = Place::repository(&[(".verdone/config.toml", config), (".ralph/PRD-1/plan.md", "")]);
    let environment = [("MAX_ITERATIONS", "7"), ("TIMEOUT_AGENT", "600"), ("PRD_NUMBER", "1"), ("PLAN_PATH", "other.md")];
    let seen = place.run_with(&environment, &["config", "show"]);
    assert_eq!((seen.code, seen.err.as_str()), (0, ""));
    let line = |key: &str| {
        let line = seen.out.lines().find(|line| line.split_whitespace().next() == Some(key));
        line.unwrap_or_else(|| panic!("no {key} in\n{}", seen.out)).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    for (key, expected) in [
        ("plan", "plan \"PLAN.md\" .verdone/config.toml"),
        ("limits.turns", "limits.turns 2 .verdone/config.toml"),
        ("limits.attempts", "limits.attempts 3 default"),
        ("limits.max_iterations", "limits.max_iterations 7 MAX_ITERATIONS"),
        ("limits.turn_time", "limits.turn_time \"10m\" TIMEOUT_AGENT"),
        ("agent.command.run", "agent.command.run (not set) default"),
        ("gate.test", "gate.test correctness: make test (at most 5m) .verdone/config.toml"),
        ("PRD", "PRD 1 PRD_NUMBER"),
    ] {
        assert_eq!(line(key), expected);
    }

    let json: Value = serde_json::from_str(&place.run_with(&environment, &["config", "show", "--json"]).out).unwrap();
    let setting = |key: &str| json["settings"].as_array().unwrap().iter().find(|setting| setting["key"] == key).unwrap().clone();
    assert_eq!(json["root"], "PROJECT");
    assert_eq!(json["prd"], 1);
    assert_eq!(setting("limits.max_iterations")["origin"], "env");
    assert_eq!(setting("limits.max_iterations")["place"], "MAX_ITERATIONS");
    assert_eq!(setting("gate")["value"][0]["command"], "make test");
    assert_eq!(
        setting("limits.attempts"),
        serde_json::json!({"key": "limits.attempts", "value": 3, "origin": "default", "place": null})
    );
}

#[test]
fn config_show_works_without_a_repository_and_in_subfolders() {
    let seen = Place::bare().run(&["config", "show"]);
    assert_eq!((seen.code, seen.err.as_str()), (0, ""));
    assert!(seen.out.lines().all(|line| line.ends_with("default")), "{}", seen.out);

    let place = Place::repository(&[(".verdone/config.toml", "[limits]\nturns = 9\n"), ("a/b/c.txt", "")]);
    let seen = place.run(&["-C", "a/b", "config", "show"]);
    assert!(seen.out.contains("PROJECT/.verdone/config.toml"), "{}", seen.out);
}

#[test]
fn a_bad_config_is_shown_with_its_line_a_caret_and_a_suggestion() {
    let place = Place::repository(&[(".verdone/config.toml", "[limits]\nturn = 3\n")]);
    for arguments in [&["config", "show"][..], &["run"][..]] {
        let seen = place.run(arguments);
        assert_eq!((seen.code, seen.out.as_str()), (2, ""));
        assert_eq!(
            seen.err,
            "\
error: .verdone/config.toml:2:1: unknown key `turn` in `limits`
   |
 2 | turn = 3
   | ^
hint: did you mean `turns`?
"
        );
    }
}

#[test]
fn bad_flags_and_variables_are_named() {
    let place = Place::repository(&[(".ralph/PRD-1/plan.md", "")]);
    let seen = place.run(&["run", "--agent", "comand"]);
    assert_eq!(seen.code, 2);
    assert_eq!(
        seen.err,
        "error: --agent: `agent.name` cannot be \"comand\", expected one of \"claude\", \"codex\", \"gemini\", \"opencode\", \"copilot\", \"qwen\", \"acp\", \"aider\", \"goose\", \"cursor\", \"command\", \"scripted\"\nhint: did you mean \"command\"?\n"
    );
    let seen = place.run(&["run", "--check", ""]);
    assert_eq!((seen.code, seen.err.as_str()), (2, "error: --check: the command of gate \"\" is empty\n"));
    let seen = place.run_with(&[("MAX_ITERATIONS", "ten")], &["config", "show"]);
    assert_eq!(seen.code, 2);
    assert!(seen.err.starts_with("error: MAX_ITERATIONS: \"ten\" is not a whole number"), "{}", seen.err);
}

#[test]
fn hostile_text_in_a_config_does_not_reach_the_terminal() {
    let place = Place::repository(&[(".verdone/config.toml", "\"\\u001b[2J\u{202e}x\" = 1\n")]);
    let seen = place.run(&["config", "show"]);
    assert_eq!(seen.code, 2);
    assert!(!seen.err.contains(['\x1b', '\u{202e}']), "{:?}", seen.err);
}

#[test]
fn colour_comes_only_when_it_is_asked_for() {
    let place = Place::repository(&[]);
    assert!(!place.run(&["config", "show"]).out.contains('\x1b'));
    assert!(place.run(&["config", "show", "--color", "always"]).out.contains("\x1b[1mplan\x1b[0m"));
    assert!(!place.run(&["config", "show", "--no-color"]).out.contains('\x1b'));
}

#[test]
fn the_schema_is_json_that_knows_every_table() {
    let seen = Place::bare().run(&["config", "schema"]);
    assert_eq!((seen.code, seen.err.as_str()), (0, ""));
    let schema: Value = serde_json::from_str(&seen.out).unwrap();
    for key in ["plan", "agent", "limits", "commit", "prompt", "gate"] {
        assert!(schema["properties"].get(key).is_some(), "{key}");
    }
}

#[test]
fn completions_are_made_for_every_shell() {
    let place = Place::bare();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let seen = place.run(&["completions", shell]);
        assert_eq!((seen.code, seen.err.as_str()), (0, ""), "{shell}");
        assert!(seen.out.contains("max-iterations"), "{shell}");
    }
}

#[test]
fn man_pages_are_printed_or_written_for_every_command() {
    let place = Place::bare();
    let seen = place.run(&["man"]);
    assert_eq!((seen.code, seen.err.as_str()), (0, ""));
    assert!(seen.out.contains(".TH verdone 1"), "{}", seen.out);
    let seen = place.run(&["man", "--dir", "man/man1"]);
    assert_eq!((seen.code, seen.out.as_str(), seen.err.as_str()), (0, "", ""));
    for page in ["verdone.1", "verdone-run.1", "verdone-plan-new.1", "verdone-config-show.1"] {
        assert!(place.project.join("man/man1").join(page).is_file(), "{page}");
    }
    place.write("file", "");
    let seen = place.run(&["man", "--dir", "file/man1"]);
    assert_eq!(seen.code, 1);
    assert!(seen.err.starts_with("error: cannot write man pages into"), "{}", seen.err);
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let place = Place::bare();
    let mut command = place.command(&["completions", "bash"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()));
}
