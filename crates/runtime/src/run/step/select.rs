//! Selects the next story. Only this step rereads the plan, and only if its bytes changed.

use verdone_core::base::id::StoryId;
use verdone_core::base::sanitise::sanitise_line;
use verdone_core::engine::run::{Choice, Input, State};
use verdone_core::journal::update::{Reporter, Update};
use verdone_plan::{Selection, Status};
use verdone_text::shell_word::shell_argument;

use super::StepError;
use crate::run::Refreshed;
use crate::run::context::RunContext;

pub fn select(context: &mut RunContext, state: &State, reporter: &mut dyn Reporter) -> Result<Input, StepError> {
    if context.plan.refresh()? == Refreshed::Edited {
        reporter.report(Update::Notice {
            text: "the plan was edited: the new text applies from now on, but the original checks still apply",
        });
        for story in context.plan.ticked_by_others() {
            reporter.report(Update::Notice { text: &format!("{story} was ticked without evidence: claimed, not verified") });
        }
    }
    let plan = context.plan.plan();
    let choice = match verdone_plan::select(plan, &state.progress, context.setup.only.as_ref()) {
        Selection::AllDone => {
            if let Some(only) = context.setup.only.as_ref().filter(|_| state.iteration == 0) {
                let argument = shell_argument(&sanitise_line(only.as_str()));
                let text = format!("{only} is already done on the run's branch; to run it again: verdone undo {argument}");
                reporter.report(Update::Notice { text: &text });
            }
            Choice::AllDone
        }
        Selection::NothingRunnable { reason } => Choice::NothingRunnable { reason },
        Selection::Story { index } => {
            let story = &plan.stories[index];
            Choice::Story {
                story: StoryId(story.id.0.clone()),
                title: story.title.clone(),
                number: index + 1,
                of: plan.stories.len(),
                open: plan.stories.iter().filter(|story| story.status != Status::Done).count(),
            }
        }
    };
    Ok(Input::Selected(choice))
}
