use proptest::prelude::*;

use super::*;
use crate::config::ProtectSettings;
use crate::protect::Ecosystem;

fn protection() -> Protection {
    Protection::new(&ProtectSettings::default(), &Ecosystem::ALL, "").unwrap()
}

fn entry(text: &str) -> Entry {
    Entry { mode: 0o100_644, id: text.to_owned(), content: Some(text.as_bytes().to_vec()) }
}

fn change(path: &str, base: Option<&str>, attempt: Option<&str>) -> Change {
    Change { path: path.to_owned(), base: base.map(entry), attempt: attempt.map(entry), renamed_from: None }
}

fn renamed(from: &str, to: &str, base: &str, attempt: &str) -> Change {
    Change { renamed_from: Some(from.to_owned()), ..change(to, Some(base), Some(attempt)) }
}

fn merged(text: &str) -> Version {
    Version::Merged { mode: 0o100_644, content: text.as_bytes().to_vec() }
}

fn kinds(plan: &TreePlan) -> Vec<(&str, ChangeKind)> {
    plan.protected_changes.iter().map(|change| (change.path.as_str(), change.kind)).collect()
}

/// Whether the pristine tree differs from the attempt.
fn needs_pristine(plan: &TreePlan) -> bool {
    plan.pristine.values().any(|take| *take != Version::Attempt)
}

/// Whether the proof tree differs from the base.
fn needs_proof(plan: &TreePlan) -> bool {
    plan.proof.values().any(|take| *take != Version::Base)
}

fn unreleased_autorun(plan: &TreePlan) -> usize {
    plan.protected_changes.iter().filter(|change| change.autorun && change.released.is_none()).count()
}

#[test]
fn work_comes_from_the_attempt_and_protected_files_from_the_base() {
    let plan = plan_trees(
        &protection(),
        &[
            change("src/calc.py", Some("a"), Some("b")),
            change("tests/test_calc.py", Some("a"), Some("b")),
            change("tests/test_new.py", None, Some("b")),
            change("tests/test_old.py", Some("a"), None),
            change("pytest.ini", None, Some("x")),
        ],
    );
    assert_eq!(plan.pristine["src/calc.py"], Version::Attempt);
    assert_eq!(plan.proof["src/calc.py"], Version::Base);
    for path in ["tests/test_calc.py", "tests/test_new.py", "tests/test_old.py", "pytest.ini"] {
        assert_eq!((&plan.pristine[path], &plan.proof[path]), (&Version::Base, &Version::Attempt), "{path}");
    }
    assert_eq!(
        kinds(&plan),
        [
            ("pytest.ini", ChangeKind::Added),
            ("tests/test_calc.py", ChangeKind::Changed),
            ("tests/test_new.py", ChangeKind::Added),
            ("tests/test_old.py", ChangeKind::Deleted),
        ]
    );
    assert!(needs_pristine(&plan) && needs_proof(&plan));
}

#[test]
fn work_alone_needs_no_other_tree() {
    let plan = plan_trees(
        &protection(),
        &[
            change("src/calc.py", Some("a"), Some("b")),
            change("src/lib.rs", Some("fn a() {}\n"), Some("fn b() {}\n")),
            change("Cargo.lock", Some("a"), Some("b")),
            change("package.json", Some("{\"version\": \"1\"}"), Some("{\"version\": \"2\"}")),
        ],
    );
    assert!(!needs_pristine(&plan) && !needs_proof(&plan) && plan.protected_changes.is_empty());
}

#[test]
fn what_a_scope_names_is_in_both_trees() {
    let scoped = protection().with_scope(&["tests".to_owned()]);
    let plan =
        plan_trees(&scoped, &[change("tests/test_a.py", Some("a"), Some("b")), change("pytest.ini", Some("a"), Some("b"))]);
    assert_eq!((&plan.pristine["tests/test_a.py"], &plan.proof["tests/test_a.py"]), (&Version::Attempt, &Version::Attempt));
    assert_eq!(plan.pristine["pytest.ini"], Version::Base);
    let released: Vec<bool> = plan.protected_changes.iter().map(|change| change.released.is_some()).collect();
    assert_eq!(released, [false, true]);
}

