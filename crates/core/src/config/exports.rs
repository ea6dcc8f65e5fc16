//! Parses the lines of a shell file that only set a variable: `export NAME=value` and `export NAME="${OTHER:-value}"`. They are never
//! executed; all other lines are reported.

/// One parsed line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Export {
    pub(super) name: String,
    pub(super) value: String,
}

/// The exports of a file, and the numbers of all other lines.
pub(super) fn exports<'e>(text: &str, environment: &dyn Fn(&str) -> Option<&'e str>) -> (Vec<Export>, Vec<usize>) {
    let (mut found, mut others) = (Vec::new(), Vec::new());
    for (n, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        match export(line, environment) {
            Some(export) => found.push(export),
            None => others.push(n + 1),
        }
    }
    (found, others)
}

fn export<'e>(line: &str, environment: &dyn Fn(&str) -> Option<&'e str>) -> Option<Export> {
    let rest = line.strip_prefix("export")?;
    let (name, rest) = name(rest.strip_prefix([' ', '\t'])?.trim_start())?;
    let (value, rest) = match rest.strip_prefix('=')? {
        quoted if quoted.starts_with('"') => {
            let (inside, rest) = double_quoted(&quoted[1..])?;
            (expanded(&inside, environment)?, rest)
        }
        quoted if quoted.starts_with('\'') => {
            let (inside, rest) = quoted[1..].split_once('\'')?;
            (inside.to_owned(), rest)
        }
        bare if bare.starts_with("${") => {
            let (inside, rest) = bare.split_once('}')?;
            (expanded(&[Piece::Open(inside[2..].to_owned())], environment)?, rest)
        }
        bare => {
            let end = bare.find([' ', '\t']).unwrap_or(bare.len());
            if bare[..end].contains(['$', '`', '"', '\'', '\\', ';', '&', '|', '<', '>', '(', ')', '*', '?', '[', '~', '{', '!'])
            {
                return None;
            }
            (bare[..end].to_owned(), &bare[end..])
        }
    };
    // Only a comment may follow the value.
    let over = rest.is_empty() || rest.trim().is_empty() || (rest.starts_with([' ', '\t']) && rest.trim().starts_with('#'));
    (over && !value.contains('\0')).then(|| Export { name: name.to_owned(), value })
}

fn name(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(text.len());
    (end > 0 && !text.starts_with(|c: char| c.is_ascii_digit())).then(|| text.split_at(end))
}

/// The content of double quotes.
#[derive(Debug, PartialEq)]
enum Piece {
    Text(String),
    /// The inside of `${...}`.
    Open(String),
}

fn double_quoted(text: &str) -> Option<(Vec<Piece>, &str)> {
    let mut pieces = Vec::new();
    let mut plain = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => {
                pieces.push(Piece::Text(plain));
                return Some((pieces, &text[at + 1..]));
            }
            '\\' => match chars.next()?.1 {
                escaped @ ('"' | '\\' | '$' | '`') => plain.push(escaped),
                other => plain.extend(['\\', other]),
            },
            '`' => return None,
            '$' => {
                let (inside, _) = text[at..].strip_prefix("${")?.split_once('}')?;
                pieces.push(Piece::Text(std::mem::take(&mut plain)));
                pieces.push(Piece::Open(inside.to_owned()));
                chars.by_ref().take(inside.chars().count() + 2).for_each(drop);
            }
            other => plain.push(other),
        }
    }
    None
}

fn expanded<'e>(pieces: &[Piece], environment: &dyn Fn(&str) -> Option<&'e str>) -> Option<String> {
    let expand = |piece: &Piece| match piece {
        Piece::Text(text) => Some(text.clone()),
        Piece::Open(inside) => {
            let (name, default) = name(inside)?;
            let default = default.strip_prefix(":-")?;
            if default.contains(['$', '`', '"', '\'', '\\', '{']) {
                return None;
            }
            Some(environment(name).filter(|value| !value.is_empty()).unwrap_or(default).to_owned())
        }
    };
    pieces.iter().map(expand).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Option<(String, String)> {
        let environment = |name: &str| (name == "SET").then_some("outer").or((name == "EMPTY").then_some(""));
        let (found, others) = exports(line, &environment);
        assert_eq!(found.len() + others.len(), 1, "{line}");
        found.into_iter().next().map(|export| (export.name, export.value))
    }

    #[test]
    fn plain_exports_are_read() {
        for (line, value) in [
            ("export X=v", "v"),
            ("export X=", ""),
            ("  export\tX=a/b-1.2:c # why", "a/b-1.2:c"),
            ("export X=\"two words\"", "two words"),
            ("export X='a $b `c`'  # why", "a $b `c`"),
            ("export X=\"a \\\"b\\\" \\$c \\n\"", "a \"b\" $c \\n"),
            ("export X=\"${Y:-30}\"", "30"),
            ("export X=${Y:-30}", "30"),
            ("export X=\"${SET:-30}\"", "outer"),
            ("export X=\"${EMPTY:-30}\"", "30"),
            ("export X=\"${Y:-}\"", ""),
            ("export X=\"${Y:-cargo test --all}\"", "cargo test --all"),
            ("export X=\"é${SET:-ü}/${Y:-z}ß\"", "éouter/zß"),
        ] {
            assert_eq!(read(line), Some(("X".to_owned(), value.to_owned())), "{line}");
        }
    }

    #[test]
    fn everything_that_would_have_to_be_executed_is_not() {
        for line in [
            "X=v",
            "exportX=v",
            "export X",
            "export 1X=v",
            "export X=$(rm -rf .)",
            "export X=`id`",
            "export X=\"$(id)\"",
            "export X=\"`id`\"",
            "export X=\"$HOME/x\"",
            "export X=$HOME",
            "export X=\"${Y}\"",
            "export X=\"${Y:=v}\"",
            "export X=\"${Y:-$(id)}\"",
            "export X=\"${Y:-${Z:-v}}\"",
            "export X=v; id",
            "export X=v Y=w",
            "export X=v&id",
            "export X=\"v\"id",
            "export X=\"v\";id",
            "export X='v'; id",
            "export X=\"open",
            "export X=~/x",
            "source other.sh",
            "if true; then",
        ] {
            assert_eq!(read(line), None, "{line}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_line_panics(line in "(export X=)?[\\PC\"'$`{}:\\-\\\\ ]{0,40}") {
            let _ = exports(&line, &|_| None);
        }
    }
}
