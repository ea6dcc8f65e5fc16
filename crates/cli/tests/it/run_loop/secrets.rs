//! Secrets from the environment stay out of everything that is stored.

use crate::run_loop::world::{ONE, Settings, World};

#[test]
fn a_secret_that_agent_check_and_hook_print_is_kept_nowhere() {
    const SECRET: &str = "correct-horse-battery-staple-77";
    let settings = Settings {
        limits: "attempts = 1",
        tables: "[[gate]]\nname = \"leaky\"\ncommand = \"echo gate $MY_API_TOKEN\"\n",
        ..Settings::default()
    };
    let plan = ONE.replace("test -f a", "echo check $MY_API_TOKEN; test -f a");
    let script = "[[turn]]\nturn = 1\nsteps = [{ run = \"echo agent $MY_API_TOKEN; echo agent $MY_API_TOKEN >&2\" }, { create = \"x\" }]\n\
                  [[turn]]\nsteps = [{ create = \"a\" }]\n";
    let mut world = World::with(&plan, script, &settings);
    world.sandbox.set("MY_API_TOKEN", SECRET);
    world.hook("pre-commit", "test -f ../tmp/again || { : > ../tmp/again; echo hook $MY_API_TOKEN; exit 1; }");
    let output = world.run(0);
    assert!(!output.transcript().contains(SECRET), "{}", output.transcript());
    assert!(output.stdout.contains("agent "), "{}", output.stdout);
    for (path, bytes) in world.everything_kept() {
        assert!(!String::from_utf8_lossy(&bytes).contains(SECRET), "{}", path.display());
    }
    assert_eq!(world.git(&["log", "--all", "--notes=verdone", "-p", "-S", SECRET]), "");
    assert!(!world.git(&["log", "--all", "--notes=verdone", "--format=%B%N"]).contains(SECRET));
}
