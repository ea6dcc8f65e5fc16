//! How a client that speaks ACP is started.

use std::path::Path;

use super::{Acp, AcpAgent, Profile};
use crate::agent::pipe_client::{PipeClient, PipeLaunch};
use crate::check::CommandSpec;

/// The client for sessions in `cwd`.
pub fn client(profile: &'static Profile, config: &AcpAgent, cwd: &Path) -> PipeClient {
    let own = profile.variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let set = config.env.iter().map(|(name, value)| (name.clone(), value.clone())).chain(own).collect();
    PipeClient {
        launch: PipeLaunch { title: profile.title, argv: argv(profile, config), set, unset: vec!["AI_AGENT"] },
        protocol: Box::new(Acp::new(profile, &cwd.to_string_lossy())),
    }
}

/// The command line. Empty if the settings of an unknown client have no command.
pub(super) fn argv(profile: &Profile, config: &AcpAgent) -> Vec<String> {
    let mut argv = match &config.command {
        Some(CommandSpec::Argv(words)) => words.clone(),
        Some(CommandSpec::Shell(text)) if profile.is_unknown() => {
            return ["/bin/sh", "-c", text].map(str::to_owned).to_vec();
        }
        Some(CommandSpec::Shell(program)) => vec![program.clone()],
        None if profile.is_unknown() => return Vec::new(),
        None => vec![profile.program.to_owned()],
    };
    argv.extend(profile.arguments.iter().map(|word| (*word).to_owned()));
    if let (Some(option), Some(model)) = (profile.model_option, &config.model) {
        argv.extend([option.to_owned(), model.clone()]);
    }
    argv.extend(config.args.iter().cloned());
    argv
}

#[cfg(test)]
mod tests {
    use super::super::profiles;
    use super::*;
    use crate::agent::AgentKind;

    fn joined_words(kind: AgentKind, config: &AcpAgent) -> String {
        let profile = super::super::profile_of(kind).unwrap();
        argv(profile, config).join(" ")
    }

    #[test]
    fn clients_are_started_as_they_were_observed() {
        let plain = AcpAgent::default();
        for (kind, expected) in [
            (AgentKind::Gemini, "gemini --acp"),
            (AgentKind::Opencode, "opencode acp"),
            (AgentKind::Copilot, "copilot --acp --no-auto-update"),
            (AgentKind::Qwen, "qwen --acp"),
            (AgentKind::Acp, ""),
        ] {
            assert_eq!(joined_words(kind, &plain), expected);
        }
    }

    #[test]
    fn settings_name_another_program_a_model_and_more_arguments() {
        let config = AcpAgent {
            command: Some(CommandSpec::Shell("/opt/gemini".to_owned())),
            model: Some("pro".to_owned()),
            args: vec!["--debug".to_owned()],
            ..AcpAgent::default()
        };
        assert_eq!(joined_words(AgentKind::Gemini, &config), "/opt/gemini --acp --model pro --debug");
        let config = AcpAgent { command: Some(CommandSpec::Shell("my-agent --acp".to_owned())), ..AcpAgent::default() };
        assert_eq!(joined_words(AgentKind::Acp, &config), "/bin/sh -c my-agent --acp");
    }

    #[test]
    fn a_users_variable_cannot_silence_the_clients_questions() {
        for profile in profiles() {
            let config = AcpAgent {
                env: profile.variables.iter().map(|(name, _)| ((*name).to_owned(), "{}".to_owned())).collect(),
                ..AcpAgent::default()
            };
            let set = client(profile, &config, Path::new("/repo")).launch.set;
            for (name, value) in profile.variables {
                let last = set.iter().rfind(|(set, _)| set == name);
                assert_eq!(last.map(|(_, value)| value.as_str()), Some(*value), "{name}");
            }
        }
    }
}
