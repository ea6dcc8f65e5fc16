//! A project in which hooks are called.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::hooks::valid;

pub(crate) struct World {
    _temp: tempfile::TempDir,
    pub(crate) root: PathBuf,
    pub(crate) work: PathBuf,
    pub(crate) variables: Vec<(String, String)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Run,
    Session,
}

pub(crate) const RUN: &str = "20261115-020338-5f3a";

pub(crate) const MODES: [Mode; 2] = [Mode::Run, Mode::Session];

impl World {
    pub(crate) fn new() -> Self {
        let world = Self::without_verdone();
        fs::create_dir(world.work.join(".verdone")).unwrap();
        world.install_stop_hook();
        world
    }

    /// The settings that `verdone install --user` writes, as far as a loop asks for them.
    fn install_stop_hook(&self) {
        let hook = json!({ "type": "command", "command": env!("CARGO_BIN_EXE_verdone"), "args": ["hook"] });
        let settings = json!({ "hooks": { "Stop": [{ "hooks": [hook] }] } });
        fs::create_dir(self.root.join(".claude")).unwrap();
        fs::write(self.root.join(".claude/settings.json"), settings.to_string()).unwrap();
    }

    pub(crate) fn without_verdone() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(temp.path()).unwrap();
        let work = root.join("project");
        fs::create_dir_all(work.join(".git")).unwrap();
        fs::write(work.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
        fs::write(work.join("a.txt"), "hello\nworld\n").unwrap();
        Self { _temp: temp, root, work, variables: Vec::new() }
    }

    /// In a run that has given its hooks this story, with a real repository.
    pub(crate) fn in_run(story: &Value) -> Self {
        let mut world = Self::with_repository(&[]);
        world.set("VERDONE_RUN", RUN);
        world.write(&format!(".verdone/runs/{RUN}/turns/story.json"), &story.to_string());
        world.write(".verdone/.gitignore", "*\n");
        world
    }

    /// A repository with one commit that also has these files.
    pub(crate) fn with_repository(files: &[(&str, &str)]) -> Self {
        let mut world = Self::new();
        fs::remove_dir_all(world.work.join(".git")).unwrap();
        world.set("PATH", &std::env::var("PATH").unwrap());
        world.git(&["init", "--quiet", "--initial-branch=main"]);
        world.write("src/a.rs", "fn a() {}\n");
        world.write("README.md", "Read me.\n");
        for (name, text) in files {
            world.write(name, text);
        }
        world.git(&["add", "."]);
        let name = ["-c", "user.name=dev", "-c", "user.email=dev@example.org"];
        world.git(&[&name[..], &["commit", "--quiet", "-m", "initial"]].concat());
        world
    }

    #[track_caller]
    pub(crate) fn git(&self, arguments: &[&str]) {
        let mut git = Command::new("git");
        git.args(arguments).current_dir(&self.work).env("HOME", &self.root).env("GIT_CONFIG_NOSYSTEM", "1");
        assert!(git.stdin(Stdio::null()).status().unwrap().success(), "{arguments:?}");
    }

    #[track_caller]
    pub(crate) fn said_by_git(&self, arguments: &[&str]) -> String {
        let output = Command::new("git").args(arguments).current_dir(&self.work).env("HOME", &self.root).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// The records of the session, wherever its files are.
    pub(crate) fn records(&self, kind: &str) -> Vec<Value> {
        let places = [".verdone/sessions/s1/events.jsonl".to_owned(), format!(".verdone/runs/{RUN}/sessions/s1/events.jsonl")];
        let lines = places.iter().flat_map(|place| self.lines(place));
        lines.filter(|line| line["record"] == kind).collect()
    }

    /// The end of a command, as the client reports it.
    pub(crate) fn ran(&self, command: &str) -> Value {
        let mut event = self.event("PostToolUse", "Bash", &json!({ "command": command }));
        event["tool_response"] = json!({ "stdout": "", "stderr": "", "interrupted": false });
        event
    }

    pub(crate) fn begin(&self, mode: Mode) -> Option<Value> {
        self.ask(mode, &json!({ "session_id": "s1", "cwd": self.work, "hook_event_name": "SessionStart", "source": "startup" }))
    }

    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.variables.push((name.to_owned(), value.to_owned()));
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> String {
        let path = self.work.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        self.path(name)
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.work.join(name).display().to_string()
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.work.join(name)).unwrap_or_default()
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_verdone"));
        command.args(arguments).env_clear().current_dir(&self.root);
        command.env("HOME", &self.root).env("CLAUDE_PROJECT_DIR", &self.work);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub(crate) fn start(&self, mode: Mode, event: &str) -> Child {
        let arguments: &[&str] = match mode {
            Mode::Run => &["hook", "--run", event],
            Mode::Session => &["hook", event],
        };
        self.command(arguments).spawn().unwrap()
    }

    /// The hook's answer to these bytes. Panics if the client would not follow it.
    #[track_caller]
    pub(crate) fn send(&self, mode: Mode, event: &str, bytes: &[u8]) -> Option<Value> {
        let mut child = self.start(mode, event);
        // A hook that has seen enough does not read the rest.
        let _ = child.stdin.take().unwrap().write_all(bytes);
        finish(child, event)
    }

    #[track_caller]
    pub(crate) fn ask(&self, mode: Mode, input: &Value) -> Option<Value> {
        self.send(mode, input["hook_event_name"].as_str().unwrap(), input.to_string().as_bytes())
    }

    /// An event with a tool call.
    pub(crate) fn event(&self, event: &str, tool: &str, input: &Value) -> Value {
        json!({
            "session_id": "s1", "cwd": self.work, "hook_event_name": event, "tool_name": tool, "tool_input": input,
        })
    }

    /// The verdict on a call.
    #[track_caller]
    pub(crate) fn judge(&self, mode: Mode, tool: &str, input: &Value) -> Verdict {
        let asked = self.ask(mode, &self.event("PreToolUse", tool, input));
        let Some(answer) = asked else { return Verdict::Silent };
        let answer = &answer["hookSpecificOutput"];
        match answer["permissionDecision"].as_str() {
            Some("allow") => Verdict::Allow,
            _ => Verdict::Deny(answer["permissionDecisionReason"].as_str().unwrap().to_owned()),
        }
    }

    pub(crate) fn lines(&self, name: &str) -> Vec<Value> {
        self.read(name).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    Silent,
    Allow,
    Deny(String),
}

impl Verdict {
    #[track_caller]
    pub(crate) fn denied_by(&self, rule: &str) {
        match self {
            Self::Deny(reason) => assert!(reason.contains(&format!("`{rule}`")), "{reason}"),
            Self::Silent | Self::Allow => panic!("not denied: {self:?}"),
        }
    }
}

#[track_caller]
pub(crate) fn finish(child: Child, event: &str) -> Option<Value> {
    let output = child.wait_with_output().unwrap();
    let (out, err) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8_lossy(&output.stderr).into_owned());
    assert_eq!((output.status.code(), err.as_str()), (Some(0), ""), "{event}: {out}");
    valid::answer(event, &out).unwrap_or_else(|why| panic!("{event}: the client ignores this ({why}): {out}"))
}
