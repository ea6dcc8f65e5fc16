//! For every format: exactly what was marked is read back, and no byte except the markers changes.

use proptest::prelude::*;
use verdone_plan::{Document, Status};

use crate::DIALECT;

/// A generated plan: text with a placeholder for every marker, so that the expected text can be built without the parser.
#[derive(Debug, Clone)]
struct Generated {
    name: &'static str,
    /// Pieces between markers; one more than there are markers.
    pieces: Vec<String>,
    /// The story of each marker.
    owners: Vec<usize>,
    open: &'static str,
    done: &'static str,
    stories: usize,
}

impl Generated {
    fn text(&self, done: &[bool]) -> String {
        let mut out = self.pieces[0].clone();
        for (piece, owner) in self.pieces[1..].iter().zip(&self.owners) {
            out.push_str(if done[*owner] { self.done } else { self.open });
            out.push_str(piece);
        }
        out
    }
}

struct Builder {
    generated: Generated,
    end: &'static str,
}

impl Builder {
    fn new(name: &'static str, open: &'static str, done: &'static str, crlf: bool) -> Self {
        let generated = Generated { name, pieces: vec![String::new()], owners: Vec::new(), open, done, stories: 0 };
        Self { generated, end: if crlf { "\r\n" } else { "\n" } }
    }

    fn push(&mut self, text: &str) {
        self.generated.pieces.last_mut().expect("there is always a piece").push_str(text);
    }

    fn line(&mut self, text: &str) {
        let line = format!("{}{}", text.replace('\n', self.end), self.end);
        self.push(&line);
    }

    fn marker(&mut self, story: usize) {
        self.generated.owners.push(story);
        self.generated.pieces.push(String::new());
    }

    fn finish(mut self, stories: usize, trailing: bool) -> Generated {
        if !trailing {
            let last = self.generated.pieces.last_mut().expect("there is always a piece");
            last.truncate(last.trim_end_matches(['\r', '\n']).len());
        }
        self.generated.stories = stories;
        self.generated
    }
}

/// Words that are tricky in Markdown, JSON or Unicode, but are neither ids nor boxes.
fn tricky_words() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        Just("plain"),
        Just("naïve"),
        Just("日本語"),
        Just("😀"),
        Just("`code [ ]`"),
        Just("*star*"),
        Just("[link](x)"),
        Just("[x]"),
        Just("a\tb"),
        Just("<b>"),
        Just("\\[ ]"),
        Just("é\u{301}"),
        Just("#hash"),
        Just("::"),
    ];
    prop::collection::vec(word, 1..4).prop_map(|words| format!("t {}", words.join(" ")))
}

/// Blocks without a story.
fn noise() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        Just("Some text with - [ ] inside.\n".to_owned()),
        Just("```md\n- [ ] US-900: fenced\n### US-901: fenced\n```\n".to_owned()),
        Just("~~~\n- [x] fenced\n~~~\n".to_owned()),
        Just("<!--\n- [ ] US-902: hidden\n-->\n".to_owned()),
        Just("<!-- - [x] hidden -->\n".to_owned()),
        Just("> - [ ] quoted\n".to_owned()),
        Just("- a bullet\n- another\t\n".to_owned()),
        Just("| a | b |\n|---|---|\n".to_owned()),
    ]
}

#[derive(Debug, Clone)]
struct Part {
    title: String,
    noise: String,
    tasks: usize,
    bullet: &'static str,
    nested: bool,
}

fn parts() -> impl Strategy<Value = Vec<Part>> {
    let part = (tricky_words(), noise(), 1..4usize, prop_oneof![Just("-"), Just("*"), Just("+"), Just("1.")], any::<bool>())
        .prop_map(|(title, noise, tasks, bullet, nested)| Part { title, noise, tasks, bullet, nested });
    prop::collection::vec(part, 1..6)
}

#[derive(Debug, Clone, Copy)]
struct Style {
    crlf: bool,
    bom: bool,
    trailing: bool,
    done: &'static str,
}

fn style() -> impl Strategy<Value = Style> {
    (any::<bool>(), any::<bool>(), any::<bool>()).prop_map(|(crlf, bom, trailing)| Style { crlf, bom, trailing, done: "x" })
}

fn begin(name: &'static str, style: Style) -> Builder {
    let mut out = Builder::new(name, " ", style.done, style.crlf);
    if style.bom {
        out.push("\u{feff}");
    }
    out
}

