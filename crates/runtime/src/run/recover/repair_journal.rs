//! An unreadable journal must not block the user forever: the original is kept next to it, and the readable lines stay.

use std::fs;
use std::path::Path;

use verdone_core::journal::update::{Reporter, Update};

use super::{RecoverError, io_error};
use crate::base::atomic::write_atomically;
use crate::store::{JournalError, Store, StoredRun, readable_lines};

/// The latest run, after repairing its journal if necessary.
pub(super) fn latest(store: &Store, reporter: &mut dyn Reporter) -> Result<Option<StoredRun>, RecoverError> {
    let Some(stored) = store.latest_run()? else { return Ok(None) };
    match stored.last_state() {
        Ok(_) => Ok(Some(stored)),
        Err(broken @ JournalError::Broken { .. }) => {
            let whole = repair(&stored.dir)?;
            let text = format!("{broken}; readable lines are kept, and the original file is saved as {whole}");
            reporter.report(Update::Notice { text: &text });
            Ok(Some(stored))
        }
        Err(error @ (JournalError::Io { .. } | JournalError::Newer { .. })) => Err(error.into()),
    }
}

/// Saves the original under a free name, then writes back the readable lines.
fn repair(run_dir: &Path) -> Result<String, RecoverError> {
    let path = run_dir.join("journal.jsonl");
    let failed = || io_error("repairing the journal");
    let bytes = fs::read(&path).map_err(failed())?;
    let named = |number: u32| run_dir.join(format!("journal-broken-{number}.jsonl"));
    let whole = named((1..u32::MAX).find(|number| !named(*number).exists()).unwrap_or(0));
    write_atomically(&whole, &bytes).map_err(failed())?;
    write_atomically(&path, &readable_lines(&bytes)).map_err(failed())?;
    Ok(whole.display().to_string())
}
