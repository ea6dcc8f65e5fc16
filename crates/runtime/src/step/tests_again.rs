//! Stories without checks of their own, once more: the tests that proved them, in a clean tree of now.

use std::collections::BTreeMap;
use std::io;
use std::path::{Component, Path};

use verdone_core::check::{Check, CheckOrigin, CheckOutcome, CheckRun, CommandSpec, Terms, Where};
use verdone_core::id::{Oid, StoryId};
use verdone_core::proof::inline_tests::changed_tests;
use verdone_core::proof::test_command::TestFile;
use verdone_core::proof::test_file::{Role, Runner, role};
use verdone_core::update::{Reporter, Update};

use super::agent_test::{LARGEST_FILE, checks};
use crate::regular::read_regular;
use crate::site::Site;
use crate::store::{Store, tested};

/// The journals are asked once, and only where a story has no check.
#[derive(Default)]
pub(super) struct TestsAgain {
    known: Option<BTreeMap<StoryId, Vec<String>>>,
}

impl TestsAgain {
    /// The story's own checks, or the tests that proved it.
    pub(super) fn of(&mut self, site: &Site, story: &StoryId) -> Vec<Check> {
        let own = site.own_checks(story);
        if !own.is_empty() {
            return own.to_vec();
        }
        let known = self.known.get_or_insert_with(|| tested(&Store::of(&site.root), &site.plan_name()).unwrap_or_default());
        known.get(story).map_or_else(Vec::new, |names| tests(site, names))
    }
}

/// Nothing where tests cannot be run any more: that is no sign of broken work, and it is told.
pub(super) fn run_again(site: &mut Site, tree: &Oid, check: Check, reporter: &mut dyn Reporter) -> io::Result<Option<CheckRun>> {
    if check.origin != CheckOrigin::AgentTest {
        return Ok(site.run_checks(&[check], reporter)?.pop());
    }
    let why = if check.command.is_empty() {
        "the tests that proved a story are gone".to_owned()
    } else {
        match site.run_checks_on(Some(tree), std::slice::from_ref(&check), reporter)?.pop() {
            Some(CheckRun { outcome: CheckOutcome::Unknown { reason }, .. }) => reason,
            run => return Ok(run),
        }
    };
    reporter.report(Update::Notice { text: &format!("not checked again: {}: {why}", check.name) });
    Ok(None)
}

/// Made of the files as they are now, by the same rules as the first time. Where they are gone, a check that cannot run stands for them.
fn tests(site: &Site, names: &[String]) -> Vec<Check> {
    let files: Vec<TestFile> = names.iter().filter_map(|name| test_file(&site.root, name)).collect();
    let clean = &site.config.clean;
    let terms = Terms { place: Where::Clean, setup: clean.setup.clone(), share: clean.share.clone(), ..Terms::default() };
    if files.is_empty() {
        let (name, timeout) = (names.join(", "), site.config.limits.check_time);
        let command = CommandSpec::Argv(vec![String::new(), name.clone()]);
        return vec![Check { name, origin: CheckOrigin::AgentTest, command, timeout, terms }];
    }
    checks(site, &files).into_iter().map(|check| Check { terms: terms.clone(), ..check }).collect()
}

/// A name from a journal is only a name: it leads nowhere but into the project.
fn test_file(root: &Path, name: &str) -> Option<TestFile> {
    let inside = Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
    let bytes = if inside { read_regular(&root.join(name), LARGEST_FILE).ok()? } else { return None };
    let text = String::from_utf8_lossy(&bytes).into_owned();
    match role(name, || Some(text.clone())) {
        Role::Test(runner) => Some(TestFile { path: name.to_owned(), runner, text, names: Vec::new() }),
        // Which of them were new at the time is not known any more: all of them are run.
        Role::Mixed | Role::Module => {
            let names = changed_tests("", &text);
            (!names.is_empty()).then(|| TestFile { path: name.to_owned(), runner: Runner::CargoInline, text, names })
        }
        Role::Support | Role::Work => None,
    }
}
