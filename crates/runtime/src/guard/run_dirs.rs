//! The project of a hook with its settings and guardrails. It is found through the
//! client's variable, never through the agent's current directory.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use verdone_core::agent::client_variables::PROJECT_VARIABLE;
use verdone_core::base::id::encode_component;
use verdone_core::check::lessons::{Topics, choose, prompt_text, user_text};
use verdone_core::config::{Config, ConfigProblem, config_of_one_file, for_hook, rule_lines};
use verdone_core::hook::{Briefing, StartSource, TestRuns};
use verdone_core::policy::{Mode, PolicyConfig, ReadOnlyReason, Rule, rules};

use super::LOOKING;
use super::attempt::{TurnOf, failing};
use crate::launcher::Inside;
use crate::process::RUN_VARIABLE;
use crate::project::config_file::{SettingsError, read_text};
use crate::project::lessons::{LessonStore, guardrails_text};
use crate::project::{HOME, Project};
use crate::store::Store;
use crate::store::sessions::sessions_in_workspace;

use super::story::StoryFile;

/// The folder for session files, in `.verdone/` and in each run's folder.
pub const SESSIONS: &str = "sessions";
/// Longer text is not a list of lessons, and the client would not show it.
const LONGEST_GUARDRAILS: usize = 64 * 1024;

/// The project that a hook belongs to.
#[derive(Debug, Clone)]
pub struct HookProject {
    /// The folder that contains `.verdone/`.
    pub root: PathBuf,
    /// The top of the work tree, or the root if there is no repository.
    pub top: PathBuf,
    /// Where sessions keep their files; in a run, in the run's folder.
    sessions: PathBuf,
    /// The run, if this is the run's own process. Hook processes get it from a variable.
    run: Option<OsString>,
    /// The turn of the run that the hook belongs to, if it matters.
    pub(crate) turn: Option<TurnOf>,
    /// The workspace of the run's agent, if any. User commands run there.
    pub(crate) inside: Option<Inside>,
    /// Where the workspace's files are, seen from outside.
    pub(crate) tree: Option<PathBuf>,
    /// The temporary folder of the workspace, as the agent sees it.
    pub(crate) temp: Option<PathBuf>,
}

/// Settings from the file alone: variables and flags cannot change policy.
#[derive(Debug, Default)]
pub(crate) struct FileSettings {
    pub(crate) config: Config,
    /// The file name used in denials and records.
    pub(crate) name: String,
    pub(crate) rule_lines: Vec<usize>,
}

impl FileSettings {
    pub(crate) fn rules(&self) -> Vec<Rule> {
        rules(&self.config.policy, &self.name, |n| self.rule_lines.get(n).copied().unwrap_or_default()).0
    }
}

impl HookProject {
    /// `None` if the project does not use Verdone. A run always counts as one that does.
    pub(crate) fn find(mode: Mode, armed_root: impl Fn(&Project) -> Option<PathBuf>) -> Option<Self> {
        let named = std::env::var_os(PROJECT_VARIABLE).filter(|dir| !dir.is_empty()).map(PathBuf::from);
        let start = named.or_else(|| std::env::current_dir().ok())?;
        let project = Project::around(&start).ok()?;
        match mode {
            // A session held by a loop stays held, even if somebody deleted our folder.
            Mode::Interactive => match armed_root(&project) {
                Some(root) => Some(Self::at(root, project.git_top)),
                None => project.root.join(HOME).is_dir().then(|| Self::at(project.root, project.git_top)),
            },
            Mode::Run => {
                let run = run_dir(&project.root);
                let home = Self::at(project.root, project.git_top);
                Some(match run {
                    Some(run) => Self { sessions: sessions_in_workspace(&run), ..home },
                    None => home,
                })
            }
        }
    }

    /// For the run's own process.
    pub(crate) fn of_run(root: &Path, top: &Path, run_dir: &Path) -> Self {
        let (sessions, run) = (run_dir.join(SESSIONS), run_dir.file_name().map(OsString::from));
        Self { root: root.to_owned(), top: top.to_owned(), sessions, run, turn: None, inside: None, tree: None, temp: None }
    }

    fn at(root: PathBuf, top: PathBuf) -> Self {
        let sessions = root.join(HOME).join(SESSIONS);
        Self { root, top, sessions, run: None, turn: None, inside: None, tree: None, temp: None }
    }

    /// Translates a path named by an agent to where this process finds it.
    pub(crate) fn outside(&self, path: &Path) -> PathBuf {
        let below = |tree: &PathBuf| Some(tree.join(path.strip_prefix(&self.top).ok()?));
        self.tree.as_ref().and_then(below).unwrap_or_else(|| path.to_owned())
    }

