//! The fallback without namespaces.

use verdone_runtime::launcher::{Inside, Mount, ViewPlan};
use verdone_runtime::process::{Exit, SpawnError};
use verdone_runtime::workspace::probe;

use crate::world::{World, as_everybody};

fn confined(world: &World) -> Option<Inside> {
    let project = world.path("project");
    let mounts = vec![Mount::Bind { from: project.clone(), at: project, write: true }, Mount::Mask { at: world.path("secret") }];
    let plan = ViewPlan { mounts, ..world.plan() };
    probe(&world.path("state")).landlock.map(|_| Inside::landlock(&plan, &world.path("state/plan.json")).unwrap())
}

#[test]
fn writes_stay_in_the_folders_of_the_plan() {
    as_everybody(|world| {
        let Some(inside) = confined(world) else { return };
        let shell = |script: &str| {
            let ended = world.run(inside.clone(), &["sh", "-c", script], |_| {}).unwrap();
            (ended.output.text, ended.exit)
        };
        assert_eq!(
            shell("echo new > made; mkdir a; mv made a; cat a/made; echo x > /dev/null; cat ../packages/one").0,
            "new\n1\n"
        );
        for script in
            ["echo x > ../tree/x", "echo x >> ../token", "rm ../token", "mv ../token .", "ln ../token . && echo x > token"]
        {
            assert_ne!(shell(script).1, Exit::Code(0), "{script}");
        }
        assert_eq!(world.read("token"), "hidden\n");
        assert_eq!(shell(&format!("kill -0 {}", std::process::id())).1, Exit::Code(1), "no signals to us");
        assert_eq!(shell("exit 9").1, Exit::Code(9));
        assert_eq!(shell("kill -TERM $$").1, Exit::Signal(15));
    });
}

#[test]
fn a_program_that_is_missing_is_reported_here_too() {
    as_everybody(|world| {
        let Some(inside) = confined(world) else { return };
        let missing = world.run(inside, &["/no/such/program"], |_| {});
        assert!(matches!(missing, Err(SpawnError::NotFound { .. })), "{missing:?}");
    });
}
