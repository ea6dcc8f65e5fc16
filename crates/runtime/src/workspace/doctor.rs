//! What `verdone doctor` reports about workspaces: how well agents and checks can be confined here, found by trying.

use verdone_core::config::{Config, NetworkAccess, SealSettings};

use super::probe::{Ability, Level, Part, probe};
use super::seal::{missing_seal, unlistable};
use super::state::StateFolder;
use crate::base::finding::Finding;
use crate::project::Project;

pub fn examine(project: &Project, config: &Config) -> Vec<Finding> {
    let state = match StateFolder::from_environment(config.workspace.state.as_deref(), &project.git_top) {
        Ok(state) => state,
        Err(error) => return vec![Finding::bad("workspace", error.to_string(), [])],
    };
    let ability = probe(state.path());
    let place = state.path().display();
    let mut findings = vec![match ability.level() {
        Level::View => Finding::good("workspace", format!("sealed: private view of the file system; workspaces are in {place}")),
        Level::ViewWithoutOwnProc => Finding::warning(
            "workspace",
            format!("sealed, but outside processes are visible in /proc; workspaces are in {place}"),
        ),
        Level::CloneWithLandlock => Finding::warning(
            "workspace",
            format!("partly sealed: a clone in {place}. Landlock refuses writes elsewhere, but credentials can be read"),
        ),
        Level::UnsealedClone => Finding::warning(
            "workspace",
            format!("not sealed: a clone in {place}; nothing stops an agent from reading and writing elsewhere"),
        ),
    }];
    if config.seal.required && !missing_seal(&ability, &config.seal).is_empty() {
        let hint = "runs are refused because of `[seal] required = true`; set it to false to allow weaker confinement";
        findings[0] = Finding::bad("workspace", findings[0].message.clone(), [hint]);
    }
    findings.extend(examine_networks(&ability, &config.seal));
    let parts = [
        ("private view", &ability.view),
        ("copy-on-write folders", &ability.overlay),
        ("private /proc", &ability.own_proc),
        ("private network", &ability.own_network),
    ];
    for (name, part) in parts {
        if let Part::Refused(refusal) = part {
            let hints = refusal.remedy.iter().cloned().collect();
            findings.push(Finding { hints, ..Finding::warning("seal", format!("no {name}: {}", refusal.reason)) });
        }
    }
    if let Some(sign) = &ability.container {
        let message = format!("running in a container ({sign}); this is recorded in the evidence");
        findings.push(Finding::good("container", message));
    }
    findings
}

/// The lists of hosts, and whether they can be enforced.
fn examine_networks(ability: &Ability, seal: &SealSettings) -> Vec<Finding> {
    if let Some((setting, reason, remedy)) = unlistable(ability, seal) {
        let message = format!("the hosts in [seal] {setting} cannot be enforced, so runs are refused: {reason}");
        return vec![Finding { hints: remedy.into_iter().collect(), ..Finding::bad("network", message, []) }];
    }
    let listed = |(name, access): (&str, &NetworkAccess)| match access {
        NetworkAccess::Hosts(hosts) => Some(Finding::good("network", format!("{name}: only {}", hosts.join(", ")))),
        NetworkAccess::Open | NetworkAccess::Off => None,
    };
    let mut findings: Vec<Finding> = seal.networks().into_iter().filter_map(listed).collect();
    let is_set = |name: &&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    if let Some(name) = ["HTTPS_PROXY", "https_proxy"].into_iter().find(is_set).filter(|_| !findings.is_empty()) {
        let message = format!("hosts of a list are reached directly, not through your own proxy in {name}");
        findings.push(Finding::warning("network", message));
    }
    findings
}
