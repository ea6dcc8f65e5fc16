//! Tamper alarms: reported, asked about or refused.

use super::*;
use crate::tamper::{AlarmKind, Response, Severity};

fn after_alarms(severities: &[Severity], settings: TamperSettings) -> Decision {
    let rules = Rules { tamper: settings, ..rules(RedPolicy::Flag, false) };
    let mut state = State::default();
    let mut journal = Vec::new();
    for input in [start(), Input::ScriptRan(None), Input::Prepared { baseline: Vec::new() }] {
        let events = decide(&state, &rules, Duration::ZERO, &input).events;
        record(&mut state, &mut journal, events, Duration::ZERO);
    }
    let choice = World::new(vec![1], 1).choose(&state);
    for input in [
        Input::Selected(choice),
        Input::ScriptRan(None),
        ready(),
        Input::RedChecked { red: Red::Red, runs: Vec::new() },
        Input::TurnEnded(turn_report(TurnOutcome::Ended)),
    ] {
        let events = decide(&state, &rules, Duration::ZERO, &input).events;
        record(&mut state, &mut journal, events, Duration::ZERO);
    }
    let alarm = |severity: &Severity| Alarm {
        kind: AlarmKind::TestDeleted,
        severity: *severity,
        path: "tests/a.rs".to_owned(),
        line: None,
        text: "works".to_owned(),
        expected: false,
    };
    let verification = Verification {
        alarms: severities.iter().map(alarm).collect(),
        ..verified(VerifyOutcome::Passed, vec![ran("true", CheckOutcome::Passed)])
    };
    decide(&state, &rules, Duration::ZERO, &Input::Verified(verification))
}

#[test]
fn alarms_are_reported_asked_about_or_refused_as_the_settings_say() {
    use Severity::{High, Low, Medium};
    let all = |response| TamperSettings { low: response, medium: response, high: response };
    let default = TamperSettings::default();
    for (severities, settings, effect, rejection) in [
        (&[][..], default, Effect::Commit, None),
        (&[Low], default, Effect::Commit, None),
        (&[Medium], default, Effect::Keep, Some(Rejection::NeedsHuman)),
        (&[High], default, Effect::Turn, None),
        (&[Low, Medium, High], default, Effect::Turn, None),
        (&[High, Medium], all(Response::Report), Effect::Commit, None),
        (&[Low], all(Response::Ask), Effect::Keep, Some(Rejection::NeedsHuman)),
        (&[Low], all(Response::Refuse), Effect::Turn, None),
    ] {
        let decision = after_alarms(severities, settings);
        assert_eq!(decision.effect, Some(effect.clone()), "{severities:?} {settings:?}");
        let found = decision.events.iter().find_map(|event| match event {
            Event::AttemptRejected { rejection, .. } => Some(rejection.clone()),
            _ => None,
        });
        assert_eq!(found, rejection, "{severities:?}");
        let Event::Verified { outcome, alarms, reason, .. } = &decision.events[0] else { panic!("{:?}", decision.events) };
        assert_eq!(alarms.len(), severities.len());
        assert_eq!(*outcome == VerifyOutcome::Passed, effect == Effect::Commit);
        assert_eq!(reason.is_some(), effect != Effect::Commit);
    }
}
