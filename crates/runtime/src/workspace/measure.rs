//! Real workspaces for `scripts/bench workspace`, driven by lines on standard input. Each answer contains the time taken.
//!
//! `create COMMIT`, `reset COMMIT`, `read` and `remove`, in the repository of the working folder.

use std::io::{self, BufRead as _, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use serde_json::{Value, json};
use verdone_core::base::id::Oid;
use verdone_core::config::Config;

use super::{WorkspaceRequest, Workspaces};
use crate::git::{Git, PathSet};
use crate::project::{Project, find_git_top};

type Failed = Box<dyn std::error::Error>;

pub fn run() -> ExitCode {
    match answer_lines() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "measure: {error}");
            ExitCode::FAILURE
        }
    }
}

fn answer_lines() -> Result<(), Failed> {
    let here = std::env::current_dir()?;
    let project = Project::find(&here, &find_git_top(&here)?)?;
    let git = Git::open(&project.root)?;
    let name = format!("measure-{}", std::process::id());
    let run_dir = project.root.join(".verdone/runs").join(&name);
    let mut spaces = None;
    for line in io::stdin().lock().lines() {
        let line = line?;
        let (step, commit) = line.split_once(' ').unwrap_or((&line, ""));
        let started = Instant::now();
        let said = match step {
            "create" => {
                let made = spaces.insert(open(&project, &git, &name, &run_dir)?);
                attempt_at(made, &git, commit)?
            }
            "reset" => {
                let open = spaces.as_mut().ok_or("nothing was created")?;
                open.drop_agent();
                attempt_at(open, &git, commit)?
            }
            "read" => {
                let open = spaces.as_mut().ok_or("nothing was created")?;
                json!({ "tree": open.read_attempt(&git, &PathSet::default(), u64::MAX)?.tree.as_str() })
            }
            "remove" => {
                spaces = None;
                json!({})
            }
            unknown => return Err(format!("unknown step {unknown:?}").into()),
        };
        let took = started.elapsed().as_secs_f64() * 1000.0;
        let mut out = io::stdout().lock();
        writeln!(out, "{}", json!({ "ms": took, "said": said }))?;
        out.flush()?;
    }
    Ok(())
}

fn open(project: &Project, git: &Git, name: &str, run_dir: &Path) -> Result<Workspaces, Failed> {
    let config = Config::default();
    let request = WorkspaceRequest { project, config: &config, run: name, run_dir, objects: git.object_folders()? };
    let mut spaces = Workspaces::new(&request);
    spaces.open(git)?;
    Ok(spaces)
}

/// Everything that happens before an agent can be started.
fn attempt_at(spaces: &mut Workspaces, git: &Git, commit: &str) -> Result<Value, Failed> {
    spaces.reset_agent(git, &Oid::from(commit), "verdone/measure", &[])?;
    Ok(json!({ "files": spaces.agent()?.tree }))
}
