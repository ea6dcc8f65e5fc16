//! The bytes of a plan that record the status of a story, and the drafts that a parser returns.

use std::ops::Range;

use verdone_text::position::Fault;

use crate::{Format, Status, Story, ThinVec};

/// One place in the text that records whether a story is done. Kept small, because a plan may have very many.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Marker {
    pub(crate) start: u32,
    pub(crate) len: u32,
    pub(crate) kind: MarkerKind,
    /// The position of the same byte in the story's body.
    pub(crate) in_body: Option<u32>,
    /// The criterion to which this box belongs.
    pub(crate) criterion: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum MarkerKind {
    /// The character between the brackets of `[ ]`.
    Box,
    /// `true` or `false`.
    Flag,
    /// A JSON string such as `"in_progress"`.
    Word,
    /// A check mark at the end of a heading, or the place for one.
    Suffix,
    /// There is no `passes` yet. `lead` is what has to be written before `true`.
    #[expect(clippy::box_collection, reason = "rare, and every marker is as large as the largest")]
    Missing { lead: Box<String> },
}

impl Marker {
    pub(crate) fn new(kind: MarkerKind, start: usize, len: usize) -> Self {
        Self { start: start as u32, len: len as u32, kind, in_body: None, criterion: None }
    }

    pub(crate) fn range(&self) -> Range<usize> {
        self.start as usize..(self.start + self.len) as usize
    }

    /// The text for a status; `None` if the format cannot express it.
    pub(crate) fn text_for(&self, status: Status, format: Format) -> Option<&'static str> {
        match (&self.kind, status) {
            (MarkerKind::Box, Status::Open) => Some(" "),
            (MarkerKind::Box, Status::Done) => Some("x"),
            (MarkerKind::Box, Status::InProgress) => (format == Format::ImplementationPlan).then_some("~"),
            (MarkerKind::Flag, Status::Open) => Some("false"),
            (MarkerKind::Flag | MarkerKind::Missing { .. }, Status::Done) => Some("true"),
            (MarkerKind::Word, Status::Open) => Some("\"open\""),
            (MarkerKind::Word, Status::InProgress) => Some("\"in_progress\""),
            (MarkerKind::Word, Status::Done) => Some("\"done\""),
            (MarkerKind::Suffix, Status::Open) => Some(""),
            (MarkerKind::Suffix, Status::Done) => Some(CHECK_MARK),
            (MarkerKind::Flag | MarkerKind::Suffix | MarkerKind::Missing { .. }, Status::InProgress)
            | (MarkerKind::Missing { .. }, Status::Open) => None,
        }
    }

    /// Whether this text is valid for the marker.
    pub(crate) fn accepts(&self, text: &str) -> bool {
        match &self.kind {
            MarkerKind::Box => text.len() == 1 && box_status(text.as_bytes()[0]).is_some(),
            MarkerKind::Flag => matches!(text, "true" | "false"),
            MarkerKind::Word => {
                text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).is_some_and(|word| word_status(word).is_some())
            }
            MarkerKind::Suffix => text.is_empty(),
            MarkerKind::Missing { .. } => false,
        }
    }

    /// The marker's current status.
    pub(crate) fn read(&self, text: &str) -> Status {
        let bytes = &text[self.range()];
        match &self.kind {
            MarkerKind::Box => box_status(bytes.as_bytes()[0]).unwrap_or(Status::Open),
            MarkerKind::Flag if bytes == "true" => Status::Done,
            MarkerKind::Suffix if !bytes.is_empty() => Status::Done,
            MarkerKind::Word => word_status(bytes.trim_matches('"')).unwrap_or(Status::Open),
            MarkerKind::Flag | MarkerKind::Suffix | MarkerKind::Missing { .. } => Status::Open,
        }
    }
}

/// Appended to the heading of a story that is done.
const CHECK_MARK: &str = " ✅";

/// The meaning of the character in a box.
pub(crate) fn box_status(byte: u8) -> Option<Status> {
    match byte {
        b' ' | b'\t' => Some(Status::Open),
        b'x' | b'X' => Some(Status::Done),
        b'~' | b'/' => Some(Status::InProgress),
        _ => None,
    }
}

/// The meaning of a `status` word.
pub(crate) fn word_status(word: &str) -> Option<Status> {
    match word {
        "open" | "todo" | "pending" => Some(Status::Open),
        "in_progress" | "in-progress" => Some(Status::InProgress),
        "done" | "completed" | "complete" => Some(Status::Done),
        _ => None,
    }
}

/// A story as found by a format's parser.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) story: Story,
    /// Where it begins.
    pub(crate) at: usize,
    pub(crate) markers: Vec<Marker>,
    /// Dependencies as written, with their positions. Resolved into `story.depends_on` later.
    pub(crate) dependencies: ThinVec<(usize, String)>,
    /// What it says about its proof, with positions. Read into `story.proof` later.
    pub(crate) proofs: ThinVec<(usize, String)>,
}

/// The result of a format's parser.
#[derive(Debug)]
pub(crate) struct Parsed {
    pub(crate) format: Format,
    pub(crate) title: Option<String>,
    pub(crate) branch: Option<String>,
    pub(crate) context: String,
    pub(crate) drafts: Vec<Draft>,
    pub(crate) faults: Vec<Fault>,
    pub(crate) warnings: Vec<Fault>,
}

impl Parsed {
    pub(crate) fn new(format: Format) -> Self {
        Self {
            format,
            title: None,
            branch: None,
            context: String::new(),
            drafts: Vec::new(),
            faults: Vec::new(),
            warnings: Vec::new(),
        }
    }
}

/// The generated id of a story that has none in its plan.
pub(crate) fn made_id(number: usize) -> String {
    format!("item-{number}")
}
