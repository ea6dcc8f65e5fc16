//! A terminal simple enough to trust: carriage return, line feed, erase line, erase below and colours. Anything else fails.

use std::io::{self, Write};

use unicode_width::UnicodeWidthChar;

#[derive(Debug)]
pub(crate) struct Screen {
    width: usize,
    rows: Vec<Vec<char>>,
    row: usize,
    column: usize,
    /// The cursor was just moved to the start of the row.
    returned: bool,
    pub(crate) wrapped: bool,
}

impl Screen {
    pub(crate) fn new(width: usize) -> Self {
        Self { width, rows: vec![Vec::new()], row: 0, column: 0, returned: true, wrapped: false }
    }

    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        let text = std::str::from_utf8(bytes).unwrap();
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            match c {
                '\r' => {
                    self.column = 0;
                    self.returned = true;
                }
                '\n' => self.line_feed(),
                '\x1b' => {
                    assert_eq!(chars.next(), Some('['));
                    let mut last = chars.next().unwrap();
                    while last.is_ascii_digit() || last == ';' {
                        last = chars.next().unwrap();
                    }
                    match last {
                        'K' | 'J' => {
                            assert!(self.returned, "erased in the middle of a row");
                            self.rows[self.row].clear();
                            if last == 'J' {
                                self.rows.truncate(self.row + 1);
                            }
                        }
                        'm' => {}
                        other => panic!("unexpected control sequence {other:?}"),
                    }
                }
                c => self.put(c),
            }
        }
    }

    fn line_feed(&mut self) {
        self.row += 1;
        self.column = 0;
        self.returned = true;
        if self.row == self.rows.len() {
            self.rows.push(Vec::new());
        }
    }

    fn put(&mut self, c: char) {
        assert!(!c.is_control(), "{c:?} reached the terminal");
        let wide = c.width().unwrap_or(0);
        if self.column + wide > self.width {
            self.wrapped = true;
            self.line_feed();
        }
        let row = &mut self.rows[self.row];
        assert!(!self.returned || row.is_empty(), "written over {row:?}");
        self.returned = false;
        row.push(c);
        self.column += wide;
    }

    pub(crate) fn text(&self) -> String {
        let rows: Vec<String> = self.rows.iter().map(|row| row.iter().collect::<String>().trim_end().to_owned()).collect();
        format!("{}\n", rows.join("\n").trim_end())
    }
}

/// A reader that went away.
pub(crate) struct Closed;

impl Write for Closed {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
