//! Plans written by an agent contain commands that no person has read. They run only after the user approves them. The approval is bound to
//! the plan's content, so an edited plan needs a new approval.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use verdone_text::shell_word::shell_argument;

use crate::base::atomic::write_atomically;
use crate::base::finding::Finding;
use crate::base::plain_file::read_linked;
use crate::base::seal::Seal;
use crate::project::find_git_top;

/// Each plan takes a few hundred bytes.
const LARGEST: u64 = 16 * 1024 * 1024;

#[derive(Debug, thiserror::Error)]
pub enum ApprovalError {
    #[error("{path}: {source}", path = path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{path}: {source}", path = path.display())]
    Broken { path: PathBuf, source: serde_json::Error },
}

/// What is known about one plan.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approval {
    /// The agent that wrote it. Empty for the user's own plans.
    #[serde(default)]
    pub written_by: String,
    /// The fingerprint of the approved content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved: Option<String>,
    /// Proves that the user approved it on this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mark: Option<String>,
}

/// Plans written by agents, by path relative to the project root.
#[derive(Debug, Default)]
pub struct Approvals {
    root: PathBuf,
    path: PathBuf,
    plans: BTreeMap<String, Approval>,
}

impl Approvals {
    pub fn read(root: &Path) -> Result<Self, ApprovalError> {
        let path = root.join(".verdone/approvals.json");
        let plans = match read_linked(&path, LARGEST) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|source| ApprovalError::Broken { path: path.clone(), source })?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => BTreeMap::new(),
            Err(source) => return Err(ApprovalError::Io { path, source }),
        };
        Ok(Self { root: root.to_owned(), path, plans })
    }

    /// Drops approvals that were not made on this machine. The agent of a session can write to the file.
    #[must_use]
    pub fn made_here(mut self) -> Self {
        let seal = self.seal();
        for (plan, approval) in &mut self.plans {
            let mark = |approved: &String| seal.as_ref().map(|seal| mark_of(seal, plan, approved));
            if approval.mark.is_none() || approval.approved.as_ref().and_then(mark) != approval.mark {
                approval.approved = None;
            }
        }
        self
    }

    fn seal(&self) -> Option<Seal> {
        Seal::from_environment(&self.root, &find_git_top(&self.root).unwrap_or_else(|_| self.root.clone()))
    }

    /// The agent that wrote the plan, if the user has not approved the current content.
    pub fn missing(&self, plan: &str, fingerprint: impl FnOnce() -> String) -> Option<&str> {
        let approval = self.plans.get(plan).filter(|approval| !approval.written_by.is_empty())?;
        (approval.approved.as_deref() != Some(&fingerprint())).then_some(approval.written_by.as_str())
    }

    /// The approval state of a plan.
    pub fn state(&self, plan: &str, fingerprint: impl FnOnce() -> String) -> verdone_core::done::Approval {
        use verdone_core::done::Approval as State;
        match self.plans.get(plan) {
            None => State::NeverAsked,
            Some(approval) => match (&approval.approved, approval.written_by.as_str()) {
                (Some(approved), _) if *approved == fingerprint() => State::Approved,
                (Some(_), _) => State::Changed,
                (None, "") => State::NeverAsked,
                (None, agent) => State::WrittenBy(agent.to_owned()),
            },
        }
    }

    /// Records that the user approves a plan of their own in its current form.
    pub fn approve_own(&mut self, plan: &str, fingerprint: &str) -> Result<(), ApprovalError> {
        self.plans.entry(plan.to_owned()).or_default();
        self.approve(plan, fingerprint).map(|_| ())
    }

    /// Records that an agent wrote a plan.
    pub fn written(&mut self, plan: &str, agent: &str) -> Result<(), ApprovalError> {
        self.plans.insert(plan.to_owned(), Approval { written_by: agent.to_owned(), ..Approval::default() });
        self.write()
    }

    /// Records that the user approves a plan in its current form. Returns whether it needed approval.
    pub fn approve(&mut self, plan: &str, fingerprint: &str) -> Result<bool, ApprovalError> {
        let mark = self.seal().map(|seal| mark_of(&seal, plan, fingerprint));
        let Some(approval) = self.plans.get_mut(plan) else { return Ok(false) };
        (approval.approved, approval.mark) = (Some(fingerprint.to_owned()), mark);
        self.write().map(|()| true)
    }

    fn write(&self) -> Result<(), ApprovalError> {
        let failed = |source| ApprovalError::Io { path: self.path.clone(), source };
        if let Some(parent) = self.path.parent() {
            fs::create_dir_all(parent).map_err(failed)?;
        }
        let mut text = serde_json::to_string_pretty(&self.plans).map_err(|error| failed(error.into()))?;
        text.push('\n');
        write_atomically(&self.path, text.as_bytes()).map_err(failed)
    }
}

fn mark_of(seal: &Seal, plan: &str, fingerprint: &str) -> String {
    seal.mark("approval", format!("{plan}\0{fingerprint}").as_bytes())
}

/// Whether the user has approved the commands of a plan written by an agent. The
/// fingerprint is computed only if needed, because that reads the whole plan.
pub fn not_approved(approvals: &Approvals, plan: &str, fingerprint: impl FnOnce() -> String) -> Option<Finding> {
    let agent = approvals.missing(plan, fingerprint)?;
    let message = format!("{plan} was written by an agent ({agent}) and its commands have not been approved yet");
    Some(Finding::bad("approval", message, [&format!("read it, then: verdone plan approve {}", shell_argument(plan))]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agents_plan_needs_approval_again_after_every_edit() {
        let dir = tempfile::tempdir().unwrap();
        let mut approvals = Approvals::read(dir.path()).unwrap();
        assert_eq!(approvals.missing("PLAN.md", || "f1".to_owned()), None, "a user's own plan needs none");
        approvals.written("PLAN.md", "claude").unwrap();
        assert_eq!(approvals.missing("PLAN.md", || "f1".to_owned()), Some("claude"));
        assert!(approvals.approve("PLAN.md", "f1").unwrap());
        let again = Approvals::read(dir.path()).unwrap();
        assert_eq!(again.missing("PLAN.md", || "f1".to_owned()), None);
        assert_eq!(again.missing("PLAN.md", || "f2".to_owned()), Some("claude"));
    }

    #[test]
    fn a_plan_of_the_users_own_can_be_approved_and_needs_no_approval_to_run() {
        use verdone_core::done::Approval as State;
        let dir = tempfile::tempdir().unwrap();
        let mut approvals = Approvals::read(dir.path()).unwrap();
        assert_eq!(approvals.state("PLAN.md", || "f1".to_owned()), State::NeverAsked);
        approvals.approve_own("PLAN.md", "f1").unwrap();
        approvals.written("other.md", "claude").unwrap();
        let again = Approvals::read(dir.path()).unwrap();
        assert_eq!(again.state("PLAN.md", || "f1".to_owned()), State::Approved);
        assert_eq!(again.state("PLAN.md", || "f2".to_owned()), State::Changed);
        assert_eq!(again.missing("PLAN.md", || "f2".to_owned()), None, "a run asks for agents' plans alone");
        assert_eq!(again.state("other.md", || "f".to_owned()), State::WrittenBy("claude".to_owned()));
    }

    #[test]
    fn a_broken_file_is_an_error_and_never_an_approval() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join(".verdone")).unwrap();
        fs::write(dir.path().join(".verdone/approvals.json"), "{").unwrap();
        assert!(matches!(Approvals::read(dir.path()), Err(ApprovalError::Broken { .. })));
    }
}
