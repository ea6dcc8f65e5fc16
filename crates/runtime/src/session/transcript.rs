//! The end of the client's transcript, to find out how full the context is. If it is missing or cut, that is unknown.

use std::fs::OpenOptions;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use verdone_core::engine::session::{Tail, tail_of};
use verdone_core::hook::HookInput;

use crate::base::plain_file::open_regular;

/// A single answer of a model can be long.
const END: u64 = 512 * 1024;

pub(super) fn tail(input: &HookInput<'_>) -> Tail {
    let path = input.common.transcript.as_deref().map(Path::new).filter(|path| path.is_absolute());
    path.and_then(|path| end_of(path).ok()).map(|end| tail_of(&end)).unwrap_or_default()
}

fn end_of(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = open_regular(path, OpenOptions::new().read(true))?;
    let from = file.metadata()?.len().saturating_sub(END);
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(END).read_to_end(&mut bytes)?;
    Ok(bytes)
}
