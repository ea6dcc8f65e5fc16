//! Where gates run that want a clean tree. All of one verification with the same setup and the same shared paths use the same one.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use verdone_core::check::{Check, CheckOutcome};
use verdone_core::config::CleanSettings;
use verdone_core::id::Oid;

use crate::clean_tree::CleanTree;
use crate::git::Git;
use crate::signal::Signals;

/// The clean trees of one verification; gone when dropped.
#[derive(Debug)]
pub struct CleanPlaces<'a> {
    git: &'a Git,
    tree: &'a Oid,
    /// Where `.verdone/` is in the checkout.
    root: &'a Path,
    settings: &'a CleanSettings,
    signals: &'a Signals,
    made: RefCell<Vec<(CleanSettings, Result<CleanTree, CheckOutcome>)>>,
}

impl<'a> CleanPlaces<'a> {
    pub fn of(git: &'a Git, tree: &'a Oid, root: &'a Path, settings: &'a CleanSettings, signals: &'a Signals) -> Self {
        Self { git, tree, root, settings, signals, made: RefCell::default() }
    }

    /// The folder in which this gate runs, or what it is worth without one.
    pub fn place_of(&self, check: &Check) -> Result<PathBuf, CheckOutcome> {
        let terms = &check.terms;
        let wanted = CleanSettings { setup: terms.setup.clone(), share: terms.share.clone(), ..self.settings.clone() };
        let mut made = self.made.borrow_mut();
        let at = made.iter().position(|(settings, _)| *settings == wanted).unwrap_or_else(|| {
            let tree = CleanTree::make(self.git, self.tree, self.root, &wanted, self.signals);
            made.push((wanted, tree.map_err(|error| error.outcome())));
            made.len() - 1
        });
        made[at].1.as_ref().map(|tree| tree.root().to_owned()).map_err(Clone::clone)
    }
}
