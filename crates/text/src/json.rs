//! A JSON reader that remembers positions, so that one value can be rewritten without touching the rest of the file.
//!
//! In a large file, objects nested in the top-level object or list are validated and skipped; each is read again when it is needed.
//! So a file of any size takes only the memory of its text plus one object at a time.

use std::borrow::Cow;
use std::ops::Range;

use crate::position::{Fault, quote};

/// A value and the bytes it was read from.
#[derive(Debug)]
pub struct Node<'a> {
    pub span: Range<usize>,
    pub value: Value<'a>,
}

#[derive(Debug)]
pub enum Value<'a> {
    Null,
    Bool,
    /// As spelled in the file.
    Number(&'a str),
    Text(Cow<'a, str>),
    List(Vec<Node<'a>>),
    Object(Vec<Member<'a>>),
    /// An object that was skipped.
    Unread,
}

#[derive(Debug)]
pub struct Member<'a> {
    pub key: Cow<'a, str>,
    pub key_span: Range<usize>,
    pub node: Node<'a>,
}

impl<'a> Node<'a> {
    pub fn kind(&self) -> &'static str {
        match self.value {
            Value::Null => "null",
            Value::Bool => "true or false",
            Value::Number(_) => "a number",
            Value::Text(_) => "a string",
            Value::List(_) => "a list",
            Value::Object(_) | Value::Unread => "an object",
        }
    }

    pub fn members(&self) -> &[Member<'a>] {
        match &self.value {
            Value::Object(members) => members,
            Value::Null | Value::Bool | Value::Number(_) | Value::Text(_) | Value::List(_) | Value::Unread => &[],
        }
    }

    pub fn get(&self, key: &str) -> Option<&Node<'a>> {
        self.members().iter().find(|member| member.key == key).map(|member| &member.node)
    }
}

/// Reads a file, but skips objects nested in the top-level value. Stops at the first error: nothing after it can be trusted.
pub fn read(text: &str) -> Result<Node<'_>, Fault> {
    read_file(text, 1)
}

/// Reads a file completely; for small ones.
pub fn read_whole(text: &str) -> Result<Node<'_>, Fault> {
    read_file(text, DEEPEST)
}

fn read_file(text: &str, keeps: u32) -> Result<Node<'_>, Fault> {
    let at = text.len() - text.trim_start_matches('\u{feff}').len();
    let mut reader = Reader { text, at, depth: 0, keeps };
    let node = reader.value()?;
    reader.skip_space();
    match reader.peek() {
        None => Ok(node),
        Some(_) => {
            Err(Fault::new(reader.at, "unexpected text after the JSON value")
                .hint("the file must contain a single object or list"))
        }
    }
}

/// Reads an object that was skipped.
pub fn read_again<'a>(text: &'a str, node: &Node<'a>) -> Result<Node<'a>, Fault> {
    Reader { text, at: node.span.start, depth: 0, keeps: DEEPEST }.value()
}

/// More nesting than any file needs. Deeper input would exhaust the stack.
const DEEPEST: u32 = 100;

struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: u32,
    /// Objects nested deeper than this are skipped.
    keeps: u32,
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn value(&mut self) -> Result<Node<'a>, Fault> {
        self.skip_space();
        let start = self.at;
        let value = match self.peek() {
            Some(b'{') => match self.nested(Self::object)? {
                _ if self.depth >= self.keeps => Value::Unread,
                object => object,
            },
            Some(b'[') => self.nested(Self::list)?,
            Some(b'"') => Value::Text(self.string()?),
            Some(b'-' | b'0'..=b'9') => self.number()?,
            Some(b't') => self.word("true", Value::Bool)?,
            Some(b'f') => self.word("false", Value::Bool)?,
            Some(b'n') => self.word("null", Value::Null)?,
            Some(_) => return Err(self.unexpected("a value")),
            None => return Err(self.ended("a value is missing")),
        };
        Ok(Node { span: start..self.at, value })
    }

    fn nested(&mut self, read: fn(&mut Self) -> Result<Value<'a>, Fault>) -> Result<Value<'a>, Fault> {
        if self.depth == DEEPEST {
            return Err(Fault::new(self.at, format!("values are nested more than {DEEPEST} deep")));
        }
        self.depth += 1;
        self.at += 1;
        let value = read(self)?;
        self.depth -= 1;
        Ok(value)
    }

    fn object(&mut self) -> Result<Value<'a>, Fault> {
        let mut members = Vec::new();
        self.skip_space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Value::Object(members));
        }
        loop {
            self.skip_space();
            let start = self.at;
            match self.peek() {
                Some(b'"') => {}
                Some(b'}') => return Err(self.trailing_comma()),
                Some(_) => return Err(self.unexpected("a key in double quotes")),
                None => return Err(self.ended("the object is not closed")),
            }
            let key = self.string()?;
            let key_span = start..self.at;
            self.skip_space();
            match self.peek() {
                Some(b':') => self.at += 1,
                Some(_) => return Err(self.unexpected("`:`")),
                None => return Err(self.ended("the object is not closed")),
            }
            let node = self.value()?;
            members.push(Member { key, key_span, node });
            self.skip_space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return Ok(Value::Object(members));
                }
                Some(_) => return Err(self.unexpected("`,` or `}`")),
                None => return Err(self.ended("the object is not closed")),
            }
        }
    }

    fn list(&mut self) -> Result<Value<'a>, Fault> {
        let mut nodes = Vec::new();
        self.skip_space();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Value::List(nodes));
        }
        loop {
            self.skip_space();
            if self.peek() == Some(b']') {
                return Err(self.trailing_comma());
            }
            if self.peek().is_none() {
                return Err(self.ended("the list is not closed"));
            }
            nodes.push(self.value()?);
            self.skip_space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => {
                    self.at += 1;
                    return Ok(Value::List(nodes));
                }
                Some(_) => return Err(self.unexpected("`,` or `]`")),
                None => return Err(self.ended("the list is not closed")),
            }
        }
    }

    fn string(&mut self) -> Result<Cow<'a, str>, Fault> {
        self.at += 1;
        let mut out = Cow::Borrowed("");
        loop {
            let rest = &self.text[self.at..];
            let Some(stop) = rest.bytes().position(|byte| byte == b'"' || byte == b'\\' || byte < 0x20) else {
                self.at = self.text.len();
                return Err(self.ended("a string is not closed"));
            };
            if out.is_empty() {
                out = Cow::Borrowed(&rest[..stop]);
            } else {
                out.to_mut().push_str(&rest[..stop]);
            }
            self.at += stop;
            match rest.as_bytes()[stop] {
                b'"' => {
                    self.at += 1;
                    return Ok(out);
                }
                b'\\' => out.to_mut().push(self.escape()?),
                _ => {
                    let hint = "write a line break as `\\n` and a tab as `\\t`; or the string is not closed";
                    return Err(Fault::new(self.at, "a control character inside a string").hint(hint));
                }
            }
        }
    }

    fn escape(&mut self) -> Result<char, Fault> {
        let start = self.at;
        let Some(letter) = self.text.as_bytes().get(self.at + 1) else {
            self.at = self.text.len();
            return Err(self.ended("a string is not closed"));
        };
        let plain = match letter {
            b'"' => '"',
            b'\\' => '\\',
            b'/' => '/',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return self.unicode_escape(),
            _ => return Err(Fault::new(start, "an unknown escape in a string").hint("write a backslash as `\\\\`")),
        };
        self.at += 2;
        Ok(plain)
    }

    /// Lone surrogates become the replacement character: they are invalid text, but should not make the file unreadable.
    fn unicode_escape(&mut self) -> Result<char, Fault> {
        let high = self.hex_escape()?;
        if (0xd800..0xdc00).contains(&high) && self.text[self.at..].starts_with("\\u") {
            let back = self.at;
            let low = self.hex_escape()?;
            if (0xdc00..0xe000).contains(&low) {
                let code = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
                return Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            self.at = back;
        }
        Ok(char::from_u32(high).unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    fn hex_escape(&mut self) -> Result<u32, Fault> {
        let digits = self.text.as_bytes().get(self.at + 2..self.at + 6);
        let code = digits
            .filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u32::from_str_radix(digits, 16).ok());
        match code {
            Some(code) => {
                self.at += 6;
                Ok(code)
            }
            None => Err(Fault::new(self.at, "`\\u` needs four hexadecimal digits")),
        }
    }

    fn number(&mut self) -> Result<Value<'a>, Fault> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        let leading_zero = self.peek() == Some(b'0');
        let whole = self.digits();
        let mut right = whole > 0 && !(leading_zero && whole > 1);
        if self.peek() == Some(b'.') {
            self.at += 1;
            right &= self.digits() > 0;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            right &= self.digits() > 0;
        }
        let spelled = &self.text[start..self.at];
        if right {
            Ok(Value::Number(spelled))
        } else {
            Err(Fault::new(start, format!("{} is not a JSON number", quote(spelled))))
        }
    }

    fn digits(&mut self) -> usize {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        self.at - start
    }

    fn word(&mut self, word: &str, value: Value<'a>) -> Result<Value<'a>, Fault> {
        let rest = &self.text[self.at..];
        if rest.starts_with(word) && !rest[word.len()..].starts_with(|c: char| c.is_alphanumeric()) {
            self.at += word.len();
            return Ok(value);
        }
        Err(if word.starts_with(rest) { self.ended("a value is cut off") } else { self.unexpected("a value") })
    }

    fn ended(&self, what: &str) -> Fault {
        Fault::new(self.text.len().max(self.at), format!("the file ends too early: {what}"))
            .hint("the file is cut off, or a bracket or quote is missing")
    }

    fn trailing_comma(&self) -> Fault {
        Fault::new(self.at, "a comma before the closing bracket").hint("remove the comma")
    }

    fn unexpected(&self, wanted: &str) -> Fault {
        let found = self.text[self.at..].chars().next().unwrap_or(' ');
        let fault = Fault::new(self.at, format!("expected {wanted}, found {}", quote(&found.to_string())));
        match found {
            '/' | '#' => fault.hint("JSON has no comments"),
            '\'' => fault.hint("JSON only allows double quotes"),
            _ => fault,
        }
    }
}
