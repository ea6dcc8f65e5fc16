//! The prompt of a turn: a template, built in or the user's own, filled with what the agent has to know.
//!
//! Plan text and check output are data: they are inserted verbatim and never rendered as templates.

mod refute;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{Environment, UndefinedBehavior};
use serde::Serialize;
use verdone_plan::Story;

use crate::base::excerpt::{keep_end, keep_start};
use crate::engine::run::Feedback;

pub use refute::RefutePrompt;

pub const BUILDING: &str = include_str!("../../prompts/building.md");
pub const PLANNING: &str = include_str!("../../prompts/planning.md");
pub const REFUTE: &str = include_str!("../../prompts/refute.md");
pub const HANDOVER: &str = include_str!("../../prompts/handover.md");

/// How much of the plan's other text to quote at most, so that a long plan does not drown the story.
const CONTEXT_BYTES: usize = 16 * 1024;
/// How many mount points to name; there may be hundreds.
const MOUNT_POINTS: usize = 5;

#[derive(Debug, thiserror::Error)]
#[error("{name}: {message}")]
pub struct PromptError {
    /// The template's file, or `built-in`.
    pub name: String,
    pub message: String,
}

/// The content of a building prompt.
#[derive(Debug, Clone)]
pub struct BuildPrompt<'a> {
    pub plan: &'a str,
    pub story: &'a Story,
    pub checks: Vec<String>,
    pub gates: Vec<String>,
    /// Whether tests written by the agent can prove the story.
    pub own_tests: bool,
    pub failure: Option<&'a Feedback>,
    pub baseline: Option<&'a Feedback>,
    pub guardrails: &'a str,
    /// The user's notes for this prompt.
    pub notes: &'a [String],
    /// The question that an earlier session asked about this story, and the user's answer.
    pub answered: Option<(&'a str, &'a str)>,
    /// Whether the agent can call Verdone's tools.
    pub tools: bool,
    pub context: &'a str,
    /// Folders of the workspace that can be emptied, but not removed or renamed.
    pub mount_points: Vec<String>,
    pub attempt: u32,
    pub turn: u32,
    /// How many bytes of failure output to quote; the end is kept.
    pub failure_bytes: usize,
}

#[derive(Serialize)]
struct StoryWords<'a> {
    id: &'a str,
    title: &'a str,
    body: &'a str,
    criteria: Vec<&'a str>,
}

#[derive(Serialize)]
struct AnsweredWords<'a> {
    question: &'a str,
    answer: &'a str,
}

#[derive(Serialize)]
struct FailureWords {
    reason: String,
    runs: Vec<RunWords>,
    tests: Vec<String>,
    advice: Vec<String>,
    regressed: bool,
}

#[derive(Serialize)]
struct RunWords {
    command: String,
    outcome: String,
    tail: String,
}

impl BuildPrompt<'_> {
    /// Renders it with this template; `name` is for error messages.
    pub fn render(&self, name: &str, template: &str) -> Result<String, PromptError> {
        let story = StoryWords {
            id: self.story.id.as_str(),
            title: &self.story.title,
            body: self.story.body.trim(),
            criteria: self.story.criteria.iter().map(|criterion| criterion.text.as_str()).collect(),
        };
        let words = minijinja::context! {
            plan => self.plan,
            story => Serde(story),
            checks => self.checks.clone(),
            gates => self.gates.clone(),
            own_tests => self.own_tests,
            failure => self.failure.map(|failure| Serde(failure_words(failure, self.failure_bytes))),
            baseline => self.baseline.map(|failure| Serde(failure_words(failure, self.failure_bytes))),
            guardrails => self.guardrails.trim(),
            notes => self.notes.to_vec(),
            answered => self.answered.map(|(question, answer)| Serde(AnsweredWords { question, answer })),
            tools => self.tools,
            context => keep_start(self.context.trim(), CONTEXT_BYTES),
            mount_points => first(&self.mount_points),
            attempt => self.attempt,
            turn => self.turn,
        };
        render(name, template, words)
    }
}

/// The first few names, and how many more there are.
fn first(names: &[String]) -> String {
    let shown: Vec<String> = names.iter().take(MOUNT_POINTS).map(|name| format!("`{name}`")).collect();
    let more = names.len() - shown.len();
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    shown.join(", ") + &more
}

/// What a new session has to know about earlier ones. Comes before the building prompt.
#[derive(Debug, Clone, Default)]
pub struct Handover<'a> {
    /// Why a new session was started, as a clause.
    pub why: &'a str,
    /// Stories that are verified and committed.
    pub done: &'a [String],
    /// Files that the current attempt has already changed. The changes are still there.
    pub changed: &'a [String],
    /// What was tried but did not pass.
    pub failed: &'a [String],
    /// Stories that are left, including the current one.
    pub left: &'a [String],
    /// The final message of the previous session. A claim.
    pub said: &'a str,
    pub guardrails: &'a str,
}

