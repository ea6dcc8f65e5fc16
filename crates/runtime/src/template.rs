//! Prompt templates: the user's own where there is one, else the built-in.

use std::fs;
use std::io;
use std::path::Path;

/// Where a template came from, and its text.
pub fn read_template(root: &Path, name: &str, built_in: &str) -> io::Result<(String, String)> {
    let path = format!(".verdone/prompts/{name}.md");
    match fs::read_to_string(root.join(&path)) {
        Ok(text) => Ok((path, text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(("built-in".to_owned(), built_in.to_owned())),
        Err(error) => Err(io::Error::new(error.kind(), format!("{path}: {error}"))),
    }
}
