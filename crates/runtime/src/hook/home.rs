//! The project of a hook: found by the client's variable, never by where the agent stands; its settings and its guardrails.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use verdone_core::config::{Config, ConfigProblem, alone, for_hook, rule_lines};
use verdone_core::policy::{Mode, Rule, rules};

use crate::config_file::{SettingsError, read_text};
use crate::project::{HOME, Project};

/// The client's name for the project.
const PROJECT: &str = "CLAUDE_PROJECT_DIR";
/// More is no list of lessons, and the client would not show it.
const LONGEST_GUARDRAILS: u64 = 64 * 1024;

/// Where a hook finds its project.
#[derive(Debug, Clone)]
pub struct Home {
    /// The folder of `.verdone/`.
    pub root: PathBuf,
    /// The top of the work tree; the root where there is no repository.
    pub top: PathBuf,
}

/// The settings of the file alone: variables and flags say nothing about policy.
#[derive(Debug)]
pub(super) struct FileSettings {
    pub(super) config: Config,
    /// The file as denials and records name it.
    pub(super) name: String,
    pub(super) rule_lines: Vec<usize>,
}

impl Home {
    /// Nothing where the project is not Verdone's. A run is, wherever it works.
    pub(super) fn find(mode: Mode) -> Option<Self> {
        let named = std::env::var_os(PROJECT).filter(|dir| !dir.is_empty()).map(PathBuf::from);
        let start = named.or_else(|| std::env::current_dir().ok())?;
        let project = Project::around(&start).ok()?;
        let ours = project.root.join(HOME).is_dir();
        match mode {
            Mode::Interactive if !ours => None,
            Mode::Interactive | Mode::Run => Some(Self { root: project.root, top: project.git_top }),
        }
    }

    pub(super) fn sessions(&self) -> PathBuf {
        self.root.join(HOME).join("sessions")
    }

    pub(super) fn settings(&self) -> Result<FileSettings, SettingsError> {
        self.settings_by(for_hook)
    }

    fn settings_by(&self, read: fn(&str, &str) -> Result<Config, ConfigProblem>) -> Result<FileSettings, SettingsError> {
        let name = format!("{HOME}/config.toml");
        let text = read_text(&self.root.join(&name), &name)?.unwrap_or_default();
        let config = read(&name, &text)?;
        let rule_lines = if config.policy.rule.is_empty() { Vec::new() } else { rule_lines(&text) };
        Ok(FileSettings { config, name, rule_lines })
    }

    /// What an agent should know from the start.
    pub(super) fn briefing(&self, mode: Mode) -> Option<String> {
        let guardrails = read_start(&self.root.join(HOME).join("guardrails.md"));
        let guardrails = guardrails.filter(|text| !text.trim().is_empty());
        let lessons = guardrails.map(|text| format!("Lessons of this project (.verdone/guardrails.md):\n{text}"));
        match mode {
            Mode::Interactive => lessons,
            Mode::Run => {
                let rules = "Verdone judges every tool call of this session by rules; a denial says what to do instead. Read a file \
                             before you change it. Do not push, merge, switch branches or mark stories as done: Verdone runs the \
                             checks after each turn, and commits what passes.";
                Some([Some(rules.to_owned()), lessons].into_iter().flatten().collect::<Vec<_>>().join("\n\n"))
            }
        }
    }
}

/// The policy that `verdone policy` shows.
#[derive(Debug)]
pub struct PolicyInForce {
    pub home: Home,
    pub config: Config,
    pub rules: Vec<Rule>,
}

/// The policy of a project, as its hooks see it.
pub fn policy_of(root: &Path, top: &Path) -> Result<PolicyInForce, SettingsError> {
    let home = Home { root: root.to_owned(), top: top.to_owned() };
    let settings = home.settings_by(alone)?;
    let line = |n: usize| settings.rule_lines.get(n).copied().unwrap_or_default();
    let (rules, _) = rules(&settings.config.policy, &settings.name, line);
    Ok(PolicyInForce { home, config: settings.config, rules })
}

fn read_start(path: &Path) -> Option<String> {
    // A pipe would make us wait for somebody to write into it.
    if !path.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    fs::File::open(path).ok()?.take(LONGEST_GUARDRAILS).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
