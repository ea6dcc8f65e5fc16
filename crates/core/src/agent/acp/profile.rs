//! What is known about each client, as one table. Every entry was observed with the tested version of the client.
//!
//! No client can resume a session in another run: they keep sessions in HOME, which is copy-on-write in a workspace.

use crate::agent::{AgentKind, ContextLevel, CostLevel, GuardLevel, Level};

/// One client that speaks ACP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Profile {
    pub kind: AgentKind,
    /// The name for people.
    pub title: &'static str,
    /// The program to look for in PATH. Empty: the settings have a whole command.
    pub program: &'static str,
    pub arguments: &'static [&'static str],
    /// The option that selects a model.
    pub model_option: Option<&'static str>,
    /// Variables that make the client ask before it acts, and keep it quiet otherwise.
    pub variables: &'static [(&'static str, &'static str)],
    /// The permission mode in which the client asks. Sessions are put into it, and leaving it ends the turn.
    pub mode: Option<&'static str>,
    /// Whether the title of an `execute` call is the whole command, because the client sends no `rawInput`.
    pub command_in_title: bool,
    pub names: ToolNames,
    pub tokens: TokenCount,
    pub failure: FailureSign,
    pub on_denial: OnDenial,
    /// The prompt that makes the client summarise its conversation.
    pub compact: Option<&'static str>,
    pub package: Option<Package>,
    /// The hosts of its default service.
    pub hosts: &'static [&'static str],
    pub level: Level,
}

/// Where the name of a called tool is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolNames {
    /// In `name` or `_meta.toolName`, if anywhere. The title is the model's own description.
    InMeta,
    /// The first title of the call.
    FirstTitle,
    /// The beginning of the call's id, before `__`.
    BeforeId,
}

/// How the client counts tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenCount {
    /// `usage` of the answer to a prompt covers that prompt.
    PerTurn,
    /// `usage` covers only the last request of several, so the number for a turn is unknown.
    LastRequest,
    /// `usage` covers the session so far.
    Session,
    /// `_meta.usage` of message chunks, one for each request.
    PerMessage,
    /// `_meta.quota.token_count` of the answer.
    Quota,
    Unknown,
}

/// How a failure of the model's API shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureSign {
    /// The prompt is answered with an error.
    Error,
    /// The turn ends as if all were well, without token counts, and the last message has the error.
    NoTokens,
}

/// What follows a denied call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnDenial {
    TurnGoesOn,
    /// The client ends the turn, so it is continued with a prompt that has the reason.
    EndsTurn,
    /// Unknown: the turn ended because of it if nothing followed.
    Unknown,
}

/// The package that installs the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Package {
    /// The name in the npm registry.
    pub npm: &'static str,
    /// The version that Verdone's tests use.
    pub tested: &'static str,
    /// The oldest Node that the tested version starts with. npm installs an old version of the client on an older Node without a word.
    pub node: Option<u32>,
}

const GEMINI: Profile = Profile {
    kind: AgentKind::Gemini,
    title: "Gemini CLI",
    program: "gemini",
    arguments: &["--acp"],
    model_option: Some("--model"),
    // Without it, the program starts a second one of itself, which takes twice as long.
    variables: &[("GEMINI_CLI_NO_RELAUNCH", "true")],
    mode: Some("default"),
    command_in_title: true,
    names: ToolNames::BeforeId,
    tokens: TokenCount::Quota,
    failure: FailureSign::Error,
    on_denial: OnDenial::TurnGoesOn,
    compact: None,
    package: Some(Package { npm: "@google/gemini-cli", tested: "0.61.0", node: Some(20) }),
    hosts: &[
        "generativelanguage.googleapis.com",
        "cloudcode-pa.googleapis.com",
        "oauth2.googleapis.com",
        "accounts.google.com",
        "play.googleapis.com",
    ],
    level: Level {
        guard: GuardLevel::Writes,
        context: ContextLevel::Unknown,
        cost: CostLevel::Unknown,
        resume: false,
        stop_hook: false,
    },
};

