//! What failed attempts teach: a line in the guardrails, the prompts that get it, and what the user does to it.

use serde_json::Value;

use crate::run_loop::world::{ONE, Settings, TWO, World, always, text};

const FILE: &str = ".verdone/guardrails.md";
/// A gate that names a file and an error until `a` is there.
const GATE: &str =
    "[[gate]]\nname = \"sums\"\ncommand = \"test -f a || { echo 'src/sum.py:3: error: expected 2, got 7'; exit 1; }\"\n";
const LINE: &str = "- A check failed: `sums` in `src/sum.py` (\"src/sum.py:3: error: expected 2, got 7\")";

/// An agent that does the work only if its prompt has the lesson, and no turns to repair it.
fn eager(settings: &str) -> World {
    let plan = ONE.replace("  - Verification: `test -f a`\n", "");
    let script = always("{ create = \"x\", text = \"wrong\" }");
    let limits = format!("turns = 1\n{settings}");
    let world = World::with(&plan, &script, &Settings { limits: &limits, tables: GATE, ..Settings::default() });
    world.sandbox.write("../tmp/agent.sh", "cat > ../tmp/prompt\nif grep -q '^- A check failed: `sums`' ../tmp/prompt\nthen echo right > a; else echo wrong > x; fi\n");
    world
}

fn listed(world: &World) -> Value {
    serde_json::from_str(&world.verdone(&["guardrails", "--json"]).assert_code(0).stdout).unwrap()
}

const AGENT: [&str; 3] = ["--red-baseline", "--agent-command", "sh ../tmp/agent.sh"];

#[test]
fn a_lesson_of_a_failed_attempt_is_in_the_next_prompt_and_the_attempt_passes() {
    let world = eager("attempts = 2");
    world.sandbox.write(FILE, "Never push.\n");
    world.run_with(&AGENT, 0);
    assert!(!world.prompt(1).contains("A check failed"), "{}", world.prompt(1));
    let second = world.prompt(2);
    assert!(second.contains("## Guardrails\n\nNever push.\n\nLessons from earlier attempts."), "{second}");
    assert!(second.contains(&format!("\n{LINE}\n")), "{second}");
    assert_eq!(world.sandbox.read(FILE), format!("Never push.\n{LINE}\n"));
    let lesson = &listed(&world)["lessons"][0];
    assert_eq!((&lesson["check"], &lesson["file"]), (&"sums".into(), &"src/sum.py".into()));
    let history = &lesson["history"];
    assert_eq!((&history["times"], &history["used"], &history["passed"]), (&1.into(), &1.into(), &1.into()), "{history}");
    assert_eq!(text(&history["origin"]["story"]), "US-001");
}

#[test]
fn the_next_run_profits_from_the_lessons_of_the_last_one() {
    let world = eager("attempts = 1");
    world.run_with(&AGENT, 4);
    world.run_with(&AGENT, 0);
    assert!(world.prompt(1).contains(LINE), "{}", world.prompt(1));
    assert!(!world.prompt(1).contains("What went wrong last time"), "it knows nothing else of the first run");
}

#[test]
fn a_line_that_the_user_deletes_or_changes_is_not_written_again() {
    let world = eager("attempts = 1");
    let broken = |world: &World| world.run_with(&["--red-baseline", "--agent-command", "date +%N > x"], 4);
    broken(&world);
    assert_eq!(world.sandbox.read(FILE), format!("{LINE}\n"));
    world.sandbox.write(FILE, "- Sums are counted from one.\n");
    broken(&world);
    assert_eq!(world.sandbox.read(FILE), "- Sums are counted from one.\n");
    let page = listed(&world);
    assert_eq!((&page["user_lines"], page["lessons"].as_array().unwrap().len()), (&1.into(), 0));
    assert_eq!(text(&page["dropped"][0]["history"]["status"]), "dropped-by-user");
}

#[test]
fn stories_get_only_the_lessons_that_share_a_file_or_a_check_with_them() {
    let script = "[[turn]]\nstory = \"US-001\"\nsteps = [{ create = \"x\" }]\n[[turn]]\nsteps = [{ create = \"b\" }]\n";
    let world = World::with(TWO, script, &Settings { limits: "attempts = 1\nturns = 1", ..Settings::default() });
    world.run(4);
    assert_eq!(world.sandbox.read(FILE), "- A check failed: `test -f a`\n");
    assert!(!world.prompt(2).contains("## Guardrails"), "the other story has another check: {}", world.prompt(2));
}

#[test]
fn nothing_is_learned_where_the_settings_say_so() {
    let tables = format!("{GATE}[learn]\nenabled = false\n");
    let settings = Settings { limits: "attempts = 1\nturns = 1", tables: &tables, ..Settings::default() };
    let world = World::with(ONE, &always("{ create = \"x\" }"), &settings);
    world.run_with(&["--red-baseline"], 4);
    assert!(!world.has(FILE));
}

#[test]
fn a_hidden_check_teaches_its_name_and_nothing_else() {
    let tables = "[[gate]]\nname = \"secret\"\ncommand = \"echo src/a.py:7: error: the-answer; exit 1\"\nhidden = \"~/hidden\"\n";
    let settings = Settings { limits: "attempts = 1\nturns = 1", tables, ..Settings::default() };
    let world = World::with(ONE, &always("{ create = \"a\" }"), &settings);
    world.sandbox.write("../home/hidden/key", "the-answer");
    world.run_with(&["--red-baseline"], 4);
    assert_eq!(world.sandbox.read(FILE), "- A hidden check failed: `secret`\n");
}
