//! What `verdone doctor` says about workspaces: how agents and checks can be confined here, found out by trying.

use verdone_core::config::Config;

use super::probe::{Level, Part, probe};
use super::spaces::missing_seal;
use super::state::StateFolder;
use crate::preflight::Finding;
use crate::project::Project;

pub fn examine(project: &Project, config: &Config) -> Vec<Finding> {
    let state = match StateFolder::from_environment(config.workspace.state.as_deref(), &project.git_top) {
        Ok(state) => state,
        Err(error) => return vec![Finding::bad("workspace", error.to_string(), [])],
    };
    let ability = probe(state.path());
    let place = state.path().display();
    let mut findings = vec![match ability.level() {
        Level::View => Finding::good("workspace", format!("sealed: a private view of the file system, in {place}")),
        Level::ViewWithoutOwnProc => {
            Finding::warning("workspace", format!("sealed, but processes outside are listed, in {place}"))
        }
        Level::CloneWithLandlock => Finding::warning(
            "workspace",
            format!("a clone in {place}; Landlock refuses writes elsewhere, credentials can be read"),
        ),
        Level::UnsealedClone => {
            Finding::warning("workspace", format!("unsealed: a clone in {place}, and nothing enforces its limits"))
        }
    }];
    if config.seal.required && !missing_seal(&ability, &config.seal).is_empty() {
        findings[0] = Finding::bad("workspace", findings[0].message.clone(), ["[seal] required = true refuses a run here"]);
    }
    let parts = [
        ("private view", &ability.view),
        ("copy-on-write folders", &ability.overlay),
        ("own /proc", &ability.own_proc),
        ("own network", &ability.own_network),
    ];
    for (name, part) in parts {
        if let Part::Refused(refusal) = part {
            let hints = refusal.remedy.iter().cloned().collect();
            findings.push(Finding { hints, ..Finding::warning("seal", format!("no {name}: {}", refusal.reason)) });
        }
    }
    if let Some(sign) = &ability.container {
        findings.push(Finding::good("container", format!("this is a container ({sign}); the evidence says so")));
    }
    findings
}
