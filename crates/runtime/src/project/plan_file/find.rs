//! Finds the plan: the one named by the user, else the project's only one.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use verdone_core::agent::client_files::LOOP_STATE;
use verdone_core::config::detect::{OTHER_PLAN_NAMES, PLAN_NAMES};
use verdone_core::plan::DIALECT;
use verdone_plan::Document;
use verdone_text::suggest;

use super::LARGEST_PLAN;

/// What the user specified about the plan. Paths on the command line are relative to `cwd`, or else to `root`, as messages name them; others
/// are relative to `root`.
#[derive(Debug, Clone, Default)]
pub struct PlanRequest {
    /// The folder with `.verdone/`, `.ralph/` and the usual plan files.
    pub root: PathBuf,
    pub cwd: PathBuf,
    /// The argument: a file or a folder.
    pub named: Option<PathBuf>,
    /// `--prd N`.
    pub prd: Option<u32>,
    /// The config's plan, or `PLAN_PATH`.
    pub configured: Option<PathBuf>,
    /// `RALPH_LOOP_DIR`.
    pub loop_dir: Option<PathBuf>,
    /// `PROGRESS_PATH`.
    pub progress_path: Option<PathBuf>,
}

/// The location of a plan and the conventions of its folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanLocation {
    pub plan: PathBuf,
    pub home: PlanConventions,
    /// A configured `progress.md`.
    pub progress: Option<PathBuf>,
}

/// The folder's conventions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlanConventions {
    /// `.ralph/PRD-N/`: `prd.md` and `progress.md` beside the plan.
    Prd,
    /// `ralph-loops/<name>/`: `progress.txt` and `RALPH_PROMPT.md` beside the plan.
    RalphLoop,
    /// None: progress files only where they already exist.
    Plain,
}

#[derive(Debug, thiserror::Error)]
pub enum FindError {
    #[error("there is no plan at {path}")]
    Missing {
        path: PathBuf,
        /// A file beside it whose name is almost the same.
        similar: Option<PathBuf>,
    },
    #[error("there is no plan in {path}")]
    EmptyFolder { path: PathBuf },
    #[error("there are several plans:{}", list(candidates))]
    Several { candidates: Vec<Candidate> },
    #[error("there is no plan in this project; tried:{}", tried(folders))]
    Nothing {
        /// Where it was looked for, innermost first.
        folders: Vec<PathBuf>,
    },
}

/// A plan that the user could mean.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    pub path: PathBuf,
    /// Number of open stories. `None` if it does not parse as a plan.
    pub open: Option<usize>,
}

impl FindError {
    /// What to do next.
    pub fn hints(&self) -> Vec<String> {
        let name_one = || "name a plan (`verdone run PLAN.md`), or create one with `verdone plan new`".to_owned();
        match self {
            Self::Missing { similar, .. } => {
                let meant = similar.as_ref().map(|path| format!("did you mean {}?", path.display()));
                meant.into_iter().chain([name_one()]).collect()
            }
            Self::EmptyFolder { .. } => vec![name_one()],
            Self::Several { .. } => vec!["name one of them, or use `--prd N`".to_owned()],
            Self::Nothing { .. } => vec![
                "`verdone init` sets up the project, with a plan to fill in".to_owned(),
                "or without a plan: verdone run \"do X\"".to_owned(),
            ],
        }
    }
}

/// Whether a file has one of the usual plan names.
pub(crate) fn is_usual_plan(path: &Path) -> bool {
    PLAN_NAMES.iter().chain(&OTHER_PLAN_NAMES).any(|name| Path::new(name).file_name() == path.file_name())
}

/// Finds the plan: argument, `--prd`, config, `RALPH_LOOP_DIR`, then the usual names in the project.
pub fn find(request: &PlanRequest) -> Result<PlanLocation, FindError> {
    let progress = request.progress_path.as_ref().map(|path| normal(&request.root.join(path)));
    let plan = if let Some(named) = &request.named {
        let (here, at_root) = (normal(&request.cwd.join(named)), normal(&request.root.join(named)));
        file_or_folder(if !here.exists() && at_root.exists() { &at_root } else { &here })?
    } else if let Some(number) = request.prd {
        file_or_folder(&request.root.join(format!(".ralph/PRD-{number}")))?
    } else if let Some(configured) = &request.configured {
        file_or_folder(&normal(&request.root.join(configured)))?
    } else if let Some(folder) = &request.loop_dir {
        let plan = file_or_folder(&normal(&request.root.join(folder).join("feature_list.json")))?;
        return Ok(PlanLocation { plan, home: PlanConventions::RalphLoop, progress });
    } else {
        nearest(&request.root)?
    };
    Ok(PlanLocation { home: home(&plan), plan, progress })
}

