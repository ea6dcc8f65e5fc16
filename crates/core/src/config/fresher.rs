//! Reads the settings of an existing fresher project as layers: `.fresher/config.sh`, `.fresher/config.toml` and its variables. Settings
//! that Verdone does not use are reported, one line per key. None of them ever loosens a permission.

use toml::{Table, Value};

use super::exports::exports;
use super::layer::parse;
use super::{ConfigProblem, Layer, Origin, Span};
use crate::check::Stage;
use crate::lifecycle::Script;

/// The settings of a fresher project.
#[derive(Debug, Clone, Default)]
pub struct Fresher {
    /// Weakest first.
    pub layers: Vec<Layer>,
    pub warnings: Vec<String>,
    /// The project is in planning mode.
    pub planning: bool,
    /// The folder of specifications, as written there.
    pub spec_dir: Option<String>,
    /// The exports of `config.sh`, which its scripts rely on.
    pub exports: Vec<(String, String)>,
    gates: Vec<(Origin, &'static str, Stage, String)>,
}

/// A file: its path as the user would write it, and its text.
type Source<'a> = (&'a str, &'a str);

/// Reads a fresher project's files and variables.
pub fn fresher<'e>(
    shell: Option<Source<'_>>,
    toml: Option<Source<'_>>,
    environment: &dyn Fn(&str) -> Option<&'e str>,
) -> Result<Fresher, ConfigProblem> {
    let mut read = Fresher::default();
    if let Some((place, text)) = shell {
        read.shell(place, text, environment)?;
    }
    if let Some((place, text)) = toml {
        read.toml(place, &parse(place, text)?)?;
    }
    for (variable, _, _) in KNOWN {
        if let Some(value) = environment(variable).filter(|value| !value.is_empty()) {
            read.insert(&Origin::Env((*variable).to_owned()), variable, variable, &Value::from(value))?;
        }
    }
    read.finish();
    Ok(read)
}

/// The variables that control lifecycle scripts, also without a fresher project. Verdone's own take precedence.
pub fn script_variables<'e>(environment: &dyn Fn(&str) -> Option<&'e str>) -> Result<Vec<Layer>, ConfigProblem> {
    let mut layers = Vec::new();
    for prefix in ["FRESHER_", "VERDONE_"] {
        for (name, key, kind) in switches() {
            let variable = format!("{prefix}{name}");
            let Some(value) = environment(&variable).filter(|value| !value.is_empty()) else { continue };
            let value = kind.read(&Value::from(value)).map_err(|words| problem(&variable, &variable, words, value))?;
            layers.push(Layer::value(Origin::Env(variable), &key, value));
        }
    }
    Ok(layers)
}

/// The type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Flag,
    Seconds,
    Number,
    FailBehavior,
}

impl Kind {
    /// Converts the value to the form in our config; the error names the expected type. Variables are text, a file may have types.
    fn read(self, value: &Value) -> Result<Value, &'static str> {
        let whole = || match value {
            Value::Integer(number) => u32::try_from(*number).ok(),
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        };
        match self {
            Self::Flag => match value {
                Value::Boolean(flag) => Some(*flag),
                Value::String(text) => match text.trim().to_ascii_lowercase().as_str() {
                    "true" | "1" | "yes" | "on" => Some(true),
                    "false" | "0" | "no" | "off" => Some(false),
                    _ => None,
                },
                _ => None,
            }
            .map(Value::Boolean)
            .ok_or("true or false"),
            Self::Seconds => whole().map(|n| Span::from_secs(n.into()).to_string().into()).ok_or("a whole number of seconds"),
            Self::Number => whole().map(|n| Value::Integer(n.into())).ok_or("a whole number, 0 or more"),
            Self::FailBehavior => match value.as_str().map(str::trim) {
                Some(word @ ("continue" | "abort")) => Ok(word.into()),
                Some(_) | None => Err("continue or abort"),
            },
        }
    }
}

