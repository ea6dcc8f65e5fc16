//! Where a run happens: the repository, the plan, the settings and everything else that its steps share.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use verdone_core::check::{Check, CheckOrigin, CommandSpec};
use verdone_core::config::Config;
use verdone_core::id::{Oid, RunId, StoryId};
use verdone_core::plan::Story;
use verdone_core::redact::Redactor;

use crate::check_runner::{CheckContext, Counter};
use crate::git::{Candidate, Git};
use crate::plan_file::PlanFile;
use crate::protected::Protected;
use crate::signal::Signals;

/// Everything a step may touch.
#[derive(Debug)]
pub struct Site {
    pub git: Git,
    /// Where `.verdone/` is and checks run.
    pub root: PathBuf,
    pub run: RunId,
    pub run_dir: PathBuf,
    pub plan: PlanFile,
    pub config: Config,
    pub gates: Vec<Check>,
    /// The stories' own checks as they were when the run began: later edits are not run.
    pub frozen: HashMap<StoryId, Vec<Check>>,
    /// Work on this story alone.
    pub only: Option<StoryId>,
    pub signals: Signals,
    pub redactor: Redactor,
    pub protected: Protected,
    /// The template of the prompt and where it came from.
    pub template: (String, String),
    /// The tree that was verified and is to be committed.
    pub candidate: Option<Candidate>,
    /// The tree right before the first turn, where the red check may have changed something.
    pub before_turn: Option<Oid>,
    pub counter: Counter,
}

impl Site {
    /// The plan as people know it: relative to the project where it lies below it.
    pub fn plan_name(&self) -> String {
        shown(self.plan.path(), &self.root)
    }

    pub fn own_checks(&self, story: &StoryId) -> &[Check] {
        self.frozen.get(story).map_or(&[], Vec::as_slice)
    }

    /// What one check needs around it.
    pub fn check_context(&self) -> CheckContext<'_> {
        CheckContext {
            cwd: &self.root,
            run_dir: &self.run_dir,
            run: &self.run,
            cap: self.config.limits.output_bytes,
            grace: self.config.limits.grace.duration(),
            redactor: &self.redactor,
            counter: &self.counter,
        }
    }
}

/// The checks of a story, ready to run.
pub fn own_checks(story: &Story, commands: Vec<CommandSpec>, config: &Config) -> Vec<Check> {
    let _ = story;
    commands
        .into_iter()
        .map(|command| Check {
            name: command.display(),
            origin: CheckOrigin::Story,
            command,
            timeout: config.limits.check_time,
        })
        .collect()
}

/// The gates of the config and of `--check`, ready to run, in the order of their stages.
pub fn gates(config: &Config) -> Vec<Check> {
    let mut gates: Vec<Check> = config
        .gate
        .iter()
        .map(|gate| Check {
            name: gate.name.clone(),
            origin: CheckOrigin::Gate(gate.stage),
            command: gate.command.clone(),
            timeout: gate.timeout.unwrap_or(config.limits.check_time),
        })
        .collect();
    gates.sort_by_key(|gate| match gate.origin {
        CheckOrigin::Story => None,
        CheckOrigin::Gate(stage) => Some(stage),
    });
    gates
}

/// A path for people.
pub fn shown(path: &Path, root: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).display().to_string()
}
