//! The files that well-known programs write, delete or read, according to their arguments.

use super::act::Access;
use super::arguments::Arguments;
use super::path::PROTECTED;
use verdone_shell::{Origin, Piece, RedirectKind, Simple, Word, git_call};
use verdone_text::pattern::{PathPatterns, escape_but};

/// The targets of one simple command, as words.
pub(super) fn targets(simple: &Simple) -> Vec<(Access, Word)> {
    let mut out: Vec<(Access, Word)> = Vec::new();
    for redirect in &simple.redirects {
        let access = match redirect.kind {
            RedirectKind::Read => Access::Read,
            RedirectKind::Write | RedirectKind::Append | RedirectKind::ReadWrite => Access::Write,
        };
        out.push((access, redirect.target.clone()));
    }
    let Some((program, rest)) = simple.words.split_first() else { return out };
    let base = program.base();
    let Some(name) = base.literal() else { return out };
    if name == "git" {
        out.extend(git(simple));
        return with_hidden(out, name);
    }
    let arguments = Arguments::new(rest);
    let all = |access: Access, valued: &[&str]| -> Vec<(Access, Word)> {
        arguments.operands(valued).into_iter().map(|word| (access, word.clone())).collect()
    };
    match name {
        "rsync" => out.extend(rsync(&arguments)),
        "cp" | "install" | "scp" | "gcp" | "ginstall" => out.extend(copy(&arguments)),
        "ln" => out.extend(link(&arguments)),
        "mv" => {
            out.extend(copy(&arguments));
            let sources = arguments.operands(&["-t", "--target-directory", "-S"]);
            let last = usize::from(arguments.value(&["-t", "--target-directory"]).is_empty());
            let moved = sources.len().saturating_sub(last);
            out.extend(sources[..moved].iter().map(|word| (Access::DeleteAll, (*word).clone())));
        }
        "tee" | "sponge" | "mkdir" | "rmdir" | "touch" | "truncate" | "mkfifo" | "mknod" | "ed" | "ex" | "vi" | "vim"
        | "nvim" | "nano" | "emacs" | "shred" | "unlink" => {
            out.extend(all(
                Access::Write,
                &["-m", "--mode", "-s", "--size", "-r", "--reference", "-d", "--date", "-t", "-c", "-n"],
            ));
        }
        "chmod" | "chown" | "chgrp" | "chattr" | "setfacl" => out.extend(all(Access::Write, &[]).into_iter().skip(1)),
        "rm" => {
            let recursive = arguments.short('r', "") || arguments.short('R', "") || arguments.long("--recursive", 3);
            out.extend(all(if recursive { Access::DeleteAll } else { Access::Write }, &[]));
        }
        "find" if deletes_found(rest) => {
            out.extend(found_names(rest).into_iter().map(|name| (Access::DeleteAll, Word::text(name))));
            let filtered = is_filtered(rest);
            let taken = |word: &Word| (Access::DeleteAll, if filtered { inside(word) } else { word.clone() });
            out.extend(search_roots(rest).iter().map(taken));
        }
        "dd" => out.extend(rest.iter().filter_map(|word| word.without_prefix("of=")).map(|word| (Access::Write, word))),
        "sed" | "gsed" | "perl" | "ruby" if in_place(name, &arguments) => out.extend(scripted(&arguments, Access::Write)),
        "awk" | "gawk" if arguments.any(&["inplace"]) => out.extend(scripted(&arguments, Access::Write)),
        "patch" => {
            out.extend(all(Access::Write, &["-p", "-i", "-d", "-D", "-B"]).into_iter().take(1));
            out.extend(arguments.value(&["-o", "--output", "-d", "--directory"]).into_iter().map(|word| (Access::Write, word)));
        }
        "curl" => {
            out.extend(arguments.value(&["--output", "--output-dir"]).into_iter().map(|word| (Access::Write, word)));
            out.extend(arguments.clustered('o', "HdXuAebFmTKwxcEyYzCQrtPDU").into_iter().map(|word| (Access::Write, word)));
        }
        "sort" => out.extend(arguments.value(&["-o", "--output"]).into_iter().map(|word| (Access::Write, word))),
        "wget" => out.extend(
            arguments
                .value(&["-O", "--output-document", "-P", "--directory-prefix"])
                .into_iter()
                .map(|word| (Access::Write, word)),
        ),
        "tar" | "bsdtar" => out.extend(tar(&arguments).into_iter().map(|word| (Access::Write, word))),
        "unzip" => out.extend(arguments.value(&["-d"]).into_iter().map(|word| (Access::Write, word))),
        "cat" | "head" | "tail" | "less" | "more" | "bat" | "batcat" | "nl" | "tac" | "od" | "xxd" | "hexdump" | "view" => {
            out.extend(all(Access::Read, &["-n", "-c", "-r", "--lines", "--bytes", "--line-range", "-s", "-l"]));
        }
        "sed" | "gsed" | "awk" | "gawk" | "grep" | "egrep" | "fgrep" | "rg" => out.extend(scripted(&arguments, Access::Read)),
        _ => {}
    }
    with_hidden(out, name)
}

