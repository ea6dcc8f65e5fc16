//! What the words of a plan mean to Verdone. The formats are in the crate `verdone-plan`.

use verdone_plan::{Dialect, Story};

use crate::base::proof::Proof;

/// How Verdone reads plans.
pub const DIALECT: Dialect = Dialect {
    read_proof,
    no_check_hint: "without a check, it can be agent-tested at best; add a `Verification:` with a command in backticks",
};

/// The weakest proof that makes the story done, if its plan names one instead of the project's `[done] minimum`.
pub fn minimum_proof(story: &Story) -> Option<Proof> {
    story.proof.and_then(|word| word.parse().ok())
}

fn read_proof(text: &str) -> Result<&'static str, String> {
    match text.parse() {
        // Only the command line allows that.
        Ok(Proof::Unchecked) => {
            Err("a story cannot ask for unchecked (see `verdone run --unchecked`); the project's minimum applies".to_owned())
        }
        Ok(proof) => Ok(proof.name()),
        Err(unknown) => Err(format!("{unknown}; the project's minimum applies")),
    }
}

#[cfg(test)]
mod tests {
    use verdone_plan::Document;

    use super::*;

    #[test]
    fn a_story_names_its_weakest_proof_in_every_format() {
        let json = |value: &str| format!(r#"{{"userStories":[{{"id":"US-001","title":"One","passes":false,"proof":{value}}}]}}"#);
        let item = |value: &str| format!("- [ ] US-001: One\n  - Proof: {value}\n");
        let unknown = "unknown proof \"green\": use verified, agent-tested, untested or unchecked; the project's minimum applies";
        let unchecked = "a story cannot ask for unchecked (see `verdone run --unchecked`); the project's minimum applies";
        for (name, text, expected, warning) in [
            ("plan.md", item("verified"), Some(Proof::Verified), None),
            ("plan.md", item("`Agent-tested`."), Some(Proof::AgentTested), None),
            ("plan.md", "### US-001: One\n\nProof: untested\n\n- [ ] Do it\n".to_owned(), Some(Proof::Untested), None),
            (
                "IMPLEMENTATION_PLAN.md",
                "## Priority 1\n\n- [ ] One\n  - **Proof:** verified\n".to_owned(),
                Some(Proof::Verified),
                None,
            ),
            ("plan.md", "- [ ] US-001: One\n".to_owned(), None, None),
            ("plan.md", item("green"), None, Some(unknown)),
            ("plan.md", item("unchecked"), None, Some(unchecked)),
            ("prd.json", json("\"verified\""), Some(Proof::Verified), None),
            ("prd.json", json("\"green\""), None, Some(unknown)),
            ("prd.json", json("\"unchecked\""), None, Some(unchecked)),
        ] {
            let document = Document::parse(name, text.as_bytes(), &DIALECT).unwrap();
            assert_eq!(minimum_proof(&document.plan().stories[0]), expected, "{text}");
            let warnings: Vec<&str> = document.plan().warnings.iter().map(|warning| warning.message.as_str()).collect();
            assert_eq!(warnings, warning.into_iter().collect::<Vec<_>>(), "{text}");
        }
    }
}
