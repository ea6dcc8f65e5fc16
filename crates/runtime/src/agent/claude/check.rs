//! Checks, without contacting a service, whether the client is usable: installed, recent
//! enough, permitted by the settings and with some way to log in.

use std::path::{Path, PathBuf};
use std::time::Duration;

use verdone_core::agent::claude::{BYPASS_WARNING, OLDEST_CLIENT, TESTED_CLIENT, Version, version};
use verdone_core::base::sanitise::sanitise_line;
use verdone_core::base::span::Span;
use verdone_core::config::{ClaudeAgent, ClaudePermission};

use crate::base::finding::Finding;
use crate::process::{Exit, SpawnError, probe};

/// How long the client may take to tell its version. Allows for a cold start of a large program on a busy machine.
pub(crate) const VERSION_TIME: Duration = Duration::from_secs(30);
const NAME: &str = "agent";

const HANGS: &str = "run it by hand to see what it waits for: a network drive, a proxy, or an update";

/// Environment variables that contain a login.
const LOGINS: [&str; 6] = [
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_VERTEX",
    "CLAUDE_CODE_USE_FOUNDRY",
];

pub fn check(config: &ClaudeAgent, root: &Path, version_time: Duration) -> Finding {
    let found = match version_of(config, root, version_time) {
        Ok(found) => found,
        Err(finding) => return *finding,
    };
    if found < OLDEST_CLIENT {
        let message = format!(
            "Claude Code {found} is too old: before {OLDEST_CLIENT}, a failing guard does not deny a call, and one of your allow \
             rules could let it through"
        );
        return Finding::bad(NAME, message, ["claude update"]);
    }
    match config.permission {
        ClaudePermission::Bypass if rustix::process::geteuid().is_root() && std::env::var_os("IS_SANDBOX").is_none() => {
            let hint = "set agent.claude.permission = \"policy\": it needs no bypass";
            return Finding::bad(NAME, "Claude Code refuses to bypass permissions as root", [hint]);
        }
        ClaudePermission::Bypass => return Finding::warning(NAME, BYPASS_WARNING),
        ClaudePermission::Policy | ClaudePermission::AcceptEdits => {}
    }
    if !may_be_logged_in(config) {
        let message = format!("Claude Code {found} does not seem to be logged in");
        return Finding {
            hints: vec!["claude, then /login; or set ANTHROPIC_API_KEY".to_owned()],
            ..Finding::warning(NAME, message)
        };
    }
    if found > TESTED_CLIENT {
        let message =
            format!("Claude Code {found} is newer than {TESTED_CLIENT}, the newest one that this Verdone was tested with");
        return Finding::neutral(NAME, message);
    }
    Finding::good(NAME, format!("Claude Code {found}"))
}

fn version_of(config: &ClaudeAgent, root: &Path, time: Duration) -> Result<Version, Box<Finding>> {
    let bad = |message: String, hint: &str| Err(Box::new(Finding::bad(NAME, message, [hint])));
    let install = "install Claude Code, or set agent.claude.binary to its path";
    match probe(vec![config.binary.clone().into(), "--version".into()], root, time) {
        Ok(ended) if ended.exit == Exit::Code(0) => {
            let Some(found) = version(&ended.output.text) else {
                let said = sanitise_line(ended.output.text.lines().next().unwrap_or_default());
                return bad(format!("{} --version printed no version: {said}", config.binary), install);
            };
            Ok(found)
        }
        Ok(ended) => {
            let last = ended.output.tail(200).lines().next_back().unwrap_or_default().trim();
            let said = if last.is_empty() { String::new() } else { format!(": {}", sanitise_line(last)) };
            let (why, hint) = match ended.exit {
                Exit::Wall => (format!("did not end within {}", Span::from_millis(time.as_millis() as u64)), HANGS),
                Exit::Code(code) => (format!("failed with exit code {code}"), install),
                Exit::Signal(signal) => (format!("was ended by signal {signal}"), install),
                Exit::Terminal => ("wanted to use the terminal".to_owned(), install),
                Exit::Idle | Exit::Interrupted(_) => ("was stopped".to_owned(), install),
            };
            bad(format!("{} --version {why}{said}", config.binary), hint)
        }
        Err(SpawnError::NotFound { program }) => bad(format!("{program}: no such program"), install),
        Err(error) => bad(error.to_string(), install),
    }
}

/// If none of these exists, the first turn will fail. If one exists, it may still have expired.
fn may_be_logged_in(config: &ClaudeAgent) -> bool {
    let set = |name: &&str| config.env.contains_key(*name) || std::env::var_os(name).is_some_and(|value| !value.is_empty());
    if cfg!(target_os = "macos") || LOGINS.iter().any(set) {
        return true;
    }
    let home = std::env::var_os("CLAUDE_CONFIG_DIR").map(PathBuf::from);
    let home = home.or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".claude")));
    home.is_some_and(|home| {
        let helper = std::fs::read_to_string(home.join("settings.json")).is_ok_and(|text| text.contains("apiKeyHelper"));
        helper || home.join(".credentials.json").is_file()
    })
}
