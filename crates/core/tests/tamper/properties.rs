//! What holds for every change.

use std::collections::BTreeMap;

use proptest::prelude::*;
use verdone_core::debris::debris;
use verdone_core::source::{Language, Source};
use verdone_core::tamper::{Change, Context, Held, HeldFiles, Touched, deciders, gate_reach, report, said};

use crate::table::{Case, all};

const LANGUAGES: [(Language, &str); 6] = [
    (Language::Rust, "tests/a.rs"),
    (Language::JavaScript, "a.test.ts"),
    (Language::Python, "test_a.py"),
    (Language::Go, "a_test.go"),
    (Language::Ruby, "a_spec.rb"),
    (Language::Shell, "test/a.bats"),
];

/// Pieces that mean something to one of the readers, and some that mean nothing to any.
fn hostile() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "#[test]",
        "fn a() {",
        "}",
        "{",
        "(",
        ")",
        "it(\"a\", () => {",
        "});",
        "describe.only('x', ",
        "`",
        "${",
        "\"",
        "'",
        "'''",
        "\"\"\"",
        "r#\"",
        "\"#",
        "/*",
        "*/",
        "//",
        "#",
        "\n",
        "\n    ",
        "\t",
        "def test_a():",
        "@pytest.mark.skip",
        "class TestX:",
        "func TestA(t *testing.T) {",
        "t.Skip()",
        "it 'x' do",
        "end",
        "<<EOF",
        "<<~X",
        "EOF",
        "@test \"a\" {",
        "[ 1 -eq 1 ]",
        "assert!(true",
        "assert x == x",
        "expect(1).toBe(1)",
        "é",
        "→",
        "\u{0}",
        "\\",
        "/",
        "[",
        "]",
        "=begin",
        "=end",
        "%w[",
        "$(",
        "it.each`a",
        "#![cfg(x)]",
        "mod a;",
        "return;",
        "except: pass",
        ",",
        ";",
        "|| true",
        "#{",
    ]);
    prop::collection::vec(pieces, 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_panics_whatever_the_text(old in hostile(), new in hostile(), bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        for (language, path) in LANGUAGES {
            let source = Source::read(language, &new);
            prop_assert_eq!(source.code().len(), new.len());
            let _ = report(&[Change { path, old: Some(old.as_bytes()), new: Some(new.as_bytes()), old_path: None }], &Context::default());
            let _ = report(&[Change { path, old: Some(&bytes), new: Some(new.as_bytes()), old_path: Some("x/y.rs") }], &Context::default());
            let _ = debris(path, &new, &[1, 2, 3]);
        }
        let files: BTreeMap<String, Option<String>> =
            [("package.json", &new), ("Makefile", &old), ("a/b/a.sh", &new), ("a/b/Makefile", &new), ("a/b/tests/test_a.py", &old)]
                .map(|(path, text)| (path.to_owned(), Some(text.clone())))
                .into();
        let held: HeldFiles = files.iter().map(|(path, text)| (path.clone(), text.clone().map(Held::Text))).collect();
        let found = deciders(&[new.clone(), "make x; npm test; sh a.sh; pytest tests/test_a.py".to_owned()], "a/b", &held);
        for path in ["package.json", "a/b/Makefile", "a/b/pyproject.toml", "a/b/a.sh"] {
            let _ = found.put_back(&[Touched { path, existed: true, old: Some(&old), new: Some(&new) }], &held, &|_| false);
        }
        let _ = gate_reach(&[new, "make x; npm test".to_owned()], "a/b", &files);
        let _ = said(&old);
    }

    #[test]
    fn a_file_against_itself_is_silent(text in hostile()) {
        for (_, path) in LANGUAGES {
            let same = Change { path, old: Some(text.as_bytes()), new: Some(text.as_bytes()), old_path: None };
            prop_assert_eq!(report(&[same], &Context::default()), vec![]);
        }
    }

    #[test]
    fn the_order_of_changes_does_not_matter(seed in any::<u64>()) {
        let cases = all();
        let mut paths = std::collections::BTreeSet::new();
        let some = cases.iter().skip(seed as usize % 150).take(20).flat_map(Case::changes);
        // A path changes once.
        let mut changes: Vec<Change<'_>> = some.filter(|change| paths.insert(change.path)).collect();
        let context = Context::default();
        let first = report(&changes, &context);
        let turn = seed as usize % changes.len();
        changes.rotate_left(turn);
        changes.reverse();
        prop_assert_eq!(report(&changes, &context), first);
    }
}

#[test]
fn blanks_and_comments_alone_are_silent() {
    for case in all() {
        for (path, old, _) in &case.files {
            let (Some(text), Some(language)) = (old, old.as_ref().and_then(|text| Language::of(path, text))) else { continue };
            let sign = match language {
                Language::Rust | Language::JavaScript | Language::Go => "//",
                Language::Python | Language::Ruby | Language::Shell => "#",
            };
            let lines: Vec<String> =
                text.lines().map(|line| format!("{line}  \n\n{}{sign} assert nothing, skip it\n", " ".repeat(40))).collect();
            // The first line may say which program reads it.
            let new = lines.concat();
            let change = Change { path, old: Some(text.as_bytes()), new: Some(new.as_bytes()), old_path: None };
            let context = Context {
                gates: gate_reach(&["scripts/test; npm test; make test".to_owned()], "", &BTreeMap::default()),
                ..Context::default()
            };
            assert_eq!(report(&[change], &context), vec![], "{}: {path}\n{new}", case.name);
        }
    }
}

#[test]
fn deep_nesting_ends_and_overflows_nothing() {
    let table = [
        ("it('a',()=>{", "a.test.ts"),
        ("describe('a',()=>{", "a.test.ts"),
        ("`${", "a.test.ts"),
        ("=/[ ", "a.test.ts"),
        ("#[cfg(x)] mod a{#[test] fn b(){", "tests/a.rs"),
        ("#[test] fn b(){assert!(", "tests/a.rs"),
        ("describe 'a' do\n", "a_spec.rb"),
        ("def test_a():\n ((", "test_a.py"),
        ("func TestA(t){\n", "a_test.go"),
        ("\"$(", "test/a.bats"),
    ];
    for (piece, path) in table {
        let text = piece.repeat(60_000 / piece.len());
        let alarms = report(&[Change { path, old: None, new: Some(text.as_bytes()), old_path: None }], &Context::default());
        assert!(alarms.len() < 10, "{piece}: {}", alarms.len());
    }
}
