use std::os::unix::fs::symlink;

use super::*;

struct World {
    dir: tempfile::TempDir,
    root: PathBuf,
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        fs::create_dir(root.join("project")).unwrap();
        Self { dir, root }
    }

    fn open(&self, configured: Option<&str>, variables: &[(&str, &str)]) -> Result<StateFolder, StateError> {
        let get = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        StateFolder::open(configured, &self.root.join("project"), get)
    }

    fn state(&self) -> StateFolder {
        let home = self.dir.path().display().to_string();
        self.open(None, &[("HOME", &home)]).unwrap()
    }

    fn owner(&self) -> Owner {
        Owner { pid: std::process::id(), project: self.root.join("project"), run: Some("r1".to_owned()) }
    }
}

#[test]
fn the_state_folder_is_where_the_settings_or_the_environment_say() {
    let world = World::new();
    let root = world.root.display();
    let home = root.to_string();
    let state = world.state();
    assert_eq!(state.path(), world.root.join(".local/state/verdone"));
    assert_eq!(fs::metadata(state.path().join("workspaces")).unwrap().mode() & 0o777, 0o700);
    let xdg = format!("{root}/xdg");
    let opened = world.open(None, &[("HOME", &home), ("XDG_STATE_HOME", &xdg)]).unwrap();
    assert_eq!(opened.path(), world.root.join("xdg/verdone"));
    let opened = world.open(Some("~/other"), &[("HOME", &home), ("XDG_STATE_HOME", &xdg)]).unwrap();
    assert_eq!(opened.path(), world.root.join("other"));
    assert!(matches!(world.open(None, &[]), Err(StateError::NoHome)));
}

#[test]
fn a_state_folder_in_the_project_or_around_it_is_refused_and_not_made() {
    let world = World::new();
    let root = world.root.display();
    symlink(world.root.join("project"), world.root.join("link")).unwrap();
    for inside in [format!("{root}/project/state"), format!("{root}/link/state"), format!("{root}/project")] {
        let error = world.open(Some(&inside), &[]).unwrap_err();
        assert!(matches!(error, StateError::InsideProject { .. }), "{inside}: {error}");
        assert!(error.to_string().contains("set `workspace.state` to one outside"), "{error}");
    }
    assert_eq!(fs::read_dir(world.root.join("project")).unwrap().count(), 0);
    let error = world.open(Some(&root.to_string()), &[]).unwrap_err();
    assert!(matches!(error, StateError::AroundProject { .. }), "{error}");
}

#[test]
fn a_workspace_is_held_listed_and_gone_when_it_is_dropped() {
    let world = World::new();
    let state = world.state();
    let held = state.create("run/1", &world.owner()).unwrap();
    assert_eq!(held.name(), "run%2F1");
    assert_eq!(fs::metadata(held.path()).unwrap().mode() & 0o777, 0o700);
    fs::write(held.path().join("file"), [7; 10_000]).unwrap();
    let other = state.create("other", &world.owner()).unwrap();
    assert_ne!(held.port_base(), other.port_base());
    assert!(held.port_base() >= FIRST_PORT && held.port_base() + PORTS <= 32_000);
    let error = state.create("run/1", &world.owner()).unwrap_err();
    assert!(matches!(&error, StateError::InUse { pid, .. } if *pid == std::process::id()), "{error}");
    assert!(state.remove("run%2F1").is_err());
    let all = state.list().unwrap();
    assert_eq!(
        all.iter().map(|stored| (stored.name.as_str(), stored.in_use)).collect::<Vec<_>>(),
        [("other", true), ("run%2F1", true)]
    );
    assert_eq!(all[1].owner, world.owner());
    assert!(all[1].size >= 10_000);
    let path = held.path().to_owned();
    drop((held, other));
    assert!(!path.exists());
    assert_eq!(state.list().unwrap(), []);
}

/// Simulates a killed process: its files exist, but its lock is not held.
fn abandon(state: &StateFolder, name: &str, owner: &Owner) -> PathBuf {
    let folder = state.path().join("workspaces").join(name);
    fs::create_dir_all(folder.join("home/work/work")).unwrap();
    fs::set_permissions(folder.join("home/work"), fs::Permissions::from_mode(0o000)).unwrap();
    fs::write(state.path().join("workspaces").join(format!("{name}.lock")), serde_json::to_vec(owner).unwrap()).unwrap();
    folder
}

#[test]
fn what_dead_owners_left_is_swept_and_what_is_in_use_stays() {
    let world = World::new();
    let state = world.state();
    let held = state.create("alive", &world.owner()).unwrap();
    let dead = abandon(&state, "dead", &world.owner());
    let unlocked = state.path().join("workspaces/unlocked");
    fs::create_dir(&unlocked).unwrap();
    let half = state.path().join("trash/half");
    fs::create_dir_all(half.join("x")).unwrap();
    let listed = state.list().unwrap();
    assert_eq!(listed.iter().map(|stored| stored.in_use).collect::<Vec<_>>(), [true, false, false]);
    let (gone, deletion) = state.sweep().unwrap();
    deletion.wait().unwrap();
    assert_eq!(gone, ["dead", "unlocked"]);
    assert!(!dead.exists() && !unlocked.exists() && !half.exists() && held.path().exists());
    assert_eq!(state.list().unwrap().len(), 1);
    for name in ["never-there", "", "..", "../workspaces", "../../state"] {
        state.remove(name).unwrap().wait().unwrap();
        assert!(held.path().exists(), "{name}");
    }
}

#[test]
fn a_name_that_a_dead_owner_used_starts_empty() {
    let world = World::new();
    let state = world.state();
    abandon(&state, "again", &world.owner());
    let held = state.create("again", &world.owner()).unwrap();
    assert_eq!(fs::read_dir(held.path()).unwrap().count(), 0);
}

#[test]
fn two_that_want_the_same_name_never_both_have_it() {
    let world = World::new();
    let state = world.state();
    let inside = AtomicU64::new(0);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50 {
                    if let Ok(held) = state.create("one", &Owner::default()) {
                        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                        assert!(held.path().is_dir());
                        inside.fetch_sub(1, Ordering::SeqCst);
                    }
                }
            });
        }
    });
}

#[test]
fn compose_takes_the_name() {
    assert_eq!(compose_project("2026-R1%2Fa.b"), "verdone-2026-r1_2fa_b");
}
