//! Hidden checks: only the check that a folder belongs to can see it.

use std::fs;
use std::path::{Path, PathBuf};

use verdone_core::check::{CommandSpec, Gate, Stage};
use verdone_core::config::Config;
use verdone_runtime::git::Git;
use verdone_runtime::launcher::Inside;
use verdone_runtime::process::{EnvPlan, Exit};
use verdone_runtime::workspace::{CheckNeeds, HIDDEN_VARIABLE, WorkspaceError};

use crate::repository::{commit_all, open_with, run_git, said, write};
use crate::world::{World, alone};

/// A gate with this hidden folder.
fn gate(name: &str, folder: &Path) -> Gate {
    Gate { hidden: Some(folder.to_owned()), ..Gate::new(name, Stage::Correctness, CommandSpec::Shell("true".to_owned())) }
}

/// Not below a shared temporary folder: that is private in every view, and would hide the folders anyway. The checkout may be in one.
fn outside_of_temp() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
    if !target.starts_with("/tmp") && !target.starts_with("/var/tmp") {
        return target.to_owned();
    }
    let folder = std::env::home_dir().unwrap().join(".cache/verdone/tests");
    fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn a_hidden_folder_is_read_only_for_its_check_and_empty_for_everybody_else() {
    let _alone = alone();
    let world = World::below(&outside_of_temp());
    let top = world.path("project");
    run_git(&top, &["init", "-q", "-b", "main"]);
    write(&top.join(".gitignore"), "target/\n");
    let base = commit_all(&top, "base");
    let [one, two] = ["one", "two"].map(|name| world.path(name));
    for folder in [&one, &two] {
        write(&folder.join("test"), "secret\n");
    }
    let mut config = Config { gate: vec![gate("one", &one), gate("two", &two)], ..Config::default() };
    config.seal.show = vec![one.to_str().unwrap().to_owned()];
    let git = Git::open(&top).unwrap();
    let mut spaces = open_with(&world, &git, "run", config);
    let tree = git.tree_of(&base).unwrap();
    let look =
        format!("cat '{}'/* '{}'/* 2>/dev/null; ls -A '{}' '{}'", one.display(), two.display(), one.display(), two.display());
    let seen = |inside: Option<Inside>, cwd: &Path, env: EnvPlan| said(inside, cwd, env, &look).0;
    let nothing = format!("{}:\n\n{}:\n", one.display(), two.display());

    spaces.reset_agent(&git, &base, "verdone/run-1", &[]).unwrap();
    let agent = spaces.agent().unwrap();
    assert_eq!(seen(agent.inside.clone(), &agent.cwd, agent.env.clone()), nothing);
    let judge = spaces.question_on(&git, &tree, &base).unwrap();
    assert_eq!(seen(judge.inside.clone(), &judge.cwd, judge.env.clone()), nothing);
    let check = spaces.checks_on(&git, &tree, &base, CheckNeeds::default()).unwrap();
    assert_eq!(seen(check.inside.clone(), &check.cwd, check.env.clone()), nothing);

    let needs = CheckNeeds { hidden: Some(&one), ..CheckNeeds::default() };
    let place = spaces.checks_on(&git, &tree, &base, needs).unwrap();
    let text = seen(place.inside.clone(), &place.cwd, place.env.clone());
    assert_eq!(text, format!("secret\n{}:\ntest\n\n{}:\n", one.display(), two.display()));
    let script = format!("cat \"${HIDDEN_VARIABLE}/test\"; touch \"${HIDDEN_VARIABLE}/new\" 2>/dev/null || echo refused");
    let (text, _) = said(place.inside.clone(), &place.cwd, place.env.clone(), &script);
    assert_eq!(text, "secret\nrefused\n");
    // The checks of the next story would see a copy in a build folder.
    let (_, exit) = said(place.inside.clone(), &place.cwd, place.env.clone(), "mkdir target; cp \"$VERDONE_HIDDEN\"/* target");
    assert_eq!(exit, Exit::Code(0));
    assert!(place.keep(&git).is_none());
    assert_eq!(fs::read_dir(&one).unwrap().count(), 1);

    let other = CheckNeeds { hidden: Some(Path::new("/usr")), ..CheckNeeds::default() };
    let refused = spaces.checks_on(&git, &tree, &base, other).unwrap_err();
    assert!(matches!(refused, WorkspaceError::Hidden { .. }), "{refused}");
}
