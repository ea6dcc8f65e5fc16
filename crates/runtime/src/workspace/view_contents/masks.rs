//! Hides credentials, sockets through which a process could act outside, and the runtime folder of the user's session. A missing
//! path cannot be hidden and does not have to be.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use verdone_core::agent::client_files::{CLIENT_STATE, CODEX_FOLDER_VARIABLE, CODEX_LOGIN, KNOWN_CLIENTS};
use verdone_core::agent::client_variables::CLOUDS;

use super::ViewKind;
use super::draft::Draft;
use super::environment::{cloud_of_client, has_variable};
use super::system::listed;
use crate::launcher::Mount;
use crate::workspace::paths::expand;

/// Below HOME. `.config` also stands for `XDG_CONFIG_HOME`.
const CREDENTIALS: [&str; 54] = [
    ".ssh",
    ".gnupg",
    ".netrc",
    ".git-credentials",
    ".config/git/credentials",
    ".config/gh",
    ".config/hub",
    ".config/glab-cli",
    // Registries.
    ".npmrc",
    ".yarnrc.yml",
    ".pypirc",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".gem/credentials",
    ".composer/auth.json",
    ".config/composer/auth.json",
    ".m2/settings.xml",
    ".m2/settings-security.xml",
    ".gradle/gradle.properties",
    ".nuget/NuGet/NuGet.Config",
    ".bundle/config",
    ".cache/huggingface/token",
    ".docker/config.json",
    ".config/containers/auth.json",
    // Clouds and clusters.
    ".aws",
    ".azure",
    ".config/gcloud",
    ".kube",
    ".oci",
    ".fly",
    ".config/doctl",
    ".config/netlify",
    ".config/.wrangler",
    ".local/share/com.vercel.cli",
    ".databrickscfg",
    ".terraformrc",
    ".terraform.d/credentials.tfrc.json",
    ".s3cfg",
    ".boto",
    ".vault-token",
    ".pgpass",
    ".my.cnf",
    // Password and key stores.
    ".password-store",
    ".local/share/keyrings",
    ".local/share/kwalletd",
    ".config/keepassxc",
    ".config/op",
    ".config/sops",
    ".config/rclone",
    ".config/1Password",
    ".Xauthority",
    // Shell histories.
    ".bash_history",
    ".zsh_history",
    ".local/share/fish/fish_history",
];

/// Browser profiles contain cookies and passwords.
const BROWSERS: [&str; 12] = [
    ".mozilla",
    ".thunderbird",
    ".config/google-chrome",
    ".config/chromium",
    ".config/BraveSoftware",
    ".config/microsoft-edge",
    ".config/vivaldi",
    ".config/opera",
    ".cache/mozilla",
    ".cache/google-chrome",
    "snap/firefox",
    "snap/chromium",
];

/// Container engines, below HOME and elsewhere. A process that reaches one can do anything outside.
const ENGINES_AT_HOME: [&str; 5] = [".docker/run", ".docker/desktop", ".colima", ".rd", ".lima"];
const ENGINES: [&str; 12] = [
    "/run/docker.sock",
    "/var/run/docker.sock",
    "/run/podman",
    "/run/containerd",
    "/run/docker",
    "/run/crio",
    "/run/buildkit",
    "/run/libvirt",
    "/run/incus",
    "/var/lib/incus/unix.socket",
    "/var/lib/lxd/unix.socket",
    "/var/snap/lxd/common/lxd/unix.socket",
];

/// The runtime folders of users: session bus, keyring, ssh and gpg agents, rootless container engines.
const RUNTIME: &str = "/run/user";

/// Where build tools look for their daemons. A daemon outside would build in the user's checkout; a new one inside must be able
/// to write here.
const DAEMONS: [&str; 5] =
    [".gradle/daemon", ".m2/mvnd/registry", ".kotlin/daemon", ".local/share/kotlin/daemon", ".local/state/watchman"];

