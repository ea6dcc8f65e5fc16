//! Plans of any size in every format that the program reads.

use std::fmt::Write as _;

/// The form of a plan file. Two of them are variants of the same format, so this differs from the program's own list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PlanShape {
    /// `### US-001: Title` with task boxes and sub-bullets.
    StoryHeadings,
    /// `- [ ] US-001: Title` lines.
    StoryLines,
    /// `### [ ] US-001: Title`.
    BoxedHeadings,
    /// `## Priority N` sections.
    Priorities,
    /// A checklist without ids.
    Checklist,
    /// `userStories` with `passes`.
    PrdJson,
    /// An array of features.
    FeatureArray,
    /// An object with an array of features.
    FeatureObject,
}

impl PlanShape {
    pub const ALL: [Self; 8] = [
        Self::StoryHeadings,
        Self::StoryLines,
        Self::BoxedHeadings,
        Self::Priorities,
        Self::Checklist,
        Self::PrdJson,
        Self::FeatureArray,
        Self::FeatureObject,
    ];

    /// The usual name of such a file.
    pub fn file_name(self) -> &'static str {
        match self {
            Self::StoryHeadings | Self::StoryLines => "plan.md",
            Self::BoxedHeadings => "prd.md",
            Self::Priorities => "IMPLEMENTATION_PLAN.md",
            Self::Checklist => "TODO.md",
            Self::PrdJson => "prd.json",
            Self::FeatureArray | Self::FeatureObject => "feature_list.json",
        }
    }

    /// A plan with `stories` open stories.
    pub fn build(self, stories: usize) -> String {
        self.build_with_done(stories, |_| false)
    }

    /// A plan whose story `n` (from 1) is done if `done(n)`.
    pub fn build_with_done(self, stories: usize, done: impl Fn(usize) -> bool) -> String {
        let mut text = String::with_capacity(stories * 64 + 64);
        text.push_str(self.head());
        for n in 1..=stories {
            self.story(&mut text, n, done(n), n == stories).expect("writing to a string cannot fail");
        }
        text.push_str(self.tail());
        if let Self::FeatureObject = self {
            text = text.replacen("[COUNT]", &stories.to_string(), 1);
        }
        text
    }

    fn head(self) -> &'static str {
        match self {
            Self::StoryHeadings => "# Implementation Plan\n\n## Tasks\n",
            Self::StoryLines => "# Implementation Plan\n\n## Tasks\n\n",
            Self::BoxedHeadings => "# Product requirements\n\n## User stories\n",
            Self::Priorities => "# Implementation Plan\n\n## Priority 1\n\n",
            Self::Checklist => "# Things to do\n\n",
            Self::PrdJson => "{\n  \"project\": \"Test\",\n  \"description\": \"A project\",\n  \"userStories\": [\n",
            Self::FeatureArray => "[\n",
            Self::FeatureObject => "{\n  \"total_features\": [COUNT],\n  \"features\": [\n",
        }
    }

    fn tail(self) -> &'static str {
        match self {
            Self::StoryHeadings | Self::StoryLines | Self::BoxedHeadings | Self::Priorities | Self::Checklist => "",
            Self::PrdJson | Self::FeatureObject => "  ]\n}\n",
            Self::FeatureArray => "]\n",
        }
    }

    fn story(self, text: &mut String, n: usize, done: bool, last: bool) -> std::fmt::Result {
        let mark = if done { 'x' } else { ' ' };
        let comma = if last { "" } else { "," };
        match self {
            Self::StoryHeadings => writeln!(
                text,
                "\n### US-{n:03}: Story number {n}\n\n- [{mark}] Do part {n}\n  - Scope: src/\n  - Acceptance: part {n} works"
            ),
            Self::StoryLines => writeln!(text, "- [{mark}] US-{n:03}: Story number {n}"),
            Self::BoxedHeadings => {
                writeln!(text, "\n### [{mark}] US-{n:03}: Story number {n}\n\nAs a user I want part {n}.\n\n- part {n} works")
            }
            Self::Priorities => writeln!(text, "- [{mark}] Story number {n}\n  - Dependencies: none\n  - Complexity: low"),
            Self::Checklist => writeln!(text, "- [{mark}] Story number {n}"),
            Self::PrdJson => writeln!(
                text,
                "    {{ \"id\": \"US-{n:03}\", \"title\": \"Story number {n}\", \"acceptanceCriteria\": [\"part {n} works\"], \
                 \"priority\": {n}, \"passes\": {done}, \"notes\": \"\" }}{comma}"
            ),
            Self::FeatureArray => writeln!(
                text,
                "  {{ \"category\": \"functional\", \"description\": \"Story number {n}\", \"steps\": [\"use part {n}\"], \
                 \"passes\": {done} }}{comma}"
            ),
            Self::FeatureObject => writeln!(
                text,
                "    {{ \"id\": \"F{n:03}\", \"description\": \"Story number {n}\", \"steps\": [\"use part {n}\"], \
                 \"passes\": {done} }}{comma}"
            ),
        }
    }
}
