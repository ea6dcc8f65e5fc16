//! Files that scripts and configuration name: what a check script loads, and what a configuration extends, judges the work as they do.

/// Endings of files that may judge. Code is left out: builds and configuration name it because it is the work.
const ENDINGS: [&str; 16] =
    ["sh", "bash", "bats", "inc", "env", "json", "jsonc", "json5", "yml", "yaml", "toml", "ini", "cfg", "conf", "mk", "cmake"];
/// Longer texts are data.
const LONGEST: usize = 64 * 1024;

/// Whether a file can be one that another file names as a part of it: a script, configuration, or a list without an ending.
pub fn may_be_named(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    match name.rsplit_once('.') {
        Some((_, ending)) => ENDINGS.contains(&ending),
        None => path.contains('/'),
    }
}

/// The files that a text names, relative to its own folder or to the project. Paths are relative to the top of the tree.
pub fn named_in(text: &[u8], of: &str, project: &str, exists: impl Fn(&str) -> bool) -> Vec<String> {
    let Ok(text) = std::str::from_utf8(text) else { return Vec::new() };
    if text.len() > LONGEST {
        return Vec::new();
    }
    let folder = of.rsplit_once('/').map_or("", |(folder, _)| folder);
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '-' | '_' | '+' | '@');
    let words = text.split(|c: char| !is_part(c)).filter(|word| word.contains(['/', '.']));
    let places = words.flat_map(|word| [folder, project].into_iter().filter_map(move |folder| below(folder, word)));
    // A program of the project has no ending either, and a manifest names it.
    let is_script = [".sh", ".bash", ".bats"].iter().any(|ending| of.ends_with(ending));
    let is_known = |path: &String| is_script || path.rsplit('/').next().is_some_and(|name| name.contains('.'));
    let mut found: Vec<String> =
        places.filter(|path| path != of && may_be_named(path) && is_known(path) && exists(path)).collect();
    found.sort_unstable();
    found.dedup();
    found
}

fn below(folder: &str, word: &str) -> Option<String> {
    if word.starts_with('/') {
        return None;
    }
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in word.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    (!parts.is_empty()).then(|| parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_script_loads_and_a_configuration_extends_is_named() {
        let there = ["checks/lib.sh", "config/base.json", "build/list", "src/calc.c", "web/config/base.json", "list"];
        let named =
            |text: &str, of: &str, project: &str| named_in(text.as_bytes(), of, project, |path| there.contains(&path)).join(" ");
        assert_eq!(named(". checks/lib.sh\nrun", "checks/div.sh", ""), "checks/lib.sh");
        assert_eq!(named(". \"$(dirname \"$0\")/lib.sh\"", "checks/div.sh", ""), "");
        assert_eq!(named("source ./lib.sh", "checks/div.sh", ""), "checks/lib.sh");
        assert_eq!(named(r#"{ "extends": "./config/base.json" }"#, "tsconfig.json", ""), "config/base.json");
        assert_eq!(named(r#"{ "extends": "./config/base.json" }"#, "web/tsconfig.json", "web"), "web/config/base.json");
        assert_eq!(named("xargs pytest <build/list", "build/run.sh", ""), "build/list");
        assert_eq!(named("cc src/calc.c list", "Makefile", ""), "");
        assert_eq!(named(r#"{ "bin": "./build/list" }"#, "package.json", ""), "");
    }
}
