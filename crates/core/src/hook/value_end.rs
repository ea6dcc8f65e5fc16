//! Finds the end of the first JSON value in a stream. A client may keep the pipe open, so waiting for its end could hang.

/// Scans bytes as they arrive. It only balances brackets; validation is the parser's job.
#[derive(Debug, Clone, Default)]
pub struct ValueEnd {
    seen: usize,
    depth: usize,
    in_string: bool,
    escaped: bool,
    begun: bool,
}

impl ValueEnd {
    /// Scans the new bytes. Returns the length of the first value once it is complete.
    ///
    /// A value that is neither an object nor an array has no closing bracket. It counts as complete at its first byte: it is not a valid
    /// hook input anyway, so there is no point in waiting for the rest.
    pub fn find(&mut self, bytes: &[u8]) -> Option<usize> {
        while let Some(byte) = bytes.get(self.seen) {
            self.seen += 1;
            if self.in_string {
                match byte {
                    _ if self.escaped => self.escaped = false,
                    b'\\' => self.escaped = true,
                    b'"' => self.in_string = false,
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' if self.begun => self.in_string = true,
                b'{' | b'[' => {
                    self.begun = true;
                    self.depth += 1;
                }
                b'}' | b']' if self.begun => {
                    self.depth -= 1;
                    if self.depth == 0 {
                        return Some(self.seen);
                    }
                }
                b' ' | b'\t' | b'\r' | b'\n' | 0xef | 0xbb | 0xbf if !self.begun => {}
                _ if !self.begun => return Some(self.seen),
                _ => {}
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_end_is_found_at_every_split_of_the_stream() {
        let text = br#"  {"a": "}\"]", "b": [1, {"c": "\\"}]}{"next": 1}"#;
        let end = text.iter().rposition(|byte| *byte == b'{').unwrap();
        for split in 0..text.len() {
            let mut finder = ValueEnd::default();
            let early = finder.find(&text[..split]);
            assert_eq!(early.or_else(|| finder.find(text)), Some(end), "split at {split}");
            assert_eq!(early.is_some(), split >= end, "split at {split}");
        }
    }

    #[test]
    fn what_is_no_object_keeps_nobody_waiting() {
        for text in ["null", "x", "}", "\"{", "7"] {
            assert_eq!(ValueEnd::default().find(text.as_bytes()), Some(1), "{text}");
        }
        assert_eq!(ValueEnd::default().find(b" \n"), None);
    }

    proptest! {
        #[test]
        fn a_value_ends_where_the_parser_says(keys in prop::collection::vec((".*", ".*"), 0..5), after in ".*") {
            let map: serde_json::Map<String, serde_json::Value> = keys.into_iter().map(|(k, v)| (k, serde_json::json!([v, {}]))).collect();
            let value = serde_json::Value::Object(map).to_string();
            let text = format!("{value}{after}");
            prop_assert_eq!(ValueEnd::default().find(text.as_bytes()), Some(value.len()));
        }

        #[test]
        fn no_bytes_confuse_it(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let end = ValueEnd::default().find(&bytes);
            prop_assert!(end.is_none_or(|end| end <= bytes.len()));
        }
    }
}
