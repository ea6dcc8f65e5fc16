//! Files named in scripts and configuration. Files that a check script loads, or that a configuration extends, also judge the work.

use std::collections::BTreeSet;

use super::check_scripts::check_scripts;
use crate::check::CommandSpec;

/// Extensions of files that may judge. Code is excluded: builds and configuration name it because it is the work.
const ENDINGS: [&str; 16] =
    ["sh", "bash", "bats", "inc", "env", "json", "jsonc", "json5", "yml", "yaml", "toml", "ini", "cfg", "conf", "mk", "cmake"];
const SCRIPTS: [&str; 3] = [".sh", ".bash", ".bats"];
/// Longer texts are data.
const LONGEST: usize = 64 * 1024;

/// Whether another file may refer to this one as a part of it: a script, configuration, or a list without an extension.
pub fn may_be_named(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    match name.rsplit_once('.') {
        Some((_, ending)) => ENDINGS.contains(&ending),
        None => path.contains('/'),
    }
}

/// The files named in a text, relative to its own folder or to the project. Returned paths are relative to the top of the tree.
pub fn named_in(text: &[u8], of: &str, project: &str, exists: impl Fn(&str) -> bool) -> Vec<String> {
    let Ok(text) = std::str::from_utf8(text) else { return Vec::new() };
    if text.len() > LONGEST {
        return Vec::new();
    }
    let folder = of.rsplit_once('/').map_or("", |(folder, _)| folder);
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '-' | '_' | '+' | '@');
    let words = text.split(|c: char| !is_part(c)).filter(|word| word.contains(['/', '.']));
    let places = words.flat_map(|word| [folder, project].into_iter().filter_map(move |folder| below(folder, word)));
    // Files without an extension count only in scripts: in a manifest, such a name may be one of the project's programs.
    let is_script = SCRIPTS.iter().any(|ending| of.ends_with(ending));
    let is_known = |path: &String| is_script || path.rsplit('/').next().is_some_and(|name| name.contains('.'));
    let mut found: Vec<String> =
        places.filter(|path| path != of && may_be_named(path) && is_known(path) && exists(path)).collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// Scripts that the commands in a file run, as patterns relative to the project: commands of a shell script, of recipes, of a package.
pub fn scripts_in(text: &[u8], of: &str) -> BTreeSet<String> {
    let Ok(text) = std::str::from_utf8(text) else { return BTreeSet::new() };
    let name = of.rsplit('/').next().unwrap_or(of);
    let is_shell = SCRIPTS.iter().any(|ending| name.ends_with(ending)) || text.lines().next().is_some_and(is_shell_line);
    let is_makefile = matches!(name, "Makefile" | "makefile" | "GNUmakefile") || name.ends_with(".mk");
    let commands: Vec<String> = match name {
        _ if text.len() > LONGEST => return BTreeSet::new(),
        "package.json" => package_scripts(text),
        _ if is_makefile => vec![recipes(text)],
        _ if is_shell => vec![text.to_owned()],
        _ => Vec::new(),
    };
    let mut scripts = check_scripts(&commands.into_iter().map(CommandSpec::Shell).collect::<Vec<_>>());
    scripts.extend(included(text).filter(|_| is_makefile).map(str::to_owned));
    scripts
}

/// Other makefiles that a makefile includes.
fn included(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.lines().filter_map(|line| line.split_once([' ', '\t']));
    let includes = lines.filter(|(first, _)| matches!(*first, "include" | "-include" | "sinclude"));
    // `$(wildcard parts/*.mk)` leaves a pattern.
    let files = includes.flat_map(|(_, files)| files.split_whitespace().map(|file| file.trim_end_matches(')')));
    files.filter(|file| !file.contains('$'))
}

fn is_shell_line(first: &str) -> bool {
    first.starts_with("#!") && first.split(['/', ' ']).any(|word| matches!(word, "sh" | "bash" | "dash" | "ksh" | "zsh"))
}

fn package_scripts(text: &str) -> Vec<String> {
    let package: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
    let scripts = package["scripts"].as_object().into_iter().flat_map(|scripts| scripts.values());
    scripts.filter_map(|script| script.as_str().map(str::to_owned)).collect()
}

/// The lines of a makefile that are passed to a shell.
fn recipes(text: &str) -> String {
    let lines = text.lines().filter_map(|line| line.strip_prefix('\t'));
    lines.map(|line| line.trim_start_matches(['@', '-', '+']).replace("$$", "$") + "\n").collect()
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

    #[test]
    fn what_a_script_runs_is_found_through_loops_and_folders() {
        let run = |text: &str, of: &str| scripts_in(text.as_bytes(), of).into_iter().collect::<Vec<_>>().join(" ");
        assert_eq!(run("#!/bin/sh -e\nfor t in t/*.sh; do\n  sh \"$t\"\ndone\n", "checks/all"), "t/*.sh");
        assert_eq!(run("check:\n\t@for t in t/*.sh; do sh $$t || exit 1; done\nx: y\n", "Makefile"), "t/*.sh");
        assert_eq!(
            run("include rules.inc $(wildcard x/*)\n-include local/settings\nall:\n\tinclude no\n", "Makefile"),
            "local/settings rules.inc x/*"
        );
        assert_eq!(run(r#"{ "scripts": { "test": "PATH=tools:$PATH verify" } }"#, "package.json"), "tools/*");
        assert_eq!(run("sh t/a.sh", "README.md"), "");
    }
}