/// How many entries of a list to include, and how much of each. A hand-over must not fill the new context.
const HANDOVER_ITEMS: usize = 40;
const HANDOVER_ITEM_BYTES: usize = 300;
const HANDOVER_SAID_BYTES: usize = 2_000;

impl Handover<'_> {
    /// Renders it with this template; `name` is for error messages.
    pub fn render(&self, name: &str, template: &str) -> Result<String, PromptError> {
        let words = minijinja::context! {
            why => self.why.trim(),
            done => items(self.done),
            changed => items(self.changed),
            failed => items(self.failed),
            left => items(self.left),
            said => keep_end(self.said.trim(), HANDOVER_SAID_BYTES),
            guardrails => self.guardrails.trim(),
        };
        render(name, template, words)
    }
}

/// One line each. The newest come last, so the end is kept.
fn items(all: &[String]) -> Vec<String> {
    let cut = all.len().saturating_sub(HANDOVER_ITEMS);
    let line = |text: &String| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let kept = all[cut..].iter().map(|text| keep_start(&line(text), HANDOVER_ITEM_BYTES).replace('\n', " "));
    (cut > 0).then(|| format!("[{cut} more, left out]")).into_iter().chain(kept).collect()
}

/// The prompt of a turn that is made again in a session that has the first prompt. `notes` are those that came since.
pub fn continuing(story: &str, notes: &[String]) -> String {
    let mut text = format!(
        "The last answer ended early because of an error or a limit of the service. Continue with story {story} where you stopped. \
         Everything that you were told about it still applies.\n"
    );
    if !notes.is_empty() {
        text.push_str("\n## From the user, just now\n\n");
        text.extend(notes.iter().map(|note| format!("- {note}\n")));
    }
    text
}

/// The prompt that asks for a plan.
pub fn planning(name: &str, template: &str, request: &str, guardrails: &str) -> Result<String, PromptError> {
    render(name, template, minijinja::context! { request => request.trim(), guardrails => guardrails.trim() })
}

fn render(name: &str, template: &str, words: minijinja::Value) -> Result<String, PromptError> {
    let failed = |error: minijinja::Error| PromptError {
        name: error.line().map_or_else(|| name.to_owned(), |line| format!("{name}:{line}")),
        message: error.detail().map_or_else(|| error.kind().to_string(), str::to_owned),
    };
    let mut env = Environment::new();
    env.set_undefined_behavior(UndefinedBehavior::Strict);
    let syntax = SyntaxConfig::builder()
        .trim_blocks(true)
        .lstrip_blocks(true)
        .keep_trailing_newline(true)
        .build()
        .expect("the default delimiters are valid");
    env.set_syntax(syntax);
    env.render_named_str(name, template, words).map_err(failed)
}

fn failure_words(failure: &Feedback, bytes: usize) -> FailureWords {
    let share = bytes / (failure.failed.len() + failure.tests.len()).max(1);
    let runs = failure
        .failed
        .iter()
        .map(|run| RunWords { command: run.command.display(), outcome: run.outcome.describe(), tail: run.excerpt(share) })
        .collect();
    let tests = failure.tests.iter().map(|text| keep_start(text.trim_end(), share)).collect();
    let advice = items(&failure.advice);
    FailureWords { reason: keep_end(&failure.reason, bytes), runs, tests, advice, regressed: failure.regressed }
}

