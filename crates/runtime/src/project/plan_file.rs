//! The plan on disk: finds it, marks it, and restores it after an agent changed it.
//!
//! The document is kept in memory and written through; the file is parsed again only if its bytes changed. Related files (a PRD next to it,
//! progress files) are handled the same way.

mod cached_file;
mod find;

use std::io;
use std::path::{Path, PathBuf};

use verdone_core::base::id::{Oid, StoryId};
use verdone_core::check::CommandSpec;
use verdone_core::plan::DIALECT;
use verdone_plan::progress::{self, LoopStatus, StoryEntry};
use verdone_plan::{Document, Plan, PlanError, Status, Story, Undo};

use cached_file::{Held, ReadError};

pub(crate) use find::is_usual_plan;
pub use find::{Candidate, FindError, PlanConventions, PlanLocation, PlanRequest, find};

/// Larger files cannot be plans.
pub const LARGEST_PLAN: u64 = 64 * 1024 * 1024;

/// An open plan.
#[derive(Debug)]
pub struct PlanFile {
    location: PlanLocation,
    held: Held,
    document: Document,
    companion: Option<Companion>,
    progress_md: Option<ProgressFile>,
    progress_txt: Option<ProgressFile>,
    context: Option<String>,
    last_mark: Option<LastMark>,
    ticked_by_others: Vec<StoryId>,
}

/// `prd.md` next to a `plan.md`: the same story is ticked there too. Protected even if it does not parse as a plan.
#[derive(Debug)]
struct Companion {
    held: Held,
    content: Content,
}

#[derive(Debug)]
enum Content {
    Plan(Box<Document>),
    Bytes(Vec<u8>),
}

#[derive(Debug)]
struct ProgressFile {
    held: Held,
    /// `None` while the file does not exist.
    text: Option<String>,
}

#[derive(Debug)]
struct LastMark {
    plan: Undo,
    companion: Option<Undo>,
}

#[derive(Debug, thiserror::Error)]
pub enum PlanFileError {
    #[error("cannot read {path}: {source}")]
    Read { path: PathBuf, source: io::Error },
    #[error("{path} is not a file")]
    NotAFile { path: PathBuf },
    #[error("{path} has {bytes} bytes; the limit for a plan is {LARGEST_PLAN}")]
    TooLarge { path: PathBuf, bytes: u64 },
    #[error("cannot write {path}: {source}")]
    Write { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error("there is no story {0} in this plan")]
    NoSuchStory(StoryId),
}

impl PlanFile {
    pub fn open(location: PlanLocation) -> Result<Self, PlanFileError> {
        let (held, bytes) = read(&location.plan)?;
        let document = Document::from_bytes(&location.plan.display().to_string(), bytes, &DIALECT)?;
        let companion = match location.companion() {
            Some(path) => open_companion(&path)?,
            None => None,
        };
        let progress_md = location.progress_md().map(|path| open_progress(&path)).transpose()?;
        let progress_txt = location.progress_txt().map(|path| open_progress(&path)).transpose()?;
        let context = match location.prompt() {
            Some(path) if path.is_file() => Some(String::from_utf8_lossy(&read(&path)?.1).into_owned()),
            Some(_) | None => None,
        };
        Ok(Self {
            location,
            held,
            document,
            companion,
            progress_md,
            progress_txt,
            context,
            last_mark: None,
            ticked_by_others: Vec::new(),
        })
    }

    pub fn plan(&self) -> &Plan {
        self.document.plan()
    }

    pub fn document(&self) -> &Document {
        &self.document
    }

    pub fn location(&self) -> &PlanLocation {
        &self.location
    }

    pub fn path(&self) -> &Path {
        &self.location.plan
    }

    /// Text of a prompt file next to the plan, which is part of every prompt.
    pub fn context(&self) -> Option<&str> {
        self.context.as_deref()
    }

    /// Files that an agent may not change: the plan, its companion and its progress files.
    pub fn protected_paths(&self) -> Vec<PathBuf> {
        self.files().into_iter().map(|(held, _)| held.path.clone()).collect()
    }

    /// Rereads files that changed on disk. Returns whether any did. On an error, keeps the old state.
    pub fn refresh(&mut self) -> Result<bool, PlanFileError> {
        let plan = self.changed_plan()?;
        let companion = self.changed_companion()?;
        let mut progress = Vec::new();
        for file in [&mut self.progress_md, &mut self.progress_txt] {
            progress.push(file.as_mut().map(ProgressFile::changed).transpose()?.flatten());
        }
        let changed = plan.is_some() || companion.is_some() || progress.iter().any(Option::is_some);
        self.ticked_by_others.clear();
        if let Some((held, document)) = plan {
            let ticked = document.plan().stories.iter().filter(|story| story.status == Status::Done);
            let was_open = |id: &StoryId| self.plan().story(id).is_none_or(|story| story.status != Status::Done);
            self.ticked_by_others = ticked.map(|story| &story.id).filter(|id| was_open(id)).cloned().collect();
            self.held = held;
            self.document = document;
        }
        if let Some(companion) = companion {
            self.companion = companion;
        }
        for (file, new) in [&mut self.progress_md, &mut self.progress_txt].into_iter().zip(progress) {
            if new.is_some() {
                *file = new;
            }
        }
        if changed {
            self.last_mark = None;
        }
        Ok(changed)
    }

