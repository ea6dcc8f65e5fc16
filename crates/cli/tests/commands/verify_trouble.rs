//! `verdone verify` where something around it is not as it should be: it goes on where it can, and says what it does without.

use crate::stage::{repository, verdone};

#[test]
fn a_cache_that_cannot_be_used_stops_no_verification() {
    let sandbox = repository();
    sandbox.write(".verdone/config.toml", "[[gate]]\nname = \"g\"\ncommand = \"echo seen; test -f README.md\"\n");
    sandbox.write(".verdone/cache", "a file where a folder should be\n");
    let output = verdone(&sandbox, &["verify"]);
    output.assert_code(0);
    assert!(
        output.stderr.contains("note: .verdone/cache cannot be used, so nothing is kept for the next time: "),
        "{}",
        output.stderr
    );
    let json: serde_json::Value = serde_json::from_str(&verdone(&sandbox, &["verify", "--json"]).stdout).unwrap();
    assert_eq!(
        (json["verdict"].as_str(), json["runs"][0].get("output")),
        (Some("passed"), None),
        "no output is named that is gone"
    );
    assert_eq!(sandbox.read(".verdone/cache"), "a file where a folder should be\n");
}

#[test]
fn what_nobody_can_tell_is_not_shown_as_red() {
    let sandbox = repository();
    sandbox.write(".verdone/config.toml", "[[gate]]\nname = \"g\"\ncommand = \"no-such-program\"\n");
    let output = verdone(&sandbox, &["verify"]);
    output.assert_code(4);
    assert!(output.stdout.contains("Unknown: g ") && !output.stdout.contains('✗'), "{}", output.stdout);
    let red = "[[gate]]\nname = \"h\"\ncommand = \"false\"\n";
    sandbox.write(".verdone/config.toml", sandbox.read(".verdone/config.toml") + red);
    let output = verdone(&sandbox, &["verify"]);
    output.assert_code(1);
    assert!(output.stdout.contains("✗ Not passed: h failed"), "{}", output.stdout);
}

#[test]
fn a_shared_path_that_is_not_there_is_told() {
    let sandbox = repository();
    let gate = "[[gate]]\nname = \"g\"\nwhere = \"clean\"\nshare = [\"node_modules\"]\ncommand = \"true\"\n";
    sandbox.write(".verdone/config.toml", gate);
    let told = "gate \"g\" shares node_modules, which does not exist; its clean tree will not have it";
    let output = verdone(&sandbox, &["verify"]);
    output.assert_code(0);
    assert!(output.stderr.contains(told), "{}", output.stderr);
    sandbox.write("node_modules/x", "");
    assert!(!verdone(&sandbox, &["verify"]).stderr.contains("node_modules, which"));
}
