//! The runtime with real git, real files and a real shell. What ends its own child processes is tested in `tests/processes/`.

mod git_module;
mod plan_file;
mod shell_oracle;
