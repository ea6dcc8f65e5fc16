//! Dependency and build folders, each in its mode.

use super::*;

#[test]
fn folders_are_shown_in_their_modes_and_two_hundred_of_them_work() {
    let mut world = World::new();
    for name in ["a", "b", "c", "d", "d/none", "d/copy", "occupied", "taken", "link-parent/x"] {
        world.ignored_folder(name);
    }
    for n in 0..200 {
        world.ignored_folder(&format!("packages/{n}/node_modules"));
    }
    world.ignored.retain(|entry| !entry.path.starts_with("d/none") && !entry.path.starts_with("d/copy"));
    let modes = [("a", FolderMode::Copy), ("b", FolderMode::ReadOnly), ("c", FolderMode::None), ("d/none", FolderMode::None)];
    world.workspace.folders = modes.map(|(name, mode)| (name.to_owned(), mode)).into();
    world.workspace.folders.extend([("d/copy".to_owned(), FolderMode::Copy), ("absent".to_owned(), FolderMode::Copy)]);
    world.write("tree/occupied/committed", b"x");
    world.write("tree/taken", b"a file");
    symlink("/", world.at("tree/link-parent")).unwrap();
    let visible = world.build(ViewKind::Agent);
    let lines = world.lines(&visible);
    let of = |name: &str| {
        let found = lines.iter().find(|line| line.ends_with(&format!("home/project/{name}")));
        found.map(|line| line.split("home/project").next().unwrap().split('/').next().unwrap_or_default().trim().to_owned())
    };
    for (name, shown) in [
        ("a", None),
        ("b", Some("->")),
        ("c", None),
        ("d", Some("overlay")),
        ("d/none", Some("scratch")),
        ("d/copy", Some("home")),
        ("occupied", None),
        ("taken", None),
        ("link-parent/x", None),
        ("packages/199/node_modules", Some("overlay")),
    ] {
        assert_eq!(of(name).as_deref(), shown, "{name}");
    }
    assert_eq!(visible.notes.len(), 4, "{:#?}", visible.notes);
    for said in
        ["absent in `workspace.folders`", "occupied has committed files", "taken is not shown", "link-parent/x is not shown"]
    {
        assert!(visible.notes.iter().any(|note| note.starts_with(said)), "{said}: {:#?}", visible.notes);
    }
    visible.preparation.carry_out().unwrap();
    assert!(world.at("tree/a/file").exists(), "a copy is part of the tree, so that it can be removed inside");
    fs::remove_dir_all(world.at("tree/a")).unwrap();
    assert!(world.at("home/project/a/file").exists());
    assert_eq!(fs::read_dir(world.at("tree/d")).unwrap().count(), 0);
}

#[test]
fn a_folder_that_cannot_be_overlaid_degrades_with_a_note() {
    let mut world = World::new();
    for name in ["mounted", "gone"] {
        world.ignored_folder(name);
    }
    fs::remove_dir_all(world.at("home/project/gone")).unwrap();
    world.ignored.push(IgnoredEntry { path: "linked".into(), is_folder: false });
    symlink(world.at("objects"), world.at("home/project/linked")).unwrap();
    world.system.mounts = vec![world.at("home/project/mounted/below")];
    let visible = world.build(ViewKind::Agent);
    let lines = world.lines(&visible);
    assert!(lines.contains(&"-> home/project/mounted".to_owned()), "{lines:#?}");
    for said in ["mounted is read-only", "gone is missing in the workspace", "linked is a link in your checkout"] {
        assert!(visible.notes.iter().any(|note| note.starts_with(said)), "{said}: {:#?}", visible.notes);
    }
    visible.preparation.carry_out().unwrap();
    assert_eq!(fs::read_link(world.at("tree/linked")).unwrap(), world.at("objects"));
}

#[test]
fn without_overlays_folders_are_copied_and_home_is_read_only() {
    let mut world = World::new();
    world.abilities.overlay = false;
    world.ignored_folder("node_modules");
    world.write("home/.claude/settings.json", b"{}");
    world.write("home/.claude.json", b"{}");
    let visible = world.build(ViewKind::Agent);
    let mut lines = world.lines(&visible);
    lines.retain(|line| !line.starts_with("mask "));
    assert!(!lines.iter().any(|line| line.starts_with("overlay")), "{lines:#?}");
    let own = "home/.local/state/verdone/w";
    for line in [
        format!("{own}/client => home/.claude"),
        format!("{own}/client-answers/.claude.json => home/.claude.json"),
        format!("=> home/.claude/projects/{}", world.project_key()),
        format!("-> home/.claude/projects/{}/memory", world.project_key()),
    ] {
        assert!(lines.contains(&line), "{line}: {lines:#?}");
    }
    assert_eq!(visible.notes.len(), 2, "{:#?}", visible.notes);
    visible.preparation.carry_out().unwrap();
    assert!(world.at("tree/node_modules/file").exists());
    assert!(world.at(own).join("client/settings.json").exists() && !world.at(own).join("client/projects").exists());
    assert_eq!(visible.credentials.unwrap().written, world.at(own).join("client/.credentials.json"));
}

#[test]
fn build_folders_are_over_what_was_kept_or_left_out() {
    let mut world = World::new();
    for name in ["target", "sub/target", "node_modules", "dist", "d"] {
        world.ignored_folder(name);
    }
    world.write("home/project/node_modules/.cache/x", b"x");
    world.workspace.folders.insert("d".to_owned(), FolderMode::Cache);
    world.workspace.folders.insert("sub/target".to_owned(), FolderMode::Overlay);
    world.kept.insert("target".into(), world.at("kept"));
    let of_project = |visible: &Visible| {
        let mut lines = world.lines(visible);
        lines.retain(|line| line.contains("overlay") && line.contains("home/project/"));
        lines
    };
    let visible = world.build(ViewKind::Check);
    let (project, scratch) = ("home/project", "home/.local/state/verdone/w/overlays");
    let expected = ["d", "dist", "node_modules", "sub/target"].map(|name| format!("overlay {project}/{name}"));
    let kept = format!("overlay kept, {project}/target at {project}/target");
    assert_eq!(of_project(&visible), [&expected[..], &[kept]].concat());
    let uppers = ["d", "target"]
        .map(|name| (PathBuf::from(name), world.at(scratch).join(key(&world.at(project).join(name))).join("upper")));
    assert_eq!(visible.build_folders, uppers);
    assert_eq!(visible.mount_points.len(), 5);
    world.cold = true;
    let visible = world.build(ViewKind::Check);
    let mut lines = world.lines(&visible);
    lines.retain(|line| line.contains("overlay") && line.contains("home/project/"));
    assert_eq!(lines, expected[1..]);
    visible.preparation.carry_out().unwrap();
    let modules = world.at(scratch).join(key(&world.at(project).join("node_modules"))).join("upper");
    assert!(modules.join(".cache").is_dir() && !modules.join(".vite").exists());
}
