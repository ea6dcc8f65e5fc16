//! `IMPLEMENTATION_PLAN.md`: `## Priority N` sections of boxes, with `[~]` for in progress; or `### 1.1 Name` headings, with ✅ for done.

use std::ops::Range;

use crate::Format;
use crate::checklist::{item_draft, top_boxes};
use crate::label::plain;
use crate::markdown::{Block, BlockKind, Scan};
use crate::marker::{Draft, Marker, MarkerKind, Parsed};
use crate::plan_md::{document_title, outside, section_draft, sections};

pub(crate) fn recognises(name: &str, scan: &Scan<'_>) -> bool {
    let file = name.rsplit(['/', '\\']).next().unwrap_or(name);
    file.eq_ignore_ascii_case("implementation_plan.md")
        || scan
            .blocks
            .iter()
            .any(|block| matches!(block.kind, BlockKind::Heading { .. }) && priority(scan.content(block)).is_some())
}

pub(crate) fn parse(scan: &Scan<'_>) -> Parsed {
    let mut parsed = Parsed::new(Format::ImplementationPlan);
    parsed.title = document_title(scan);
    let boxes = top_boxes(scan);
    let covered = if boxes.is_empty() { headings(scan, &mut parsed) } else { items(scan, &boxes, &mut parsed) };
    parsed.context = outside(scan.text, &covered);
    add_priorities(scan, &mut parsed.drafts);
    parsed
}

fn items(scan: &Scan<'_>, boxes: &[usize], parsed: &mut Parsed) -> Vec<Range<usize>> {
    for (position, index) in boxes.iter().enumerate() {
        let mut draft = item_draft(scan, *index, position + 1, &mut parsed.warnings);
        move_refs(&mut draft);
        parsed.drafts.push(draft);
    }
    boxes.iter().map(|index| scan.blocks[*index].span.clone()).collect()
}

fn headings(scan: &Scan<'_>, parsed: &mut Parsed) -> Vec<Range<usize>> {
    let sections = sections(scan, is_numbered);
    for (position, section) in sections.iter().enumerate() {
        let heading = &scan.blocks[section.heading];
        let content = scan.content(heading);
        let name = content.trim_end_matches(|c: char| c.is_whitespace() || c == '✅' || c == '\u{fe0f}');
        let ticked = content[name.len()..].contains('✅');
        let (number, title) = split_number(name).unwrap_or(("", name));
        let mut draft = section_draft(scan, section, Some(number.to_owned()), plain(title), position + 1, &mut parsed.warnings);
        let (start, len) =
            if ticked { (heading.content.start + name.len(), content.len() - name.len()) } else { (heading.content.end, 0) };
        draft.markers = vec![Marker::new(MarkerKind::Suffix, start, len)];
        parsed.drafts.push(draft);
    }
    sections.into_iter().map(|section| section.span).collect()
}

/// Moves `(refs: specs/x.md §4)` to the body, because it does not belong in commit subjects.
fn move_refs(draft: &mut Draft) {
    let title = &draft.story.title;
    if let Some(start) = title.find("(refs:").filter(|_| title.ends_with(')')) {
        let refs = title[start + 6..title.len() - 1].trim().to_owned();
        let shorter = title[..start].trim_end().to_owned();
        if !shorter.is_empty() {
            draft.story.title = shorter;
            draft.story.body.insert_str(0, &format!("Refs: {refs}\n"));
        }
    }
}

/// A story's own priority takes precedence over that of its section.
fn add_priorities(scan: &Scan<'_>, drafts: &mut [Draft]) {
    let mut current: Option<(u32, u8)> = None;
    let mut next = 0;
    for block in &scan.blocks {
        while drafts.get(next).is_some_and(|draft| draft.at <= block.span.start) {
            let story = &mut drafts[next].story;
            story.priority = story.priority.or(current.map(|(priority, _)| priority));
            next += 1;
        }
        if let BlockKind::Heading { level } = block.kind {
            match priority(scan.content(block)) {
                Some(number) => current = Some((number, level)),
                None if current.is_some_and(|(_, above)| level <= above) => current = None,
                None => {}
            }
        }
    }
}

/// The number of a `Priority N` heading.
fn priority(heading: &str) -> Option<u32> {
    let (word, rest) = heading.trim().split_at_checked(8)?;
    let digits: String = rest.trim_start().chars().take_while(char::is_ascii_digit).collect();
    (word.eq_ignore_ascii_case("priority") && rest.starts_with([' ', '\t'])).then(|| digits.parse().ok())?
}

fn is_numbered(scan: &Scan<'_>, block: &Block) -> bool {
    match block.kind {
        BlockKind::Heading { level } => level > 1 && split_number(scan.content(block)).is_some(),
        BlockKind::Item | BlockKind::Paragraph | BlockKind::Code { .. } => false,
    }
}

/// Splits `1.1 Name`. Needs at least two numbers, so that plain section numbers are not stories.
fn split_number(text: &str) -> Option<(&str, &str)> {
    let (number, title) = text.trim().split_once([' ', '\t'])?;
    let number = number.trim_end_matches('.');
    let parts = number.split('.');
    let right =
        parts.clone().count() > 1 && parts.clone().all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()));
    let title = title.trim();
    (right && !title.is_empty()).then_some((number, title))
}
