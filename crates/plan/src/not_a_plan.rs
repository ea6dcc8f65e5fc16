//! Files that are certainly not plans, so that the error can say so.

use verdone_text::position::Problem;

/// The kind of a file that is certainly not a plan, by its ending.
pub(crate) fn kind_of(name: &str) -> Option<&'static str> {
    let (_, extension) = name.rsplit_once('.')?;
    match extension.to_ascii_lowercase().as_str() {
        "toml" => Some("a TOML file"),
        "yaml" | "yml" => Some("a YAML file"),
        "rs" | "py" | "js" | "ts" | "go" | "java" | "c" | "cpp" | "rb" | "sh" => Some("source code"),
        "lock" | "xml" | "html" | "css" | "csv" => Some("another kind of file"),
        _ => None,
    }
}

pub(crate) fn problem(kind: &str) -> Problem {
    let hint = "a plan is Markdown (PLAN.md, TODO.md) or JSON (prd.json, feature_list.json)".to_owned();
    Problem { line: 1, column: 1, message: format!("this is not a plan but {kind}"), hint: Some(hint) }
}
