//! The information a run passes to the hooks of a turn: the story, its checks and scope, the branch, the plan. Its size does not
//! depend on the plan's, because hooks read it instead of the plan.

use serde::{Deserialize, Serialize};
use verdone_plan::{Story, scope};

use crate::base::id::StoryId;
use crate::policy::Scope;

/// The prompt has the story's full text; rules and lessons must fit beside this excerpt.
const LONGEST_TEXT: usize = 4_000;
const LONGEST_LINE: usize = 300;
const MOST_CHECKS: usize = 20;

/// The story of a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Briefing {
    pub story: StoryId,
    pub title: String,
    /// The text in the plan, truncated.
    pub text: String,
    pub checks: Vec<String>,
    /// Relative to the work tree; empty if the story names no scope.
    #[serde(default)]
    pub scope: Vec<String>,
    /// The branch that HEAD must stay on; absent if it is not known yet.
    #[serde(default)]
    pub branch: Option<String>,
    /// The path of the plan, absolute and without symlinks.
    pub plan: String,
    /// The plan and its related files, relative to the work tree if they are inside it.
    #[serde(default)]
    pub exempt: Vec<String>,
    /// The iteration of the run, and the turn of the iteration. Not in the environment, because the client that starts the hooks lives
    /// for many turns.
    #[serde(default)]
    pub iteration: u32,
    #[serde(default)]
    pub turn: u32,
}

impl Briefing {
    /// `folder` is the project's path relative to the work tree.
    pub fn for_story(story: &Story, checks: impl Iterator<Item = String>, folder: &str) -> Self {
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

    /// The text for the agent.
    pub fn text(&self) -> String {
        let mut text = format!("The story for this turn is {}: {}\n", self.story, self.title);
        if !self.text.trim().is_empty() {
            text.push_str(&format!("{}\n", self.text.trim_end()));
        }
        if !self.checks.is_empty() {
            text.push_str("Its checks, which Verdone runs itself:\n");
            self.checks.iter().for_each(|check| text.push_str(&format!("- `{check}`\n")));
        }
        if let Some(scope) = self.scope(false) {
            text.push_str(&format!("Its scope: {}. Keep changes inside it.\n", scope.describe()));
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
    use verdone_plan::Document;

    use crate::plan::DIALECT;

    fn briefing(text: &str) -> Briefing {
        let document = Document::parse("plan.md", text.as_bytes(), &DIALECT).unwrap();
        let story = &document.plan().stories[0];
        Briefing::for_story(story, story.checks.iter().cloned(), "web")
    }

    #[test]
    fn a_briefing_says_what_the_story_is_and_stays_small() {
        let short = briefing("- [ ] US-001: One\n  - Scope: src/, `docs`\n  - Verification: `make one`\n");
        let words = short.text();
        assert!(words.starts_with("The story for this turn is US-001: One\n"), "{words}");
        assert!(words.contains("- `make one`") && words.ends_with("Its scope: `web/docs`. Keep changes inside it."), "{words}");
        let long = briefing(&format!("- [ ] US-001: One\n  {}\n", "words é ".repeat(100_000)));
        assert!(long.text().len() < 5_000 && long.scope(true).is_none());
        let kept = serde_json::to_string(&short).unwrap();
        assert_eq!(serde_json::from_str::<Briefing>(&kept).unwrap(), short);
    }
}
