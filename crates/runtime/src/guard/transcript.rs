//! The cost of a session, looked up when it ends: never while a tool waits for its verdict.

use std::fs::OpenOptions;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use verdone_core::hook::{HookEvent, HookInput, Record, spent_in};

use crate::base::plain_file::open_regular;

/// How much of the transcript's end is read, however long it is: the client writes the totals last.
const END: u64 = 256 * 1024;

/// `None` for any other event, or if the transcript does not contain the cost. That is not an error: the file belongs to the client.
pub(super) fn spent(input: &HookInput<'_>) -> Option<Record> {
    let HookEvent::SessionEnd { .. } = input.event else { return None };
    let transcript = input.common.transcript.as_deref().filter(|path| Path::new(path).is_absolute())?;
    spent_in(&end_of(Path::new(transcript)).ok()?).map(Record::Spent)
}

fn end_of(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = open_regular(path, OpenOptions::new().read(true))?;
    let from = file.metadata()?.len().saturating_sub(END);
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(END).read_to_end(&mut bytes)?;
    Ok(bytes)
}
