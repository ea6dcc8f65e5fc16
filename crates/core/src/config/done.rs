//! Validates `[done]` of a config file: unknown conditions, and conditions that could never be proven, are errors.

use std::collections::BTreeSet;

use verdone_plan::complexity::MOST_COMPLEX;
use verdone_text::suggest::nearest;

use super::diagnose::{Finding, Step};
use crate::check::CommandSpec;
use crate::done::{Condition, DoneSettings, JudgeAgent, OwnCondition, Prover};
use crate::verify::Proof;

/// The first fault in settings of the right types.
pub(super) fn unusable(done: &DoneSettings) -> Option<Finding> {
    let most = u32::from(MOST_COMPLEX);
    if let Some(complexity) = done.complexity.filter(|complexity| !(1..=most).contains(complexity)) {
        return Some(fault(
            vec![key("complexity")],
            format!("a complexity is a number from 1 to {most}, not {complexity}"),
            None,
        ));
    }
    if done.minimum == Proof::Unchecked {
        let hint = "`verdone run --unchecked` commits stories without any check".to_owned();
        let message = "`done.minimum` cannot be \"unchecked\"".to_owned();
        return Some(fault(vec![key("minimum")], message, Some(hint)));
    }
    let mut names = BTreeSet::new();
    for (n, own) in done.condition.iter().enumerate() {
        if let Some((field, message, hint)) = of_condition(own, &mut names) {
            return Some(fault(vec![key("condition"), Step::Index(n), key(field)], message, hint));
        }
    }
    for (n, name) in done.require.iter().enumerate() {
        let known = done.names();
        if !known.contains(&name.as_str()) {
            let hint = match nearest(name, known) {
                Some(meant) => format!("did you mean {meant:?}?"),
                None => format!("expected one of {}; [[done.condition]] adds your own", all_names()),
            };
            return Some(fault(vec![key("require"), Step::Index(n)], format!("unknown condition {name:?}"), Some(hint)));
        }
    }
    if done.judge.command.as_ref().is_some_and(CommandSpec::is_empty) {
        return Some(fault(vec![key("judge"), key("command")], "the judge's command is empty".to_owned(), None));
    }
    if done.judge.agent == JudgeAgent::Claude && done.judge.command.is_some() {
        let hint = "remove the command, or set `agent = \"command\"`".to_owned();
        return Some(fault(
            vec![key("judge"), key("command")],
            "the judge is Claude Code, so it cannot have a command".to_owned(),
            Some(hint),
        ));
    }
    // The client would treat a leading dash as an option.
    let nameless = |model: &String| model.trim().is_empty() || model.starts_with('-') || model.contains('\0');
    if done.judge.model.as_ref().is_some_and(nameless) {
        return Some(fault(vec![key("judge"), key("model")], "`done.judge.model` must be a name".to_owned(), None));
    }
    if done.judge.timeout.limit().is_none() {
        return Some(fault(vec![key("judge"), key("timeout")], "a judge needs a timeout".to_owned(), None));
    }
    if done.ci.command.as_ref().is_some_and(CommandSpec::is_empty) {
        return Some(fault(vec![key("ci"), key("command")], "the command that asks CI is empty".to_owned(), None));
    }
    if done.ci.timeout.limit().is_none() || done.ci.interval.limit().is_none() {
        let (field, what) =
            if done.ci.timeout.limit().is_none() { ("timeout", "a timeout") } else { ("interval", "an interval") };
        return Some(fault(vec![key("ci"), key(field)], format!("asking CI needs {what}"), None));
    }
    None
}

fn of_condition<'o>(own: &'o OwnCondition, names: &mut BTreeSet<&'o str>) -> Option<(&'static str, String, Option<String>)> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if own.name.is_empty() || own.name.len() > 64 || !own.name.bytes().all(plain) {
        let message = format!("{:?} is not a condition name: use letters, digits, `_` and `-`, at most 64", own.name);
        return Some(("name", message, None));
    }
    if Condition::from_name(&own.name).is_some() {
        let hint = "choose another name, and put it into `require` instead of this one".to_owned();
        return Some(("name", format!("{:?} is one of Verdone's own conditions", own.name), Some(hint)));
    }
    if !names.insert(own.name.as_str()) {
        return Some(("name", format!("two conditions are named {:?}", own.name), None));
    }
    if Prover::read(&own.prover).is_none() {
        let message = format!("unknown prover {:?}, expected one of {}", own.prover, Prover::NAMES.join(", "));
        let hint = if own.prover.trim().trim_end_matches(':') == "gate" {
            Some("name the stage: \"gate:quality\"".to_owned())
        } else {
            nearest(&own.prover, ["git", "plan", "claim", "ci", "judge"]).map(|meant| format!("did you mean {meant:?}?"))
        };
        return Some(("prover", message, hint));
    }
    if own.min_complexity > u32::from(MOST_COMPLEX) {
        return Some(("min_complexity", format!("the highest complexity is {MOST_COMPLEX}"), None));
    }
    None
}

fn all_names() -> String {
    Condition::ALL.iter().map(|condition| condition.name()).collect::<Vec<_>>().join(", ")
}

fn key(text: &str) -> Step {
    Step::Key(text.to_owned())
}

fn fault(path: Vec<Step>, message: String, hint: Option<String>) -> Finding {
    let path = std::iter::once(key("done")).chain(path).collect();
    Finding { path, on_key: false, message, hint }
}

