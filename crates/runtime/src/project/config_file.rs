//! Reads the layers of settings: defaults < variables of a `.ralph/` home < a fresher
//! project < `.verdone/config.toml` < variables of lifecycle scripts < flags.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use verdone_core::base::span::Span;
use verdone_core::config::{ConfigProblem, Fresher, Layer, Origin, Resolved, fresher, resolve, script_variables};

use crate::project::{FRESHER, Project};

/// More than any config needs. A larger file was probably named by mistake.
const LARGEST: u64 = 1024 * 1024;

/// The environment as a map, so that it can be passed as an argument.
pub type Environment = BTreeMap<String, String>;

/// Settings given on the command line.
#[derive(Debug, Clone, Default)]
pub struct Flags {
    pub plan: Option<String>,
    pub prd: Option<u32>,
    pub max_iterations: Option<u32>,
    pub max_cost: Option<f64>,
    pub no_wait: bool,
    pub no_inhibit: bool,
    pub agent: Option<String>,
    pub agent_command: Option<String>,
    pub checks: Vec<String>,
}

/// The effective settings, and those of a `.ralph/` home that have no config key.
#[derive(Debug, Clone)]
pub struct Settings {
    pub resolved: Resolved,
    /// The number of the PRD folder to work in: `--prd`, else `PRD_NUMBER`.
    pub prd: Option<u32>,
    /// Where progress is written (`PROGRESS_PATH`), absolute.
    pub progress: Option<PathBuf>,
    /// The `.ralph/` folder, if it exists.
    pub ralph_home: Option<PathBuf>,
    /// Whether `.verdone/config.toml` exists.
    pub has_file: bool,
    /// Whether this is a fresher project, and whether it is in planning mode.
    pub fresher: Option<FresherMode>,
    /// The specifications folder of a fresher project, absolute.
    pub spec_dir: Option<PathBuf>,
    /// What the `config.sh` of a fresher project exports to its scripts.
    pub exports: Vec<(String, String)>,
    /// Warnings about settings that have no effect.
    pub warnings: Vec<String>,
}

/// The mode of a fresher project: `FRESHER_MODE`, or `mode` in its settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FresherMode {
    Planning,
    Building,
}

/// Settings that cannot be read or used.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    #[error(transparent)]
    Problem(#[from] ConfigProblem),
    #[error("cannot read {place}")]
    Unreadable { place: String, source: io::Error },
}

/// Loads and merges every layer.
pub fn load(project: &Project, environment: &Environment, flags: &Flags) -> Result<Settings, SettingsError> {
    let get = |name: &str| environment.get(name).map(String::as_str);
    let ralph = Ralph::read(project, environment)?;
    let mut layers = ralph.layers;
    let theirs = read_fresher(project, &get)?;
    layers.extend(theirs.layers);
    let file = read_file(&project.config_path, &project.config_name())?;
    let has_file = file.is_some();
    layers.extend(file);
    layers.extend(script_variables(&get)?);
    layers.extend(flag_layers(project, flags));
    let resolved = resolve(&layers)?;
    Ok(Settings {
        resolved,
        prd: flags.prd.or(ralph.prd),
        progress: ralph.progress,
        ralph_home: ralph.home,
        has_file,
        fresher: project.root.join(FRESHER).is_dir().then_some(if theirs.planning {
            FresherMode::Planning
        } else {
            FresherMode::Building
        }),
        spec_dir: theirs.spec_dir.map(|dir| project.root.join(dir)),
        exports: theirs.exports,
        warnings: theirs.warnings,
    })
}

/// Without a fresher folder, fresher's variables are ignored: they belong to another project.
fn read_fresher<'e>(project: &Project, get: &dyn Fn(&str) -> Option<&'e str>) -> Result<Fresher, SettingsError> {
    let home = project.root.join(FRESHER);
    if !home.is_dir() {
        return Ok(Fresher::default());
    }
    let read = |name: &str| -> Result<Option<(String, String)>, SettingsError> {
        let path = home.join(name);
        let place = project.name_of(&path);
        Ok(read_text(&path, &place)?.map(|text| (place, text)))
    };
    let (shell, toml) = (read("config.sh")?, read("config.toml")?);
    let shell = shell.as_ref().map(|(place, text)| (place.as_str(), text.as_str()));
    let toml = toml.as_ref().map(|(place, text)| (place.as_str(), text.as_str()));
    Ok(fresher(shell, toml, get)?)
}

