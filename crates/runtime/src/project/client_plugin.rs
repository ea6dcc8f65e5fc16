//! Our plugin in a coding client: whether the client's files say that it is installed and enabled. A plugin that is loaded for one session
//! (`--plugin-dir`) is in none of these files.

use std::collections::BTreeMap;
use std::path::Path;

use verdone_core::hook::settings::plugin::{PluginSettings, in_settings, is_installed};

use crate::base::plain_file::read_linked;
use crate::project::client_settings::{Scope, SettingsFile};
use crate::project::config_file::Environment;

/// The client's list of plugins, beside the user's settings.
const LIST: &str = "plugins/installed_plugins.json";
/// Observed lists have less than a kilobyte per plugin.
const LARGEST: u64 = 4 * 1024 * 1024;

/// Our plugin, installed and enabled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActivePlugin {
    /// With the marketplace: `verdone@verdone`.
    pub id: String,
    /// The first settings file that switches all hooks off, the plugin's too.
    pub off_in: Option<Scope>,
    /// Whether some settings say how often in a row a hook may keep a turn from ending.
    pub has_cap: bool,
}

/// Finds our plugin, if sessions in this project use it.
pub fn find(root: &Path, environment: &Environment) -> Option<ActivePlugin> {
    let user = SettingsFile::new(Scope::User, root, environment).ok()?;
    let list = read_linked(&user.path.parent()?.join(LIST), LARGEST).ok()?;
    let list = String::from_utf8(list).ok()?;
    let read = |scope: Scope| {
        let state = SettingsFile::new(scope, root, environment).ok()?.read().ok()?;
        Some((scope, in_settings(state.text())))
    };
    let settings: Vec<(Scope, PluginSettings)> = Scope::ALL.into_iter().filter_map(read).collect();
    // The project's settings override the user's, and local ones both.
    let mut switches: BTreeMap<&str, bool> = BTreeMap::new();
    for (_, found) in &settings {
        switches.extend(found.switches.iter().map(|(id, enabled)| (id.as_str(), *enabled)));
    }
    let id = switches.into_iter().find(|(id, enabled)| *enabled && is_installed(&list, id))?.0.to_owned();
    let off_in = settings.iter().find(|(_, found)| found.hooks_are_off).map(|(scope, _)| *scope);
    Some(ActivePlugin { id, off_in, has_cap: settings.iter().any(|(_, found)| found.sets_cap) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// A home and a project with these files, below `home/.claude` and `work/.claude`.
    fn found(files: &[(&str, &str)]) -> Option<ActivePlugin> {
        let temp = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = temp.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let home = temp.path().join("home").display().to_string();
        find(&temp.path().join("work"), &[("HOME".to_owned(), home)].into())
    }

    const USER: &str = "home/.claude/settings.json";
    const PROJECT: &str = "work/.claude/settings.json";
    const LOCAL: &str = "work/.claude/settings.local.json";
    const ON: &str = r#"{ "enabledPlugins": { "verdone@verdone": true } }"#;
    const OFF: &str = r#"{ "enabledPlugins": { "verdone@verdone": false } }"#;
    const LISTED: (&str, &str) = (
        "home/.claude/plugins/installed_plugins.json",
        r#"{ "version": 2, "plugins": { "verdone@verdone": [{ "scope": "user" }] } }"#,
    );

    #[test]
    fn the_nearest_settings_decide_whether_an_installed_plugin_is_used() {
        let none: &[(&str, &str)] = &[];
        let table: [(&[(&str, &str)], bool); 7] = [
            (none, false),
            (&[(USER, ON)], true),
            (&[(USER, OFF)], false),
            (&[(USER, OFF), (PROJECT, ON)], true),
            (&[(USER, ON), (LOCAL, OFF)], false),
            (&[(PROJECT, OFF), (LOCAL, ON)], true),
            (&[(USER, ON), (PROJECT, "{")], true),
        ];
        for (files, active) in table {
            assert_eq!(found(files), None, "it is not installed: {files:?}");
            let plugin = found(&[files, &[LISTED]].concat());
            assert_eq!(plugin.map(|plugin| plugin.id).as_deref(), active.then_some("verdone@verdone"), "{files:?}");
        }
    }

    #[test]
    fn what_limits_its_hooks_may_be_in_any_settings() {
        let plugin = found(&[(USER, ON), LISTED]).unwrap();
        assert_eq!((plugin.off_in, plugin.has_cap), (None, false));
        let cap = r#"{ "env": { "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP": "20" } }"#;
        let plugin = found(&[(USER, ON), LISTED, (PROJECT, r#"{ "disableAllHooks": true }"#), (LOCAL, cap)]).unwrap();
        assert_eq!((plugin.off_in, plugin.has_cap), (Some(Scope::Project), true));
    }
}