/// Variables with the path of a credentials file or folder, or of a socket; colons separate several paths.
const NAMED: [&str; 12] = [
    "SSH_AUTH_SOCK",
    "GNUPGHOME",
    "KUBECONFIG",
    "AWS_SHARED_CREDENTIALS_FILE",
    "AWS_CONFIG_FILE",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "CLOUDSDK_CONFIG",
    "AZURE_CONFIG_DIR",
    "GH_CONFIG_DIR",
    "PASSWORD_STORE_DIR",
    "NPM_CONFIG_USERCONFIG",
    "XAUTHORITY",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    /// Empty and read-only.
    Mask,
    /// Empty and writable, for tools that start over.
    Empty,
}

/// Hides everything except what the settings show.
pub(super) fn hide(draft: &mut Draft<'_>) {
    if draft.request.kind == ViewKind::Script {
        return;
    }
    let mut all: BTreeMap<PathBuf, How> = BTreeMap::new();
    for (path, how) in by_default(draft) {
        for place in places(draft, &path).into_iter().filter(|place| !is_shown(draft, &path) && !is_shown(draft, place)) {
            all.entry(place).or_insert(how);
        }
    }
    for place in by_settings(draft) {
        all.insert(place, How::Mask);
    }
    let shown: Vec<PathBuf> = shown(draft).iter().filter_map(|path| fs::canonicalize(path).ok()).collect();
    let mut last: Option<PathBuf> = None;
    for (path, how) in all {
        if last.as_ref().is_some_and(|last| path.starts_with(last)) {
            continue;
        }
        let inside: Vec<&PathBuf> = shown.iter().filter(|shown| shown.starts_with(&path) && **shown != path).collect();
        match how {
            How::Mask if inside.is_empty() => draft.mounts.push(Mount::Mask { at: path.clone() }),
            // Something in it should be visible; the rest is empty.
            How::Mask | How::Empty => draft.mounts.push(Mount::Scratch { at: path.clone() }),
        }
        for shown in inside {
            draft.bind(shown, shown, false);
        }
        last = Some(path);
    }
}

fn by_default(draft: &Draft<'_>) -> Vec<(PathBuf, How)> {
    let system = draft.system;
    let mut all: Vec<(PathBuf, How)> = Vec::new();
    let mask = |path: PathBuf| (path, How::Mask);
    if let Some(home) = &system.home {
        let config = system.path_variable("XDG_CONFIG_HOME");
        let below = |name: &str| {
            let moved = config.as_ref().and_then(|config| Some(config.join(name.strip_prefix(".config/")?)));
            [Some(home.join(name)), moved].into_iter().flatten()
        };
        let cloud = cloud_of_client(draft);
        let clouds = CLOUDS.iter().filter(|other| Some(other.name) == cloud.map(|cloud| cloud.name)).map(|cloud| cloud.folder);
        let needed: Vec<&str> = clouds.collect();
        all.extend(CREDENTIALS.iter().filter(|name| !needed.contains(*name)).flat_map(|name| below(name)).map(mask));
        all.extend(BROWSERS.iter().chain(&ENGINES_AT_HOME).flat_map(|name| below(name)).map(mask));
        all.extend(DAEMONS.iter().map(|name| (home.join(name), How::Empty)));
        let others = KNOWN_CLIENTS.iter().filter(|client| !is_in_use(draft, client.program));
        all.extend(others.flat_map(|client| client.logins).flat_map(|name| below(name)).map(mask));
    }
    if !is_in_use(draft, CLIENT_STATE.program) {
        all.extend(system.path_variable(CLIENT_STATE.folder_variable).map(|folder| mask(folder.join(CLIENT_STATE.login))));
    }
    if !is_in_use(draft, "codex") {
        all.extend(system.path_variable(CODEX_FOLDER_VARIABLE).map(|folder| mask(folder.join(CODEX_LOGIN))));
    }
    if let Some(cargo) = system.path_variable("CARGO_HOME") {
        all.extend(["credentials", "credentials.toml"].map(|name| mask(cargo.join(name))));
    }
    all.extend(system.path_variable("DOCKER_CONFIG").map(|folder| mask(folder.join("config.json"))));
    all.extend(ENGINES.iter().map(|path| mask(PathBuf::from(path))));
    all.push(mask(PathBuf::from(RUNTIME)));
    all.extend(system.path_variable("XDG_RUNTIME_DIR").map(mask));
    let needed = |name: &str| cloud_of_client(draft).is_some_and(|cloud| has_variable(cloud, name));
    let named = NAMED.iter().filter(|name| !needed(name)).filter_map(|name| system.variable(name)).flat_map(listed);
    all.extend(named.map(mask));
    if let Some(engine) = system.variable("DOCKER_HOST").and_then(|host| host.as_bytes().strip_prefix(b"unix://")) {
        all.push(mask(PathBuf::from(std::ffi::OsStr::from_bytes(engine))));
    }
    all
}

