//! What is shown of a failed check: where the trouble begins, and the end.

use crate::run_loop::world::{PATIENCE, Settings, World, always};

/// The error comes first, and is far from the end.
const CHECK: &str = "echo compiling\necho \"a.c:3:5: error: expected ';'\"\necho '  int x'\nseq 1 2000 | sed 's/^/noise /'\necho the end\ntest -f right\n";

#[test]
fn the_first_error_is_on_the_screen_and_in_the_prompt() {
    let plan = "# Plan\n\n### US-001: Write right\n\n- [ ] Write the file right\n  - Verification: `sh check.sh`\n";
    let script = "[[turn]]\nturn = 1\nsteps = [{ create = \"w\" }]\n[[turn]]\nsteps = [{ create = \"right\" }]\n";
    let settings = Settings { limits: "turns = 2", ..Settings::default() };
    let world = World::folder(script, &settings);
    world.sandbox.write("PLAN.md", plan);
    world.sandbox.write("check.sh", CHECK);
    world.sandbox.repo();
    let output = world.start().wait(PATIENCE);
    let place = |text: &str, words: &str| text.find(words).unwrap_or_else(|| panic!("no {words:?} in:\n{text}"));
    for text in [output.stdout.as_str(), world.prompt(2).as_str()] {
        let (error, cut, end) = (place(text, "a.c:3:5: error: expected ';'"), place(text, "[...]"), place(text, "the end"));
        assert!(error < cut && cut < end, "{text}");
        assert!(!text.contains("noise 1000"), "{text}");
    }
}

#[test]
fn a_hidden_check_shows_the_agent_no_error() {
    let plan = "# Plan\n\n### US-001: Write right\n\n- [ ] Write the file right\n  - Verification: `test -f right`\n";
    let tables =
        "[[gate]]\nname = \"secret\"\nhidden = \"~/hidden\"\ncommand = \"echo error: SECRET-WORD; seq 1 2000; test -f right\"\n";
    let settings = Settings { limits: "turns = 2", tables, ..Settings::default() };
    let world = World::with(plan, &always("{ create = \"w\" }"), &settings);
    std::fs::create_dir_all(world.sandbox.home().join("hidden")).unwrap();
    world.start_with(&["--red-baseline"]).wait(PATIENCE);
    for turn in 1..=2 {
        assert!(!world.prompt(turn).contains("SECRET-WORD"), "{}", world.prompt(turn));
    }
}
