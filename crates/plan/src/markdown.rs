//! The blocks of a Markdown file that matter to a plan, with their byte ranges: headings, list items, paragraphs and code.
//!
//! Skips quotes, HTML, comments, metadata and everything inside code, so that examples are not mistaken for stories.

use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

use crate::Status;
use crate::marker::box_status;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlockKind {
    Heading {
        level: u8,
    },
    /// A list item and its first paragraph.
    Item,
    /// Any other paragraph.
    Paragraph,
    /// A code block. `shell`: whether it may contain shell commands.
    Code {
        shell: bool,
    },
}

#[derive(Debug, Clone)]
pub(crate) struct Block {
    pub(crate) kind: BlockKind,
    /// How many list items enclose it.
    pub(crate) depth: i32,
    /// The whole block, including nested blocks.
    pub(crate) span: Range<usize>,
    /// Its own text, without bullet, box and hashes.
    pub(crate) content: Range<usize>,
    pub(crate) mark: Option<BoxMark>,
}

/// The box before a text: the position of the character between its brackets, and its meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BoxMark {
    pub(crate) at: usize,
    pub(crate) status: Status,
}

#[derive(Debug)]
pub(crate) struct Scan<'a> {
    pub(crate) text: &'a str,
    pub(crate) blocks: Vec<Block>,
}

impl<'a> Scan<'a> {
    pub(crate) fn content(&self, block: &Block) -> &'a str {
        &self.text[block.content.clone()]
    }

    /// The first line of a block's text, and the position after it.
    pub(crate) fn first_line(&self, block: &Block) -> (&'a str, usize) {
        let content = self.content(block);
        let end = content.find(['\n', '\r']).unwrap_or(content.len());
        (content[..end].trim(), block.content.start + end)
    }

    /// Indexes of the blocks that begin inside a range.
    pub(crate) fn within(&self, range: &Range<usize>) -> Range<usize> {
        let begin = self.blocks.partition_point(|block| block.span.start < range.start);
        let end = self.blocks.partition_point(|block| block.span.start < range.end);
        begin..end
    }
}

pub(crate) fn scan(text: &str) -> Scan<'_> {
    scan_in_pieces(text, PIECE)
}

/// The parser needs many times the memory of its input, so a large plan is parsed in pieces.
const PIECE: usize = 128 * 1024;

fn scan_in_pieces(text: &str, piece: usize) -> Scan<'_> {
    let base = text.len() - text.trim_start_matches('\u{feff}').len();
    let options = Options::ENABLE_YAML_STYLE_METADATA_BLOCKS;
    let mut scanner =
        Scanner { text, blocks: Vec::new(), code: Vec::new(), items: Vec::new(), target: None, skipped: 0, listing: None };
    for piece in pieces(text, base, piece) {
        for (event, range) in Parser::new_ext(&text[piece.clone()], options).into_offset_iter() {
            scanner.step(&event, range.start + piece.start..range.end + piece.start);
        }
    }
    let Scanner { mut blocks, mut code, .. } = scanner;
    code.sort_by_key(|range| range.start);
    let comments = comments(text, &code);
    if !comments.is_empty() {
        blocks.retain(|block| !inside(&comments, block.span.start));
    }
    for block in &mut blocks {
        block.content.start = block.content.start.min(block.content.end);
        finish(text, block);
    }
    blocks.retain(|block| !block.content.is_empty() || block.kind == BlockKind::Item);
    blocks.sort_by_key(|block| block.span.start);
    Scan { text, blocks }
}

/// Splits a text where no Markdown construct continues: before a heading or a box at the start of a line. Does not split after the
/// first line that could begin a construct in which such lines have no meaning: code, HTML, metadata.
fn pieces(text: &str, base: usize, least: usize) -> Vec<Range<usize>> {
    let mut pieces = Vec::new();
    let (mut start, mut at) = (base, base);
    for line in text[base..].split_inclusive('\n') {
        if at - start >= least && begins_block(line.as_bytes()) {
            pieces.push(start..at);
            start = at;
        }
        if may_hide_lines(line) {
            break;
        }
        at += line.len();
    }
    pieces.push(start..text.len());
    pieces
}

fn begins_block(line: &[u8]) -> bool {
    match line {
        [b'-' | b'*' | b'+', b' ', b'[', ..] => true,
        [b'#', ..] => {
            let level = line.iter().take_while(|byte| **byte == b'#').count();
            level <= 6 && line.get(level) == Some(&b' ')
        }
        _ => false,
    }
}

fn may_hide_lines(line: &str) -> bool {
    if line.starts_with("---") || line.starts_with("+++") {
        return true;
    }
    let inner = line.trim_start_matches(|c: char| matches!(c, ' ' | '\t' | '>' | '-' | '*' | '+' | '.' | ')' | '0'..='9'));
    inner.starts_with("```") || inner.starts_with("~~~") || inner.starts_with('<')
}

