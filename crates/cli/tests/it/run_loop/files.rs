//! The user's files, and files that checks touch.

use crate::run_loop::world::{HONEST, ONE, Settings, World, always, reason, text};

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
    assert_eq!(world.sandbox.read("cache/old"), "o");
    assert!(!world.has("cache/new"), "what the agent adds there is gone with its workspace");
    world.assert_clean();
}

#[test]
fn what_a_check_writes_into_tracked_files_is_not_committed() {
    let settings = Settings {
        tables: "[[gate]]\nname = \"fmt\"\ncommand = \"test ! -f a || { tr a-z A-Z < a > ../tmp/a && cp ../tmp/a a; echo more >> README.md; }\"\n",
        ..Settings::default()
    };
    let world = World::with(ONE, &always("{ create = \"a\", text = \"loud\" }"), &settings);
    world.run(0);
    assert_eq!(world.sandbox.read("../tmp/a"), "LOUD", "the check ran");
    assert_eq!(world.git(&["show", "HEAD:a"]), "loud");
    assert_eq!(world.git(&["diff", "--name-only", "HEAD^", "HEAD"]), "PLAN.md\na");
    let blob = world.git(&["notes", "--ref=verdone", "list", "HEAD"]);
    let note: serde_json::Value = serde_json::from_str(&world.git(&["cat-file", "blob", &blob])).unwrap();
    assert_eq!(text(&note["tree"]), world.git(&["rev-parse", "HEAD^{tree}"]));
    world.assert_clean();
}

#[test]
fn what_checks_leave_behind_is_neither_committed_nor_seen_by_the_next_check() {
    // The first run of the check is the red check, the second fails, the third passes.
    let plan = ONE.replace("test -f a", "ls | grep -c log >> ../tmp/seen; echo x > log; test -f a");
    let script = "[[turn]]\nturn = 1\nsteps = [{ create = \"x\" }]\n[[turn]]\nsteps = [{ create = \"a\" }]\n";
    let world = World::new(&plan, script);
    world.run(0);
    assert_eq!(world.git(&["diff", "--name-only", "HEAD^", "HEAD"]), "PLAN.md\na\nx");
    assert_eq!(world.sandbox.read("../tmp/seen"), "0\n0\n0\n");
    world.assert_clean();
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
    assert_eq!(reason(&world.last("verified")).0, "nothing-changed");
    assert_eq!(world.subjects(), ["initial"]);
    world.assert_clean();
}

#[test]
fn a_repository_made_by_the_agent_is_refused_with_its_name() {
    let settings = Settings { limits: "attempts = 1\nturns = 1", ..Settings::default() };
    let world =
        World::with(ONE, &always("{ create = \"a\" }, { run = \"git init --quiet sub && echo hi > sub/file\" }"), &settings);
    world.run(4);
    assert!(text(&world.last("attempt_rejected")["reason"]).contains("sub is a git repository inside this one"));
    let kept = world.tree_files(&world.kept());
    assert!(kept.contains(&"a".to_owned()) && !kept.iter().any(|path| path.starts_with("sub")), "{kept:?}");
    world.assert_clean();
}

#[test]
fn a_file_too_large_to_commit_is_refused_and_the_rest_is_kept() {
    let settings = Settings { limits: "attempts = 1\nturns = 1", ..Settings::default() };
    let script = always("{ create = \"a\" }, { run = 'dd if=/dev/null of=big bs=1 count=0 seek=150000000' }");
    let world = World::with(ONE, &script, &settings);
    world.run(4);
    assert!(text(&world.last("attempt_rejected")["reason"]).contains("big is too large to commit (150 MB)"));
    let kept = world.tree_files(&world.kept());
    assert!(kept.contains(&"a".to_owned()) && !kept.contains(&"big".to_owned()), "{kept:?}");
    world.assert_clean();
}

#[test]
fn folders_without_rights_are_read_all_the_same() {
    let settings = Settings { limits: "attempts = 1\nturns = 1", ..Settings::default() };
    let locked = "mkdir -p locked/deep names empty; echo x > locked/deep/file; echo x > names/file; \
                  chmod 000 locked/deep empty; chmod 100 locked; chmod 400 names";
    for (script, files) in [(locked, "a locked/deep/file names/file"), ("chmod 600 .", "a"), ("chmod 000 .", "a")] {
        let world = World::with(ONE, &always(&format!("{{ create = \"a\" }}, {{ run = '{script}' }}")), &settings);
        world.run(0);
        let changed = world.git(&["diff", "--name-only", "HEAD^", "HEAD", "--", ":!PLAN.md"]);
        assert_eq!(changed.replace('\n', " "), files, "{script}");
        world.assert_clean();
    }
}

