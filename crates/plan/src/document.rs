//! A plan together with its text: parsed once, then marked in place without parsing it again.

use std::collections::HashMap;
use std::ops::Range;

use verdone_text::json;
use verdone_text::position::{Fault, Lines, quote};

use crate::StoryId;
use crate::fingerprint::fingerprint;
use crate::marker::{Draft, Marker, MarkerKind, Parsed};
use crate::{
    Dialect, Format, Plan, PlanError, Problem, Status, Story, checklist, feature_list, implementation_plan, markdown, natural,
    not_a_plan, plan_md, prd_json,
};

/// A plan's text, its stories and the positions of their markers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    name: String,
    text: String,
    plan: Plan,
    /// All markers in text order, which is also the order of their stories.
    markers: Vec<Marker>,
    /// For each story, the index of its first marker; plus the total number at the end.
    first: Vec<u32>,
}

/// How to undo one mark, byte for byte. Valid only for the document that returned it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undo {
    index: usize,
    status: Status,
    edits: Vec<Edit>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Edit {
    marker: usize,
    before: Marker,
    removed: String,
    /// Bytes written before the marker itself.
    lead: usize,
}

/// Why a story could not be marked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MarkError {
    #[error("the plan has {stories} stories, none at index {index}")]
    NoSuchStory { index: usize, stories: usize },
}

impl Document {
    /// Parses a plan. The file's name helps to detect the format.
    pub fn parse(name: &str, bytes: &[u8], dialect: &Dialect) -> Result<Self, PlanError> {
        Self::from_bytes(name, bytes.to_vec(), dialect)
    }