#[cfg(test)]
mod tests {
    use crate::config::config_of_one_file;
    use crate::done::{Profile, Prover, RalphState};
    use crate::verify::Proof;

    #[test]
    fn conditions_that_nobody_knows_or_proves_are_faults_of_their_line() {
        let own = "[[done.condition]]\nname = \"ui\"\n";
        for (text, said, hinted) in [
            ("[done]\nrequire = [\"quality_pased\"]\n".to_owned(), "c.toml:2:12: unknown condition", "quality_passed"),
            ("[done]\nrequire = [\"zzz\"]\n".to_owned(), "c.toml:2:12: unknown condition", "memory_search, task_classified"),
            ("[done]\nprofile = \"lop\"\n".to_owned(), "c.toml:2:11: `done.profile` cannot be \"lop\"", "loop"),
            ("[done]\ncomplexity = 11\n".to_owned(), "c.toml:2:14: a complexity is a number from 1 to 10", ""),
            ("[done]\nralph_state = \"sometimes\"\n".to_owned(), "c.toml:2:15: `done.ralph_state` cannot be", ""),
            (format!("{own}prover = \"clam\"\n"), "c.toml:3:10: unknown prover \"clam\"", "claim"),
            (format!("{own}prover = \"gate:\"\n"), "c.toml:3:10: unknown prover", "gate:quality"),
            (format!("{own}prover = \"claim\"\nmin_complexity = 11\n"), "c.toml:4:18: the highest complexity", ""),
            (format!("{own}prover = \"ci\"\n{own}prover = \"ci\"\n"), "c.toml:5:8: two conditions are named \"ui\"", ""),
            (own.to_owned(), "c.toml:1:1: `done.condition[0]` needs the key `prover`", ""),
            (
                "[[done.condition]]\nname = \"a b\"\nprover = \"git\"\n".to_owned(),
                "c.toml:2:8: \"a b\" is not a condition name",
                "",
            ),
            (
                "[[done.condition]]\nname = \"quality_passed\"\nprover = \"claim\"\n".to_owned(),
                "c.toml:2:8: \"quality_passed\" is one of Verdone's own conditions",
                "another name",
            ),
            ("[done.judge]\ntimeout = \"off\"\n".to_owned(), "c.toml:2:11: a judge needs a timeout", ""),
            ("[done.judge]\nmodel = \"--bare\"\n".to_owned(), "c.toml:2:9: `done.judge.model` must be a name", ""),
            ("[done.judge]\nagent = \"cloud\"\n".to_owned(), "c.toml:2:9: `done.judge.agent` cannot be \"cloud\"", "claude"),
            (
                "[done.judge]\nagent = \"claude\"\ncommand = \"x\"\n".to_owned(),
                "c.toml:3:11: the judge is Claude Code, so it cannot have a command",
                "remove the command",
            ),
            ("[done.ci]\ninterval = \"0s\"\n".to_owned(), "c.toml:2:12: asking CI needs an interval", ""),
            ("[done.judge]\ncomand = \"x\"\n".to_owned(), "c.toml:2:1: unknown key `comand` in `done.judge`", "command"),
        ] {
            let problem = config_of_one_file("c.toml", &text).unwrap_err();
            assert!(problem.to_string().starts_with(said), "{problem}\n{text}");
            let all = format!("{problem} {}", problem.hint.clone().unwrap_or_default());
            assert!(all.contains(hinted), "{all}\n{text}");
        }
    }

    #[test]
    fn conditions_are_read_as_they_are_meant() {
        let text = "[done]\nprofile = \"orchestrator\"\nrequire = [\"quality_passed\", \"ui\"]\nralph_state = \"never\"\n\
                    [[done.condition]]\nname = \"ui\"\nprover = \"gate:e2e\"\ntodo = \"run it\"\n";
        let done = config_of_one_file("c.toml", text).unwrap().done;
        assert_eq!((done.profile, done.ralph_state), (Profile::Orchestrator, RalphState::Never));
        assert_eq!(done.condition[0].prover(), Prover::Gate("e2e".to_owned()));
        assert!(done.requires("ui") && done.requires("quality_passed") && !done.requires("memory_search"));
        let none = config_of_one_file("c.toml", "").unwrap().done;
        assert!(none.requires("quality_passed") && !none.requires("plan_approved") && !none.asks_more_than_a_run());
        assert!(!none.judge.enabled && none.ci.command.is_none());
    }

    #[test]
    fn the_minimum_is_untested_unless_it_is_set_and_never_unchecked() {
        let minimum = |line: &str| config_of_one_file("c.toml", &format!("[done]\n{line}\n"));
        for (line, expected) in [
            ("", Proof::Untested),
            ("minimum = \"untested\"", Proof::Untested),
            ("minimum = \"agent-tested\"", Proof::AgentTested),
            ("minimum = \"verified\"", Proof::Verified),
        ] {
            assert_eq!(minimum(line).unwrap().done.minimum, expected, "{line}");
        }
        let problem = minimum("minimum = \"unchecked\"").unwrap_err();
        assert_eq!(problem.to_string(), "c.toml:2:11: `done.minimum` cannot be \"unchecked\"");
        assert!(problem.hint.unwrap().contains("verdone run --unchecked"));
        let problem = minimum("minimum = \"verifed\"").unwrap_err();
        assert!(problem.to_string().starts_with("c.toml:2:11: `done.minimum` cannot be \"verifed\""), "{problem}");
        assert_eq!(problem.hint.as_deref(), Some("did you mean \"verified\"?"));
    }
}
