//! Provers that have to be asked, as real processes.

use std::path::Path;

use verdone_core::base::id::Oid;
use verdone_core::base::redact::Redactor;
use verdone_core::base::span::Span;
use verdone_core::check::CommandSpec;
use verdone_core::config::{Config, Limits};
use verdone_core::done::{CiFact, CiSettings, JudgeAgent, JudgeFact};
use verdone_runtime::agent::judge::{ProverContext, ask_ci, ask_judge, limits_of};
use verdone_runtime::process::EnvPlan;
use verdone_runtime::process::signal::Signals;

use crate::alone;

#[test]
fn who_is_asked_is_heard_only_where_the_answer_is_clear() {
    let _one = alone();
    a_judge_is_given_the_prompt_and_only_a_clear_answer_counts();
    ci_is_asked_until_it_knows_or_the_time_is_over();
}

/// A run's limits with a short grace period.
fn limits(config: &Config) -> Limits {
    Limits { grace: Span::from_millis(200), ..limits_of(config) }
}

fn court<'a>(dir: &'a Path, redactor: &'a Redactor, limits: &'a Limits) -> ProverContext<'a> {
    ProverContext { root: dir, dir, env: EnvPlan::default(), redactor, limits, seat: None, inside: None }
}

fn judge(command: &str) -> JudgeFact {
    let temp = tempfile::tempdir().unwrap();
    let mut config = Config::default();
    config.done.judge.command = Some(CommandSpec::Shell(command.to_owned()));
    ask(&config, temp.path())
}

fn ask(config: &Config, dir: &Path) -> JudgeFact {
    let (redactor, limits) = (Redactor::default(), limits(config));
    ask_judge(config, "refute it", &court(dir, &redactor, &limits), &Signals::none(), &mut |_| {}).unwrap().said
}

fn a_judge_is_given_the_prompt_and_only_a_clear_answer_counts() {
    assert_eq!(judge(r#"grep -q 'refute it' && echo '{"verdict":"holds","findings":[]}'"#), JudgeFact::Holds);
    let refuted = judge(r#"echo 'Well.'; echo '{"verdict":"refuted","findings":["no test"]}'"#);
    assert_eq!(refuted, JudgeFact::Refuted { findings: vec!["no test".to_owned()] });
    for command in [r#"echo '{"verdict":"holds"}'; exit 1"#, "echo holds", "true", "no-such-program-here", "kill -9 $$"] {
        assert!(matches!(judge(command), JudgeFact::Unknown { .. }), "{command}");
    }
    let temp = tempfile::tempdir().unwrap();
    let why = |config: &Config| match ask(config, temp.path()) {
        JudgeFact::Unknown { why } => why,
        other => panic!("{other:?}"),
    };
    assert!(why(&Config::default()).contains("[done.judge]"));
    let mut slow = Config::default();
    slow.done.judge.command = Some(CommandSpec::Shell("sleep 60".to_owned()));
    slow.done.judge.timeout = Span::from_millis(20);
    assert!(why(&slow).contains("did not answer within"), "{}", why(&slow));
    let mut client = Config::default();
    client.done.judge.agent = JudgeAgent::Claude;
    assert!(why(&client).contains("cannot be used as the judge here"), "a client needs a run");
}

fn ci_is_asked_until_it_knows_or_the_time_is_over() {
    let temp = tempfile::tempdir().unwrap();
    let ask = |command: &str, timeout: u64| {
        let settings = CiSettings {
            command: Some(CommandSpec::Shell(command.to_owned())),
            timeout: Span::from_millis(timeout),
            interval: Span::from_millis(1),
        };
        let (redactor, limits) = (Redactor::default(), limits(&Config::default()));
        ask_ci(&settings, &Oid::from("0123456789abcdef"), &court(temp.path(), &redactor, &limits), &Signals::none(), &mut |_| {})
    };
    // The third answer counts.
    let patient = "echo x >> asked; test $(wc -l < asked) -ge 3 || exit 75; test $VERDONE_COMMIT = 0123456789abcdef";
    assert_eq!(ask(patient, 600_000), CiFact::Green { commit: "0123456789".to_owned() });
    assert_eq!(ask("echo broken; exit 1", 600_000), CiFact::Red { commit: "0123456789".to_owned(), said: "broken".to_owned() });
    assert!(matches!(ask("exit 75", 1), CiFact::Unknown { .. }));
    assert!(matches!(ask("no-such-program-here", 600_000), CiFact::Unknown { .. }));
    let (redactor, limits) = (Redactor::default(), limits(&Config::default()));
    let court = court(temp.path(), &redactor, &limits);
    let off = ask_ci(&CiSettings::default(), &Oid::from("x"), &court, &Signals::none(), &mut |_| {});
    assert_eq!(off, CiFact::Off);
}
