//! What a view hides: hidden checks, credentials, and what the settings name.

use super::*;

#[test]
fn hidden_checks_are_seen_by_nobody_but_the_check_that_they_are_for() {
    let mut world = World::new();
    for folder in ["home/hidden/deep/deeper", "srv/hidden"] {
        fs::create_dir_all(world.at(folder)).unwrap();
    }
    world.hidden = ["home/hidden", "home/hidden/deep", "home/hidden/deep/deeper", "srv/hidden"].map(|name| world.at(name)).into();
    world.seal.show = vec!["~/hidden".to_owned()];
    world.workspace.writable = vec!["~/hidden/deep".to_owned()];
    let last = |world: &World, kind: ViewKind, count: usize| {
        let lines = world.lines(&world.build(kind));
        lines[lines.len() - count..].to_vec()
    };
    let all = ["mask home/hidden", "mask home/hidden/deep", "mask home/hidden/deep/deeper", "mask srv/hidden"];
    for kind in [ViewKind::Agent, ViewKind::Check, ViewKind::Read] {
        assert_eq!(last(&world, kind, 4), all, "{kind:?}");
    }
    world.shown = Some(world.at("home/hidden/deep"));
    let expected = ["scratch home/hidden", "-> home/hidden/deep", "mask home/hidden/deep/deeper", "mask srv/hidden"];
    assert_eq!(last(&world, ViewKind::Check, 4), expected);
}

#[test]
fn what_is_hidden_can_be_shown_and_more_can_be_hidden() {
    let mut world = World::new();
    for name in
        ["home/.npmrc", "home/.config/gh/hosts.yml", "home/.config/gh/config.yml", "home/.ssh/id", "srv/keys/k", "elsewhere/key"]
    {
        world.write(name, b"x");
    }
    symlink(world.at("elsewhere/key"), world.at("home/.netrc")).unwrap();
    world.set("KUBECONFIG", world.at("srv/keys/k").into_os_string());
    world.set("SSH_AUTH_SOCK", world.at("tmp/agent.sock").into_os_string());
    world.write("tmp/agent.sock", b"");
    world.seal.show = vec!["~/.npmrc".to_owned(), "~/.config/gh/config.yml".to_owned()];
    world.seal.hide = vec![world.at("objects").display().to_string(), "~/absent".to_owned(), "~/".to_owned() + "."];
    let visible = world.build(ViewKind::Check);
    let mut lines = world.lines(&visible);
    lines.retain(|line| !line.starts_with("mask /"));
    let expected = [
        "mask elsewhere/key",
        "scratch home/.config/gh",
        "-> home/.config/gh/config.yml",
        "mask home/.ssh",
        "mask objects",
        "mask srv/keys/k",
        "mask home/.local/state/verdone",
    ];
    assert_eq!(lines[lines.len() - expected.len()..], expected.map(str::to_owned));
    for said in ["~/absent in `seal.hide` does not exist", "~/. in `seal.hide` is not hidden"] {
        assert!(visible.notes.iter().any(|note| note.starts_with(said)), "{said}: {:#?}", visible.notes);
    }
}

#[test]
fn credentials_in_a_project_that_is_the_home_folder_are_hidden_unless_they_are_committed() {
    let mut world = World::new();
    world.system.home = Some(world.at("home/project"));
    world.ignored_folder(".ssh");
    world.write("home/project/.npmrc", b"committed");
    world.write("tree/.npmrc", b"committed");
    let visible = world.build(ViewKind::Agent);
    let lines = world.lines(&visible);
    assert!(lines.contains(&"overlay home/project/.ssh".to_owned()), "{lines:#?}");
    assert!(lines.contains(&"mask home/project/.ssh".to_owned()), "{lines:#?}");
    assert!(!lines.contains(&"mask home/project/.npmrc".to_owned()), "{lines:#?}");
    let place = |wanted: &str| lines.iter().position(|line| line == wanted).unwrap();
    assert!(place(&format!("=> home/project/.claude/projects/{}", world.project_key())) > place("tree => home/project"));
}

#[test]
fn what_is_hidden_in_the_project_is_hidden_in_the_tree_and_in_the_checkout_beside_it() {
    let mut world = World::new();
    for name in ["home/project/secrets/key", "home/project/.aws/credentials", "home/project/.npmrc", "home/project/kept"] {
        world.write(name, b"x");
    }
    let own = world.at("home/.local/state/verdone/w/tree");
    fs::create_dir_all(own.join(".git")).unwrap();
    fs::write(own.join(".npmrc"), "committed").unwrap();
    world.seal.hide = vec!["secrets".to_owned()];
    for (name, path) in [("AWS_CONFIG_FILE", ".aws/credentials"), ("NPM_CONFIG_USERCONFIG", ".npmrc")] {
        world.set(name, world.at("home/project").join(path));
    }
    let visible = world.build_with(ViewKind::Agent, Tree::Writable(own.clone()), &own);
    let lines = world.lines(&visible);
    let place = |wanted: &str| lines.iter().position(|line| line == wanted).unwrap_or_else(|| panic!("{wanted}: {lines:#?}"));
    for hidden in ["secrets", ".aws/credentials"] {
        assert!(place(&format!("mask home/project/{hidden}")) > place("-> home/project"));
        place(&format!("mask home/.local/state/verdone/w/tree/{hidden}"));
    }
    assert!(
        !lines.iter().any(|line| line.starts_with("mask ") && line.ends_with("project/.npmrc")),
        "it is committed: {lines:#?}"
    );
}
