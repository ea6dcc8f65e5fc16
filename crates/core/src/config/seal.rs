//! `[seal]`: what the kernel denies to the processes in a workspace.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::diagnose::{Finding, Step};
use super::host_list::HostList;
use super::workspace::{WorkspacePath, is_everything, not_a_place};
use super::{Config, WorkspaceSettings};

/// What the kernel denies to the processes in a workspace. Credentials, agent sockets and the container socket are hidden by default.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SealSettings {
    /// Refuse to run if this machine cannot enforce the whole seal. If false, the run starts and reports what is missing.
    pub required: bool,
    /// Whether the agent has network access, or the hosts that it can reach: `["api.anthropic.com", "*.example.org:443", "localhost:5432"]`. It
    /// needs to reach its own service.
    pub agent_network: NetworkAccess,
    /// The same for checks.
    pub check_network: NetworkAccess,
    /// Further files and folders to hide: absolute, below `~/`, or relative to the project.
    pub hide: Vec<String>,
    /// Paths to show although they are hidden by default: for example `~/.npmrc`, or a folder that contains it.
    pub show: Vec<String>,
    /// Files and folders below /tmp to show, read-only; otherwise a workspace sees only its own /tmp.
    pub read: Vec<String>,
    /// Variables to keep that are dropped by default, such as `GITHUB_TOKEN`. A `*` at the end matches any suffix.
    pub environment: Vec<String>,
}

/// Which network processes have.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NetworkAccess {
    /// The same network as outside.
    #[default]
    Open,
    /// Only a private loopback: even services on this machine are unreachable.
    Off,
    /// Only these hosts, through a proxy in Verdone, and the listed ports of this machine. A machine that cannot enforce the list refuses to run.
    #[serde(untagged)]
    Hosts(Vec<String>),
}

impl NetworkAccess {
    /// The entries of a list as they are in the settings; otherwise none.
    pub fn entries(&self) -> &[String] {
        match self {
            Self::Open | Self::Off => &[],
            Self::Hosts(entries) => entries,
        }
    }

    /// The hosts of a list. Invalid entries allow nothing, but settings that were read have none.
    pub fn hosts(&self) -> Option<HostList> {
        match self {
            Self::Open | Self::Off => None,
            Self::Hosts(entries) => Some(HostList::parse(entries).unwrap_or_default()),
        }
    }
}

