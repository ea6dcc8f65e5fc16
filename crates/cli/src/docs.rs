//! The generated references. `VERDONE_BLESS=1 cargo test -p verdone` rewrites them; otherwise a stale one fails the test.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use clap::{Arg, Command, CommandFactory as _};
use verdone_core::agent::{AgentKind, Level};
use verdone_core::base::finish::{Finish, StopSignal};
use verdone_core::config::{Config, FailBehavior, Field, Shape};
use verdone_core::hook::settings::plugin;
use verdone_core::lifecycle::{Script, ScriptExit, VARIABLES, meaning};

use crate::args::Cli;
use crate::error::Kind;

#[test]
fn the_command_reference_is_fresh() {
    let mut out = String::from("# Commands\n\n<!-- Generated from the help texts: VERDONE_BLESS=1 cargo test -p verdone -->\n");
    each_command(&mut |path, command| {
        let help = without_repetition(path, command).term_width(80).render_long_help().to_string();
        let help: Vec<_> = help.lines().map(str::trim_end).collect();
        let _ = write!(out, "\n## {path}\n\n```text\n{}\n```\n", help.join("\n").trim_end());
    });
    compare("docs/cli.md", &out);
}

/// Options that every command has are listed once, for `verdone` itself.
fn without_repetition(path: &str, command: &Command) -> Command {
    if path == "verdone" {
        return command.clone();
    }
    let is_repeated = |argument: &Arg| argument.is_global_set() || argument.get_id() == "help";
    let hide = |argument: Arg| if is_repeated(&argument) { argument.hide(true) } else { argument };
    command.clone().mut_args(hide)
}

#[test]
fn the_config_reference_is_fresh() {
    let mut out = String::from(
        "# Config\n\n<!-- Generated from the JSON Schema: VERDONE_BLESS=1 cargo test -p verdone -->\n\n\
         Settings live in `.verdone/config.toml`, which `verdone init` writes. Unknown keys are errors.\n\
         `verdone config show` prints the current settings and where they come from;\n\
         `schemas/config.schema.json` (or `verdone config schema`) is for editors.\n",
    );
    config_table(&Shape::of_config(), "", "Top level", "", &mut out);
    compare("docs/config.md", &out);
}

#[test]
fn the_schema_file_is_fresh() {
    compare("schemas/config.schema.json", &format!("{:#}\n", Config::schema()));
}

#[test]
fn the_table_of_agents_is_fresh() {
    let mut out = String::from("| agent | guard | context | cost | resume | stop hook |\n|---|---|---|---|---|---|\n");
    for kind in AgentKind::ALL {
        let Level { guard, context, cost, resume, stop_hook } = kind.level();
        let yes = |is: bool| if is { "yes" } else { "no" };
        let _ = writeln!(out, "| `{}` | {guard} | {context} | {cost} | {} | {} |", kind.name(), yes(resume), yes(stop_hook));
    }
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/agents.md");
    verdone_testkit::assert_block(page, "levels", &out);
}

#[test]
fn the_plugins_hooks_are_fresh() {
    compare("plugin/hooks/hooks.json", &plugin::hooks_file());
}

#[test]
fn the_plugin_has_the_version_of_the_program() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugin/.claude-plugin/plugin.json");
    let manifest: serde_json::Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!((&manifest["name"], &manifest["version"]), (&plugin::NAME.into(), &env!("CARGO_PKG_VERSION").into()));
}

