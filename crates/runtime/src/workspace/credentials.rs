//! Copies a login that the client renewed in its view back to the user, because the old one may no longer be valid.
//!
//! An agent can write to the file in its view. So only the tokens are copied into the user's own file, and only if they belong to
//! the same account and expire later than the user's. The file usually does not name the account, and the tokens do not reveal
//! it. The client names it in `.claude.json`, but an agent can leave its copy of that file alone. In that case, the user's login
//! must also be one that the client would renew: one that is about to expire. As long as it is valid for longer, the user loses
//! nothing.

mod codex;

use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value};
use verdone_core::agent::client_files::{LOGIN_KEY, LoginForm};

use super::view_contents::Credentials;
use crate::base::atomic::write_atomically;
use crate::base::plain_file::{read_linked, read_regular};

/// A few tokens; tool servers may store theirs there too.
const LARGEST: u64 = 1024 * 1024;
/// The client's settings for every project that it has seen.
const LARGEST_ANSWERS: u64 = 64 * 1024 * 1024;
/// Logins are issued for a year at most.
const LONGEST: Duration = Duration::from_hours(24 * 400);
/// The client renews a login in its last minutes before expiry.
const DUE: Duration = Duration::from_mins(15);
/// Keys that identify the account, wherever the client writes them.
const ACCOUNT: [&str; 4] = ["accountUuid", "organizationUuid", "emailAddress", "email"];

/// Whether a login from a view was copied back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CopyBack {
    /// The view did not change it.
    Unchanged,
    /// The user's file has the new tokens.
    Copied,
    /// The user's file was left unchanged.
    Refused { why: &'static str },
}

/// The client's login while a view exists. Drop it after the view: the login that the view leaves is then copied back.
#[derive(Debug)]
pub(super) struct Login(Option<Credentials>);

impl Login {
    pub(super) fn new(credentials: Option<Credentials>) -> Self {
        Self(credentials)
    }

    /// Copies a renewed login back while the client may still be running. If that fails now, the file may be complete the next
    /// time.
    pub(super) fn save(&self) {
        let _ = self.0.as_ref().map(|credentials| copy_back(credentials, SystemTime::now()));
    }

    /// Copies the login back for the last time. Returns a message for the user if there is a changed login that could not be
    /// copied.
    pub(super) fn close(&mut self) -> Option<String> {
        let credentials = self.0.take()?;
        let own = credentials.own.display();
        match copy_back(&credentials, SystemTime::now()) {
            Ok(CopyBack::Unchanged | CopyBack::Copied) => None,
            Ok(CopyBack::Refused { why }) => {
                Some(format!("{own} was not updated: the agent's client changed its copy, but {why}"))
            }
            Err(error) => Some(format!("{own}: a renewed login of the agent's client could not be saved: {error}")),
        }
    }
}

impl Drop for Login {
    fn drop(&mut self) {
        self.close();
    }
}

/// Copies a renewed login back.
pub fn copy_back(credentials: &Credentials, now: SystemTime) -> io::Result<CopyBack> {
    let refused = |why| Ok(CopyBack::Refused { why });
    let new = match read_regular(&credentials.written, LARGEST) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(CopyBack::Unchanged),
        // A file removed in the view is a whiteout in its layer, not a regular file.
        Err(_) => return refused("it was removed, or replaced by something that is not a file"),
    };
    let own = match read_linked(&credentials.own, LARGEST) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return refused("there was no login before"),
        Err(error) => return Err(error),
    };
    if new == own {
        return Ok(CopyBack::Unchanged);
    }
    if credentials.form == LoginForm::Codex {
        return codex::copy_back(&credentials.own, &own, &new, now);
    }
    let (Some(new), Some(mut own)) = (parsed(&new), parsed(&own)) else { return refused("it cannot be read") };
    let (Some(new_login), Some(own_login)) = (login(&new), login(&own)) else { return refused("it contains no login") };
    let same = same_account(&own, &new) && same_account(own_login, new_login) && same_answers(credentials);
    if !same {
        return refused("it is a login for another account");
    }
    let is_named = names_account(&own) || names_account(own_login);
    let (Some(until), Some(own_until)) = (expiry(new_login), expiry(own_login)) else {
        return refused("it does not say how long it is valid");
    };
    if until <= own_until {
        return Ok(if until == own_until && tokens(new_login) == tokens(own_login) {
            CopyBack::Unchanged
        } else {
            CopyBack::Refused { why: "it is not valid for longer than yours" }
        });
    }
    let now = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    if u128::from(until) > (now + LONGEST).as_millis() {
        return refused("it claims to be valid for years");
    }
    if !is_named && u128::from(own_until) > (now + DUE).as_millis() {
        return refused("yours was not about to expire, and its account is unknown");
    }
    let Some(tokens) = tokens(new_login) else { return refused("its tokens are not in the usual form") };
    let renewed: Vec<(&str, Value)> = tokens.into_iter().map(|(name, token)| (name, Value::from(token))).collect();
    let Some(Value::Object(login)) = own.get_mut(LOGIN_KEY) else { return refused("it contains no login") };
    login.extend(renewed.into_iter().chain([("expiresAt", until.into())]).map(|(name, value)| (name.to_owned(), value)));
    write_atomically(&credentials.own, &serde_json::to_vec(&own)?)?;
    Ok(CopyBack::Copied)
}

