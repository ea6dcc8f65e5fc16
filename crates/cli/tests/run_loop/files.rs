//! Files that are the user's, and files that checks touch.

use crate::world::{HONEST, ONE, Settings, World, always, text};

#[test]
fn the_users_untracked_files_are_never_committed_and_survive_everything() {
    let settings = Settings { limits: "attempts = 1\nturns = 1", ..Settings::default() };
    for (steps, code) in [
        ("{ create = \"a\" }, { run = \"git add --all\" }", 0),
        ("{ create = \"notes.txt\", text = \"overwritten\" }, { create = \"x\" }", 4),
        ("{ delete = \"notes.txt\" }, { create = \"x\" }", 4),
        ("{ run = \"git clean -fdq\" }, { create = \"x\" }", 4),
        ("{ create = \".gitignore\", text = \"notes.txt\\n\" }, { delete = \"notes.txt\" }", 4),
    ] {
        let world = World::with(ONE, &always(steps), &settings);
        world.sandbox.write("notes.txt", "the user's own\n");
        world.run(code);
        assert_eq!(world.sandbox.read("notes.txt"), "the user's own\n", "{steps}");
        assert!(!world.tree_files("HEAD").contains(&"notes.txt".to_owned()), "{steps}");
        assert_eq!(world.git(&["status", "--porcelain"]), "?? notes.txt", "{steps}");
    }
}

#[test]
fn ignored_files_are_left_alone() {
    let settings = Settings { limits: "attempts = 1\nturns = 1", ..Settings::default() };
    let world = World::folder(&always("{ create = \"cache/new\", text = \"n\" }, { create = \"x\" }"), &settings);
    world.sandbox.write("PLAN.md", ONE);
    world.sandbox.write(".gitignore", "cache/\n");
    world.sandbox.repo();
    world.sandbox.write("cache/old", "o");
    world.run(4);
    assert_eq!((world.sandbox.read("cache/old"), world.sandbox.read("cache/new")), ("o".to_owned(), "n".to_owned()));
    world.assert_clean();
}

#[test]
fn what_a_formatter_changes_is_verified_again_and_committed() {
    let settings = Settings {
        tables: "[[gate]]\nname = \"fmt\"\ncommand = \"test ! -f a || { tr a-z A-Z < a > ../tmp/a && { cmp -s a ../tmp/a || cp ../tmp/a a; }; }\"\n",
        ..Settings::default()
    };
    let world = World::with(ONE, &always("{ create = \"a\", text = \"loud\" }"), &settings);
    world.run(0);
    assert_eq!(world.git(&["show", "HEAD:a"]), "LOUD");
    let blob = world.git(&["notes", "--ref=verdone", "list", "HEAD"]);
    let note: serde_json::Value = serde_json::from_str(&world.git(&["cat-file", "blob", &blob])).unwrap();
    assert_eq!(text(&note["tree"]), world.git(&["rev-parse", "HEAD^{tree}"]));
    world.assert_clean();
}

#[test]
fn checks_that_never_settle_fail_with_that_reason() {
    let settings = Settings {
        limits: "attempts = 1\nturns = 1",
        tables: "[[gate]]\nname = \"restless\"\ncommand = \"test ! -f a || echo more >> README.md\"\n",
        ..Settings::default()
    };
    let world = World::with(ONE, HONEST, &settings);
    world.run(4);
    assert_eq!(text(&world.last("verified")["outcome"]), "unsettled");
    assert!(text(&world.last("attempt_rejected")["reason"]).contains("do not settle"));
    assert_eq!(world.sandbox.read("README.md"), "# A project\n");
    world.assert_clean();
}

