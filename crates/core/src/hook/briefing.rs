//! What a run tells the hooks of a turn: its story, the story's checks and scope, the branch, the plan. Small, whatever the size of
//! the plan, because hooks read it instead of the plan.

use serde::{Deserialize, Serialize};

use crate::base::id::StoryId;
use crate::base::scope;
use crate::plan::Story;
use crate::policy::Scope;

/// More of a story's text is in its prompt; rules and lessons have to fit beside it.
const LONGEST_TEXT: usize = 4_000;
const LONGEST_LINE: usize = 300;
const MOST_CHECKS: usize = 20;

/// The story that a turn is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Briefing {
    pub story: StoryId,
    pub title: String,
    /// As the plan has it, cut.
    pub text: String,
    pub checks: Vec<String>,
    /// Relative to the work tree; empty where the story names none.
    #[serde(default)]
    pub scope: Vec<String>,
    /// Where HEAD has to stay; absent before it could be known.
    #[serde(default)]
    pub branch: Option<String>,
    /// The plan, absolute and without links.
    pub plan: String,
    /// The plan and what belongs to it, relative to the work tree where they lie in it.
    #[serde(default)]
    pub exempt: Vec<String>,
    /// Which iteration of the run it is, and which turn of the iteration. The client that starts the hooks stays for many turns, so
    /// its environment cannot say it.
    #[serde(default)]
    pub iteration: u32,
    #[serde(default)]
    pub turn: u32,
}

impl Briefing {
    /// `folder` is where the project lies below the work tree.
    pub fn of(story: &Story, checks: impl Iterator<Item = String>, folder: &str) -> Self {
        Self {
            story: story.id.clone(),
            title: cut(&story.title, LONGEST_LINE),
            text: cut(&story.body, LONGEST_TEXT),
            checks: checks.take(MOST_CHECKS).map(|check| cut(&check, LONGEST_LINE)).collect(),
            scope: scope::below(&story.scope, folder),
            branch: None,
            plan: String::new(),
            exempt: Vec::new(),
            iteration: 0,
            turn: 0,
        }
    }

    /// The story's scope, if it names one.
    pub fn scope(&self, enforced: bool) -> Option<Scope> {
        let scope = || Scope { paths: self.scope.clone(), enforced, exempt: self.exempt.clone() };
        (!self.scope.is_empty()).then(scope)
    }

    /// For the agent to read.
    pub fn words(&self) -> String {
        let mut text = format!("The story of this turn is {}: {}\n", self.story, self.title);
        if !self.text.trim().is_empty() {
            text.push_str(&format!("{}\n", self.text.trim_end()));
        }
        if !self.checks.is_empty() {
            text.push_str("Its checks, which Verdone runs itself:\n");
            self.checks.iter().for_each(|check| text.push_str(&format!("- `{check}`\n")));
        }
        if let Some(scope) = self.scope(false) {
            text.push_str(&format!("Its scope: {}. Keep changes inside it.\n", scope.words()));
        }
        text.trim_end().to_owned()
    }
}

fn cut(text: &str, most: usize) -> String {
    let end = text.floor_char_boundary(most);
    if end == text.len() { text.to_owned() } else { format!("{}…", &text[..end]) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Document;

    fn briefing(text: &str) -> Briefing {
        let document = Document::parse("plan.md", text.as_bytes()).unwrap();
        let story = &document.plan().stories[0];
        Briefing::of(story, story.checks.iter().map(crate::check::CommandSpec::display), "web")
    }

    #[test]
    fn a_briefing_says_what_the_story_is_and_stays_small() {
        let short = briefing("- [ ] US-001: One\n  - Scope: src/, `docs`\n  - Verification: `make one`\n");
        let words = short.words();
        assert!(words.starts_with("The story of this turn is US-001: One\n"), "{words}");
        assert!(words.contains("- `make one`") && words.ends_with("Its scope: `web/docs`. Keep changes inside it."), "{words}");
        let long = briefing(&format!("- [ ] US-001: One\n  {}\n", "words é ".repeat(100_000)));
        assert!(long.words().len() < 5_000 && long.scope(true).is_none());
        let kept = serde_json::to_string(&short).unwrap();
        assert_eq!(serde_json::from_str::<Briefing>(&kept).unwrap(), short);
    }
}
