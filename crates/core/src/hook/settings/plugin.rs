//! The plugin that brings our hooks into a client without `verdone install`: its hooks file, and what the client's files say about it.

use std::collections::BTreeMap;

use serde_json::Value;

use super::cap::Cap;
pub use super::cap::VARIABLE as BLOCK_CAP;
use super::container::Layout;
use super::entry::Mark;
use super::hooks_object;

/// The name in the plugin's manifest. A client adds the name of the marketplace: `verdone@verdone`.
pub const NAME: &str = "verdone";
/// The program that the plugin's hooks start, found in PATH.
pub const PROGRAM: &str = "verdone";

const DESCRIPTION: &str = "The hooks of `verdone install`. Generated: VERDONE_BLESS=1 cargo test -p verdone";

/// What a settings file says about our plugin.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PluginSettings {
    /// Plugins of our name, each enabled or disabled.
    pub switches: BTreeMap<String, bool>,
    /// All hooks are off, a plugin's too (`disableAllHooks`).
    pub hooks_are_off: bool,
    /// The file says how often in a row a hook may keep a turn from ending. A plugin cannot.
    pub sets_cap: bool,
}

/// The text of the plugin's `hooks/hooks.json`: the same hooks as in settings.
pub fn hooks_file() -> String {
    let layout = Layout::of_own_file();
    let description = layout.member("description", &Value::from(DESCRIPTION).to_string());
    let hooks = layout.member("hooks", &hooks_object(&layout, PROGRAM, Mark::Plain, Cap::Theirs));
    format!("{{\n  {description},\n  {hooks}\n}}\n")
}

/// Reads a settings file. A file that is not a JSON object says nothing.
pub fn in_settings(text: &str) -> PluginSettings {
    let Some(root) = read(text) else { return PluginSettings::default() };
    let plugins = root.get("enabledPlugins").and_then(Value::as_object).into_iter().flatten();
    let switches = plugins.filter(|(id, _)| is_ours(id)).filter_map(|(id, value)| Some((id.clone(), value.as_bool()?)));
    PluginSettings {
        switches: switches.collect(),
        hooks_are_off: root.get("disableAllHooks") == Some(&Value::Bool(true)),
        sets_cap: root.get("env").and_then(|env| env.get(BLOCK_CAP)).is_some(),
    }
}

/// Whether the client's list of installed plugins has this one.
pub fn is_installed(list: &str, id: &str) -> bool {
    let installs = read(list).and_then(|root| root.get("plugins")?.get(id)?.as_array().map(Vec::len));
    installs.is_some_and(|count| count > 0)
}

fn read(text: &str) -> Option<Value> {
    serde_json::from_str(text.trim_start_matches('\u{feff}')).ok().filter(Value::is_object)
}

fn is_ours(id: &str) -> bool {
    id.split('@').next() == Some(NAME)
}

#[cfg(test)]
mod tests {
    use super::super::{Before, install, installed};
    use super::*;

    #[test]
    fn the_plugin_has_the_hooks_that_install_writes() {
        let plugin: Value = serde_json::from_str(&hooks_file()).unwrap();
        let settings: Value = serde_json::from_str(&install(Before::NoFile, PROGRAM).unwrap()).unwrap();
        assert_eq!(plugin["hooks"], settings["hooks"]);
        assert_eq!(installed(&hooks_file()).unwrap().unwrap().missing, [""; 0]);
    }

    #[test]
    fn a_plugin_is_found_by_its_name_in_any_marketplace() {
        let text =
            r#"{ "enabledPlugins": { "verdone@verdone": true, "verdone@fork": false, "other@verdone": true, "verdone": 1 } }"#;
        let switches = [("verdone@fork".to_owned(), false), ("verdone@verdone".to_owned(), true)];
        assert_eq!(in_settings(text), PluginSettings { switches: switches.into(), ..PluginSettings::default() });
        let text = r#"{ "disableAllHooks": true, "env": { "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP": "20" } }"#;
        assert_eq!(in_settings(text), PluginSettings { hooks_are_off: true, sets_cap: true, ..PluginSettings::default() });
        for text in ["", "{", "[]", "null", r#"{ "enabledPlugins": ["verdone@verdone"], "env": 3 }"#] {
            assert_eq!(in_settings(text), PluginSettings::default(), "{text}");
        }
    }

    #[test]
    fn an_installed_plugin_is_in_the_clients_list() {
        let list = r#"{ "version": 2, "plugins": { "verdone@verdone": [{ "scope": "user" }], "verdone@gone": [] } }"#;
        assert!(is_installed(list, "verdone@verdone"));
        for id in ["verdone@gone", "verdone@other", ""] {
            assert!(!is_installed(list, id), "{id}");
        }
        assert!(!is_installed("{", "verdone@verdone"));
    }
}