/// The file's layer, or `None` if the file does not exist.
fn read_file(path: &Path, place: &str) -> Result<Option<Layer>, SettingsError> {
    Ok(read_text(path, place)?.map(|text| Layer::from_toml(place, &text)).transpose()?)
}

/// The file's text, or `None` if the file does not exist.
pub(crate) fn read_text(path: &Path, place: &str) -> Result<Option<String>, SettingsError> {
    let unreadable = |source| SettingsError::Unreadable { place: place.to_owned(), source };
    // Opening a pipe would block until somebody writes to it.
    if path.symlink_metadata().is_ok() && !path.is_file() {
        return Err(ConfigProblem::new(place, "not a file").into());
    }
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(error)),
    };
    // Nearly every file fits, so one read is enough.
    let mut bytes = Vec::with_capacity(4 * 1024);
    file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > LARGEST {
        return Err(ConfigProblem::new(place, "larger than 1 MiB: this cannot be a config file").into());
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let text = String::from_utf8_lossy(error.as_bytes());
        ConfigProblem::new(place, "not UTF-8 text").at(&text, &(valid..valid))
    })?;
    Ok(Some(text))
}

fn flag_layers(project: &Project, flags: &Flags) -> Vec<Layer> {
    let origin = |name: &str| Origin::Flag(name.to_owned());
    let mut layers = Vec::new();
    if let Some(plan) = &flags.plan {
        layers.push(Layer::value(origin("PLAN"), "plan", project.path_from_root(plan)));
    }
    if let Some(most) = flags.max_cost {
        layers.push(Layer::value(origin("--max-cost"), "limits.cost_usd", most));
    }
    if flags.no_wait {
        layers.push(Layer::value(origin("--no-wait"), "limits.wait_for_usage", false));
    }
    if flags.no_inhibit {
        layers.push(Layer::value(origin("--no-inhibit"), "run.inhibit_sleep", false));
    }
    if let Some(most) = flags.max_iterations {
        layers.push(Layer::value(origin("--max-iterations"), "limits.max_iterations", i64::from(most)));
    }
    if let Some(command) = &flags.agent_command {
        layers.push(Layer::value(origin("--agent-command"), "agent.command.run", command.as_str()));
        layers.push(Layer::value(origin("--agent-command"), "agent.name", "command"));
    }
    if let Some(name) = &flags.agent {
        layers.push(Layer::value(origin("--agent"), "agent.name", name.as_str()));
    }
    if !flags.checks.is_empty() {
        layers.push(Layer::checks(origin("--check"), &flags.checks));
    }
    layers
}

/// Settings from the variables of a `.ralph/` home. Without such a home the variables are ignored: they belong to another project.
#[derive(Debug, Default)]
struct Ralph {
    home: Option<PathBuf>,
    layers: Vec<Layer>,
    prd: Option<u32>,
    progress: Option<PathBuf>,
}

