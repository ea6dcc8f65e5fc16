//! How often the end of a subagent, a teammate or a task was prevented: the counters that a loop has, in a file for each of them, because
//! several may end at once.

use std::fs;
use std::path::PathBuf;

use verdone_core::base::id::encode_component;
use verdone_core::engine::session::{GateCount, ReleaseReason, StopDecision};

use super::StopError;
use super::files::{SessionFiles, file_error, read, remove, write};

const FOLDER: &str = "agents";

/// Who wants to end.
#[derive(Debug, Clone, Copy)]
pub(super) enum Member<'a> {
    Subagent(&'a str),
    Teammate(&'a str),
    Task(&'a str),
    /// The session itself, if another tool holds it: a loop has its own counters.
    Session,
}

impl SessionFiles {
    /// The counters so far. An unreadable file counts as none.
    pub(super) fn counts_of(&self, member: Member<'_>) -> GateCount {
        read(&self.counts_file(member)).ok().flatten().unwrap_or_default()
    }

    /// Counts a decision. Once the end was allowed because nothing is left, counting starts anew. Failing to write is an error, because
    /// a gate that cannot count would hold forever.
    pub(super) fn count_member(
        &self,
        member: Member<'_>,
        mut count: GateCount,
        decision: &StopDecision,
    ) -> Result<(), StopError> {
        let path = self.counts_file(member);
        if let StopDecision::Yield { why: ReleaseReason::NothingLeft { .. } | ReleaseReason::Checked { .. } } = decision {
            return remove(&path);
        }
        count.count_decision(decision);
        self.make_folder()?;
        let folder = self.dir.join(FOLDER);
        fs::create_dir_all(&folder).map_err(|source| file_error(&folder, source))?;
        write(&path, &count)
    }

    fn counts_file(&self, member: Member<'_>) -> PathBuf {
        let name = match member {
            Member::Subagent(id) => format!("subagent {id}"),
            Member::Teammate(name) => format!("teammate {name}"),
            Member::Task(id) => format!("task {id}"),
            Member::Session => "session".to_owned(),
        };
        self.dir.join(FOLDER).join(format!("{}.json", encode_component(&name)))
    }
}
