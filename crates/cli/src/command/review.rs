//! `verdone review`, `verdone accept` and `verdone reject`.

use verdone_core::base::id::StoryId;
use verdone_core::journal::update::{Reporter, Update};
use verdone_plan::ReviewState;
use verdone_report::plural;
use verdone_runtime::git::{Git, RepoPath};
use verdone_runtime::process::signal::Signals;
use verdone_runtime::project::config_file::Flags;
use verdone_runtime::run::review::{self, Review, ReviewRequest};
use verdone_runtime::store::Store;
use verdone_text::shell_word::shell_argument;

use super::reporter::reporter;
use super::users_own::refuse_agents;
use super::{Context, Outcome};
use crate::args::{AcceptArgs, RejectArgs, ReviewArgs};
use crate::error::CliError;
use crate::terminal::{Style, print, print_json, printable, printable_line};

pub(super) fn list(args: &ReviewArgs, context: &Context) -> Outcome {
    let project = context.project()?;
    let mut reviews = review::pending(&Store::new(&project.root))?;
    if let Some(story) = &args.story {
        let known: Vec<String> = reviews.iter().map(|review| review.place.story.to_string()).collect();
        let meant = StoryId::from(story.as_str()).meant_among(reviews.iter().map(|review| &review.place.story)).cloned();
        reviews.retain(|review| Some(&review.place.story) == meant.as_ref());
        if reviews.is_empty() {
            let error = CliError::usage(format!("{story} does not need a review"));
            let hint = match known.as_slice() {
                [] => "verdone status shows its result".to_owned(),
                known => format!("these do: {}", known.join(", ")),
            };
            return Err(error.hint(hint));
        }
    }
    if args.json {
        print_json(&serde_json::json!(reviews.iter().map(in_json).collect::<Vec<_>>()))?;
        return Ok(0);
    }
    if reviews.is_empty() {
        print("Nothing needs a review.\n")?;
        return Ok(0);
    }
    let mut out = String::new();
    for review in &reviews {
        out.push_str(&entry(review, context));
    }
    if let (Some(_), [review]) = (&args.story, reviews.as_slice()) {
        out.push_str(&diff(&Git::open(&project.root)?, review)?);
    }
    print(&out)?;
    Ok(0)
}

pub(super) fn accept(args: &AcceptArgs, context: &Context) -> Outcome {
    refuse_agents("accept a story", &format!("verdone accept {}", shell_argument(&printable_line(&args.story))), context)?;
    let story = StoryId(args.story.clone());
    let accepted = decide(&story, args.json, context, review::accept)?;
    if args.json {
        print_json(&serde_json::json!({
            "story": accepted.story, "outcome": "accepted", "proof": accepted.proof, "commit": accepted.commit, "branch": accepted.branch,
        }))?;
        return Ok(0);
    }
    let text = format!("Accepted {}: committed as {} on {}.", accepted.story, accepted.commit.short(), accepted.branch);
    print(&(printable_line(&text) + "\nverdone land brings it to your branch.\n"))?;
    Ok(0)
}

pub(super) fn reject(args: &RejectArgs, context: &Context) -> Outcome {
    refuse_agents("reject a story", &format!("verdone reject {}", shell_argument(&printable_line(&args.story))), context)?;
    let story = StoryId(args.story.clone());
    let rejected = decide(&story, args.json, context, review::reject)?;
    if args.json {
        print_json(&serde_json::json!({
            "story": rejected.story, "outcome": "failed", "work": rejected.work, "reapplied": rejected.reapplied,
        }))?;
        return Ok(0);
    }
    let again = match rejected.reapplied {
        0 => String::new(),
        number => format!(" {} verified again without it.", plural(number, "later commit was", "later commits were")),
    };
    let text = format!("Rejected {}. Its work is kept as {}.{again}", rejected.story, rejected.work.short());
    print(&(printable_line(&text) + "\nverdone run tries the story again.\n"))?;
    Ok(0)
}

type Decision<T> = fn(&ReviewRequest<'_>, &Signals, &mut dyn Reporter) -> Result<T, review::ReviewError>;

fn decide<T>(story: &StoryId, quiet: bool, context: &Context, decision: Decision<T>) -> Result<T, CliError> {
    let project = context.project()?;
    let settings = context.settings(&project, &Flags::default())?;
    let signals = Signals::install().map_err(|error| CliError::error(format!("cannot install signal handlers: {error}")))?;
    let request = ReviewRequest { project: &project, config: &settings.resolved.config, story };
    if quiet {
        return Ok(decision(&request, &signals, &mut Silent)?);
    }
    Ok(decision(&request, &signals, &mut reporter(false, false, &signals, context))?)
}

/// Reports nothing: with --json, only JSON is printed.
struct Silent;

impl Reporter for Silent {
    fn report(&mut self, _: Update<'_>) {}
}

fn entry(review: &Review, context: &Context) -> String {
    let story = printable_line(&format!("{}: {}", review.place.story, review.title));
    let mut out = format!("{}\n", context.terminal.out.style(Style::Heading, &story));
    for reason in &review.reasons {
        out.push_str(&format!("  {}\n", printable_line(reason)));
    }
    let stacked = match review.waiting {
        ReviewState::Stacked => "; later stories are built on it",
        ReviewState::Aside => "",
    };
    out.push_str(&format!("  proof: {}{stacked}\n", review.proof));
    let story = shell_argument(&printable_line(review.place.story.as_str()));
    out.push_str(&format!("  look:  git show {}\n", review.work.short()));
    out.push_str(&format!("  then:  verdone accept {story}   or   verdone reject {story}\n\n"));
    out
}

fn diff(git: &Git, review: &Review) -> Result<String, CliError> {
    let changed = git.changed_paths(review.base.as_ref(), &review.work)?;
    let paths: Vec<RepoPath> = changed.into_iter().map(|change| change.path).collect();
    let text = git.diff_text(review.base.as_ref(), &review.work, &paths)?;
    Ok(printable(&text))
}

fn in_json(review: &Review) -> serde_json::Value {
    serde_json::json!({
        "story": review.place.story,
        "title": review.title,
        "run": review.run,
        "plan": review.plan,
        "attempt": review.place.attempt,
        "proof": review.proof,
        "reasons": review.reasons,
        "work": review.work,
        "base": review.base,
        "stacked": review.waiting == ReviewState::Stacked,
    })
}