/// Adds what a deletion includes without naming it: protected names that a pattern matches, and known files in a folder.
fn with_hidden(mut out: Vec<(Access, Word)>, program: &str) -> Vec<(Access, Word)> {
    const HOLDERS: &[(&str, &str)] = &[
        (".claude", "settings.json"),
        (".claude/hooks", "any"),
        (".codex", "config.toml"),
        (".gemini", "settings.json"),
        (".qwen", "settings.json"),
        (".cursor", "hooks.json"),
    ];
    let mut hidden: Vec<String> = Vec::new();
    if matches!(program, "rm" | "mv" | "unlink" | "shred") {
        hidden.extend(out.iter().filter(|(access, _)| *access != Access::Read).flat_map(|(_, word)| by_pattern(word)));
    }
    let deleted = out.iter().filter(|(access, _)| *access == Access::DeleteAll).filter_map(|(_, word)| word.literal());
    let deleted: Vec<String> = deleted.map(str::to_owned).chain(hidden.iter().cloned()).collect();
    for path in &deleted {
        let path = path.trim_end_matches('/');
        let holds = |folder: &str| path == folder || path.ends_with(&format!("/{folder}"));
        hidden.extend(HOLDERS.iter().filter(|(folder, _)| holds(folder)).map(|(_, file)| format!("{path}/{file}")));
    }
    out.extend(hidden.into_iter().map(|path| (Access::DeleteAll, Word::text(path))));
    out
}

/// The pattern itself, for files whose names only the caller knows, and the protected names it matches.
fn by_pattern(word: &Word) -> Vec<String> {
    let known = |piece: &Piece| !matches!(piece, Piece::Any(_));
    if word.literal().is_some() || !word.pieces.iter().all(known) {
        return Vec::new();
    }
    let text = word.to_string();
    let text = text.trim_end_matches('/');
    let (parent, last) = text.rfind('/').map_or(("", text), |at| text.split_at(at + 1));
    // A star does not match a leading dot.
    let names = protected_names(&escape_but(last, &['*', '?']));
    names.into_iter().map(|name| format!("{parent}{name}")).chain([text.to_owned()]).collect()
}

fn deletes_found(rest: &[Word]) -> bool {
    let removes = |word: &Word| matches!(word.base().literal(), Some("rm" | "mv" | "shred" | "unlink"));
    rest.iter().any(|word| word.literal() == Some("-delete"))
        || rest
            .windows(2)
            .any(|pair| matches!(pair[0].literal(), Some("-exec" | "-execdir" | "-ok" | "-okdir")) && removes(&pair[1]))
}

/// The starting points of a search; the current directory if none is given.
fn search_roots(rest: &[Word]) -> Vec<Word> {
    let own = rest.iter().skip_while(|word| matches!(word.literal(), Some("-H" | "-L" | "-P")));
    let roots: Vec<Word> = own.take_while(|word| !word.prefix().starts_with(['-', '(', '!'])).cloned().collect();
    if roots.is_empty() { vec![Word::text(".")] } else { roots }
}

/// Whether a search selects only some files. Negated conditions do not count, because they still select most files.
fn is_filtered(rest: &[Word]) -> bool {
    /// Options and actions that select no files, with the number of their values.
    const UNFILTERED: &[(&str, usize)] = &[
        ("-H", 0),
        ("-L", 0),
        ("-P", 0),
        ("-d", 0),
        ("-depth", 0),
        ("-mindepth", 1),
        ("-maxdepth", 1),
        ("-xdev", 0),
        ("-mount", 0),
        ("-follow", 0),
        ("-noleaf", 0),
        ("-daystart", 0),
        ("-ignore_readdir_race", 0),
        ("-type", 1),
        ("-print", 0),
        ("-print0", 0),
        ("-delete", 0),
        ("-true", 0),
        ("-a", 0),
        ("-and", 0),
        ("-o", 0),
        ("-or", 0),
    ];
    let mut words = rest.iter().map(Word::prefix);
    let mut negated = false;
    while let Some(word) = words.next() {
        match word {
            "!" | "-not" => {
                negated = true;
                continue;
            }
            "-exec" | "-execdir" | "-ok" | "-okdir" => {
                words.find(|word| matches!(*word, ";" | "+"));
            }
            _ if !word.starts_with('-') => {}
            _ => match UNFILTERED.iter().find(|(name, _)| *name == word) {
                Some((_, values)) => drop(words.by_ref().take(*values).last()),
                None if negated => drop(words.next()),
                None => return words.next() != Some("*"),
            },
        }
        negated = false;
    }
    false
}

