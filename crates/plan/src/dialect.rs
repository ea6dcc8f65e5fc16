//! The words of a plan whose meaning the program around it defines.

/// What the program that reads a plan knows about such words.
#[derive(Debug, Clone, Copy)]
pub struct Dialect {
    /// Reads the text after `Proof:`. Returns the word as it is usually spelled, or why it does not count.
    pub read_proof: fn(&str) -> Result<&'static str, String>,
    /// The hint for a story without a check.
    pub no_check_hint: &'static str,
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::Document;

    /// Knows one word.
    pub(crate) const PLAIN: Dialect = Dialect {
        read_proof: |text| if text == "strong" { Ok("strong") } else { Err(format!("{text:?} is unknown")) },
        no_check_hint: "add a check",
    };

    #[test]
    fn the_dialect_reads_the_proof_in_every_format() {
        let json = |value: &str| format!(r#"{{"userStories":[{{"id":"US-001","title":"One","passes":false,"proof":{value}}}]}}"#);
        let item = |lines: &str| format!("- [ ] US-001: One\n{lines}");
        for (name, text, expected, warning) in [
            ("plan.md", item("  - Proof: strong\n"), Some("strong"), None),
            ("plan.md", item("  - Proof: `strong`.\n"), Some("strong"), None),
            ("plan.md", item("  - Proof: weak\n"), None, Some((2, "\"weak\" is unknown"))),
            ("plan.md", item("  - Proof: strong\n  - Proof: weak\n"), Some("strong"), Some((3, "\"weak\" is unknown"))),
            ("plan.md", item(""), None, None),
            ("plan.md", "### US-001: One\n\nProof: strong\n\n- [ ] Do it\n".to_owned(), Some("strong"), None),
            ("IMPLEMENTATION_PLAN.md", "## Priority 1\n\n- [ ] One\n  - **Proof:** strong\n".to_owned(), Some("strong"), None),
            ("prd.json", json("\"strong\""), Some("strong"), None),
            ("prd.json", json("\"weak\""), None, Some((1, "\"weak\" is unknown"))),
        ] {
            let document = Document::parse(name, text.as_bytes(), &PLAIN).unwrap();
            assert_eq!(document.plan().stories[0].proof, expected, "{text}");
            let warnings = document.plan().warnings.iter().map(|warning| (warning.line, warning.message.as_str()));
            assert_eq!(warnings.collect::<Vec<_>>(), warning.into_iter().collect::<Vec<_>>(), "{text}");
        }
    }
}
