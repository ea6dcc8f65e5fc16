//! Validates `[[gate]]` of a config file: a gate that could never run, or not as intended, is an error.

use std::collections::BTreeSet;

use verdone_plan::scope;
use verdone_text::pattern;
use verdone_text::suggest::nearest;

use super::diagnose::{Finding, Step};
use super::workspace::{is_everything, not_a_place};
use crate::check::{Gate, Stage};

/// Further retries tell nothing new.
const MOST_RETRIES: u32 = 10;
/// The complexity scale starts at 1.
const MOST_COMPLEXITY: u32 = 10;
const LONGEST_STAGE: usize = 40;

/// A fault: the keys below the gate, the message, a hint.
type Fault = (Vec<Step>, String, Option<String>);

/// A message and a hint.
type Said = (String, Option<String>);

/// The first fault in gates of the right types.
pub(super) fn unusable(gates: &[Gate]) -> Option<Finding> {
    let mut names = BTreeSet::new();
    gates.iter().enumerate().find_map(|(n, gate)| {
        let twice = !names.insert(gate.name.as_str());
        let (below, message, hint) = fault(gate, twice).or_else(|| stage_fault(n, &gate.stage))?;
        let path = [key("gate"), Step::Index(n)].into_iter().chain(below).collect();
        Some(Finding { path, on_key: false, message, hint })
    })
}

fn fault(gate: &Gate, twice: bool) -> Option<Fault> {
    let at = |field: &str, message: String| Some((vec![key(field)], message, None));
    if gate.command.is_empty() {
        return at("command", format!("the command of gate {:?} is empty", gate.name));
    }
    if gate.name.trim().is_empty() {
        return at("name", "the gate's name is empty".to_owned());
    }
    if twice {
        return at("name", format!("two gates are named {:?}: names must be unique", gate.name));
    }
    if gate.retries > MOST_RETRIES {
        return at("retries", format!("a gate can be retried at most {MOST_RETRIES} times"));
    }
    if gate.when.complexity_at_least.is_some_and(|least| !(1..=MOST_COMPLEXITY).contains(&least)) {
        let below = vec![key("when"), key("complexity_at_least")];
        return Some((below, format!("a complexity is a number from 1 to {MOST_COMPLEXITY}"), None));
    }
    if let Some(name) = gate.env.keys().find(|name| name.is_empty() || name.contains(['=', '\0'])) {
        return Some((vec![key("env")], format!("{name:?} is not a variable name"), None));
    }
    hidden_fault(gate).or_else(|| path_fault(gate))
}

/// Whether the folder is outside of the repository is only checked on use.
fn hidden_fault(gate: &Gate) -> Option<Fault> {
    let path = gate.hidden.as_ref()?.to_str().unwrap_or_default();
    let why = not_a_place(path).or_else(|| is_everything(path).then_some("is too broad: name a folder in it"))?;
    Some((vec![key("hidden")], format!("the hidden folder of gate {:?} {why}", gate.name), None))
}

/// A typo in the name of a built-in stage would create a custom stage that runs at another time.
fn stage_fault(n: usize, stage: &Stage) -> Option<Fault> {
    let Stage::Own(name) = stage else { return None };
    let at = |message: String, hint: Option<String>| Some((vec![key("stage")], message, hint));
    if let Some(meant) = nearest(name, Stage::BUILT_IN.iter().map(Stage::name)) {
        return at(
            format!("`gate[{n}].stage` cannot be {name:?}: that is too similar to {meant:?}"),
            Some(format!("did you mean {meant:?}? A custom stage needs another name")),
        );
    }
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if name.is_empty() || name.len() > LONGEST_STAGE || !name.chars().all(is_word) {
        let message = format!("{name:?} is not a stage name: letters, digits, \"-\" and \"_\", at most {LONGEST_STAGE}");
        return at(message, None);
    }
    None
}

/// Checks the paths that must be below the project. Inputs may be anywhere.
fn path_fault(gate: &Gate) -> Option<Fault> {
    let unreadable = |path: &String| pattern::check(path).err().map(|error| (error.to_string(), Some(error.hint.to_owned())));
    let outside = |path: &String| {
        let escaped = pattern::escape(path);
        let named = scope::list([escaped.as_str()].into_iter());
        named.paths.is_empty().then(|| (format!("{path:?} is not a path inside the project"), None))
    };
    let unusable = |path: &String| outside(path).or_else(|| unreadable(path));
    let listed = |keys: &[&str], paths: &[String], fault: &dyn Fn(&String) -> Option<Said>| {
        let (number, (message, hint)) = paths.iter().enumerate().find_map(|(number, path)| Some((number, fault(path)?)))?;
        let below = keys.iter().map(|name| key(name)).chain([Step::Index(number)]).collect();
        Some((below, message, hint))
    };
    let empty = |pattern: &String| pattern.trim().is_empty().then(|| ("an empty pattern".to_owned(), None));
    listed(&["when", "paths"], &gate.when.paths, &unusable)
        .or_else(|| listed(&["inputs"], &gate.inputs, &|pattern| empty(pattern).or_else(|| unreadable(pattern))))
        .or_else(|| gate.junit.as_ref().and_then(unusable).map(|(message, hint)| (vec![key("junit")], message, hint)))
}