/// The protected names that a search selects, ignoring negated conditions.
fn found_names(rest: &[Word]) -> Vec<&'static str> {
    let asks = |word: &Word| matches!(word.literal(), Some("-name" | "-iname" | "-path" | "-ipath" | "-wholename"));
    let negated = |at: usize| at > 0 && matches!(rest[at - 1].literal(), Some("!" | "-not"));
    let prunes = rest.iter().any(|word| word.literal() == Some("-prune"));
    let asked = rest.windows(2).enumerate().filter(move |(at, pair)| asks(&pair[0]) && !negated(*at) && !prunes);
    let asked: Vec<&str> = asked.filter_map(|(_, pair)| pair[1].literal()).collect();
    asked.iter().flat_map(|text| text.split('/')).flat_map(protected_names).collect()
}

/// The protected names that a pattern matches. An invalid pattern may match all of them.
fn protected_names(pattern: &str) -> Vec<&'static str> {
    if !pattern.starts_with('.') {
        return Vec::new();
    }
    let patterns = PathPatterns::new([pattern], false);
    PROTECTED.iter().filter(|name| patterns.as_ref().map_or(true, |patterns| patterns.matches(name))).copied().collect()
}

/// What git commands write or delete in the tree, or in the folder they are given.
fn git(simple: &Simple) -> Vec<(Access, Word)> {
    let Some(call) = git_call(&simple.words) else { return Vec::new() };
    let arguments = Arguments::new(call.arguments);
    let own = simple.words.len().saturating_sub(call.arguments.len() + 1).max(1);
    let directory = Arguments::new(&simple.words[1..own]).value(&["-C"]).pop();
    let written = |words: Vec<Word>| words.into_iter().map(|word| (Access::Write, word)).collect::<Vec<_>>();
    let operands = |valued: &[&str]| arguments.operands(valued).into_iter().cloned().collect::<Vec<Word>>();
    let targets = match call.command.literal().unwrap_or_default() {
        "rm" if !arguments.long("--cached", 4) && !arguments.short('n', "") => {
            let access = if arguments.short('r', "") { Access::DeleteAll } else { Access::Write };
            operands(&["--pathspec-from-file"]).into_iter().map(|word| (access, word)).collect()
        }
        "mv" if !arguments.short('n', "") => {
            let mut moved = operands(&[]);
            let to = moved.pop();
            moved.into_iter().map(|word| (Access::DeleteAll, word)).chain(to.map(|word| (Access::Write, word))).collect()
        }
        "clone" => {
            let valued = [
                "-b",
                "--branch",
                "-o",
                "--origin",
                "-c",
                "--config",
                "--depth",
                "-j",
                "--jobs",
                "--reference",
                "-u",
                "--upload-pack",
                "--template",
                "--separate-git-dir",
                "--filter",
                "--shallow-since",
                "--shallow-exclude",
            ];
            written(operands(&valued).into_iter().skip(1).collect())
        }
        "init" => written(operands(&["-b", "--initial-branch", "--template", "--separate-git-dir", "--object-format"])),
        "archive" => written(arguments.value(&["-o", "--output"])),
        "diff" | "log" | "show" => written(arguments.value(&["--output"])),
        "format-patch" => written(arguments.value(&["-o", "--output-directory"])),
        "bundle" if arguments.first() == Some("create") => written(operands(&[]).into_iter().skip(1).take(1).collect()),
        _ => Vec::new(),
    };
    let place = |word: Word| match directory.as_ref().and_then(Word::literal) {
        Some(directory) if !word.prefix().starts_with(['/', '~']) => below(directory, &word),
        Some(_) | None => word,
    };
    targets.into_iter().map(|(access, word)| (access, place(word))).collect()
}