fn parsed(bytes: &[u8]) -> Option<Map<String, Value>> {
    serde_json::from_slice(bytes).ok()
}

fn login(file: &Map<String, Value>) -> Option<&Map<String, Value>> {
    file.get(LOGIN_KEY)?.as_object()
}

/// Both name the same account, or neither names one.
fn same_account(own: &Map<String, Value>, new: &Map<String, Value>) -> bool {
    ACCOUNT.iter().all(|name| own.get(*name) == new.get(*name))
}

fn names_account(part: &Map<String, Value>) -> bool {
    ACCOUNT.iter().any(|name| part.contains_key(*name))
}

/// Like [`same_account`], for the account that the client itself recorded. If the view did not write that file, it shows the
/// user's.
fn same_answers(credentials: &Credentials) -> bool {
    let Some((written, own)) = &credentials.answers else { return true };
    let account = |path: &Path| {
        let file = parsed(&read_regular(path, LARGEST_ANSWERS).ok()?)?;
        Some(file.get("oauthAccount")?.as_object()?.clone())
    };
    // Not `exists`, which would follow a dangling link.
    if fs::symlink_metadata(written).is_err() {
        return true;
    }
    same_account(&account(own).unwrap_or_default(), &account(written).unwrap_or_default())
}

fn expiry(login: &Map<String, Value>) -> Option<u64> {
    login.get("expiresAt")?.as_u64()
}

