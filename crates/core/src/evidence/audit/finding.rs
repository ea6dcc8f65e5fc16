//! The problems and remarks that an audit can report, with their wording.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base::id::{Oid, RunId};
use crate::verify::Proof;

/// One finding, as shown to users and written to JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// Machine-readable name.
    pub kind: String,
    pub text: String,
}

/// Why the evidence of a story's commit does not hold up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    NoNote,
    NoteMoved { to: Oid },
    NoteOfAnother { of: Oid, subject: String },
    NoteEdited { named: String, found: String },
    Unreadable { why: String },
    NamesSeveral,
    NamesNone,
    Rewritten { from: Oid },
    Copied { of: Oid },
    Rebased { base: Oid },
    TreeDiffers { checked: Oid, committed: Oid },
    MessageDiffers { what: &'static str, message: String, note: String },
    Overclaimed { proof: Proof, why: String },
    ChainBroken { named: Oid, found: Option<Oid> },
    ChainLost { named: String, found: Option<Oid> },
    NotInJournal { run: RunId, as_commit: Option<Oid> },
    JournalDiffers { run: RunId, what: &'static str },
    FailsNow { name: String, text: String },
    WeakerNow { was: Proof, now: Option<Proof>, why: String },
    NotBookkeeping { path: String },
    MarkedWithoutEvidence { stories: Vec<String> },
    Missing { commit: Oid, run: RunId, elsewhere: bool },
}

impl Problem {
    pub fn finding(&self) -> Finding {
        Finding { kind: self.kind().to_owned(), text: self.describe() }
    }

    fn kind(&self) -> &'static str {
        match self {
            Self::NoNote => "note_missing",
            Self::NoteMoved { .. } => "note_moved",
            Self::NoteOfAnother { .. } => "note_of_another",
            Self::NoteEdited { .. } => "note_edited",
            Self::Unreadable { .. } => "note_unreadable",
            Self::NamesSeveral => "names_several",
            Self::NamesNone => "names_none",
            Self::Rewritten { .. } => "commit_rewritten",
            Self::Copied { .. } => "commit_copied",
            Self::Rebased { .. } => "commit_rebased",
            Self::TreeDiffers { .. } => "tree_differs",
            Self::MessageDiffers { .. } => "message_differs",
            Self::Overclaimed { .. } => "proof_overclaimed",
            Self::ChainBroken { .. } => "chain_broken",
            Self::ChainLost { .. } => "chain_lost",
            Self::NotInJournal { .. } => "not_in_journal",
            Self::JournalDiffers { .. } => "journal_differs",
            Self::FailsNow { .. } => "fails_now",
            Self::WeakerNow { .. } => "weaker_now",
            Self::NotBookkeeping { .. } => "not_bookkeeping",
            Self::MarkedWithoutEvidence { .. } => "marked_without_evidence",
            Self::Missing { .. } => "commit_missing",
        }
    }

    fn describe(&self) -> String {
        match self {
            Self::NoNote => "there is no evidence note on this commit".to_owned(),
            Self::NoteMoved { to } => format!("its evidence note is on another commit, {}: the note was moved", to.short()),
            Self::NoteOfAnother { of, subject } => {
                format!("the note on it is the evidence of another commit, {} ({subject})", of.short())
            }
            Self::NoteEdited { named, found } => {
                format!("its evidence note was edited: the commit names {}, the note is {}", short(named), short(found))
            }
            Self::Unreadable { why } => format!("its evidence note cannot be read: {why}"),
            Self::NamesSeveral => "its message names more than one piece of evidence".to_owned(),
            Self::NamesNone => "it has an evidence note, but its message does not name it".to_owned(),
            Self::Rewritten { from } => format!(
                "it was amended, rebased or cherry-picked from {}, where its evidence is; its tree differs and was not checked",
                from.short()
            ),
            Self::Copied { of } => {
                format!("it names the evidence of an earlier commit, {}: it was copied from that one", of.short())
            }
            Self::Rebased { base } => {
                format!("its evidence begins at {}, which is not in its history: it was rebased or cherry-picked", base.short())
            }
            Self::TreeDiffers { checked, committed } => {
                format!("its tree is {}, and the checks ran on {}", committed.short(), checked.short())
            }
            Self::MessageDiffers { what, message, note } => {
                format!("its message says {what} {message:?}, its evidence says {note:?}")
            }
            Self::Overclaimed { proof, why } => format!("its checks do not make it {proof}: {why}"),
            Self::ChainBroken { named, found } => format!(
                "the chain is broken: its evidence follows that of {}, but {} comes before it; commits or notes were removed, \
                 added or reordered",
                named.short(),
                found.as_ref().map_or("no story", Oid::short)
            ),
            Self::ChainLost { named, found } => format!(
                "the chain is broken: its evidence follows {}, which is nowhere in this history ({} comes before it); that story's \
                 commit or note was removed, edited or rewritten",
                short(named),
                found.as_ref().map_or("no story", Oid::short)
            ),
            Self::NotInJournal { run, as_commit: None } => format!("the journal of run {run} has no such commit"),
            Self::NotInJournal { run, as_commit: Some(other) } => {
                format!("the journal of run {run} has no such commit; it knows the story as {}", other.short())
            }
            Self::JournalDiffers { run, what } => format!("the journal of run {run} disagrees: {what} differs"),
            Self::FailsNow { name, text } => format!("run again, {name} {text}"),
            Self::WeakerNow { was, now: Some(now), why } if now < was => {
                format!("verified again, it is {now}, not {was}: {why}")
            }
            Self::WeakerNow { was, why, .. } => format!("verified again, it is no longer {was}: {why}"),
            Self::NotBookkeeping { path } => format!(
                "its message says that Verdone made it, but it belongs to no story and changes more than the plan's marks and \
                 progress files: {path}"
            ),
            Self::MarkedWithoutEvidence { stories } => format!(
                "its message says that Verdone made it, but it marks {} as done, and no commit in this history proves that",
                stories.join(", ")
            ),
            Self::Missing { commit, run, elsewhere } => {
                let now = if *elsewhere { ", but on another branch or tag" } else { "" };
                format!("missing: it was committed as {} in run {run}; that commit is not in this history{now}", commit.short())
            }
        }
    }
}