const OPENCODE: Profile = Profile {
    kind: AgentKind::Opencode,
    title: "opencode",
    program: "opencode",
    arguments: &["acp"],
    model_option: None,
    // Without this, reading and many commands run unasked.
    variables: &[
        ("OPENCODE_PERMISSION", r#"{"*":"ask"}"#),
        ("OPENCODE_DISABLE_AUTOUPDATE", "true"),
        ("OPENCODE_DISABLE_SHARE", "true"),
    ],
    mode: None,
    command_in_title: false,
    names: ToolNames::FirstTitle,
    tokens: TokenCount::LastRequest,
    failure: FailureSign::Error,
    on_denial: OnDenial::EndsTurn,
    compact: Some("/compact"),
    package: Some(Package { npm: "opencode-ai", tested: "1.18.33", node: None }),
    hosts: &["opencode.ai", "models.dev"],
    level: Level {
        guard: GuardLevel::EveryCall,
        context: ContextLevel::Measured,
        cost: CostLevel::Measured,
        resume: false,
        stop_hook: false,
    },
};

const COPILOT: Profile = Profile {
    kind: AgentKind::Copilot,
    title: "GitHub Copilot CLI",
    program: "copilot",
    arguments: &["--acp", "--no-auto-update"],
    model_option: Some("--model"),
    variables: &[],
    mode: None,
    command_in_title: false,
    names: ToolNames::InMeta,
    tokens: TokenCount::Session,
    failure: FailureSign::NoTokens,
    on_denial: OnDenial::EndsTurn,
    compact: Some("/compact"),
    package: Some(Package { npm: "@github/copilot", tested: "1.0.102", node: None }),
    hosts: &["api.githubcopilot.com", "api.individual.githubcopilot.com", "api.business.githubcopilot.com", "api.github.com"],
    level: Level {
        guard: GuardLevel::Writes,
        context: ContextLevel::Estimated,
        cost: CostLevel::Unknown,
        resume: false,
        stop_hook: false,
    },
};

const QWEN: Profile = Profile {
    kind: AgentKind::Qwen,
    title: "Qwen Code",
    program: "qwen",
    arguments: &["--acp"],
    model_option: Some("--model"),
    variables: &[],
    // In its own default, "auto", a model approves calls.
    mode: Some("default"),
    command_in_title: false,
    names: ToolNames::InMeta,
    tokens: TokenCount::PerMessage,
    failure: FailureSign::Error,
    on_denial: OnDenial::EndsTurn,
    compact: None,
    package: Some(Package { npm: "@qwen-code/qwen-code", tested: "0.24.4", node: Some(22) }),
    hosts: &["chat.qwen.ai", "portal.qwen.ai", "dashscope.aliyuncs.com", "dashscope-intl.aliyuncs.com"],
    level: Level {
        guard: GuardLevel::Writes,
        context: ContextLevel::Measured,
        cost: CostLevel::Unknown,
        resume: false,
        stop_hook: false,
    },
};

/// An unknown client: nothing is known, so nothing is claimed.
const OTHER: Profile = Profile {
    kind: AgentKind::Acp,
    title: "the ACP agent",
    program: "",
    arguments: &[],
    model_option: None,
    variables: &[],
    mode: None,
    command_in_title: false,
    names: ToolNames::InMeta,
    tokens: TokenCount::Unknown,
    failure: FailureSign::Error,
    on_denial: OnDenial::Unknown,
    compact: None,
    package: None,
    hosts: &[],
    level: Level::BLIND,
};

const PROFILES: [&Profile; 5] = [&GEMINI, &OPENCODE, &COPILOT, &QWEN, &OTHER];

/// All profiles, the unknown client last.
pub fn profiles() -> impl Iterator<Item = &'static Profile> {
    PROFILES.into_iter()
}

/// The profile of an agent that speaks ACP.
pub fn profile_of(kind: AgentKind) -> Option<&'static Profile> {
    profiles().find(|profile| profile.kind == kind)
}

impl Profile {
    /// Whether this is a client that Verdone knows nothing about.
    pub fn is_unknown(&self) -> bool {
        self.program.is_empty()
    }
}
