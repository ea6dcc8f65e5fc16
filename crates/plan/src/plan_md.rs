//! Stories that are headings: `### US-001: Title` with task boxes below (plan.md), `### [ ] US-001: Title` (prd.md).
//!
//! If the heading has a box, that is the marker. Otherwise the boxes at the story's own level are: it is done when all are ticked.

use std::collections::HashSet;
use std::ops::Range;

use verdone_text::position::{Fault, quote};

use crate::StoryId;
use crate::details::Details;
use crate::label::{has_id, is_story_id, plain, split_id};
use crate::markdown::{Block, BlockKind, Scan};
use crate::marker::{Draft, Marker, MarkerKind, Parsed, made_id};
use crate::{Format, Status, Story, ThinVec, checklist};

pub(crate) fn recognises(scan: &Scan<'_>) -> bool {
    scan.blocks.iter().any(|block| is_story(scan, block))
}

pub(crate) fn parse(scan: &Scan<'_>) -> Parsed {
    let sections = without_groups(scan, sections(scan, is_story));
    let boxed = sections.iter().any(|section| scan.blocks[section.heading].mark.is_some());
    let mut parsed = Parsed::new(if boxed { Format::PrdMd } else { Format::PlanMd });
    parsed.title = document_title(scan);
    for (index, section) in sections.iter().enumerate() {
        let heading = &scan.blocks[section.heading];
        let (id, title) = match split_id(scan.content(heading)) {
            Some((id, title)) => (Some(id), title),
            None => (None, plain(scan.content(heading))),
        };
        let mut draft = section_draft(scan, section, id, title, index + 1, &mut parsed.warnings);
        if let Some(mark) = heading.mark {
            draft.markers = vec![Marker::new(MarkerKind::Box, mark.at, 1)];
        } else if draft.markers.is_empty() {
            let message = format!("{} has no box to tick", quote(draft.story.id.as_str()));
            let hint = format!("write `### [ ] {}: …`, or add a `- [ ]` task below the heading", draft.story.id);
            parsed.faults.push(Fault::new(draft.at, message).hint(hint));
        }
        parsed.drafts.push(draft);
    }
    add_lines(scan, &sections, &mut parsed);
    warn_about_headings(scan, &sections, &mut parsed);
    let spans = parsed.drafts.iter().map(|draft| draft.at);
    let mut covered: Vec<Range<usize>> = sections.iter().map(|section| section.span.clone()).collect();
    covered.extend(spans.skip(sections.len()).filter_map(|at| item_span(scan, at)));
    covered.sort_by_key(|span| span.start);
    parsed.context = outside(scan.text, &covered);
    parsed.drafts.sort_by_key(|draft| draft.at);
    parsed
}

/// A heading and everything under it.
#[derive(Debug)]
pub(crate) struct Section {
    /// The index of its heading block.
    pub(crate) heading: usize,
    pub(crate) span: Range<usize>,
}

/// The sections of story headings. Each ends at the next story, or at a heading of the same or a higher level.
pub(crate) fn sections(scan: &Scan<'_>, is_story: impl Fn(&Scan<'_>, &Block) -> bool) -> Vec<Section> {
    let mut found: Vec<Section> = Vec::new();
    let mut open: Option<u8> = None;
    for (index, block) in scan.blocks.iter().enumerate() {
        let BlockKind::Heading { level } = block.kind else { continue };
        let story = is_story(scan, block);
        if open.is_some_and(|above| story || level <= above)
            && let Some(last) = found.last_mut()
        {
            last.span.end = block.span.start;
            open = None;
        }
        if story {
            found.push(Section { heading: index, span: block.span.start..scan.text.len() });
            open = Some(level);
        }
    }
    found
}

/// Removes headings without boxes that only group deeper stories (`## M1: First release`).
fn without_groups(scan: &Scan<'_>, sections: Vec<Section>) -> Vec<Section> {
    let level = |section: &Section| match scan.blocks[section.heading].kind {
        BlockKind::Heading { level } => level,
        BlockKind::Item | BlockKind::Paragraph | BlockKind::Code { .. } => 0,
    };
    let starts: Vec<(usize, u8)> = sections.iter().map(|section| (section.span.start, level(section))).collect();
    let is_group = |index: usize, section: &Section| {
        let next = starts.get(index + 1);
        next.is_some_and(|(start, deeper)| *start == section.span.end && *deeper > level(section))
            && scan.blocks[scan.within(&section.span)].iter().all(|block| block.mark.is_none())
    };
    sections.into_iter().enumerate().filter(|(index, section)| !is_group(*index, section)).map(|(_, section)| section).collect()
}