#[test]
fn a_name_that_git_reserves_is_refused() {
    let settings = Settings { limits: "attempts = 1\nturns = 1", ..Settings::default() };
    for name in [".GIT/x", "deep/.Git/x", "git~1", "deep/git~1/x"] {
        let make = format!("mkdir -p $(dirname {name}); echo x > {name}");
        let world = World::with(ONE, &always(&format!("{{ create = \"a\" }}, {{ run = '{make}' }}")), &settings);
        world.run(4);
        let reason = text(&world.last("attempt_rejected")["reason"]);
        assert!(reason.contains(&format!("git cannot add {name}: git reserves this name")), "{reason}");
        assert!(world.tree_files(&world.kept()).contains(&"a".to_owned()));
        world.assert_clean();
    }
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
fn odd_names_links_and_modes_are_committed_and_kept_as_they_are() {
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
fn an_untracked_file_of_the_user_stays_and_a_commit_with_that_name_waits() {
    let plan = ONE.replace("test -f a", "grep -q OK n");
    let world = World::new(&plan, &always("{ run = \"test ! -e n\" }, { create = \"n\", text = \"OK\" }"));
    world.sandbox.write("n", "mine");
    let output = world.run(0);
    assert!(output.stdout.contains("1 untracked file is not part of the run: n"), "{}", output.stdout);
    assert!(output.stdout.contains("Not landed: cannot land: untracked files would be overwritten: n"), "{}", output.stdout);
    assert_eq!((world.sandbox.read("n"), world.subjects().len()), ("mine".to_owned(), 1));
    world.verdone(&["land"]).assert_code(4);
    assert_eq!(world.sandbox.read("n"), "mine");
    std::fs::rename(world.sandbox.path("n"), world.sandbox.path("../tmp/n")).unwrap();
    world.verdone(&["land"]).assert_code(0);
    assert_eq!(world.sandbox.read("n"), "OK");
    assert_eq!(world.trailer("HEAD", "Verdone-Proof"), "verified");
    world.assert_clean();
}

#[test]
fn a_pipe_in_the_place_of_gitignore_makes_nobody_wait() {
    let settings = Settings { limits: "attempts = 1\nturns = 1", ..Settings::default() };
    let world = World::with(ONE, &always("{ run = \"rm -f .gitignore; mkfifo .gitignore\" }, { create = \"a\" }"), &settings);
    world.run(4);
    assert!(text(&world.last("attempt_rejected")["reason"]).contains(".gitignore is a pipe, socket or device, not a file"));
    assert!(world.tree_files(&world.kept()).contains(&"a".to_owned()));
    world.assert_clean();
}

#[test]
fn checks_see_what_the_commit_has_whatever_the_attempts_own_rules_hide_or_filter() {
    let settings = Settings { limits: "attempts = 1\nturns = 1", ..Settings::default() };
    let hides = always("{ create = \".gitignore\", text = \"a\\n\" }, { create = \"a\" }");
    let world = World::with(ONE, &hides, &settings);
    world.run(4);
    assert_eq!(reason(&world.last("verified")).0, "check-failed");

    let filters = always("{ create = \".gitattributes\", text = \"* text=auto\\n\" }, { create = \"a\", text = \"x\\r\\n\" }");
    let plan = |bytes: &str| ONE.replace("test -f a", &format!("printf '{bytes}' > ../tmp/wanted; cmp ../tmp/wanted a"));
    World::with(&plan("x\\r\\n"), &filters, &settings).run(4);
    let world = World::with(&plan("x\\n"), &filters, &settings);
    world.run(0);
    assert_eq!(world.sandbox.read("a"), "x\n");
    world.assert_clean();
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
fn scripts_that_an_agent_plants_for_the_next_run_do_not_reach_the_user() {
    let plants = always(
        "{ create = \".fresher/hooks/started\", text = \"#!/bin/sh\\n\", executable = true }, { create = \".fresher/config.toml\" }, { create = \".fresher/notes.md\" }, { create = \".verdone/hooks/started\", text = \"#!/bin/sh\\n\", executable = true }, { create = \"a\" }",
    );
    let world = World::new(ONE, &plants);
    world.run(0);
    assert_eq!(world.git(&["diff", "--name-only", "HEAD^", "HEAD"]), ".fresher/notes.md\nPLAN.md\na");
    world.assert_clean();
}

#[test]
fn the_agents_own_git_finds_its_workspace_clean_when_a_turn_begins() {
    let script = always("{ run = 'git status --porcelain --untracked-files=all > ../tmp/status' }, { create = \"a\" }");
    let world = World::with(ONE, &script, &Settings::default());
    world.run(0);
    assert_eq!(world.sandbox.read("../tmp/status"), "");
}