#[test]
fn renaming_a_test_is_a_change_of_it() {
    for (from, to) in
        [("tests/test_a.py", "tests/a_tests.txt"), ("tests/test_a.py", "docs/a.py"), ("tests/unit/test_a.py", "tests2/test_a.py")]
    {
        let plan = plan_trees(&protection(), &[renamed(from, to, "a", "a")]);
        assert_eq!(plan.pristine[from], Version::Base, "{from} {to}");
        assert_eq!(plan.proof[from], Version::Attempt);
        assert_eq!(kinds(&plan), [(to, ChangeKind::Renamed)]);
    }
    let plan = plan_trees(&protection(), &[renamed("src/a.py", "src/b.py", "a", "a")]);
    assert!(!needs_pristine(&plan) && plan.protected_changes.is_empty());
    assert_eq!(plan.pristine.len(), 2);
}

#[test]
fn modes_and_links_count() {
    let mut script = change("scripts/test.sh", Some("a"), Some("a"));
    script.attempt.as_mut().unwrap().mode = 0o100_755;
    let mut link = change("Makefile", Some("a"), Some("other"));
    link.attempt.as_mut().unwrap().mode = 0o120_000;
    let mut manifest = change("package.json", Some("{}"), Some("x.json"));
    manifest.attempt.as_mut().unwrap().mode = 0o120_000;
    let mut source = change("src/lib.rs", Some("#[test]\nfn a() {}\n"), Some("x.rs"));
    source.attempt.as_mut().unwrap().mode = 0o120_000;
    let plan = plan_trees(&protection(), &[script, link, manifest, source]);
    assert_eq!(
        kinds(&plan),
        [
            ("Makefile", ChangeKind::Changed),
            ("package.json", ChangeKind::Changed),
            ("scripts/test.sh", ChangeKind::Mode),
            ("src/lib.rs", ChangeKind::Changed),
        ]
    );
    assert!(plan.pristine.values().all(|take| *take == Version::Base));
}

#[test]
fn a_link_does_not_take_the_place_of_a_folder_with_tests() {
    let mut link = change("lib", None, Some("lib2"));
    link.attempt.as_mut().unwrap().mode = 0o120_000;
    let plan = plan_trees(
        &protection(),
        &[
            link,
            change("lib/a.py", Some("a"), None),
            change("lib/tests/test_a.py", Some("a"), None),
            change("lib2/a.py", None, Some("a")),
        ],
    );
    assert_eq!((&plan.pristine["lib"], &plan.pristine["lib/tests/test_a.py"]), (&Version::Base, &Version::Base));
    assert!(kinds(&plan).contains(&("lib", ChangeKind::Added)));
    let plan = plan_trees(&protection(), &[change("Makefile", Some("a"), None), change("Makefile/a.go", None, Some("a"))]);
    assert_eq!((&plan.pristine["Makefile"], &plan.pristine["Makefile/a.go"]), (&Version::Base, &Version::Base));
}

#[test]
fn a_manifest_is_merged_by_key() {
    let base = "{\n  \"version\": \"1\",\n  \"scripts\": {\n    \"test\": \"jest\"\n  }\n}\n";
    let attempt = base.replace('1', "2").replace("jest", "true");
    let plan = plan_trees(&protection(), &[change("web/package.json", Some(base), Some(&attempt))]);
    assert_eq!(plan.pristine["web/package.json"], merged(&base.replace('1', "2")));
    assert_eq!(plan.proof["web/package.json"], merged(&base.replace("jest", "true")));
    let unreadable = plan_trees(&protection(), &[change("package.json", Some(base), Some("{"))]);
    assert_eq!(unreadable.pristine["package.json"], Version::Base);
    assert!(matches!(unreadable.protected_changes[0].why, ProtectionReason::Unreadable { .. }));
    let moved = plan_trees(&protection(), &[renamed("package.json", "web/package.json", base, base)]);
    assert_eq!(moved.pristine["package.json"], Version::Base);
    assert!(
        matches!(&moved.pristine["web/package.json"], Version::Merged { content, .. } if !content.windows(7).any(|w| w == b"scripts"))
    );
}

