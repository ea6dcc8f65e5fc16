use proptest::prelude::*;

use super::*;

fn pristine(kind: Manifest, base: &str, attempt: &str) -> String {
    text(&kind.for_pristine(Some(base.as_bytes()), Some(attempt.as_bytes())).unwrap(), base, attempt)
}

fn proof(kind: Manifest, base: &str, attempt: &str) -> String {
    text(&kind.for_proof(Some(base.as_bytes()), Some(attempt.as_bytes())).unwrap(), base, attempt)
}

fn text(merged: &Merged, base: &str, attempt: &str) -> String {
    match merged {
        Merged::Base => base.to_owned(),
        Merged::Attempt => attempt.to_owned(),
        Merged::Text(text) => text.clone(),
    }
}

fn changed(kind: Manifest, base: &str, attempt: &str) -> Vec<String> {
    let keys = kind.protected_change(Some(base.as_bytes()), Some(attempt.as_bytes()));
    keys.unwrap_or_default().iter().map(KeyPath::to_string).collect()
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap()
}

fn toml(text: &str) -> ::toml::Table {
    text.parse().unwrap()
}

#[test]
fn scripts_and_tools_are_protected_and_dependencies_are_work() {
    let base =
        r#"{"name": "a", "version": "1.0.0", "scripts": {"test": "jest"}, "jest": {"bail": 1}, "dependencies": {"x": "1"}}"#;
    let attempt = r#"{"name": "a", "version": "1.1.0", "type": "module", "exports": {".": "./a.js"}, "scripts": {"test": "true"},
        "jest": {"testFailureExitCode": 0}, "dependencies": {"x": "2", "y": "1"}, "unknownTool": {}}"#;
    assert_eq!(
        changed(Manifest::PackageJson, base, attempt),
        ["jest.bail", "jest.testFailureExitCode", "scripts.test", "unknownTool"]
    );
    let expected = r#"{"name": "a", "version": "1.1.0", "type": "module", "exports": {".": "./a.js"}, "scripts": {"test": "jest"},
        "jest": {"bail": 1}, "dependencies": {"x": "2", "y": "1"}}"#;
    assert_eq!(json(&pristine(Manifest::PackageJson, base, attempt)), json(expected));
    let expected = r#"{"name": "a", "version": "1.0.0", "scripts": {"test": "true"}, "jest": {"testFailureExitCode": 0},
        "dependencies": {"x": "1"}, "unknownTool": {}}"#;
    assert_eq!(json(&proof(Manifest::PackageJson, base, attempt)), json(expected));
}

#[test]
fn work_alone_keeps_the_text_of_the_attempt() {
    let base = "{\n\t\"name\": \"a\",\n\t\"scripts\": {}\n}\n";
    let attempt = "{\n\t\"name\":   \"a\",\n\t\"version\": \"2.0.0\", \"scripts\": {}\n}\n";
    let merged =
        |one: &str, other: &str| Manifest::PackageJson.for_pristine(Some(one.as_bytes()), Some(other.as_bytes())).unwrap();
    assert_eq!(merged(base, attempt), Merged::Attempt);
    assert_eq!(merged(base, base), Merged::Attempt);
    let both = attempt.replace("\"scripts\": {}", "\"scripts\": {\"test\": \"true\"}");
    let Merged::Text(text) = merged(base, &both) else { panic!("both parts changed") };
    assert!(text.starts_with("{\n\t\"name\": \"a\",\n"), "{text}");
}

