//! What the probe reports on this system, and on one that refuses a step.

use std::path::Path;
use std::process::Command;

use verdone_runtime::launcher::{FAULT_VARIABLE, Step};
use verdone_runtime::workspace::{Ability, Level, Part, probe};

use crate::world::as_everybody;

/// The file for the answer of a probe in a child process: the switch is an environment variable, which tests of one process share.
const ANSWER: &str = "VERDONE_TEST_ANSWER";

#[test]
fn each_step_that_is_refused_is_named() {
    if let Some(answer) = std::env::var_os(ANSWER) {
        let _alone = crate::world::alone();
        let answer = Path::new(&answer);
        std::fs::write(answer, serde_json::to_vec(&probe(&answer.with_file_name("state"))).unwrap()).unwrap();
        return;
    }
    as_everybody(|world| {
        let ask = |fault: &str| -> Ability {
            let status = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "probe::each_step_that_is_refused_is_named"])
                .env(ANSWER, world.path("answer"))
                .env(FAULT_VARIABLE, fault)
                .output();
            assert!(status.unwrap().status.success());
            serde_json::from_str(&world.read("answer")).unwrap()
        };
        let step = |part: &Part| match part {
            Part::Refused(refusal) => refusal.failure.as_ref().map(|failure| (failure.step, failure.errno)),
            Part::Works | Part::NotTried => panic!("{part:?}"),
        };
        let all = ask("none");
        assert!(all.view.works() && all.overlay.works() && all.own_proc.works() && all.own_network.works(), "{all:?}");
        assert_eq!(all.level(), Level::View);

        let fallback = if all.landlock.is_some() { Level::CloneWithLandlock } else { Level::UnsealedClone };
        for (fault, expected) in [("unshare", (Step::Unshare, 1)), ("idmap", (Step::IdMap, 1)), ("mount", (Step::Mount, 13))] {
            let ability = ask(fault);
            assert_eq!((step(&ability.view), ability.level()), (Some(expected), fallback), "{fault}");
            let Part::Refused(refusal) = &ability.view else { panic!("{ability:?}") };
            assert!(refusal.remedy.is_some(), "{fault}: {refusal:?}");
        }
        let overlay = ask("overlay");
        assert_eq!((step(&overlay.overlay), overlay.level()), (Some((Step::Overlay, 22)), Level::View));
        assert!(overlay.view.works() && overlay.own_network.works());
        let network = ask("network");
        assert_eq!((step(&network.own_network), network.level()), (Some((Step::Network, 28)), Level::View));
        let proc = ask("proc");
        assert_eq!((step(&proc.own_proc), proc.level()), (Some((Step::Proc, 1)), Level::ViewWithoutOwnProc));
        assert!(proc.view.works() && proc.overlay.works());
        assert!(std::fs::read_dir(world.path("state")).unwrap().next().is_none(), "the probe leaves nothing behind");
    });
}
