//! A webhook, by `curl`. Its arguments are visible to every user of the machine, so the address and the text go through its standard input.
//! (A TLS library of our own would add 17 crates and 16 seconds of compiling.)

use std::ffi::OsString;
use std::thread;
use std::time::Duration;

use super::channels::{CURL, Webhook};
use super::deliver::Sender;
use crate::base::active_clock::Stopwatch;
use crate::process::{Exit, Stdin};

/// The pause before the first retry; each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const NAP: Duration = Duration::from_millis(50);

/// Why a try failed, and whether another one can help.
struct Failure {
    reason: String,
    is_final: bool,
}

pub(super) fn post(sender: &Sender<'_>, webhook: &Webhook) -> Result<(), String> {
    let body = sender.json().map_err(|error| error.to_string())?;
    let clock = Stopwatch::start();
    let left = || sender.timeout.saturating_sub(clock.elapsed());
    let mut pause = FIRST_PAUSE;
    let mut tried = 0;
    loop {
        let Err(failure) = try_once(sender, webhook, &body, left()) else { return Ok(()) };
        if failure.is_final || tried >= webhook.retries || left() <= pause || sender.signals.requested().is_some() {
            return Err(failure.reason);
        }
        let until = clock.elapsed() + pause;
        while clock.elapsed() < until && sender.signals.requested().is_none() {
            thread::sleep(NAP);
        }
        (pause, tried) = (pause * 2, tried + 1);
    }
}

fn try_once(sender: &Sender<'_>, webhook: &Webhook, body: &str, left: Duration) -> Result<(), Failure> {
    let argv = [CURL, "--disable", "--config", "-"].iter().map(OsString::from).collect();
    let stdin = Stdin::Bytes(instructions(webhook, body, left).into_bytes());
    let failed = |reason: String, is_final: bool| Err(Failure { reason, is_final });
    let (exit, output) = match sender.start(argv, stdin, left) {
        Ok(ended) => ended,
        Err(reason) => return failed(reason, true),
    };
    match exit {
        Exit::Code(0) => judge(output.trim()),
        Exit::Code(28) | Exit::Wall | Exit::Idle => failed(sender.timed_out(), false),
        Exit::Code(code) => failed(describe(code), matches!(code, 1..=4)),
        Exit::Signal(signal) => failed(format!("{CURL} was killed by signal {signal}"), true),
        Exit::Terminal | Exit::Interrupted(_) => failed("interrupted".to_owned(), true),
    }
}

/// The answer's status decides; its text does not matter.
fn judge(status: &str) -> Result<(), Failure> {
    let is_final = !matches!(status, "408" | "429") && !status.starts_with('5');
    if status.starts_with('2') {
        Ok(())
    } else {
        Err(Failure { reason: format!("the server answered with status {status}"), is_final })
    }
}

/// The exit codes of curl that a user can do something about. Its own messages could quote the address.
fn describe(code: i32) -> String {
    let what = match code {
        5 => "the proxy was not found",
        6 => "the host was not found",
        7 => "the connection was refused",
        35 | 51 | 53 | 54 | 58 | 59 | 60 | 66 | 77 | 80 | 82 | 83 | 90 | 91 => "the encrypted connection failed",
        52 => "the server did not answer",
        _ => return format!("{CURL} ended with exit code {code}"),
    };
    format!("{what} ({CURL} exit code {code})")
}

/// The config file of curl. Redirects are not followed: the address says where the text goes.
fn instructions(webhook: &Webhook, body: &str, left: Duration) -> String {
    let seconds = left.as_secs_f64().max(0.1);
    format!(
        "url = {url}\ndata-binary = {body}\nheader = \"Content-Type: application/json\"\nuser-agent = \"verdone/{version}\"\n\
         max-time = {seconds:.3}\nproto = \"=http,https\"\noutput = \"/dev/null\"\nwrite-out = \"%{{http_code}}\"\ngloboff\nsilent\n",
        url = quote(webhook.url.reveal()),
        body = quote(body),
        version = env!("CARGO_PKG_VERSION"),
    )
}

/// A value of curl's config file. JSON in one line has no other characters that need care.
fn quote(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use verdone_core::journal::notify::WebhookUrl;

    use super::*;

    #[test]
    fn quotes_in_the_text_do_not_add_options() {
        let webhook = Webhook { url: WebhookUrl::new("https://example.com/x"), retries: 0 };
        let text = instructions(&webhook, r#"{"text":"a \"b\"\nurl = c"}"#, Duration::from_millis(1500));
        assert!(text.contains("data-binary = \"{\\\"text\\\":\\\"a \\\\\\\"b\\\\\\\"\\\\nurl = c\\\"}\"\n"), "{text}");
        assert!(text.contains("max-time = 1.500\n"), "{text}");
        assert_eq!(text.lines().filter(|line| line.starts_with("url")).count(), 1, "{text}");
    }

    #[test]
    fn only_trouble_that_may_pass_is_tried_again() {
        for (status, is_sent, is_final) in [
            ("200", true, true),
            ("204", true, true),
            ("302", false, true),
            ("404", false, true),
            ("408", false, false),
            ("429", false, false),
            ("503", false, false),
            ("000", false, true),
        ] {
            let judged = judge(status);
            assert_eq!((judged.is_ok(), judged.err().is_none_or(|failure| failure.is_final)), (is_sent, is_final), "{status}");
        }
    }
}
