//! Redacts a stream line by line. A private key spans several lines.

use std::borrow::Cow;

use super::Redactor;

/// Remembers whether the last lines were inside a private key. Use one per stream.
#[derive(Debug, Clone, Copy, Default)]
pub struct LineRedactor {
    in_key: bool,
}

impl LineRedactor {
    /// Redacts one line, given without its line end.
    pub fn redact<'t>(&mut self, redactor: &Redactor, line: &'t str) -> Cow<'t, str> {
        if self.in_key {
            if let Some(end) = line.find("-----END ") {
                self.in_key = false;
                let rest = line[end + 9..].split_once("-----").map_or("", |(_, rest)| rest);
                return Cow::Owned(format!("[redacted:private-key]{}", redactor.redact(rest)));
            }
            if is_key_line(line) {
                return Cow::Borrowed(if line.trim().is_empty() { line } else { "[redacted:private-key]" });
            }
            // Not a key after all, or an incomplete one: do not swallow the rest of the output.
            self.in_key = false;
        }
        if let Some(begin) = line.rfind("-----BEGIN ") {
            let after = &line[begin..];
            self.in_key = after.contains("PRIVATE KEY") && !after.contains("-----END ");
        }
        redactor.redact(line)
    }
}

/// Whether this can be a line inside a key: base64, or a header such as `Proc-Type: 4,ENCRYPTED`. Loggers may add a prefix, so the
/// last word decides.
fn is_key_line(line: &str) -> bool {
    let Some(word) = line.split_whitespace().next_back() else { return true };
    let base64 = word.len() >= 4 && word.bytes().all(|b| b.is_ascii_alphanumeric() || b"+/=".contains(&b));
    let header = ["Proc-Type:", "DEK-Info:", "Comment:", "Version:"].iter().any(|name| line.contains(name));
    header || (base64 && (word.len() >= 40 || line.trim().len() == word.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> String {
        let (redactor, mut state) = (Redactor::default(), LineRedactor::default());
        text.lines().map(|line| state.redact(&redactor, line).into_owned()).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_key_over_several_lines_is_hidden_line_by_line() {
        let text = "before\nkey: -----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nMHcCAQEE\nabc=\n-----END EC PRIVATE KEY----- tail\nafter";
        let hidden = "[redacted:private-key]";
        assert_eq!(lines(text), format!("before\nkey: {hidden}\n{hidden}\n\n{hidden}\n{hidden}\n{hidden} tail\nafter"));
    }

    #[test]
    fn a_key_that_never_ends_does_not_swallow_the_output() {
        let text = "-----BEGIN PRIVATE KEY-----\nMIIBVQ\ntest result: ok. 3 passed\nMIIBVQ";
        assert_eq!(lines(text), "[redacted:private-key]\n[redacted:private-key]\ntest result: ok. 3 passed\nMIIBVQ");
    }
}
