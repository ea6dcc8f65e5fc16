//! Plans that an agent wrote contain commands that nobody has read. They run only after the user accepted them, and the
//! acceptance is bound to the plan's content: an edited plan has to be accepted again.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::atomic::write_atomically;
use crate::regular::read_linked;

/// Some hundred bytes for each plan.
const LARGEST: u64 = 16 * 1024 * 1024;

#[derive(Debug, thiserror::Error)]
pub enum ApprovalError {
    #[error("{path}: {source}", path = path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{path}: {source}", path = path.display())]
    Broken { path: PathBuf, source: serde_json::Error },
}

/// What is known about one plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approval {
    /// The agent that wrote it; empty for a plan of the user's own.
    #[serde(default)]
    pub written_by: String,
    /// The content that the user accepted, by fingerprint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved: Option<String>,
}

/// The plans that agents wrote, by path from the project's root.
#[derive(Debug, Default)]
pub struct Approvals {
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
        Ok(Self { path, plans })
    }

    /// The agent whose plan this is, where the user has not accepted its present content.
    pub fn missing(&self, plan: &str, fingerprint: impl FnOnce() -> String) -> Option<&str> {
        let approval = self.plans.get(plan).filter(|approval| !approval.written_by.is_empty())?;
        (approval.approved.as_deref() != Some(&fingerprint())).then_some(approval.written_by.as_str())
    }

    /// From the file's text as a run holds it; one that cannot be read approves nothing.
    pub(crate) fn of_text(text: &str) -> Self {
        Self { path: PathBuf::new(), plans: serde_json::from_str(text).unwrap_or_default() }
    }

    /// What the user said about a plan.
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

    /// Remembers that the user accepts a plan of their own as it is.
    pub fn approve_own(&mut self, plan: &str, fingerprint: &str) -> Result<(), ApprovalError> {
        let approval = self.plans.entry(plan.to_owned()).or_insert(Approval { written_by: String::new(), approved: None });
        approval.approved = Some(fingerprint.to_owned());
        self.write()
    }

    /// Remembers that an agent wrote a plan.
    pub fn written(&mut self, plan: &str, agent: &str) -> Result<(), ApprovalError> {
        self.plans.insert(plan.to_owned(), Approval { written_by: agent.to_owned(), approved: None });
        self.write()
    }

    /// Remembers that the user accepts a plan as it is. Answers whether it needed that.
    pub fn approve(&mut self, plan: &str, fingerprint: &str) -> Result<bool, ApprovalError> {
        let Some(approval) = self.plans.get_mut(plan) else { return Ok(false) };
        approval.approved = Some(fingerprint.to_owned());
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
        let again = Approvals::of_text(&fs::read_to_string(dir.path().join(".verdone/approvals.json")).unwrap());
        assert_eq!(again.state("PLAN.md", || "f1".to_owned()), State::Approved);
        assert_eq!(again.state("PLAN.md", || "f2".to_owned()), State::Changed);
        assert_eq!(again.missing("PLAN.md", || "f2".to_owned()), None, "a run asks for agents' plans alone");
        assert_eq!(again.state("other.md", || "f".to_owned()), State::WrittenBy("claude".to_owned()));
        assert_eq!(Approvals::of_text("{").state("PLAN.md", || "f1".to_owned()), State::NeverAsked);
    }

    #[test]
    fn a_broken_file_is_an_error_and_never_an_approval() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join(".verdone")).unwrap();
        fs::write(dir.path().join(".verdone/approvals.json"), "{").unwrap();
        assert!(matches!(Approvals::read(dir.path()), Err(ApprovalError::Broken { .. })));
    }
}