#[test]
fn keys_are_compared_as_they_are_read() {
    let base = r#"{"scripts": {"test": "jest"}}"#;
    assert_eq!(changed(Manifest::PackageJson, base, r#"{"scr\u0069pts": {"test": "true"}}"#), ["scripts.test"]);
    for twice in [
        r#"{"scripts": {"test": "true"}, "scripts": {"test": "jest"}}"#,
        r#"{"scripts": {"test": "true"}, "scr\u0069pts": {"test": "jest"}}"#,
        r#"{"scripts": {"test": "jest", "test": "jest"}}"#,
    ] {
        let result = Manifest::PackageJson.for_pristine(Some(base.as_bytes()), Some(twice.as_bytes()));
        assert!(matches!(result, Err(ManifestError::DuplicateKey(_))), "{twice}");
        assert_eq!(changed(Manifest::PackageJson, base, twice), ["the whole file"]);
    }
    // A byte order mark and line ends make no difference.
    let marked = "\u{feff}{\r\n\"scripts\": {\"test\": \"jest\"}}";
    assert_eq!(changed(Manifest::PackageJson, base, marked), Vec::<String>::new());
    let cargo = "\u{feff}[package]\r\nname = \"a\"\r\n";
    assert_eq!(changed(Manifest::CargoToml, "[package]\nname = \"b\"\n", cargo), Vec::<String>::new());
}

#[test]
fn added_members_are_work_and_removed_ones_are_not() {
    let list = |members: &str| format!("{{\"workspaces\": [{members}]}}");
    let base = list("\"a\", \"b\"");
    assert_eq!(changed(Manifest::PackageJson, &base, &list("\"c\", \"b\", \"a\"")), Vec::<String>::new());
    assert_eq!(changed(Manifest::PackageJson, "{}", &list("\"a\"")), Vec::<String>::new());
    for attempt in [list("\"b\", \"c\""), list("\"a\", \"b\", \"c\", \"!a\"")] {
        assert_eq!(changed(Manifest::PackageJson, &base, &attempt), ["workspaces"]);
        assert_eq!(json(&pristine(Manifest::PackageJson, &base, &attempt)), json(&list("\"a\", \"b\", \"c\"")));
    }
    assert_eq!(json(&proof(Manifest::PackageJson, &base, &list("\"b\", \"c\""))), json(&list("\"b\"")));
    let base = "[workspace]\nmembers = [\"a\", \"b\"]\n";
    let attempt = "[workspace]\nmembers = [\"a\", \"b\", \"c\"]\ndefault-members = [\"b\"]\n";
    assert_eq!(changed(Manifest::CargoToml, base, attempt), ["workspace.default-members"]);
    assert_eq!(toml(&pristine(Manifest::CargoToml, base, attempt)), toml("[workspace]\nmembers = [\"a\", \"b\", \"c\"]\n"));
}

#[test]
fn settings_of_lints_profiles_and_targets_are_protected_in_any_spelling() {
    let base = "[package]\nname = \"a\"\nversion = \"0.1.0\"\n\n[lints.rust]\nunused = \"deny\"\n\n[target.'cfg(unix)'.dependencies]\nx = \"1\"\n";
    for (attempt, key) in [
        (base.replace("deny", "allow"), "lints.rust.unused"),
        (base.replace("[lints.rust]\nunused", "[lints]\nrust.unused").replace("deny", "allow"), "lints.rust.unused"),
        (
            base.replace("[lints.rust]\nunused = \"deny\"", "[lints]\nrust = { \"un\\u0075sed\" = \"allow\" }"),
            "lints.rust.unused",
        ),
        (format!("profile.test.overflow-checks = false\n{base}"), "profile.test"),
        (base.replace("version", "autotests = false\nversion"), "package.autotests"),
        (base.replace("version", "build = \"x.rs\"\nversion"), "package.build"),
        (format!("{base}\n[target.'cfg(unix)']\n\"runner\" = \"true\"\n"), "target.\"cfg(unix)\".runner"),
        (format!("{base}\n[lib]\ntest = false\n"), "lib.test"),
        (format!("{base}\n[[bin]]\nname = \"b\"\n\"te\\u0073t\" = false\n"), "bin.b.test"),
        (format!("{base}\n[[test]]\nname = \"t\"\nharness = false\n"), "test"),
        (format!("{base}\n[patch.crates-io]\nx = {{ path = \"x\" }}\n"), "patch.crates-io"),
        (base.replace("x = \"1\"", "x = { path = \"fake\" }"), "target.\"cfg(unix)\".dependencies.x"),
    ] {
        assert_eq!(changed(Manifest::CargoToml, base, &attempt), [key], "{attempt}");
        assert_eq!(toml(&proof(Manifest::CargoToml, base, &attempt)).get("package").unwrap()["name"].as_str(), Some("a"));
    }
    for attempt in [
        base.replace("0.1.0", "0.2.0"),
        format!("{base}y = {{ path = \"y\" }}\n"),
        format!("{base}\n[features]\nz = []\n"),
        format!("{base}\n[[bin]]\nname = \"b\"\npath = \"b.rs\"\n"),
        base.replace("x = \"1\"", "x = { version = \"2\", features = [\"f\"] }"),
        format!("dev-dependencies.z.version = \"1\"\n{base}"),
    ] {
        assert_eq!(changed(Manifest::CargoToml, base, &attempt), Vec::<String>::new(), "{attempt}");
        assert_eq!(toml(&pristine(Manifest::CargoToml, base, &attempt)), toml(&attempt));
        assert_eq!(toml(&proof(Manifest::CargoToml, base, &attempt)), toml(base));
    }
}

#[test]
fn tables_of_tools_are_protected_in_pyproject() {
    let base =
        "[project]\nname = \"a\"\nversion = \"1\"\ndependencies = [\"x\"]\n\n[tool.pytest.ini_options]\npythonpath = [\".\"]\n";
    for (attempt, key) in [
        (format!("{base}addopts = \"-k add\"\n"), "tool.pytest.ini_options.addopts"),
        (base.replace("[\".\"]", "[\"compat\", \".\"]"), "tool.pytest.ini_options.pythonpath"),
        (format!("{base}\n[tool.ruff]\nignore = [\"E\"]\n"), "tool.ruff"),
        (format!("{base}\n[project.entry-points.pytest11]\nx = \"x\"\n"), "project.entry-points.pytest11"),
        (format!("{base}\n[tool.uv.sources]\npytest = {{ path = \"fake\" }}\n"), "tool.uv.sources.pytest"),
        (format!("{base}\n[build-system]\nrequires = []\nbackend-path = [\".\"]\n"), "build-system.backend-path"),
        (format!("{base}\n[tool.hatch.envs.test]\nscripts.test = \"true\"\n"), "tool.hatch.envs"),
    ] {
        assert_eq!(changed(Manifest::Pyproject, base, &attempt), [key], "{attempt}");
    }
    for attempt in [
        base.replace("[\"x\"]", "[\"x\", \"y\"]"),
        format!("{base}\n[dependency-groups]\ndev = [\"pytest\"]\n"),
        format!("{base}\n[project.scripts]\na = \"a:main\"\n"),
        format!("{base}\n[tool.poetry.group.dev.dependencies]\npytest = \"^8\"\n"),
    ] {
        assert_eq!(changed(Manifest::Pyproject, base, &attempt), Vec::<String>::new(), "{attempt}");
    }
}

#[test]
fn a_dependency_that_is_led_to_files_of_the_project_is_protected() {
    let base = r#"{"devDependencies": {"jest": "^29", "own": "file:own"}}"#;
    for (attempt, keys) in [
        (r#"{"devDependencies": {"jest": "file:./fake", "own": "file:own"}}"#, vec!["devDependencies.jest"]),
        (r#"{"devDependencies": {"jest": "^29", "own": "file:other"}}"#, vec!["devDependencies.own"]),
        (r#"{"devDependencies": {"jest": "^30", "own": "file:own", "new": "file:new"}}"#, vec![]),
        (
            r#"{"devDependencies": {"jest": "^29", "own": "file:own"}, "overrides": {"jest": {"expect": "file:x"}}}"#,
            vec!["overrides.jest"],
        ),
        (r#"{"devDependencies": {"jest": "^29", "own": "file:own"}, "overrides": {"minimist": "1.2.8"}}"#, vec![]),
    ] {
        assert_eq!(changed(Manifest::PackageJson, base, attempt), keys, "{attempt}");
    }
}

#[test]
fn a_new_manifest_comes_without_its_protected_keys_and_a_deleted_one_stays() {
    let new = "[tool.pytest.ini_options]\naddopts = \"-k add\"\n\n[project]\nname = \"a\"\n";
    let merged = Manifest::Pyproject.for_pristine(None, Some(new.as_bytes())).unwrap();
    assert_eq!(toml(&text(&merged, "", new)), toml("[project]\nname = \"a\"\n"));
    let only_tool = "[tool.ruff]\nignore = []\n";
    assert_eq!(Manifest::Pyproject.for_pristine(None, Some(only_tool.as_bytes())), Ok(Merged::Base));
    assert_eq!(Manifest::Pyproject.for_proof(None, Some(only_tool.as_bytes())), Ok(Merged::Attempt));
    assert_eq!(Manifest::Pyproject.for_pristine(Some(new.as_bytes()), None), Ok(Merged::Base));
    assert_eq!(Manifest::Pyproject.for_pristine(Some(b"[project]\nname = \"a\"\n"), None), Ok(Merged::Attempt));
}

#[test]
fn what_does_not_parse_is_protected_as_a_whole() {
    // Large enough that anything quadratic would take minutes.
    let garbage: Vec<u8> = (0..1_000_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let deep = "[".repeat(1_000_000);
    let objects = "{\"a\":".repeat(200_000);
    let many = format!("{{{}}}", (0..30_000).map(|n| format!("\"k{n}\": {n}")).collect::<Vec<_>>().join(","));
    let dotted = format!("{} = 1\n", vec!["a"; 300_000].join("."));
    let tables: String = (0..10_000).map(|n| format!("[t{n}]\nx = 1\n")).collect::<Vec<_>>().concat();
    for bytes in [
        &garbage[..],
        deep.as_bytes(),
        objects.as_bytes(),
        many.as_bytes(),
        dotted.as_bytes(),
        tables.as_bytes(),
        b"",
        b"[]",
        b"1",
    ] {
        for kind in [Manifest::PackageJson, Manifest::CargoToml, Manifest::Pyproject, Manifest::ComposerJson] {
            let changed = kind.protected_change(Some(b"{}"), Some(bytes));
            assert!(changed.is_some(), "nothing that a tool reads as a manifest");
            let _ = kind.for_pristine(Some(bytes), Some(bytes));
        }
    }
}

/// Values that every parser accepts.
fn any_value() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof!["[a-z]{0,3}".prop_map(serde_json::Value::from), (0..3_i64).prop_map(serde_json::Value::from)];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec("[a-c]".prop_map(serde_json::Value::from), 0..3).prop_map(serde_json::Value::from),
            prop::collection::btree_map("[a-c]|path|name", inner, 0..3).prop_map(|map| map.into_iter().collect()),
        ]
    })
}

const KEYS: &[&str] = &[
    "name",
    "version",
    "scripts",
    "jest",
    "workspaces",
    "dependencies",
    "devDependencies",
    "overrides",
    "pnpm",
    "package",
    "workspace",
    "lib",
    "bin",
    "features",
    "profile",
    "lints",
    "target",
    "project",
    "tool",
    "build-system",
    "dependency-groups",
    "odd key",
];

fn any_manifest() -> impl Strategy<Value = serde_json::Map<String, serde_json::Value>> {
    prop::collection::btree_map(prop::sample::select(KEYS).prop_map(str::to_owned), any_value(), 0..8)
        .prop_map(|map| map.into_iter().collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_trees_have_exactly_the_keys_of_their_side(base in any_manifest(), attempt in any_manifest(), n in 0..4_usize) {
        let kind = [Manifest::PackageJson, Manifest::ComposerJson, Manifest::CargoToml, Manifest::Pyproject][n];
        let write = |map: &serde_json::Map<String, serde_json::Value>| match kind {
            Manifest::PackageJson | Manifest::ComposerJson => serde_json::to_string(map).unwrap(),
            Manifest::CargoToml | Manifest::Pyproject => ::toml::to_string(map).unwrap(),
        };
        let (base, attempt) = (write(&base), write(&attempt));
        let (clean, tests) = (pristine(kind, &base, &attempt), proof(kind, &base, &attempt));
        for key in KEYS {
            let [from_base, from_attempt, in_clean, in_tests] =
                [&base, &attempt, &clean, &tests].map(|text| reread(kind, text).get(*key).cloned());
            match part_of(kind, &[*key]) {
                split::Part::Work => prop_assert_eq!((in_clean, in_tests), (from_attempt, from_base)),
                split::Part::Protected => prop_assert_eq!((in_clean, in_tests), (from_base, from_attempt)),
                _ => {}
            }
        }
        prop_assert_eq!(changed(kind, &base, &clean), Vec::<String>::new());
        // The proof tree has the attempt's protected keys.
        prop_assert_eq!(changed(kind, &tests, &attempt), Vec::<String>::new());
        // Merging again changes nothing.
        prop_assert_eq!(reread(kind, &pristine(kind, &base, &clean)), reread(kind, &clean));
        // If both sides are equal, the result is the same file.
        prop_assert_eq!(pristine(kind, &base, &base), base.clone());
        prop_assert_eq!(proof(kind, &base, &base), base.clone());
    }

    #[test]
    fn any_bytes_are_read_or_refused(base in prop::collection::vec(any::<u8>(), 0..64), attempt in "\\PC{0,64}") {
        for kind in [Manifest::PackageJson, Manifest::CargoToml, Manifest::Pyproject, Manifest::ComposerJson] {
            let _ = kind.for_pristine(Some(&base), Some(attempt.as_bytes()));
            let _ = kind.protected_change(Some(attempt.as_bytes()), Some(&base));
        }
    }
}

fn part_of(kind: Manifest, path: &[&str]) -> split::Part {
    match kind {
        Manifest::PackageJson => package_json::part(path),
        Manifest::ComposerJson => composer_json::part(path),
        Manifest::CargoToml => cargo_toml::part(path),
        Manifest::Pyproject => pyproject::part(path),
    }
}

fn reread(kind: Manifest, text: &str) -> serde_json::Value {
    match kind {
        Manifest::PackageJson | Manifest::ComposerJson => json(text),
        Manifest::CargoToml | Manifest::Pyproject => serde_json::to_value(toml(text)).unwrap(),
    }
}
