//! A repository in a world, the workspaces of its project, and ways to run commands in them.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use verdone_core::base::id::Oid;
use verdone_core::base::redact::Redactor;
use verdone_core::config::Config;
use verdone_runtime::git::Git;
use verdone_runtime::launcher::Inside;
use verdone_runtime::process::signal::Signals;
use verdone_runtime::process::{self, EnvPlan, Exit, Spawn, Stdin};
use verdone_runtime::project::{Project, find_git_top};
use verdone_runtime::workspace::{WorkspaceRequest, Workspaces};

use crate::world::World;

/// The workspaces of a run, opened.
pub(crate) fn open(world: &World, git: &Git, name: &str) -> Workspaces {
    open_with(world, git, name, Config::default())
}

pub(crate) fn open_with(world: &World, git: &Git, name: &str, mut config: Config) -> Workspaces {
    let top = world.path("project");
    let project = Project::find(&top, &find_git_top(&top).unwrap()).unwrap();
    config.workspace.state = Some(world.path("state").join(name).to_str().unwrap().into());
    let run_dir = project.root.join(".verdone/runs/run");
    let objects = git.object_folders().unwrap();
    let request = WorkspaceRequest { project: &project, config: &config, run: "run", run_dir: &run_dir, objects };
    let mut spaces = Workspaces::new(&request);
    spaces.open(git).unwrap();
    spaces
}

/// The output of a script, and how it ended.
pub(crate) fn said(inside: Option<Inside>, cwd: &Path, env: EnvPlan, script: &str) -> (String, Exit) {
    let redactor = Redactor::default();
    let spawn = Spawn {
        inside,
        argv: ["sh", "-c", script].map(Into::into).to_vec(),
        cwd: cwd.to_owned(),
        env,
        stdin: Stdin::Null,
        wall: Some(Duration::from_mins(2)),
        idle: None,
        grace: Duration::from_secs(10),
        cap: 1 << 20,
        keep: None,
        redactor: &redactor,
    };
    let ended = process::run(&spawn, &Signals::none(), &mut |_| {}).unwrap();
    (ended.output.text, ended.exit)
}

/// Runs a script that must succeed.
#[track_caller]
pub(crate) fn shell(inside: Option<Inside>, cwd: &Path, script: &str) {
    let (text, exit) = said(inside, cwd, EnvPlan::default(), script);
    assert_eq!(exit, Exit::Code(0), "{script}\n{text}");
}

#[track_caller]
pub(crate) fn run_git(folder: &Path, args: &[&str]) -> String {
    let output = Command::new("git").args(args).current_dir(folder).env("GIT_CONFIG_GLOBAL", "/dev/null").output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Commits everything in the folder.
pub(crate) fn commit_all(folder: &Path, name: &str) -> Oid {
    run_git(folder, &["add", "-A"]);
    run_git(folder, &["-c", "user.name=dev", "-c", "user.email=d@e", "commit", "-q", "-m", name]);
    Oid(run_git(folder, &["rev-parse", "HEAD"]))
}

pub(crate) fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}