impl Ralph {
    fn read(project: &Project, environment: &Environment) -> Result<Self, ConfigProblem> {
        // As in a shell's `${NAME:-default}`, empty means unset.
        let get = |name: &str| environment.get(name).map(String::as_str).filter(|value| !value.is_empty());
        let root = match get("RALPH_ROOT") {
            Some(root) => {
                let root = project.start.join(root);
                if !root.is_dir() {
                    return Err(ConfigProblem::new("RALPH_ROOT", format!("{} is not a folder", root.display()))
                        .with_hint("unset RALPH_ROOT, or set it to the folder that contains .ralph/"));
                }
                Some(root)
            }
            None => project.ralph_root.clone(),
        };
        let Some(home) = root.map(|root| root.join(".ralph")).filter(|home| home.is_dir()) else { return Ok(Self::default()) };
        let number = |name: &'static str, most: u64| -> Result<Option<u64>, ConfigProblem> {
            let refused = |value: &str| {
                ConfigProblem::new(name, format!("{value:?} is not a whole number from 0 to {most}"))
                    .with_hint(format!("unset {name}, or set it to a number"))
            };
            let read = |value: &str| value.parse().ok().filter(|n| *n <= most).ok_or_else(|| refused(value));
            get(name).map(read).transpose()
        };
        let mut layers = Vec::new();
        let mut set = |name: &str, key: &str, value: toml::Value| {
            layers.push(Layer::value(Origin::Env(name.to_owned()), key, value));
        };
        if let Some(most) = number("MAX_ITERATIONS", u64::from(u32::MAX))? {
            set("MAX_ITERATIONS", "limits.max_iterations", toml::Value::Integer(most.cast_signed()));
        }
        if let Some(seconds) = number("TIMEOUT_AGENT", u64::from(u32::MAX))? {
            set("TIMEOUT_AGENT", "limits.turn_time", Span::from_secs(seconds).to_string().into());
        }
        if let Some(plan) = get("PLAN_PATH") {
            set("PLAN_PATH", "plan", project.path_from_root(plan).into());
        }
        let prd = number("PRD_NUMBER", u64::from(u32::MAX))?.and_then(|n| u32::try_from(n).ok());
        let progress = get("PROGRESS_PATH").map(|path| project.start.join(path));
        Ok(Self { home: Some(home), layers, prd, progress })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn project(dirs: &[&str], config: Option<&[u8]>) -> (tempfile::TempDir, Project) {
        let temp = tempfile::tempdir().unwrap();
        for dir in dirs.iter().chain(&[".verdone"]) {
            fs::create_dir_all(temp.path().join(dir)).unwrap();
        }
        if let Some(config) = config {
            fs::write(temp.path().join(".verdone/config.toml"), config).unwrap();
        }
        let project = Project::find(temp.path(), temp.path()).unwrap();
        (temp, project)
    }

