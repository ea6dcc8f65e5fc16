//! Commits that Verdone makes besides story commits: recorded progress and undone ticks. Anyone can write the trailer that claims
//! this, so the changes decide whether the claim is true.

use verdone_plan::{Document, Status};

use crate::base::id::StoryId;
use crate::plan::DIALECT;

/// A commit's change to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    pub path: String,
    /// `None` if the file did not exist.
    pub before: Option<Vec<u8>>,
    pub after: Option<Vec<u8>>,
    /// It was a regular file with the same permissions before and after, and small enough to read.
    pub plain: bool,
}

/// A commit that claims to be Verdone's but belongs to no story.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Bookkeeping {
    /// It changes only plan marks and progress files. `done` lists the stories it marks as done.
    Ours { done: Vec<StoryId> },
    /// It also changes this file.
    Other { path: String },
}

pub fn bookkeeping(changes: &[FileChange]) -> Bookkeeping {
    let mut done = Vec::new();
    for change in changes {
        match marked_done(change) {
            Some(stories) => done.extend(stories),
            None if is_progress(change) => {}
            None => return Bookkeeping::Other { path: change.path.clone() },
        }
    }
    done.sort();
    done.dedup();
    Bookkeeping::Ours { done }
}

/// Whether the file has the usual name of a progress file, or an entry was added to it.
fn is_progress(change: &FileChange) -> bool {
    let name = change.path.rsplit('/').next().unwrap_or_default();
    let Some(after) = change.after.as_deref().filter(|_| change.plain) else { return false };
    let before = change.before.as_deref().unwrap_or_default();
    let added = after.strip_prefix(before.trim_ascii_end()).map(<[u8]>::trim_ascii_start);
    let is_entry = |text: &[u8]| text.starts_with(b"## [") && text.windows(6).any(|part| part == b"\nRun: ");
    matches!(name, "progress.md" | "progress.txt") || added.is_some_and(is_entry)
}

/// The stories that were marked as done, if nothing but marks changed: applying those marks to the old text must give the new text.
fn marked_done(change: &FileChange) -> Option<Vec<StoryId>> {
    let (Some(before), Some(after), true) = (&change.before, &change.after, change.plain) else { return None };
    let read = |bytes: &[u8]| Document::parse(&change.path, bytes, &DIALECT).ok();
    let (mut before, after) = (read(before)?, read(after)?);
    let wanted = &after.plan().stories;
    if wanted.len() != before.plan().stories.len() {
        return None;
    }
    let mut done = Vec::new();
    for (at, story) in wanted.iter().enumerate() {
        if before.plan().stories[at].status != story.status {
            before.mark(at, story.status).ok()?;
            done.extend((story.status == Status::Done).then(|| story.id.clone()));
        }
    }
    (before.text() == after.text()).then_some(done)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(path: &str, before: Option<&str>, after: Option<&str>) -> FileChange {
        let bytes = |text: Option<&str>| text.map(|text| text.as_bytes().to_vec());
        FileChange { path: path.to_owned(), before: bytes(before), after: bytes(after), plain: true }
    }

    #[test]
    fn marks_and_progress_are_bookkeeping_and_nothing_else_is() {
        let done = "# Plan\n\n### US-001: A\n\n- [x] Do it\n  - Verification: `test -f a`\n\n### US-002: B\n\n- [x] Do that\n";
        let open = done.replacen("[x]", "[ ]", 1);
        let list = r#"{"features": [{"id": "F1", "description": "d", "passes": true}]}"#;
        let entry = "# Log\n\n## [2026-01-01 10:00] - US-001: A\nRun: r1\nVerification:\n- none\n";
        let weaker = open.replace("test -f a", "true");
        let ours = |change: &FileChange| matches!(bookkeeping(std::slice::from_ref(change)), Bookkeeping::Ours { .. });
        let table = [
            (change("PLAN.md", Some(done), Some(&open)), true),
            (change("PLAN.md", Some(done), Some(&done.replace("[x]", "[ ]"))), true),
            (change("docs/feature_list.json", Some(list), Some(&list.replace("true", "false"))), true),
            (change("sub/progress.txt", Some("STATUS: A\n"), Some("STATUS: B\n")), true),
            (change("progress.md", None, Some(entry)), true),
            (change("LOG.md", Some("# Log\n"), Some(entry)), true),
            (change("PLAN.md", Some(done), Some(&weaker)), false),
            (change("PLAN.md", Some(done), None), false),
            (change("PLAN.md", None, Some(done)), false),
            (change("src/main.rs", Some("fn main() {}\n"), Some("fn main() { evil() }\n")), false),
            (change("LOG.md", Some("# Log\n"), Some("# Log\n\nmore\n")), false),
            (FileChange { plain: false, ..change("progress.md", Some("a"), Some("b")) }, false),
            (FileChange { plain: false, ..change("PLAN.md", Some(done), Some(&open)) }, false),
        ];
        for (change, expected) in table {
            assert_eq!(ours(&change), expected, "{change:?}");
        }
        let both = [change("progress.md", None, Some("x")), change("src/a.rs", None, Some("y"))];
        assert_eq!(bookkeeping(&both), Bookkeeping::Other { path: "src/a.rs".to_owned() });
        assert_eq!(bookkeeping(&[]), Bookkeeping::Ours { done: Vec::new() });
        let ticks = [change("PLAN.md", Some(&open), Some(done)), change("progress.md", None, Some(entry))];
        assert_eq!(bookkeeping(&ticks), Bookkeeping::Ours { done: vec![StoryId::from("US-001")] });
    }
}
