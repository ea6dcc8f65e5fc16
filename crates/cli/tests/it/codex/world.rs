//! A project, a scripted model and the real Codex.

use serde_json::Value;
pub(crate) use verdone_testkit::PATIENCE;
use verdone_testkit::model_server::{ModelServer, Script};
use verdone_testkit::{Codex, Output, Running, Sandbox};

use crate::claude::world::{settings, verdone};

/// The settings of these runs.
pub(crate) const AGENT: &str = "[agent]\nname = \"codex\"\n";

/// Fields drop in order: first the processes, then the model, then the place in the queue for the client.
pub(crate) struct World {
    pub(crate) sandbox: Sandbox,
    pub(crate) model: ModelServer,
    _codex: Codex,
}

impl World {
    /// A repository with one commit that has these files. `None` if the client is missing, which has already been reported.
    pub(crate) fn with(config: &str, files: &[(&str, &str)], script: Script) -> Option<Self> {
        let codex = Codex::or_skip()?;
        let model = ModelServer::start(script);
        let mut sandbox = Sandbox::new();
        codex.configure(&mut sandbox, &model);
        sandbox.write(".verdone/config.toml", settings(config, &sandbox));
        for (path, text) in files {
            sandbox.write(path, *text);
        }
        sandbox.repo();
        Some(Self { sandbox, model, _codex: codex })
    }

    pub(crate) fn verdone(&self, arguments: &[&str]) -> Output {
        self.sandbox.verdone(verdone(), arguments)
    }

    pub(crate) fn start(&self, arguments: &[&str]) -> Running {
        self.sandbox.spawn(verdone(), arguments)
    }

    /// The events of this name in the journal of the latest run.
    #[track_caller]
    pub(crate) fn events(&self, name: &str) -> Vec<Value> {
        let output = self.verdone(&["log", "--json"]);
        output.assert_code(0);
        let all = output.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        all.filter(|event| event["event"] == name).collect()
    }

    /// Panics unless every question of an agent had a rule in the script.
    #[track_caller]
    pub(crate) fn assert_scripted(&self) {
        assert!(self.model.unscripted().is_empty(), "the script has no answer to some of this:\n{}", self.model.overview());
    }
}