struct Scanner<'a> {
    text: &'a str,
    blocks: Vec<Block>,
    /// Code blocks and code spans.
    code: Vec<Range<usize>>,
    /// For each open list item, whether it still has no first paragraph.
    items: Vec<bool>,
    /// The block that inline text belongs to.
    target: Option<usize>,
    /// Number of open constructs that cannot contain stories.
    skipped: u32,
    /// The code block being read.
    listing: Option<usize>,
}

impl Scanner<'_> {
    fn step(&mut self, event: &Event<'_>, range: Range<usize>) {
        match event {
            Event::Start(tag) => self.start(tag, range),
            Event::End(tag) => self.end(*tag),
            Event::Code(_) => {
                self.code.push(range.clone());
                self.inline(&range);
            }
            Event::Text(_)
            | Event::InlineHtml(_)
            | Event::SoftBreak
            | Event::HardBreak
            | Event::InlineMath(_)
            | Event::DisplayMath(_)
            | Event::FootnoteReference(_)
            | Event::TaskListMarker(_) => self.inline(&range),
            Event::Html(_) | Event::Rule => self.target = None,
        }
    }

    fn start(&mut self, tag: &Tag<'_>, range: Range<usize>) {
        match tag {
            Tag::Item => {
                let start = item_start(self.text, &range);
                self.open(BlockKind::Item, start..range.end, start..start);
                self.items.push(true);
            }
            Tag::Paragraph => {
                // The first paragraph of an item is the item's own text.
                if self.items.last() != Some(&true) {
                    let content = range.start..range.start;
                    self.open(BlockKind::Paragraph, range, content);
                }
            }
            Tag::Heading { level, .. } => {
                let content = nothing(&range);
                self.open(BlockKind::Heading { level: *level as u8 }, range, content);
            }
            Tag::CodeBlock(kind) => {
                self.code.push(range.clone());
                if self.skipped == 0 {
                    let content = nothing(&range);
                    self.open(BlockKind::Code { shell: is_shell(kind) }, range, content);
                    self.listing = self.target.take();
                }
                self.skipped += 1;
            }
            Tag::HtmlBlock | Tag::MetadataBlock(_) | Tag::BlockQuote(_) => {
                self.close_text();
                self.skipped += 1;
            }
            Tag::Emphasis
            | Tag::Strong
            | Tag::Strikethrough
            | Tag::Superscript
            | Tag::Subscript
            | Tag::Link { .. }
            | Tag::Image { .. } => {
                self.inline(&range);
            }
            Tag::List(_)
            | Tag::FootnoteDefinition(_)
            | Tag::DefinitionList
            | Tag::DefinitionListTitle
            | Tag::DefinitionListDefinition
            | Tag::Table(_)
            | Tag::TableHead
            | Tag::TableRow
            | Tag::TableCell => self.close_text(),
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Item => {
                self.items.pop();
                self.close_text();
            }
            TagEnd::CodeBlock => {
                self.skipped -= 1;
                self.listing = None;
            }
            TagEnd::HtmlBlock | TagEnd::MetadataBlock(_) | TagEnd::BlockQuote(_) => self.skipped -= 1,
            TagEnd::Paragraph | TagEnd::Heading(_) => self.close_text(),
            TagEnd::List(_)
            | TagEnd::FootnoteDefinition
            | TagEnd::DefinitionList
            | TagEnd::DefinitionListTitle
            | TagEnd::DefinitionListDefinition
            | TagEnd::Table
            | TagEnd::TableHead
            | TagEnd::TableRow
            | TagEnd::TableCell
            | TagEnd::Emphasis
            | TagEnd::Strong
            | TagEnd::Strikethrough
            | TagEnd::Superscript
            | TagEnd::Subscript
            | TagEnd::Link
            | TagEnd::Image => {}
        }
    }

    fn open(&mut self, kind: BlockKind, span: Range<usize>, content: Range<usize>) {
        self.close_text();
        if self.skipped == 0 {
            self.target = Some(self.blocks.len());
            self.blocks.push(Block { kind, depth: self.items.len().try_into().unwrap_or(i32::MAX), span, content, mark: None });
        }
    }

    /// Text that follows is not part of the previous block.
    fn close_text(&mut self) {
        self.target = None;
        if let Some(fresh) = self.items.last_mut() {
            *fresh = false;
        }
    }

    fn inline(&mut self, range: &Range<usize>) {
        let target = match (self.listing, self.skipped, self.target) {
            (Some(listing), _, _) => listing,
            (None, 0, Some(target)) => target,
            // In a tight item, text after something nested has no paragraph.
            (None, 0, None) => {
                self.open(BlockKind::Paragraph, range.clone(), range.clone());
                self.blocks.len() - 1
            }
            (None, _, _) => return,
        };
        let content = &mut self.blocks[target].content;
        content.start = content.start.min(range.start);
        content.end = content.end.max(range.end);
        if content.end > self.text.len() {
            content.end = self.text.len();
        }
    }
}

fn is_shell(kind: &CodeBlockKind<'_>) -> bool {
    match kind {
        CodeBlockKind::Indented => false,
        CodeBlockKind::Fenced(info) => {
            matches!(
                info.split_whitespace().next().unwrap_or(""),
                "" | "sh" | "bash" | "shell" | "zsh" | "console" | "shell-session"
            )
        }
    }
}

