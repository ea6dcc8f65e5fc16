//! A git wrapper that counts its calls and disturbs one of them.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use crate::faults::world::World;

/// More calls than any run makes, but few enough to fit into a pipe.
const CALLS: usize = 20_000;

/// A pipe from which each git call takes one byte. Unlike a counter file, it also works in read-only views.
pub(crate) struct GitCalls {
    pipe: PathBuf,
    held: File,
}

impl GitCalls {
    /// Runs the shell code `happens` before call number `from` (0 means never), or before every call from that one on. In it, `$real` is
    /// the real git.
    pub(crate) fn new(world: &World, from: u64, only_one: bool, happens: &str) -> Self {
        let pipe = world.sandbox.home().join("shared/git-calls");
        world.sandbox.run("mkfifo", [&pipe]).assert_code(0);
        let nonblocking = OFlags::NONBLOCK.bits().cast_signed();
        let mut held = OpenOptions::new().read(true).write(true).custom_flags(nonblocking).open(&pipe).unwrap();
        let calls =
            (1..=CALLS as u64).map(|call| if from > 0 && (call == from || (call > from && !only_one)) { b'x' } else { b'.' });
        held.write_all(&calls.collect::<Vec<u8>>()).unwrap();
        replace_git(world, |real| {
            format!(
                "#!/bin/sh\nreal={}\nif [ -p {pipe} ] && [ \"$(head -c 1 {pipe})\" = x ]; then\n{happens}\nfi\nexec $real \"$@\"\n",
                real.display(),
                pipe = pipe.display(),
            )
        });
        Self { pipe, held }
    }

    /// Restores git; returns the number of calls.
    pub(crate) fn end(mut self) -> u64 {
        fs::remove_file(&self.pipe).unwrap();
        let mut left = vec![0; CALLS];
        (CALLS - self.held.read(&mut left).unwrap()) as u64
    }
}

/// Replaces git with a script; a later call replaces the previous script.
pub(crate) fn replace_git(world: &World, script: impl Fn(&Path) -> String) {
    let bin = world.sandbox.root().join("bin");
    let (git, real) = (bin.join("git"), bin.join("real-git"));
    if let Ok(target) = fs::read_link(&git) {
        std::os::unix::fs::symlink(target, &real).unwrap();
    }
    fs::remove_file(&git).unwrap();
    world.sandbox.add_script("git", &script(&fs::read_link(&real).unwrap()));
}
