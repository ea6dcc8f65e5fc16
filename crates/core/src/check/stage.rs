//! Stages of gates: four built-in ones, and custom names.

use std::borrow::Cow;
use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// Built-in stages run in this order. Custom ones come after them, in the order in which the config first names them, which is not
/// the `Ord` of this type.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum Stage {
    #[default]
    Correctness,
    Quality,
    Security,
    Adversarial,
    Own(String),
}

impl Stage {
    pub const BUILT_IN: [Self; 4] = [Self::Correctness, Self::Quality, Self::Security, Self::Adversarial];

    /// The name used in config, JSON and docs.
    pub fn name(&self) -> &str {
        match self {
            Self::Correctness => "correctness",
            Self::Quality => "quality",
            Self::Security => "security",
            Self::Adversarial => "adversarial",
            Self::Own(name) => name,
        }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl From<String> for Stage {
    fn from(name: String) -> Self {
        Self::BUILT_IN.into_iter().find(|stage| stage.name() == name).unwrap_or(Self::Own(name))
    }
}

impl From<Stage> for String {
    fn from(stage: Stage) -> Self {
        stage.name().to_owned()
    }
}

impl FromStr for Stage {
    type Err = Infallible;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Ok(name.to_owned().into())
    }
}

impl JsonSchema for Stage {
    fn schema_name() -> Cow<'static, str> {
        "Stage".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "A built-in stage, or a custom name. Custom stages run after the built-in ones.",
            "examples": Self::BUILT_IN.map(String::from),
        })
    }
}
