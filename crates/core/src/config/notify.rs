//! Validates `[notify]` of a config file. No message repeats the address of a webhook, which may contain a secret.

use super::diagnose::{Finding, Step};
use crate::check::CommandSpec;
use crate::journal::notify::{NotifySettings, WebhookUrl};

/// Each retry waits longer than the one before.
const MOST_RETRIES: u32 = 10;

/// The first fault in settings of the right types.
pub(super) fn unusable(notify: &NotifySettings) -> Option<Finding> {
    if notify.command.as_ref().is_some_and(CommandSpec::is_empty) {
        return Some(fault(&["command"], "the command is empty".to_owned(), None));
    }
    if notify.timeout.limit().is_none() {
        return Some(fault(&["timeout"], "a notification needs a timeout".to_owned(), None));
    }
    let webhook = &notify.webhook;
    if let Some(wrong) = webhook.url.as_ref().and_then(WebhookUrl::fault) {
        let hint = "or name the variable that contains it: `url_variable`";
        return Some(fault(&["webhook", "url"], wrong.to_string(), Some(hint)));
    }
    if let Some(name) = &webhook.url_variable {
        if webhook.url.is_some() {
            let hint = "keep `url` or `url_variable`, not both";
            return Some(fault(&["webhook", "url_variable"], "the webhook has an address already".to_owned(), Some(hint)));
        }
        if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            let hint = "for example url_variable = \"SLACK_WEBHOOK_URL\"";
            return Some(fault(&["webhook", "url_variable"], "this is not the name of a variable".to_owned(), Some(hint)));
        }
    }
    let too_often = webhook.retries > MOST_RETRIES;
    too_often.then(|| fault(&["webhook", "retries"], format!("a webhook is retried at most {MOST_RETRIES} times"), None))
}

fn fault(keys: &[&str], message: String, hint: Option<&str>) -> Finding {
    let path = ["notify"].iter().chain(keys).map(|key| Step::Key((*key).to_owned())).collect();
    Finding { path, on_key: false, message, hint: hint.map(str::to_owned) }
}
