use super::*;

/// The code unchanged, each comment as `c`, each string as `s`.
fn shape(language: Language, text: &str) -> String {
    let source = Source::read(language, text);
    let mut shape = String::new();
    for (at, c) in text.char_indices() {
        let begins = at == 0 || source.part(at - 1) != source.part(at);
        match source.part(at) {
            Part::Code => shape.push(c),
            Part::Comment if begins => shape.push('c'),
            Part::Text if begins => shape.push('s'),
            Part::Comment | Part::Text => {}
        }
    }
    shape
}

#[test]
fn code_comments_and_strings_are_told_apart() {
    use Language::{Go, JavaScript, Python, Ruby, Rust, Shell};
    let table = [
        (Rust, "a /* b /* c */ d */ e", "a c e"),
        (Rust, r##"let x = r#"a"b"#; y"##, "let x = s; y"),
        (Rust, "fn f<'a>(x: &'a str) -> char { 'a' }", "fn f<'a>(x: &'a str) -> char { s }"),
        (Rust, r"'\'' 'é' b'x' '\u{1}' 'static", "s s bs s 'static"),
        (Rust, "bar\"x\" // \"y", "bars c"),
        (Rust, "\"a\\\"b\nc\" d", "s d"),
        (JavaScript, "a(`x${b(`y${c}`)}z`) // d", "a(sb(scs)s) c"),
        (JavaScript, "x = /a\\/[/]\"/g; y / z / 'q'", "x = sg; y / z / s"),
        (JavaScript, "return /'/.test(a)", "return s.test(a)"),
        (JavaScript, "<br /> don't\nx()", "<br /> dons\nx()"),
        (JavaScript, "a = {b: `${{c: 1}.c}`}; d", "a = {b: s{c: 1}.cs}; d"),
        (Python, "x = '''a\n'b' ''' # c", "x = s c"),
        (Python, "f\"a\" 'b\\'c' # d'", "fs s c"),
        (Python, "x = 'open\ny", "x = s\ny"),
        (Go, "a := `x\\` + \"y\\\"\" // z", "a := s + s c"),
        (Go, "r := '\"'; s", "r := s; s"),
        (Ruby, "x = \"a#{b + \"c\"}d\" # e", "x = sb + s c"),
        (Ruby, "=begin\nx\n=end\ny", "c\ny"),
        (Ruby, "y = <<~EOS.strip\n  a 'b\n  EOS\nz 'c'", "y = <<~EOS.strip\nsz s"),
        (Ruby, "a %w[b c] if x =~ /d'/ && y / 2", "a s if x =~ s && y / 2"),
        (Shell, "echo a#b ${#x} # c", "echo a#b ${#x} c"),
        (Shell, "x=\"a $(b \"c\") d\" 'e'", "x=sb s s"),
        (Shell, "cat <<'E' > f\n# a 'b\nE\nc 'd'", "cat <<s > f\nsc s"),
        (Shell, "a=$((1 << 2)) # b", "a=$((1 << 2)) c"),
    ];
    for (language, text, expected) in table {
        assert_eq!(shape(language, text), expected, "{language:?} {text}");
    }
}

#[test]
fn languages_are_known_by_name_or_first_line() {
    for (path, text, expected) in [
        ("a/b.rs", "", Some(Language::Rust)),
        ("x.test.tsx", "", Some(Language::JavaScript)),
        ("t.bats", "", Some(Language::Shell)),
        ("scripts/test", "#!/usr/bin/env bash\n", Some(Language::Shell)),
        ("bin/x", "#!/usr/bin/python3.12 -u\n", Some(Language::Python)),
        ("README", "text", None),
        ("", "", None),
    ] {
        assert_eq!(Language::from_path(path, text), expected, "{path}");
    }
}

#[test]
fn masks_keep_every_offset_and_line() {
    let text = "x = 'ä' # ö\ny = \"\"\"\nü\"\"\"\n";
    let source = Source::read(Language::Python, text);
    for masked in [source.code(), source.without_comments(), source.comments()] {
        assert_eq!(masked.len(), text.len());
        assert_eq!(masked.matches('\n').count(), text.matches('\n').count());
    }
    assert_eq!(source.comments().trim(), "# ö");
    assert!(!source.code().contains('ä') && source.without_comments().contains("'ä'"));
}
