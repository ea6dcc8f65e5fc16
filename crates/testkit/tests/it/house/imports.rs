//! The import graph between the top-level modules of core and runtime, read from the source: it has no cycle.

use std::collections::{BTreeMap, BTreeSet};

use verdone_testkit::assert_block;

use super::{files_ending, read, root};

/// Module → modules that it imports.
type Graph = BTreeMap<String, BTreeSet<String>>;

const LEAVES: [&str; 4] = ["plan", "shell", "testlog", "text"];

#[test]
fn no_module_imports_one_that_imports_it() {
    let mut picture = String::from("```\n");
    for layer in ["core", "runtime"] {
        let graph = graph_of(layer);
        assert!(graph.len() > 10, "{layer}: only {graph:?} was found: the search is broken");
        let order = order(&graph).unwrap_or_else(|cycle| panic!("crates/{layer}: these modules import each other: {cycle:?}"));
        picture.push_str(&format!("{layer}\n"));
        for module in order {
            let imports: Vec<&str> = graph[&module].iter().map(String::as_str).collect();
            picture.push_str(format!("  {module:<10} {}", imports.join(" ")).trim_end());
            picture.push('\n');
        }
    }
    picture.push_str("```");
    assert!(picture.lines().count() <= 34, "more than 30 modules is too many to understand at a glance");
    assert_block(root().join("ARCHITECTURE.md"), "imports", &picture);
}

#[test]
fn crates_depend_downwards_only() {
    let below = [
        ("shell", &[][..]),
        ("text", &[]),
        ("plan", &["text"]),
        ("testlog", &["shell"]),
        ("core", &LEAVES),
        ("report", &["core", "plan", "shell", "testlog", "text"]),
        ("runtime", &["core", "plan", "shell", "testlog", "text"]),
        ("mcp", &["core", "runtime"]),
        ("cli", &["core", "mcp", "plan", "report", "runtime", "shell", "testlog", "text"]),
    ];
    for (name, allowed) in below {
        let manifest = read(&format!("crates/{name}/Cargo.toml"));
        let dependencies = manifest.split("[dev-dependencies]").next().unwrap_or_default();
        let ours = dependencies.lines().filter_map(|line| line.strip_prefix("verdone-")?.split('.').next());
        for used in ours {
            assert!(allowed.contains(&used), "crates/{name} must not depend on {used}");
        }
    }
    for leaf in LEAVES {
        for path in files_ending("rs").iter().filter(|path| path.starts_with(&format!("crates/{leaf}/src/"))) {
            let text = without_comments(&read(path)).to_lowercase();
            let text = LEAVES.iter().fold(text, |text, leaf| text.replace(&format!("verdone_{leaf}"), ""));
            assert!(!text.contains("verdone"), "{path} knows of Verdone");
        }
    }
}

#[test]
fn a_cycle_is_found() {
    let graph = |edges: &[(&str, &str)]| {
        let mut graph = Graph::new();
        for (from, to) in edges {
            graph.entry((*from).to_owned()).or_default().insert((*to).to_owned());
            graph.entry((*to).to_owned()).or_default();
        }
        graph
    };
    assert_eq!(order(&graph(&[("b", "a"), ("c", "b"), ("c", "a")])).unwrap(), ["a", "b", "c"]);
    let cycle = order(&graph(&[("a", "b"), ("b", "c"), ("c", "b")])).unwrap_err();
    assert!(cycle.contains("b") && cycle.contains("c"));
    let source = "use crate::a::{B, c};\nuse crate::{d, e::{F, g}};\n// crate::no\nfn f() { crate::h::i(\"crate::text\") }\n\
                  #[cfg(test)]\nmod tests {\n    use crate::test_only::X;\n}\n";
    assert_eq!(imports_in(source, 1).into_iter().collect::<Vec<_>>(), ["a", "d", "e", "h"]);
    assert_eq!(imports_in("use super::x::Y;\nuse super::super::z;\n", 2).into_iter().collect::<Vec<_>>(), ["z"]);
}

fn graph_of(layer: &str) -> Graph {
    let source = format!("crates/{layer}/src/");
    let files = files_ending("rs");
    let modules: BTreeSet<&str> = files
        .iter()
        .filter_map(|path| path.strip_prefix(&source)?.split(['/', '.']).next())
        .filter(|name| *name != "lib")
        .collect();
    let mut graph: Graph = modules.iter().map(|module| ((*module).to_owned(), BTreeSet::new())).collect();
    for path in &files {
        let Some(inner) = path.strip_prefix(&source) else { continue };
        let is_test = inner.ends_with("tests.rs") || inner.contains("/tests/");
        let module = inner.split(['/', '.']).next().unwrap_or_default();
        if is_test || module == "lib" {
            continue;
        }
        let depth = inner.split('/').count();
        let found = imports_in(&read(path), depth);
        let found = found.into_iter().filter(|name| name != module && modules.contains(name.as_str()));
        graph.entry(module.to_owned()).or_default().extend(found);
    }
    graph
}

/// The top-level modules that a file names by `crate::`, or by as many `super::` as its depth.
fn imports_in(source: &str, depth: usize) -> BTreeSet<String> {
    let text = without_comments(source.split("#[cfg(test)]\nmod ").next().unwrap_or_default());
    let mut found = BTreeSet::new();
    for start in ["crate::".to_owned(), "super::".repeat(depth)] {
        for (at, _) in text.match_indices(&start) {
            let is_part = text[..at].ends_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | ':' | '$'));
            if !is_part {
                found.extend(first_names(&text[at + start.len()..]));
            }
        }
    }
    found
}

/// The first names of a path, or of each path in a group: `{a, b::{C, d}}`.
fn first_names(text: &str) -> Vec<String> {
    let name = |text: &str| -> String { text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect() };
    let Some(group) = text.strip_prefix('{') else { return vec![name(text)] };
    let (mut nested, mut names, mut is_start) = (0, Vec::new(), true);
    for (at, c) in group.char_indices() {
        match c {
            '{' => nested += 1,
            '}' if nested == 0 => break,
            '}' => nested -= 1,
            ',' if nested == 0 => is_start = true,
            c if c.is_whitespace() => {}
            _ if is_start && nested == 0 => {
                names.push(name(&group[at..]));
                is_start = false;
            }
            _ => {}
        }
    }
    names
}

/// The text without line comments and without what is in quotes.
pub(super) fn without_comments(source: &str) -> String {
    let line = |line: &str| {
        let code = line.split("//").next().unwrap_or_default();
        code.split('"').step_by(2).collect::<String>()
    };
    source.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// The modules, each after all that it imports; or those that are left because they import each other.
fn order(graph: &Graph) -> Result<Vec<String>, BTreeSet<String>> {
    let mut left: BTreeSet<String> = graph.keys().cloned().collect();
    let mut order = Vec::new();
    while !left.is_empty() {
        let is_free = |module: &&String| graph[*module].iter().all(|import| !left.contains(import));
        let Some(next) = left.iter().find(is_free).cloned() else { return Err(left) };
        left.remove(&next);
        order.push(next);
    }
    Ok(order)
}