#[test]
fn scripts_that_run_on_install_need_a_review() {
    let base = "{\"scripts\": {\"test\": \"jest\"}}";
    let with = |name: &str| format!("{{\"scripts\": {{\"test\": \"jest\", \"{name}\": \"x\"}}}}");
    for (name, autorun) in [("postinstall", true), ("prepare", true), ("build", false)] {
        let plan = plan_trees(&protection(), &[change("package.json", Some(base), Some(&with(name)))]);
        assert_eq!(unreleased_autorun(&plan) == 1, autorun, "{name}");
    }
}

#[test]
fn inline_tests_are_those_of_the_base_and_follow_renames() {
    let base = "pub fn a() {}\n\n#[test]\nfn works() { a(); }\n";
    let attempt = base.replace("pub fn a() {}", "pub fn a() { b() }").replace("{ a(); }", "{}");
    let (pristine, proof) = (base.replace("pub fn a() {}", "pub fn a() { b() }"), base.replace("{ a(); }", "{}"));
    let plan = plan_trees(&protection(), &[change("src/a.rs", Some(base), Some(&attempt))]);
    assert_eq!((&plan.pristine["src/a.rs"], &plan.proof["src/a.rs"]), (&merged(&pristine), &merged(&proof)));
    let plan = plan_trees(&protection(), &[renamed("src/a.rs", "src/b.rs", base, &attempt)]);
    assert_eq!((&plan.pristine["src/a.rs"], &plan.pristine["src/b.rs"]), (&Version::Attempt, &merged(&pristine)));
    assert_eq!((&plan.proof["src/a.rs"], &plan.proof["src/b.rs"]), (&merged(&proof), &Version::Base));
    assert_eq!(kinds(&plan), [("src/b.rs", ChangeKind::Renamed)]);
    // A file that the settings declare as work is work, including its tests.
    let settings = ProtectSettings { work: vec!["src/**".to_owned()], ..ProtectSettings::default() };
    let plan =
        plan_trees(&Protection::new(&settings, &Ecosystem::ALL, "").unwrap(), &[change("src/a.rs", Some(base), Some(&attempt))]);
    assert!(!needs_pristine(&plan));
    // The scope names the code, not its tests.
    let scoped = protection().with_scope(&["src/a.rs".to_owned()]);
    let plan = plan_trees(&scoped, &[change("src/a.rs", Some(base), Some(&attempt))]);
    assert_eq!(plan.pristine["src/a.rs"], merged(&pristine));
}

#[test]
fn tests_of_a_new_module_reach_the_proof_tree() {
    let module = "pub fn b() {}\n\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn works() { super::b(); }\n}\n";
    let plan = plan_trees(
        &protection(),
        &[
            change("src/lib.rs", Some("pub fn a() {}\n"), Some("pub mod b;\n\npub fn a() {}\n")),
            change("src/b.rs", None, Some(module)),
        ],
    );
    assert_eq!(plan.pristine["src/b.rs"], merged("pub fn b() {}\n\n"));
    assert_eq!(plan.pristine["src/lib.rs"], Version::Attempt);
    assert_eq!(plan.proof["src/lib.rs"], merged("pub fn a() {}\n\npub mod b;\n"));
    assert!(matches!(&plan.proof["src/b.rs"], Version::Merged { content, .. } if !content.starts_with(b"pub")));
    // A renamed file has its old path in the proof tree, so the new one must not be declared.
    let plan = plan_trees(
        &protection(),
        &[
            change("src/lib.rs", Some("mod old;\n"), Some("mod b;\nmod new;\n")),
            change("src/b.rs", None, Some(module)),
            renamed("src/old.rs", "src/new.rs", "", ""),
        ],
    );
    assert_eq!(plan.proof["src/lib.rs"], Version::Base);
}

#[test]
fn files_that_run_later_need_a_review_unless_they_are_named() {
    let hooks = [change(".claude/settings.json", None, Some("{}")), change(".github/workflows/ci.yml", Some("a"), Some("b"))];
    assert_eq!(unreleased_autorun(&plan_trees(&protection(), &hooks)), 2);
    let scoped = protection().with_scope(&[".github/".to_owned()]);
    assert_eq!(unreleased_autorun(&plan_trees(&scoped, &hooks)), 1);
    let base = "repos:\n- repo: https://x/y\n  rev: v1\n  hooks: [a]\n";
    for (attempt, count) in [(base.replace("v1", "v2"), 0), (base.replace("[a]", "[b]"), 1)] {
        let plan = plan_trees(&protection(), &[change(".pre-commit-config.yaml", Some(base), Some(&attempt))]);
        assert_eq!((unreleased_autorun(&plan), plan.protected_changes.len()), (count, 1));
    }
}

