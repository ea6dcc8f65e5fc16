//! A project, a scripted model and the real client; ways to run the client alone or under Verdone, and to examine the result.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde_json::Value;
pub(crate) use verdone_testkit::PATIENCE;
use verdone_testkit::model_server::{ModelServer, Script};
use verdone_testkit::{Claude, ClaudeSession, Output, Running, Sandbox};

pub(crate) use crate::run_loop::world::ONE;

const SETTINGS: &str = ".verdone/config.toml";

/// The program under test: the release binary that `scripts/test` built and names, or else the one that cargo built for the tests. If
/// nothing may be skipped, it must be the build that users get.
pub(crate) fn verdone() -> &'static str {
    static FOUND: OnceLock<String> = OnceLock::new();
    FOUND.get_or_init(|| match std::env::var("VERDONE_RELEASE") {
        Ok(path) if !path.is_empty() => {
            assert!(
                Path::new(&path).is_absolute() && Path::new(&path).is_file(),
                "VERDONE_RELEASE names {path}, which is no program"
            );
            path
        }
        Ok(_) | Err(_) => {
            let may = std::env::var_os("VERDONE_NO_SKIP").is_none();
            assert!(may, "VERDONE_RELEASE is not set: `./scripts/test release test` builds the release binary and names it");
            env!("CARGO_BIN_EXE_verdone").to_owned()
        }
    })
}

/// Every event that a one-shot session of these tests can fire.
pub(crate) const EVENTS: &[&str] = &[
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PermissionRequest",
    "PostToolUse",
    "PostToolUseFailure",
    "PostToolBatch",
    "SubagentStart",
    "SubagentStop",
    "PreCompact",
    "PostCompact",
    "Stop",
    "StopFailure",
    "SessionEnd",
];

/// Fields drop in order: first the processes, then the model, then the place in the queue for the client.
pub(crate) struct World {
    pub(crate) sandbox: Sandbox,
    pub(crate) model: ModelServer,
    _claude: Claude,
}

impl World {
    /// A repository with `.verdone/` and no plan. `None` if the client is missing, which has already been reported.
    pub(crate) fn new(script: Script) -> Option<Self> {
        Self::with(&[(".verdone/config.toml", "")], script)
    }

    /// A repository with one commit that has these files: settings, a plan, sources.
    pub(crate) fn with(files: &[(&str, &str)], script: Script) -> Option<Self> {
        let claude = Claude::or_skip()?;
        let model = ModelServer::start(script);
        let mut sandbox = Sandbox::new();
        claude.configure(&mut sandbox, &model);
        for (path, text) in files {
            sandbox.write(path, if *path == SETTINGS { settings(text, &sandbox) } else { (*text).to_owned() });
        }
        sandbox.repo();
        Some(Self { sandbox, model, _claude: claude })
    }

    /// A path in a folder next to the project that agents and checks may write to; tests use it to communicate with them.
    pub(crate) fn shared(&self, name: &str) -> PathBuf {
        self.sandbox.root().join("tmp").join(name)
    }

    /// Our hooks as a run passes them to the client, for `--settings`.
    pub(crate) fn hooks() -> String {
        Self::hooks_of(EVENTS, Path::new(verdone()))
    }

    /// The same for selected events and any program.
    pub(crate) fn hooks_of(events: &[&str], program: &Path) -> String {
        Claude::hook_settings(events, program, &["hook", "--run"]).to_string()
    }

    /// One prompt to the client alone, in its normal permission mode.
    pub(crate) fn prompt(&self, settings: &str, prompt: &str) -> Told {
        let session = ["--output-format", "stream-json", "--verbose", "--include-hook-events"];
        let mode = ["--permission-mode", "default", "--settings", settings, "-p", prompt];
        Told { output: self.sandbox.run("claude", session.iter().chain(&mode)) }
    }

    /// The client alone as a long-lived process, with our hooks.
    pub(crate) fn session(&self) -> ClaudeSession {
        let hooks = Self::hooks();
        ClaudeSession::start(&self.sandbox, &["--permission-mode", "default", "--include-hook-events", "--settings", &hooks])
    }

