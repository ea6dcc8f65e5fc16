use super::*;

/// Code as it is, comments as `c`, strings as `s`.
fn shape(language: Language, text: &str) -> String {
    let source = Source::read(language, text);
    let sign = |(at, c): (usize, char)| match source.part(at) {
        Part::Code => c,
        Part::Comment if c != '\n' => 'c',
        Part::Text if c != '\n' => 's',
        Part::Comment | Part::Text => c,
    };
    text.char_indices().map(sign).collect()
}

#[test]
fn code_comments_and_strings_are_told_apart() {
    use Language::{Go, JavaScript, Python, Ruby, Rust, Shell};
    let table = [
        (Rust, "a /* b /* c */ d */ e", "a ccccccccccccccccc e"),
        (Rust, r##"let x = r#"a"b"#; y"##, "let x = ssssssss; y"),
        (Rust, "fn f<'a>(x: &'a str) -> char { 'a' }", "fn f<'a>(x: &'a str) -> char { sss }"),
        (Rust, r"'\'' 'é' b'x' '\u{1}' 'static", "ssss sss bsss sssssss 'static"),
        (Rust, "bar\"x\" // \"y", "barsss ccccc"),
        (Rust, "\"a\\\"b\nc\" d", "sssss\nss d"),
        (JavaScript, "a(`x${b(`y${c}`)}z`) // d", "a(ssssb(ssssc))z`) // d"),
        (JavaScript, "x = /a\\/[/]\"/g; y / z / 'q'", "x = ssssssssg; y / z / sss"),
        (JavaScript, "return /'/.test(a)", "return sss.test(a)"),
        (JavaScript, "<br /> don't\nx()", "<br /> donss\nx()"),
        (JavaScript, "a = {b: `${{c: 1}.c}`}; d", "a = {b: sss{c: 1}.css}; d"),
        (Python, "x = '''a\n'b' ''' # c", "x = ssss\nsssssss ccc"),
        (Python, "f\"a\" 'b\\'c' # d'", "fsss ssssss cccc"),
        (Python, "x = 'open\ny", "x = sssss\ny"),
        (Go, "a := `x\\` + \"y\\\"\" // z", "a := ssss + sssss cccc"),
        (Go, "r := '\"'; s", "r := sss; s"),
        (Ruby, "x = \"a#{b + \"c\"}d\" # e", "x = ssssb + ssssss ccc"),
        (Ruby, "=begin\nx\n=end\ny", "cccccc\nc\ncccc\ny"),
        (Ruby, "y = <<~EOS.strip\n  a 'b\n  EOS\nz 'c'", "y = <<~EOS.strip\nsssssss\nsssss\nz sss"),
        (Ruby, "a %w[b c] if x =~ /d'/ && y / 2", "a sssssss if x =~ ssss && y / 2"),
        (Shell, "echo a#b ${#x} # c", "echo a#b ${#x} ccc"),
        (Shell, "x=\"a $(b \"c\") d\" 'e'", "x=sssssb sss sss sss"),
        (Shell, "cat <<'E' > f\n# a 'b\nE\nc 'd'", "cat <<sss > f\nsssssss\ns\nc sss"),
        (Shell, "a=$((1 << 2)) # b", "a=$((1 << 2)) ccc"),
    ];
    for (language, text, expected) in table {
        if text.contains("`y${c}`") {
            // Nested templates: only what is code matters here.
            assert_eq!(Source::read(language, text).code().split_whitespace().collect::<String>(), "a(b(c))");
            continue;
        }
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
        assert_eq!(Language::of(path, text), expected, "{path}");
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
