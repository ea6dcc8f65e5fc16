//! The stories for which a gate runs.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use verdone_plan::scope::ScopeMatcher;

/// `"always"`, or a table of conditions that all have to be true.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct When {
    /// Path patterns, relative to the project. At least one changed file has to match one of them; if empty, any change will do.
    pub paths: Vec<String>,
    /// The story has to be at least this complex.
    pub complexity_at_least: Option<u32>,
}

/// The keyword for no conditions.
const ALWAYS: &str = "always";

impl When {
    pub fn is_always(&self) -> bool {
        *self == Self::default()
    }

    /// Whether the gate has to run. `changed` lists the changed files relative to the project; `None` means unknown, and then all files
    /// count as changed.
    pub fn matches(&self, changed: Option<&[String]>, complexity: u32) -> bool {
        // A gate with invalid patterns runs. (The config is rejected before that.)
        let touched = || match (changed, ScopeMatcher::new(&self.paths, false)) {
            (Some(changed), Ok(covered)) => changed.iter().any(|path| covered.has(path)),
            (None, _) | (Some(_), Err(_)) => true,
        };
        (self.paths.is_empty() || touched()) && self.complexity_at_least.is_none_or(|least| complexity >= least)
    }
}

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_always() {
            return f.write_str(ALWAYS);
        }
        let paths = (!self.paths.is_empty()).then(|| format!("{} changed", self.paths.join(" or ")));
        let complexity = self.complexity_at_least.map(|least| format!("complexity {least} or more"));
        f.write_str(&paths.into_iter().chain(complexity).collect::<Vec<_>>().join(", "))
    }
}

/// The table as written in the config.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Conditions {
    /// Path patterns, relative to the project (`src/**/*.{ts,tsx}`). The gate runs if a changed file matches one of them. A folder covers
    /// everything below it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    paths: Vec<String>,
    /// Runs for stories of this complexity or more, from 1 to 10. A story without a complexity counts as 7.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    complexity_at_least: Option<u32>,
}

impl Serialize for When {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.is_always() {
            return serializer.serialize_str(ALWAYS);
        }
        Conditions { paths: self.paths.clone(), complexity_at_least: self.complexity_at_least }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for When {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct WordOrTable;

        impl<'de> Visitor<'de> for WordOrTable {
            type Value = When;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("\"always\", or a table with `paths` or `complexity_at_least`")
            }

            fn visit_str<E: Error>(self, word: &str) -> Result<When, E> {
                if word == ALWAYS { Ok(When::default()) } else { Err(E::invalid_value(serde::de::Unexpected::Str(word), &self)) }
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<When, A::Error> {
                let Conditions { paths, complexity_at_least } = Conditions::deserialize(MapAccessDeserializer::new(map))?;
                Ok(When { paths, complexity_at_least })
            }
        }

        deserializer.deserialize_any(WordOrTable)
    }
}

impl JsonSchema for When {
    fn schema_name() -> Cow<'static, str> {
        "When".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let conditions = generator.subschema_for::<Conditions>();
        json_schema!({
            "description": "For which stories a gate runs.",
            "anyOf": [{ "const": ALWAYS }, conditions],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn when(paths: &[&str], complexity_at_least: Option<u32>) -> When {
        When { paths: paths.iter().map(ToString::to_string).collect(), complexity_at_least }
    }

    #[test]
    fn a_gate_is_due_where_all_of_its_conditions_hold() {
        let changed = ["src/api/user.rs".to_owned(), "README.md".to_owned()];
        for (conditions, changed, complexity, due) in [
            (when(&[], None), Some(&[][..]), 1, true),
            (when(&["src/**"], None), Some(&changed[..]), 1, true),
            (when(&["src"], None), Some(&changed[..]), 1, true),
            (when(&["*.md"], None), Some(&changed[..]), 1, true),
            (when(&["docs/**"], None), Some(&changed[..]), 10, false),
            (when(&["docs/**"], None), Some(&[][..]), 10, false),
            (when(&["docs/**"], None), None, 1, true),
            (when(&[], Some(7)), Some(&changed[..]), 6, false),
            (when(&[], Some(7)), Some(&[][..]), 7, true),
            (when(&["src/**"], Some(7)), Some(&changed[..]), 6, false),
            (when(&["docs/**"], Some(7)), Some(&changed[..]), 9, false),
        ] {
            assert_eq!(conditions.matches(changed, complexity), due, "{conditions} {changed:?} {complexity}");
        }
    }

    #[test]
    fn it_is_written_as_it_is_read() {
        for (text, words) in [
            ("\"always\"", "always"),
            ("{\"paths\":[\"a/**\",\"b\"]}", "a/** or b changed"),
            ("{\"complexity_at_least\":7}", "complexity 7 or more"),
            ("{\"paths\":[\"a\"],\"complexity_at_least\":3}", "a changed, complexity 3 or more"),
        ] {
            let read: When = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&read).unwrap(), text);
            assert_eq!(read.to_string(), words);
        }
        assert!(serde_json::from_str::<When>("\"sometimes\"").is_err());
        assert!(serde_json::from_str::<When>("{\"path\":[]}").is_err());
    }
}