#[test]
fn what_checks_leave_behind_is_not_committed_but_listed() {
    // The first run of the check is the red one, the second fails, the third passes: debris of all three.
    let plan = ONE.replace("test -f a", "n=$(ls | grep -c log); echo x > log$n; test -f a");
    let script = "[[turn]]\nturn = 1\nsteps = [{ create = \"x\" }]\n[[turn]]\nsteps = [{ create = \"a\" }]\n";
    let world = World::new(&plan, script);
    world.run(0);
    assert_eq!(world.git(&["diff", "--name-only", "HEAD^", "HEAD"]), "PLAN.md\na\nx");
    let debris = &world.last("verified")["debris"];
    assert_eq!(debris.as_array().unwrap().len(), 3, "{debris}");
    assert_eq!(world.git(&["status", "--porcelain"]), "?? log0\n?? log1\n?? log2");
}

#[test]
fn a_file_that_a_check_made_and_the_agent_then_wrote_is_the_agents() {
    let plan = ONE.replace("test -f a", "test -f a || { : > a; exit 1; }; grep -q work a");
    let world = World::new(&plan, &always("{ create = \"a\", text = \"work\" }"));
    world.run(0);
    assert_eq!(world.git(&["show", "HEAD:a"]), "work");
    world.assert_clean();
}

#[test]
fn what_only_the_red_check_wrote_is_not_the_agents_work() {
    let plan = ONE.replace("test -f a", "test -f marker || { : > marker; exit 1; }");
    let settings = Settings { limits: "attempts = 1\nturns = 1", ..Settings::default() };
    let world = World::with(&plan, &always("{ claim = \"done\" }"), &settings);
    world.run(4);
    assert_eq!(text(&world.last("verified")["outcome"]), "nothing_changed");
    assert_eq!(world.subjects(), ["initial"]);
    world.assert_clean();
}

#[test]
fn a_repository_made_by_the_agent_is_moved_aside_not_deleted() {
    let settings = Settings { limits: "attempts = 1\nturns = 1", ..Settings::default() };
    let world =
        World::with(ONE, &always("{ create = \"a\" }, { run = \"git init --quiet sub && echo hi > sub/file\" }"), &settings);
    world.run(4);
    assert!(!world.has("sub"));
    world.assert_clean();
    let kept = world.everything_kept();
    assert!(kept.iter().any(|(path, bytes)| path.ends_with("sub/file") && bytes == b"hi\n"));
}

#[test]
fn a_file_too_large_to_keep_is_moved_aside_and_the_tree_is_put_back() {
    let settings = Settings { limits: "attempts = 1\nturns = 1", ..Settings::default() };
    let script = always("{ create = \"a\" }, { run = 'dd if=/dev/null of=big bs=1 count=0 seek=150000000' }");
    let world = World::with(ONE, &script, &settings);
    world.run(4);
    assert!(text(&world.last("attempt_rejected")["reason"]).contains("too large"));
    assert!(!world.has("big") && !world.has("a"));
    world.assert_clean();
    let aside = world.run_dir().join("aside");
    let moved: Vec<_> = std::fs::read_dir(&aside).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(moved.len(), 1, "{moved:?}");
}

#[test]
fn a_project_in_a_subdirectory_commits_the_whole_tree_and_checks_there() {
    let world = World::folder("", &Settings::default());
    let settings = world.sandbox.read(".verdone/config.toml");
    std::fs::remove_dir_all(world.sandbox.path(".verdone")).unwrap();
    world.sandbox.write("sub/.verdone/config.toml", settings);
    world.sandbox.write("sub/.verdone/script.toml", always("{ create = \"a\" }, { run = 'echo top > ../top' }"));
    world.sandbox.write("sub/PLAN.md", ONE);
    world.sandbox.repo();
    world.verdone(&["-C", "sub", "run"]).assert_code(0);
    assert_eq!(world.git(&["diff", "--name-only", "HEAD^", "HEAD"]), "sub/PLAN.md\nsub/a\ntop");
    world.assert_clean();
}

#[test]
fn a_run_in_a_linked_work_tree_leaves_the_main_one_alone() {
    let world = World::new(ONE, HONEST);
    let base = world.head();
    world.git(&["worktree", "add", "--quiet", "-b", "side", "../tmp/side"]);
    world.verdone(&["-C", "../tmp/side", "run"]).assert_code(0);
    assert_eq!(world.head(), base);
    assert_eq!(world.git(&["log", "-1", "--format=%s", "side"]), "feat(US-001): Write a");
    world.assert_clean();
    assert_eq!(world.plan(), ONE);
}

