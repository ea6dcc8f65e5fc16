//! The environment variables of a lifecycle script, each under Verdone's prefix and under that of fresher. The docs print this table.

use std::ffi::{OsStr, OsString};
use std::time::Duration;

use jiff::Timestamp;

use super::Script;
use crate::base::finish::Finish;
use crate::base::id::StoryId;
use crate::verify::StoryResult;

/// Every variable is set with both prefixes.
pub const PREFIXES: [&str; 2] = ["VERDONE_", "FRESHER_"];

/// What is known when a script runs.
#[derive(Debug, Clone)]
pub struct Facts<'a> {
    pub mode: &'a str,
    /// The iteration that begins, or the last one that began.
    pub iteration: u32,
    /// 0 means no limit.
    pub max_iterations: u32,
    pub project_dir: &'a OsStr,
    pub log_dir: &'a OsStr,
    pub plan_file: &'a OsStr,
    pub spec_dir: &'a OsStr,
    pub started_at: Timestamp,
    /// Active time of the run.
    pub active: Duration,
    /// The story of the iteration that begins.
    pub story: Option<&'a str>,
    pub last: Option<&'a EndedIteration>,
    pub commits: u32,
    pub finish: Option<Finish>,
}

/// One variable, without its prefix.
#[derive(Debug)]
pub struct Variable {
    pub name: &'static str,
    pub meaning: &'static str,
    /// The scripts that get it.
    pub scripts: &'static [Script],
    value: fn(Script, &Facts<'_>) -> OsString,
}

const ALL: &[Script] = &Script::ALL;
const STARTED: &[Script] = &[Script::Started];
const FINISHED: &[Script] = &[Script::Finished];
const POST: &[Script] = &[Script::PostIteration];
const AROUND: &[Script] = &[Script::NextIteration, Script::PostIteration];
const NUMBERED: &[Script] = &[Script::NextIteration, Script::PostIteration, Script::Finished];

pub const VARIABLES: [Variable; 17] = [
    variable("MODE", "the mode: `building`, or `planning` while an agent writes a plan", ALL, |_, facts| facts.mode.into()),
    variable("ITERATION", "number of the iteration, from 1", NUMBERED, |_, facts| number(facts.iteration)),
    variable("MAX_ITERATIONS", "`limits.max_iterations`; 0 means no limit", ALL, |_, facts| number(facts.max_iterations)),
    variable("PROJECT_DIR", "absolute path of the project; scripts are started there", ALL, |_, facts| facts.project_dir.into()),
    variable("LOG_DIR", "absolute path of the run's directory", ALL, |_, facts| facts.log_dir.into()),
    variable("STARTED_AT", "when the run began, as in `2026-01-31T12:00:00Z`", ALL, |_, facts| started_at(facts)),
    variable("PLAN_FILE", "absolute path of the plan", STARTED, |_, facts| facts.plan_file.into()),
    variable("SPEC_DIR", "absolute path of the folder of specifications", STARTED, |_, facts| facts.spec_dir.into()),
    variable(
        "LAST_EXIT_CODE",
        "the agent's own exit code in the last turn of the last iteration, whatever the checks said; 124 if it ran out of time. \
         Claude Code keeps running between turns: 0 if the turn ended normally, otherwise 1",
        AROUND,
        |_, facts| facts.last.map_or(0, |last| last.exit_code).to_string().into(),
    ),
    variable("LAST_DURATION", "seconds that the last iteration took", AROUND, |_, facts| {
        (facts.last.map_or(0, |last| last.duration_ms) / 1000).to_string().into()
    }),
    variable("COMMITS_MADE", "story commits so far", AROUND, |_, facts| number(facts.commits)),
    variable("STORY", "id of the current or last story", AROUND, story),
    variable(
        "VERDICT",
        "`verified`, `agent-tested`, `untested`, `unchecked`, `needs-review` or `failed`; empty if the iteration does not count",
        POST,
        |_, facts| facts.last.and_then(|last| last.result).map_or("", StoryResult::name).into(),
    ),
    variable("FINISH_TYPE", "how the run ended", FINISHED, |_, facts| facts.finish.map_or("", Finish::name).into()),
    variable("TOTAL_ITERATIONS", "iterations of the run, skipped ones included", FINISHED, |_, facts| number(facts.iteration)),
    variable("TOTAL_COMMITS", "story commits of the run", FINISHED, |_, facts| number(facts.commits)),
    variable("DURATION", "seconds that the run took", FINISHED, |_, facts| facts.active.as_secs().to_string().into()),
];

/// The variables of a script, with their full names.
pub fn variables(script: Script, facts: &Facts<'_>) -> Vec<(String, OsString)> {
    let given = VARIABLES.iter().filter(|variable| variable.scripts.contains(&script));
    given
        .flat_map(|variable| {
            let value = (variable.value)(script, facts);
            PREFIXES.map(|prefix| (format!("{prefix}{}", variable.name), value.clone()))
        })
        .collect()
}

const fn variable(
    name: &'static str,
    meaning: &'static str,
    scripts: &'static [Script],
    value: fn(Script, &Facts<'_>) -> OsString,
) -> Variable {
    Variable { name, meaning, scripts, value }
}

fn number(number: u32) -> OsString {
    number.to_string().into()
}

fn started_at(facts: &Facts<'_>) -> OsString {
    // Whole seconds, so that `date -d` and every timestamp parser can read it.
    facts.started_at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string().into()
}

fn story(script: Script, facts: &Facts<'_>) -> OsString {
    let ended = || facts.last.map(|last| last.story.as_str());
    let story = if script == Script::PostIteration { ended() } else { facts.story };
    // A plan can contain NUL bytes, but an environment variable cannot.
    story.unwrap_or_default().replace('\0', "").into()
}

/// A finished iteration.
#[derive(Debug, Clone, PartialEq)]
pub struct EndedIteration {
    pub story: StoryId,
    /// `None` if it was skipped or did not count.
    pub result: Option<StoryResult>,
    /// The agent's, in its last turn; 0 if it had none.
    pub exit_code: i32,
    pub duration_ms: u64,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::base::id::StoryId;
    use crate::verify::Proof;

    fn given(script: Script) -> BTreeMap<String, String> {
        let last = EndedIteration {
            story: StoryId("US-1\0".to_owned()),
            result: Some(StoryResult::done(Proof::Untested)),
            exit_code: 124,
            duration_ms: 2_999,
        };
        let facts = Facts {
            mode: "building",
            iteration: 3,
            max_iterations: 0,
            project_dir: OsStr::new("/p"),
            log_dir: OsStr::new("/p/.verdone/runs/r"),
            plan_file: OsStr::new("/p/PLAN.md"),
            spec_dir: OsStr::new("/p/specs"),
            started_at: "2026-01-31T12:00:00.75Z".parse().unwrap(),
            active: Duration::from_millis(60_750),
            story: Some("US-2"),
            last: Some(&last),
            commits: 2,
            finish: Some(Finish::MaxIterations),
        };
        let text = |(name, value): (String, OsString)| (name, value.into_string().unwrap());
        variables(script, &facts).into_iter().map(text).collect()
    }

    /// Name, value, and the initials of the scripts that get it.
    const EXPECTED: [(&str, &str, &str); 18] = [
        ("MODE", "building", "snpf"),
        ("ITERATION", "3", "npf"),
        ("MAX_ITERATIONS", "0", "snpf"),
        ("PROJECT_DIR", "/p", "snpf"),
        ("LOG_DIR", "/p/.verdone/runs/r", "snpf"),
        ("STARTED_AT", "2026-01-31T12:00:00Z", "snpf"),
        ("PLAN_FILE", "/p/PLAN.md", "s"),
        ("SPEC_DIR", "/p/specs", "s"),
        ("LAST_EXIT_CODE", "124", "np"),
        ("LAST_DURATION", "2", "np"),
        ("COMMITS_MADE", "2", "np"),
        ("STORY", "US-2", "n"),
        ("STORY", "US-1", "p"),
        ("VERDICT", "untested", "p"),
        ("FINISH_TYPE", "max_iterations", "f"),
        ("TOTAL_ITERATIONS", "3", "f"),
        ("TOTAL_COMMITS", "2", "f"),
        ("DURATION", "60", "f"),
    ];

    #[test]
    fn each_script_gets_its_variables_under_both_prefixes_and_no_others() {
        for (script, letter) in Script::ALL.into_iter().zip(['s', 'n', 'p', 'f']) {
            let expected: BTreeMap<String, String> = EXPECTED
                .iter()
                .filter(|(_, _, scripts)| scripts.contains(letter))
                .flat_map(|(name, value, _)| PREFIXES.map(|prefix| (format!("{prefix}{name}"), (*value).to_owned())))
                .collect();
            assert_eq!(given(script), expected, "{}", script.name());
        }
    }
}
