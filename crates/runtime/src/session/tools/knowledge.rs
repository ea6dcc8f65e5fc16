//! What the project knows: its stories, its guardrails, the evidence of its stories, and what agents propose.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::Path;

use verdone_core::base::sanitise::sanitise_line;
use verdone_core::evidence::audit::GitNote;
use verdone_core::evidence::{Evidence, NotedCheck};
use verdone_core::journal::agent_tools::{Answer, FoundStory, Passage, search};
use verdone_plan::Plan;

use crate::base::plain_file::{open_regular, read_regular};
use crate::git::{Git, GitError};
use crate::project::home_gitignore::hide_new_files;

const GUARDRAILS: &str = ".verdone/guardrails.md";
/// Stories that agents propose.
pub(crate) const PROPOSALS: &str = ".verdone/proposed-stories.md";
/// Larger files are not lessons.
const LARGEST: u64 = 1024 * 1024;

/// The text of the guardrails. Empty if there are none.
pub(crate) fn guardrails(root: &Path) -> String {
    read_regular(&root.join(GUARDRAILS), LARGEST).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}

/// Appends a story that an agent proposes. It becomes work only when the user moves it to the plan.
pub(crate) fn propose(root: &Path, text: &str) -> io::Result<()> {
    append(root, PROPOSALS, text)
}

fn append(root: &Path, name: &str, text: &str) -> io::Result<()> {
    let path = root.join(name);
    if path.parent().is_some_and(Path::is_symlink) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, ".verdone is a link"));
    }
    let known = read_regular(&path, LARGEST)
        .or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(Vec::new()) } else { Err(error) })?;
    let separator = if known.is_empty() || known.ends_with(b"\n") { "" } else { "\n" };
    if !path.exists() {
        hide_new_files(root)?;
    }
    let mut file = open_regular(&path, OpenOptions::new().append(true).create(true))?;
    file.write_all(format!("{separator}{text}").as_bytes())
}

/// An error that names the stories that there are.
pub(crate) fn no_story(plan: &Plan, id: &str) -> Answer {
    let known: Vec<FoundStory> =
        plan.stories.iter().take(50).map(|story| FoundStory { id: story.id.clone(), title: story.title.clone() }).collect();
    let mut answer = Answer::error(&format!("the plan has no story {id:?}"), "use one of the known ids");
    answer.body["known"] = serde_json::to_value(known).unwrap_or_default();
    answer
}

/// The passages that fit the query best.
pub(crate) fn recall(root: &Path, git: &Git, query: &str) -> Result<Vec<Passage>, GitError> {
    let guardrails = guardrails(root);
    let lessons = guardrails.lines().map(|line| line.trim().trim_start_matches("- ")).filter(|line| !line.is_empty());
    let lessons = lessons.map(|line| Passage { source: "guardrails".to_owned(), text: line.to_owned() });
    let proven = evidence(git)?.into_iter().map(|(source, text)| Passage { source, text });
    Ok(search(query, lessons.chain(proven)))
}

/// What proved each story, with the commit: the names of the checks and whether they passed, which an agent may know of every check.
pub(crate) fn evidence(git: &Git) -> Result<Vec<(String, String)>, GitError> {
    let mut all = Vec::new();
    for (commit, note) in git.evidence_notes()? {
        let GitNote::Bytes(note) = note else { continue };
        let Ok(evidence) = Evidence::from_note(&note) else { continue };
        let result =
            |check: &NotedCheck| format!("{} {}", check.name, if check.outcome.passed() { "passed" } else { "did not pass" });
        let checks: Vec<String> = evidence.after.iter().map(result).collect();
        let text = format!(
            "{} {}: {}, {}; checks: {}{}",
            evidence.story,
            sanitise_line(&evidence.title),
            evidence.proof,
            evidence.outcome,
            checks.join(", "),
            evidence.claim.as_deref().map(|claim| format!("; the agent said: {}", sanitise_line(claim))).unwrap_or_default(),
        );
        all.push((format!("commit {}", commit.short()), text));
    }
    Ok(all)
}

/// The same as a text.
pub(crate) fn evidence_text(git: &Git) -> Result<String, GitError> {
    let lines: Vec<String> = evidence(git)?.into_iter().map(|(source, text)| format!("- {source}: {text}\n")).collect();
    Ok(lines.concat())
}
