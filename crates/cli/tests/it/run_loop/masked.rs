//! What an agent can see of runs: its own prompts and what its hooks write, but no run's journal, and no output of checks or turns.

use std::fs;

use crate::run_loop::world::{Settings, TWO, World};

/// Printed by a gate and by an agent. Neither text appears literally anywhere else.
const GATE: &str = "[[gate]]\nname = \"chatty\"\ncommand = \"printf 'SECRET-%s\\\\n' OUTPUT\"\n";
const FIRST: &str =
    "[[turn]]\nstory = \"US-001\"\nsteps = [{ run = \"printf 'SAID-%s' THIS\" }, { create = \"a\", text = \"one\\n\" }]\n";
/// Says it again in a turn that is not enough. In the next turn, searches everything that the agent can reach for both texts. The agent's
/// workspace may have a different path than the checkout.
const SECOND: &str = "[[turn]]\nstory = \"US-002\"\nturn = 1\nsteps = [{ run = \"printf 'SAID-%s' THIS\" }, { create = \"c\", text = \"\" }]\n\
     [[turn]]\nstory = \"US-002\"\nsteps = [{ run = \"sh @ROOT@/tmp/look.sh\" }, { create = \"b\", text = \"two\\n\" }]\n";
const LOOK: &str = "grep -rlE 'SECRET-OUTPU[T]|SAID-THI[S]' . ~ @ROOT@/work @ROOT@/beside 2>/dev/null > @ROOT@/tmp/leaked\n\
                    find .verdone sub/.verdone @ROOT@/*/.verdone 2>/dev/null | sort > @ROOT@/tmp/seen\n: > @ROOT@/tmp/looked\n";

/// The number of files in these folders that contain one of the two texts.
fn leaky(world: &World, folders: &[&str]) -> usize {
    let mut found = 0;
    let mut left: Vec<_> = folders.iter().map(|folder| world.sandbox.path(folder)).collect();
    while let Some(path) = left.pop() {
        if path.is_dir() {
            left.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else {
            let text = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
            found += usize::from(text.contains("SECRET-OUTPUT") || text.contains("SAID-THIS"));
        }
    }
    found
}

#[test]
fn an_agent_sees_no_journal_and_no_output_of_any_run() {
    for path in ["", "path = \"own\"\n"] {
        let world = World::folder(FIRST, &Settings { tables: GATE, ..Settings::default() });
        let sandbox = &world.sandbox;
        let rooted = |text: &str| text.replace("@ROOT@", sandbox.root().to_str().unwrap());
        sandbox.write(".verdone/script.toml", format!("{FIRST}{}", rooted(SECOND)));
        let config = sandbox.read(".verdone/config.toml").replace("[workspace]\n", &format!("[workspace]\n{path}"));
        sandbox.write(".verdone/config.toml", config);
        sandbox.write("PLAN.md", TWO);
        sandbox.write("../tmp/look.sh", rooted(LOOK));
        sandbox.write("sub/file", "of another project\n");
        sandbox.write(".gitignore", ".verdone/runs/\n.verdone/cache/\n.verdone/sessions/\n");
        sandbox.repo();
        // Runs of another project in the same repository, of another worktree of it, and of this project.
        sandbox.git(["worktree", "add", "--quiet", "--detach", "../beside"]);
        world.run_with(&["--story", "US-001"], 0);
        world.verdone(&["verify", "US-001"]).assert_code(0);
        for copy in ["sub", "../beside"] {
            sandbox.run("cp", ["-r", ".verdone", copy]).assert_code(0);
        }
        for folder in [".verdone/runs", ".verdone/cache", "sub/.verdone", "../beside/.verdone"] {
            assert!(leaky(&world, &[folder]) > 0, "{folder} has something to hide");
        }
        world.run(0);
        assert!(world.has("../tmp/looked"));
        assert_eq!(sandbox.read("../tmp/leaked"), "", "{path}");
        let seen = sandbox.read("../tmp/seen");
        let run = world.run_dir();
        let run = run.file_name().unwrap().to_str().unwrap();
        let own = format!(".verdone/runs/{run}/turns/1-prompt.md\n");
        assert!(seen.contains(&own), "its own prompt is there: {seen}");
        assert!(!seen.contains("journal") && !seen.contains("checks"), "{seen}");
    }
}
