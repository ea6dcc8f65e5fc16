//! Stories without checks of their own, once more: the commands that ran the tests which proved them, in a clean tree of now.

use std::collections::BTreeMap;
use std::path::{Component, Path};

use verdone_core::check::{Check, CheckOrigin, CheckOutcome, CheckRun, CommandSpec, Terms};
use verdone_core::id::{Oid, StoryId};
use verdone_core::proof::AgentTest;
use verdone_core::redact::MARK;
use verdone_core::update::{Reporter, Update};

use super::StepError;
use crate::site::Site;
use crate::store::{Store, are_of_here, tested};
use crate::tamper::folder_of;

/// The journals are asked once, and only where a story has no check.
#[derive(Default)]
pub(super) struct TestsAgain {
    known: Option<BTreeMap<StoryId, AgentTest>>,
}

impl TestsAgain {
    /// The story's own checks, or the tests that proved it.
    pub(super) fn of(&mut self, site: &Site, story: &StoryId) -> Vec<Check> {
        let own = site.own_checks(story);
        if !own.is_empty() {
            return own.to_vec();
        }
        self.known.get_or_insert_with(|| known(site)).get(story).map_or_else(Vec::new, |tests| checks(site, tests))
    }
}

/// Nothing where tests cannot be run any more: that is no sign of broken work, and it is told.
pub(super) fn run_again(
    site: &mut Site,
    tree: &Oid,
    check: Check,
    reporter: &mut dyn Reporter,
) -> Result<Option<CheckRun>, StepError> {
    if check.origin != CheckOrigin::AgentTest {
        return Ok(site.run_checks(tree, &[check], reporter)?.pop());
    }
    let why = if check.command.is_empty() {
        "the tests that proved a story are gone".to_owned()
    } else {
        match site.run_checks(tree, std::slice::from_ref(&check), reporter)?.pop() {
            Some(CheckRun { outcome: CheckOutcome::Unknown { reason }, .. }) => reason,
            run => return Ok(run),
        }
    };
    reporter.report(Update::Notice { text: &format!("not checked again: {}: {why}", check.name) });
    Ok(None)
}

/// Commands of a journal that came with the repository are nobody's.
fn known(site: &Site) -> BTreeMap<StoryId, AgentTest> {
    let store = Store::of(&site.root);
    if are_of_here(&site.git, &store) { tested(&store, &site.plan_name()).unwrap_or_default() } else { BTreeMap::new() }
}

/// Where files of theirs are gone, or the command held a secret, a check that cannot run stands for them.
fn checks(site: &Site, tests: &AgentTest) -> Vec<Check> {
    let terms = Terms::default();
    let (origin, timeout) = (CheckOrigin::AgentTest, site.config.limits.check_time);
    let is_secret = |run: &CheckRun| run.command.display().contains(MARK);
    if !tests.files.iter().all(|name| is_there(site, name)) || tests.after.iter().any(is_secret) {
        let name = tests.files.join(", ");
        let command = CommandSpec::Argv(vec![String::new(), name.clone()]);
        return vec![Check { name, origin, command, timeout, terms }];
    }
    let check = |run: &CheckRun| {
        let (name, command) = (run.name.clone(), run.command.clone());
        Check { name, origin: origin.clone(), command, timeout, terms: terms.clone() }
    };
    tests.after.iter().map(check).collect()
}

fn is_there(site: &Site, name: &str) -> bool {
    let inside = Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
    let folder = folder_of(&site.git, &site.root);
    let path = if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") };
    inside && site.git.entries_at(&site.tip, &[path]).is_ok_and(|found| !found.is_empty())
}
