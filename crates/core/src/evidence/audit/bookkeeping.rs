//! Commits that Verdone makes beside those of stories: progress that is recorded, ticks that are undone. Anybody can write the
//! trailer that says so; what such a commit changes tells whether it is one.

use crate::base::id::StoryId;
use crate::plan::{Document, Status};

/// What a commit did to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    pub path: String,
    /// Nothing where there was none.
    pub before: Option<Vec<u8>>,
    pub after: Option<Vec<u8>>,
    /// It was an ordinary file with the same permissions on both sides, and not too large to look at.
    pub plain: bool,
}

/// A commit that says it is Verdone's and no story's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Bookkeeping {
    /// It changes marks of the plan and progress files, and nothing else. These stories it calls done.
    Ours { done: Vec<StoryId> },
    /// It changes this file.
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

/// A progress file by its usual name, or one to which an entry was added.
fn is_progress(change: &FileChange) -> bool {
    let name = change.path.rsplit('/').next().unwrap_or_default();
    let Some(after) = change.after.as_deref().filter(|_| change.plain) else { return false };
    let before = change.before.as_deref().unwrap_or_default();
    let added = after.strip_prefix(before.trim_ascii_end()).map(<[u8]>::trim_ascii_start);
    let is_entry = |text: &[u8]| text.starts_with(b"## [") && text.windows(6).any(|part| part == b"\nRun: ");
    matches!(name, "progress.md" | "progress.txt") || added.is_some_and(is_entry)
}

/// The stories that became done, of a plan in which nothing but marks changed: with those, the old text is the new one.
fn marked_done(change: &FileChange) -> Option<Vec<StoryId>> {
    let (Some(before), Some(after), true) = (&change.before, &change.after, change.plain) else { return None };
    let read = |bytes: &[u8]| Document::parse(&change.path, bytes).ok();
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
