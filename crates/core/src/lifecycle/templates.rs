//! The scripts that `init` writes. They do nothing until the user fills them in.

use super::Script;

/// The path below `hooks/`, and the text.
#[derive(Debug)]
pub struct Template {
    pub path: &'static str,
    pub text: &'static str,
    /// `None` for a helper that the other scripts use.
    pub script: Option<Script>,
}

pub const TEMPLATES: [Template; 5] = [
    Template { path: "started", text: include_str!("../../templates/hooks/started"), script: Some(Script::Started) },
    Template {
        path: "next_iteration",
        text: include_str!("../../templates/hooks/next_iteration"),
        script: Some(Script::NextIteration),
    },
    Template {
        path: "post_iteration",
        text: include_str!("../../templates/hooks/post_iteration"),
        script: Some(Script::PostIteration),
    },
    Template { path: "finished", text: include_str!("../../templates/hooks/finished"), script: Some(Script::Finished) },
    Template { path: "custom/notify-slack", text: include_str!("../../templates/hooks/custom/notify-slack"), script: None },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lifecycle::VARIABLES;

    #[test]
    fn a_template_names_the_variables_of_its_script_and_no_others() {
        for template in &TEMPLATES {
            let Some(script) = template.script else { continue };
            assert_eq!(template.path, script.name());
            for variable in &VARIABLES {
                let named = template.text.contains(&format!("VERDONE_{} ", variable.name));
                assert_eq!(named, variable.scripts.contains(&script), "{}: {}", template.path, variable.name);
            }
        }
    }

    #[test]
    fn a_template_does_nothing() {
        for template in TEMPLATES.iter().filter(|template| template.script.is_some()) {
            let lines = template.text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
            assert_eq!(lines.collect::<Vec<_>>(), ["exit 0"], "{}", template.path);
        }
    }
}
