//! Whatever an agent does to ignore rules, files that the user ignores are not committed, and untracked files are out of its reach.

use super::SHORT;
use crate::run_loop::world::{ONE, World, always};

/// A project with one secret for each kind of ignore rule.
fn with_secrets(script: &str) -> World {
    let world = World::folder(script, &SHORT);
    world.sandbox.write("PLAN.md", ONE);
    world.sandbox.write(".gitignore", ".env\n");
    world.sandbox.write("sub/.gitignore", "nested-secret\n");
    world.sandbox.repo();
    world.sandbox.write(".git/info/exclude", "excluded-secret\n");
    world.sandbox.write("../home/ignore", "global-secret\n");
    world.git(&["config", "core.excludesFile", world.sandbox.home().join("ignore").to_str().unwrap()]);
    for secret in SECRETS {
        world.sandbox.write(secret, format!("{secret} is mine\n"));
    }
    world.sandbox.write("notes.txt", "notes.txt is mine\n");
    world
}

const SECRETS: [&str; 4] = [".env", "sub/nested-secret", "excluded-secret", "global-secret"];
/// Removes every ignore rule.
const UNHIDE: &str = "{ create = \".gitignore\", text = \"\" }, { create = \"sub/.gitignore\", text = \"!nested-secret\\n\" }, \
                      { run = ': > .git/info/exclude; : > ../home/ignore; git config --unset core.excludesFile' }";

#[track_caller]
fn assert_untouched(world: &World) {
    for file in SECRETS.iter().chain(&["notes.txt"]) {
        assert_eq!(world.sandbox.read(file), format!("{file} is mine\n"));
        for commit in world.git(&["rev-list", "--all"]).lines() {
            assert!(!world.tree_files(commit).contains(&(*file).to_owned()), "{file} is in {commit}");
        }
    }
}

#[test]
fn secrets_that_an_agent_unhides_are_not_committed() {
    for more in ["", ", { run = 'git add --all' }", ", { run = 'git add --all; git commit --quiet -m all' }"] {
        let world = with_secrets(&always(&format!("{UNHIDE}, {{ create = \"a\" }}{more}")));
        world.run(0);
        assert_untouched(&world);
        assert!(world.tree_files("HEAD").contains(&"a".to_owned()));
    }
}

#[test]
fn secrets_that_a_failed_attempt_unhides_are_not_kept_either() {
    let world = with_secrets(&always(&format!("{UNHIDE}, {{ create = \"x\" }}")));
    world.run(4);
    assert!(world.tree_files(&world.kept()).contains(&"x".to_owned()));
    assert_untouched(&world);
}

#[test]
fn an_untracked_file_of_the_users_is_out_of_reach() {
    for harm in ["{ delete = \"notes.txt\" }", "{ create = \"notes.txt\", text = \"agent\" }"] {
        let hide = "{ create = \".gitignore\", text = \".env\\nnotes.txt\\n\" }";
        let world = with_secrets(&always(&format!("{hide}, {harm}, {{ create = \"x\" }}")));
        world.run(4);
        assert_untouched(&world);
    }
}

#[test]
fn rules_that_an_agent_writes_into_its_home_hide_nothing() {
    for hide in ["echo a >> ../home/ignore", "mkdir -p ../home/.config/git; echo a >> ../home/.config/git/ignore"] {
        let world = with_secrets(&always(&format!("{{ run = '{hide}' }}, {{ create = \"a\" }}, {{ create = \"b\" }}")));
        world.run(0);
        assert_eq!(world.git(&["show", "--name-only", "--format=", "HEAD"]), "PLAN.md\na\nb", "{hide}");
        assert_eq!(world.trailer("HEAD", "Verdone-Proof"), "verified", "{hide}");
        assert_eq!(world.sandbox.read("../home/ignore"), "global-secret\n", "{hide}");
        assert!(!world.has("../home/.config/git/ignore"), "{hide}");
    }
}
