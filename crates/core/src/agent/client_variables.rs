//! Environment variables of agents' clients.

/// The client sets this for the commands of a session.
pub const SESSION_VARIABLE: &str = "CLAUDE_CODE_SESSION_ID";
/// Set for every process inside a session.
pub const INSIDE_VARIABLE: &str = "CLAUDECODE";
/// The client sets this to the project's folder.
pub const PROJECT_VARIABLE: &str = "CLAUDE_PROJECT_DIR";

/// Logins of agents, which checks do not need.
pub const LOGIN_VARIABLES: [&str; 8] = [
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CODEX_API_KEY",
    "COPILOT_GITHUB_TOKEN",
    "COPILOT_PROVIDER_API_KEY",
    "CURSOR_API_KEY",
    "GEMINI_API_KEY",
];

/// Variables of an outer session are removed, except these: they say who pays, where the login is, and that nonessential traffic is
/// disabled.
const KEPT: [&str; 6] = [
    "CLAUDE_CONFIG_DIR",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_FOUNDRY",
    "CLAUDE_CODE_USE_VERTEX",
];

/// Whether a variable belongs to an outer session, so that a child must not inherit it.
pub fn is_of_outer_session(name: &str) -> bool {
    name == "AI_AGENT" || (name.starts_with("CLAUDE") && !KEPT.contains(&name))
}

/// A cloud provider through which the client can log in.
#[derive(Debug, PartialEq, Eq)]
pub struct Cloud {
    pub name: &'static str,
    /// The variable that selects this provider.
    pub switch: &'static str,
    /// Patterns of variables with its credentials.
    pub variables: &'static [&'static str],
    /// Its credentials below HOME.
    pub folder: &'static str,
}

pub const CLOUDS: [Cloud; 3] = [
    Cloud { name: "Amazon Bedrock", switch: "CLAUDE_CODE_USE_BEDROCK", variables: &["AWS_*"], folder: ".aws" },
    Cloud {
        name: "Google Vertex AI",
        switch: "CLAUDE_CODE_USE_VERTEX",
        variables: &["GOOGLE_APPLICATION_CREDENTIALS", "CLOUDSDK_*", "GCP_*"],
        folder: ".config/gcloud",
    },
    Cloud { name: "Microsoft Foundry", switch: "CLAUDE_CODE_USE_FOUNDRY", variables: &["AZURE_*"], folder: ".azure" },
];
