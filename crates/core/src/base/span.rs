//! Durations as written by people: `30m`, `1h 30m`, `250ms`; `0s` and `off` mean no limit.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(Duration);

impl Span {
    pub const fn from_secs(secs: u64) -> Self {
        Self(Duration::from_secs(secs))
    }

    pub const fn from_millis(millis: u64) -> Self {
        Self(Duration::from_millis(millis))
    }

    /// The duration itself, even if it means "no limit".
    pub const fn duration(self) -> Duration {
        self.0
    }

    /// A multiple. "No limit" stays "no limit".
    #[must_use]
    pub fn times(self, times: u32) -> Self {
        Self(self.0.saturating_mul(times))
    }

    /// As a limit: zero means `None`.
    pub fn limit(self) -> Option<Duration> {
        (!self.0.is_zero()).then_some(self.0)
    }
}

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text == "off" || text == "0" {
            return Ok(Self(Duration::ZERO));
        }
        let refused = || format!("{text:?} is not a duration: write 30m, 1h 30m, 45s, 250ms, or off");
        let signed: jiff::SignedDuration = text.parse().map_err(|_| refused())?;
        Duration::try_from(signed).map(Self).map_err(|_| refused())
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_zero() {
            return f.write_str("off");
        }
        let (secs, millis) = (self.0.as_secs(), self.0.subsec_millis());
        let parts = [(secs / 3600, "h"), (secs / 60 % 60, "m"), (secs % 60, "s"), (u64::from(millis), "ms")];
        let shown: Vec<String> = parts.iter().filter(|(n, _)| *n > 0).map(|(n, unit)| format!("{n}{unit}")).collect();
        if shown.is_empty() { f.write_str("1ms") } else { f.write_str(&shown.join(" ")) }
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Span {
    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "description": "A duration: 30m, 1h 30m, 45s, 250ms; off or 0s for no limit." })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_people_write_them() {
        for (text, millis) in [("30m", 1_800_000), ("1h 30m", 5_400_000), ("45s", 45_000), ("250ms", 250), ("off", 0), ("0s", 0)]
        {
            assert_eq!(text.parse::<Span>().unwrap(), Span::from_millis(millis), "{text}");
        }
    }

    #[test]
    fn what_is_shown_is_read_back() {
        for millis in [0, 1, 999, 1_000, 61_000, 3_600_000, 5_400_250] {
            let span = Span::from_millis(millis);
            assert_eq!(span.to_string().parse::<Span>().unwrap(), span);
        }
    }

    #[test]
    fn nonsense_is_refused_with_examples() {
        for text in ["", "30", "-5m", "soon", "5 parsecs"] {
            assert!(text.parse::<Span>().unwrap_err().contains("30m"), "{text}");
        }
    }
}
