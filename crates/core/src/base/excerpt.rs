//! Parts of long texts.

/// The end of a text, which is where a failure usually says what failed.
pub fn keep_end(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    let start = (text.len() - bytes..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    format!("[{start} bytes cut]\n{}", &text[start..])
}

/// The start of a text.
pub fn keep_start(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    let end = (0..=bytes).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    format!("{}\n[{} bytes cut]", &text[..end], text.len() - end)
}