impl SealSettings {
    /// The settings for agents and for checks, with their names.
    pub fn networks(&self) -> [(&'static str, &NetworkAccess); 2] {
        [("agent_network", &self.agent_network), ("check_network", &self.check_network)]
    }

    /// Whether a variable that is dropped by default is kept.
    pub fn keeps_variable(&self, name: &str) -> bool {
        self.environment.iter().any(|kept| match kept.strip_suffix('*') {
            Some(beginning) => name.starts_with(beginning),
            None => name == kept,
        })
    }
}

/// Sockets of container engines, in any folder.
const SOCKET_NAMES: [&str; 6] = ["docker.sock", "podman.sock", "containerd.sock", "crio.sock", "buildkitd.sock", "dockerd.sock"];
/// Folders that contain such sockets, as a user would write them.
const SOCKET_FOLDERS: [&str; 11] = [
    "/run/podman",
    "/run/containerd",
    "/run/crio",
    "/run/buildkit",
    "/run/user",
    "/var/run/podman",
    "/var/run/containerd",
    "~/.docker/run",
    "~/.docker/desktop",
    "~/.colima",
    "~/.rd",
];

/// Whether showing this path shows a container engine's socket.
pub fn shows_container_socket(path: &str) -> bool {
    let path = Path::new(path);
    let by_name = path.file_name().is_some_and(|name| SOCKET_NAMES.iter().any(|socket| name == *socket));
    // `/run/user/1000`, a user's runtime folder.
    let of_a_user = path.parent().is_some_and(|parent| parent == Path::new("/run/user"));
    by_name || of_a_user || SOCKET_FOLDERS.iter().any(|folder| Path::new(folder).starts_with(path))
}

/// The first fault in settings of the right types.
pub(super) fn unusable(seal: &SealSettings) -> Option<Finding> {
    seal.networks().into_iter().find_map(|(name, access)| unusable_hosts(name, access)).or_else(|| unusable_paths(seal))
}

fn unusable_hosts(name: &str, access: &NetworkAccess) -> Option<Finding> {
    let NetworkAccess::Hosts(entries) = access else { return None };
    let (n, problem) = HostList::parse(entries).err()?;
    let mut path = vec![Step::Key("seal".to_owned()), Step::Key(name.to_owned())];
    path.extend(n.map(Step::Index));
    Some(Finding { path, on_key: false, message: problem.message, hint: problem.hint })
}

fn unusable_paths(seal: &SealSettings) -> Option<Finding> {
    for (name, paths) in [("show", &seal.show), ("read", &seal.read)] {
        for (n, path) in paths.iter().enumerate() {
            if let Some(why) = not_a_place(path) {
                return Some(fault(name, n, format!("`{path}` {why}"), None));
            }
            if is_everything(path) {
                return Some(fault(name, n, format!("`{path}` is too broad: list single files or folders"), None));
            }
        }
    }
    for (n, path) in seal.hide.iter().enumerate() {
        let relative = !path.starts_with(['/', '~']);
        let whole = is_everything(path) || matches!(path.trim_end_matches('/'), "." | "..");
        let leads_out = Path::new(path).components().any(|part| part == std::path::Component::ParentDir);
        if whole || path.contains('\0') || leads_out || (!relative && not_a_place(path).is_some()) {
            return Some(fault("hide", n, format!("`{path}` cannot be hidden: name a file or a folder, without `..`"), None));
        }
    }
    for (n, name) in seal.environment.iter().enumerate() {
        let plain = name.strip_suffix('*').unwrap_or(name);
        if plain.is_empty() || plain.contains(['=', '\0', '*']) {
            let hint = (name == "*").then(|| "name the variables that are needed".to_owned());
            return Some(fault("environment", n, format!("{name:?} is not a variable name"), hint));
        }
    }
    None
}

/// Settings that contradict each other. Only the combined layers show it: one may show the socket, and another choose the path.
pub(super) fn contradiction(config: &Config) -> Option<Finding> {
    let WorkspaceSettings { path, .. } = &config.workspace;
    let n = config.seal.show.iter().position(|path| shows_container_socket(path)).filter(|_| *path == WorkspacePath::Same)?;
    let message = format!("`{}` exposes the container socket, which needs `workspace.path = \"own\"`", config.seal.show[n]);
    let hint = "the engine runs outside the workspace: at the same path it would use the files of your checkout".to_owned();
    Some(fault("show", n, message, Some(hint)))
}

fn fault(name: &str, n: usize, message: String, hint: Option<String>) -> Finding {
    let path = vec![Step::Key("seal".to_owned()), Step::Key(name.to_owned()), Step::Index(n)];
    Finding { path, on_key: false, message, hint }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Layer, Origin, config_of_one_file, resolve};

    #[test]
    fn every_setting_is_read() {
        let text = "[seal]\nrequired = true\nagent_network = \"open\"\ncheck_network = \"off\"\nhide = [\"secrets\", \"/srv/keys\"]\n\
                    show = [\"~/.npmrc\"]\nread = [\"/tmp/toolchain\"]\nenvironment = [\"GITHUB_TOKEN\", \"AWS_*\"]\n";
        let seal = config_of_one_file("c.toml", text).unwrap().seal;
        assert_eq!(seal.agent_network.hosts(), None);
        assert!(seal.required);
        assert_eq!((&seal.agent_network, &seal.check_network), (&NetworkAccess::Open, &NetworkAccess::Off));
        assert_eq!((seal.hide.len(), seal.show.len(), seal.read.len()), (2, 1, 1));
        for (name, kept) in
            [("GITHUB_TOKEN", true), ("AWS_SECRET_ACCESS_KEY", true), ("GH_TOKEN", false), ("GITHUB_TOKEN_2", false)]
        {
            assert_eq!(seal.keeps_variable(name), kept, "{name}");
        }
        assert!(!config_of_one_file("c.toml", "").unwrap().seal.required);
    }

