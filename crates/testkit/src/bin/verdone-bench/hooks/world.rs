//! A project with sessions of any size, as a hook finds them.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use verdone_testkit::PlanShape;

/// One project.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) project: PathBuf,
    /// The inputs are outside of the project, where no rule applies.
    inputs: PathBuf,
}

/// The measured events; the client sends more and longer fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    BeforeRead,
    BeforeEdit,
    BeforeWrite,
    BeforeEditOfPlan,
    BeforeBash,
    BeforeLongBash,
    AfterRead,
    AfterEdit,
    AfterTests,
    SessionStart,
    Prompt,
    Stop,
    Unknown,
}

impl Event {
    /// The name in the table.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::BeforeRead => "PreToolUse Read",
            Self::BeforeEdit => "PreToolUse Edit",
            Self::BeforeWrite => "PreToolUse Write",
            Self::BeforeEditOfPlan => "PreToolUse Edit of the plan",
            Self::BeforeBash => "PreToolUse Bash, simple",
            Self::BeforeLongBash => "PreToolUse Bash, complex",
            Self::AfterRead => "PostToolUse Read",
            Self::AfterEdit => "PostToolUse Edit",
            Self::AfterTests => "PostToolUse Bash, tests",
            Self::SessionStart => "SessionStart",
            Self::Prompt => "UserPromptSubmit",
            Self::Stop => "Stop",
            Self::Unknown => "an unknown event",
        }
    }

    /// Text that the answer must contain, or empty if there must be none: a fast failure is not a result.
    pub(crate) fn answer(self) -> &'static str {
        match self {
            Self::BeforeRead
            | Self::BeforeEdit
            | Self::BeforeWrite
            | Self::BeforeEditOfPlan
            | Self::BeforeBash
            | Self::BeforeLongBash => "\"allow\"",
            Self::SessionStart => "additionalContext",
            Self::AfterRead | Self::AfterEdit | Self::AfterTests | Self::Prompt | Self::Stop | Self::Unknown => "",
        }
    }

    fn fields(self, project: &str) -> String {
        let tool = |event: &str, tool: &str, input: &str| {
            format!(
                "\"hook_event_name\":\"{event}\",\"tool_name\":\"{tool}\",\"tool_input\":{{{input}}},\
                 \"tool_use_id\":\"toolu_0aabdadeaf3049969429d8c8\""
            )
        };
        let edit = |file: &str, old: &str| {
            format!("\"file_path\":\"{project}/{file}\",\"old_string\":\"{old}\",\"new_string\":\"start\"")
        };
        match self {
            Self::BeforeRead => tool("PreToolUse", "Read", &format!("\"file_path\":\"{project}/src/a.rs\"")),
            Self::BeforeEdit => tool("PreToolUse", "Edit", &edit("src/a.rs", "main")),
            Self::BeforeWrite => {
                tool("PreToolUse", "Write", &format!("\"file_path\":\"{project}/src/new.rs\",\"content\":\"fn start() {{}}\\n\""))
            }
            Self::BeforeEditOfPlan => tool("PreToolUse", "Edit", &edit("plan.md", "no such line")),
            Self::BeforeBash => {
                tool("PreToolUse", "Bash", "\"command\":\"cargo test --workspace\",\"description\":\"Run the tests\"")
            }
            Self::BeforeLongBash => {
                let command = format!(
                    "cd {project} && for f in src/*.rs; do grep -n 'fn ' \\\"$f\\\" | head -n 3; done && \
                     git diff --stat HEAD -- src 2>&1 | tail -n 20 > /tmp/out.log && \
                     git commit -m \\\"$(cat <<'END'\\nparser: reads lists\\n\\nThen git push is for people.\\nEND\\n)\\\""
                );
                tool("PreToolUse", "Bash", &format!("\"command\":\"{command}\""))
            }
            Self::AfterRead => {
                let call = tool("PostToolUse", "Read", &format!("\"file_path\":\"{project}/src/a.rs\""));
                format!("{call},\"tool_response\":{{\"type\":\"text\"}},\"duration_ms\":3")
            }
            Self::AfterEdit => {
                let call = tool("PostToolUse", "Edit", &edit("src/a.rs", "main"));
                format!("{call},\"tool_response\":{{\"filePath\":\"{project}/src/a.rs\"}},\"duration_ms\":3")
            }
            Self::AfterTests => {
                let call = tool("PostToolUse", "Bash", "\"command\":\"cargo test\"");
                format!(
                    "{call},\"tool_response\":{{\"stdout\":\"running 1 test\\ntest a ... ok\\n\\ntest result: ok. 1 passed; 0 failed; \
                     0 ignored; 0 measured; 0 filtered out; finished in 0.00s\\n\",\"stderr\":\"\"}},\"duration_ms\":900"
                )
            }
            Self::SessionStart => "\"hook_event_name\":\"SessionStart\",\"source\":\"startup\"".to_owned(),
            Self::Prompt => "\"hook_event_name\":\"UserPromptSubmit\",\"prompt\":\"Work on the next story.\"".to_owned(),
            Self::Stop => "\"hook_event_name\":\"Stop\",\"stop_hook_active\":false".to_owned(),
            Self::Unknown => "\"hook_event_name\":\"SomethingNew\",\"new_field\":[1,2,3]".to_owned(),
        }
    }
}

