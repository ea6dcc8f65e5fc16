//! The environment inside: without variables that let a process act as the user elsewhere, and with those that tools need in a
//! view.

use std::ffi::OsString;

use verdone_core::agent::client_files::{CLIENT_STATE, CODEX_FOLDER_VARIABLE};
use verdone_core::agent::client_variables::{CLOUDS, Cloud, LOGIN_VARIABLES};

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

pub(super) fn has_variable(cloud: &Cloud, name: &str) -> bool {
    cloud.variables.iter().any(|pattern| fits(pattern, name))
}

/// The cloud provider that the agent's client uses.
pub(super) fn cloud_of_client(draft: &Draft<'_>) -> Option<&'static Cloud> {
    let agent = draft.request.agent.filter(|_| draft.request.kind == ViewKind::Agent)?;
    let set = |name: &str| draft.system.variable(name).is_some_and(|value| value != "0" && value != "false");
    CLOUDS.iter().find(|cloud| agent.kind.name() == CLIENT_STATE.program && set(cloud.switch))
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
        let by_agent = request.kind != ViewKind::Agent && LOGIN_VARIABLES.contains(&name);
        let listed = [&SESSION[..], &TOKENS, &ENGINES].into_iter().flatten().any(|pattern| fits(pattern, name));
        let needed = cloud.is_some_and(|cloud| has_variable(cloud, name));
        (listed || by_agent) && !needed && !request.seal.keeps_variable(name)
    };
    let mut names: Vec<OsString> = draft.system.environment.iter().map(|(name, _)| name.clone()).collect();
    names.sort();
    names.dedup();
    plan.unset.extend(names.into_iter().filter(|name| name.to_str().is_some_and(dropped)));
    if let Some(cloud) = cloud {
        draft.note(format!("The agent is logged in through {}, so it can see those credentials.", cloud.name));
    }
    if let Some(copy) = &draft.client_home {
        plan = plan.with(CLIENT_STATE.folder_variable, copy.as_os_str());
    }
    if let Some(copy) = &draft.codex_home {
        plan = plan.with(CODEX_FOLDER_VARIABLE, copy.as_os_str());
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