    pub(crate) fn in_turn(&self, turn: Option<TurnOf>) -> Self {
        Self { turn, ..self.clone() }
    }

    /// The run that this hook belongs to.
    pub(crate) fn run(&self) -> Option<OsString> {
        self.run.clone().or_else(|| std::env::var_os(RUN_VARIABLE))
    }

    pub(crate) fn sessions(&self) -> &Path {
        &self.sessions
    }

    pub(crate) fn settings(&self) -> Result<FileSettings, SettingsError> {
        self.settings_by(for_hook)
    }

    fn settings_by(&self, read: fn(&str, &str) -> Result<Config, ConfigProblem>) -> Result<FileSettings, SettingsError> {
        let name = format!("{HOME}/config.toml");
        let text = read_text(&self.root.join(&name), &name)?.unwrap_or_default();
        let config = read(&name, &text)?;
        let rule_lines = if config.policy.rule.is_empty() { Vec::new() } else { rule_lines(&text) };
        Ok(FileSettings { config, name, rule_lines })
    }

    /// The agent's test runs so far. `None` if there is no driver that could end the turn.
    pub(crate) fn test_runs(&self, policy: &PolicyConfig) -> Option<TestRuns> {
        let turn = self.turn?;
        Some(TestRuns { failing: failing(&self.sessions, turn.iteration), patience: policy.tests.patience() })
    }

    /// The context that an agent gets at the start.
    pub(crate) fn briefing(&self, mode: Mode, config: &Config, story: &StoryFile, source: StartSource) -> Option<String> {
        let guardrails = self.guardrails(mode, config);
        let lessons = Some(guardrails).filter(|text| !text.trim().is_empty());
        let lessons = lessons.map(|text| format!("Lessons of this project (.verdone/guardrails.md):\n{text}"));
        // A judge must not see these: lessons and stories may have been written by the agent being judged.
        let judges = std::env::var_os(LOOKING)
            .is_some_and(|name| ReadOnlyReason::from_name(&name.to_string_lossy()) == ReadOnlyReason::Judging);
        match mode {
            Mode::Interactive => lessons,
            Mode::Run if judges => None,
            Mode::Run => {
                let rules = "Verdone checks every tool call in this session against its rules; a denial says what to do instead. Read a file \
                             before you change it. Do not push, merge, switch branches or mark stories as done: Verdone runs the \
                             checks after each turn, and commits what passes.";
                // The prompt has the story in full; only a summary of the conversation may have lost it.
                let story = story.get().filter(|_| source == StartSource::Compact).map(Briefing::text);
                Some([Some(rules.to_owned()), story, lessons].into_iter().flatten().collect::<Vec<_>>().join("\n\n"))
            }
        }
    }
}

impl HookProject {
    /// The user's guardrails and the lessons for a session. In a run, each prompt has the lessons of its story.
    pub(crate) fn guardrails(&self, mode: Mode, config: &Config) -> String {
        let text = match mode {
            Mode::Run => user_text(&guardrails_text(&self.root).unwrap_or_default()),
            Mode::Interactive => {
                let memory = LessonStore::new(&self.root, &self.top).read();
                let topics = Topics {
                    own_checks: Vec::new(),
                    gates: config.gate.iter().map(|gate| gate.name.as_str()).collect(),
                    has_file: Box::new(|_| false),
                    is_session: true,
                };
                prompt_text(&memory.text, &choose(&memory.text, &memory.history, &topics))
            }
        };
        text[..text.floor_char_boundary(LONGEST_GUARDRAILS)].to_owned()
    }
}

/// The effective policy, for `verdone policy`.
#[derive(Debug)]
pub struct PolicyInForce {
    pub home: HookProject,
    pub config: Config,
    pub rules: Vec<Rule>,
}

/// The policy of a project, as its hooks see it.
pub fn policy_of(root: &Path, top: &Path) -> Result<PolicyInForce, SettingsError> {
    let home = HookProject::at(root.to_owned(), top.to_owned());
    let settings = home.settings_by(config_of_one_file)?;
    let rules = settings.rules();
    Ok(PolicyInForce { home, config: settings.config, rules })
}

/// The folder of the run that the hook belongs to. The agent can change the variable, so the folder must exist.
fn run_dir(root: &Path) -> Option<PathBuf> {
    let run = std::env::var(RUN_VARIABLE).ok().filter(|run| !run.is_empty())?;
    let dir = Store::new(root).path().join(encode_component(&run));
    fs::symlink_metadata(&dir).is_ok_and(|meta| meta.is_dir()).then_some(dir)
}
