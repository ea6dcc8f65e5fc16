use proptest::prelude::*;

use super::*;

const BASE: &str = "\
pub fn add(a: i64, b: i64) -> i64 {
    a + b
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adds() {
        assert_eq!(add(1, 2), 3);
    }
}
";

fn read(source: &str) -> InlineTests<'_> {
    InlineTests::read(source.as_bytes()).unwrap()
}

/// The attempt's file with the base's test items.
fn clean(base: &str, attempt: &str) -> String {
    read(attempt).with_tests_of(&read(base)).unwrap()
}

/// The base's file with the attempt's test items.
fn tests_only(base: &str, attempt: &str) -> String {
    read(base).with_tests_of(&read(attempt)).unwrap()
}

fn names(source: &str) -> Vec<String> {
    let read = InlineTests::read(source.as_bytes()).unwrap();
    read.file.tests.iter().map(|item| source[item.range.clone()].to_owned()).collect()
}

#[test]
fn the_attempt_gets_the_tests_of_the_base_and_the_other_way_round() {
    let attempt = BASE.replace("a + b", "a - b").replace("assert_eq!(add(1, 2), 3)", "assert!(true)") + "\npub fn sub() {}\n";
    let pristine = clean(BASE, &attempt);
    assert_eq!(pristine, BASE.replace("a + b", "a - b") + "\npub fn sub() {}\n");
    let proof = tests_only(BASE, &attempt);
    assert_eq!(proof, BASE.replace("assert_eq!(add(1, 2), 3)", "assert!(true)"));
}

#[test]
fn tests_that_are_gone_come_back_and_new_ones_are_left_out() {
    let (code, tests) = BASE.split_at(BASE.find("#[cfg(test)]").unwrap());
    assert_eq!(clean(BASE, code), format!("{code}\n{tests}"));
    assert_eq!(clean(code, BASE), code);
    assert_eq!(tests_only(code, BASE), format!("{code}\n{tests}"));
    // Moved to a separate file: the declaration is a test item too.
    let moved = format!("{code}#[cfg(test)]\n#[path = \"smoke.rs\"]\nmod tests;\n");
    assert_eq!(clean(BASE, &moved), BASE);
    assert_eq!(tests_only(BASE, &moved), moved);
    // The file does not end with a newline.
    assert_eq!(clean(BASE, "fn a() {} // b"), format!("fn a() {{}} // b\n\n{tests}"));
}

#[test]
fn items_of_every_kind_are_found() {
    for (source, count) in [
        ("#[test]\nfn a() {}\nfn b() {}\n#[tokio::test(flavor = \"x\")]\nasync fn c() {}\n", 2),
        ("#[cfg(all(test, unix))]\nmod a { fn x() {} }\n#[cfg(any(feature = \"x\", test))] use a::{b, c};\n", 2),
        ("#[cfg(not(test))]\nmod a {}\n#[cfg(feature = \"test\")] fn b() {}\n#[cfg(not(any(test, unix)))] fn c() {}\n", 0),
        ("#[cfg_attr(test, derive(Debug))]\nstruct A;\n#[cfg_attr(unix, test)]\nfn b() {}\n", 1),
        ("// #[cfg(test)] mod a {}\n/* #[test] /* nested */ fn b() {} */\nconst A: &str = \"#[test] fn c() {}\";\n", 0),
        (
            "const A: &str = r##\"\"# #[cfg(test)] mod a {} \"##;\nconst B: u8 = b'\"';\nconst C: char = '\\'';\n#[test] fn d<'a>(_: &'a str) {}\n",
            1,
        ),
        ("/// Doc.\n#[rustfmt::skip]\n#[cfg(test)]\n/** More. */\npub(crate) const fn a() -> [u8; { 3 }] { [0; 3] }\n", 1),
        ("mod inner {\n    #[test]\n    fn a() {}\n    impl X { #[cfg(test)] fn b(&self) {} }\n}\n", 2),
        (
            "proptest! {\n    #[test]\n    fn a(x in 0..1) {}\n}\nproptest::proptest! { #[test] fn b() {} }\nmacro_rules! m { () => { #[test] fn c() {} }; }\n",
            2,
        ),
        ("#!/usr/bin/env run\n#[test] fn a() {}\n", 1),
        ("\u{feff}#![allow(x)]\r\n#[cfg(test)]\r\nmod a;\r\n", 1),
        (
            "fn f() -> A<{ N }, T> where T: Copy, { }\n#[test] fn r#mod() {}\nstatic X: S = S { a: 1 };\nextern \"C\" { fn x(); }\n",
            1,
        ),
        ("", 0),
    ] {
        assert_eq!(names(source).len(), count, "{source}");
        assert_eq!(has_inline_tests(source.as_bytes()), count > 0, "{source}");
        assert_eq!(clean(source, source), source);
    }
    assert!(InlineTests::read(b"#![cfg(test)]\nfn a() {}\n").unwrap().is_whole_file());
}

#[test]
fn an_item_keeps_its_place_in_its_module() {
    let base = "mod inner {\n    fn x() {}\n    #[test]\n    fn a() { x(); }\n}\n";
    let attempt = "mod inner {\n    fn x() { }\n}\n";
    assert_eq!(clean(base, attempt), "mod inner {\n    fn x() { }\n#[test]\n    fn a() { x(); }\n}\n");
    assert_eq!(read("fn x() {}\n").with_tests_of(&read(base)), Err(Unreadable::NoPlace));
}

