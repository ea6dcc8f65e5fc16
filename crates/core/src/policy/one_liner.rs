//! Files that a one-liner in another language obviously deletes or writes: `python3 -c 'shutil.rmtree("/srv")'`.
//!
//! Detects only known function names with a literal path. It does not interpret the program, and most one-liners do not touch files.
//! The seal stops what this misses.

use super::act::Access;
use verdone_shell::Simple;

/// Function names, and how they access their first and second argument.
const CALLS: &[(&str, Option<Access>, Option<Access>)] = &[
    ("shutil.rmtree", DELETE, None),
    ("rmtree", DELETE, None),
    ("remove_tree", DELETE, None),
    ("os.removedirs", DELETE, None),
    ("os.rmdir", DELETE, None),
    ("rmSync", DELETE, None),
    ("rmdirSync", DELETE, None),
    ("fs.rm", DELETE, None),
    ("fs.rmdir", DELETE, None),
    ("fs.promises.rm", DELETE, None),
    ("rimraf", DELETE, None),
    ("FileUtils.rm_rf", DELETE, None),
    ("FileUtils.rm_r", DELETE, None),
    ("FileUtils.remove_dir", DELETE, None),
    ("FileUtils.rm", WRITE, None),
    ("FileUtils.rm_f", WRITE, None),
    ("os.remove", WRITE, None),
    ("os.unlink", WRITE, None),
    ("os.truncate", WRITE, None),
    ("unlinkSync", WRITE, None),
    ("fs.unlink", WRITE, None),
    ("writeFileSync", WRITE, None),
    ("appendFileSync", WRITE, None),
    ("fs.writeFile", WRITE, None),
    ("File.delete", WRITE, None),
    ("File.unlink", WRITE, None),
    ("File.write", WRITE, None),
    ("os.rename", DELETE, WRITE),
    ("os.replace", DELETE, WRITE),
    ("shutil.move", DELETE, WRITE),
    ("renameSync", DELETE, WRITE),
    ("fs.rename", DELETE, WRITE),
    ("File.rename", DELETE, WRITE),
    ("FileUtils.mv", DELETE, WRITE),
    ("shutil.copy", None, WRITE),
    ("shutil.copyfile", None, WRITE),
    ("shutil.copytree", None, WRITE),
    ("copyFileSync", None, WRITE),
    ("cpSync", None, WRITE),
];
/// Built-in functions of Perl and PHP.
const BARE: &[(&str, Option<Access>, Option<Access>)] =
    &[("unlink", WRITE, None), ("rmdir", DELETE, None), ("rename", DELETE, WRITE)];
/// Methods of `Path("…")`.
const METHODS: &[&str] = &[".unlink(", ".rmdir(", ".write_text(", ".write_bytes(", ".touch(", ".rename(", ".replace("];

const DELETE: Option<Access> = Some(Access::DeleteAll);
const WRITE: Option<Access> = Some(Access::Write);

/// Expressions that stand for a folder, besides string literals.
const FOLDERS: &[(&str, &str)] = &[
    ("os.getcwd()", "."),
    ("process.cwd()", "."),
    ("Dir.pwd", "."),
    ("Path.cwd()", "."),
    ("Path.home()", "~"),
    ("os.homedir()", "~"),
    ("Dir.home", "~"),
    ("os.environ[\"HOME\"]", "~"),
    ("os.environ['HOME']", "~"),
    ("process.env.HOME", "~"),
];

/// The paths as written in the code; a leading `~` means the home folder.
pub(super) fn targets(simple: &Simple) -> Vec<(Access, String)> {
    let Some((program, arguments)) = simple.words.split_first() else { return Vec::new() };
    let base = program.base();
    let name = base.literal().unwrap_or_default().trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let (options, has_bare): (&[&str], bool) = match name {
        "python" | "pypy" => (&["-c"], false),
        "node" | "nodejs" | "bun" => (&["-e", "--eval", "-p", "--print", "-pe"], false),
        "deno" => (&["eval"], false),
        "perl" => (&["-e", "-E", "-le", "-we"], true),
        "ruby" => (&["-e"], false),
        "php" => (&["-r"], true),
        _ => return Vec::new(),
    };
    let is_code = |option: &str| options.contains(&option) || (name == "python" && is_cluster_of_c(option));
    let codes = arguments.windows(2).filter(|pair| pair[0].literal().is_some_and(is_code)).filter_map(|pair| pair[1].literal());
    let calls = || CALLS.iter().chain(if has_bare { BARE } else { &[] });
    codes.flat_map(|code| in_code(code, calls())).collect()
}

