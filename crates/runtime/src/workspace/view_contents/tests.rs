mod environment;
mod folders;
mod hidden;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use verdone_core::config::{FolderMode, HomeMode};

use super::*;

/// A home with a project in it, a state folder and a shared temporary folder, independent of the real system.
struct World {
    _dir: tempfile::TempDir,
    root: PathBuf,
    system: System,
    workspace: WorkspaceSettings,
    seal: SealSettings,
    abilities: Abilities,
    ignored: Vec<IgnoredEntry>,
    modules: Vec<Module>,
    agent: AgentInUse,
    /// Layers of build folders from earlier checks.
    kept: BTreeMap<PathBuf, PathBuf>,
    cold: bool,
    hidden: Vec<PathBuf>,
    shown: Option<PathBuf>,
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        for folder in ["home/project/.verdone/runs/r1", "home/.local/state/verdone/w", "tmp", "tree/.git", "objects"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        let system = System { home: Some(root.join("home")), temp: vec![root.join("tmp")], ..System::default() };
        Self {
            _dir: dir,
            root,
            system,
            workspace: WorkspaceSettings::default(),
            seal: SealSettings::default(),
            abilities: Abilities { mounts: true, overlay: true },
            ignored: Vec::new(),
            modules: Vec::new(),
            agent: AgentInUse { kind: AgentKind::Claude, ..AgentInUse::default() },
            kept: BTreeMap::new(),
            cold: false,
            hidden: Vec::new(),
            shown: None,
        }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// The client's name for the project.
    fn project_key(&self) -> String {
        self.at("home/project").display().to_string().replace(|c: char| !c.is_ascii_alphanumeric(), "-")
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        fs::create_dir_all(self.at(name).parent().unwrap()).unwrap();
        fs::write(self.at(name), bytes).unwrap();
    }

    /// An ignored folder of the checkout with a file in it.
    fn ignored_folder(&mut self, name: &str) {
        self.write(&format!("home/project/{name}/file"), b"x");
        self.ignored.push(IgnoredEntry { path: name.into(), is_folder: true });
    }

    fn ignored_file(&mut self, name: &str, size: usize) {
        self.write(&format!("home/project/{name}"), &vec![b'x'; size]);
        self.ignored.push(IgnoredEntry { path: name.into(), is_folder: false });
    }

    fn set(&mut self, name: &str, value: impl Into<OsString>) {
        self.system.environment.push((name.into(), value.into()));
    }

    fn build(&self, kind: ViewKind) -> Visible {
        let tree = match kind {
            ViewKind::Agent => Tree::Writable(self.at("tree")),
            ViewKind::Check => {
                let scratch = self.at("home/.local/state/verdone/w");
                Tree::Overlay { lower: self.at("tree"), built: None, upper: scratch.join("upper"), work: scratch.join("work") }
            }
            ViewKind::Read | ViewKind::Script => Tree::ReadOnly(self.at("tree")),
        };
        self.build_with(kind, tree, &self.at("home/project"))
    }

    fn build_with(&self, kind: ViewKind, tree: Tree, at: &Path) -> Visible {
        let checkout = self.at("home/project");
        let request = ViewRequest {
            kind,
            name: "r1-1",
            port_base: 12_300,
            checkout: &checkout,
            root: &checkout,
            at,
            tree,
            objects: &[self.at("objects"), self.at("home")],
            modules: &self.modules,
            ignored: &self.ignored,
            build_folders: if self.cold { BuildFolders::Absent } else { BuildFolders::Kept(&self.kept) },
            hidden: Hidden { all: &self.hidden, shown: self.shown.as_deref() },
            scratch: &self.at("home/.local/state/verdone/w"),
            state: &self.at("home/.local/state/verdone"),
            agent: Some(&self.agent),
            run_dir: Some(&self.at("home/project/.verdone/runs/r1")),
            workspace: &self.workspace,
            seal: &self.seal,
            abilities: self.abilities,
        };
        build(&request, &self.system)
    }

    /// The mounts in one line each, with paths relative to this world.
    fn lines(&self, visible: &Visible) -> Vec<String> {
        let short = |path: &Path| {
            path.strip_prefix(&self.root).map_or_else(|_| path.display().to_string(), |path| path.display().to_string())
        };
        let line = |mount: &Mount| match mount {
            Mount::Bind { from, at, write } => {
                let arrow = if *write { "=>" } else { "->" };
                if from == at { format!("{arrow} {}", short(at)) } else { format!("{} {arrow} {}", short(from), short(at)) }
            }
            Mount::Overlay { lower, at, .. } => {
                if lower[..] == [at.clone()] {
                    format!("overlay {}", short(at))
                } else {
                    let lower: Vec<String> = lower.iter().map(|folder| short(folder)).collect();
                    format!("overlay {} at {}", lower.join(", "), short(at))
                }
            }
            Mount::Scratch { at } => format!("scratch {}", short(at)),
            Mount::Mask { at } => format!("mask {}", short(at)),
        };
        visible.plan.mounts.iter().map(line).collect()
    }
}

fn unset(visible: &Visible) -> Vec<&str> {
    visible.env.unset.iter().map(|name| name.to_str().unwrap()).collect()
}

fn set(visible: &Visible) -> BTreeMap<&str, &str> {
    visible.env.set.iter().map(|(name, value)| (name.to_str().unwrap(), value.to_str().unwrap())).collect()
}

#[test]
fn an_agent_sees_everything_in_the_order_that_works() {
    let mut world = World::new();
    world.ignored_folder("node_modules");
    world.ignored_folder("web/node_modules");
    world.ignored_folder(".verdone/runs");
    world.ignored_folder("sub/.verdone/runs");
    world.ignored_file(".env", 10);
    world.write("home/.ssh/id", b"key");
    world.write("home/.npmrc", b"token");
    world.write("home/.claude/.credentials.json", b"{}");
    world.write("home/.codex/auth.json", b"{}");
    world.write("home/.gradle/daemon/8/registry.bin", b"x");
    let visible = world.build(ViewKind::Agent);
    let key = world.project_key();
    let run = "home/project/.verdone/runs/r1";
    let own = "home/.local/state/verdone";
    // Paths that the real system has to hide come in between.
    let mut lines = world.lines(&visible);
    lines.retain(|line| !line.starts_with("mask /"));
    assert_eq!(
        lines,
        [
            &format!("{own}/w/temp/0 => tmp"),
            "scratch /dev/shm",
            "overlay home",
            &format!("=> home/.claude/projects/{key}"),
            &format!("overlay home/.claude/projects/{key}/memory"),
            "tree => home/project",
            "objects -> home/project/.git/base-objects",
            "home -> home/project/.git/base-objects-2",
            "overlay home/project/node_modules",
            "overlay home/project/web/node_modules",
            &format!("=> {run}/sessions"),
            &format!("-> {run}/turns"),
            &format!("-> {run}/tools"),
            "mask home/.codex/auth.json",
            "scratch home/.gradle/daemon",
            "mask home/.npmrc",
            "mask home/.ssh",
            &format!("mask {own}"),
        ]
    );
    assert_eq!(visible.plan.network, Network::Open);
    assert_eq!(visible.notes, Vec::<String>::new());
    assert_eq!(visible.mount_points, ["node_modules", "web/node_modules"].map(PathBuf::from));
    assert_eq!(set(&visible)["TMPDIR"], world.at("tmp").to_str().unwrap());
    visible.preparation.carry_out().unwrap();
    for folder in ["tree/web/node_modules", "tree/.git/base-objects", "tree/.verdone/runs/r1/sessions", "home/.claude/projects"] {
        assert!(world.at(folder).is_dir(), "{folder}");
    }
    assert_eq!(fs::read(world.at("tree/.env")).unwrap(), b"xxxxxxxxxx");
    assert_eq!(fs::metadata(world.at(own).join("w/temp/0")).unwrap().permissions().mode() & 0o7777, 0o1777);
    // Every upper layer and work folder exists. A second view starts with the same layers and fresh work folders.
    for mount in &visible.plan.mounts {
        let Mount::Overlay { upper, work, .. } = mount else { continue };
        assert!(upper.is_dir() && work.is_dir());
        fs::write(upper.join("written"), "").unwrap();
        fs::create_dir(work.join("work")).unwrap();
    }
    fs::write(world.at("tree/.env"), "by the agent").unwrap();
    let again = world.build(ViewKind::Agent);
    assert_eq!(again.plan, visible.plan);
    again.preparation.carry_out().unwrap();
    for mount in &again.plan.mounts {
        let Mount::Overlay { upper, work, .. } = mount else { continue };
        assert!(upper.join("written").exists() && fs::read_dir(work).unwrap().next().is_none());
    }
    assert_eq!(fs::read_to_string(world.at("tree/.env")).unwrap(), "by the agent");
    let credentials = again.credentials.unwrap();
    assert_eq!(credentials.own, world.at("home/.claude/.credentials.json"));
    assert!(credentials.written.ends_with("upper/.claude/.credentials.json") && credentials.written.starts_with(world.at(own)));
    assert!(credentials.answers.unwrap().0.ends_with("upper/.claude.json"));
}

#[test]
fn a_check_sees_no_login_of_an_agent_and_nothing_of_the_run() {
    let mut world = World::new();
    world.seal.check_network = NetworkAccess::Off;
    world.ignored_file("deep/.env", 3);
    world.write("home/.claude/.credentials.json", b"{}");
    for name in ["ANTHROPIC_API_KEY", "PATH"] {
        world.set(name, "x");
    }
    let visible = world.build(ViewKind::Check);
    let lines = world.lines(&visible);
    assert!(lines.contains(&"overlay tree at home/project".to_owned()), "{lines:#?}");
    assert!(lines.contains(&"mask home/.claude/.credentials.json".to_owned()), "{lines:#?}");
    assert!(!lines.iter().any(|line| line.contains("runs/") || line.contains("projects")), "{lines:#?}");
    assert_eq!(visible.plan.network, Network::Off);
    assert_eq!(unset(&visible), ["ANTHROPIC_API_KEY"]);
    assert!(visible.credentials.is_none());
    visible.preparation.carry_out().unwrap();
    assert!(world.at("home/.local/state/verdone/w/upper/deep/.env").exists(), "copied into the layer, not into the tree");
    assert!(!world.at("tree/deep").exists());
}

#[test]
fn git_that_reads_a_tree_has_no_network_no_dependencies_and_sees_every_file() {
    let mut world = World::new();
    world.ignored_folder("node_modules");
    world.write("tree/secret", b"committed");
    world.write("home/project/secret", b"committed");
    world.write("home/.ssh/id", b"key");
    world.seal.hide = vec!["secret".to_owned()];
    let visible = world.build(ViewKind::Read);
    let mut lines = world.lines(&visible);
    lines.retain(|line| !line.starts_with("mask /"));
    let expected = [
        "home/.local/state/verdone/w/temp/0 => tmp",
        "scratch /dev/shm",
        "scratch home/.local/state/verdone",
        "tree -> home/project",
        "objects -> home/project/.git/base-objects",
        "home -> home/project/.git/base-objects-2",
        "mask home/.ssh",
    ];
    assert_eq!(lines, expected);
    assert_eq!(visible.plan.network, Network::Off);
    let hidden = world.build(ViewKind::Agent);
    assert!(world.lines(&hidden).contains(&"mask home/project/secret".to_owned()));
    assert_eq!(hidden.notes, ["secret in `seal.hide` is committed, so it can still be read with git."]);
}

#[test]
fn a_lifecycle_script_is_not_sealed_and_cannot_write_the_projects_files() {
    let mut world = World::new();
    world.system.roots = vec![world.at("home"), PathBuf::from("/dev/shm")];
    world.write("home/.ssh/id", b"key");
    world.ignored_folder("node_modules");
    world.set("GITHUB_TOKEN", "x");
    let visible = world.build(ViewKind::Script);
    let expected = [
        "=> home",
        "=> /dev/shm",
        "=> home/.local/state/verdone/w/temp/own",
        "tree -> home/project",
        "objects -> home/project/.git/base-objects",
        "home -> home/project/.git/base-objects-2",
        "-> home/project/node_modules",
        "=> home/project/.verdone",
    ];
    assert_eq!(world.lines(&visible), expected);
    assert_eq!((&visible.plan.network, unset(&visible).len()), (&Network::Open, 0));
    assert_eq!(set(&visible)["TMPDIR"], world.at("home/.local/state/verdone/w/temp/own").to_str().unwrap());
    visible.preparation.carry_out().unwrap();
    assert!(world.at("tree/.verdone").is_dir() && world.at("tree/node_modules").is_dir());
}

#[test]
fn without_mounts_everything_is_at_its_own_place() {
    let mut world = World::new();
    world.abilities = Abilities { mounts: false, overlay: false };
    world.ignored_folder("node_modules");
    world.ignored_file(".env", 3);
    world.write("home/.claude/.credentials.json", b"{}");
    world.write("home/.claude.json", b"{}");
    let tree = world.at("tree");
    let visible = world.build_with(ViewKind::Agent, Tree::Writable(tree.clone()), &tree);
    for mount in &visible.plan.mounts {
        match mount {
            Mount::Bind { from, at, .. } => assert_eq!(from, at),
            Mount::Mask { .. } => {}
            Mount::Overlay { .. } | Mount::Scratch { .. } => panic!("{mount:?}"),
        }
    }
    visible.preparation.carry_out().unwrap();
    let copy = world.at("home/.local/state/verdone/w/client");
    assert_eq!(set(&visible)["CLAUDE_CONFIG_DIR"], copy.to_str().unwrap());
    assert!(copy.join(".credentials.json").exists() && copy.join(".claude.json").exists());
    assert_eq!(fs::read_link(copy.join("projects")).unwrap(), world.at("home/.claude/projects"));
    let writable = |path: &str| written_at(&visible.plan.mounts, &world.at("home/.claude/projects").join(path)).is_some();
    let key: String = tree.display().to_string().replace(|c: char| !c.is_ascii_alphanumeric(), "-");
    assert!(writable(&format!("{key}/session.jsonl")) && !writable("other/session.jsonl") && !writable("other"));
    assert!(tree.join("node_modules/file").exists() && tree.join(".env").exists());
    assert_eq!(visible.credentials.as_ref().unwrap().written, copy.join(".credentials.json"));
    assert!(visible.notes[0].contains("no private views"), "{:#?}", visible.notes);
    let again = world.build_with(ViewKind::Agent, Tree::Writable(tree.clone()), &tree);
    again.preparation.carry_out().unwrap();
    assert_eq!(again.notes, visible.notes);
}

#[test]
fn a_mount_below_home_makes_its_entries_come_one_by_one() {
    let mut world = World::new();
    world.write("home/.bashrc", b"rc");
    world.write("home/.large", &vec![0; 2 << 20]);
    world.write("home/disk/mounted/file", b"x");
    symlink(".bashrc", world.at("home/.profile")).unwrap();
    world.system.mounts = vec![world.at("home/disk/mounted")];
    world.agent.kind = AgentKind::Command;
    let visible = world.build(ViewKind::Agent);
    let lines = world.lines(&visible);
    let own = "home/.local/state/verdone/w";
    let expected =
        [&format!("{own}/home => home"), "-> home/.large", "overlay home/.local", "-> home/disk", "overlay home/project"];
    assert_eq!(lines[2..7], expected.map(str::to_owned));
    assert!(visible.notes[0].contains("something is mounted below it"), "{:#?}", visible.notes);
    visible.preparation.carry_out().unwrap();
    assert_eq!(fs::read(world.at(own).join("home/.bashrc")).unwrap(), b"rc");
    assert_eq!(fs::read_link(world.at(own).join("home/.profile")).unwrap(), Path::new(".bashrc"));
}

#[test]
fn what_lies_below_the_shared_temporary_folder_stays_visible() {
    let mut world = World::new();
    for folder in ["tmp/home/project", "tmp/bin", "tmp/home/bin", "tmp/data", "tmp/secret"] {
        fs::create_dir_all(world.at(folder)).unwrap();
    }
    world.write("tmp/tools/verdone", b"program");
    symlink(world.at("tmp/bin"), world.at("linked-bin")).unwrap();
    world.system.program = Some(world.at("tmp/tools/verdone"));
    let path = [world.at("linked-bin"), world.at("tmp/home/bin"), world.at("tmp/absent"), PathBuf::from("/usr/bin")];
    world.set("PATH", std::env::join_paths(path).unwrap());
    world.seal.read = vec![world.at("tmp/data").display().to_string(), world.at("tmp/missing").display().to_string()];
    world.system.home = Some(world.at("tmp/home"));
    let visible = world.build(ViewKind::Agent);
    let lines = world.lines(&visible);
    assert_eq!(lines[2..6], ["-> tmp/bin", "-> tmp/tools/verdone", "-> tmp/data", "overlay tmp/home"].map(str::to_owned));
    assert_eq!(visible.notes.len(), 1, "{:#?}", visible.notes);
    world.workspace.home = HomeMode::ReadOnly;
    assert!(world.lines(&world.build(ViewKind::Check)).contains(&"-> tmp/home".to_owned()));
    world.system.temp = vec![world.at("home/project")];
    let visible = world.build(ViewKind::Check);
    assert!(visible.notes.iter().any(|note| note.contains("is the project itself")), "{:#?}", visible.notes);
    assert_eq!(set(&visible)["TMPDIR"], "/dev/shm");
}

#[test]
fn a_path_of_its_own_keeps_the_checkout_readable_and_the_state_folder_empty() {
    let mut world = World::new();
    fs::create_dir_all(world.at("home/project/.verdone/cache")).unwrap();
    let own = world.at("home/.local/state/verdone/w/tree");
    fs::create_dir_all(own.join(".git")).unwrap();
    world.workspace.writable = vec!["~/cache".to_owned(), "~/.local".to_owned(), "~/none".to_owned()];
    fs::create_dir(world.at("home/cache")).unwrap();
    let visible = world.build_with(ViewKind::Check, Tree::Writable(own.clone()), &own);
    let mut lines = world.lines(&visible);
    lines.retain(|line| !line.starts_with("mask /"));
    let expected = [
        "home/.local/state/verdone/w/temp/0 => tmp",
        "scratch /dev/shm",
        "overlay home",
        "=> home/cache",
        "scratch home/.local/state/verdone",
        "-> home/project",
        "mask home/project/.verdone/cache",
        "mask home/project/.verdone/runs",
        "=> home/.local/state/verdone/w/tree",
        "objects -> home/.local/state/verdone/w/tree/.git/base-objects",
        "home -> home/.local/state/verdone/w/tree/.git/base-objects-2",
    ];
    assert_eq!(lines, expected);
    assert_eq!(visible.notes.len(), 2, "{:#?}", visible.notes);
}

#[test]
fn small_files_are_copied_and_large_ones_are_named() {
    let mut world = World::new();
    world.workspace.copy_file_bytes = 100;
    world.workspace.copy_total_bytes = 151;
    for (name, size) in [("a", 100), ("b", 101), ("c", 60), ("d", 50)] {
        world.ignored_file(name, size);
    }
    world.write("outside", b"not to be written");
    world.ignored_file("trap", 1);
    symlink(world.at("outside"), world.at("tree/trap")).unwrap();
    world.ignored_file("folder/file", 1);
    symlink(world.at("home"), world.at("tree/folder")).unwrap();
    let visible = world.build(ViewKind::Agent);
    let said = "Too large to be copied into the workspace: b, c (`workspace.copy_file_bytes` and `copy_total_bytes`).";
    assert_eq!(visible.notes, [said]);
    let notes = visible.preparation.carry_out().unwrap();
    assert_eq!(notes.len(), 1, "{notes:#?}");
    for (name, there) in [("a", true), ("b", false), ("c", false), ("d", true)] {
        assert_eq!(world.at("tree").join(name).exists(), there, "{name}");
    }
    assert_eq!(fs::read(world.at("outside")).unwrap(), b"not to be written");
    assert!(!world.at("home/file").exists(), "nothing is copied through a link of the agent's");
}