fn below(directory: &str, word: &Word) -> Word {
    let mut word = word.clone();
    match word.pieces.first_mut() {
        Some(Piece::Text(text)) => *text = format!("{directory}/{text}"),
        Some(Piece::Any(_) | Piece::Glob | Piece::One) | None => word.pieces.insert(0, Piece::Text(format!("{directory}/"))),
    }
    word
}

/// The folder to unpack into, and the archive to create.
fn tar(arguments: &Arguments<'_>) -> Vec<Word> {
    let mut out = arguments.value(&["-C", "--directory"]);
    let words = arguments.all();
    let bundled = words.first().filter(|word| word.literal().is_some_and(|text| text.bytes().all(|b| b.is_ascii_alphabetic())));
    let makes = ['c', 'r', 'u']
        .iter()
        .any(|mode| arguments.short(*mode, "fC") || bundled.is_some_and(|word| word.prefix().contains(*mode)))
        || arguments.long("--create", 4);
    if makes {
        out.extend(arguments.clustered('f', "C"));
        out.extend(arguments.value(&["--file"]));
        out.extend(bundled.filter(|word| word.prefix().contains('f')).and_then(|_| words.get(1).cloned()));
    }
    out.retain(|word| word.literal() != Some("-"));
    out
}

/// An unknown path below a directory.
fn inside(directory: &Word) -> Word {
    let mut word = directory.clone();
    word.pieces.extend([Piece::Text("/".to_owned()), Piece::Any(Origin::Unknown)]);
    if let [Piece::Text(path), Piece::Text(slash), ..] = word.pieces.as_mut_slice() {
        path.push_str(slash);
        word.pieces.remove(1);
    }
    word
}

fn copy(arguments: &Arguments<'_>) -> Vec<(Access, Word)> {
    let into = arguments.value(&["-t", "--target-directory"]);
    if !into.is_empty() {
        return into.into_iter().map(|word| (Access::Write, word)).collect();
    }
    let valued = ["-m", "--mode", "-o", "--owner", "-g", "--group", "-S", "--suffix", "-e", "--exclude", "-t", "-P", "-i"];
    let operands = arguments.operands(&valued);
    // If the source is a directory, its files end up below the target; the target itself stands for them.
    operands
        .last()
        .filter(|_| operands.len() > 1 || arguments.short('d', ""))
        .map(|word| (Access::Write, (*word).clone()))
        .into_iter()
        .collect()
}

/// With `--delete`, files that the source does not have are deleted from the target.
fn rsync(arguments: &Arguments<'_>) -> Vec<(Access, Word)> {
    let deletes = arguments.all().iter().any(|word| word.prefix() == "--del" || word.prefix().starts_with("--delete"));
    let dry = arguments.short('n', "eBTf") || arguments.any(&["--dry-run", "--list-only"]);
    let access = if deletes { Access::DeleteAll } else { Access::Write };
    if dry { Vec::new() } else { copy(arguments).into_iter().map(|(_, word)| (access, word)).collect() }
}

fn link(arguments: &Arguments<'_>) -> Vec<(Access, Word)> {
    let operands = arguments.operands(&["-S", "--suffix", "-t", "--target-directory"]);
    match operands.as_slice() {
        // With one operand, the link is created in the current directory.
        [only] => vec![(Access::Write, only.base())],
        _ => copy(arguments),
    }
}

fn in_place(name: &str, arguments: &Arguments<'_>) -> bool {
    match name {
        "sed" | "gsed" => arguments.short('i', "efl") || arguments.long("--in-place", 4),
        _ => arguments.short('i', "eEIM0"),
    }
}

/// The files of a program whose first operand is a script, unless options provide the script.
fn scripted(arguments: &Arguments<'_>, access: Access) -> Vec<(Access, Word)> {
    let valued =
        ["-e", "-f", "-E", "-l", "-v", "-F", "-i", "--expression", "--file", "-A", "-B", "-C", "-m", "-g", "-t", "--include"];
    // In sed and perl, where it matters, `-i` does not take the next word.
    let valued = if access == Access::Write { &valued[..2] } else { &valued[..] };
    let given = arguments.all().iter().any(|word| {
        let prefix = word.prefix();
        prefix == "-f" || prefix.starts_with("--expression") || prefix.starts_with("--file") || ends_with_script(prefix)
    });
    let operands = arguments.operands(valued);
    operands.into_iter().skip(usize::from(!given)).map(|word| (access, word.clone())).collect()
}

/// A cluster such as `-pe` or `-ie`, whose script is the next word.
fn ends_with_script(option: &str) -> bool {
    option.starts_with('-') && !option.starts_with("--") && option.ends_with(['e', 'E'])
}
