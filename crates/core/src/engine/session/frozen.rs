//! The settings that judge a loop, frozen when it began. An agent that edits the config file later changes nothing: the user applies
//! new settings by restarting the loop.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::base::id::digest;
use crate::config::{Agents, Config, Hooks, Prompt, RunSettings};
use crate::policy::PolicyConfig;

/// The settings at the start of a loop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FrozenSettings {
    /// The complete config, because the judge of `[done]` is one of the agents.
    pub config: Box<Config>,
    /// A digest of each part of the file. Settings may also come from elsewhere, but a Stop reads only the file.
    parts: BTreeMap<String, String>,
}

impl FrozenSettings {
    /// `file` is the config file alone.
    pub fn new(config: &Config, file: &Config) -> Self {
        Self { config: Box::new(config.clone()), parts: parts(file) }
    }

    /// A message if the file has changed. `now` is its current content, or why it cannot be read.
    pub fn changed(&self, now: Result<&Config, &str>) -> Option<String> {
        const TODO: &str = "so the loop uses the settings from its start. Only the user can reload them: `verdone loop stop`, then \
                            `verdone loop start`";
        let now = match now {
            Ok(now) => now,
            Err(why) => return Some(format!("the settings cannot be read ({why}), {TODO}.")),
        };
        if judging(now) == judging(&self.config) {
            return None;
        }
        let now = parts(now);
        let names: BTreeSet<&String> = self.parts.keys().chain(now.keys()).collect();
        let changed: Vec<String> =
            names.into_iter().filter(|name| self.parts.get(*name) != now.get(*name)).map(|name| format!("`{name}`")).collect();
        let list = changed.join(", ");
        (!changed.is_empty()).then(|| format!("the settings that judge this loop ({list}) have changed, {TODO}."))
    }
}

/// Only the settings that judge the work, without those about how agents work. How strictly a scope is enforced counts too.
fn judging(config: &Config) -> Config {
    Config {
        agent: Agents::default(),
        run: RunSettings::default(),
        prompt: Prompt::default(),
        hooks: Hooks::default(),
        policy: PolicyConfig { scope: config.policy.on_scope(), ..PolicyConfig::default() },
        after_tool: Vec::new(),
        ..config.clone()
    }
}

fn parts(config: &Config) -> BTreeMap<String, String> {
    let value = serde_json::to_value(judging(config)).unwrap_or_default();
    let parts = value.as_object().into_iter().flatten();
    parts.map(|(name, part)| (name.clone(), digest(part.to_string().as_bytes())[..16].to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::for_hook;

    fn read(text: &str) -> Config {
        for_hook("config.toml", text).unwrap()
    }

    #[test]
    fn only_a_change_of_what_judges_is_told_and_by_its_name() {
        const GATE: &str = "[[gate]]\nname = \"tests\"\ncommand = \"make test\"\n";
        let start = read(GATE);
        let frozen = FrozenSettings::new(&start, &start);
        let told = |text: &str| frozen.changed(Ok(&read(text))).unwrap_or_default();
        assert_eq!(told(GATE), "");
        assert_eq!(told(&format!("# a comment\n[agent]\nname = \"claude\"\n{GATE}")), "");
        assert!(told("").contains("(`gate`) have changed"), "{}", told(""));
        assert!(told(&format!("[stop]\nmode = \"off\"\n{GATE}")).contains("(`stop`)"));
        assert!(told(&GATE.replace("make test", "true")).contains("`verdone loop stop`, then `verdone loop start`"));
        assert!(frozen.changed(Err("line 1: what")).unwrap().contains("cannot be read (line 1: what)"));
    }

    #[test]
    fn settings_that_came_from_elsewhere_are_no_change_of_the_file() {
        let file = read("");
        let resolved = read("[stop]\nmax_blocks = 3\n");
        let frozen = FrozenSettings::new(&resolved, &file);
        assert_eq!((frozen.changed(Ok(&file)), frozen.config.stop.max_blocks), (None, 3));
        let text = serde_json::to_string(&frozen).unwrap();
        assert_eq!(serde_json::from_str::<FrozenSettings>(&text).unwrap(), frozen);
    }
}
