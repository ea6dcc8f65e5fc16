//! Conditions for starting a run. `run` refuses on the first one that is not met; `doctor` lists all of them.

use std::collections::BTreeSet;
use std::path::Path;

use verdone_core::base::id::StoryId;
use verdone_core::base::plural::plural;
use verdone_core::check::{Check, CommandSpec};
use verdone_core::config::Config;
use verdone_core::done::{Approval, DoneSettings, JudgeChoice, KnownBeforeWork, PlanFact, best_case, stated_complexity};
use verdone_plan::{Plan, Status};
use verdone_text::shell_word::shell_word;

use crate::agent::check_judge;
use crate::base::fault;
use crate::base::finding::{FIRST_COMMIT, Finding, Health};
use crate::base::text::listed;
use crate::git::{Git, GitError, Kind, Status as GitStatus};
use crate::process::{RUN_VARIABLE, missing_program};

/// The minimum of free disk space. With less, a run would fail midway.
const ROOM: u64 = 200 * 1024 * 1024;

/// At most this many files are named in the hint.
const FEW: usize = 3;

/// The agent or a check of a run must not start another run: they would wait for each other or share an agent's budget.
pub fn nested() -> Option<Finding> {
    let outer = std::env::var_os(RUN_VARIABLE)?;
    let message = format!("already inside run {}", outer.to_string_lossy());
    let hint = format!("wait until it ends; if it has ended, unset {RUN_VARIABLE}");
    Some(Finding::bad("run", message, [&hint]))
}

/// Checks the repository: an identity for commits and space for workspaces. Uncommitted
/// work or an operation in progress never blocks a run.
pub fn repository(
    git: &Git,
    status: &GitStatus,
    identity: Result<String, GitError>,
    ours: &dyn Fn(&Path) -> bool,
) -> Vec<Finding> {
    let mut findings = vec![checkout(status, ours)];
    findings.push(match identity {
        Ok(identity) => Finding::good("identity", identity),
        Err(error) => Finding::bad(
            "identity",
            error.to_string(),
            ["git config user.name \"Your Name\"", "git config user.email you@example.com"],
        ),
    });
    findings.push(room(git.top()));
    findings
}

/// There is no commit that a run could start from.
pub fn no_commit() -> Finding {
    Finding::bad("checkout", "the repository has no commit yet", [FIRST_COMMIT])
}

/// A run starts from a commit, so uncommitted changes are not part of it.
fn checkout(status: &GitStatus, ours: &dyn Fn(&Path) -> bool) -> Finding {
    if status.head.is_none() {
        return no_commit();
    }
    let files = status.entries.iter().filter(|entry| !matches!(entry.kind, Kind::Ignored));
    let files: Vec<_> = files.filter(|entry| !ours(entry.path.as_path())).collect();
    let names: Vec<String> = files.iter().map(|entry| entry.path.to_string()).collect();
    if names.is_empty() {
        return Finding::good("checkout", "nothing uncommitted");
    }
    let what = if files.iter().all(|entry| matches!(entry.kind, Kind::Untracked)) {
        plural(names.len(), "untracked file is", "untracked files are")
    } else {
        plural(names.len(), "uncommitted file is", "uncommitted files are")
    };
    let mut finding = Finding::warning("checkout", format!("{what} not part of the run: {}", listed(&names)));
    let them = if names.len() == 1 { "it" } else { "them" };
    let files = match names.len() {
        1..=FEW => format!("-- {}", names.iter().map(|name| shell_word(name)).collect::<Vec<_>>().join(" ")),
        _ => "FILE…".to_owned(),
    };
    finding.hints.push(format!("to include {them}: git add {files} && git commit"));
    finding
}

/// Required filters whose program is missing. Empty if no file needs them.
pub fn filters(git: &Git, root: &Path) -> Result<Vec<Finding>, GitError> {
    let mut findings = Vec::new();
    for filter in git.required_filters()? {
        let commands = filter.commands.iter().map(|command| CommandSpec::Shell(command.clone()));
        let missing = commands.into_iter().find_map(|command| missing_program(&command, root));
        if let Some(program) = missing
            && git.uses_filter(&filter.name)?
        {
            let message = format!("files here need the filter {:?}, but {program} is not installed", filter.name);
            let hint = format!("install {program}, or check git config filter.{}.required", filter.name);
            findings.push(Finding::bad("filters", message, [&hint]));
        }
    }
    Ok(findings)
}

fn room(top: &Path) -> Finding {
    match rustix::fs::statvfs(top) {
        Ok(stat) => {
            let free = stat.f_bavail.saturating_mul(stat.f_frsize);
            let message = format!("{} MB free", free / 1024 / 1024);
            if free < ROOM && !fault::any_room() {
                return Finding::bad("disk", message, ["free some space: a run needs at least 200 MB"]);
            }
            Finding::good("disk", message)
        }
        Err(error) => Finding::warning("disk", format!("free space is unknown: {error}")),
    }
}