    /// The same for owned bytes, so that a large plan is not copied.
    pub fn from_bytes(name: &str, bytes: Vec<u8>, dialect: &Dialect) -> Result<Self, PlanError> {
        let refuse = |problems| PlanError { name: name.to_owned(), problems };
        if u32::try_from(bytes.len()).is_err() {
            return Err(refuse(vec![too_large()]));
        }
        let text = match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => return Err(refuse(vec![not_utf8(error.as_bytes(), error.utf8_error().valid_up_to())])),
        };
        if let Some(kind) = not_a_plan::kind_of(name) {
            return Err(refuse(vec![not_a_plan::problem(kind)]));
        }
        let lines = Lines::new(&text);
        let parsed = if is_json(name, &text) { parse_json(&text) } else { Ok(parse_markdown(name, &text)) };
        let mut parsed = parsed.map_err(|fault| refuse(vec![lines.problem(&fault)]))?;
        read_proofs(&mut parsed, dialect);
        let by_id = by_id(&mut parsed);
        resolve(&mut parsed, &by_id);
        find_cycles(&mut parsed, &by_id);
        if parsed.drafts.is_empty() && parsed.faults.is_empty() {
            parsed.faults.push(no_story(parsed.format));
        }
        if !parsed.faults.is_empty() {
            return Err(refuse(lines.problems(parsed.faults)));
        }
        let (plan, markers, first) = assemble(parsed, by_id, &lines);
        let mut document = Self { name: name.to_owned(), text, plan, markers, first };
        (0..document.plan.stories.len()).for_each(|index| document.settle_status(index));
        Ok(document)
    }

    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The whole file, including a byte order mark.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The file's name, as given.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn format(&self) -> Format {
        self.plan.format
    }

    /// The bytes that record the status of stories, in text order.
    pub fn marks(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        self.markers.iter().map(Marker::range).filter(|range| !range.is_empty())
    }

    /// Rewrites only the bytes that record a story's status. Does nothing if the format cannot express the status.
    pub fn mark(&mut self, index: usize, status: Status) -> Result<Undo, MarkError> {
        let stories = self.plan.stories.len();
        let Some(story) = self.plan.stories.get(index) else { return Err(MarkError::NoSuchStory { index, stories }) };
        let mut undo = Undo { index, status: story.status, edits: Vec::new() };
        for number in self.owned(index) {
            let marker = &self.markers[number];
            let Some(new) = marker.text_for(status, self.plan.format) else { continue };
            if !matches!(marker.kind, MarkerKind::Missing { .. }) && marker.read(&self.text) == status {
                continue;
            }
            undo.edits.push(self.write(index, number, new));
        }
        self.settle_status(index);
        Ok(undo)
    }

    /// The texts of a story's markers, in text order; empty if they all have the default text for an open story.
    pub fn marks_of(&self, index: usize) -> Vec<String> {
        let markers = &self.markers[self.owned(index)];
        let is_plain = |marker: &Marker| {
            let plain = marker.text_for(Status::Open, self.plan.format);
            marker.range().is_empty() || plain == Some(&self.text[marker.range()])
        };
        if markers.iter().all(is_plain) {
            return Vec::new();
        }
        markers.iter().map(|marker| self.text[marker.range()].to_owned()).collect()
    }

    /// Reopens a story that was marked elsewhere: its markers get their earlier texts, as returned by [`Self::marks_of`]. If those no
    /// longer fit, the markers are set to open.
    pub fn take_back(&mut self, index: usize, before: &[String]) -> Result<Undo, MarkError> {
        let mut undo = self.mark(index, Status::Open)?;
        let owned = self.owned(index);
        if before.len() != owned.len() {
            return Ok(undo);
        }
        for (number, old) in owned.zip(before) {
            if self.markers[number].accepts(old) && self.text[self.markers[number].range()] != **old {
                undo.edits.push(self.write(index, number, old));
            }
        }
        self.settle_status(index);
        Ok(undo)
    }

    /// Undoes a mark, restoring the exact bytes.
    pub fn undo(&mut self, undo: Undo) {
        for edit in undo.edits.into_iter().rev() {
            let now = self.markers[edit.marker].range();
            let start = now.start - edit.lead;
            self.splice(start..now.end, &edit.removed, undo.index, edit.marker);
            self.markers[edit.marker] = Marker { start: start as u32, ..edit.before };
            self.mirror(undo.index, edit.marker);
        }
        self.plan.stories[undo.index].status = undo.status;
    }

    /// A digest of what the stories ask for: ids, titles, bodies, criteria, dependencies and checks. Independent of ticks.
    pub fn fingerprint(&self) -> String {
        fingerprint(&self.plan.stories)
    }

    /// Oddities in file order: the parser's warnings, and stories without checks of their own.
    pub fn lint(&self, dialect: &Dialect) -> Vec<Problem> {
        let mut problems = self.plan.warnings.clone();
        let unchecked = self.plan.stories.iter().filter(|story| story.checks.is_empty() && story.maybe_checks.is_empty());
        problems.extend(unchecked.map(|story| Problem {
            line: story.line,
            column: 1,
            message: format!("{} has no check", quote(story.id.as_str())),
            hint: Some(dialect.no_check_hint.to_owned()),
        }));
        problems.sort_by_key(|problem| (problem.line, problem.column));
        problems
    }

    /// Derives a story's status from its markers: done if all are, in progress if at least one is.
    fn settle_status(&mut self, index: usize) {
        let mut statuses = self.markers[self.owned(index)].iter().map(|marker| marker.read(&self.text));
        let first = statuses.next().unwrap_or(Status::Open);
        let status = if statuses.all(|status| status == first) { first } else { Status::InProgress };
        self.plan.stories[index].status = status;
        self.owned(index).for_each(|number| self.mirror(index, number));
    }

    /// Indexes of the markers of a story.
    fn owned(&self, index: usize) -> Range<usize> {
        self.first[index] as usize..self.first[index + 1] as usize
    }

    /// Copies a marker's state into the story's body and criteria.
    fn mirror(&mut self, index: usize, number: usize) {
        let marker = &self.markers[number];
        let status = marker.read(&self.text);
        let story = &mut self.plan.stories[index];
        if let Some(at) = marker.in_body {
            let now = &self.text[marker.range()];
            let place = at as usize..(at + marker.len) as usize;
            if story.body.get(place.clone()).is_some_and(|old| old != now) {
                story.body.replace_range(place, now);
            }
        }
        if let Some(criterion) = marker.criterion.and_then(|at| story.criteria.get_mut(at as usize)) {
            criterion.ticked = Some(status == Status::Done);
        }
    }

    fn write(&mut self, index: usize, number: usize, new: &str) -> Edit {
        let before = self.markers[number].clone();
        let lead = match &before.kind {
            MarkerKind::Missing { lead } => (**lead).clone(),
            MarkerKind::Box | MarkerKind::Flag | MarkerKind::Word | MarkerKind::Suffix => String::new(),
        };
        let range = before.range();
        let removed = self.text[range.clone()].to_owned();
        self.splice(range, &format!("{lead}{new}"), index, number);
        let now = &mut self.markers[number];
        now.start = before.start + lead.len() as u32;
        now.len = new.len() as u32;
        if !lead.is_empty() {
            now.kind = MarkerKind::Flag;
        }
        Edit { marker: number, before, removed, lead: lead.len() }
    }

    /// Replaces a range of a story and shifts the markers and lines that follow in the text.
    fn splice(&mut self, range: Range<usize>, new: &str, index: usize, number: usize) {
        let (old_len, new_len) = (range.len(), new.len());
        let (old_lines, new_lines) = (count_lines(&self.text[range.clone()]), count_lines(new));
        if old_lines != new_lines {
            let here = count_lines(&self.text[..range.start]) + 1;
            let stories = self.plan.stories[index + 1..].iter_mut().map(|story| &mut story.line);
            let warnings = self.plan.warnings.iter_mut().map(|warning| &mut warning.line).filter(|line| **line > here);
            stories.chain(warnings).for_each(|line| *line = *line + new_lines - old_lines);
        }
        self.text.replace_range(range, new);
        if old_len != new_len {
            for later in &mut self.markers[number + 1..] {
                later.start = later.start + new_len as u32 - old_len as u32;
            }
        }
    }
}