impl PlanLocation {
    /// The location of a plan that is known to be a file.
    pub fn new(plan: PathBuf) -> Self {
        Self { home: home(&plan), plan, progress: None }
    }

    /// The plan and all related files, whether they exist or not.
    pub fn files(&self) -> Vec<PathBuf> {
        let beside = [self.companion(), self.progress_md(), self.progress_txt(), self.prompt()];
        std::iter::once(self.plan.clone()).chain(beside.into_iter().flatten()).collect()
    }

    pub(super) fn companion(&self) -> Option<PathBuf> {
        let is_plan = self.plan.file_name().is_some_and(|name| name.eq_ignore_ascii_case("plan.md"));
        match self.home {
            PlanConventions::Prd => is_plan.then(|| self.beside("prd.md")),
            PlanConventions::RalphLoop | PlanConventions::Plain => None,
        }
    }

    pub(super) fn progress_md(&self) -> Option<PathBuf> {
        let usual = match self.home {
            PlanConventions::Prd => Some(self.beside("progress.md")),
            PlanConventions::RalphLoop | PlanConventions::Plain => None,
        };
        self.progress.clone().or(usual)
    }

    pub(super) fn progress_txt(&self) -> Option<PathBuf> {
        let path = self.beside("progress.txt");
        let is_list = self.plan.file_name().is_some_and(|name| name == "feature_list.json");
        match self.home {
            PlanConventions::RalphLoop => Some(path),
            PlanConventions::Prd => None,
            PlanConventions::Plain => (is_list && path.is_file()).then_some(path),
        }
    }

    pub(super) fn prompt(&self) -> Option<PathBuf> {
        let is_list = self.plan.file_name().is_some_and(|name| name == "feature_list.json");
        is_list.then(|| self.beside("RALPH_PROMPT.md"))
    }

    fn beside(&self, name: &str) -> PathBuf {
        self.plan.with_file_name(name)
    }
}

fn file_or_folder(path: &Path) -> Result<PathBuf, FindError> {
    if !path.is_dir() {
        let missing = || FindError::Missing { path: path.to_owned(), similar: similar_to(path) };
        let is_link = fs::symlink_metadata(path).map_err(|_| missing())?.is_symlink();
        // Use the link's target: it may be committed even if the link is not.
        return if is_link { fs::canonicalize(path).map_err(|_| missing()) } else { Ok(path.to_owned()) };
    }
    choose(in_folder(path))?.ok_or_else(|| FindError::EmptyFolder { path: path.to_owned() })
}

fn in_folder(folder: &Path) -> Vec<PathBuf> {
    let existing = |names: &[&str]| names.iter().map(|name| folder.join(name)).filter(|path| path.is_file()).collect::<Vec<_>>();
    let mut found = existing(&PLAN_NAMES);
    if found.is_empty() {
        // Files of these names are often something else.
        found = existing(&OTHER_PLAN_NAMES).into_iter().filter(|path| count_open(path).is_some()).collect();
    }
    // A prd.md next to a plan.md is its companion, not a second plan.
    if found.iter().any(|path| path.file_name().is_some_and(|name| name.eq_ignore_ascii_case("plan.md"))) {
        found.retain(|path| path.file_name().is_none_or(|name| !name.eq_ignore_ascii_case("prd.md")));
    }
    distinct(found)
}

fn project(root: &Path) -> Vec<PathBuf> {
    let mut found = in_folder(root);
    let is_prd = |name: &str| name.strip_prefix("PRD-").is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
    for folder in children(&root.join(".ralph")).into_iter().filter(|path| has_name(path, is_prd)) {
        found.extend(in_folder(&folder));
    }
    for folder in children(&root.join(LOOP_STATE)) {
        found.extend(Some(folder.join("feature_list.json")).filter(|path| path.is_file()));
    }
    let is_task = |name: &str| name.starts_with("prd-") && Path::new(name).extension().is_some_and(|ext| ext == "json");
    found.extend(children(&root.join(".agents/tasks")).into_iter().filter(|path| path.is_file() && has_name(path, is_task)));
    distinct(found)
}

/// The plan of the nearest folder that has one, up to the top of the work tree: a subfolder belongs to its project.
fn nearest(root: &Path) -> Result<PathBuf, FindError> {
    let mut folders = Vec::new();
    for folder in root.ancestors() {
        if let Some(plan) = choose(project(folder))? {
            return Ok(plan);
        }
        folders.push(folder.to_owned());
        if folder.join(".git").exists() {
            break;
        }
    }
    Err(FindError::Nothing { folders })
}

