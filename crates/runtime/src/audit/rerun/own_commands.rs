//! Commands that local runs ran to verify a story: from the user's plan, settings or command line, frozen by the run.

use std::collections::HashSet;

use verdone_core::base::redact::MARK;
use verdone_core::check::CommandSpec;
use verdone_core::journal::event::Event;
use verdone_core::journal::event::partial::kind;

use crate::git::Git;
use crate::store::{JournalReader, Store, StoredRun, are_local};

/// Skips whatever cannot be read.
pub(super) fn own_commands(git: &Git, store: &Store) -> HashSet<CommandSpec> {
    let mut commands = HashSet::new();
    if are_local(git, store) {
        for stored in store.ids().unwrap_or_default().into_iter().map(|id| store.run(id)) {
            read(&stored, &mut commands);
        }
    }
    // With its secret redacted, it is no longer the command that ran.
    commands.retain(|command| !command.display().contains(MARK));
    commands
}

fn read(stored: &StoredRun, commands: &mut HashSet<CommandSpec>) {
    let Ok(mut reader) = JournalReader::open(&stored.journal()) else { return };
    while let Ok(Some(line)) = reader.line() {
        if kind(line).is_some_and(|kind| kind != b"verified") {
            continue;
        }
        let Ok(Some(recorded)) = reader.event() else { continue };
        if let Event::Verified(verified) = recorded.event {
            commands.extend(verified.report.all_runs().map(|(_, run)| run.command.clone()));
        }
    }
}
