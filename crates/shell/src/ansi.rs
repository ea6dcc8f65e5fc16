//! Backslash escapes of `$'...'`, `echo -e` and `printf`.

/// Decodes escapes; other text is unchanged.
pub(super) fn decode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        let Some(escape) = rest.next() else {
            out.push('\\');
            break;
        };
        match escape {
            'n' => out.push('\n'),
            't' => out.push('\t'),
            'r' => out.push('\r'),
            'a' => out.push('\u{7}'),
            'b' => out.push('\u{8}'),
            'e' | 'E' => out.push('\u{1b}'),
            'f' => out.push('\u{c}'),
            'v' => out.push('\u{b}'),
            'x' => push_code(&mut out, &mut rest, 16, 2, 0),
            'u' => push_code(&mut out, &mut rest, 16, 4, 0),
            'U' => push_code(&mut out, &mut rest, 16, 8, 0),
            'c' => {
                let control = rest.next().map_or(0, |c| c as u32 & 0x1f);
                out.extend(char::from_u32(control));
            }
            digit @ '0'..='7' => {
                let first = digit.to_digit(8).unwrap_or_default();
                push_code(&mut out, &mut rest, 8, if digit == '0' { 3 } else { 2 }, first);
            }
            other @ ('\\' | '\'' | '"' | '?') => out.push(other),
            other => out.extend(['\\', other]),
        }
    }
    out
}

fn push_code(out: &mut String, rest: &mut std::iter::Peekable<std::str::Chars<'_>>, radix: u32, most: usize, start: u32) {
    let mut code = start;
    for _ in 0..most {
        let Some(digit) = rest.peek().and_then(|c| c.to_digit(radix)) else { break };
        rest.next();
        code = code.saturating_mul(radix).saturating_add(digit);
    }
    out.extend(char::from_u32(code));
}
