//! Plans as people write them: `## Add a helper` with task boxes below. Each heading with boxes is a story, and its boxes are its tasks.
//!
//! Files that are lists by their name (`TODO.md`) stay lists: there, headings group boxes, and each box is a story.

use std::collections::HashSet;
use std::ops::Range;

use crate::Format;
use crate::checklist::top_boxes;
use crate::label::{has_id, plain};
use crate::markdown::{Block, BlockKind, Scan};
use crate::marker::Parsed;
use crate::plan_md::{document_title, outside, section_draft, sections};

/// Names of lists, in lower case and without ending.
const LISTS: [&str; 5] = ["todo", "todos", "tasks", "checklist", "backlog"];

pub(crate) fn recognises(name: &str, scan: &Scan<'_>) -> bool {
    let file = name.rsplit(['/', '\\']).next().unwrap_or(name).to_lowercase();
    let is_list = LISTS.contains(&file.split('.').next().unwrap_or_default());
    let boxes = top_boxes(scan);
    let is_plain = |index: &usize| !has_id(scan.first_line(&scan.blocks[*index]).0) && heading_above(scan, *index).is_some();
    !is_list && !boxes.is_empty() && boxes.iter().all(is_plain)
}

pub(crate) fn parse(scan: &Scan<'_>) -> Parsed {
    let stories: HashSet<usize> = top_boxes(scan).into_iter().filter_map(|index| heading_above(scan, index)).collect();
    let starts: HashSet<usize> = stories.iter().map(|index| scan.blocks[*index].span.start).collect();
    let sections = sections(scan, |_, block| starts.contains(&block.span.start));
    let mut parsed = Parsed::new(Format::PlanMd);
    parsed.title = document_title(scan);
    for (position, section) in sections.iter().enumerate() {
        let title = plain(scan.content(&scan.blocks[section.heading]));
        let draft = section_draft(scan, section, None, title, position + 1, &mut parsed.warnings);
        parsed.drafts.push(draft);
    }
    let covered: Vec<Range<usize>> = sections.into_iter().map(|section| section.span).collect();
    parsed.context = outside(scan.text, &covered);
    parsed
}

/// The heading directly above a block, unless it is the document's title.
fn heading_above(scan: &Scan<'_>, index: usize) -> Option<usize> {
    let level = |block: &Block| match block.kind {
        BlockKind::Heading { level } => Some(level),
        BlockKind::Item | BlockKind::Paragraph | BlockKind::Code { .. } => None,
    };
    let above = scan.blocks[..index].iter().rposition(|block| level(block).is_some())?;
    level(&scan.blocks[above]).filter(|level| *level > 1).map(|_| above)
}