/// Whether the agent of this view is that client, or a command that contains its name.
pub(super) fn is_in_use(draft: &Draft<'_>, program: &str) -> bool {
    let Some(agent) = draft.request.agent.filter(|_| draft.request.kind == ViewKind::Agent) else { return false };
    let words = agent.command.split(|c: char| c.is_whitespace() || "'\";|&()=$`".contains(c));
    agent.kind.program() == Some(program) || words.filter_map(|word| word.rsplit('/').next()).any(|word| word == program)
}

/// Where a path appears in the view, with links resolved. Empty if it does not exist or is already hidden.
fn places(draft: &Draft<'_>, path: &Path) -> Vec<PathBuf> {
    let request = draft.request;
    let Ok(real) = fs::canonicalize(path) else { return Vec::new() };
    if real.parent().is_none() || draft.system.home.as_ref() == Some(&real) || request.checkout.starts_with(&real) {
        return Vec::new();
    }
    if let Ok(below) = real.strip_prefix(request.checkout) {
        // Hiding a committed file does not protect it, and would look as if the agent had emptied it.
        let committed = fs::symlink_metadata(request.tree.files().join(below)).is_ok();
        let hidden = request.kind != ViewKind::Read && !committed;
        return if hidden { places_in_project(draft, below) } else { Vec::new() };
    }
    let at_home = draft.system.home.as_ref().is_some_and(|home| real.starts_with(home));
    if at_home || !draft.is_covered(&real) { vec![real] } else { Vec::new() }
}

/// A path of the project, in the tree and in the checkout, which stays readable if the tree has its own path.
fn places_in_project(draft: &Draft<'_>, below: &Path) -> Vec<PathBuf> {
    let mut tops = vec![draft.request.at, draft.request.checkout];
    tops.dedup();
    tops.into_iter().map(|top| top.join(below)).collect()
}

/// Paths from `seal.hide`. Hiding a path of the project is an explicit request, so it applies even if the path is committed.
fn by_settings(draft: &mut Draft<'_>) -> Vec<PathBuf> {
    let request = draft.request;
    let mut all = Vec::new();
    for text in &request.seal.hide {
        let Some(path) = expand(text, draft.system.home.as_deref(), request.root) else { continue };
        match path.strip_prefix(request.checkout) {
            Ok(_) if request.kind == ViewKind::Read => {}
            Ok(below) => {
                if fs::symlink_metadata(request.tree.files().join(below)).is_ok() {
                    draft.note(format!("{text} in `seal.hide` is committed, so it can still be read with git."));
                }
                all.extend(places_in_project(draft, below));
            }
            Err(_) => match fs::canonicalize(&path) {
                Ok(real) if request.checkout.starts_with(&real) || request.at.starts_with(&real) => {
                    draft.note(format!("{text} in `seal.hide` is not hidden: it contains the project."));
                }
                Ok(real) => all.push(real),
                Err(_) => draft.note(format!("{text} in `seal.hide` does not exist.")),
            },
        }
    }
    all
}

fn shown(draft: &Draft<'_>) -> Vec<PathBuf> {
    let (home, root) = (draft.system.home.as_deref(), draft.request.root);
    draft.request.seal.show.iter().filter_map(|text| expand(text, home, root)).collect()
}

fn is_shown(draft: &Draft<'_>, path: &Path) -> bool {
    shown(draft).iter().any(|shown| path.starts_with(shown) || fs::canonicalize(shown).is_ok_and(|shown| path.starts_with(shown)))
}
