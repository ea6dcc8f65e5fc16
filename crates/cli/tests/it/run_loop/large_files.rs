//! The real Git LFS: its filter runs inside views, and the objects it stores reach the user's repository.

use std::path::Path;

use crate::run_loop::world::{Settings, World};

const PLAN: &str = "# Plan\n\n### US-001: Write two\n\n- [ ] Write two.bin\n  - Verification: `test $(wc -c < two.bin) = 200000 && test $(wc -c < one.bin) = 100000`\n";

#[test]
fn files_of_git_lfs_are_whole_for_agents_checks_and_the_user_and_commits_have_pointers() {
    let script = "[[turn]]\nsteps = [{ run = \"test $(wc -c < one.bin) = 100000 && head -c 200000 /dev/zero > two.bin\" }]\n";
    let world = World::folder(script, &Settings::default());
    let sandbox = &world.sandbox;
    let config = sandbox.read(".verdone/config.toml").replace("work = [\"?\"]", "work = [\"*.bin\"]");
    sandbox.write(".verdone/config.toml", config);
    sandbox.add_program("git-lfs", Path::new("/usr/bin/git-lfs"));
    sandbox.write("PLAN.md", PLAN);
    sandbox.repo();
    sandbox.git(["lfs", "install", "--local"]);
    sandbox.write(".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n");
    sandbox.write("one.bin", "x".repeat(100_000));
    sandbox.git(["add", "--all"]);
    sandbox.git(["commit", "-qm", "one"]);
    world.run(0);
    for (name, size) in [("one.bin", 100_000), ("two.bin", 200_000)] {
        assert!(world.git(&["show", &format!("HEAD:{name}")]).starts_with("version https://git-lfs"), "{name} is no pointer");
        assert_eq!(sandbox.read(name).len(), size, "{name}");
    }
    sandbox.git(["lfs", "fsck"]);
    world.assert_clean();
}