fn heading_tasks() -> impl Strategy<Value = Generated> {
    (parts(), style()).prop_map(|(parts, style)| {
        let mut out = begin("plan.md", style);
        out.line("# Implementation Plan\n\n## Tasks\n");
        for (story, part) in parts.iter().enumerate() {
            out.line(&format!("### US-{story:03}: {}\n\n{}", part.title, part.noise));
            for task in 0..part.tasks {
                out.push(&format!("{} [", part.bullet));
                out.marker(story);
                out.line(&format!("] task {task} {}", part.title));
                if part.nested {
                    out.line("    - [ ] nested\n    - Verification: `make`");
                }
            }
            out.line(&format!("\n{}", part.noise));
        }
        out.finish(parts.len(), style.trailing)
    })
}

fn heading_boxes() -> impl Strategy<Value = Generated> {
    (parts(), style()).prop_map(|(parts, style)| {
        let mut out = begin("prd.md", style);
        for (story, part) in parts.iter().enumerate() {
            out.push("### [");
            out.marker(story);
            out.line(&format!("] US-{story:03}: {}\n\n{}\n- [ ] criterion\n- [x] other", part.title, part.noise));
            out.line(&format!("\n{}", part.noise));
        }
        out.finish(parts.len(), style.trailing)
    })
}

fn boxes(name: &'static str, head: &'static str, ids: bool) -> impl Strategy<Value = Generated> {
    (parts(), style()).prop_map(move |(parts, style)| {
        let mut out = begin(name, style);
        out.line("# Title");
        for (story, part) in parts.iter().enumerate() {
            out.line(&format!("\n{}\n{head}", part.noise));
            out.push(&format!("{} [", part.bullet));
            out.marker(story);
            let id = if ids { format!("US-{story:03}: ") } else { String::new() };
            out.line(&format!("] {id}{}", part.title));
            if part.nested {
                out.line("\t- [x] nested\n\t- Acceptance: it is there");
            }
        }
        out.finish(parts.len(), style.trailing)
    })
}

fn json(features: bool, bare: bool) -> impl Strategy<Value = Generated> {
    let space = prop_oneof![Just(""), Just(" "), Just("\n  "), Just("\t"), Just("\r\n")];
    let number = prop_oneof![Just("1"), Just("1.0"), Just("10e-1"), Just("1E0")];
    (parts(), style(), space, number, any::<bool>()).prop_map(move |(parts, style, space, number, first)| {
        let name = if features { "feature_list.json" } else { "prd.json" };
        let mut out = Builder::new(name, "false", "true", false);
        if style.bom {
            out.push("\u{feff}");
        }
        match (features, bare) {
            (true, true) => out.push("["),
            (true, false) => out.push(&format!("{{{space}\"x\":[{number}],\"features\":{space}[")),
            (false, _) => out.push(&format!("{{\"passes\":true,{space}\"userStories\"{space}:[")),
        }
        for (story, part) in parts.iter().enumerate() {
            if story > 0 {
                out.push(&format!("{space},{space}"));
            }
            let title = serde_json::Value::String(part.title.clone()).to_string();
            let rest = format!(
                "\"id\":\"{story}\",{space}\"{}\":{title},\"unknown\":{{\"passes\":[true,{{}},null]}},\"w\":-0.10e+5,\"e\":\"\\u00e9\\\"\",\"priority\":{number}",
                if features { "description" } else { "title" }
            );
            out.push("{");
            if !first {
                out.push(&format!("{rest},{space}"));
            }
            out.push(&format!("\"passes\"{space}:{space}"));
            out.marker(story);
            if first {
                out.push(&format!(",{space}{rest}"));
            }
            out.push(&format!("{space}}}"));
        }
        out.push(if bare { "]" } else { "]}" });
        out.push(if style.trailing { "\n" } else { "" });
        out.finish(parts.len(), true)
    })
}

fn any_plan() -> impl Strategy<Value = Generated> {
    prop_oneof![
        heading_tasks(),
        heading_boxes(),
        boxes("plan.md", "", true),
        boxes("IMPLEMENTATION_PLAN.md", "## Priority 2\n", false),
        boxes("list.md", "", false),
        json(false, false),
        json(true, false),
        json(true, true),
    ]
}

