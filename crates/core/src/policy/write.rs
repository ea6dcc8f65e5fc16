//! Which files the arguments of well-known programs write, delete or read.

use super::act::Access;
use super::arguments::Arguments;
use crate::shell::{Origin, Piece, RedirectKind, Simple, Word};

/// Targets of one simple command, as words.
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
    let arguments = Arguments::new(rest);
    let all = |access: Access, valued: &[&str]| -> Vec<(Access, Word)> {
        arguments.operands(valued).into_iter().map(|word| (access, word.clone())).collect()
    };
    match name {
        "cp" | "install" | "rsync" | "scp" | "gcp" | "ginstall" => out.extend(copy(&arguments)),
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
        "find" if arguments.any(&["-delete"]) => {
            let roots = rest.iter().take_while(|word| !word.prefix().starts_with(['-', '(', '!']));
            let filtered = rest.iter().filter(|word| word.prefix().starts_with('-')).count() > 1;
            out.extend(roots.map(|word| (Access::DeleteAll, if filtered { inside(word) } else { word.clone() })));
        }
        "dd" => out.extend(rest.iter().filter_map(|word| word.without_prefix("of=")).map(|word| (Access::Write, word))),
        "sed" | "gsed" | "perl" | "ruby" if in_place(name, &arguments) => out.extend(scripted(&arguments, Access::Write)),
        "awk" | "gawk" if arguments.any(&["inplace"]) => out.extend(scripted(&arguments, Access::Write)),
        "patch" => {
            out.extend(all(Access::Write, &["-p", "-i", "-d", "-D", "-B"]).into_iter().take(1));
            out.extend(arguments.value(&["-o", "--output", "-d", "--directory"]).into_iter().map(|word| (Access::Write, word)));
        }
        "curl" => out.extend(arguments.value(&["-o", "--output", "--output-dir"]).into_iter().map(|word| (Access::Write, word))),
        "wget" => out.extend(
            arguments
                .value(&["-O", "--output-document", "-P", "--directory-prefix"])
                .into_iter()
                .map(|word| (Access::Write, word)),
        ),
        "tar" | "bsdtar" => out.extend(arguments.value(&["-C", "--directory"]).into_iter().map(|word| (Access::Write, word))),
        "unzip" => out.extend(arguments.value(&["-d"]).into_iter().map(|word| (Access::Write, word))),
        "cat" | "head" | "tail" | "less" | "more" | "bat" | "batcat" | "nl" | "tac" | "od" | "xxd" | "hexdump" | "view" => {
            out.extend(all(Access::Read, &["-n", "-c", "-r", "--lines", "--bytes", "--line-range", "-s", "-l"]));
        }
        "sed" | "gsed" | "awk" | "gawk" | "grep" | "egrep" | "fgrep" | "rg" => out.extend(scripted(&arguments, Access::Read)),
        _ => {}
    }
    out
}

/// Something below a directory.
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
    // A directory as the source names the files below the target: the target itself stands for them.
    operands
        .last()
        .filter(|_| operands.len() > 1 || arguments.short('d', ""))
        .map(|word| (Access::Write, (*word).clone()))
        .into_iter()
        .collect()
}

fn link(arguments: &Arguments<'_>) -> Vec<(Access, Word)> {
    let operands = arguments.operands(&["-S", "--suffix", "-t", "--target-directory"]);
    match operands.as_slice() {
        // With one operand the link lies in the current directory.
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

/// Files of a program whose first operand is a script, unless options give it.
fn scripted(arguments: &Arguments<'_>, access: Access) -> Vec<(Access, Word)> {
    let valued =
        ["-e", "-f", "-E", "-l", "-v", "-F", "-i", "--expression", "--file", "-A", "-B", "-C", "-m", "-g", "-t", "--include"];
    // `-i` takes no word of its own in sed and perl, where it matters.
    let valued = if access == Access::Write { &valued[..2] } else { &valued[..] };
    let given = arguments.words().iter().any(|word| {
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