    /// Stories that were open for us and that the last [`Self::refresh`] found ticked.
    pub fn ticked_by_others(&self) -> &[StoryId] {
        &self.ticked_by_others
    }

    /// Marks a story in memory and on disk. On an error the plan is unchanged.
    pub fn mark(&mut self, id: &StoryId, status: Status) -> Result<(), PlanFileError> {
        let Some(index) = self.plan().place(id) else { return Err(PlanFileError::NoSuchStory(id.clone())) };
        let undo = self.document.mark(index, status).map_err(|_| PlanFileError::NoSuchStory(id.clone()))?;
        if let Err(error) = self.held.write(self.document.text().as_bytes()) {
            self.document.undo(undo);
            return Err(error);
        }
        let companion = match self.companion.as_mut().map(|companion| companion.mark(id, status)).transpose() {
            Ok(companion) => companion.flatten(),
            Err(error) => {
                self.document.undo(undo);
                self.held.write(self.document.text().as_bytes())?;
                return Err(error);
            }
        };
        self.last_mark = Some(LastMark { plan: undo, companion });
        Ok(())
    }

    /// Adds a story at the end, in memory and on disk. Returns its id, or `None` if the plan's format has no place for it, or if somebody has
    /// edited the file meanwhile.
    pub fn add_story(&mut self, title: &str, criteria: &[String]) -> Result<Option<StoryId>, PlanFileError> {
        if self.changed_plan()?.is_some() {
            return Ok(None);
        }
        let Some((document, id)) = self.document.with_story(title, criteria, &DIALECT) else { return Ok(None) };
        self.held.write(document.text().as_bytes())?;
        self.document = document;
        self.last_mark = None;
        Ok(Some(id))
    }

    /// Marks a story only in the file next to the plan, if there is one.
    pub fn mark_companion(&mut self, id: &StoryId, status: Status) -> Result<(), PlanFileError> {
        self.companion.as_mut().map_or(Ok(None), |companion| companion.mark(id, status)).map(drop)
    }

    /// Makes the last mark permanent.
    pub fn forget_mark(&mut self) {
        self.last_mark = None;
    }

    /// Reopens a story that someone else marked, restoring the previous text of its markers.
    pub fn take_back(&mut self, id: &StoryId, before: &[String]) -> Result<(), PlanFileError> {
        let Some(index) = self.plan().place(id) else { return Err(PlanFileError::NoSuchStory(id.clone())) };
        let undo = self.document.take_back(index, before).map_err(|_| PlanFileError::NoSuchStory(id.clone()))?;
        if let Err(error) = self.held.write(self.document.text().as_bytes()) {
            self.document.undo(undo);
            return Err(error);
        }
        self.last_mark = None;
        self.companion.as_mut().map_or(Ok(None), |companion| companion.mark(id, Status::Open)).map(drop)
    }

    /// Undoes the last mark, byte for byte. Returns whether there was one.
    pub fn unmark(&mut self) -> Result<bool, PlanFileError> {
        let Some(last) = self.last_mark.take() else { return Ok(false) };
        self.document.undo(last.plan);
        if let (Some(companion), Some(undo)) = (&mut self.companion, last.companion)
            && let Content::Plan(document) = &mut companion.content
        {
            document.undo(undo);
            companion.held.write(document.text().as_bytes())?;
        }
        self.held.write(self.document.text().as_bytes())?;
        Ok(true)
    }

    /// Appends an entry to `progress.md`, if the plan has one.
    pub fn record_story(&mut self, entry: &StoryEntry) -> Result<(), PlanFileError> {
        let Some(file) = &mut self.progress_md else { return Ok(()) };
        file.replace(|text| progress::append_entry(text, entry))
    }

    /// Whether `progress.md` already has the entry for a commit, or the plan has no such file.
    pub fn progress_names(&self, commit: &Oid) -> bool {
        let text = |file: &ProgressFile| file.text.as_ref().is_some_and(|text| text.contains(commit.short()));
        self.progress_md.as_ref().is_none_or(text)
    }

    /// Sets the header lines of `progress.txt`, if the plan has one.
    pub fn record_status(&mut self, status: &LoopStatus) -> Result<(), PlanFileError> {
        let Some(file) = &mut self.progress_txt else { return Ok(()) };
        file.replace(|text| progress::edit_status(text, status))
    }

    /// The user's limit in `progress.txt`, if there is one.
    pub fn max_iterations(&self) -> Option<u32> {
        progress::max_iterations_in(self.progress_txt.as_ref()?.text.as_deref()?)
    }

    /// Progress files that may have been written; they become part of the next commit.
    pub fn progress_paths(&self) -> Vec<PathBuf> {
        [&self.progress_md, &self.progress_txt].into_iter().flatten().map(|file| file.held.path.clone()).collect()
    }

