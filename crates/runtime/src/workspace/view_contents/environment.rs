//! The environment inside: without variables that let a process act as the user elsewhere, and with those that tools need in a
//! view.

use std::ffi::OsString;

use super::ViewKind;
use super::draft::Draft;
use crate::process::EnvPlan;
use crate::workspace::state::compose_project;

/// Sockets, buses and password prompts of the user's session, by name or prefix.
const SESSION: [&str; 16] = [
    "SSH_AUTH_SOCK",
    "SSH_AGENT_PID",
    "SSH_ASKPASS",
    "GIT_ASKPASS",
    "SUDO_ASKPASS",
    "GPG_AGENT_INFO",
    "GNUPGHOME",
    "GNOME_KEYRING_CONTROL",
    "DBUS_SESSION_BUS_ADDRESS",
    "XDG_RUNTIME_DIR",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "KRB5CCNAME",
    "VSCODE_*",
    "TMUX",
];

/// Clouds, clusters, registries and forges.
const TOKENS: [&str; 50] = [
    "AWS_*",
    "AZURE_*",
    "ARM_CLIENT_*",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "GOOGLE_CREDENTIALS",
    "GCP_*",
    "CLOUDSDK_*",
    "KUBECONFIG",
    "DIGITALOCEAN_*",
    "HCLOUD_TOKEN",
    "LINODE_TOKEN",
    "CLOUDFLARE_API_*",
    "CF_API_*",
    "HEROKU_API_KEY",
    "FLY_*_TOKEN",
    "FLY_API_TOKEN",
    "VERCEL_TOKEN",
    "NETLIFY_AUTH_TOKEN",
    "DATABRICKS_TOKEN",
    "PULUMI_ACCESS_TOKEN",
    "TF_TOKEN_*",
    "TFE_TOKEN",
    "VAULT_TOKEN",
    "CONSUL_HTTP_TOKEN",
    "NOMAD_TOKEN",
    "OP_SERVICE_ACCOUNT_TOKEN",
    "OP_SESSION_*",
    "BW_SESSION",
    "SOPS_AGE_KEY*",
    "GITHUB_TOKEN",
    "GH_TOKEN",
    "GH_ENTERPRISE_TOKEN",
    "GITHUB_PAT",
    "GITLAB_TOKEN",
    "CI_JOB_TOKEN",
    "BITBUCKET_*",
    "GITEA_TOKEN",
    "NPM_TOKEN",
    "NODE_AUTH_TOKEN",
    "YARN_NPM_AUTH_TOKEN",
    "CARGO_REGISTRY_TOKEN",
    "CARGO_REGISTRIES_*",
    "TWINE_PASSWORD",
    "PYPI_TOKEN",
    "UV_PUBLISH_TOKEN",
    "POETRY_PYPI_TOKEN_*",
    "GEM_HOST_API_KEY",
    "COMPOSER_AUTH",
    "SENTRY_AUTH_TOKEN",
    "SLACK_BOT_TOKEN",
];

/// Container engines outside.
const ENGINES: [&str; 5] = ["DOCKER_HOST", "DOCKER_AUTH_CONFIG", "DOCKER_CERT_PATH", "CONTAINER_HOST", "BUILDKIT_HOST"];

/// Logins of agents, which checks do not need.
const AGENTS: [&str; 5] =
    ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "CODEX_API_KEY", "CURSOR_API_KEY"];

/// A cloud provider through which the client can log in.
#[derive(Debug)]
pub(super) struct Cloud {
    pub(super) name: &'static str,
    /// The variable that selects this provider.
    switch: &'static str,
    variables: &'static [&'static str],
    /// Its credentials below HOME.
    pub(super) folder: &'static str,
}

