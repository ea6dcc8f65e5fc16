//! Reads one JSON value from standard input. The client may keep the pipe open, so this does not wait for its end.

use std::io::Read;

use verdone_core::hook::{ValueEnd, event_in};

/// Larger than any client's input: no single call writes a file of this size.
const LARGEST: usize = 8 * 1024 * 1024;

#[derive(Debug, thiserror::Error)]
pub(super) enum StdinError {
    #[error("there was no input")]
    Empty,
    #[error("the input is larger than 8 MB")]
    TooLarge { event: Option<String> },
    #[error("the input could not be read: {0}")]
    Read(#[from] std::io::Error),
}

impl StdinError {
    /// The event, if it could be determined.
    pub(super) fn event(&self) -> Option<String> {
        match self {
            Self::Empty | Self::Read(_) => None,
            Self::TooLarge { event } => event.clone(),
        }
    }
}

/// The bytes of the first value, or everything if the input ends early.
pub(super) fn read_value(input: &mut impl Read) -> Result<Vec<u8>, StdinError> {
    let mut bytes = Vec::new();
    let mut end = ValueEnd::default();
    // Nearly every input fits, and untouched memory costs nothing.
    let mut chunk = vec![0; 8 * 1024];
    loop {
        let read = match input.read(&mut chunk) {
            Ok(read) => read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error.into()),
        };
        bytes.extend_from_slice(&chunk[..read]);
        if let Some(length) = end.find(&bytes) {
            bytes.truncate(length);
            return Ok(bytes);
        }
        match read {
            0 if bytes.trim_ascii().is_empty() => return Err(StdinError::Empty),
            0 => return Ok(bytes),
            _ if bytes.len() > LARGEST => return Err(StdinError::TooLarge { event: event_in(&bytes) }),
            _ if read == chunk.len() => chunk.resize(64 * 1024, 0),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_value_is_taken_and_no_more() {
        let value = read_value(&mut &b" {\"a\": \"}\"} {\"b\": 1}"[..]).unwrap();
        assert_eq!(value, b" {\"a\": \"}\"}");
        assert_eq!(read_value(&mut &b"{\"a\": "[..]).unwrap(), b"{\"a\": ");
        assert!(matches!(read_value(&mut &b" \n"[..]), Err(StdinError::Empty)));
    }

    #[test]
    fn an_endless_input_is_given_up_with_its_event() {
        let mut input = b"{\"hook_event_name\": \"Stop\", \"x\": \"".chain(std::io::repeat(b'x'));
        let error = read_value(&mut input).unwrap_err();
        assert_eq!((error.event().as_deref(), error.to_string().as_str()), (Some("Stop"), "the input is larger than 8 MB"));
    }
}