/// `-Ic`: only flags without a value before the `c`.
fn is_cluster_of_c(option: &str) -> bool {
    let letters = option.strip_prefix('-').and_then(|rest| rest.strip_suffix('c'));
    letters.is_some_and(|letters| letters.chars().all(|c| "bBdEIiOPqsSuvx".contains(c)))
}

fn in_code<'a>(
    code: &str,
    calls: impl Iterator<Item = &'a (&'static str, Option<Access>, Option<Access>)>,
) -> Vec<(Access, String)> {
    let texts = texts(code);
    let mut out = Vec::new();
    let each = |name: &str, seen: &mut dyn FnMut(&str)| {
        for (at, _) in code.match_indices(name) {
            let before = code[..at].chars().next_back();
            let whole = !before.is_some_and(|c| c.is_alphanumeric() || c == '_');
            if whole && !texts.iter().any(|text| text.contains(&at)) {
                seen(&code[at + name.len()..]);
            }
        }
    };
    for (name, first, second) in calls {
        each(name, &mut |after| {
            let Some((path, rest)) = opened(after).and_then(argument) else { return };
            out.extend(first.map(|access| (access, path)));
            let other = rest.trim_start().strip_prefix(',').and_then(argument);
            out.extend(second.zip(other).map(|(access, (path, _))| (access, path)));
        });
    }
    each("open", &mut |after| {
        let Some((path, rest)) = after.strip_prefix('(').and_then(argument) else { return };
        let mode = rest.trim_start().strip_prefix(',').map(|rest| rest.trim_start().trim_start_matches("mode="));
        let mode = mode.and_then(argument).map(|(mode, _)| mode).unwrap_or_default();
        out.extend(mode.contains(['w', 'a', 'x', '+']).then_some((Access::Write, path)));
    });
    each("Path", &mut |after| {
        let Some((path, rest)) = after.strip_prefix('(').and_then(argument) else { return };
        let method = rest.trim_start().strip_prefix(')').is_some_and(|rest| METHODS.iter().any(|name| rest.starts_with(name)));
        out.extend(method.then_some((Access::Write, path)));
    });
    out
}

/// The text after a call's opening parenthesis, or after the space if the language needs no parenthesis.
fn opened(after: &str) -> Option<&str> {
    let trimmed = after.trim_start();
    match trimmed.strip_prefix('(') {
        Some(rest) => Some(rest),
        None => (trimmed.len() < after.len()).then_some(trimmed),
    }
}

/// A literal path, and the text after it.
fn argument(text: &str) -> Option<(String, &str)> {
    let mut text = text.trim_start();
    let mut open = 0;
    for wrapper in ["os.path.expanduser(", "os.path.abspath(", "pathlib.Path(", "Path("] {
        if let Some(inner) = text.strip_prefix(wrapper) {
            (text, open) = (inner, open + 1);
        }
    }
    let (path, mut rest) = match FOLDERS.iter().find_map(|(code, path)| Some((*path, text.strip_prefix(code)?))) {
        // `os.getcwd() + "/build"` is a different folder.
        Some((_, rest)) if rest.trim_start().starts_with(['+', '/', '[']) => return None,
        Some((path, rest)) => (path.to_owned(), rest),
        None => quoted(text.strip_prefix(['r', 'b']).unwrap_or(text))?,
    };
    for _ in 0..open {
        rest = rest.trim_start().strip_prefix(')').unwrap_or(rest);
    }
    (!rest.trim_start().starts_with(['+', '%', '.', '/'])).then_some((path, rest))
}

fn quoted(text: &str) -> Option<(String, &str)> {
    let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"' | '`'))?;
    let end = text[1..].find(quote)? + 1;
    let path = &text[1..end];
    // Interpolations and escapes are not evaluated here.
    (!path.is_empty() && !path.contains(['$', '\\', '{', '\n'])).then(|| (path.to_owned(), &text[end + 1..]))
}

/// The ranges of string literals: a call inside one is data.
fn texts(code: &str) -> Vec<std::ops::Range<usize>> {
    let mut out = Vec::new();
    let mut open: Option<(usize, char)> = None;
    let mut chars = code.char_indices();
    while let Some((at, c)) = chars.next() {
        match (open, c) {
            (_, '\\') => _ = chars.next(),
            (Some((start, quote)), c) if c == quote => {
                out.push(start..at);
                open = None;
            }
            (None, '\'' | '"' | '`') => open = Some((at, c)),
            (Some(_) | None, _) => {}
        }
    }
    out
}
