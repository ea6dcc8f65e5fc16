//! A renewed login of Codex. It names its account, but an agent could copy that name. So it is taken only if the user's own login is so
//! old that the client would renew it.

use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::{CopyBack, parsed};
use crate::base::atomic::write_atomically;

/// The client renews a login that is older than eight days.
const DUE: Duration = Duration::from_hours(24 * 7);
const TOKENS: [&str; 3] = ["id_token", "access_token", "refresh_token"];

pub(super) fn copy_back(path: &Path, own: &[u8], new: &[u8], now: SystemTime) -> io::Result<CopyBack> {
    let refused = |why| Ok(CopyBack::Refused { why });
    let (Some(new), Some(mut own)) = (parsed(new), parsed(own)) else { return refused("it cannot be read") };
    let account = |file: &Map<String, Value>| file.get("tokens")?.get("account_id")?.as_str().map(str::to_owned);
    let (Some(renewed), Some(before)) = (renewal(&new), renewal(&own)) else { return refused("it contains no login") };
    if account(&new).is_none() || account(&new) != account(&own) {
        return refused("it is a login for another account");
    }
    if renewed <= before {
        let same = TOKENS.iter().all(|name| token(&new, name) == token(&own, name));
        return if same { Ok(CopyBack::Unchanged) } else { refused("it is not newer than yours") };
    }
    let now = Timestamp::try_from(now).unwrap_or(Timestamp::UNIX_EPOCH);
    let age = now.duration_since(before);
    if renewed.duration_since(now).as_secs() > 60 || age.unsigned_abs() < DUE || age.is_negative() {
        return refused("yours was not about to be renewed");
    }
    let tokens: Option<Vec<(&str, Value)>> = TOKENS.iter().map(|name| Some((*name, token(&new, name)?.into()))).collect();
    let Some(tokens) = tokens else { return refused("its tokens are not in the usual form") };
    let Some(Value::Object(held)) = own.get_mut("tokens") else { return refused("it contains no login") };
    held.extend(tokens.into_iter().map(|(name, value)| (name.to_owned(), value)));
    own.insert("last_refresh".to_owned(), renewed.to_string().into());
    write_atomically(path, &serde_json::to_vec_pretty(&own)?)?;
    Ok(CopyBack::Copied)
}

fn renewal(file: &Map<String, Value>) -> Option<Timestamp> {
    file.get("last_refresh")?.as_str()?.parse().ok()
}

fn token<'f>(file: &'f Map<String, Value>, name: &str) -> Option<&'f str> {
    let text = file.get("tokens")?.get(name)?.as_str()?;
    ((10..=16_384).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())).then_some(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn login(token: &str, account: &str, at: &str) -> Value {
        let named = |name: &str| format!("{name}-{token}-0123456789");
        json!({ "OPENAI_API_KEY": null, "last_refresh": at, "tokens": { "id_token": named("id"), "access_token": named("access"),
            "refresh_token": named("refresh"), "account_id": account } })
    }

    #[test]
    fn only_a_due_renewal_of_the_same_account_is_taken() {
        let now = SystemTime::from("2026-03-20T12:00:00Z".parse::<Timestamp>().unwrap());
        let old = login("old", "a", "2026-03-10T12:00:00.5Z");
        let recent = login("old", "a", "2026-03-18T12:00:00Z");
        let new = |account: &str, at: &str| login("new", account, at);
        for (own, new, copied) in [
            (&old, new("a", "2026-03-20T11:59:00Z"), true),
            (&old, new("b", "2026-03-20T11:59:00Z"), false),
            (&old, new("a", "2026-03-09T11:59:00Z"), false),
            (&old, new("a", "2026-03-21T11:59:00Z"), false),
            (&recent, new("a", "2026-03-20T11:59:00Z"), false),
            (&old, json!({ "last_refresh": "2026-03-20T11:59:00Z", "tokens": { "account_id": "a", "id_token": "x" } }), false),
            (&old, json!([]), false),
        ] {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("auth.json");
            std::fs::write(&path, own.to_string()).unwrap();
            let result = copy_back(&path, own.to_string().as_bytes(), new.to_string().as_bytes(), now).unwrap();
            assert_eq!(result == CopyBack::Copied, copied, "{new}: {result:?}");
            let kept: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
            assert_eq!(kept["tokens"]["refresh_token"] != own["tokens"]["refresh_token"], copied);
        }
    }
}