    #[test]
    fn a_network_is_a_word_or_a_list_of_hosts() {
        let text =
            "[seal]\nagent_network = [\"api.anthropic.com\", \"*.example.org:443\"]\ncheck_network = [\"localhost:5432\"]\n";
        let seal = config_of_one_file("c.toml", text).unwrap().seal;
        let NetworkAccess::Hosts(hosts) = &seal.agent_network else { panic!("{seal:?}") };
        assert_eq!(hosts, &["api.anthropic.com", "*.example.org:443"]);
        assert_eq!(seal.check_network.hosts().unwrap().local_ports(), [5432]);
        let again: SealSettings = toml::from_str(&toml::to_string(&seal).unwrap()).unwrap();
        assert_eq!(again, seal);
    }

    #[test]
    fn settings_that_cannot_work_are_faults_of_their_line() {
        for (keys, said) in [
            ("show = [\".npmrc\"]", "c.toml:2:9: `.npmrc` must be absolute or start with `~/`"),
            ("show = [\"~\"]", "c.toml:2:9: `~` is too broad"),
            ("read = [\"/tmp/../etc\"]", "c.toml:2:9: `/tmp/../etc` cannot contain `..`"),
            ("hide = [\"a\", \"../b\"]", "c.toml:2:14: `../b` cannot be hidden"),
            ("hide = [\"/\"]", "c.toml:2:9: `/` cannot be hidden"),
            ("hide = [\"~other/x\"]", "c.toml:2:9: `~other/x` cannot be hidden"),
            ("environment = [\"*\"]", "c.toml:2:16: \"*\" is not a variable name"),
            ("environment = [\"A=B\"]", "c.toml:2:16: \"A=B\" is not a variable name"),
            (
                "agent_network = \"closed\"",
                "c.toml:2:17: `seal.agent_network` cannot be \"closed\", expected one of \"open\", \"off\", or a list",
            ),
            ("agent_network = 1", "c.toml:2:17: `seal.agent_network` must be one of \"open\", \"off\", or a list, not"),
            ("agent_network = [\"a.org\", 1]", "c.toml:2:27: `seal.agent_network[1]` must be a string"),
            ("agent_network = []", "c.toml:2:17: the list of hosts is empty"),
            ("check_network = [\"a.org\", \"https://b.org\"]", "c.toml:2:27: `https://b.org` is a URL"),
            ("check_network = [\"*.org\"]", "c.toml:2:18: `*.org` is too broad"),
            ("check_network = [\"a.org:70000\"]", "c.toml:2:18: `70000` in `a.org:70000` is not a port"),
            ("requird = true", "c.toml:2:1: unknown key `requird` in `seal`"),
        ] {
            let problem = config_of_one_file("c.toml", &format!("[seal]\n{keys}\n")).unwrap_err().to_string();
            assert!(problem.starts_with(said), "{problem}\n{keys}");
        }
    }

    #[test]
    fn paths_that_show_a_container_socket_are_known() {
        for (path, shows) in [
            ("/var/run/docker.sock", true),
            ("/run/user/1000/docker.sock", true),
            ("/run/user/1000", true),
            ("/run/user", true),
            ("/run", true),
            ("/var/run", true),
            ("~/.docker", true),
            ("~/.docker/config.json", false),
            ("/run/user/1000/bus", false),
            ("~/.npmrc", false),
            ("~/.config/gh", false),
        ] {
            assert_eq!(shows_container_socket(path), shows, "{path}");
        }
    }

    #[test]
    fn the_container_socket_needs_a_path_of_its_own_whichever_layer_says_so() {
        let show = "[seal]\nshow = [\"~/.npmrc\", \"/var/run/docker.sock\"]\n";
        let problem = resolve(&[Layer::from_toml("c.toml", show).unwrap()]).unwrap_err();
        let said = "c.toml:2:21: `/var/run/docker.sock` exposes the container socket, which needs `workspace.path = \"own\"`";
        assert_eq!(problem.to_string(), said);
        assert!(problem.hint.unwrap().contains("files of your checkout"));
        let own = Layer::value(Origin::Flag("--x".to_owned()), "workspace.path", "own");
        let both = resolve(&[Layer::from_toml("c.toml", show).unwrap(), own]).unwrap();
        assert_eq!(both.config.seal.show.len(), 2);
    }
}
