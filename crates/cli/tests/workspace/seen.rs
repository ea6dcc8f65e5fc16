//! What a process in a view sees, and where its writes go.

use std::fs;
use std::time::Instant;

use rustix::io::Errno;
use verdone_runtime::launcher::{Mount, Step, ViewPlan};
use verdone_runtime::process::Exit;
use verdone_runtime::workspace::ViewError;
use verdone_testkit::PATIENCE;

use crate::world::as_everybody;

#[test]
fn the_workspace_is_seen_at_the_path_of_the_project() {
    as_everybody(|world| {
        let view = world.open();
        let text = world.says(&view, "pwd; cat file \"$PWD/file\"; echo new > made; ls");
        let project = world.path("project").display().to_string();
        assert_eq!(text, format!("{project}\nthe workspace's\nthe workspace's\nfile\nmade\nnode_modules\n"));
        assert_eq!(world.read("tree/made"), "new\n");
        assert_eq!(world.read("project/file"), "the user's\n");
        assert!(!world.path("project/made").exists());
    });
}

#[test]
fn the_rest_of_the_system_is_read_only() {
    as_everybody(|world| {
        let view = world.open();
        let other = world.path("packages/one");
        let (text, exit) = world.shell(&view, &format!("echo x > '{}'", other.display()));
        assert!(exit != Exit::Code(0) && text.contains("Read-only file system"), "{text}");
        let (_, exit) = world.shell(&view, "touch /var/tmp/verdone-must-not-appear");
        assert_eq!(exit, Exit::Code(1));
        assert_eq!(world.says(&view, "echo x > /tmp/note; cat /tmp/note; ls /tmp"), "x\nnote\n");
        assert!(!std::path::Path::new("/tmp/note").exists());
    });
}

#[test]
fn hidden_folders_are_empty_hidden_files_too_and_absent_ones_stay_absent() {
    as_everybody(|world| {
        let view = world.open();
        assert_eq!(world.says(&view, "ls -A ../secret; cat ../token; test ! -e ../absent"), "");
        for script in ["touch ../secret/x", "echo x > ../token", "rm ../token", "mkdir ../absent"] {
            assert_ne!(world.shell(&view, script).1, Exit::Code(0), "{script}");
        }
        assert_eq!(world.read("secret/key"), "hidden\n");
        assert_eq!(world.read("token"), "hidden\n");
    });
}

#[test]
fn writes_to_an_overlay_go_to_its_upper_folder() {
    as_everybody(|world| {
        let view = world.open();
        world.says(&view, "cd node_modules && echo changed > one && rm two && echo 3 > three && mkdir -p four/five");
        assert_eq!(world.says(&view, "cd node_modules && ls && cat one"), "four\none\nthree\nchanged\n");
        drop(view);
        assert_eq!((world.read("packages/one"), world.read("packages/two")), ("1\n".to_owned(), "2\n".to_owned()));
        assert_eq!(world.read("state/packages.upper/one"), "changed\n");
        assert!(!world.path("packages/three").exists());
    });
}

#[test]
fn commands_of_one_view_share_its_folders_and_not_their_processes() {
    as_everybody(|world| {
        let view = world.open();
        world.says(&view, "echo shared > node_modules/note; echo shared > /tmp/note");
        assert_eq!(world.says(&view, "cat node_modules/note /tmp/note"), "shared\nshared\n");
        let mut other = world.companion(&view, "echo up; read -r wait");
        assert!(matches!(other.receive(PATIENCE), verdone_runtime::process::Received::Line(..)));
        // The first process and the shell, but no process of the other command.
        let seen = world.says(&view, "for p in /proc/[0-9]*; do basename $p; done | sort -n | head -2 | tr '\\n' ' '; echo $$");
        assert_eq!(seen, "1 2 2\n");
        other.end(PATIENCE, &verdone_runtime::process::signal::Signals::none());
    });
}

#[test]
fn two_hundred_overlays_can_be_mounted() {
    as_everybody(|world| {
        let mut plan = world.plan();
        for at in 0..200 {
            plan.mounts.push(world.overlay(&format!("p{at}"), world.path(&format!("project/packages/p{at}/node_modules"))));
        }
        let begin = Instant::now();
        let view = world.open_plan(&plan).unwrap();
        println!("200 overlays: {:?}", begin.elapsed());
        assert_eq!(world.says(&view, "cat packages/p*/node_modules/one | wc -l"), "200\n");
    });
}

#[test]
fn a_plan_that_cannot_be_carried_out_names_the_step_and_the_path() {
    as_everybody(|world| {
        let refused = |mount: Mount| match world.open_plan(&ViewPlan { mounts: vec![mount], ..world.plan() }) {
            Err(ViewError::Refused(failure)) => (failure.step, failure.path.unwrap(), failure.errno),
            other => panic!("{other:?}"),
        };
        let absent = world.path("absent");
        let name = absent.display().to_string();
        let bind = |from: &str, at: &str| Mount::Bind { from: world.path(from), at: world.path(at), write: true };
        assert_eq!(refused(bind("absent", "project")), (Step::Bind, name.clone(), Errno::NOENT.raw_os_error()));
        assert_eq!(refused(bind("tree", "absent")), (Step::MountPoint, name, Errno::ROFS.raw_os_error()));
        let left = fs::read_dir(world.path("state")).unwrap().map(|entry| entry.unwrap().file_name());
        assert_eq!(left.filter(|name| name.to_string_lossy().starts_with("view-")).count(), 0, "nothing is left behind");
    });
}

#[test]
fn a_view_costs_milliseconds() {
    as_everybody(|world| {
        const ROUNDS: u32 = 20;
        let times = || {
            let begin = Instant::now();
            let view = world.open_plan(&ViewPlan { mounts: vec![Mount::Scratch { at: "/tmp".into() }], ..world.plan() }).unwrap();
            let opened = begin.elapsed();
            let begin = Instant::now();
            world.run(view.inside(), &["true"], |_| {}).unwrap();
            let run = begin.elapsed();
            let begin = Instant::now();
            drop(view);
            (opened, run, begin.elapsed())
        };
        let mut all: Vec<_> = (0..ROUNDS).map(|_| times()).collect();
        all.sort();
        let plain = Instant::now();
        for _ in 0..ROUNDS {
            world.run_outside(&["true"]);
        }
        println!("open, enter and run true, drop: {:?}; true outside: {:?}", all[all.len() / 2], plain.elapsed() / ROUNDS);
    });
}
