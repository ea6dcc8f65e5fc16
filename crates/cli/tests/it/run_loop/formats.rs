//! Every plan format, in the layout of the tool it comes from, from end to end.

use verdone_testkit::PlanShape;

use crate::run_loop::world::{HONEST, ONE, Settings, World, always};

fn world(files: &[(&str, &str)], script: &str, settings: &Settings<'_>) -> World {
    let world = World::folder(script, settings);
    for (path, text) in files {
        world.sandbox.write(path, text);
    }
    world.sandbox.repo();
    world
}

const COUNTS: &str = "{ run = 'echo \"$VERDONE_STORY\" >> work.txt' }";

#[test]
fn every_shape_is_worked_off_in_place_with_only_its_markers_changed() {
    for shape in PlanShape::ALL {
        let name = shape.file_name();
        let world = world(&[(name, &shape.build(2))], &always(COUNTS), &Settings::default());
        world.run_with(&[name, "--check", "true"], 0);
        assert_eq!(world.sandbox.read(name), shape.build_with_done(2, |_| true), "{shape:?}");
        assert_eq!(world.sandbox.read("work.txt").lines().count(), 2, "{shape:?}");
        assert_eq!(world.subjects().len(), 3, "{shape:?}: {:?}", world.subjects());
        world.assert_clean();
    }
}

#[test]
fn a_prd_folder_gets_both_files_ticked_and_a_progress_entry_that_names_the_commit() {
    let plan = "# Implementation Plan\n\n## Tasks\n\n### US-001: Write a\n\n- [ ] Write it\n  - Verification: `test -f a`\n\n\
                ### US-002: fix: Write b\n\n- [ ] Write it\n  - Verification: `test -f b`\n  - Kind: docs\n";
    let prd = "# PRD\n\n## User stories\n\n### [ ] US-001: Write a\n\nText.\n\n### [ ] US-002: Write b\n\nText.\n";
    let files = [(".ralph/PRD-1/plan.md", plan), (".ralph/PRD-1/prd.md", prd), (".ralph/PRD-1/progress.md", "# Progress Log\n")];
    let script = "[[turn]]\nstory = \"US-001\"\nsteps = [{ create = \"a\" }]\n[[turn]]\nsteps = [{ create = \"b\" }, { append = \".ralph/PRD-1/progress.md\", text = \"I did it all\" }]\n";
    let world = world(&files, script, &Settings::default());
    world.run_with(&["--prd", "1"], 0);
    assert_eq!(world.sandbox.read(".ralph/PRD-1/plan.md"), plan.replace("[ ]", "[x]"));
    assert_eq!(world.sandbox.read(".ralph/PRD-1/prd.md"), prd.replace("[ ]", "[x]"));
    let progress = world.sandbox.read(".ralph/PRD-1/progress.md");
    assert!(progress.starts_with("# Progress Log\n"), "{progress}");
    assert!(!progress.contains("I did it all"), "the agent's own entry does not count");
    let commits: Vec<String> = world.git(&["log", "--format=%H %s"]).lines().map(str::to_owned).collect();
    assert_eq!(commits.len(), 4, "two stories, the record of the last one, and the first commit: {commits:?}");
    let (second, first) = (&commits[1], &commits[2]);
    for commit in [first, second] {
        assert!(progress.contains(&commit[..10]), "{commit}: {progress}");
    }
    assert!(second.ends_with(" docs(US-002): Write b") && progress.contains(" docs(US-002): Write b"), "{second}: {progress}");
    let at_second = world.git(&["show", &format!("{}:.ralph/PRD-1/progress.md", &second[..40])]);
    assert!(at_second.contains(&first[..10]) && !at_second.contains(&second[..10]), "it rides with the next commit: {at_second}");
    world.assert_clean();

    world.verdone(&["undo"]).assert_code(0);
    assert_eq!(world.subjects()[0], "revert: US-002");
    assert_eq!(world.sandbox.read(".ralph/PRD-1/plan.md").matches("[x]").count(), 1);
}