/// The file beside `path` that was probably meant.
fn similar_to(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    let files = children(path.parent()?).into_iter().filter(|path| path.is_file());
    let names: Vec<String> = files.filter_map(|path| path.file_name()?.to_str().map(str::to_owned)).collect();
    suggest::nearest(name, names.iter().map(String::as_str)).map(|meant| path.with_file_name(meant))
}

/// The only candidate, or the only one with open stories. Otherwise the user must choose.
fn choose(found: Vec<PathBuf>) -> Result<Option<PathBuf>, FindError> {
    if found.len() < 2 {
        return Ok(found.into_iter().next());
    }
    let candidates: Vec<Candidate> = found.into_iter().map(|path| Candidate { open: count_open(&path), path }).collect();
    // An unreadable file may be the intended plan, unless it is not a plan at all and another candidate is.
    let plans = candidates.iter().filter(|candidate| candidate.open.is_some()).count();
    let mut open = candidates.iter().filter(|candidate| candidate.open.is_some_and(|open| open > 0));
    match (open.next(), open.next()) {
        (Some(only), None) => Ok(Some(only.path.clone())),
        (None, None) if plans == 1 => {
            Ok(candidates.into_iter().find(|candidate| candidate.open.is_some()).map(|found| found.path))
        }
        (Some(_) | None, _) => Err(FindError::Several { candidates }),
    }
}

fn count_open(path: &Path) -> Option<usize> {
    let metadata = fs::metadata(path).ok().filter(|metadata| metadata.is_file() && metadata.len() <= LARGEST_PLAN)?;
    let bytes = fs::read(path).ok().filter(|_| metadata.is_file())?;
    Document::parse(&path.display().to_string(), &bytes, &DIALECT).ok().map(|document| document.plan().open().count())
}

fn home(plan: &Path) -> PlanConventions {
    let folder = plan.parent();
    let name = folder.and_then(Path::file_name).and_then(|name| name.to_str()).unwrap_or_default();
    let above = folder.and_then(Path::parent).and_then(Path::file_name);
    let is_list = plan.file_name().is_some_and(|name| name == "feature_list.json");
    if name.starts_with("PRD-") && above.is_some_and(|above| above == ".ralph") {
        PlanConventions::Prd
    } else if is_list && above.is_some_and(|above| above == "ralph-loops") {
        PlanConventions::RalphLoop
    } else {
        PlanConventions::Plain
    }
}

/// Folders sorted by name, with numbers sorted by value.
fn children(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut found: Vec<PathBuf> = entries.filter_map(Result::ok).map(|entry| entry.path()).collect();
    let number = |path: &PathBuf| -> u64 {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.rsplit('-').next().and_then(|digits| digits.parse().ok()).unwrap_or(u64::MAX)
    };
    found.sort_by(|a, b| (number(a), a).cmp(&(number(b), b)));
    found
}

fn has_name(path: &Path, right: impl Fn(&str) -> bool) -> bool {
    path.file_name().and_then(|name| name.to_str()).is_some_and(right)
}

/// On a file system that ignores case, `PLAN.md` and `plan.md` are one file.
fn distinct(found: Vec<PathBuf>) -> Vec<PathBuf> {
    let mut seen = BTreeSet::new();
    found.into_iter().filter(|path| fs::metadata(path).is_ok_and(|file| seen.insert((file.dev(), file.ino())))).collect()
}

/// Removes `.` and `..` from a path. The meaning of `..` depends on links, so links are resolved up to the last `..`.
fn normal(path: &Path) -> PathBuf {
    let parts: Vec<Component<'_>> = path.components().filter(|part| *part != Component::CurDir).collect();
    let end = parts.iter().rposition(|part| *part == Component::ParentDir).map_or(0, |last| last + 1);
    let (above, below): (PathBuf, PathBuf) = (parts[..end].iter().collect(), parts[end..].iter().collect());
    // Errors about a missing file show the path that the user typed.
    if end == 0 { below } else { fs::canonicalize(&above).unwrap_or(above).join(below) }
}

/// The names and places that [`find`] goes through.
fn tried(folders: &[PathBuf]) -> String {
    let (names, others) = (PLAN_NAMES.join(", "), OTHER_PLAN_NAMES.join(", "));
    let places = folders.iter().fold(String::new(), |mut out, folder| {
        let _ = write!(out, "\n  in {}", folder.display());
        out
    });
    format!("\n  {names}\n  {others}\n  .ralph/PRD-N/, {LOOP_STATE}/NAME/feature_list.json, .agents/tasks/prd-*.json{places}")
}

fn list(candidates: &[Candidate]) -> String {
    candidates.iter().fold(String::new(), |mut out, candidate| {
        let _ = match candidate.open {
            Some(open) => write!(out, "\n  {} ({open} open)", candidate.path.display()),
            None => write!(out, "\n  {} (not readable as a plan)", candidate.path.display()),
        };
        out
    })
}
