//! Adds a story to the end of a plan.

use crate::{Dialect, Document, Status, Story, StoryId};

impl Document {
    /// The plan with one more story at its end, and the id of that story.
    ///
    /// The text may come from an agent. Whatever is in it, the result has exactly one more story, which has no commands, and all other
    /// stories are unchanged. Nor can it lower the proof that it needs. Returns `None` if that is impossible, for example in a JSON plan.
    pub fn with_story(&self, title: &str, criteria: &[String], dialect: &Dialect) -> Option<(Self, StoryId)> {
        let end = if self.text().ends_with('\n') { "" } else { "\n" };
        let title_alone = [title.to_owned()];
        let tasks = if criteria.is_empty() { &title_alone[..] } else { criteria };
        let list = |mark: &str, lines: &[String]| lines.iter().flat_map(|line| [mark, line, "\n"]).collect::<String>();
        let (boxes, nested) = (list("- [ ] ", tasks), list("  - ", criteria));
        let numbered = self.next_id().map(|id| format!("\n### {id}: {title}\n\n{boxes}"));
        let candidates = [Some(format!("- [ ] {title}\n{nested}")), numbered, Some(format!("\n## {title}\n\n{boxes}"))];
        candidates.into_iter().flatten().find_map(|added| {
            let text = format!("{}{end}{added}", self.text());
            let new = Self::parse(self.name(), text.as_bytes(), dialect).ok()?;
            let id = self.only_new_story(&new).filter(|story| story.title == title)?.id.clone();
            Some((new, id))
        })
    }

    /// The story that `new` has besides ours. `None` if there is any other difference between the two plans' stories.
    fn only_new_story<'a>(&self, new: &'a Self) -> Option<&'a Story> {
        let (story, others) = new.plan().stories.split_last()?;
        let is_harmless = story.checks.is_empty() && story.maybe_checks.is_empty() && story.proof.is_none();
        let is_harmless = is_harmless && story.status == Status::Open;
        let is_same = others == self.plan().stories && new.plan().context == self.plan().context;
        (is_harmless && is_same).then_some(story)
    }

    /// The number after that of the last story, with the same letters and as many digits: `US-010` after `US-009`.
    fn next_id(&self) -> Option<String> {
        let last = self.plan().stories.iter().rev().find(|story| story.explicit_id)?.id.to_string();
        let letters = last.trim_end_matches(|letter: char| letter.is_ascii_digit());
        let digits = &last[letters.len()..];
        let number: u64 = digits.parse().ok()?;
        Some(format!("{letters}{:0width$}", number.checked_add(1)?, width = digits.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::tests::PLAIN as DIALECT;

    fn add(plan: &str, title: &str, criteria: &[&str]) -> Option<(String, String)> {
        let document = Document::parse("PLAN.md", plan.as_bytes(), &DIALECT).unwrap();
        let criteria: Vec<String> = criteria.iter().map(|text| (*text).to_owned()).collect();
        let (new, id) = document.with_story(title, &criteria, &DIALECT)?;
        Some((new.text().strip_prefix(plan).unwrap().to_owned(), id.to_string()))
    }

    #[test]
    fn a_story_takes_the_form_of_the_plan() {
        let (text, _) = add("- [x] Write a\n- [ ] Write b", "Write c", &["c exists"]).unwrap();
        assert_eq!(text, "\n- [ ] Write c\n  - c exists\n");
        let (text, id) = add("### US-009: Write a\n\n- [ ] a exists\n", "Write c", &["c exists"]).unwrap();
        assert_eq!((text.as_str(), id.as_str()), ("\n### US-010: Write c\n\n- [ ] c exists\n", "US-010"));
        let (text, _) = add("### US-009: Write a\n\n- [ ] a exists\n", "Write c", &[]).unwrap();
        assert_eq!(text, "\n### US-010: Write c\n\n- [ ] Write c\n");
        let (text, _) = add("## Write a\n\n- [ ] a exists\n", "Write c", &["c exists"]).unwrap();
        assert_eq!(text, "\n## Write c\n\n- [ ] c exists\n");
    }

    #[test]
    fn an_added_story_brings_no_command_and_changes_no_other_story() {
        let plans = ["- [ ] Write a\n", "### US-001: Write a\n\n- [ ] a exists\n", "## Write a\n\n- [ ] a exists\n"];
        let titles = ["c", "c\n- [ ] d", "- [x] c", "US-001: c", "c (Verification: `true`)", "```"];
        let criteria = [
            "Verification: `true`",
            "**Verification**: true",
            "Depends on: US-001",
            "\n### US-001: Again",
            "```",
            "[x] e",
            "Proof: strong",
        ];
        for plan in plans {
            let before = Document::parse("PLAN.md", plan.as_bytes(), &DIALECT).unwrap();
            for title in titles {
                for criterion in criteria {
                    let Some((after, _)) = before.with_story(title, &[criterion.to_owned()], &DIALECT) else { continue };
                    let text = after.text();
                    let (new, others) = after.plan().stories.split_last().unwrap();
                    assert_eq!(others, before.plan().stories, "{text}");
                    assert!(new.checks.is_empty() && new.maybe_checks.is_empty() && new.proof.is_none(), "{text}");
                    assert_eq!(new.status, Status::Open, "{text}");
                }
            }
        }
    }

    #[test]
    fn a_json_plan_gets_none() {
        let plan = r#"{"userStories": [{"id": "US-001", "title": "Write a", "passes": false}]}"#;
        let document = Document::parse("prd.json", plan.as_bytes(), &DIALECT).unwrap();
        assert!(document.with_story("Write b", &[], &DIALECT).is_none());
    }
}