fn read(generated: &Generated, text: &str) -> Document {
    Document::parse(generated.name, text.as_bytes(), &DIALECT).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn statuses(document: &Document) -> Vec<bool> {
    document.plan().stories.iter().map(|story| story.status == Status::Done).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn marking_any_subset_changes_the_markers_alone(
        plan in any_plan(),
        start in prop::collection::vec(any::<bool>(), 6),
        marks in prop::collection::vec((0..6usize, any::<bool>()), 0..8),
    ) {
        let mut expected = start;
        let before = plan.text(&expected);
        let mut document = read(&plan, &before);
        prop_assert_eq!(document.plan().stories.len(), plan.stories, "{}", before);
        prop_assert_eq!(statuses(&document), &expected[..plan.stories]);
        let fingerprint = document.fingerprint();
        let mut undos = Vec::new();
        for (index, done) in marks {
            let index = index % plan.stories;
            undos.push(document.mark(index, if done { Status::Done } else { Status::Open }).unwrap());
            expected[index] = done;
        }
        let text = plan.text(&expected);
        prop_assert_eq!(document.text(), &text);
        prop_assert_eq!(statuses(&document), &expected[..plan.stories]);
        prop_assert_eq!(&document, &read(&plan, &text));
        prop_assert_eq!(document.fingerprint(), fingerprint);
        undos.into_iter().rev().for_each(|undo| document.undo(undo));
        prop_assert_eq!(document, read(&plan, &before));
    }

    #[test]
    fn a_mark_of_somebody_else_is_taken_back_to_the_bytes_before_it(
        plan in any_plan(),
        start in prop::collection::vec(any::<bool>(), 6),
        marks in prop::collection::vec(0..6usize, 1..4),
    ) {
        let before = plan.text(&start);
        let honest = read(&plan, &before);
        // As an agent leaves it: edited by another program, and parsed again.
        let mut ticked = start.clone();
        for index in marks {
            ticked[index % plan.stories] = true;
        }
        let mut document = read(&plan, &plan.text(&ticked));
        for index in (0..plan.stories).filter(|index| ticked[*index] && !start[*index]) {
            let undo = document.take_back(index, &honest.marks_of(index)).unwrap();
            let opened = document.clone();
            document.undo(undo);
            prop_assert!(document.plan().stories[index].status == Status::Done);
            document = opened;
        }
        prop_assert_eq!(&document, &honest);
    }

    #[test]
    fn damaged_plans_never_panic_and_marks_stay_inside_markers(
        plan in any_plan(),
        cut in any::<prop::sample::Index>(),
        insert in "[\\[\\] xX~#`<!>\\-*{}\",:\\\\\t\r\n0é]{0,6}",
        remove in 0..6usize,
    ) {
        let mut text = plan.text(&[false; 6]);
        let mut at = cut.index(text.len() + 1);
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        let mut end = (at + remove).min(text.len());
        while !text.is_char_boundary(end) {
            end += 1;
        }
        text.replace_range(at..end, &insert);
        if let Ok(mut document) = Document::parse(plan.name, text.as_bytes(), &DIALECT) {
            for index in 0..document.plan().stories.len() {
                let undo = document.mark(index, Status::Done).unwrap();
                prop_assert_eq!(document.plan().stories[index].status, Status::Done);
                prop_assert_eq!(&document, &Document::parse(plan.name, document.text().as_bytes(), &DIALECT).unwrap());
                document.undo(undo);
                prop_assert_eq!(document.text(), &text);
            }
        }
    }

    #[test]
    fn any_bytes_are_parsed_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200), json in any::<bool>()) {
        let name = if json { "x.json" } else { "x.md" };
        if let Err(error) = Document::parse(name, &bytes, &DIALECT) {
            prop_assert!(!error.problems.is_empty());
            prop_assert!(error.problems.iter().all(|problem| problem.line > 0 && problem.column > 0));
        }
    }

    #[test]
    fn any_text_is_parsed_or_refused(text in "([-*+#>] |[ \t]{1,5}|\\[[ xX~/-]\\] ?|US-00[12]:|`{1,3}|<!--|-->|\r?\n|Verification:|Priority 1|Depends on:|é|a)*") {
        for name in ["x.md", "IMPLEMENTATION_PLAN.md", "x.json"] {
            if let Ok(mut document) = Document::parse(name, text.as_bytes(), &DIALECT) {
                for index in 0..document.plan().stories.len() {
                    document.mark(index, Status::Done).unwrap();
                }
                prop_assert!(document.plan().stories.iter().all(|story| story.status == Status::Done));
                let again = Document::parse(name, document.text().as_bytes(), &DIALECT).unwrap();
                prop_assert_eq!(document, again);
            }
        }
    }
}
