//! The same script for every client: calls of Claude Code's `Write`, `Read` and `Bash` become calls of the tools that a request offers.

use serde_json::{Value, json};

use super::script::{Block, Turn};

/// Replaces tools that the client does not have.
pub(super) fn translate(turn: &mut Turn, offered: &[&str]) {
    for block in &mut turn.blocks {
        if let Block::Tool { name, input } = block
            && !offered.contains(&name.as_str())
            && let Some((own, own_input)) = replacement(name, input, offered)
        {
            (*name, *input) = (own.to_owned(), own_input);
        }
    }
}

fn replacement(tool: &str, input: &Value, offered: &[&str]) -> Option<(&'static str, Value)> {
    let first = |names: &[&'static str]| names.iter().copied().find(|name| offered.contains(name));
    let path = &input["file_path"];
    match tool {
        "Write" => first(&["write_file", "write", "create"]).map(|own| match own {
            "write" => (own, json!({ "filePath": path, "content": input["content"] })),
            "create" => (own, json!({ "path": path, "file_text": input["content"] })),
            _ => (own, input.clone()),
        }),
        "Read" => first(&["read_file", "read", "view"]).map(|own| match own {
            "read" => (own, json!({ "filePath": path })),
            "view" => (own, json!({ "path": path })),
            _ => (own, json!({ "file_path": path })),
        }),
        "Bash" => first(&["run_shell_command", "bash"]).map(|own| {
            let mut input = input.clone();
            if own == "run_shell_command" {
                input["is_background"] = Value::Bool(false);
            }
            (own, input)
        }),
        _ => None,
    }
}