#[test]
fn the_table_of_exit_codes_is_fresh() {
    let mut out = String::from(
        "# Exit codes\n\n<!-- Generated from the code: VERDONE_BLESS=1 cargo test -p verdone -->\n\n\
         How `verdone run` ends. The finish type is in `--json`, in `verdone status` and in the journal.\n\n\
         | stop cause | finish type | exit code | next step |\n|---|---|---|---|\n",
    );
    for finish in Finish::ALL {
        let code = match finish {
            Finish::Manual => {
                [StopSignal::Sigint, StopSignal::Sigterm, StopSignal::Sighup].map(|s| s.exit_code().to_string()).join(", ")
            }
            Finish::Complete
            | Finish::MaxIterations
            | Finish::NoChanges
            | Finish::Error
            | Finish::HookAbort
            | Finish::Budget
            | Finish::Timeout
            | Finish::Stalled
            | Finish::Blocked => finish.exit_code().to_string(),
        };
        let _ = writeln!(
            out,
            "| {} | `{}` | {code} | `{}` |",
            finish.cause(),
            finish.name(),
            finish.next_step("PLAN", Some("STORY"))
        );
    }
    let _ = writeln!(
        out,
        "\nA story that needs a review comes first: `verdone show STORY`, or `verdone review` if there are several. After `complete`, commits that\n\
         have not landed come next: `verdone land`. A limit can be set for one run: `verdone run --max-iterations N`, `--max-cost USD`.\n\n\
         Every other command ends with 0, with {error} for an error, or with {usage} for arguments, settings, a plan or a repository that\n\
         cannot be used. The message includes a hint if there is one. In addition:\n\n\
         - `land`, `undo`, `accept` and `reject` end with {human} if a person must decide something first.\n\
         - `verify` ends with {error} if a check fails or gives no answer, and with {human} if the work needs a review or there is nothing to\n  \
           verify.\n\
         - `audit` ends with {error} if something is wrong, and with {human} if there is nothing to audit or a command was not run again.\n\
         - `done` ends with {error} if something is missing or unknown.\n\
         - `loop start` ends with {human} if the hooks that keep a session from stopping are not installed.\n\
         - `plan new` ends with {limit} at a usage limit or the cost limit; `demo --agent claude` ends with the exit code of its run, or 0 if every story is verified.",
        error = Kind::Error.exit_code(),
        usage = Kind::Usage.exit_code(),
        human = Kind::Human.exit_code(),
        limit = Kind::Limit.exit_code()
    );
    compare("docs/exit-codes.md", &out);
}

#[test]
fn the_page_of_lifecycle_scripts_is_fresh() {
    let mut out = String::from(LIFECYCLE);
    out.push_str("\n## Moments\n\n| script | when |\n|---|---|\n");
    for script in Script::ALL {
        let _ = writeln!(out, "| `{}` | {} |", script.name(), script.moment());
    }
    out.push_str(
        "\n## Variables\n\nEach is set twice: as `VERDONE_…` and, for scripts written for fresher, as `FRESHER_…`.\n\n\
         | variable | meaning | given to |\n|---|---|---|\n",
    );
    for variable in &VARIABLES {
        let given: Vec<_> = variable.scripts.iter().map(|script| format!("`{}`", script.name())).collect();
        let given = if given.len() == Script::ALL.len() { "all".to_owned() } else { given.join(", ") };
        let _ = writeln!(out, "| `{}` | {} | {given} |", variable.name, variable.meaning);
    }
    let finishes: Vec<_> = Finish::ALL.iter().map(|finish| format!("`{}`", finish.name())).collect();
    let _ = writeln!(out, "\n`FINISH_TYPE` is one of {}: see [exit codes](exit-codes.md).", finishes.join(", "));
    out.push_str("\n## Exit codes\n\nUnless the table says that the run ends, it continues.\n\n| a script | ");
    out.push_str(&Script::ALL.map(|script| format!("`{}`", script.name())).join(" | "));
    out.push_str(" |\n|---|---|---|---|---|\n");
    let exits = [
        ("ends with 0", ScriptExit::Code(0), FailBehavior::Continue),
        ("ends with 1", ScriptExit::Code(1), FailBehavior::Continue),
        ("ends with 2", ScriptExit::Code(2), FailBehavior::Continue),
        ("ends with 3 or more, by a signal or by the timeout", ScriptExit::Code(3), FailBehavior::Continue),
        ("the same with `fail_behavior = \"abort\"`", ScriptExit::Code(3), FailBehavior::Abort),
        ("cannot be run", ScriptExit::NotRunnable { reason: String::new() }, FailBehavior::Continue),
    ];
    for (name, exit, behavior) in &exits {
        let cells = Script::ALL.map(|script| meaning(script, exit, *behavior).describe());
        let _ = writeln!(out, "| {name} | {} |", cells.join(" | "));
    }
    out.push_str(LIFECYCLE_END);
    compare("docs/lifecycle.md", &out);
}