#[test]
fn odd_names_links_and_modes_are_committed_and_rolled_back_as_they_are() {
    let odd = r#"{ run = '''printf x > "$(printf 'new\nline')"; printf x > "sp ace"; printf x > ./-dash; ln -s nowhere link; chmod +x README.md''' }"#;
    for (more, code) in [(", { create = \"a\" }", 0), ("", 4)] {
        let settings = Settings { limits: "attempts = 1\nturns = 1", ..Settings::default() };
        let world = World::with(ONE, &always(&format!("{odd}{more}")), &settings);
        world.run(code);
        world.assert_clean();
        let commit = if code == 0 { "HEAD".to_owned() } else { world.kept() };
        let files = world.tree_files(&commit);
        for name in ["-dash", "sp ace", "link", "\"new\\nline\""] {
            assert!(files.contains(&name.to_owned()), "{name}: {files:?}");
        }
        assert!(world.git(&["ls-tree", &commit, "README.md"]).starts_with("100755"));
        assert_eq!(world.has("sp ace"), code == 0);
    }
}

#[test]
fn a_story_that_needs_an_untracked_file_of_the_user_is_not_called_verified() {
    let plan = ONE.replace("test -f a", "grep -q OK notes");
    let world = World::new(&plan, &always("{ create = \"notes\", text = \"OK\" }, { create = \"other\" }"));
    world.sandbox.write("notes", "mine");
    let output = world.run(0);
    assert!(output.stdout.contains("The checks saw what the commit does not have as it is: notes"), "{}", output.stdout);
    assert_eq!(world.trailer("HEAD", "Verdone-Verdict"), "unproven");
    assert!(!world.tree_files("HEAD").contains(&"notes".to_owned()));
}

#[test]
fn a_pipe_in_the_place_of_gitignore_makes_nobody_wait() {
    let world = World::new(ONE, &always("{ run = \"rm -f .gitignore; mkfifo .gitignore\" }, { create = \"a\" }"));
    world.run(0);
    world.assert_clean();
    assert!(!world.has(".gitignore"));
}

#[test]
fn what_the_attempts_own_rules_hide_or_filter_is_not_called_verified() {
    let hides = always("{ create = \".gitignore\", text = \"a\\n\" }, { create = \"a\" }");
    let world = World::new(ONE, &hides);
    let output = world.run(0);
    assert_eq!(world.trailer("HEAD", "Verdone-Verdict"), "unproven");
    assert!(output.stdout.contains("does not have as it is: a"), "{}", output.stdout);

    let filters = always("{ create = \".gitattributes\", text = \"* text=auto\\n\" }, { create = \"a\", text = \"x\\r\\n\" }");
    let world = World::new(ONE, &filters);
    world.run(0);
    assert_eq!(world.trailer("HEAD", "Verdone-Verdict"), "unproven");
}

#[test]
fn a_pipe_that_was_there_before_is_refused_at_once() {
    let world = World::new(ONE, HONEST);
    world.sandbox.run("mkfifo", [".gitignore"]).assert_code(0);
    world.run(2);
    world.sandbox.run("rm", [".gitignore"]).assert_code(0);
    world.sandbox.run("rm", [".verdone/config.toml"]).assert_code(0);
    world.sandbox.run("mkfifo", [".verdone/config.toml"]).assert_code(0);
    world.run(2);
}

#[test]
fn scripts_that_an_agent_plants_for_the_next_run_are_put_back() {
    let plants = always(
        "{ create = \".fresher/hooks/started\", text = \"#!/bin/sh\\n\", executable = true }, { create = \".fresher/config.toml\" }, { create = \"a\" }",
    );
    let world = World::new(ONE, &plants);
    world.run(0);
    assert!(!world.has(".fresher/hooks/started") && !world.has(".fresher/config.toml"));
    assert!(!world.tree_files("HEAD").iter().any(|path| path.starts_with(".fresher")));
}
