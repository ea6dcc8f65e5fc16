//! Prompt templates: the user's if it exists, else the built-in one.

use std::io;
use std::path::Path;

use crate::base::plain_file::read_linked;

/// More than any agent accepts.
const LARGEST: u64 = 16 * 1024 * 1024;

/// The instructions of a fresher project for the mode `planning` or `building`. Empty if it has none.
pub fn project_instructions(root: &Path, mode: &str) -> io::Result<String> {
    let path = format!(".fresher/PROMPT.{mode}.md");
    match read_linked(&root.join(&path), LARGEST) {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(io::Error::new(error.kind(), format!("{path}: {error}"))),
    }
}

/// The source of a template and its text.
pub fn read_template(root: &Path, name: &str, built_in: &str) -> io::Result<(String, String)> {
    let path = format!(".verdone/prompts/{name}.md");
    let not_text = |_| io::Error::new(io::ErrorKind::InvalidData, "not UTF-8 text");
    let text = read_linked(&root.join(&path), LARGEST).and_then(|bytes| String::from_utf8(bytes).map_err(not_text));
    match text {
        Ok(text) => Ok((path, text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(("built-in".to_owned(), built_in.to_owned())),
        Err(error) => Err(io::Error::new(error.kind(), format!("{path}: {error}"))),
    }
}