#[test]
fn new_modules_are_declared_where_their_tests_are_proven() {
    let (base, attempt) = ("pub fn a() {}\n", "mod b;\npub fn a() {}\npub fn c() {}\n");
    let [base, attempt] = [base, attempt].map(|source| InlineTests::read(source.as_bytes()).unwrap());
    assert_eq!(base.with_tests_and_modules_of(&attempt).unwrap(), "pub fn a() {}\n\nmod b;\n");
    assert_eq!(base.with_tests_of(&attempt).unwrap(), "pub fn a() {}\n");
}

#[test]
fn unreadable_files_are_refused() {
    for (source, error) in [
        ("fn a() { \"", Unreadable::NotClosed),
        ("/* /* */", Unreadable::NotClosed),
        ("r#\"\"", Unreadable::NotClosed),
        ("fn a() {", Unreadable::Brackets),
        ("fn a() }", Unreadable::Brackets),
        ("fn a( ]", Unreadable::Brackets),
        ("fn a()", Unreadable::NoEnd),
    ] {
        assert_eq!(InlineTests::read(source.as_bytes()).map(|_| ()), Err(error), "{source}");
    }
    assert_eq!(InlineTests::read(b"\xff").map(|_| ()), Err(Unreadable::NotText));
    assert!(has_inline_tests(b"#[test] fn a() { \xff }") && !has_inline_tests(b"\xff fn a() {"));
    // Large enough that anything quadratic would take minutes.
    let garbage: Vec<u8> = (0..1_000_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    for text in [
        "(".repeat(1_000_000),
        "mod a {".repeat(150_000) + &"}".repeat(150_000),
        "#[cfg(not(".repeat(100_000),
        format!("#[cfg({}test{})] fn a() {{}}", "not(".repeat(200_000), ")".repeat(200_000)),
        format!("#[{}test{}] fn a() {{}}", "cfg_attr(a, ".repeat(80_000), ")".repeat(80_000)),
        format!("m! {{ {}test{} }}", "#[cfg(".repeat(100_000), ")]".repeat(100_000)),
        "#[test] fn a() {}\n".repeat(50_000),
        "'a ".repeat(300_000),
        "r#\"".to_owned() + &"\"".repeat(900_000),
        "/*".repeat(500_000),
        format!("impl A<{}> {{ {} }}", "B,".repeat(200_000), "#[test] fn a() {}".repeat(30_000)),
        String::from_utf8_lossy(&garbage).into_owned(),
    ] {
        if let Ok(read) = InlineTests::read(text.as_bytes()) {
            let _ = read.with_tests_of(&InlineTests::none()).unwrap();
            let _ = InlineTests::none().with_tests_of(&read);
        }
    }
}

fn any_item() -> impl Strategy<Value = String> {
    let name = || prop::sample::select(vec!["a", "b", "tests"]);
    prop_oneof![
        name().prop_map(|name| format!("pub fn {name}() -> char {{ '}}' }}\n")),
        (name(), 0..3).prop_map(|(name, n)| format!("#[test]\nfn {name}() {{ assert_eq!({n}, 1, \"}}\"); }}\n")),
        (name(), 0..3).prop_map(|(name, n)| format!("/// Doc.\n#[cfg(test)]\nmod {name} {{ const N: u8 = {n}; }}\n")),
        name().prop_map(|name| format!("#[cfg(test)] use {name}::{{x, y}};")),
        name().prop_map(|name| format!("mod {name};\n")),
        name().prop_map(|name| format!("impl X {{ #[cfg(test)] fn {name}(&self) {{}} }}\n")),
        Just("// #[test] fn c() {}\n".to_owned()),
        Just("const S: &str = r#\"#[cfg(test)] mod d {}\"#;\n".to_owned()),
    ]
}

fn any_file() -> impl Strategy<Value = String> {
    prop::collection::vec(any_item(), 0..8).prop_map(|items| items.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_graft_has_exactly_the_tests_of_the_other_side(base in any_file(), attempt in any_file()) {
        let [one, other] = [&base, &attempt].map(|source| InlineTests::read(source.as_bytes()).unwrap());
        prop_assert_eq!(one.with_tests_of(&one).unwrap(), base.clone());
        if let Ok(grafted) = one.with_tests_of(&other) {
            let read = InlineTests::read(grafted.as_bytes()).unwrap();
            prop_assert!(read.same_as(&other), "{}", grafted);
            prop_assert_eq!(read.with_tests_of(&other).unwrap(), grafted.clone());
            // The rest is untouched.
            let rest = |tests: &InlineTests<'_>| {
                let bare = tests.with_tests_of(&InlineTests::none()).unwrap();
                bare.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
            };
            prop_assert_eq!(rest(&read), rest(&one));
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[#\\[\\](){}'\"/*a-z!;:<> \n\\\\r]{0,80}", bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        for source in [text.as_bytes(), &bytes] {
            let _ = has_inline_tests(source);
            if let Ok(read) = InlineTests::read(source) {
                let again = read.with_tests_of(&read).unwrap();
                prop_assert_eq!(again.as_bytes(), source);
            }
        }
    }
}
