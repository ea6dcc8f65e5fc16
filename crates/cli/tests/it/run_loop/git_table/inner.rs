//! Submodules and other repositories inside the repository: never changed, staged or deleted.

use std::fs;
use std::path::Path;

use verdone_testkit::Folder;

use super::SHORT;
use crate::run_loop::world::{HONEST, ONE, TWO, World, always, text};

fn with_submodule(script: &str) -> World {
    let world = World::folder(script, &SHORT);
    world.sandbox.write("PLAN.md", ONE);
    world.sandbox.repo();
    add_submodule(&world);
    world
}

fn add_submodule(world: &World) {
    make_repository(world, "../lib");
    world.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "../lib", "sub"]);
    world.git(&["commit", "--quiet", "-m", "submodule"]);
}

fn make_repository(world: &World, path: &str) {
    world.git(&["init", "--quiet", path]);
    world.sandbox.write(format!("{path}/file"), "inner\n");
    world.git(&["-C", path, "add", "file"]);
    world.git(&["-C", path, "commit", "--quiet", "-m", "inner"]);
}

#[test]
fn a_submodule_with_changes_stays_as_it_is() {
    let world = with_submodule(HONEST);
    world.sandbox.write("sub/file", "changed\n");
    world.run(0);
    assert_eq!(world.sandbox.read("sub/file"), "changed\n");
    assert!(world.git(&["ls-tree", "HEAD", "sub"]).starts_with("160000 commit"));
    assert_eq!(world.git(&["status", "--porcelain"]), " M sub");
}

/// Common git commands at the top of a repository.
const AT_TOP: &str = "git status --porcelain\ngit diff\necho x > new\ngit add --all\ngit diff --cached --stat\n\
                      git commit --quiet -m tried\ntest \"$(git log -1 --format=%s)\" = tried\nrm new\ngit submodule status\n";
/// Common git commands in a submodule.
const INSIDE: &str = "cd sub\ntest -z \"$(git status --porcelain)\"\ntest \"$(git log -1 --format=%s)\" = inner\n\
                      git show HEAD:file\necho more >> file\ngit commit --quiet -am more\ngit -C .. status --porcelain > seen\n\
                      grep -q 'M sub' seen\nrm seen\ngit reset --quiet --hard HEAD^\ntest \"$(cat file)\" = inner\n";

/// A project whose agent and check run a script that uses git. `prepare` adds a submodule to its repository.
fn using_git(script: &str, prepare: impl FnOnce(&World)) -> World {
    let world = World::folder("", &SHORT);
    let shared = world.sandbox.root().join("tmp");
    let shared = shared.display();
    let run = format!("sh {shared}/use-git");
    let steps = format!("{{ create = \"a\", text = \"one\\n\" }}, {{ run = '{run} agent' }}");
    world.sandbox.write(".verdone/script.toml", always(&steps));
    world.sandbox.write("PLAN.md", ONE.replace("`test -f a`", &format!("`test -f a && {run} check`")));
    let script = format!("set -e\nexec > {shared}/said-by-$1 2>&1\n{script}: > {shared}/done-by-$1\n");
    world.sandbox.write("../tmp/use-git", script);
    world.sandbox.repo();
    prepare(&world);
    world
}

/// Runs it in a folder. Asserts that the script finished each time, and that the submodules' repositories are unchanged.
#[track_caller]
fn assert_git_works(world: &World, folder: &str) {
    let before = world.git(&["-C", folder, "rev-parse", "HEAD"]);
    let modules = world.git(&["-C", folder, "rev-parse", "--path-format=absolute", "--git-path", "modules"]);
    let modules = Folder::snapshot(Path::new(&modules), &[]);
    let output = world.verdone(&["-C", folder, "run"]);
    for who in ["agent", "check"] {
        let said = fs::read_to_string(world.sandbox.path(format!("../tmp/said-by-{who}"))).unwrap_or_default();
        assert!(world.has(&format!("../tmp/done-by-{who}")), "{who}: {said}\n{}", output.transcript());
    }
    output.assert_code(0);
    modules.assert_unchanged();
    assert_eq!(world.git(&["-C", folder, "diff", "--name-only", &before, "HEAD"]), "PLAN.md\na");
    assert_eq!(world.git(&["-C", folder, "status", "--porcelain"]), "");
}

#[test]
fn git_works_beside_and_in_a_submodule() {
    let world = using_git(&format!("{AT_TOP}{INSIDE}"), add_submodule);
    assert_git_works(&world, ".");
}

#[test]
fn git_works_in_a_submodule_after_the_first_story_too() {
    let world = using_git(&format!("{AT_TOP}{INSIDE}echo x >> ../../tmp/times\n"), |world| {
        world.sandbox.write("PLAN.md", TWO);
        world.sandbox.write(".verdone/script.toml", always("{ run = 'test -f a && : > b; : > a; sh ../tmp/use-git agent' }"));
        world.git(&["commit", "--quiet", "-am", "two stories"]);
        add_submodule(world);
    });
    world.run(0);
    assert_eq!(world.sandbox.read("../tmp/times"), "x\nx\n", "{}", world.sandbox.read("../tmp/said-by-agent"));
    world.assert_clean();
}

#[test]
fn git_works_beside_a_submodule_that_is_copied() {
    for refused in ["overlay", "unshare"] {
        let mut world = using_git(AT_TOP, add_submodule);
        world.sandbox.set("VERDONE_LAUNCH_FAIL", refused);
        assert_git_works(&world, ".");
    }
}