impl World {
    /// A project with a plan of that many stories.
    pub(crate) fn make(place: &Path, name: &str, stories: usize) -> Result<Self, String> {
        let world = Self { project: place.join(name), inputs: place.join(format!("{name}-inputs")) };
        world.fill(stories).map_err(|error| format!("{}: {error}", world.project.display()))?;
        Ok(world)
    }

    fn fill(&self, stories: usize) -> std::io::Result<()> {
        for folder in [".git", ".verdone", ".ralph", "src"] {
            fs::create_dir_all(self.project.join(folder))?;
        }
        fs::create_dir_all(&self.inputs)?;
        fs::write(self.project.join(".git/HEAD"), "ref: refs/heads/main\n")?;
        fs::write(self.project.join(".verdone/config.toml"), "plan = \"plan.md\"\n\n[limits]\nturns = 4\n")?;
        fs::write(self.project.join("plan.md"), PlanShape::StoryLines.build(stories))?;
        fs::write(self.project.join("src/a.rs"), "fn main() {}\n")?;
        fs::write(self.project.join(".ralph/current-story"), "US-001\n")?;
        fs::write(self.project.join(".ralph/session.log"), format!("Read: {}/src/a.rs\n", self.project.display()))
    }

    /// The file with the client's input. `transcript` is the size of the session's transcript.
    pub(crate) fn input(&self, event: Event, session: &str, transcript: u64) -> Result<PathBuf, String> {
        let io = |error: std::io::Error| error.to_string();
        let transcript_file = self.inputs.join(format!("{transcript}.jsonl"));
        // A sparse file: only the length matters, and the disk may not have room for the bytes.
        File::create(&transcript_file).and_then(|file| file.set_len(transcript)).map_err(io)?;
        let path = self.inputs.join(format!("{event:?}-{session}-{transcript}.json"));
        let shown = self.project.display().to_string();
        let mut file = File::create(&path).map_err(io)?;
        write!(
            file,
            "{{\"session_id\":\"{session}\",\"transcript_path\":\"{}\",\"cwd\":\"{shown}\",\"permission_mode\":\"default\",{}}}",
            transcript_file.display(),
            event.fields(&shown)
        )
        .map_err(io)?;
        Ok(path)
    }

    /// Makes a session remember its files, and the given number of other files.
    pub(crate) fn remember(&self, verdone: &Path, session: &str, files: usize) -> Result<(), String> {
        for event in [Event::AfterRead, Event::AfterEdit] {
            run(&mut self.hook(verdone), &self.input(event, session, 0)?)?;
        }
        self.plan_is_read(verdone, session)?;
        // The hook created the memory's first file, so its location is up to the hook.
        let known = find_below(&self.project.join(".verdone"), &Path::new(session).join("known"));
        let known = known.ok_or_else(|| format!("the hook keeps no memory of the session {session}"))?;
        fill_memory(&known, files).map_err(|error| format!("{}: {error}", known.display()))
    }

    fn plan_is_read(&self, verdone: &Path, session: &str) -> Result<(), String> {
        let path = self.input(Event::AfterRead, session, 1)?;
        let text = fs::read_to_string(&path).map_err(|error| error.to_string())?;
        fs::write(&path, text.replace("src/a.rs", "plan.md")).map_err(|error| error.to_string())?;
        run(&mut self.hook(verdone), &path).map(drop)
    }

    /// The hook as a run calls it.
    pub(crate) fn hook(&self, verdone: &Path) -> Command {
        self.command(verdone, &["hook", "--run"])
    }

    /// A program in the environment that all of them get.
    pub(crate) fn command(&self, program: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(arguments).env_clear().current_dir(&self.project);
        command.env("HOME", "/home/nobody").env("CLAUDE_PROJECT_DIR", &self.project).env("RALPH_ROOT", &self.project);
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command
    }

    /// What our hook recorded if it could not judge.
    pub(crate) fn fault(&self) -> Option<String> {
        // Faults of a hook without a session are stored above the sessions.
        let path = self.project.join(".verdone/sessions/faults.jsonl");
        fs::read_to_string(path).ok()
    }
}

/// Returns a program's output.
pub(crate) fn run(command: &mut Command, input: &Path) -> Result<String, String> {
    let stdin = File::open(input).map_err(|error| format!("{}: {error}", input.display()))?;
    let output = command.stdin(stdin).stderr(Stdio::null()).output();
    let output = output.map_err(|error| format!("{}: {error}", command.get_program().display()))?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Creates names in the memory's folders, as a hook would. A folder grows by its names, so all names in a folder link to the same file: a
/// million files would take minutes to create and delete.
fn fill_memory(known: &Path, files: usize) -> std::io::Result<()> {
    for shard in 0..256.min(files) {
        let folder = known.join(format!("{shard:02x}"));
        fs::create_dir_all(&folder)?;
        let first = folder.join(format!("{shard:062x}"));
        File::create(&first)?;
        for n in (shard..files).step_by(256).skip(1) {
            fs::hard_link(&first, folder.join(format!("{n:062x}")))?;
        }
    }
    Ok(())
}

/// The first entry below a folder whose path has this ending.
fn find_below(folder: &Path, end: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
    let mut folders = Vec::new();
    for path in entries {
        if path.ends_with(end) {
            return Some(path);
        }
        folders.push(path);
    }
    folders.iter().find_map(|folder| find_below(folder, end))
}
