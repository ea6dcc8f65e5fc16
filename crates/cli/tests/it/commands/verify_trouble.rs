//! `verdone verify` with problems around it: it continues if it can, and says what it does without.

use crate::commands::stage::{repository, verdone};

#[test]
fn a_cache_that_cannot_be_used_stops_no_verification() {
    let sandbox = repository();
    sandbox.write(".verdone/config.toml", "[[gate]]\nname = \"g\"\ncommand = \"echo seen; test -f README.md\"\n");
    sandbox.write(".verdone/cache", "a file where a folder should be\n");
    let output = verdone(&sandbox, &["verify"]);
    output.assert_code(0);
    let said = output.stdout.replace("\n ", "");
    assert!(said.contains(".verdone/cache cannot be used, so nothing is cached for the next run: "), "{said}");
    let json: serde_json::Value = serde_json::from_str(&verdone(&sandbox, &["verify", "--json"]).stdout).unwrap();
    let run = &json["runs"]["attempt"][0];
    assert_eq!((json["outcome"].as_str(), run["name"].as_str(), run.get("output")), (Some("done"), Some("g"), None));
    assert_eq!(sandbox.read(".verdone/cache"), "a file where a folder should be\n");
}

#[test]
fn links_that_came_with_the_project_lead_to_nothing_of_the_users() {
    for linked in [".verdone/cache", ".verdone/cache/outputs", ".verdone/cache/results"] {
        let sandbox = repository();
        sandbox.write(".verdone/config.toml", "[[gate]]\nname = \"g\"\ncommand = \"test -f README.md\"\n");
        let own = sandbox.root().join("own");
        for name in 0..30 {
            std::fs::create_dir_all(own.join(format!("{name:040x}"))).unwrap();
        }
        std::fs::write(own.join(".gitignore"), "mine\n").unwrap();
        let link = sandbox.path(linked);
        std::fs::create_dir_all(link.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(&own, &link).unwrap();
        let output = verdone(&sandbox, &["verify"]);
        output.assert_code(0);
        let said = output.stdout.replace("\n ", "");
        assert!(said.contains("nothing is cached for the next run: "), "{linked}: {said}");
        assert_eq!(std::fs::read_dir(&own).unwrap().count(), 31, "{linked}");
        assert_eq!(std::fs::read_to_string(own.join(".gitignore")).unwrap(), "mine\n", "{linked}");
    }
}

#[test]
fn what_is_unknown_is_not_shown_as_red() {
    let sandbox = repository();
    sandbox.write(".verdone/config.toml", "[[gate]]\nname = \"g\"\ncommand = \"no-such-program\"\n");
    let output = verdone(&sandbox, &["verify"]);
    output.assert_code(1);
    assert!(output.stdout.contains("  ? g command not found"), "{}", output.stdout);
    let red = "[[gate]]\nname = \"h\"\ncommand = \"false\"\n";
    sandbox.write(".verdone/config.toml", sandbox.read(".verdone/config.toml") + red);
    let output = verdone(&sandbox, &["verify"]);
    output.assert_code(1);
    assert!(output.stdout.contains("  ✗ h failed with exit code 1"), "{}", output.stdout);
}
