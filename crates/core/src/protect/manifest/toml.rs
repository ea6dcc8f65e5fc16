//! TOML as a `Document`.

use toml::{Table, Value};

use super::ManifestError;
use super::split::Document;

impl Document for Value {
    fn get(&self, key: &str) -> Option<&Self> {
        self.as_table()?.get(key)
    }

    fn keys(&self) -> Option<Vec<&str>> {
        Some(self.as_table()?.keys().map(String::as_str).collect())
    }

    fn items(&self) -> Option<&[Self]> {
        self.as_array().map(Vec::as_slice)
    }

    fn text(&self) -> Option<&str> {
        self.as_str()
    }

    fn table(entries: Vec<(String, Self)>) -> Self {
        Self::Table(Table::from_iter(entries))
    }

    fn list(items: Vec<Self>) -> Self {
        Self::Array(items)
    }

    fn string(text: &str) -> Self {
        Self::String(text.to_owned())
    }
}

pub(super) fn read(text: &str) -> Result<Value, ManifestError> {
    text.parse::<Table>().map(Value::Table).map_err(|error| ManifestError::Syntax(error.message().to_owned()))
}

/// Loses comments and the order of tables.
pub(super) fn write(value: &Value, _like: &str) -> Result<String, ManifestError> {
    toml::to_string(value).map_err(|error| ManifestError::Syntax(error.to_string()))
}