/// Name without a prefix, key, kind.
fn switches() -> Vec<(String, String, Kind)> {
    let mut all = vec![
        ("HOOKS_ENABLED".to_owned(), "hooks.enabled".to_owned(), Kind::Flag),
        ("HOOK_TIMEOUT".to_owned(), "hooks.timeout".to_owned(), Kind::Seconds),
        ("HOOK_FAIL_BEHAVIOR".to_owned(), "hooks.fail_behavior".to_owned(), Kind::FailBehavior),
    ];
    all.extend(Script::ALL.map(|script| {
        let name = script.name();
        (format!("HOOK_{}_ENABLED", name.to_uppercase()), format!("hooks.{name}.enabled"), Kind::Flag)
    }));
    all
}

/// How a setting is used.
#[derive(Debug, Clone)]
enum Use {
    Key(&'static str, Kind),
    Gate(&'static str, Stage),
    Mode,
    SpecDir,
    /// Known but not used, with the reason.
    Not(&'static str),
}

/// The variable, the key in `config.toml`, and how it is used.
const KNOWN: &[(&str, &str, Use)] = &[
    ("FRESHER_MODE", "fresher.mode", Use::Mode),
    ("FRESHER_MAX_ITERATIONS", "fresher.max_iterations", Use::Key("limits.max_iterations", Kind::Number)),
    ("FRESHER_SMART_TERMINATION", "fresher.smart_termination", Use::Not("a run is complete when every story is done")),
    (
        "FRESHER_DANGEROUS_PERMISSIONS",
        "fresher.dangerous_permissions",
        Use::Not("permissions are never bypassed; the agent gets only the options in agent.command.run"),
    ),
    (
        "FRESHER_MAX_TURNS",
        "fresher.max_turns",
        Use::Not("pass the agent's own option in agent.command.run; see also limits.turns"),
    ),
    ("FRESHER_MODEL", "fresher.model", Use::Not("pass the agent's own option in agent.command.run")),
    ("FRESHER_ARCHIVE_COMPLETED", "fresher.archive_completed", Use::Not("done stories stay in the plan")),
    ("FRESHER_SINGLE_FILE_THRESHOLD", "fresher.single_file_threshold", Use::Not("plans are never split")),
    ("FRESHER_TEST_CMD", "commands.test", Use::Gate("test", Stage::Correctness)),
    ("FRESHER_BUILD_CMD", "commands.build", Use::Gate("build", Stage::Correctness)),
    ("FRESHER_LINT_CMD", "commands.lint", Use::Gate("lint", Stage::Quality)),
    ("FRESHER_LOG_DIR", "paths.log_dir", Use::Not("a run keeps everything in .verdone/runs/")),
    ("FRESHER_SPEC_DIR", "paths.spec_dir", Use::SpecDir),
    ("FRESHER_SRC_DIR", "paths.src_dir", Use::Not("the agent may work everywhere in the project")),
    ("FRESHER_IMPL_DIR", "paths.impl_dir", Use::Not("name the plan with the key plan")),
    ("FRESHER_HOOKS_ENABLED", "hooks.enabled", Use::Key("hooks.enabled", Kind::Flag)),
    ("FRESHER_HOOK_TIMEOUT", "hooks.timeout", Use::Key("hooks.timeout", Kind::Seconds)),
    ("FRESHER_HOOK_FAIL_BEHAVIOR", "hooks.fail_behavior", Use::Key("hooks.fail_behavior", Kind::FailBehavior)),
    ("FRESHER_HOOK_STARTED_ENABLED", "hooks.started", Use::Key("hooks.started.enabled", Kind::Flag)),
    ("FRESHER_HOOK_NEXT_ITERATION_ENABLED", "hooks.next_iteration", Use::Key("hooks.next_iteration.enabled", Kind::Flag)),
    ("FRESHER_HOOK_POST_ITERATION_ENABLED", "hooks.post_iteration", Use::Key("hooks.post_iteration.enabled", Kind::Flag)),
    ("FRESHER_HOOK_FINISHED_ENABLED", "hooks.finished", Use::Key("hooks.finished.enabled", Kind::Flag)),
    ("FRESHER_USE_DOCKER", "docker.use_docker", Use::Not(NO_DOCKER)),
    ("FRESHER_DOCKER_MEMORY", "docker.memory", Use::Not(NO_DOCKER)),
    ("FRESHER_DOCKER_CPUS", "docker.cpus", Use::Not(NO_DOCKER)),
    ("FRESHER_DOCKER_PRESETS", "docker.presets", Use::Not(NO_DOCKER)),
    ("FRESHER_DOCKER_SETUP_SCRIPT", "docker.setup_script", Use::Not(NO_DOCKER)),
    ("FRESHER_DOCKER_LOCAL_BINARY", "docker.local_binary", Use::Not(NO_DOCKER)),
];

const NO_DOCKER: &str = "the agent is started by agent.command.run, without a container";

impl Fresher {
    fn shell<'e>(&mut self, place: &str, text: &str, environment: &dyn Fn(&str) -> Option<&'e str>) -> Result<(), ConfigProblem> {
        let (found, others) = exports(text, environment);
        for line in others {
            self.warnings
                .push(format!("{place}:{line}: skipped: only `export NAME=value` lines are read, and nothing is executed"));
        }
        let origin = Origin::File(place.to_owned());
        for export in found {
            if !export.value.is_empty() {
                self.insert(&origin, &export.name, &export.name, &Value::from(export.value.as_str()))?;
            }
            self.exports.push((export.name, export.value));
        }
        Ok(())
    }

    fn toml(&mut self, place: &str, table: &Table) -> Result<(), ConfigProblem> {
        let origin = Origin::File(place.to_owned());
        for (section, value) in table {
            let Value::Table(entries) = value else {
                self.warnings.push(format!("{place}: `{section}` is unknown and ignored"));
                continue;
            };
            for (key, value) in entries {
                let key = format!("{section}.{key}");
                match KNOWN.iter().find(|(_, known, _)| *known == key) {
                    Some((variable, _, _)) => self.insert(&origin, variable, &key, value)?,
                    None => self.warnings.push(format!("{place}: `{key}` is unknown and ignored")),
                }
            }
        }
        Ok(())
    }

    /// Applies a setting by the name of its variable; `shown` is what the user wrote.
    fn insert(&mut self, origin: &Origin, variable: &str, shown: &str, value: &Value) -> Result<(), ConfigProblem> {
        let Some((_, _, action)) = KNOWN.iter().find(|(known, _, _)| *known == variable) else { return Ok(()) };
        let place = origin.to_string();
        let text = || value.as_str().ok_or_else(|| problem(&place, shown, "a string", &value.to_string()));
        let warn = |words: &str| match origin {
            Origin::Env(_) => format!("{shown} is ignored: {words}"),
            Origin::Default | Origin::File(_) | Origin::Flag(_) => format!("{place}: `{shown}` is ignored: {words}"),
        };
        match action {
            Use::Key(key, kind) => {
                let value = kind.read(value).map_err(|words| problem(&place, shown, words, &value.to_string()))?;
                self.layers.push(Layer::value(origin.clone(), key, value));
            }
            Use::Gate(name, stage) => {
                let command = text()?.trim().to_owned();
                self.gates.retain(|(_, other, _, _)| other != name);
                if !command.is_empty() {
                    self.gates.push((origin.clone(), name, stage.clone(), command));
                }
            }
            Use::Mode => match text()? {
                "building" => self.planning = false,
                "planning" => self.planning = true,
                other => self.warnings.push(warn(&format!("{other:?} is not a mode"))),
            },
            Use::SpecDir => self.spec_dir = Some(text()?.to_owned()).filter(|dir| !dir.is_empty()),
            Use::Not(why) => self.warnings.push(warn(why)),
        }
        Ok(())
    }

    /// Puts all gates into one layer, so that the gates of a stronger layer replace all of them.
    fn finish(&mut self) {
        let Some((origin, ..)) = self.gates.last() else { return };
        let origin = origin.clone();
        let order = |name: &str| KNOWN.iter().position(|(_, _, action)| matches!(action, Use::Gate(known, _) if *known == name));
        self.gates.sort_by_key(|(_, name, _, _)| order(name));
        let table = |(_, name, stage, command): &(Origin, &str, Stage, String)| {
            let entry = |key: &str, value: &str| (key.to_owned(), Value::from(value));
            Value::Table(Table::from_iter([entry("name", name), entry("stage", stage.name()), entry("command", command)]))
        };
        let gates = self.gates.iter().map(table).collect();
        self.layers.push(Layer::value(origin, "gate", Value::Array(gates)));
    }
}

fn problem(place: &str, name: &str, expected: &str, found: &str) -> ConfigProblem {
    let found = found.trim_matches('"');
    let message = if place == name {
        format!("{found:?} is not {expected}")
    } else {
        format!("`{name}` must be {expected}, not {found:?}")
    };
    ConfigProblem::new(place, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, FailBehavior, resolve};

    fn read(shell: &str, toml: &str, variables: &[(&str, &str)]) -> Result<Fresher, ConfigProblem> {
        let environment = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
        fresher(Some((".fresher/config.sh", shell)), Some((".fresher/config.toml", toml)), &environment)
    }

    fn config(read: &Fresher) -> Config {
        resolve(&read.layers).unwrap().config
    }

    const TOML: &str = "\
[fresher]
mode = \"building\"
max_iterations = 0
smart_termination = true
dangerous_permissions = true
max_turns = 50
model = \"sonnet\"
archive_completed = true
single_file_threshold = 8
[commands]
lint = \"make lint\"
test = \"make test\"
build = \"\"
[paths]
log_dir = \".fresher/logs\"
spec_dir = \"specs\"
src_dir = \"src\"
impl_dir = \"impl\"
[hooks]
enabled = false
timeout = 5
[docker]
use_docker = true
memory = \"4g\"
cpus = \"2\"
presets = [\"rust\"]
setup_script = \"x\"
local_binary = \"y\"
[new]
thing = 1
";

    #[test]
    fn a_config_of_fresher_is_used_where_it_can_be_and_told_where_it_cannot() {
        let read = read("", TOML, &[]).unwrap();
        let config = config(&read);
        assert_eq!(config.limits.max_iterations, 0);
        assert_eq!((config.hooks.enabled, config.hooks.timeout), (false, Span::from_secs(5)));
        let gates: Vec<_> =
            config.gate.iter().map(|gate| (gate.name.as_str(), gate.stage.clone(), gate.command.display())).collect();
        let expected = [("test", Stage::Correctness, "make test".to_owned()), ("lint", Stage::Quality, "make lint".to_owned())];
        assert_eq!(gates, expected);
        assert_eq!(read.spec_dir.as_deref(), Some("specs"));
        // Nothing else differs from the defaults, above all not how the agent is started.
        let told =
            Config { limits: config.limits.clone(), hooks: config.hooks.clone(), gate: config.gate.clone(), ..Config::default() };
        assert_eq!(config, told);
        for key in
            ["smart_termination", "dangerous_permissions", "max_turns", "model", "archive_completed", "single_file_threshold"]
        {
            let key = format!("`fresher.{key}`");
            assert_eq!(read.warnings.iter().filter(|warning| warning.contains(&key)).count(), 1, "{key}: {:?}", read.warnings);
        }
        assert_eq!(read.warnings.iter().filter(|warning| warning.contains("`docker.")).count(), 6);
        assert!(read.warnings.iter().any(|warning| warning.contains("`new.thing` is unknown")));
        assert_eq!(read.warnings.len(), 6 + 3 + 6 + 1, "{:#?}", read.warnings);
    }

    #[test]
    fn shell_lines_are_settings_below_the_toml_file_and_everything_is_exported() {
        let shell = "#!/bin/bash\nexport FRESHER_MAX_ITERATIONS=\"${FRESHER_MAX_ITERATIONS:-7}\"\nexport FRESHER_HOOK_TIMEOUT=9\n\
                     export FRESHER_HOOK_FAIL_BEHAVIOR=abort\nexport FRESHER_HOOK_STARTED_ENABLED=\"${FRESHER_HOOK_STARTED_ENABLED:-false}\"\n\
                     export FRESHER_DANGEROUS_PERMISSIONS=true\nrm -rf /\nexport FRESHER_TEST_CMD=\"old\"\nexport SLACK=\"x y\"\n";
        let read = read(shell, "[hooks]\ntimeout = 3\n[commands]\ntest = \"new\"\n", &[]).unwrap();
        let config = config(&read);
        assert_eq!((config.limits.max_iterations, config.hooks.timeout), (7, Span::from_secs(3)));
        assert_eq!((config.hooks.fail_behavior, config.hooks.started.enabled), (FailBehavior::Abort, false));
        assert_eq!(config.gate.iter().map(|gate| gate.command.display()).collect::<Vec<_>>(), ["new"]);
        assert!(read.exports.contains(&("SLACK".to_owned(), "x y".to_owned())));
        assert_eq!(read.warnings.len(), 2, "{:?}", read.warnings);
        assert!(read.warnings[0].starts_with(".fresher/config.sh:7: "), "{:?}", read.warnings);
        assert!(read.warnings[1].contains("FRESHER_DANGEROUS_PERMISSIONS"));
    }

    #[test]
    fn the_environment_is_stronger_than_both_files() {
        let shell = "export FRESHER_MAX_ITERATIONS=\"${FRESHER_MAX_ITERATIONS:-7}\"\n";
        let read = read(shell, "[fresher]\nmax_iterations = 8\n", &[("FRESHER_MAX_ITERATIONS", "9")]).unwrap();
        assert_eq!(config(&read).limits.max_iterations, 9);
    }

    #[test]
    fn a_bad_value_names_its_place() {
        for (shell, toml, variables, message) in [
            ("", "[fresher\n", &[][..], ".fresher/config.toml:1:9: "),
            ("", "[fresher]\nmax_iterations = \"many\"\n", &[], ".fresher/config.toml: `fresher.max_iterations` must be a whole"),
            ("", "[hooks]\nenabled = 3\n", &[], ".fresher/config.toml: `hooks.enabled` must be true or false, not \"3\""),
            ("", "[commands]\ntest = 3\n", &[], ".fresher/config.toml: `commands.test` must be a string"),
            ("export FRESHER_HOOK_TIMEOUT=-1\n", "", &[], ".fresher/config.sh: `FRESHER_HOOK_TIMEOUT` must be"),
            ("", "", &[("FRESHER_MAX_ITERATIONS", "x")], "FRESHER_MAX_ITERATIONS: \"x\" is not a whole number"),
        ] {
            let error = read(shell, toml, variables).unwrap_err();
            assert!(error.to_string().starts_with(message), "{error}");
        }
    }

    fn switched(variables: &[(&str, &str)]) -> Result<Config, ConfigProblem> {
        let environment = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
        Ok(resolve(&script_variables(&environment)?).unwrap().config)
    }

    #[test]
    fn every_switch_works_under_both_prefixes_and_ours_wins() {
        for prefix in ["FRESHER_", "VERDONE_"] {
            for (name, key, kind) in switches() {
                let value = match kind {
                    Kind::Flag => "false",
                    Kind::Seconds | Kind::Number => "7",
                    Kind::FailBehavior => "abort",
                };
                let variable = format!("{prefix}{name}");
                let config = switched(&[(&variable, value)]).unwrap();
                assert_ne!(config, Config::default(), "{variable} sets {key}");
                let error = switched(&[(&variable, "maybe")]).unwrap_err();
                assert!(error.to_string().starts_with(&format!("{variable}: \"maybe\" is not ")), "{error}");
                assert_eq!(switched(&[(&variable, "")]).unwrap(), Config::default(), "empty is unset");
            }
        }
        let config = switched(&[("VERDONE_HOOKS_ENABLED", "1"), ("FRESHER_HOOKS_ENABLED", "0")]).unwrap();
        assert!(config.hooks.enabled);
    }
}
