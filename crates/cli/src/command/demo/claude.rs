//! `verdone demo --agent claude`: the same plan with the user's own Claude Code. It costs money, so it says so and asks first.
//!
//! A real agent may do anything, so the demo only reports the result. The exit code is that of the run, unless every story is verified.

use verdone_core::agent::AgentKind;
use verdone_core::base::money::Usd;
use verdone_core::config::{ClaudeAgent, ClaudePermission, Config};
use verdone_core::journal::view::RunView;
use verdone_core::verify::{Proof, StoryResult};
use verdone_report::cost;
use verdone_runtime::agent::check_agent;
use verdone_runtime::base::finding::Health;
use verdone_runtime::project::HOME;
use verdone_runtime::project::config_file::Flags;

use super::{Context, Outcome, Place, play, set_up, view_of};
use crate::args::DemoArgs;
use crate::error::CliError;
use crate::question::confirm;
use crate::terminal::{print, printable, printable_line, say};

const SETTINGS: &str = include_str!("../../../demo/claude.toml");
/// The stories of the demo's plan.
const STORIES: [&str; 4] = ["US-001", "US-002", "US-003", "US-004"];

pub(super) fn run(args: &DemoArgs, context: &Context) -> Outcome {
    let cap = Usd::try_from(args.max_cost).map_err(CliError::usage)?;
    let mut config = Config::default();
    config.agent.name = AgentKind::Claude;
    config.agent.claude = configured(context)?;
    let client = check_agent(&config, &context.start);
    match client.health {
        Health::Bad => return Err(client.into()),
        Health::Warning | Health::Neutral => say(&format!("{}\n", printable_line(&client.in_a_line()))),
        Health::Good => {}
    }
    announce(&config.agent.claude, cap)?;
    if !args.yes && !confirmed(context)? {
        print("Nothing was started.\n")?;
        return Ok(4);
    }
    let place = Place::make(args, context)?;
    set_up(&place.dir, &[(".verdone/config.toml", SETTINGS)])?;
    let (code, signals) = play(&place.dir, context, |settings| {
        settings.agent.claude = config.agent.claude;
        settings.limits.cost_usd = cap;
    })?;
    let view = view_of(&place.dir)?;
    let verified = STORIES.iter().filter(|id| is_verified(&view, id)).count();
    if signals.requested().is_none() {
        show_demo(&place, args.keep.is_some(), verified, &view)?;
    }
    Ok(if verified == STORIES.len() { 0 } else { code })
}

/// The client from the current project's config, or else the default one on the PATH.
fn configured(context: &Context) -> Result<ClaudeAgent, CliError> {
    let Some(project) = context.project().ok().filter(|project| project.root.join(HOME).is_dir()) else {
        return Ok(ClaudeAgent::default());
    };
    let mut client = context.settings(&project, &Flags::default())?.resolved.config.agent.claude;
    // The demo runs in another folder, and needs no more than its guard allows.
    if client.binary.contains('/') {
        client.binary = project.root.join(&client.binary).to_string_lossy().into_owned();
    }
    client.permission = ClaudePermission::Policy;
    Ok(client)
}

fn announce(client: &ClaudeAgent, cap: Usd) -> std::io::Result<()> {
    let most = match cap.limit() {
        Some(_) => format!("It stops after spending {cap}, or one answer later (--max-cost)."),
        None => "It has no cost limit (--max-cost 0).".to_owned(),
    };
    let text = format!(
        "A small project, a plan of four stories, and your own Claude Code ({}).\n\
         This uses your account and costs real money. {most}\n\n",
        printable_line(&client.binary)
    );
    print(&printable(&text))
}

fn confirmed(context: &Context) -> Result<bool, CliError> {
    if !context.terminal.can_ask {
        return Err(CliError::usage("this costs money, and there is no terminal to ask for confirmation")
            .hint("add --yes to start it anyway"));
    }
    Ok(confirm("Start it?")?)
}

fn is_verified(view: &RunView, id: &str) -> bool {
    view.story(&id.into()).is_some_and(|story| story.result == Some(StoryResult::done(Proof::Verified)))
}

fn show_demo(place: &Place, kept: bool, verified: usize, view: &RunView) -> Result<(), CliError> {
    let all = STORIES.len();
    let spent = view.cost_usd.map(|usd| format!(", for {}", cost(usd))).unwrap_or_default();
    let mut text = if verified == all {
        format!("\nYour Claude Code did all {all} stories, and each is verified{spent}.\n")
    } else {
        format!("\n{verified} of {all} stories are verified{spent}.\n")
    };
    let lies = view.false_claims.total();
    if lies > 0 {
        text.push_str(&format!("It claimed {} that a story was done when it was not.\n", times(lies)));
    }
    text.push_str(&if kept {
        let dir = place.dir.display();
        format!("To explore the repository: verdone -C {dir} report\n")
    } else {
        "To explore the repository: verdone demo --agent claude --keep DIR\n".to_owned()
    });
    text.push_str("To use it on your own project: verdone run PLAN.md --agent claude\n");
    Ok(print(&printable(&text))?)
}

fn times(count: u32) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}