    pub(crate) fn verdone(&self, arguments: &[&str]) -> Output {
        self.sandbox.verdone(verdone(), arguments)
    }

    pub(crate) fn start(&self, arguments: &[&str]) -> Running {
        self.sandbox.spawn(verdone(), arguments)
    }

    /// Subjects of all commits, newest first.
    pub(crate) fn subjects(&self) -> Vec<String> {
        self.sandbox.git(["log", "--format=%s"]).lines().map(str::to_owned).collect()
    }

    /// The journal of the latest run, from `verdone log`.
    #[track_caller]
    pub(crate) fn journal(&self) -> Vec<Value> {
        let output = self.verdone(&["log", "--json"]);
        output.assert_code(0);
        output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    pub(crate) fn has(&self, path: &str) -> bool {
        self.sandbox.path(path).exists()
    }

    /// A path in the workspace that the agent of a run is using now, if the file exists.
    pub(crate) fn in_workspace(&self, path: &str) -> Option<PathBuf> {
        let entries = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
        let workspaces = entries(&self.sandbox.home().join(".local/state/verdone/workspaces"));
        let trees = workspaces.flat_map(|workspace| entries(&workspace).map(|folder| folder.join("tree")).collect::<Vec<_>>());
        trees.filter(|tree| tree.parent().is_some_and(is_the_agents)).map(|tree| tree.join(path)).find(|path| path.exists())
    }

    /// The records of all sessions' hooks, in order within each session.
    pub(crate) fn hook_records(&self) -> Vec<Value> {
        let folders = fs::read_dir(self.sandbox.path(".verdone/sessions")).into_iter().flatten().flatten();
        let files: Vec<PathBuf> = folders.map(|entry| entry.path().join("events.jsonl")).filter(|path| path.exists()).collect();
        let texts = files.iter().map(|path| fs::read_to_string(path).unwrap());
        texts.flat_map(|text| text.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<_>>()).collect()
    }

    /// Panics unless every question of an agent had a rule in the script.
    #[track_caller]
    pub(crate) fn assert_scripted(&self) {
        assert!(self.model.unscripted().is_empty(), "the script has no answer to some of this:\n{}", self.model.overview());
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_eq!(self.model.wanted_elsewhere(), [""; 0], "somebody wanted to leave this machine");
        }
    }
}

fn is_the_agents(folder: &Path) -> bool {
    folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with("agent-"))
}

/// Settings with which stories land when they are done, and with the shared folder.
pub(crate) fn settings(text: &str, sandbox: &Sandbox) -> String {
    format!(
        "{text}\n[protect]\nwork = [\"*\"]\n[run]\nland = \"auto\"\n[workspace]\nwritable = [\"{}\"]\n",
        sandbox.root().join("tmp").display()
    )
}

/// The client's output, parsed as a stream of events.
pub(crate) struct Told {
    pub(crate) output: Output,
}

impl Told {
    pub(crate) fn events(&self) -> Vec<Value> {
        self.output.stdout.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    pub(crate) fn events_of(&self, kind: &str, subtype: &str) -> Vec<Value> {
        self.events().into_iter().filter(|event| event["type"] == kind && event["subtype"] == subtype).collect()
    }

    /// The last result.
    #[track_caller]
    pub(crate) fn result(&self) -> Value {
        let found = self.events().into_iter().rfind(|event| event["type"] == "result");
        found.unwrap_or_else(|| panic!("no result\n{}", self.output.transcript()))
    }

    /// Panics if the client reports, in any of its ways, that it could not use a hook's answer.
    #[track_caller]
    pub(crate) fn assert_hooks_were_understood(&self) {
        for event in self.events_of("system", "hook_response") {
            assert_eq!((&event["outcome"], &event["exit_code"]), (&"success".into(), &0.into()), "{event}");
        }
        for event in self.events_of("system", "informational") {
            assert!(event["hook_no_verdict"].is_null() && !event["content"].to_string().contains("hook"), "{event}");
        }
    }
}
