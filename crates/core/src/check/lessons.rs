//! What failed attempts teach: one short line each in `.verdone/guardrails.md`, chosen for the stories that it concerns, and a history of
//! every line. Pure: the text of the file and the history go in and come out.
//!
//! A lesson is made of facts that Verdone saw, never of an agent's words, except for one kind, whose line says that an agent noted it.
//! Output of a check and words of an agent are quoted, on one line and cut, so that they cannot pass for an instruction. The file stays plain Markdown: a line that reads exactly as Verdone writes it is a lesson, every other
//! line is the user's and is never changed.

mod guardrails_text;
mod history;
mod kind;
mod line;
mod memory;
mod selection;
mod settings;
mod stop_cause;
mod story_files;

pub use guardrails_text::{lessons_in, user_text};
pub use history::{Entry, HISTORY_VERSION, History, Origin, Status};
pub use kind::Kind;
pub use line::{LONGEST_NOTE, Lesson};
pub use memory::{MOST_BYTES, Memory};
pub use selection::{Chosen, MOST_CHOSEN, MOST_TOKENS, Topics, choose, prompt_text};
pub use settings::LearnSettings;
pub use stop_cause::{BLOCKS_TO_LEARN, SESSIONS_TO_LEARN};
pub use story_files::story_names_file;

#[cfg(test)]
mod tests;
