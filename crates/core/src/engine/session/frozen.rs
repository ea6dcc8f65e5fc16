//! The settings that judge a loop, as they were when it began. Whatever the file says later, an agent that edits it changes nothing:
//! the user takes new settings by starting the loop anew.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::base::id::digest;
use crate::config::{Agents, Config, Hooks, Prompt, RunSettings};
use crate::policy::PolicyConfig;

/// Settings of a loop's start.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FrozenSettings {
    /// All of them: the judge of `[done]` is one of the agents.
    pub config: Box<Config>,
    /// A digest of each part of the file: settings may come from elsewhere, too, and only the file is read at a Stop.
    parts: BTreeMap<String, String>,
}

impl FrozenSettings {
    /// `file` is the config file alone.
    pub fn of(config: &Config, file: &Config) -> Self {
        Self { config: Box::new(config.clone()), parts: parts(file) }
    }

    /// What to tell where the file is not what it was, given as it is now or with why it cannot be read.
    pub fn changed(&self, now: Result<&Config, &str>) -> Option<String> {
        const TODO: &str = "so those of the loop's start count. Only the user takes new ones: `verdone loop stop`, then `verdone \
                            loop start`";
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
        (!changed.is_empty()).then(|| format!("the settings that judge this loop ({list}) were changed since, {TODO}."))
    }
}

/// The settings without what says how agents work. What a scope is worth judges, too.
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
        let frozen = FrozenSettings::of(&start, &start);
        let told = |text: &str| frozen.changed(Ok(&read(text))).unwrap_or_default();
        assert_eq!(told(GATE), "");
        assert_eq!(told(&format!("# a comment\n[agent]\nname = \"claude\"\n{GATE}")), "");
        assert!(told("").contains("(`gate`) were changed"), "{}", told(""));
        assert!(told(&format!("[stop]\nmode = \"off\"\n{GATE}")).contains("(`stop`)"));
        assert!(told(&GATE.replace("make test", "true")).contains("`verdone loop stop`, then `verdone loop start`"));
        assert!(frozen.changed(Err("line 1: what")).unwrap().contains("cannot be read (line 1: what)"));
    }

    #[test]
    fn settings_that_came_from_elsewhere_are_no_change_of_the_file() {
        let file = read("");
        let resolved = read("[stop]\nmax_blocks = 3\n");
        let frozen = FrozenSettings::of(&resolved, &file);
        assert_eq!((frozen.changed(Ok(&file)), frozen.config.stop.max_blocks), (None, 3));
        let text = serde_json::to_string(&frozen).unwrap();
        assert_eq!(serde_json::from_str::<FrozenSettings>(&text).unwrap(), frozen);
    }
}
