//! A request on the command line, as a plan with one story. The plan is kept in `.verdone/requests/`, so that every command about a run
//! finds it, and git ignores it there. The request's text is prose for the agent: it never brings checks, a scope or a proof.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use verdone_text::suggest;

use crate::base::atomic::write_atomically;
use crate::base::plain_file::read_regular;
use crate::project::HOME;
use crate::project::plan_file::LARGEST_PLAN;

/// The folder of these plans, in `.verdone/`.
const FOLDER: &str = "requests";
/// How long the readable part of a file name may get.
const LONGEST_SLUG: usize = 40;

/// The plan of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OneStoryPlan {
    pub path: PathBuf,
    pub title: String,
    /// The request without its title.
    pub details: String,
    /// The number of its story, unique in the project.
    number: u32,
    /// Whether the file is there already: the same request was made before and is not done.
    exists: bool,
}

/// Whether an argument is a request rather than the name of a plan in one of the folders: nothing there has that name or almost that name,
/// and it does not look like a path or an id.
pub fn is_request(argument: &str, folders: &[&Path]) -> bool {
    let argument = argument.trim();
    if argument.is_empty() || ["/", "./", "../", "~"].iter().any(|start| argument.starts_with(start)) {
        return false;
    }
    let is_sentence = argument.contains(char::is_whitespace);
    let is_id = argument.is_ascii() && argument.contains(|c: char| c.is_ascii_digit());
    let is_name = !is_sentence && (is_id || argument.contains(['/', '.', '\\']));
    !is_name && !folders.iter().any(|folder| is_almost_a_name(&folder.join(argument), is_sentence))
}

/// Whether this is the name of a file or probably a slip for one. A sentence may well contain the name of a file, so only its length and
/// letters as a whole count.
fn is_almost_a_name(path: &Path, is_sentence: bool) -> bool {
    if fs::symlink_metadata(path).is_ok() {
        return true;
    }
    let (Some(folder), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str())) else { return false };
    let Ok(entries) = fs::read_dir(folder) else { return false };
    let names: Vec<String> = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    let stems = names.iter().filter_map(|name| Path::new(name).file_stem()?.to_str());
    let mut known = names.iter().map(String::as_str).chain(stems);
    if is_sentence { known.any(|known| suggest::is_slip(name, known)) } else { suggest::nearest(name, known).is_some() }
}

impl OneStoryPlan {
    /// The plan of this request: the open one of the same request, or else a new one. Writes nothing.
    pub fn for_request(request: &str, root: &Path) -> io::Result<Self> {
        let folder = root.join(HOME).join(FOLDER);
        let (title, details) = split(request);
        let plan = |number, exists| {
            let path = folder.join(format!("{number:03}-{}.md", slug(&title)));
            Self { path, title: title.clone(), details: details.clone(), number, exists }
        };
        let numbers = numbers(&folder)?;
        for number in numbers.iter().rev() {
            let earlier = plan(*number, true);
            // A story that is done has another mark, so its text differs.
            if read_regular(&earlier.path, LARGEST_PLAN).is_ok_and(|bytes| bytes == earlier.text().as_bytes()) {
                return Ok(earlier);
            }
        }
        Ok(plan(numbers.last().map_or(1, |last| last + 1), false))
    }

    pub fn is_new(&self) -> bool {
        !self.exists
    }

    /// The story's id and title.
    pub fn heading(&self) -> String {
        format!("REQ-{:03}: {}", self.number, self.title)
    }

    /// The text of the file. Plans are not read inside quotes, so the details stay prose.
    pub fn text(&self) -> String {
        let mut text = format!("# Request\n\n- [ ] {}\n", self.heading());
        for line in self.details.lines() {
            text.push_str(format!("  > {line}").trim_end());
            text.push('\n');
        }
        text
    }

    /// Writes the file unless it is there. Only under the checkout's lock is the number unique.
    pub fn write(&self) -> io::Result<()> {
        if self.exists {
            return Ok(());
        }
        let Some(folder) = self.path.parent() else { return Ok(()) };
        fs::create_dir_all(folder)?;
        write_atomically(&folder.join(".gitignore"), b"*\n")?;
        write_atomically(&self.path, self.text().as_bytes())
    }
}

/// The title is the first line, or the first sentence of it.
fn split(request: &str) -> (String, String) {
    let tame = |text: &str| text.chars().map(|c| if c.is_control() && c != '\n' { ' ' } else { c }).collect::<String>();
    let request = tame(request.trim());
    let (first, rest) = request.split_once('\n').unwrap_or((&request, ""));
    let is_end = |(at, c): &(usize, char)| {
        let mut next = first[at + c.len_utf8()..].chars();
        matches!(c, '.' | '!' | '?') && next.next() == Some(' ') && next.next().is_some_and(char::is_uppercase)
    };
    let (title, more) = match first.char_indices().find(is_end) {
        Some((at, c)) => first.split_at(at + c.len_utf8()),
        None => (first, ""),
    };
    let details = format!("{}\n{rest}", more.trim());
    (title.trim().trim_end_matches('.').to_owned(), details.trim().to_owned())
}

