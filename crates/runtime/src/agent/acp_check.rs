//! Checks, without contacting a service, whether a client that speaks ACP can be started.

use std::path::Path;
use std::time::Duration;

use verdone_core::agent::acp::{AcpAgent, ClientVersion, Profile, version_advice};
use verdone_core::base::sanitise::sanitise_line;
use verdone_core::check::CommandSpec;

use crate::base::finding::Finding;
use crate::process::{Exit, SpawnError, missing_program, probe};

/// Allows for a cold start of a large program on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);
const NAME: &str = "agent";

pub(super) fn check_acp(profile: &Profile, config: &AcpAgent, root: &Path) -> Finding {
    if profile.is_unknown() {
        return check_own(config.command.as_ref(), root);
    }
    let name = profile.kind.name();
    let program = match &config.command {
        Some(CommandSpec::Shell(program)) => program.as_str(),
        Some(CommandSpec::Argv(words)) => words.first().map_or("", String::as_str),
        None => profile.program,
    };
    let install =
        profile.package.map_or_else(String::new, |package| format!("npm install -g {}@{}, ", package.npm, package.tested));
    let hint = format!("{install}or set agent.{name}.command to its path");
    let bad = |message: String| Finding::bad(NAME, message, [hint.as_str()]);
    match probe(vec![program.into(), "--version".into()], root, PATIENCE) {
        Ok(ended) if ended.exit == Exit::Code(0) => match ClientVersion::find(&ended.output.text) {
            Some(version) => usable(profile, version),
            None => bad(format!("{program} --version printed no version")),
        },
        Ok(ended) => {
            let said = sanitise_line(ended.output.tail(200).lines().next_back().unwrap_or_default());
            bad(format!("{program} --version failed: {said}"))
        }
        Err(SpawnError::NotFound { program }) => bad(format!("{program}: no such program")),
        Err(error) => bad(error.to_string()),
    }
}

fn usable(profile: &Profile, version: ClientVersion) -> Finding {
    match version_advice(profile, version) {
        Some((message, hint)) => Finding { hints: vec![hint], ..Finding::warning(NAME, message) },
        None => Finding::good(NAME, format!("{} {version}, guard: {}", profile.title, profile.level.guard)),
    }
}

/// An unknown client: only whether its program exists can be known.
fn check_own(command: Option<&CommandSpec>, root: &Path) -> Finding {
    let Some(command) = command.filter(|command| !command.is_empty()) else {
        return Finding::bad(NAME, "the agent acp has no command", ["set agent.acp.command"]);
    };
    match missing_program(command, root) {
        Some(program) => Finding::bad(NAME, format!("{program}: no such program"), ["install it, or correct agent.acp.command"]),
        None => Finding::good(NAME, format!("{} (over ACP, guard: unknown)", command.display())),
    }
}