const LIFECYCLE: &str = "\
# Lifecycle scripts

<!-- Generated from the code: VERDONE_BLESS=1 cargo test -p verdone -->

A lifecycle script is your own executable that Verdone starts at a certain point of a run: to notify somebody, to check something
first, or to stop the loop. `verdone init --scripts` writes one for each moment into `.verdone/hooks/`; they do nothing until you fill them in.
`custom/notify-slack` beside them sends a message if `VERDONE_SLACK_WEBHOOK` is set; otherwise it does nothing.
";

const LIFECYCLE_END: &str = "
`finished` runs however the run ended, even after a signal; another signal ends the script itself. After a signal, no other script
starts. If a run died and the next one cleans up after it, no scripts run for the dead run.

While an agent writes a plan (`verdone plan new`, `verdone run --mode planning`), the same scripts run at the same moments, with `MODE` set to
`planning`: its one turn is the only iteration. If `next_iteration` skips it, there is no plan. If a script stops or skips the planning, the exit code is 4; a
plan that was written before `post_iteration` stays.

## How a script runs

- At the project's own path, in a read-only view of the run's last commit. It is not sealed: it sees your home folder and your
  credentials, and has the network. Git there is a copy of your repository with the run's last commit as HEAD: a script can push
  it, and can change nothing in the copy.
- Put temporary files into `$TMPDIR`, which is deleted when the script ends, and files to keep into `$VERDONE_LOG_DIR` or outside
  the project.
- On systems without private views (see [`verdone doctor`](cli.md)), it runs in your checkout.
- With Verdone's environment and the variables above, without input and without a terminal.
- For at most `hooks.timeout` (30 s). Then it is stopped, with everything that it started. Processes that it leaves running are
  stopped, too.
- Its output is shown with its name in front, and stored in the run's folder under `scripts/`; secrets are redacted in both.
- With `background = true`, Verdone does not wait: the output is only stored, the exit code is ignored, and the script is stopped when
  the run ends. Verdone always waits for `finished`.
- Unchanged since the run began. A script that was edited, added or removed since then does not run, and neither does a script if an
  executable in `custom/` beside it changed; this is a warning. Only your checkout's version runs, never an agent's.
- A file that is not executable is a warning.

## Switching scripts off

In [the config](config.md) under `[hooks]`, or with a variable, which takes precedence: `VERDONE_HOOKS_ENABLED=false`,
`VERDONE_HOOK_TIMEOUT` (seconds), `VERDONE_HOOK_FAIL_BEHAVIOR` (`continue` or `abort`), and `VERDONE_HOOK_STARTED_ENABLED`,
`VERDONE_HOOK_NEXT_ITERATION_ENABLED`, `VERDONE_HOOK_POST_ITERATION_ENABLED`, `VERDONE_HOOK_FINISHED_ENABLED`. The same names with
`FRESHER_` work too; if both are set, Verdone's wins.

## An existing fresher project

Works without changes. A script in `.fresher/hooks/` runs if `.verdone/hooks/` has none of that name; they never both run. `.fresher/config.toml` and
`.fresher/config.sh` are read below `.verdone/config.toml`: iterations, hooks, the commands as gates if the project has no other
gates, and the folder of specifications. Of `config.sh` only lines such as `export NAME=\"${NAME:-value}\"` are read; nothing is executed, and
every other line is reported with its number. Scripts get what it exports. Settings that Verdone does not use (model, turns, docker and
others) are reported, one line each; `dangerous_permissions` never bypasses anything.