/// Builds the plan from the drafts, with all markers and the index of each story's first marker.
fn assemble(parsed: Parsed, by_id: Vec<u32>, lines: &Lines<'_>) -> (Plan, Vec<Marker>, Vec<u32>) {
    let mut markers = Vec::with_capacity(parsed.drafts.len());
    let mut first = vec![0];
    // Move the drafts into stories, so that a large plan is never in memory twice.
    let stories = parsed.drafts.into_iter().map(|draft| {
        markers.extend(draft.markers);
        first.push(markers.len() as u32);
        Story { line: lines.line(draft.at), ..draft.story }
    });
    let stories = stories.collect();
    debug_assert!(markers.is_sorted_by_key(|marker: &Marker| marker.start), "stories come in the order of the text");
    let plan = Plan {
        format: parsed.format,
        title: parsed.title,
        branch: parsed.branch,
        context: parsed.context,
        stories,
        warnings: lines.problems(parsed.warnings),
        by_id,
    };
    (plan, markers, first)
}

fn is_json(name: &str, text: &str) -> bool {
    let extension = name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    match extension.as_deref() {
        Some("json") => true,
        Some("md" | "markdown" | "txt") => false,
        Some(_) | None => text.trim_start_matches('\u{feff}').trim_start().starts_with(['{', '[']),
    }
}

fn parse_json(text: &str) -> Result<Parsed, Fault> {
    let root = json::read(text)?;
    if feature_list::recognises(&root) { Ok(feature_list::parse(text, &root)) } else { prd_json::parse(text, &root) }
}

fn parse_markdown(name: &str, text: &str) -> Parsed {
    let scan = markdown::scan(text);
    if plan_md::recognises(&scan) {
        plan_md::parse(&scan)
    } else if implementation_plan::recognises(name, &scan) {
        implementation_plan::parse(&scan)
    } else if natural::recognises(name, &scan) {
        natural::parse(&scan)
    } else {
        checklist::parse(&scan)
    }
}