/// Which agent would be asked to refute the work, and the possible cost. `None` if the judge is disabled.
pub fn judge(config: &Config, root: &Path) -> Option<Finding> {
    let done = &config.done;
    if !done.judge.enabled {
        return None;
    }
    let Some(from) = done.judges_from() else {
        let mut finding = Finding::warning("judge", "a judge is enabled, but no condition requires it");
        finding.hints.push("add \"adversarial_passed\" to `require` under [done], or set enabled = false".to_owned());
        return Some(finding);
    };
    let when = format!("asked to refute stories of complexity {from} or more");
    Some(match JudgeChoice::from_settings(&done.judge, &config.agent) {
        JudgeChoice::Nobody { why } => Finding::bad("judge", why, ["or set enabled = false in [done.judge]"]),
        JudgeChoice::Command { command, .. } => match missing_program(command, root) {
            Some(program) => Finding::bad("judge", format!("{program}: no such program"), ["check `command` in [done.judge]"]),
            None => Finding::good("judge", format!("{} is {when}; its cost is not counted", command.display())),
        },
        JudgeChoice::Client(kind) => {
            let most = match done.judge.cost_usd.limit() {
                Some(_) => format!("at most {} per answer, counted in limits.cost_usd", done.judge.cost_usd),
                None => "counted in limits.cost_usd".to_owned(),
            };
            let message = format!("{} is {when}, in a separate session; each answer costs money: {most}", kind.title());
            // The run's agent has already been checked.
            let found = (config.agent.name != kind).then(|| check_judge(kind, config, root));
            match found.filter(|found| found.health > Health::Neutral) {
                Some(trouble) => Finding { what: "judge", ..trouble },
                None => Finding::good("judge", message),
            }
        }
    })
}

/// How CI would be asked. `None` if no condition needs it.
pub fn ci(config: &Config, root: &Path) -> Option<Finding> {
    let command = config.done.ci.command.as_ref().filter(|_| config.done.wants_ci())?;
    Some(match missing_program(command, root) {
        Some(program) => Finding::bad("ci", format!("{program}: no such program"), ["check `command` in [done.ci]"]),
        None => Finding::good("ci", format!("{} is asked about each story before it is done", command.display())),
    })
}

/// Whether every open story has something to check it with.
pub fn checks<'a>(
    plan: &Plan,
    gates: &[Check],
    own: impl Fn(&StoryId) -> &'a [Check],
    unchecked: bool,
    root: &Path,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    let open = || plan.stories.iter().filter(|story| story.status != Status::Done);
    for gate in gates {
        if let Some(program) = missing_program(&gate.command, root) {
            let message = format!("{program} is not installed (needed by gate {:?})", gate.name);
            findings.push(Finding::bad("checks", message, ["install it, or correct the gate in .verdone/config.toml"]));
        }
    }
    let advisory = gates.iter().filter(|gate| gate.terms.advisory).count();
    let bare: Vec<&str> =
        open().filter(|story| gates.len() == advisory && own(&story.id).is_empty()).map(|story| story.id.as_str()).collect();
    if bare.is_empty() {
        let message = match gates.len() - advisory {
            0 => "every open story has its own check".to_owned(),
            1 => "1 gate for every story".to_owned(),
            many => format!("{many} gates for every story"),
        };
        findings.extend(findings.is_empty().then(|| Finding::good("checks", message)));
    } else if unchecked {
        findings.push(Finding::warning("checks", format!("no check for {}: kept as unchecked", listed(&bare))));
    } else {
        findings.push(Finding::bad(
            "checks",
            format!("no check for {}", listed(&bare)),
            [
                "add --check 'CMD', or a [[gate]] to .verdone/config.toml (verdone init proposes some)",
                "or add a Verification line with a command in backticks to the story",
                "or continue without proof: --unchecked",
            ],
        ));
    }
    findings
}

/// The properties of a story that its conditions depend on.
#[derive(Debug, Clone, Copy)]
pub struct Conditioned<'a> {
    /// `None` without a plan.
    pub story: Option<&'a StoryId>,
    /// As given in the plan.
    pub complexity: Option<u8>,
    pub has_own_checks: bool,
}

/// Required conditions that can never be evaluated, one per line, for the first story that has some. `stages` are the stages with a gate.
pub fn never_known<'a>(
    done: &DoneSettings,
    stages: &[String],
    stories: impl IntoIterator<Item = Conditioned<'a>>,
) -> Vec<String> {
    let mut asked = BTreeSet::new();
    for Conditioned { story, complexity, has_own_checks } in stories {
        let complexity = stated_complexity(done, complexity).value;
        if !asked.insert((complexity, has_own_checks)) {
            continue;
        }
        let (name, questions) = (String::new(), Vec::new());
        let plan = PlanFact::Found { name, approval: Approval::Approved, complexity: Some(complexity), questions };
        let unknown = best_case(done, KnownBeforeWork { plan, has_own_checks, stages }).unknown();
        if !unknown.is_empty() {
            let of = story.map(|story| format!(" (story {story})")).unwrap_or_default();
            return unknown.into_iter().map(|line| format!("{line}{of}")).collect();
        }
    }
    Vec::new()
}

/// Conditions that cannot be met, whatever the agent does. `who` is a run or a loop.
pub fn conditions(who: &str, open: &[String]) -> Option<Finding> {
    let first = open.first()?;
    let mut finding = Finding::bad("conditions", format!("a {who} cannot meet [done] here: {first}"), []);
    finding.hints.extend(open[1..].iter().cloned());
    finding.hints.push("or require less under [done] in .verdone/config.toml".to_owned());
    Some(finding)
}
