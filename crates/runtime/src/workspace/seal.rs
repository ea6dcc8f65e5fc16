//! How well this system can confine what runs in a workspace, in readable messages.

use verdone_core::config::{NetworkAccess, SealSettings};

use super::probe::{Ability, Level, Part};
use crate::launcher::Network;

/// The wanted network, if it can be enforced. If the network cannot be cut off, [`missing`] reports it. A list of hosts stays a
/// list, because [`unlistable`] refuses it.
pub(super) fn possible(network: Network, ability: &Ability) -> Network {
    match network {
        Network::Off if !ability.own_network.works() => Network::Open,
        Network::Open | Network::Off | Network::ListenOn(_) => network,
    }
}

/// The setting with a list of hosts that this system cannot enforce, the reason and the remedy.
pub(super) fn unlistable(ability: &Ability, seal: &SealSettings) -> Option<(&'static str, String, Option<String>)> {
    let (setting, _) = seal.networks().into_iter().find(|(_, access)| matches!(access, NetworkAccess::Hosts(_)))?;
    if ability.view.works() && ability.own_network.works() {
        return None;
    }
    let (reason, remedy) = first_refusal(&[&ability.view, &ability.own_network]);
    Some((setting, reason, remedy))
}

/// Why there is no full seal, and how to fix it.
pub(super) fn refusal(ability: &Ability) -> (String, Option<String>) {
    first_refusal(&[&ability.view, &ability.own_proc, &ability.own_network])
}

fn first_refusal(parts: &[&Part]) -> (String, Option<String>) {
    let refused = parts.iter().find_map(|part| match part {
        Part::Refused(refusal) => Some((refusal.reason.clone(), refusal.remedy.clone())),
        Part::Works | Part::NotTried => None,
    });
    refused.unwrap_or_else(|| ("unknown reason".to_owned(), None))
}

/// What this system does not support, as readable messages.
pub(super) fn missing(ability: &Ability, seal: &SealSettings) -> Vec<String> {
    let mut missing = missing_seal(ability, seal);
    missing.extend(told("no copy-on-write, so dependency folders are copied", &ability.overlay));
    missing
}

/// What this system cannot enforce.
pub(super) fn missing_seal(ability: &Ability, seal: &SealSettings) -> Vec<String> {
    let mut missing: Vec<String> = told("no private view of the file system", &ability.view).into_iter().collect();
    missing.extend(told("processes outside are listed in /proc", &ability.own_proc));
    if seal.networks().into_iter().any(|(_, access)| *access == NetworkAccess::Off) {
        let cut_off = told("the network cannot be cut off", &ability.own_network);
        let not_tried = || Some("the network cannot be cut off".to_owned()).filter(|_| ability.own_network == Part::NotTried);
        missing.extend(cut_off.or_else(not_tried));
    }
    match ability.level() {
        Level::View | Level::ViewWithoutOwnProc => {}
        Level::CloneWithLandlock => missing.push("credentials in the home folder can be read".to_owned()),
        Level::UnsealedClone => missing.push("no Landlock: nothing stops an agent from reading and writing elsewhere".to_owned()),
    }
    missing
}

fn told(what: &str, part: &Part) -> Option<String> {
    match part {
        Part::Refused(refusal) => Some(format!("{what}: {}", refusal.reason)),
        Part::Works | Part::NotTried => None,
    }
}