fn not_utf8(bytes: &[u8], at: usize) -> Problem {
    let valid = String::from_utf8_lossy(&bytes[..at]);
    let (line, column) = Lines::new(&valid).place(at);
    let hint = if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        "it looks like UTF-16: save it as UTF-8"
    } else {
        "save the file as UTF-8"
    };
    Problem { line, column, message: "this is not UTF-8".to_owned(), hint: Some(hint.to_owned()) }
}

fn too_large() -> Problem {
    Problem { line: 1, column: 1, message: "this file is too large for a plan".to_owned(), hint: None }
}

fn no_story(format: Format) -> Fault {
    let hint = match format {
        Format::PrdJson => "`userStories` needs at least one story with an `id`, a `title` and `passes`",
        Format::FeatureList => "the list needs at least one feature with a `description` and `passes`",
        Format::PlanMd | Format::PrdMd | Format::ImplementationPlan | Format::Checklist => {
            "a story is `## Title` with `- [ ]` boxes below it, or one box: `- [ ] Title`, `- [ ] US-001: Title`; fenced code and comments do not count"
        }
    };
    Fault::new(0, "there is no story in this plan").hint(hint)
}

/// Reads what the stories say about their proofs. The last word that counts wins.
fn read_proofs(parsed: &mut Parsed, dialect: &Dialect) {
    for draft in &mut parsed.drafts {
        for (at, text) in &draft.proofs {
            match (dialect.read_proof)(text) {
                Ok(word) => draft.story.proof = Some(word),
                Err(why) => parsed.warnings.push(Fault::new(*at, why)),
            }
        }
    }
}

/// The drafts ordered by id. A duplicate id is a fault.
fn by_id(parsed: &mut Parsed) -> Vec<u32> {
    let drafts = &parsed.drafts;
    let mut by_id: Vec<u32> = (0..drafts.len() as u32).collect();
    // The sort is stable: of two drafts with the same id, the first comes first.
    by_id.sort_by(|one, two| drafts[*one as usize].story.id.cmp(&drafts[*two as usize].story.id));
    let same = by_id.chunk_by(|one, two| drafts[*one as usize].story.id == drafts[*two as usize].story.id);
    let twice = same.flat_map(|same| same[1..].iter().map(|second| (&drafts[*second as usize], &drafts[same[0] as usize])));
    let faults = twice.map(|(draft, first)| {
        let fault = Fault::new(draft.at, format!("the id {} is used twice", quote(draft.story.id.as_str())));
        fault.hint(format!("the first is {}; give each story its own id", quote(&first.story.title)))
    });
    let faults: Vec<Fault> = faults.collect();
    parsed.faults.extend(faults);
    by_id
}

/// The first draft with an id.
fn find(drafts: &[Draft], by_id: &[u32], id: &str) -> Option<usize> {
    let at = by_id.partition_point(|index| drafts[*index as usize].story.id.as_str() < id);
    by_id.get(at).map(|index| *index as usize).filter(|index| drafts[*index].story.id.as_str() == id)
}

