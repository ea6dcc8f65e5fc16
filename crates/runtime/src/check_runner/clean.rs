//! Where gates run that want a clean tree. All of one verification with the same setup and the same shared paths use the same one.

use std::path::PathBuf;

use verdone_core::check::Check;

/// The clean trees of one verification.
#[derive(Debug, Default)]
pub struct CleanPlaces;

impl CleanPlaces {
    /// The folder in which this gate runs, or why there is none.
    pub fn place_of(&self, _: &Check) -> Result<PathBuf, String> {
        Err("clean trees cannot be made yet".to_owned())
    }
}
