//! The skills of the plugin: what they name exists, and what they show works. With the real client: `claude/plugin.rs`.

use std::fs;

use crate::commands::stage::{BINARY, repository, repository_root, verdone};

#[test]
fn the_example_in_the_skill_for_plans_is_a_plan_without_faults() {
    let skill = fs::read_to_string(repository_root().join("plugin/skills/plan/SKILL.md")).unwrap();
    let example = skill.split("```markdown\n").nth(1).unwrap().split("   ```").next().unwrap();
    let example: Vec<&str> = example.lines().map(|line| line.strip_prefix("   ").unwrap_or(line)).collect();
    let example = example.join("\n") + "\n";
    let sandbox = repository();
    sandbox.write("PLAN.md", &example);
    sandbox.write_script("tests/greet", "#!/bin/sh\nbin/greet Ada\n");
    let output = verdone(&sandbox, &["plan", "lint", "PLAN.md"]);
    output.assert_code(0);
    assert!(output.stdout.contains("1 story, 0 warnings"), "{}", output.transcript());
}

/// Every command that a skill names exists: `--help` added to it is accepted.
#[test]
fn skills_name_only_commands_that_exist() {
    let sandbox = repository();
    let mut tried = 0;
    for name in ["keep-going", "orchestrate", "plan"] {
        let text = fs::read_to_string(repository_root().join(format!("plugin/skills/{name}/SKILL.md"))).unwrap();
        assert!(text.starts_with(&format!("---\nname: {name}\n")), "{name}");
        for command in text.split('`').filter(|part| part.starts_with("verdone ")) {
            let command = command.replacen("verdone", BINARY, 1).replace(" N ", " 5 ");
            let output = sandbox.run("sh", ["-c", &format!("{command} --help")]);
            assert_eq!(output.code, 0, "{name}: {command}\n{}", output.transcript());
            tried += 1;
        }
    }
    assert!(tried > 15, "{tried}");
}
