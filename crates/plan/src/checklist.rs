//! Stories that are list items with a box: `- [ ] US-001: Title`, or a plain checklist without ids.
//!
//! Boxes below a story's box are its criteria.

use verdone_text::position::Fault;

use crate::StoryId;
use crate::details::Details;
use crate::label::{has_id, plain, split_id};
use crate::markdown::{BlockKind, Scan};
use crate::marker::{Draft, Marker, MarkerKind, Parsed, made_id};
use crate::plan_md::{document_title, outside};
use crate::{Format, Status, Story, ThinVec};

pub(crate) fn parse(scan: &Scan<'_>) -> Parsed {
    let stories = top_boxes(scan);
    let named = stories.iter().any(|index| has_id(scan.first_line(&scan.blocks[*index]).0));
    let mut parsed = Parsed::new(if named { Format::PlanMd } else { Format::Checklist });
    parsed.title = document_title(scan);
    for (position, index) in stories.iter().enumerate() {
        let draft = item_draft(scan, *index, position + 1, &mut parsed.warnings);
        parsed.drafts.push(draft);
    }
    let covered: Vec<_> = stories.iter().map(|index| scan.blocks[*index].span.clone()).collect();
    parsed.context = outside(scan.text, &covered);
    parsed
}

/// Items with a box that are not inside another such item. A box that only groups boxes with ids is not included.
pub(crate) fn top_boxes(scan: &Scan<'_>) -> Vec<usize> {
    let is_box = |index: &usize| scan.blocks[*index].kind == BlockKind::Item && scan.blocks[*index].mark.is_some();
    let boxes: Vec<usize> = (0..scan.blocks.len()).filter(is_box).collect();
    let named: Vec<bool> = boxes.iter().map(|index| has_id(scan.first_line(&scan.blocks[*index]).0)).collect();
    let named_starts: Vec<usize> =
        boxes.iter().zip(&named).filter(|(_, named)| **named).map(|(index, _)| scan.blocks[*index].span.start).collect();
    let mut covered = 0;
    let mut found = Vec::new();
    for (index, named) in boxes.into_iter().zip(named) {
        let block = &scan.blocks[index].span;
        let next_named = named_starts.get(named_starts.partition_point(|start| *start <= block.start));
        if block.start < covered || (!named && next_named.is_some_and(|start| *start < block.end)) {
            continue;
        }
        covered = block.end;
        found.push(index);
    }
    found
}

/// Builds the story of one item.
pub(crate) fn item_draft(scan: &Scan<'_>, index: usize, number: usize, warnings: &mut Vec<Fault>) -> Draft {
    let block = &scan.blocks[index];
    let (first, rest) = scan.first_line(block);
    let (id, title) = match split_id(first) {
        Some((id, title)) => (Some(id), title),
        None => (None, plain(first)),
    };
    let mut details = Details::read(scan, index + 1..scan.within(&block.span).end, block.depth + 1);
    details.continuation(scan, rest, block.content.end, block.depth);
    warnings.append(&mut details.warnings);
    let explicit_id = id.is_some();
    let id = id.unwrap_or_else(|| made_id(number));
    let marker = block.mark.map(|mark| Marker::new(MarkerKind::Box, mark.at, 1));
    Draft {
        story: Story {
            title: if title.is_empty() { id.clone() } else { title },
            id: StoryId(id),
            body: dedent(&scan.text[rest.min(block.span.end)..block.span.end]),
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
        at: block.span.start,
        markers: marker.into_iter().collect(),
        dependencies: details.dependencies.into(),
        proofs: details.proofs.into(),
    }
}

/// The lines below an item, without their common indentation.
fn dedent(text: &str) -> String {
    let indent = |line: &str| line.len() - line.trim_start_matches([' ', '\t']).len();
    let shared = text.lines().filter(|line| !line.trim().is_empty()).map(indent).min().unwrap_or(0);
    let lines: Vec<&str> = text.lines().map(|line| line.get(shared..).unwrap_or_default().trim_end()).collect();
    lines.join("\n").trim_matches('\n').to_owned()
}
