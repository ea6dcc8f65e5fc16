//! The address of a webhook. Its path or user often is a secret, so only its host is ever shown.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Serialised in full, for settings that are kept; `Debug` and `Display` show the host only.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct WebhookUrl(String);

/// Why a text is not the address of a webhook. Never contains the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UrlFault {
    #[error("the address of a webhook begins with https:// or http://")]
    Scheme,
    #[error("the address of the webhook has no host")]
    Host,
    #[error("the address of the webhook contains blanks, quotes or control characters")]
    Character,
}

impl WebhookUrl {
    pub fn new(text: &str) -> Self {
        Self(text.trim().to_owned())
    }

    /// The whole address, with its secrets.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    pub fn fault(&self) -> Option<UrlFault> {
        let Some(rest) = self.without_scheme() else { return Some(UrlFault::Scheme) };
        if rest.chars().any(|c| c.is_whitespace() || c.is_control() || matches!(c, '"' | '\\')) {
            return Some(UrlFault::Character);
        }
        host(rest).is_empty().then_some(UrlFault::Host)
    }

    fn without_scheme(&self) -> Option<&str> {
        self.0.split_once("://").filter(|(scheme, _)| matches!(*scheme, "http" | "https")).map(|(_, rest)| rest)
    }
}

/// Without user, password, port, path and query.
fn host(rest: &str) -> &str {
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    match host.split_once(']') {
        Some((v6, _)) => v6.trim_start_matches('['),
        None => host.split(':').next().unwrap_or_default(),
    }
}

impl fmt::Display for WebhookUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.without_scheme().map_or("", host))
    }
}

impl fmt::Debug for WebhookUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WebhookUrl({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_host_is_shown() {
        for (url, shown) in [
            ("https://hooks.example.com/services/T0/B0/xyzzy", "hooks.example.com"),
            ("https://user:xyzzy@example.com:8443?token=xyzzy", "example.com"),
            ("http://xyzzy@[::1]:80/xyzzy", "::1"),
            ("https://a@xyzzy:b@example.com#xyzzy", "example.com"),
        ] {
            let url = WebhookUrl::new(url);
            assert_eq!((url.fault(), url.to_string().as_str()), (None, shown));
            assert!(!format!("{url:?}").contains("xyzzy"));
        }
    }

    #[test]
    fn what_is_no_address_is_refused_without_repeating_it() {
        for (url, fault) in [
            ("hooks.example.com/xyzzy", UrlFault::Scheme),
            ("file:///etc/xyzzy", UrlFault::Scheme),
            ("https:///xyzzy", UrlFault::Host),
            ("https://example.com/\"\nurl = xyzzy", UrlFault::Character),
            ("https://example.com/a b", UrlFault::Character),
        ] {
            assert_eq!(WebhookUrl::new(url).fault(), Some(fault));
            assert!(!fault.to_string().contains("xyzzy"));
        }
    }
}
