//! Whatever an agent does to ignore rules: what was ignored at the checkpoint is not committed, what was untracked stays protected.

use super::SHORT;
use crate::world::{ONE, World, always, text};

/// A project with a secret that every kind of rule hides, one each.
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
/// Takes every rule away.
const UNHIDE: &str = "{ create = \".gitignore\", text = \"\" }, { create = \"sub/.gitignore\", text = \"!nested-secret\\n\" }, \
                      { run = ': > .git/info/exclude; : > ../home/ignore; git config --unset core.excludesFile' }";

#[track_caller]
fn assert_untouched(world: &World) {
    for file in SECRETS.iter().chain(&["notes.txt"]) {
        assert_eq!(world.sandbox.read(file), format!("{file} is mine\n"));
        for commit in world.git(&["rev-list", "HEAD"]).lines() {
            assert!(!world.tree_files(commit).contains(&(*file).to_owned()), "{file} is in {commit}");
        }
    }
}

#[test]
fn secrets_that_an_agent_unhides_are_not_committed() {
    for more in ["", ", { run = 'git add --all' }"] {
        let world = with_secrets(&always(&format!("{UNHIDE}, {{ create = \"a\" }}{more}")));
        world.run(0);
        assert_untouched(&world);
        assert!(world.tree_files("HEAD").contains(&"a".to_owned()));
    }
}

#[test]
fn secrets_that_an_agent_commits_itself_fail_the_attempt() {
    let world =
        with_secrets(&always(&format!("{UNHIDE}, {{ create = \"a\" }}, {{ run = 'git add --all; git commit --quiet -m all' }}")));
    world.run(4);
    assert!(text(&world.last("verified")["reason"]).ends_with("was committed, but is not part of the story"));
    assert_untouched(&world);
}

#[test]
fn secrets_survive_a_rollback_of_unhidden_rules() {
    let world = with_secrets(&always(&format!("{UNHIDE}, {{ create = \"x\" }}")));
    world.run(4);
    assert_untouched(&world);
    world.verdone(&["undo"]).assert_code(0);
    assert_untouched(&world);
}

#[test]
fn a_file_of_the_users_that_new_rules_hide_is_put_back() {
    for hide in [
        "{ create = \".gitignore\", text = \".env\\nnotes.txt\\n\" }",
        "{ run = 'echo notes.txt >> .git/info/exclude' }",
        "{ run = 'echo notes.txt >> ../home/ignore' }",
        "{ run = 'echo notes.txt > ../tmp/ignore; git config core.excludesFile ../tmp/ignore' }",
    ] {
        for harm in ["{ delete = \"notes.txt\" }", "{ create = \"notes.txt\", text = \"agent\" }"] {
            let world = with_secrets(&always(&format!("{hide}, {harm}, {{ create = \"x\" }}")));
            world.run(4);
            assert_untouched(&world);
        }
    }
}

#[test]
fn work_that_rules_outside_of_the_repository_hide_is_not_called_verified() {
    for hide in ["echo a >> ../home/ignore", "mkdir -p ../home/.config/git; echo a >> ../home/.config/git/ignore"] {
        let world = with_secrets(&always(&format!("{{ run = '{hide}' }}, {{ create = \"a\" }}, {{ create = \"b\" }}")));
        if !hide.starts_with("echo") {
            world.git(&["config", "--unset", "core.excludesFile"]);
            std::fs::remove_file(world.sandbox.path("global-secret")).unwrap();
        }
        let output = world.run(0);
        assert!(output.stdout.contains("does not have as it is: a"), "{hide}: {}", output.stdout);
        assert_eq!(world.trailer("HEAD", "Verdone-Verdict"), "unproven", "{hide}");
    }
}
