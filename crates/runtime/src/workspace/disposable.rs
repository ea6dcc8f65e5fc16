//! A folder that is deleted in the background when it is no longer needed.

use std::fs;
use std::path::{Path, PathBuf};

use super::error::WorkspaceError;
use super::remove::remove_tree;

#[derive(Debug)]
pub(super) struct Disposable(PathBuf);

impl Disposable {
    pub(super) fn make(path: PathBuf) -> Result<Self, WorkspaceError> {
        fs::create_dir_all(&path).map_err(WorkspaceError::io(&path))?;
        Ok(Self(path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Disposable {
    fn drop(&mut self) {
        let path = std::mem::take(&mut self.0);
        // Whatever is not deleted in time goes with the whole workspace or is removed by the next run.
        let _ = std::thread::Builder::new().name("delete".to_owned()).spawn(move || remove_tree(&path));
    }
}
