//! Names that a stranger cannot guess the meaning of.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use regex::Regex;

use super::imports::without_comments;
use super::{files_ending, read};

/// Names of functions that say nothing without their context, so none of them is used twice.
const FUNCTIONS: [&str; 6] = ["look", "words", "of", "tell", "take", "hear"];
const TYPES: [&str; 3] = ["Seen", "Found", "Asked"];
const FILES: [&str; 28] = [
    "looking",
    "keep",
    "words",
    "place",
    "matching",
    "regular",
    "pipes",
    "home",
    "known_files",
    "verify_now",
    "at_work",
    "custody",
    "others",
    "left",
    "marks",
    "court",
    "speaker",
    "apart",
    "earlier",
    "unsaid",
    "who",
    "few",
    "bit",
    "truth",
    "given",
    "sight",
    "same",
    "unmade",
];
/// Say what it holds: a sealed copy.
const VARIABLES: [&str; 1] = ["custody"];

#[test]
fn functions_types_and_variables_have_names_that_can_be_guessed() {
    let function = Regex::new(&format!(r"\bfn ({})\b", FUNCTIONS.join("|"))).expect("the pattern is valid");
    let other =
        Regex::new(&format!(r"\b((?:struct|enum|union|trait|type) (?:{})|(?:{}))\b", TYPES.join("|"), VARIABLES.join("|")))
            .expect("the pattern is valid");
    let mut files_by_name: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for path in files_ending("rs") {
        let code = without_comments(&read(&path));
        if let Some(name) = other.find(&code) {
            panic!("{path} has `{}`: say what it is", name.as_str());
        }
        for name in function.captures_iter(&code) {
            files_by_name.entry(name[1].to_owned()).or_default().insert(path.clone());
        }
    }
    for (name, files) in files_by_name {
        assert!(files.len() == 1, "several functions are called `{name}`: say what they do, in {files:?}");
    }
}

#[test]
fn files_have_names_that_can_be_guessed() {
    for path in files_ending("rs") {
        let parts = Path::new(&path).with_extension("");
        let vague = parts.iter().filter_map(|part| part.to_str()).find(|part| FILES.contains(part));
        assert_eq!(vague, None, "{path}");
    }
}

#[test]
fn a_name_in_a_comment_or_text_is_none() {
    let code = without_comments("fn of() {} // fn look\nlet a = \"custody\";\n");
    assert!(code.contains("fn of") && !code.contains("look") && !code.contains("custody"));
}