pub(super) const CLOUDS: [Cloud; 3] = [
    Cloud { name: "Amazon Bedrock", switch: "CLAUDE_CODE_USE_BEDROCK", variables: &["AWS_*"], folder: ".aws" },
    Cloud {
        name: "Google Vertex AI",
        switch: "CLAUDE_CODE_USE_VERTEX",
        variables: &["GOOGLE_APPLICATION_CREDENTIALS", "CLOUDSDK_*", "GCP_*"],
        folder: ".config/gcloud",
    },
    Cloud { name: "Microsoft Foundry", switch: "CLAUDE_CODE_USE_FOUNDRY", variables: &["AZURE_*"], folder: ".azure" },
];

impl Cloud {
    pub(super) fn has_variable(&self, name: &str) -> bool {
        self.variables.iter().any(|pattern| fits(pattern, name))
    }
}

/// The cloud provider that the agent's client uses.
pub(super) fn cloud_of_client(draft: &Draft<'_>) -> Option<&'static Cloud> {
    let agent = draft.request.agent.filter(|_| draft.request.kind == ViewKind::Agent)?;
    let set = |name: &str| draft.system.variable(name).is_some_and(|value| value != "0" && value != "false");
    CLOUDS.iter().find(|cloud| agent.name == "claude" && set(cloud.switch))
}

pub(super) fn plan(draft: &mut Draft<'_>) -> EnvPlan {
    let request = draft.request;
    let mut plan = EnvPlan::default().with("TMPDIR", draft.temp_inside.as_os_str()).with("GIT_DISCOVERY_ACROSS_FILESYSTEM", "1");
    for name in ["TMP", "TEMP", "TEMPDIR"].into_iter().filter(|name| draft.system.variable(name).is_some()) {
        plan = plan.without(name);
    }
    if request.kind == ViewKind::Script {
        return plan;
    }
    let cloud = cloud_of_client(draft);
    let dropped = |name: &str| {
        let by_agent = request.kind != ViewKind::Agent && AGENTS.contains(&name);
        let listed = [&SESSION[..], &TOKENS, &ENGINES].into_iter().flatten().any(|pattern| fits(pattern, name));
        let needed = cloud.is_some_and(|cloud| cloud.has_variable(name));
        (listed || by_agent) && !needed && !request.seal.keeps_variable(name)
    };
    let mut names: Vec<OsString> = draft.system.environment.iter().map(|(name, _)| name.clone()).collect();
    names.sort();
    names.dedup();
    plan.unset.extend(names.into_iter().filter(|name| name.to_str().is_some_and(dropped)));
    if let Some(cloud) = cloud {
        draft.note(format!("Claude Code is logged in through {}, so the agent can see those credentials.", cloud.name));
    }
    if let Some(copy) = &draft.client_home {
        plan = plan.with("CLAUDE_CONFIG_DIR", copy.as_os_str());
    }
    unsigned(draft, plan)
        .with("VERDONE_PORT_BASE", request.port_base.to_string())
        .with("COMPOSE_PROJECT_NAME", compose_project(request.name))
}

/// Disables signing, because the keys are hidden and signing a commit would fail. Keeps settings that the user passes in
/// variables.
fn unsigned(draft: &Draft<'_>, mut plan: EnvPlan) -> EnvPlan {
    let count = draft.system.variable("GIT_CONFIG_COUNT").and_then(|count| count.to_str()?.parse::<u32>().ok()).unwrap_or(0);
    let count = if count > 1_000 { 0 } else { count };
    for (n, key) in (count..).zip(["commit.gpgSign", "tag.gpgSign"]) {
        plan = plan.with(format!("GIT_CONFIG_KEY_{n}"), key).with(format!("GIT_CONFIG_VALUE_{n}"), "false");
    }
    plan.with("GIT_CONFIG_COUNT", (count + 2).to_string())
}

/// Whether a name matches. `*` stands for any characters and may occur once.
fn fits(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        Some((begin, end)) => name.len() >= begin.len() + end.len() && name.starts_with(begin) && name.ends_with(end),
        None => name == pattern,
    }
}
