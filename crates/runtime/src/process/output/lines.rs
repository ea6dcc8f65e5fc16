//! Splits bytes into lines. Tolerates invalid UTF-8, `\r` from progress bars and output without line ends.

use verdone_core::base::redact::Redactor;

/// Longer lines are passed on in pieces.
const LONGEST: usize = 16 * 1024;

#[derive(Debug, Default)]
pub(crate) struct Lines {
    /// The line so far.
    open: String,
    /// The first bytes of a character that is not complete yet.
    torn: Vec<u8>,
    /// The last byte was `\r`: a `\n` right after it belongs to the same line end.
    after_cr: bool,
}

impl Lines {
    pub(crate) fn push(&mut self, bytes: &[u8], redactor: &Redactor, on: &mut dyn FnMut(&str)) {
        let joined: Vec<u8>;
        let mut bytes = bytes;
        if !self.torn.is_empty() {
            joined = [&self.torn, bytes].concat();
            bytes = &joined;
            self.torn = Vec::new();
        }
        let mut chunks = bytes.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            self.text(chunk.valid(), redactor, on);
            let invalid = chunk.invalid();
            if chunks.peek().is_none() && is_beginning(invalid) {
                self.torn = invalid.to_vec();
            } else if !invalid.is_empty() {
                self.text("\u{fffd}", redactor, on);
            }
        }
    }

    /// The rest at the end of the stream.
    pub(crate) fn finish(&mut self) -> Option<String> {
        if !self.torn.is_empty() {
            self.torn.clear();
            self.open.push('\u{fffd}');
        }
        let rest = std::mem::take(&mut self.open);
        (!rest.is_empty()).then_some(rest)
    }

    fn text(&mut self, text: &str, redactor: &Redactor, on: &mut dyn FnMut(&str)) {
        let mut rest = text;
        while !rest.is_empty() {
            if std::mem::take(&mut self.after_cr)
                && let Some(after) = rest.strip_prefix('\n')
            {
                rest = after;
                continue;
            }
            if let Some(end) = rest.find(['\n', '\r']) {
                self.extend(&rest[..end], redactor, on);
                on(&self.open);
                self.open.clear();
                self.after_cr = rest.as_bytes()[end] == b'\r';
                rest = &rest[end + 1..];
            } else {
                self.extend(rest, redactor, on);
                rest = "";
            }
        }
    }

    fn extend(&mut self, mut text: &str, redactor: &Redactor, on: &mut dyn FnMut(&str)) {
        while self.open.len() + text.len() > LONGEST {
            let fits = text.floor_char_boundary(LONGEST.saturating_sub(self.open.len()));
            self.open.push_str(&text[..fits]);
            text = &text[fits..];
            let cut = redactor.safe_cut(&self.open);
            on(&self.open[..cut]);
            self.open.drain(..cut);
        }
        self.open.push_str(text);
    }
}

/// Whether more bytes could complete this character. `utf8_chunks` returns the longest prefix that is valid so far.
fn is_beginning(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}