    fn environment(pairs: &[(&str, &str)]) -> Environment {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    const RALPH: [(&str, &str); 5] = [
        ("MAX_ITERATIONS", "7"),
        ("TIMEOUT_AGENT", "90"),
        ("PLAN_PATH", "p.md"),
        ("PRD_NUMBER", "3"),
        ("PROGRESS_PATH", "progress.md"),
    ];

    #[test]
    fn variables_count_only_beside_a_ralph_home() {
        let (_temp, without) = project(&[], None);
        let settings = load(&without, &environment(&RALPH), &Flags::default()).unwrap();
        assert_eq!(settings.resolved.config, verdone_core::config::Config::default());
        assert_eq!((settings.prd, settings.progress, settings.ralph_home), (None, None, None));

        let (_temp, with) = project(&[".ralph"], None);
        let settings = load(&with, &environment(&RALPH), &Flags::default()).unwrap();
        let config = &settings.resolved.config;
        assert_eq!(config.limits.max_iterations, 7);
        assert_eq!(config.limits.turn_time, Span::from_secs(90));
        assert_eq!(config.plan.as_deref(), Some("p.md"));
        assert_eq!(settings.prd, Some(3));
        assert_eq!(settings.progress, Some(with.root.join("progress.md")));
        assert_eq!(settings.ralph_home, Some(with.root.join(".ralph")));
        assert!(!settings.has_file);
    }

    #[test]
    fn the_file_wins_over_variables_and_flags_win_over_the_file() {
        let (_temp, project) = project(&[".ralph"], Some(b"plan = \"f.md\"\n[limits]\nmax_iterations = 9\n"));
        let settings = load(&project, &environment(&RALPH), &Flags::default()).unwrap();
        assert_eq!(settings.resolved.config.limits.max_iterations, 9);
        assert_eq!(settings.resolved.config.plan.as_deref(), Some("f.md"));
        assert_eq!(settings.resolved.origin("limits.max_iterations"), &Origin::File(".verdone/config.toml".to_owned()));
        assert_eq!(settings.resolved.origin("limits.turn_time"), &Origin::Env("TIMEOUT_AGENT".to_owned()));
        let flags = Flags {
            plan: Some("x.md".to_owned()),
            prd: Some(1),
            max_iterations: Some(0),
            max_cost: Some(0.5),
            no_wait: true,
            no_inhibit: true,
            agent: None,
            agent_command: Some("./agent".to_owned()),
            checks: vec!["make test".to_owned()],
        };
        let settings = load(&project, &environment(&RALPH), &flags).unwrap();
        let config = &settings.resolved.config;
        assert_eq!((config.plan.as_deref(), config.limits.max_iterations, settings.prd), (Some("x.md"), 0, Some(1)));
        assert_eq!(config.agent.name, verdone_core::agent::AgentKind::Command);
        assert_eq!(config.gate[0].command.display(), "make test");
        assert!(!config.run.inhibit_sleep);
        assert_eq!(settings.resolved.origin("agent.command.run"), &Origin::Flag("--agent-command".to_owned()));
    }

    #[test]
    fn a_fresher_project_counts_below_our_file_and_switches_above_it() {
        let (temp, project) = project(&[".fresher"], Some(b"[limits]\nmax_iterations = 9\n[hooks]\ntimeout = \"8s\"\n"));
        fs::write(
            temp.path().join(".fresher/config.toml"),
            "[fresher]\nmax_iterations = 3\nmodel = \"m\"\n[commands]\ntest = \"make\"\n[paths]\nspec_dir = \"s\"\n",
        )
        .unwrap();
        fs::write(temp.path().join(".fresher/config.sh"), "export A=b\nset -e\n").unwrap();
        let switches = environment(&[("FRESHER_HOOK_TIMEOUT", "4"), ("VERDONE_HOOK_FINISHED_ENABLED", "false")]);
        let settings = load(&project, &switches, &Flags::default()).unwrap();
        let config = &settings.resolved.config;
        assert_eq!(config.limits.max_iterations, 9);
        assert_eq!((config.hooks.timeout, config.hooks.finished.enabled), (Span::from_secs(4), false));
        assert_eq!(config.gate[0].command.display(), "make");
        assert_eq!(settings.resolved.origin("gate"), &Origin::File(".fresher/config.toml".to_owned()));
        assert_eq!(settings.spec_dir, Some(project.root.join("s")));
        assert_eq!(settings.exports, [("A".to_owned(), "b".to_owned())]);
        assert_eq!(settings.warnings.len(), 2, "{:?}", settings.warnings);
        assert!(settings.warnings[0].starts_with(".fresher/config.sh:2: "), "{:?}", settings.warnings);
        let error = load(&project, &environment(&[("VERDONE_HOOKS_ENABLED", "si")]), &Flags::default()).unwrap_err();
        assert_eq!(error.to_string(), "VERDONE_HOOKS_ENABLED: \"si\" is not true or false");
    }

    #[test]
    fn bad_variables_are_named_and_empty_ones_are_unset() {
        let (_temp, project) = project(&[".ralph", "elsewhere"], None);
        for (name, value) in [
            ("MAX_ITERATIONS", "many"),
            ("MAX_ITERATIONS", "-1"),
            ("TIMEOUT_AGENT", "1h"),
            ("PRD_NUMBER", "99999999999"),
            ("RALPH_ROOT", "/no/such/folder"),
        ] {
            let error = load(&project, &environment(&[(name, value)]), &Flags::default()).unwrap_err();
            assert!(error.to_string().starts_with(&format!("{name}: ")), "{error}");
        }
        let empty = environment(&RALPH.map(|(name, _)| (name, "")));
        assert!(load(&project, &empty, &Flags::default()).unwrap().resolved.origins.is_empty());
        let moved = load(&project, &environment(&[("RALPH_ROOT", "elsewhere"), ("PRD_NUMBER", "2")]), &Flags::default()).unwrap();
        assert_eq!((moved.ralph_home, moved.prd), (None, None));
    }

    #[test]
    fn files_that_are_no_config_are_refused_with_the_reason() {
        let large = vec![b'#'; 1024 * 1024 + 1];
        let cases: [(&[u8], &str); 4] = [
            (b"plan = \"a\xff\"\n", ".verdone/config.toml:1:10: not UTF-8 text"),
            (b"plam = 1\n", ".verdone/config.toml:1:1: unknown key `plam`"),
            (&large, ".verdone/config.toml: larger than 1 MiB"),
            (b"\0", ".verdone/config.toml:1:2: "),
        ];
        for (text, message) in cases {
            let (_temp, project) = project(&[], Some(text));
            let error = load(&project, &Environment::new(), &Flags::default()).unwrap_err();
            assert!(error.to_string().starts_with(message), "{error}");
        }
        let (_temp, project) = project(&[".verdone/config.toml"], None);
        let error = load(&project, &Environment::new(), &Flags::default()).unwrap_err();
        assert_eq!(error.to_string(), ".verdone/config.toml: not a file");
    }
}