With `FRESHER_MODE=planning`, or that mode in its settings, `verdone run` writes a plan instead: from the Markdown files in the folder of specifications
(`specs/`) to `IMPLEMENTATION_PLAN.md`. `.fresher/PROMPT.planning.md` and `.fresher/PROMPT.building.md` are added to the prompts. Lifecycle scripts
run in this mode, too.
";

#[test]
fn every_command_explains_itself_in_eighty_columns() {
    let mut seen = 0;
    each_command(&mut |path, command| {
        seen += 1;
        let about = command.get_about().unwrap_or_else(|| panic!("{path} says nothing")).to_string();
        assert!(about.len() > 15, "{path}: {about}");
        let examples = command.get_after_help().unwrap_or_else(|| panic!("{path} has no example")).to_string();
        assert!(examples.contains("verdone"), "{path}: {examples}");
        for long in [false, true] {
            let mut command = command.clone().term_width(80);
            let help = if long { command.render_long_help() } else { command.render_help() }.to_string();
            for line in help.lines() {
                assert!(line.chars().count() <= 80, "{path}: {line}");
            }
        }
        for argument in command.get_arguments().filter(|argument| !argument.is_hide_set()) {
            assert!(argument.get_help().is_some(), "{path}: {} has no help", argument.get_id());
        }
    });
    assert!(seen >= 21, "{seen} commands");
}

#[test]
fn clap_finds_no_fault_in_the_arguments() {
    Cli::command().debug_assert();
}

fn each_command(visit: &mut impl FnMut(&str, &Command)) {
    fn walk(path: &str, command: &Command, visit: &mut impl FnMut(&str, &Command)) {
        visit(path, command);
        for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set() && sub.get_name() != "help") {
            walk(&format!("{path} {}", sub.get_name()), sub, visit);
        }
    }
    let mut root = Cli::command();
    root.build();
    walk("verdone", &root, visit);
}

fn config_table(shape: &Shape, path: &str, title: &str, meaning: &str, out: &mut String) {
    let Shape::Table(fields) = shape else { return };
    let nested = |field: &&Field| match &field.shape {
        Shape::Table(_) => true,
        Shape::List(item) => matches!(item.as_ref(), Shape::Table(_)),
        Shape::Map(_)
        | Shape::WordOr { .. }
        | Shape::Command
        | Shape::Duration
        | Shape::Choice(_)
        | Shape::Whole { .. }
        | Shape::Number
        | Shape::Text
        | Shape::Flag
        | Shape::Any => false,
    };
    let _ = write!(out, "\n## {title}\n\n");
    if !meaning.is_empty() {
        let _ = write!(out, "{meaning}\n\n");
    }
    if fields.iter().any(|field| !nested(&field)) {
        let _ = write!(out, "| key | value | default | meaning |\n|---|---|---|---|\n");
    }
    for field in fields.iter().filter(|field| !nested(field)) {
        let default = match (&field.default, field.required) {
            (Some(value), _) => format!("`{value}`"),
            (None, true) => "required".to_owned(),
            (None, false) => "not set".to_owned(),
        };
        let _ =
            writeln!(out, "| `{}` | {} | {default} | {}{} |", field.key, field.shape.describe(), field.meaning, choices(field));
    }
    for field in fields.iter().filter(nested) {
        let path = if path.is_empty() { field.key.clone() } else { format!("{path}.{}", field.key) };
        match &field.shape {
            Shape::List(item) => config_table(item, &path, &format!("`[[{path}]]`"), &field.meaning, out),
            shape => config_table(shape, &path, &format!("`[{path}]`"), &field.meaning, out),
        }
    }
}

fn choices(field: &Field) -> String {
    let Some(choices) = field.shape.choices() else { return String::new() };
    let told = choices.iter().filter(|choice| !choice.meaning.is_empty());
    told.map(|choice| ["<br>`", &choice.name, "`: ", &choice.meaning].concat()).collect()
}

fn compare(name: &str, fresh: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
    if std::env::var_os("VERDONE_BLESS").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, fresh).unwrap();
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == fresh, "{name} is stale: run VERDONE_BLESS=1 cargo test -p verdone, and look at the difference");
}