    fn changed_plan(&mut self) -> Result<Option<(Held, Document)>, PlanFileError> {
        if self.held.confirm(Some(self.document.text().as_bytes()))? {
            return Ok(None);
        }
        let (held, bytes) = read(&self.location.plan)?;
        Ok(Some((held, Document::from_bytes(self.document.name(), bytes, &DIALECT)?)))
    }

    #[expect(clippy::option_option, reason = "a companion that is gone is a change")]
    fn changed_companion(&mut self) -> Result<Option<Option<Companion>>, PlanFileError> {
        let Some(path) = self.location.companion() else { return Ok(None) };
        let same = match &mut self.companion {
            Some(Companion { held, content }) => held.confirm(Some(content.bytes()))?,
            None => !path.exists(),
        };
        if same {
            return Ok(None);
        }
        open_companion(&path).map(Some)
    }

    /// All files with their expected bytes.
    fn files(&self) -> Vec<(&Held, Option<&[u8]>)> {
        let mut files = vec![(&self.held, Some(self.document.text().as_bytes()))];
        files.extend(self.companion.iter().map(|companion| (&companion.held, Some(companion.content.bytes()))));
        let progress = [&self.progress_md, &self.progress_txt].into_iter().flatten();
        files.extend(progress.map(|file| (&file.held, file.text.as_ref().map(String::as_bytes))));
        files
    }
}

/// A story's checks: those in backticks, and plain lines whose program exists.
pub fn resolve_checks(story: &Story, program_exists: impl Fn(&str) -> bool) -> Vec<CommandSpec> {
    let program = |line: &str| line.split_whitespace().find(|word| !word.contains('=')).map(str::to_owned);
    let plain = story.maybe_checks.iter().filter(|line| program(line).is_some_and(|program| program_exists(&program)));
    story.checks.iter().chain(plain).map(|line| CommandSpec::Shell(line.clone())).collect()
}

impl Companion {
    fn mark(&mut self, id: &StoryId, status: Status) -> Result<Option<Undo>, PlanFileError> {
        let Content::Plan(document) = &mut self.content else { return Ok(None) };
        let Some(index) = document.plan().place(id).filter(|index| document.plan().stories[*index].explicit_id) else {
            return Ok(None);
        };
        let Ok(undo) = document.mark(index, status) else { return Ok(None) };
        if let Err(error) = self.held.write(document.text().as_bytes()) {
            document.undo(undo);
            return Err(error);
        }
        Ok(Some(undo))
    }
}

impl Content {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Plan(document) => document.text().as_bytes(),
            Self::Bytes(bytes) => bytes,
        }
    }
}

impl ProgressFile {
    fn changed(&mut self) -> Result<Option<Self>, PlanFileError> {
        if self.held.confirm(self.text.as_ref().map(String::as_bytes))? {
            Ok(None)
        } else {
            open_progress(&self.held.path).map(Some)
        }
    }

    fn replace(&mut self, edit: impl FnOnce(&str) -> String) -> Result<(), PlanFileError> {
        let before = self.text.as_deref().unwrap_or_default();
        let after = edit(before);
        if self.text.as_deref() != Some(&after) {
            self.held.write(after.as_bytes())?;
            self.text = Some(after);
        }
        Ok(())
    }
}

fn read(path: &Path) -> Result<(Held, Vec<u8>), PlanFileError> {
    Held::open(path).map_err(|error| cached_file::named(path, error))
}

fn open_companion(path: &Path) -> Result<Option<Companion>, PlanFileError> {
    let (held, bytes) = match Held::open(path) {
        Ok(opened) => opened,
        Err(ReadError::Missing) => return Ok(None),
        Err(error @ (ReadError::NotAFile | ReadError::TooLarge(_) | ReadError::Io(_))) => {
            return Err(cached_file::named(path, error));
        }
    };
    let content = match Document::parse(&path.display().to_string(), &bytes, &DIALECT) {
        Ok(document) => Content::Plan(Box::new(document)),
        // Not a plan, so no story is ticked in it.
        Err(_) => Content::Bytes(bytes),
    };
    Ok(Some(Companion { held, content }))
}

fn open_progress(path: &Path) -> Result<ProgressFile, PlanFileError> {
    match Held::open(path) {
        Ok((held, bytes)) => match String::from_utf8(bytes) {
            Ok(text) => Ok(ProgressFile { held, text: Some(text) }),
            Err(_) => Err(PlanFileError::Read {
                path: path.to_owned(),
                source: io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"),
            }),
        },
        Err(ReadError::Missing) => Ok(ProgressFile { held: Held::absent(path), text: None }),
        Err(error @ (ReadError::NotAFile | ReadError::TooLarge(_) | ReadError::Io(_))) => Err(cached_file::named(path, error)),
    }
}
/// The name of a format as in JSON.
pub fn format_name(plan: &Plan) -> String {
    serde_json::to_value(plan.format).ok().and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default()
}