#[test]
fn a_ralph_loop_tells_its_state_in_progress_txt_and_its_prompt_is_used() {
    for shape in [PlanShape::FeatureArray, PlanShape::FeatureObject] {
        let home = ".claude/data/ralph-loops/mine";
        let list = format!("{home}/feature_list.json");
        let progress = format!("{home}/progress.txt");
        let prompt = format!("{home}/RALPH_PROMPT.md");
        let head = "# Progress\n\nIteration: 0\nMax Iterations: 10\nStatus: IN_PROGRESS\n\nNotes stay.\n";
        let files = [(&*list, &*shape.build(2)), (&*progress, head), (&*prompt, "Always be kind.\n")];
        let script = always(&format!("{COUNTS}, {{ run = 'grep Status {progress} >> work.txt' }}"));
        let mut world = world(&files, &script, &Settings::default());
        world.sandbox.set("RALPH_LOOP_DIR", home);
        world.run_with(&["--check", "true", "--max-iterations", "1"], 3);
        assert!(world.prompt(1).contains("Always be kind."), "{}", world.prompt(1));
        assert!(world.sandbox.read("work.txt").contains("IN_PROGRESS"));
        let text = world.sandbox.read(&progress);
        assert!(text.contains("Status: REACHED_LIMIT") && text.contains("Remaining: ") && text.contains("Notes stay."), "{text}");
        world.run_with(&["--check", "true"], 0);
        let text = world.sandbox.read(&progress);
        assert!(text.contains("Status: COMPLETE") && !text.contains("Remaining"), "{text}");
        assert_eq!(world.sandbox.read(&list), shape.build_with_done(2, |_| true));
        world.assert_clean();
    }
}

#[test]
fn the_limit_in_progress_txt_counts_unless_a_flag_says_otherwise_and_stays() {
    let progress = "# Progress\n- Iteration: 0\n- Max Iterations: 1\n- Status: UNKNOWN\n";
    let list = PlanShape::FeatureArray.build(3);
    let settings = Settings { limits: "max_iterations = 9", ..Settings::default() };
    let world = world(&[("feature_list.json", &list), ("progress.txt", progress)], &always(COUNTS), &settings);
    world.run_with(&["feature_list.json", "--check", "true"], 3);
    let text = world.sandbox.read("progress.txt");
    assert!(text.contains("- Iteration: 1\n- Max Iterations: 1\n- Status: REACHED_LIMIT\n"), "{text}");
    world.run_with(&["feature_list.json", "--check", "true", "--max-iterations", "5"], 0);
    let text = world.sandbox.read("progress.txt");
    assert!(text.contains("- Iteration: 2\n- Max Iterations: 1\n- Status: COMPLETE\n"), "{text}");
}

#[test]
fn a_plan_that_git_ignores_is_ticked_once_its_story_is_committed() {
    let plan = "- [ ] US-001: Write a\n  - Verification: `test -f a`\n";
    let settings = Settings { limits: "attempts = 1\nturns = 1", ..Settings::default() };
    for (steps, code, expected) in [
        ("{ create = \"a\" }", 0, plan.replace("[ ]", "[x]")),
        ("{ create = \"x\" }, { delete = \"plan.md\" }", 4, plan.to_owned()),
    ] {
        let world = world(&[("plan.md", plan), (".gitignore", "plan.md\n")], &always(steps), &settings);
        world.run(code);
        assert_eq!(world.sandbox.read("plan.md"), expected);
        assert!(!world.tree_files("HEAD").contains(&"plan.md".to_owned()));
        world.assert_clean();
    }
}

#[test]
fn a_half_written_plan_is_never_complete() {
    let done = r#"[{"category": "functional", "description": "Write a", "steps": ["it is there"], "passes": true}]"#;
    for cut in [0, 1, 20, 60, done.len() - 1] {
        let world = world(&[("feature_list.json", &done[..cut])], &always(COUNTS), &Settings::default());
        let output = world.run_with(&["feature_list.json"], 2);
        assert!(output.stderr.contains("feature_list.json"), "{}", output.stderr);
        assert!(!world.has(".verdone/runs"), "nothing began: cut at {cut}");
    }
}

#[test]
fn a_plan_that_is_named_by_a_link_is_ticked_in_the_commit() {
    let world = World::new(ONE, HONEST);
    std::os::unix::fs::symlink("PLAN.md", world.sandbox.path("L.md")).unwrap();
    world.run_with(&["L.md"], 0);
    assert_eq!(world.git(&["status", "--porcelain"]), "?? L.md");
    assert_eq!(world.git(&["show", "--name-only", "--format=", "HEAD"]), "PLAN.md\na");
}