/// Worth knowing, but no problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remark {
    Amended,
    /// The commit was re-applied on top of others, and its checks ran again.
    Reapplied,
    NoTrailers,
    NewChain,
    CutOff,
    JournalDamaged {
        run: RunId,
    },
    /// Later stories were built on it before a person reviewed it.
    NeedsReview,
    /// A person accepted it.
    Accepted {
        by: String,
        reasons: Vec<String>,
    },
    /// Tests, test data or configuration that the story changed.
    ProtectedChanged {
        files: Vec<String>,
    },
    Unproven {
        criteria: Vec<String>,
        of: usize,
    },
    FlakyNow {
        name: String,
    },
    AdvisoryFails {
        name: String,
    },
    NotAllowed {
        command: String,
    },
    NotRunAgain {
        names: Vec<String>,
    },
}

impl Remark {
    pub fn finding(&self) -> Finding {
        Finding { kind: self.kind().to_owned(), text: self.describe() }
    }

    fn kind(&self) -> &'static str {
        match self {
            Self::Amended => "amended",
            Self::Reapplied => "reapplied",
            Self::NoTrailers => "no_trailers",
            Self::NewChain => "new_chain",
            Self::CutOff => "history_cut_off",
            Self::JournalDamaged { .. } => "journal_damaged",
            Self::NeedsReview => "needs_review",
            Self::Accepted { .. } => "accepted",
            Self::ProtectedChanged { .. } => "protected_changed",
            Self::Unproven { .. } => "criteria_unproven",
            Self::FlakyNow { .. } => "flaky_now",
            Self::AdvisoryFails { .. } => "advisory_fails",
            Self::NotAllowed { .. } => "not_allowed",
            Self::NotRunAgain { .. } => "not_run_again",
        }
    }

    fn describe(&self) -> String {
        match self {
            Self::Reapplied => {
                "re-applied on top of other commits; the checks ran again there, and the note keeps both".to_owned()
            }
            Self::Amended => "a git hook rewrote its tree; the checks ran again on that, and the note keeps both".to_owned(),
            Self::NoTrailers => {
                "its message does not name its evidence (a git hook may have rewritten it); the journal does".to_owned()
            }
            Self::NewChain => "it starts a new chain, although there is evidence before it".to_owned(),
            Self::CutOff => "the history is cut off here (a shallow clone), so earlier commits could not be checked".to_owned(),
            Self::JournalDamaged { run } => format!("the journal of run {run} has a gap and does not contain it"),
            Self::NeedsReview => "a person has not accepted it yet".to_owned(),
            Self::Accepted { by, reasons } if reasons.is_empty() => format!("accepted by {by}"),
            Self::Accepted { by, reasons } => format!("accepted by {by}, who was shown: {}", reasons.join("; ")),
            Self::ProtectedChanged { files } => format!("changed tests or configuration: {}", files.join(", ")),
            Self::Unproven { criteria, of } => {
                format!("nothing proved {} of its {of} acceptance criteria: {}", criteria.len(), criteria.join("; "))
            }
            Self::FlakyNow { name } => format!("run again, {name} is flaky: it failed, then passed on the same files"),
            Self::AdvisoryFails { name } => format!("run again, {name} fails; it is advisory"),
            Self::NotAllowed { command } => {
                format!("not run again, because neither the plan, the settings nor a local run has this command: {command}")
            }
            Self::NotRunAgain { names } => {
                format!("not run again, because the audit was interrupted: {}", names.join("; "))
            }
        }
    }
}

/// A shortened digest for display.
fn short(digest: &str) -> String {
    match digest.strip_prefix("sha256:").and_then(|hex| hex.get(..12)) {
        Some(hex) => format!("sha256:{hex}"),
        None => digest.chars().take(30).collect(),
    }
}
