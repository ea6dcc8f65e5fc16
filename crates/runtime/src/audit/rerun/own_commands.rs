//! The commands that runs of here ran when they verified a story: from the user's plan, settings or command line, frozen by the run.

use std::collections::HashSet;

use verdone_core::check::{CheckRun, CommandSpec};
use verdone_core::event::Event;
use verdone_core::event::light::kind;

use crate::git::Git;
use crate::store::{JournalReader, Store, StoredRun};

/// What stands where a secret was: such a command is not the one that ran.
const REDACTED: &str = "[redacted:";

/// Journals are never committed; one that git tracks came from somebody else. What cannot be read allows nothing.
pub(super) fn own_commands(git: &Git, store: &Store) -> HashSet<CommandSpec> {
    let Ok(tracked) = git.tracked_below(store.path()) else { return HashSet::new() };
    let is_tracked = |id: &str| tracked.iter().any(|path| path.split('/').next() == Some(id));
    let ours = store.ids().unwrap_or_default().into_iter().filter(|id| !is_tracked(id.as_str()));
    let mut commands = HashSet::new();
    for stored in ours.map(|id| store.run(id)) {
        read(&stored, &mut commands);
    }
    commands.retain(|command| !command.display().contains(REDACTED));
    commands
}

fn read(stored: &StoredRun, commands: &mut HashSet<CommandSpec>) {
    let Ok(mut reader) = JournalReader::open(&stored.journal()) else { return };
    while let Ok(Some(line)) = reader.line() {
        if kind(line).is_some_and(|kind| kind != b"verified") {
            continue;
        }
        let Ok(Some(recorded)) = reader.event() else { continue };
        if let Event::Verified { runs, agent_test, .. } = recorded.event {
            let tests = agent_test.into_iter().flat_map(|tests| tests.after);
            commands.extend(runs.into_iter().chain(tests).map(|CheckRun { command, .. }| command));
        }
    }
}
