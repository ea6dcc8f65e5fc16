//! The user's branches, tags, stash and settings: whatever an agent does in its workspace, they are unchanged.

use super::SHORT;
use crate::run_loop::world::{HONEST, ONE, World, always};

fn with_refs(script: &str) -> World {
    let world = World::with(ONE, script, &SHORT);
    world.git(&["branch", "mine"]);
    world.git(&["tag", "v1"]);
    for text in ["older", "newer"] {
        world.sandbox.write("README.md", text);
        world.git(&["stash", "--quiet"]);
    }
    world
}

#[test]
fn the_users_stash_branches_and_tags_are_the_same_after_a_run_and_its_undo() {
    let harm = "{ create = \"a\" }, { run = 'git stash drop --quiet; git branch --quiet -D mine main; git branch made; git tag -d v1; \
                git tag v2; git update-ref -d refs/notes/verdone; git reflog expire --expire=now --all; git gc --quiet --prune=now' }";
    let crash = "{ run = 'git branch --quiet -D mine' }, { crash = 3 }";
    for (script, code) in [(HONEST.to_owned(), 0), (always(harm), 0), (always("{ create = \"x\" }"), 4), (always(crash), 4)] {
        let world = with_refs(&script);
        let mine = || {
            let others = "--exclude=refs/heads/verdone/*";
            world.git(&["for-each-ref", "--exclude=refs/heads/main", others, "refs/heads", "refs/tags", "refs/stash"])
                + &world.git(&["stash", "list", "--format=%H %gd %s"])
        };
        let before = mine();
        world.run(code);
        assert_eq!(mine(), before);
        if code == 0 {
            world.verdone(&["undo"]).assert_code(0);
            assert_eq!(mine(), before);
        }
    }
}

#[test]
fn settings_that_an_agent_replaces_stay_as_the_user_has_them() {
    for replace in [
        "rm -r .verdone/*; echo 'land = 7' > .verdone/config.toml",
        "mv .verdone/config.toml ../tmp/moved; ln -s ../../tmp/moved .verdone/config.toml",
        "rm -rf .verdone; ln -s ../tmp .verdone",
        "rm -rf .verdone; echo a file > .verdone",
    ] {
        let world = World::with(ONE, &always(&format!("{{ create = \"a\" }}, {{ run = '''{replace}''' }}")), &SHORT);
        let settings = world.sandbox.read(".verdone/config.toml");
        world.run(0);
        for dir in [".verdone", ".verdone/runs"] {
            assert!(std::fs::symlink_metadata(world.sandbox.path(dir)).unwrap().is_dir(), "{replace}");
        }
        assert_eq!(world.sandbox.read(".verdone/config.toml"), settings, "{replace}");
        assert_eq!(world.events().last().unwrap()["event"], "run_stopped", "{replace}");
        assert_eq!(world.git(&["show", "--name-only", "--format=", "HEAD"]), "PLAN.md\na", "{replace}");
        world.assert_clean();
    }
}