fn key(name: &str) -> Step {
    Step::Key(name.to_owned())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::base::span::Span;
    use crate::config::config_of_one_file;

    const HEAD: &str = "[[gate]]\nname = \"g\"\ncommand = \"make\"\n";

    #[test]
    fn gates_that_cannot_work_are_faults_of_their_line() {
        for (line, said) in [
            (
                "stage = \"corectness\"",
                "c.toml:4:9: `gate[0].stage` cannot be \"corectness\": that is too similar to \"correctness\"",
            ),
            ("stage = \"a b\"", "c.toml:4:9: \"a b\" is not a stage name"),
            ("stage = \"\"", "c.toml:4:9: \"\" is not a stage name"),
            ("blocking = \"no\"", "c.toml:4:12: `gate[0].blocking` must be true or false, not a string"),
            (
                "when = \"allways\"",
                "c.toml:4:8: `gate[0].when` cannot be \"allways\", expected \"always\", or a table with `paths`",
            ),
            ("when = 3", "c.toml:4:8: `gate[0].when` must be \"always\", or a table"),
            ("when = { path = [\"src\"] }", "c.toml:4:10: unknown key `path` in `gate[0].when`"),
            ("when = { paths = \"src\" }", "c.toml:4:18: `gate[0].when.paths` must be a list"),
            ("when = { paths = [\"a\", \"../b\"] }", "c.toml:4:24: \"../b\" is not a path inside the project"),
            ("when = { complexity_at_least = 11 }", "c.toml:4:32: a complexity is a number from 1 to 10"),
            ("when = { paths = [\"a\", \"src/[ab\"] }", "c.toml:4:24: \"src/[ab\" is not a valid pattern: `[` is not closed"),
            ("inputs = [\"a.{x,y\"]", "c.toml:4:11: \"a.{x,y\" is not a valid pattern: `{` is not closed"),
            ("junit = \"a}.xml\"", "c.toml:4:9: \"a}.xml\" is not a valid pattern: `}` without a `{`"),
            ("inputs = [\" \"]", "c.toml:4:11: an empty pattern"),
            ("env = { \"A=B\" = \"1\" }", "c.toml:4:7: \"A=B\" is not a variable name"),
            ("retries = 11", "c.toml:4:11: a gate can be retried at most 10 times"),
            ("zero_tests = \"okay\"", "c.toml:4:14: `gate[0].zero_tests` cannot be \"okay\""),
            ("junit = \"../x.xml\"", "c.toml:4:9: \"../x.xml\" is not a path inside the project"),
            ("where = \"clean\"", "c.toml:4:1: `gate[0].where` is no longer a setting"),
            ("setup = [\"npm ci\"]", "c.toml:4:1: `gate[0].setup` is no longer a setting"),
            ("share = [\"node_modules\"]", "c.toml:4:1: `gate[0].share` is no longer a setting"),
            ("hidden = \"tests\"", "c.toml:4:10: the hidden folder of gate \"g\" must be absolute or start with `~/`"),
            ("hidden = \"\"", "c.toml:4:10: the hidden folder of gate \"g\" must be absolute"),
            ("hidden = \"~/a/../b\"", "c.toml:4:10: the hidden folder of gate \"g\" cannot contain `..`"),
            ("hidden = \"~/\"", "c.toml:4:10: the hidden folder of gate \"g\" is too broad"),
            ("retrys = 1", "c.toml:4:1: unknown key `retrys` in `gate[0]`"),
        ] {
            let problem = config_of_one_file("c.toml", &format!("{HEAD}{line}\n")).expect_err(line).to_string();
            assert!(problem.starts_with(said), "{line}: {problem}");
        }
    }

    #[test]
    fn every_key_of_a_gate_can_be_set() {
        let text = format!(
            "{HEAD}stage = \"smoke\"\ntimeout = \"1m\"\nblocking = false\nwhen = {{ paths = [\"src/**\"], complexity_at_least = 7 }}\n\
             inputs = [\"/etc/hosts\", \".env\"]\n\
             env = {{ CI = \"1\" }}\nretries = 2\nzero_tests = \"ok\"\njunit = \"target/**/*.xml\"\nhidden = \"~/hidden\"\n\
             [[gate]]\nname = \"h\"\ncommand = \"x\"\nwhen = \"always\"\n\
             [gates]\nparallel = 1\nstop_at_failing_stage = false\ncache = false\n"
        );
        let config = config_of_one_file("c.toml", &text).unwrap();
        assert!(!config.gate[0].blocking && config.gate[1].blocking);
        assert_eq!(config.gate[0].stage.name(), "smoke");
        assert!(config.gate[1].when.is_always());
        assert_eq!((config.gates.parallel, config.gates.cache), (1, false));
        let check = config.gate[0].check(Span::from_secs(1));
        assert_eq!(check.terms.hidden.as_deref(), Some(Path::new("~/hidden")));
    }

    #[test]
    fn a_stage_with_a_slip_says_which_one_was_meant() {
        let problem = config_of_one_file("c.toml", &format!("{HEAD}stage = \"qality\"\n")).unwrap_err();
        assert_eq!(problem.hint.as_deref(), Some("did you mean \"quality\"? A custom stage needs another name"));
    }
}
