//! Money as written in settings: `20`, `0.5`. Stored in millionths, so that it can be compared exactly.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// US dollars. As a limit, 0 means no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Usd {
    millionths: u64,
}

impl Usd {
    pub const fn whole(dollars: u64) -> Self {
        Self { millionths: dollars * 1_000_000 }
    }

    pub fn as_f64(self) -> f64 {
        self.millionths as f64 / 1e6
    }

    /// As a limit: zero means `None`.
    pub fn limit(self) -> Option<f64> {
        (self.millionths > 0).then(|| self.as_f64())
    }
}

impl TryFrom<f64> for Usd {
    type Error = String;

    fn try_from(dollars: f64) -> Result<Self, String> {
        if !dollars.is_finite() || !(0.0..=1e9).contains(&dollars) {
            return Err(format!("{dollars} is not an amount of money: write 20, 0.5, or 0 for no limit"));
        }
        #[expect(clippy::cast_sign_loss, reason = "it was just seen not to be negative")]
        Ok(Self { millionths: (dollars * 1e6).round() as u64 })
    }
}

impl fmt::Display for Usd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.2} USD", self.as_f64())
    }
}

impl Serialize for Usd {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.as_f64())
    }
}

impl<'de> Deserialize<'de> for Usd {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::try_from(f64::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Usd {
    fn schema_name() -> Cow<'static, str> {
        "Usd".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "number", "minimum": 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_as_they_are_written_and_nonsense_is_refused() {
        for (text, millionths) in [("20", 20_000_000), ("0.5", 500_000), ("0", 0), ("0.000001", 1)] {
            assert_eq!(serde_json::from_str::<Usd>(text).unwrap().millionths, millionths, "{text}");
        }
        for text in ["-1", "1e300", "\"20\""] {
            assert!(serde_json::from_str::<Usd>(text).is_err(), "{text}");
        }
        assert_eq!(Usd::whole(20).to_string(), "20.00 USD");
        assert_eq!(Usd::whole(0).limit(), None);
    }
}
