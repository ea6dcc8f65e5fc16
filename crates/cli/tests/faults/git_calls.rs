//! A git that counts its calls, and to which something happens at one of them.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use crate::world::World;

/// More calls than any run makes, and fewer than a pipe has room for.
const CALLS: usize = 20_000;

/// A pipe of which each call of git takes a byte. Other than a file that counts, it works in views that can write nothing.
pub(crate) struct GitCalls {
    pipe: PathBuf,
    held: File,
}

impl GitCalls {
    /// Before the call with number `from` (0 is none), or before every call from there on, the shell runs `happens`. It knows
    /// the real git as `$real`.
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

    /// Git is well again; how many calls there were.
    pub(crate) fn end(mut self) -> u64 {
        fs::remove_file(&self.pipe).unwrap();
        let mut left = vec![0; CALLS];
        (CALLS - self.held.read(&mut left).unwrap()) as u64
    }
}

/// Puts a script in git's place, or another in the place of the last.
pub(crate) fn replace_git(world: &World, script: impl Fn(&Path) -> String) {
    let bin = world.sandbox.root().join("bin");
    let (git, real) = (bin.join("git"), bin.join("real-git"));
    if let Ok(target) = fs::read_link(&git) {
        std::os::unix::fs::symlink(target, &real).unwrap();
    }
    fs::remove_file(&git).unwrap();
    world.sandbox.add_script("git", &script(&fs::read_link(&real).unwrap()));
}