#[test]
fn git_works_in_a_submodule_of_a_linked_work_tree() {
    let world = using_git(&format!("{AT_TOP}{INSIDE}"), |world| {
        add_submodule(world);
        world.git(&["worktree", "add", "--quiet", "../linked"]);
        world.git(&["-C", "../linked", "-c", "protocol.file.allow=always", "submodule", "--quiet", "update", "--init"]);
    });
    assert_git_works(&world, "../linked");
}

#[test]
fn git_works_in_a_submodule_of_a_submodule() {
    let deep = "cd sub/deep\ntest \"$(git log -1 --format=%s)\" = inner\ntest -z \"$(git status --porcelain)\"\n";
    let world = using_git(&format!("{AT_TOP}{deep}"), |world| {
        make_repository(world, "../deep");
        make_repository(world, "../lib");
        let local = |args: &[&str]| world.git(&[&["-c", "protocol.file.allow=always"], args].concat());
        local(&["-C", "../lib", "submodule", "--quiet", "add", "../deep", "deep"]);
        world.git(&["-C", "../lib", "commit", "--quiet", "-m", "deep"]);
        local(&["submodule", "--quiet", "add", "../lib", "sub"]);
        local(&["submodule", "--quiet", "update", "--init", "--recursive"]);
        world.git(&["commit", "--quiet", "-m", "submodule"]);
    });
    assert_git_works(&world, ".");
}

#[test]
fn git_works_in_a_submodule_that_holds_its_own_repository() {
    for refused in ["", "overlay", "unshare"] {
        let mut world = using_git(&format!("{AT_TOP}{INSIDE}"), |world| {
            make_repository(world, "sub");
            world.git(&["submodule", "--quiet", "add", "../lib", "sub"]);
            world.git(&["commit", "--quiet", "-m", "submodule"]);
        });
        world.sandbox.set("VERDONE_LAUNCH_FAIL", refused);
        assert_git_works(&world, ".");
    }
}

#[test]
fn the_repository_of_a_submodule_cannot_be_written_by_an_agent() {
    let attack = "chmod -R u+w .git/modules; for file in $(find .git/modules -type f); do echo x > $file; done; rm -rf .git/modules; \
                  git -C sub config core.fsmonitor 'touch ../tmp/executed'; rm -rf sub/.git; echo more >> sub/file";
    let world = with_submodule(&always(&format!("{{ create = \"a\" }}, {{ run = '''{attack}; true''' }}")));
    let modules = Folder::snapshot(&world.sandbox.path(".git/modules"), &[]);
    world.run(0);
    modules.assert_unchanged();
    assert!(!world.has("../tmp/executed"));
    world.assert_clean();
}

#[test]
fn what_an_agent_does_to_a_submodule_is_not_committed_and_does_not_reach_the_user() {
    for change in ["echo more >> sub/file", "git -C sub commit --quiet --allow-empty -m moved", "git rm --quiet --cached sub"] {
        let world = with_submodule(&always(&format!("{{ create = \"a\" }}, {{ run = '{change}' }}")));
        let before = world.git(&["rev-parse", "HEAD:sub"]);
        world.run(0);
        assert_eq!(world.git(&["rev-parse", "HEAD:sub"]), before, "{change}");
        assert_eq!(world.git(&["-C", "sub", "rev-parse", "HEAD"]), before, "{change}");
        assert_eq!(world.sandbox.read("sub/file"), "inner\n", "{change}");
        world.assert_clean();
    }
}

#[test]
fn a_submodule_that_an_attempt_made_is_refused() {
    let steps = "{ create = \"a\" }, { run = 'git -c protocol.file.allow=always submodule --quiet add ../tmp/lib made' }";
    let world = World::with(ONE, &always(steps), &SHORT);
    make_repository(&world, "../tmp/lib");
    world.run(4);
    assert_eq!(text(&world.last("verified")["report"]["reasons"][0]["why"]), "made is a git repository inside this one");
    assert!(!world.has("made") && !world.has(".gitmodules"));
    let kept = world.tree_files(&world.kept());
    assert!(kept.contains(&"a".to_owned()) && kept.contains(&".gitmodules".to_owned()), "{kept:?}");
    world.assert_clean();
}

#[test]
fn a_repository_of_the_users_is_left_alone() {
    for (script, code) in [(HONEST.to_owned(), 0), (always("{ create = \"x\" }, { run = 'git add --all; rm -rf inner' }"), 4)] {
        let world = World::with(ONE, &script, &SHORT);
        make_repository(&world, "inner");
        let inside = world.git(&["-C", "inner", "rev-parse", "HEAD"]);
        world.sandbox.write("inner/file", "not committed\n");
        world.run(code);
        assert_eq!(world.git(&["-C", "inner", "rev-parse", "HEAD"]), inside);
        assert_eq!(world.sandbox.read("inner/file"), "not committed\n");
        assert!(!world.tree_files("HEAD").iter().any(|path| path.starts_with("inner")));
        assert_eq!(world.git(&["status", "--porcelain"]), "?? inner/");
    }
}

#[test]
fn a_repository_that_an_attempt_made_is_refused() {
    let world = World::with(ONE, &always("{ create = \"a\" }, { run = 'git init --quiet made; echo x > made/file' }"), &SHORT);
    world.run(4);
    assert_eq!(text(&world.last("verified")["report"]["reasons"][0]["why"]), "made is a git repository inside this one");
    assert!(!world.has("made"));
    assert!(world.tree_files(&world.kept()).contains(&"a".to_owned()));
}
