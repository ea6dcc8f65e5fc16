//! Computes the output of simple commands, as far as it can be known: enough for `echo ... | sh` and `$(printf ...)`.

use super::ansi;
use super::fragment::{Bit, bits_of, join, origin};
use super::scope::{Scope, Value, text, unknown};
use super::word::{Origin, Word};

/// The output of a program that is not handled elsewhere.
pub(super) fn output_of(name: &str, arguments: &[Word], input: Option<&Value>, files: &[Value], scope: &mut Scope) -> Value {
    match name {
        "echo" => echo(arguments),
        "printf" => match arguments {
            [option, variable, rest @ ..] if option.literal() == Some("-v") => {
                if let Some(variable) = variable.literal() {
                    scope.assign(variable, printf(rest), false);
                } else {
                    scope.doubt_all();
                }
                Value::new()
            }
            _ => printf(arguments),
        },
        "cat" | "tee" => cat(name, arguments, input, files),
        "pwd" => scope.candidates("PWD").first().cloned().unwrap_or_else(unknown),
        "true" | ":" | "false" | "test" | "set" | "shopt" | "shift" | "sleep" | "wait" | "exit" | "return" | "mkdir"
        | "touch" => Value::new(),
        _ => vec![Bit::Any { origin: input.map_or(Origin::Unknown, |input| origin(input)), quoted: false }],
    }
}

/// The text of a process substitution, by its file name in words.
pub(super) fn substituted<'f>(path: &str, files: &'f [Value]) -> Option<&'f Value> {
    path.strip_prefix("/dev/fd/sub-")?.parse::<usize>().ok().and_then(|index| files.get(index))
}

fn cat(name: &str, arguments: &[Word], input: Option<&Value>, files: &[Value]) -> Value {
    let operands: Vec<&Word> = arguments.iter().filter(|word| !word.prefix().starts_with('-') || word.prefix() == "-").collect();
    if name == "tee" || operands.is_empty() || operands.iter().any(|word| word.literal() == Some("-")) {
        return input.cloned().unwrap_or_else(unknown);
    }
    operands
        .iter()
        .flat_map(|word| word.literal().and_then(|path| substituted(path, files)).cloned().unwrap_or_else(unknown))
        .collect()
}

fn echo(arguments: &[Word]) -> Value {
    let is_option = |word: &&Word| {
        word.literal()
            .is_some_and(|text| text.len() > 1 && text.starts_with('-') && text[1..].bytes().all(|b| b"neE".contains(&b)))
    };
    let options = arguments.iter().take_while(is_option).count();
    let escapes = arguments[..options].iter().any(|word| word.prefix().contains('e'));
    let mut value = join(&arguments[options..]);
    if escapes {
        value = value.into_iter().map(decoded).collect();
    }
    if !arguments[..options].iter().any(|word| word.prefix().contains('n')) {
        value.extend(text("\n"));
    }
    value
}

fn decoded(bit: Bit) -> Bit {
    match bit {
        Bit::Text { text, quoted } => Bit::Text { text: ansi::decode(&text), quoted },
        Bit::Any { .. } | Bit::Glob | Bit::One | Bit::Brace(_) | Bit::Split => bit,
    }
}

/// Like `printf`, repeats the format until no arguments are left.
fn printf(arguments: &[Word]) -> Value {
    const MOST: usize = 64;
    let arguments = match arguments {
        [first, rest @ ..] if first.literal() == Some("--") => rest,
        all => all,
    };
    let [format, values @ ..] = arguments else { return Value::new() };
    let Some(format) = format.literal() else { return unknown() };
    let mut values = values.iter().take(MOST);
    let mut out = Value::new();
    loop {
        let before = values.len();
        let mut parts = format.split('%');
        out.extend(text(&ansi::decode(parts.next().unwrap_or_default())));
        while let Some(part) = parts.next() {
            match part.chars().next() {
                Some('s') => out.extend(values.next().map(bits_of).unwrap_or_default()),
                Some('b') => out.extend(values.next().map(bits_of).unwrap_or_default().into_iter().map(decoded)),
                Some(_) => out.extend(values.next().map(|_| unknown()).unwrap_or_default()),
                // Two consecutive percent signs.
                None => {
                    out.extend(text("%"));
                    out.extend(text(&ansi::decode(parts.next().unwrap_or_default())));
                    continue;
                }
            }
            let rest = part.char_indices().nth(1).map_or("", |(at, _)| &part[at..]);
            out.extend(text(&ansi::decode(rest)));
        }
        if values.len() == 0 || values.len() == before {
            break;
        }
    }
    out
}