/// Resolves dependencies as written in the plan: by id, else by a unique title.
fn resolve(parsed: &mut Parsed, by_id: &[u32]) {
    if parsed.drafts.iter().all(|draft| draft.dependencies.is_empty()) {
        return;
    }
    let fold = |text: &str| text.trim().to_lowercase();
    let mut named: HashMap<String, Option<usize>> = HashMap::new();
    for (index, draft) in parsed.drafts.iter().enumerate() {
        for name in [fold(&draft.story.title), fold(draft.story.id.as_str())] {
            named
                .entry(name)
                .and_modify(|known| {
                    if *known != Some(index) {
                        *known = None;
                    }
                })
                .or_insert(Some(index));
        }
    }
    let mut found: Vec<Vec<StoryId>> = Vec::with_capacity(parsed.drafts.len());
    for draft in &parsed.drafts {
        let mut ids = Vec::new();
        for (at, name) in &draft.dependencies {
            let place = find(&parsed.drafts, by_id, name).or_else(|| named.get(&fold(name)).copied().flatten());
            match place {
                Some(place) => ids.push(parsed.drafts[place].story.id.clone()),
                None => parsed.faults.push(
                    Fault::new(
                        *at,
                        format!("{} depends on {}, which is not in this plan", quote(draft.story.id.as_str()), quote(name)),
                    )
                    .hint("name an id or the exact title of another story, or write `none`"),
                ),
            }
        }
        ids.dedup();
        found.push(ids);
    }
    for (draft, ids) in parsed.drafts.iter_mut().zip(found) {
        draft.story.depends_on = ids.into();
    }
}

/// Repeatedly removes stories without remaining dependencies. Those left over are part of a cycle or depend on one.
fn find_cycles(parsed: &mut Parsed, by_id: &[u32]) {
    let drafts = &parsed.drafts;
    if drafts.iter().all(|draft| draft.story.depends_on.is_empty()) {
        return;
    }
    let target = |id: &StoryId| find(drafts, by_id, id.as_str());
    let mut waiting: Vec<usize> = drafts.iter().map(|draft| draft.story.depends_on.len()).collect();
    let mut dependents: Vec<Vec<usize>> = vec![Vec::new(); drafts.len()];
    for (index, draft) in drafts.iter().enumerate() {
        draft.story.depends_on.iter().filter_map(target).for_each(|on| dependents[on].push(index));
    }
    let mut free: Vec<usize> = (0..drafts.len()).filter(|index| waiting[*index] == 0).collect();
    while let Some(index) = free.pop() {
        for dependent in &dependents[index] {
            waiting[*dependent] -= 1;
            if waiting[*dependent] == 0 {
                free.push(*dependent);
            }
        }
    }
    let mut seen = vec![false; drafts.len()];
    let mut faults = Vec::new();
    for start in 0..drafts.len() {
        if waiting[start] > 0
            && !seen[start]
            && let Some(cycle) = walk_cycle(drafts, &waiting, &mut seen, start, &target)
        {
            faults.push(cycle_fault(drafts, &cycle));
        }
    }
    parsed.faults.extend(faults);
}

/// Follows unresolved dependencies until one repeats. `None` if an earlier walk already went this way.
fn walk_cycle(
    drafts: &[Draft],
    waiting: &[usize],
    seen: &mut [bool],
    start: usize,
    target: &impl Fn(&StoryId) -> Option<usize>,
) -> Option<Vec<usize>> {
    let mut path: Vec<usize> = Vec::new();
    let mut on_path: HashMap<usize, usize> = HashMap::new();
    let mut at = start;
    loop {
        if let Some(begin) = on_path.get(&at) {
            return Some(path.split_off(*begin));
        }
        if seen[at] {
            return None;
        }
        seen[at] = true;
        on_path.insert(at, path.len());
        path.push(at);
        at = drafts[at].story.depends_on.iter().filter_map(target).find(|on| waiting[*on] > 0)?;
    }
}

fn cycle_fault(drafts: &[Draft], cycle: &[usize]) -> Fault {
    const SHOWN: usize = 8;
    let id = |index: usize| drafts[index].story.id.as_str().chars().take(60).collect::<String>();
    let mut names: Vec<String> = cycle.iter().take(SHOWN).map(|index| id(*index)).collect();
    if cycle.len() > SHOWN {
        names.push("…".to_owned());
    }
    names.push(id(cycle[0]));
    let first = cycle.iter().map(|index| drafts[*index].at).min().unwrap_or(0);
    Fault::new(first, format!("stories depend on each other: {}", names.join(" → "))).hint("remove one of these dependencies")
}

fn count_lines(text: &str) -> u32 {
    text.bytes().filter(|byte| *byte == b'\n').count() as u32
}