/// Extracts the plan from the answer to a planning prompt: the text between the last pair of markers, else all of it.
pub fn plan_in_answer(answer: &str) -> &str {
    let Some(end) = answer.rfind("</plan>") else { return answer };
    let Some(start) = answer[..end].rfind("<plan>") else { return answer };
    answer[start + "<plan>".len()..end].trim_start_matches(['\r', '\n'])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::id::StoryId;
    use verdone_plan::{Criterion, Status, ThinVec};

    fn story() -> Story {
        Story {
            id: StoryId::from("US-001"),
            title: "Say {{ hello }}".to_owned(),
            body: "Print {% raw %} things.".to_owned(),
            status: Status::Open,
            criteria: vec![Criterion { text: "it prints".to_owned(), ticked: None }].into(),
            depends_on: ThinVec::EMPTY,
            priority: None,
            checks: ThinVec::EMPTY,
            maybe_checks: ThinVec::EMPTY,
            scope: ThinVec::EMPTY,
            proof: None,
            complexity: None,
            kind: None,
            line: 1,
            explicit_id: true,
        }
    }

    fn building<'a>(story: &'a Story, failure: Option<&'a Feedback>) -> BuildPrompt<'a> {
        BuildPrompt {
            plan: "PLAN.md",
            story,
            checks: vec!["grep hello out".to_owned()],
            gates: vec!["make test".to_owned()],
            own_tests: false,
            failure,
            baseline: None,
            guardrails: "",
            notes: &[],
            answered: None,
            tools: false,
            context: "",
            mount_points: Vec::new(),
            attempt: 1,
            turn: 1,
            failure_bytes: 100,
        }
    }

    #[test]
    fn plan_text_is_never_taken_for_a_template() {
        let story = story();
        let text = building(&story, None).render("built-in", BUILDING).unwrap();
        assert!(text.contains("# Story US-001: Say {{ hello }}"), "{text}");
        assert!(text.contains("Print {% raw %} things."), "{text}");
        assert!(text.contains("- it prints"), "{text}");
        assert!(text.contains("- `grep hello out`\n- `make test` (for every story)"), "{text}");
        assert!(!text.contains("went wrong"), "{text}");
    }

    #[test]
    fn folders_that_cannot_be_removed_are_named_in_one_line() {
        let story = story();
        let text = |names: &[&str]| {
            let mount_points = names.iter().map(|name| (*name).to_owned()).collect();
            BuildPrompt { mount_points, ..building(&story, None) }.render("built-in", BUILDING).unwrap()
        };
        assert!(!text(&[]).contains("mount point"));
        let few = text(&["node_modules", "target"]);
        assert!(
            few.contains("\n- Mount points cannot be removed or renamed, only emptied: `node_modules`, `target`.\n"),
            "{few}"
        );
        assert!(text(&["a", "b", "c", "d", "e", "f", "g"]).contains("`e` and 2 more.\n"));
    }

    #[test]
    fn a_failure_keeps_its_end() {
        let story = story();
        let failure = Feedback::plain(format!("{}the end", "x".repeat(500)));
        let text = building(&story, Some(&failure)).render("built-in", BUILDING).unwrap();
        assert!(text.contains("bytes cut]\nxxx") && text.contains("xthe end"), "{text}");
        assert!(text.contains("An earlier attempt was not accepted"), "{text}");
    }

    #[test]
    fn a_turn_that_is_made_again_is_told_in_a_few_words_to_continue() {
        let text = continuing("US-001", &[]);
        assert!(text.len() < 250 && text.contains("Continue with story US-001") && !text.contains('#'), "{text}");
        assert!(continuing("US-001", &["hurry".to_owned()]).ends_with("## From the user, just now\n\n- hurry\n"));
    }

    #[test]
    fn a_broken_template_is_named_with_its_line() {
        let story = story();
        let error = building(&story, None).render("mine.md", "one\n{{ nothing.here }}\n").unwrap_err();
        assert!(error.to_string().starts_with("mine.md:2:"), "{error}");
    }

    #[test]
    fn a_hand_over_says_what_a_fresh_session_cannot_know() {
        let list = |text: &str| vec![text.to_owned()];
        let handover = Handover {
            why: "the context was full",
            done: &list("US-001: first {{ thing }}"),
            changed: &list("src/a.rs"),
            failed: &list("test: exit code 1\nwith more"),
            left: &list("US-002: second"),
            said: "All done!",
            guardrails: "- never push",
        };
        let text = handover.render("built-in", HANDOVER).unwrap();
        for part in [
            "the context was full",
            "- US-001: first {{ thing }}\n",
            "- `src/a.rs`\n",
            "- test: exit code 1 with more\n",
            "- US-002: second\n",
            "All done!",
            "- never push",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        let empty = Handover::default().render("built-in", HANDOVER).unwrap();
        assert!(!empty.contains("##") && !empty.contains("\n\n\n"), "{empty}");
    }

    #[test]
    fn a_hand_over_stays_short() {
        let many: Vec<String> = (0..10_000).map(|n| format!("{n} {}", "é".repeat(1_000))).collect();
        let said = "x".repeat(100_000);
        let handover = Handover { done: &many, changed: &many, failed: &many, left: &many, said: &said, ..Handover::default() };
        let text = handover.render("built-in", HANDOVER).unwrap();
        assert!(text.len() < 80_000, "{}", text.len());
        assert!(text.contains("[9960 more, left out]") && text.contains("- 9999 "), "the newest are kept");
    }

    #[test]
    fn the_plan_is_found_in_an_answer() {
        let cases = [
            ("# P\n", "# P\n"),
            ("Sure!\n<plan>\n# P\n</plan>\nDone", "# P\n"),
            ("<plan>old</plan> <plan>\nnew\n</plan>", "new\n"),
            ("no end <plan> x", "no end <plan> x"),
        ];
        for (answer, plan) in cases {
            assert_eq!(plan_in_answer(answer), plan, "{answer:?}");
        }
    }

    #[test]
    fn cutting_respects_characters() {
        assert!(keep_end("ééééé", 3).ends_with('é'));
        assert!(keep_start("ééééé", 3).starts_with('é'));
    }
}