#[test]
fn content_is_asked_for_only_where_it_is_split() {
    let protection = protection();
    for (path, needed) in [
        ("package.json", true),
        ("a/Cargo.toml", true),
        ("src/lib.rs", true),
        (".pre-commit-config.yaml", true),
        ("tests/a.rs", false),
        ("tests/fixtures/package.json", false),
        ("calc.py", false),
        ("pytest.ini", false),
    ] {
        assert_eq!(protection.needs_content(path), needed, "{path}");
    }
    let mut unread = change("src/lib.rs", Some("a"), Some("b"));
    unread.base.as_mut().unwrap().content = None;
    assert_eq!(plan_trees(&protection, &[unread]).pristine["src/lib.rs"], Version::Base);
}

fn any_path() -> impl Strategy<Value = String> {
    let part = prop::sample::select(vec![
        "src",
        "tests",
        "a.py",
        "lib.rs",
        "package.json",
        "Makefile",
        ".claude",
        "é\n",
        "Cargo.toml",
        "*[",
        "..",
    ]);
    prop::collection::vec(part, 1..4).prop_map(|parts| parts.join("/"))
}

fn any_entry() -> impl Strategy<Value = Option<Entry>> {
    let text = prop::sample::select(vec![
        "",
        "{}",
        "{\"scripts\": 1}",
        "[package]\nname = \"a\"\n",
        "#[test]\nfn a() {}\n",
        "fn b() {}\n",
        "\u{fffd}{",
    ]);
    let mode = prop::sample::select(vec![0o100_644, 0o100_755, 0o120_000, 0o160_000]);
    let one = (text, mode, any::<bool>()).prop_map(|(text, mode, read)| Entry {
        mode,
        id: text.to_owned(),
        content: read.then(|| text.as_bytes().to_vec()),
    });
    prop::option::of(one)
}

fn any_change() -> impl Strategy<Value = Change> {
    (any_path(), any_entry(), any_entry(), prop::option::weighted(0.2, any_path())).prop_map(|(path, base, attempt, old)| {
        let renamed_from = old.filter(|old| *old != path && base.is_some() && attempt.is_some());
        Change { path, base, attempt, renamed_from }
    })
}

/// Changes as they result from comparing two trees: each path occurs once.
fn any_changes() -> impl Strategy<Value = Vec<Change>> {
    prop::collection::vec(any_change(), 0..8).prop_map(|changes| {
        let mut seen = std::collections::BTreeSet::new();
        let is_first = |change: &Change| {
            let mut paths = [Some(&change.path), change.renamed_from.as_ref()].into_iter().flatten();
            paths.all(|path| seen.insert(path.clone()))
        };
        changes.into_iter().filter(|change| change.base != change.attempt).filter(is_first).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_changed_path_has_a_place_in_both_trees(changes in any_changes(), scope in prop::collection::vec(any_path(), 0..2)) {
        static PROTECTION: std::sync::LazyLock<Protection> = std::sync::LazyLock::new(protection);
        let plan = plan_trees(&PROTECTION.with_scope(&scope), &changes);
        for change in &changes {
            for path in [Some(&change.path), change.renamed_from.as_ref()].into_iter().flatten() {
                prop_assert!(plan.pristine.contains_key(path) && plan.proof.contains_key(path), "{}", path);
            }
        }
        // Without protection, everything comes from the attempt.
        prop_assert!(needs_pristine(&plan) || plan.protected_changes.iter().all(|change| change.released.is_some() || change.kind == ChangeKind::Deleted || change.autorun));
        if plan.protected_changes.is_empty() {
            prop_assert!(!needs_pristine(&plan));
        }
    }

    #[test]
    fn every_path_has_a_class(path in "\\PC{0,40}", is_new in any::<bool>()) {
        static PROTECTION: std::sync::LazyLock<Protection> = std::sync::LazyLock::new(protection);
        let class = PROTECTION.classify(&path, is_new);
        prop_assert!(!class.why.to_string().is_empty());
        let _ = (PROTECTION.released(&path), PROTECTION.with_scope(std::slice::from_ref(&path)).released(&path));
    }
}