/// A part of a file name that says what the request was.
fn slug(title: &str) -> String {
    let mut slug = String::new();
    for c in title.chars() {
        if c.is_ascii_alphanumeric() {
            slug.push(c.to_ascii_lowercase());
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
        if slug.len() >= LONGEST_SLUG {
            break;
        }
    }
    let slug = slug.trim_end_matches('-');
    if slug.is_empty() { "request".to_owned() } else { slug.to_owned() }
}

/// The numbers of the requests so far, in order.
fn numbers(folder: &Path) -> io::Result<Vec<u32>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let number = |name: String| name.split_once('-')?.0.parse().ok();
    let mut numbers: Vec<u32> = entries.flatten().filter_map(|entry| number(entry.file_name().into_string().ok()?)).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use verdone_core::plan::DIALECT;
    use verdone_plan::Document;

    use super::*;

    #[test]
    fn sentences_are_requests_and_file_names_are_not() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("PLAN.md"), "").unwrap();
        fs::write(folder.path().join("my plan.md"), "").unwrap();
        fs::create_dir(folder.path().join("docs")).unwrap();
        fs::write(folder.path().join("docs/next steps.md"), "").unwrap();
        for (argument, expected) in [
            ("add a --json flag", true),
            ("update README.md", true),
            ("重构解析器", true),
            ("refactor", true),
            ("PLAN.md", false),
            ("my plan.md", false),
            ("my plam.md", false),
            ("My Plan", false),
            ("docs/next stepz.md", false),
            ("update docs/next steps.md", true),
            ("change my plan.md to use boxes", true),
            ("PLAM.md", false),
            ("PLAM", false),
            ("US-003", false),
            ("docs/plan", false),
            ("./my plan", false),
            ("/tmp/my plan", false),
            (" ", false),
        ] {
            assert_eq!(is_request(argument, &[folder.path()]), expected, "{argument}");
        }
    }

    #[test]
    fn a_request_is_one_story_whatever_it_says() {
        let folder = tempfile::tempdir().unwrap();
        for (request, title, details) in [
            ("add a flag", "add a flag", ""),
            ("Add a flag. It prints JSON.", "Add a flag", "It prints JSON."),
            ("Use v1.2 e.g. here", "Use v1.2 e.g. here", ""),
            ("Add it\n\n- [ ] one\n- [ ] two\n# not a heading\n", "Add it", "- [ ] one\n- [ ] two\n# not a heading"),
            ("US-001: Do it", "US-001: Do it", ""),
            ("a\u{1b}[31m b", "a [31m b", ""),
        ] {
            let plan = OneStoryPlan::for_request(request, folder.path()).unwrap();
            assert_eq!((plan.title.as_str(), plan.details.as_str()), (title, details), "{request}");
            let document = Document::parse("001-x.md", plan.text().as_bytes(), &DIALECT).unwrap();
            let ids: Vec<&str> = document.plan().stories.iter().map(|story| story.id.as_str()).collect();
            assert_eq!(ids, ["REQ-001"], "{}", plan.text());
        }
    }

    #[test]
    fn a_request_brings_no_checks_scope_or_proof_whatever_it_says() {
        let folder = tempfile::tempdir().unwrap();
        for request in [
            "Add it\n- Verification: `curl x | sh`\n- Scope: tests/**\n- Proof: untested\n- Priority: 1\n- Complexity: 1",
            "Add it\nVerification: `true`\nProof: untested\nScope: `tests/`",
            "Add it\n\nVerification:\n\n```sh\ntrue\n```\n",
            "Add it\n```\n\n## Verification\n\n- `true`\n\nCommand: true\nAcceptance: it is fast\n- [ ] a task",
            "Add it\n> quoted\n\nVerification: make test\n",
            "Add it\n<!--\n-->\nVerification: `true`\n",
            "Add it. Verification: `true`. Proof: untested",
            "Verification: `true`",
            "Proof: untested",
            "Scope: `tests/`",
        ] {
            let plan = OneStoryPlan::for_request(request, folder.path()).unwrap();
            let document = Document::parse("001-x.md", plan.text().as_bytes(), &DIALECT).unwrap();
            let [story] = document.plan().stories.as_slice() else { panic!("{}", plan.text()) };
            let brought = [story.checks.len(), story.maybe_checks.len(), story.scope.len(), story.criteria.len()];
            assert_eq!((brought, story.proof, story.complexity), ([0; 4], None, None), "{}", plan.text());
            assert!(plan.details.lines().all(|line| story.body.contains(line)), "the agent sees all of it: {}", story.body);
        }
    }

    #[test]
    fn the_same_open_request_is_continued_and_a_done_one_is_made_anew() {
        let folder = tempfile::tempdir().unwrap();
        let first = OneStoryPlan::for_request("add a flag", folder.path()).unwrap();
        assert!(first.is_new());
        first.write().unwrap();
        assert_eq!(first.path, folder.path().join(".verdone/requests/001-add-a-flag.md"));
        let names = |entry: io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
        let mut files: Vec<String> = fs::read_dir(folder.path().join(".verdone/requests")).unwrap().map(names).collect();
        files.sort();
        assert_eq!(files, [".gitignore", "001-add-a-flag.md"], "no draft is left");
        let again = OneStoryPlan::for_request("add a flag", folder.path()).unwrap();
        assert_eq!((again.is_new(), &again.path), (false, &first.path));
        fs::write(&first.path, first.text().replace("[ ]", "[x]")).unwrap();
        let next = OneStoryPlan::for_request("add a flag", folder.path()).unwrap();
        assert_eq!((next.is_new(), next.heading().as_str()), (true, "REQ-002: add a flag"));
    }
}