/// Builds the story of a section, with its task boxes as markers.
pub(crate) fn section_draft(
    scan: &Scan<'_>,
    section: &Section,
    id: Option<String>,
    title: String,
    number: usize,
    warnings: &mut Vec<Fault>,
) -> Draft {
    let heading = &scan.blocks[section.heading];
    let rest = heading.span.end.min(section.span.end)..section.span.end;
    let mut details = Details::read(scan, section.heading + 1..scan.within(&section.span).end, 0);
    warnings.append(&mut details.warnings);
    let raw = &scan.text[rest.clone()];
    let body_start = rest.start + raw.len() - raw.trim_start_matches(['\n', '\r']).len();
    let body = scan.text[body_start..rest.end].trim_end();
    let markers = details.tasks.iter().map(|(at, criterion)| Marker {
        in_body: Some((at - body_start) as u32),
        criterion: criterion.map(|criterion| criterion as u32),
        ..Marker::new(MarkerKind::Box, *at, 1)
    });
    let explicit_id = id.is_some();
    let id = id.unwrap_or_else(|| made_id(number));
    Draft {
        story: Story {
            title: if title.is_empty() { id.clone() } else { title },
            id: StoryId(id),
            body: body.to_owned(),
            status: Status::Open,
            criteria: details.criteria.into(),
            depends_on: ThinVec::EMPTY,
            priority: details.priority,
            checks: details.checks.into(),
            maybe_checks: details.maybe_checks.into(),
            scope: details.scope.into(),
            proof: None,
            complexity: details.complexity,
            kind: details.kind,
            line: 0,
            explicit_id,
        },
        at: heading.span.start,
        markers: markers.collect(),
        dependencies: details.dependencies.into(),
        proofs: details.proofs.into(),
    }
}

/// The text outside all stories.
pub(crate) fn outside(text: &str, covered: &[Range<usize>]) -> String {
    let mut parts: Vec<&str> = Vec::new();
    let mut from = 0;
    for span in covered {
        parts.push(text.get(from..span.start).unwrap_or_default());
        from = span.end.max(from);
    }
    parts.push(text.get(from..).unwrap_or_default());
    let parts = parts.iter().map(|part| part.trim_matches(|c: char| c == '\u{feff}' || c.is_whitespace()));
    parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n")
}

/// The first level-1 heading.
pub(crate) fn document_title(scan: &Scan<'_>) -> Option<String> {
    let first = scan.blocks.iter().find(|block| block.kind == BlockKind::Heading { level: 1 })?;
    Some(plain(scan.content(first)))
}

/// A level-1 heading is the document's title, even if it looks like an id.
fn is_story(scan: &Scan<'_>, block: &Block) -> bool {
    match block.kind {
        BlockKind::Heading { level } => block.mark.is_some() || (level > 1 && has_id(scan.content(block))),
        BlockKind::Item | BlockKind::Paragraph | BlockKind::Code { .. } => false,
    }
}

/// Boxes outside the sections: those with an id become stories, the others only get a warning.
fn add_lines(scan: &Scan<'_>, sections: &[Section], parsed: &mut Parsed) {
    let known: HashSet<String> = parsed.drafts.iter().map(|draft| draft.story.id.0.clone()).collect();
    let mut stray: Option<(usize, usize)> = None;
    for index in checklist::top_boxes(scan) {
        let block = &scan.blocks[index];
        let next = sections.partition_point(|section| section.span.start <= block.span.start);
        if next > 0 && block.span.start < sections[next - 1].span.end {
            continue;
        }
        match split_id(scan.first_line(block).0) {
            Some((id, _)) if known.contains(&id) => {
                let message = format!("{} has its own heading: this box is ignored", quote(&id));
                parsed.warnings.push(Fault::new(block.span.start, message));
            }
            Some(_) => {
                let number = parsed.drafts.len() + 1;
                let draft = checklist::item_draft(scan, index, number, &mut parsed.warnings);
                parsed.drafts.push(draft);
            }
            None => stray = Some(stray.map_or((block.span.start, 1), |(at, count)| (at, count + 1))),
        }
    }
    if let Some((at, count)) = stray {
        let message = match count {
            1 => "this box is outside the stories and is ignored".to_owned(),
            _ => format!("{count} boxes outside the stories are ignored; this is the first"),
        };
        parsed.warnings.push(Fault::new(at, message).hint("give it an id (`- [ ] US-009: Title`) to make it a story"));
    }
}

/// Warns about headings that look like stories but have no colon after their id.
fn warn_about_headings(scan: &Scan<'_>, sections: &[Section], parsed: &mut Parsed) {
    let stories: HashSet<usize> = sections.iter().map(|section| section.heading).collect();
    for (index, block) in scan.blocks.iter().enumerate() {
        let BlockKind::Heading { level } = block.kind else { continue };
        let (first, rest) = scan.content(block).trim().split_once(' ').unwrap_or_default();
        if level > 1 && !stories.contains(&index) && is_story_id(first) {
            let message = format!("this heading is not a story: {} has no colon after it", quote(first));
            let hint = format!("write `{} {first}: {}`", "#".repeat(level.into()), plain(rest));
            parsed.warnings.push(Fault::new(block.span.start, message).hint(hint));
        }
    }
}

fn item_span(scan: &Scan<'_>, at: usize) -> Option<Range<usize>> {
    let index = scan.blocks.binary_search_by_key(&at, |block| block.span.start).ok()?;
    Some(scan.blocks[index].span.clone())
}