/// An inverted range within `range`: extending it by any text inside `range` makes it valid.
fn nothing(range: &Range<usize>) -> Range<usize> {
    Range { start: range.end, end: range.start }
}

/// Finds the box and reduces the content to the text after it.
fn finish(text: &str, block: &mut Block) {
    match block.kind {
        BlockKind::Item => {
            let start = after_bullet(text, block.span.start);
            block.content = start..block.content.end.max(start);
        }
        BlockKind::Heading { .. } => {
            if text.as_bytes().get(block.content.start.wrapping_sub(1)) == Some(&b'\\') {
                return;
            }
        }
        BlockKind::Paragraph | BlockKind::Code { .. } => return,
    }
    if let [b'[', mark, b']', rest @ ..] = &text.as_bytes()[block.content.clone()]
        && rest.first().is_none_or(u8::is_ascii_whitespace)
        && !(rest.is_empty() && block.kind == BlockKind::Item)
        && let Some(status) = box_status(*mark)
    {
        block.mark = Some(BoxMark { at: block.content.start + 1, status });
        let rest = &text[block.content.start + 3..block.content.end];
        block.content.start += 3 + rest.len() - rest.trim_start_matches([' ', '\t']).len();
    }
}

/// The position of an item's bullet. The parser counts a tab as several bytes, so its range may begin at the previous line end.
fn item_start(text: &str, range: &Range<usize>) -> usize {
    let bytes = text.as_bytes();
    let blank = |at: &usize| bytes.get(*at).is_some_and(u8::is_ascii_whitespace) || !text.is_char_boundary(*at);
    (range.start..range.end).find(|at| !blank(at)).unwrap_or(range.end)
}

/// Where an item's text begins: after its bullet or number.
fn after_bullet(text: &str, start: usize) -> usize {
    let bytes = text.as_bytes();
    let mut at = start;
    while bytes.get(at).is_some_and(u8::is_ascii_digit) {
        at += 1;
    }
    if matches!(bytes.get(at), Some(b'-' | b'*' | b'+' | b'.' | b')')) {
        at += 1;
    }
    while matches!(bytes.get(at), Some(b' ' | b'\t')) {
        at += 1;
    }
    at
}

/// Comments outside code. A comment within a paragraph may contain items that Markdown itself would show.
fn comments(text: &str, code: &[Range<usize>]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(start) = text[from..].find("<!--").map(|at| from + at) {
        if inside(code, start) {
            from = start + 4;
            continue;
        }
        let Some(end) = text[start + 4..].find("-->").map(|at| start + 4 + at + 3) else { break };
        found.push(start..end);
        from = end;
    }
    found
}

/// Whether one of the sorted ranges contains an offset.
fn inside(ranges: &[Range<usize>], at: usize) -> bool {
    let next = ranges.partition_point(|range| range.start <= at);
    next > 0 && ranges[next - 1].end > at
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Placed = (BlockKind, i32, Range<usize>);

    /// Ignores trailing line ends of blocks, which do not matter.
    fn seen(text: &str, piece: usize) -> Vec<(Placed, Range<usize>, Option<BoxMark>)> {
        let blocks = scan_in_pieces(text, piece).blocks.into_iter();
        let end = |block: &Block| block.span.start + text[block.span.clone()].trim_end().len();
        blocks.map(|block| ((block.kind, block.depth, block.span.start..end(&block)), block.content, block.mark)).collect()
    }

    fn any_line() -> impl Strategy<Value = String> {
        let starts = vec![
            "- [ ] ", "* [x] ", "+ [~] ", "- ", "1. ", "1. [ ] ", "  - [ ] ", "    ", "\t", "> ", "> - [ ] ", "# ", "### ",
            "### [ ] ", "####### ", "#", "---", "===", "+++", "```", "~~~sh", "- ```", "> ```", "<div>", "<!--", "-->",
            "  <!-- ", "- <b>", "[a]: ", "[a]: \"", "", "", "* * *", "\\", "`", "**", "-", "- [", "- [ ]", "\u{a0}",
        ];
        let ends = vec!["", "text", "US-001: Title", "`code", "a` b", "[a] b", "**bold", "x\r", " ", "<!-- in -->", "a  ", "\\"];
        (prop::sample::select(starts), prop::sample::select(ends)).prop_map(|(start, end)| format!("{start}{end}\n"))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]
        #[test]
        fn a_plan_in_pieces_is_read_like_a_plan_in_one(lines in prop::collection::vec(any_line(), 0..16), piece in 1_usize..40) {
            let text = lines.concat();
            prop_assert_eq!(seen(&text, piece), seen(&text, usize::MAX), "{}", text);
        }
    }

    #[test]
    fn a_long_list_is_read_in_pieces() {
        let text = "- [ ] US-1: Title\n".repeat(1000);
        assert!(pieces(&text, 0, 100).len() > 100);
        assert_eq!(pieces(&format!("```\n{text}"), 0, 100).len(), 1);
    }
}