/// Both tokens, if they look like tokens.
fn tokens(login: &Map<String, Value>) -> Option<[(&'static str, &str); 2]> {
    let token = |name: &'static str| {
        let text = login.get(name)?.as_str()?;
        ((10..=8192).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())).then_some((name, text))
    };
    Some([token("accessToken")?, token("refreshToken")?])
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

    use serde_json::json;

    use super::*;

    const NOW: u64 = 1_763_200_000_000;

    fn file(access: &str, until: u64) -> Value {
        json!({ "claudeAiOauth": {
            "accessToken": format!("sk-ant-oat01-{access}"), "refreshToken": format!("sk-ant-ort01-{access}"), "expiresAt": until,
            "scopes": ["user:inference", "user:profile"], "subscriptionType": "max"
        } })
    }

    struct World {
        _dir: tempfile::TempDir,
        at: Credentials,
    }

    impl World {
        fn new(own: &str, new: &str) -> Self {
            let dir = tempfile::tempdir().unwrap();
            let path = |name: &str| dir.path().join(name);
            let at = Credentials {
                written: path("new"),
                own: path("own"),
                answers: Some((path("new answers"), path("own answers"))),
                form: LoginForm::Claude,
            };
            fs::write(&at.own, own).unwrap();
            fs::set_permissions(&at.own, fs::Permissions::from_mode(0o600)).unwrap();
            fs::write(&at.written, new).unwrap();
            Self { _dir: dir, at }
        }

        fn copy_back(&self) -> CopyBack {
            copy_back(&self.at, UNIX_EPOCH + Duration::from_millis(NOW)).unwrap()
        }
    }

    #[test]
    fn a_renewed_login_replaces_the_tokens_and_nothing_else() {
        let mut own = file("old", NOW);
        own["mcpOAuth"] = json!({ "server": "kept" });
        let mut new = file("new", NOW + 8 * 3_600_000);
        new["mcpOAuth"] = json!({ "server": "planted" });
        new["claudeAiOauth"]["scopes"] = json!(["everything"]);
        let world = World::new(&own.to_string(), &new.to_string());
        assert_eq!(world.copy_back(), CopyBack::Copied);
        let mut expected = file("new", NOW + 8 * 3_600_000);
        expected["mcpOAuth"] = json!({ "server": "kept" });
        let found: Value = serde_json::from_slice(&fs::read(&world.at.own).unwrap()).unwrap();
        assert_eq!(found, expected);
        assert_eq!(fs::metadata(&world.at.own).unwrap().mode() & 0o777, 0o600);
    }

    #[test]
    fn whatever_is_not_a_longer_login_of_the_same_account_is_refused() {
        let own = file("old", NOW);
        let with = |change: &dyn Fn(&mut Value)| {
            let mut new = file("new", NOW + 1_000);
            change(&mut new);
            new.to_string()
        };
        for (new, why) in [
            ("{\"claudeAiOauth\": {".to_owned(), "it cannot be read"),
            ("{}".to_owned(), "it contains no login"),
            (file("new", NOW).to_string(), "it is not valid for longer than yours"),
            (file("new", NOW - 1).to_string(), "it is not valid for longer than yours"),
            (file("new", NOW * 2).to_string(), "it claims to be valid for years"),
            (with(&|new| new["claudeAiOauth"]["expiresAt"] = json!("soon")), "it does not say how long it is valid"),
            (with(&|new| new["claudeAiOauth"]["accessToken"] = json!("a b\n")), "its tokens are not in the usual form"),
            (with(&|new| new["claudeAiOauth"]["refreshToken"] = json!(null)), "its tokens are not in the usual form"),
        ] {
            let world = World::new(&own.to_string(), &new);
            assert_eq!(world.copy_back(), CopyBack::Refused { why }, "{new}");
            assert_eq!(fs::read_to_string(&world.at.own).unwrap(), own.to_string());
        }
    }

    #[test]
    fn another_account_is_refused_wherever_it_is_named() {
        let (mut own, mut new) = (file("old", NOW), file("new", NOW + 1));
        own["organizationUuid"] = json!("one");
        for other in [json!("two"), json!(null)] {
            new["organizationUuid"] = other;
            let world = World::new(&own.to_string(), &new.to_string());
            assert!(matches!(world.copy_back(), CopyBack::Refused { why } if why.contains("another account")));
        }
        let account = |id: &str| json!({ "oauthAccount": { "accountUuid": id } }).to_string();
        let none = || "{}".to_owned();
        for (own_answers, answers, same) in [
            (account("one"), account("one"), true),
            (none(), none(), true),
            (account("one"), account("two"), false),
            (account("one"), none(), false),
            (none(), account("two"), false),
        ] {
            let world = World::new(&file("old", NOW).to_string(), &file("new", NOW + 1).to_string());
            let (written, own) = world.at.answers.clone().unwrap();
            fs::write(own, &own_answers).unwrap();
            fs::write(&written, &answers).unwrap();
            let refused = CopyBack::Refused { why: "it is a login for another account" };
            assert_eq!(world.copy_back(), if same { CopyBack::Copied } else { refused.clone() }, "{own_answers} {answers}");
            if own_answers != none() {
                fs::write(&world.at.own, file("old", NOW).to_string()).unwrap();
                fs::remove_file(&written).unwrap();
                symlink("nowhere", &written).unwrap();
                assert_eq!(world.copy_back(), refused, "a link instead of the answers");
            }
        }
    }

    #[test]
    fn a_login_of_an_unknown_account_is_taken_only_when_the_users_is_about_to_end() {
        let minutes = |n: u64| NOW + n * 60_000;
        for (until, result) in [
            (minutes(4), CopyBack::Copied),
            (minutes(120), CopyBack::Refused { why: "yours was not about to expire, and its account is unknown" }),
        ] {
            let world = World::new(&file("old", until).to_string(), &file("planted", minutes(480)).to_string());
            let (_, own) = world.at.answers.clone().unwrap();
            fs::write(own, json!({ "oauthAccount": { "accountUuid": "one" } }).to_string()).unwrap();
            assert_eq!(world.copy_back(), result, "the agent's copy of the answers is the user's");
        }
        let named = |name: &str, until: u64| {
            let mut file = file(name, until);
            file["claudeAiOauth"]["accountUuid"] = json!("one");
            file.to_string()
        };
        assert_eq!(World::new(&named("old", minutes(120)), &named("new", minutes(480))).copy_back(), CopyBack::Copied);
        let world = World::new(&file("old", NOW).to_string(), &named("new", minutes(480)));
        assert_eq!(world.copy_back(), CopyBack::Refused { why: "it is a login for another account" });
    }

    #[test]
    fn an_unchanged_login_stays_and_links_are_not_followed() {
        let own = file("old", NOW).to_string();
        let world = World::new(&own, &own);
        assert_eq!(world.copy_back(), CopyBack::Unchanged);
        fs::write(&world.at.written, format!("{own}\n")).unwrap();
        assert_eq!(world.copy_back(), CopyBack::Unchanged, "the same in other bytes");
        fs::remove_file(&world.at.written).unwrap();
        assert_eq!(world.copy_back(), CopyBack::Unchanged);
        symlink(&world.at.own, &world.at.written).unwrap();
        assert!(matches!(world.copy_back(), CopyBack::Refused { .. }));
        fs::remove_file(&world.at.written).unwrap();
        fs::write(&world.at.written, file("new", NOW + 1).to_string()).unwrap();
        fs::remove_file(&world.at.own).unwrap();
        assert_eq!(world.copy_back(), CopyBack::Refused { why: "there was no login before" });
    }
}
