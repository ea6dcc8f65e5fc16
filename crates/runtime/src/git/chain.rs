//! The ref of a session loop, `refs/verdone/<id>`: a chain of commits, newest first. Each commit has the commits that it keeps as
//! extra parents.
//!
//! Written by `git fast-import`: blobs, tree, commits and the ref in one process, and nothing if the stream is cut off. It
//! refuses a tip that does not contain the old one, so concurrent writers are safe.

use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process::ChildStdin;
use std::sync::PoisonError;
use std::time::SystemTime;

use verdone_core::base::id::{Oid, RunId, encode_component};

use super::Git;
use super::error::GitError;
use crate::base::fault::{self, Point};

pub(super) const IDENTITY_NAME: &str = "Verdone";
pub(super) const IDENTITY_MAIL: &str = "verdone@localhost";
const PREFIX: &str = "refs/verdone/";

impl Git {
    /// Names of runs that have a ref, as the ref spells them.
    pub fn runs_with_refs(&self) -> Result<Vec<String>, GitError> {
        let output = self.plumbing("for-each-ref").args(["--format=%(refname)", PREFIX]).line()?;
        // Refs of kept attempts are nested deeper.
        let names = output.lines().filter_map(|name| name.strip_prefix(PREFIX)).filter(|name| !name.contains('/'));
        Ok(names.map(str::to_owned).collect())
    }

    /// Deletes a run's ref, if it has one. Git collects the objects later.
    pub fn forget_run(&self, run: &RunId) -> Result<(), GitError> {
        let name = ref_name(run);
        if self.tip(&name)?.is_some() {
            self.plumbing("update-ref").args(["-d", &name]).run()?;
        }
        self.tips.lock().unwrap_or_else(PoisonError::into_inner).remove(&name);
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = None;
        Ok(())
    }

    /// Appends to a run's chain. `write` gets the chain's last commit and asks for one id. It runs again if another process was
    /// faster.
    pub(super) fn append(
        &self,
        run: &RunId,
        mut write: impl FnMut(&mut Stream<'_>, &str) -> Result<(), GitError> + Send,
    ) -> Result<Oid, GitError> {
        let name = ref_name(run);
        fault::point(Point::ChainAppend).map_err(GitError::io(Path::new(&name)))?;
        for again in [true, false] {
            let tip = self.tip(&name)?;
            let call = self.plumbing("fast-import").args(["--quiet", "--done"]);
            let (answer, written) = call.feed(|pipe| {
                let mut stream =
                    Stream { pipe: BufWriter::with_capacity(64 * 1024, pipe), name: &name, marks: 0, now: now_seconds() };
                let previous = match &tip {
                    Some(tip) => tip.0.clone(),
                    None => stream.commit("begin", None, &[], &[])?,
                };
                write(&mut stream, &previous)?;
                let last = format!(":{}", stream.marks);
                stream.ask(&last)?;
                stream.finish()
            })?;
            if answer.status.success() {
                fault::pass(Point::ChainAppended);
                let text = String::from_utf8_lossy(&answer.stdout);
                let ids: Vec<Oid> = text.lines().map(Oid::from).collect();
                let [asked, last] = ids.as_slice() else {
                    return Err(GitError::Unexpected { what: "fast-import", detail: text.into_owned() });
                };
                self.tips.lock().unwrap_or_else(PoisonError::into_inner).insert(name, last.clone());
                return written.map(|()| asked.clone());
            }
            self.tips.lock().unwrap_or_else(PoisonError::into_inner).remove(&name);
            // The cached tip is outdated, or another process pruned it.
            if again && ["Not updating", "Not a valid commit"].iter().any(|sign| answer.stderr.contains(sign)) {
                continue;
            }
            // A failure to read a file is the cause; git's complaint about the cut-off stream only follows from it.
            return match written {
                Err(error) if !is_broken_pipe(&error) => Err(error),
                Ok(()) | Err(_) => Err(answer.failure("fast-import")),
            };
        }
        unreachable!("the second round returns")
    }

    fn tip(&self, name: &str) -> Result<Option<Oid>, GitError> {
        if let Some(tip) = self.tips.lock().unwrap_or_else(PoisonError::into_inner).get(name) {
            return Ok(Some(tip.clone()));
        }
        self.resolve(name)
    }
}

/// The input of one `git fast-import`.
#[derive(Debug)]
pub(super) struct Stream<'a> {
    pipe: BufWriter<&'a mut ChildStdin>,
    name: &'a str,
    marks: u32,
    now: u64,
}

impl Stream<'_> {
    /// Adds a blob and returns its mark.
    pub(super) fn blob(&mut self, bytes: &[u8]) -> Result<String, GitError> {
        self.marks += 1;
        self.put(format!("blob\nmark :{}\ndata {}\n", self.marks, bytes.len()).as_bytes())?;
        self.put(bytes)?;
        self.put(b"\n")?;
        Ok(format!(":{}", self.marks))
    }

    /// Adds a commit that contains exactly `files` (object, path).
    pub(super) fn commit(
        &mut self,
        subject: &str,
        from: Option<&str>,
        merge: &[&str],
        files: &[(String, String)],
    ) -> Result<String, GitError> {
        self.marks += 1;
        let (name, mark, now) = (self.name, self.marks, self.now);
        // Without `from`, fast-import would continue the branch from the last commit in this stream.
        let start = if from.is_none() { format!("reset {name}\n") } else { String::new() };
        let head = format!(
            "{start}commit {name}\nmark :{mark}\ncommitter {IDENTITY_NAME} <{IDENTITY_MAIL}> {now} +0000\ndata {}\n{subject}\n",
            subject.len()
        );
        self.put(head.as_bytes())?;
        if let Some(from) = from {
            self.put(format!("from {from}\n").as_bytes())?;
        }
        for parent in merge {
            self.put(format!("merge {parent}\n").as_bytes())?;
        }
        self.put(b"deleteall\n")?;
        for (object, path) in files {
            self.put(format!("M 100644 {object} {path}\n").as_bytes())?;
        }
        self.put(b"\n")?;
        Ok(format!(":{mark}"))
    }

    /// Requests the id behind a mark.
    pub(super) fn ask(&mut self, mark: &str) -> Result<(), GitError> {
        self.put(format!("get-mark {mark}\n").as_bytes())
    }

    fn finish(&mut self) -> Result<(), GitError> {
        self.put(b"done\n")?;
        self.pipe.flush().map_err(GitError::io(Path::new("git fast-import")))
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), GitError> {
        self.pipe.write_all(bytes).map_err(GitError::io(Path::new("git fast-import")))
    }
}

fn is_broken_pipe(error: &GitError) -> bool {
    matches!(error, GitError::Io { source, .. } if source.kind() == io::ErrorKind::BrokenPipe)
}

fn ref_name(run: &RunId) -> String {
    format!("{PREFIX}{}", encode_component(run.as_str()))
}

pub(super) fn one_line(label: &str) -> String {
    label.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

fn now_seconds() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
