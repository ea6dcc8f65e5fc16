//! `verdone land`: what it prints when it lands and when it refuses.

use crate::commands::stage::{project, transcript, verdone};

#[test]
fn a_run_is_landed_when_the_user_says_so() {
    let sandbox = project();
    let commands: [&[&str]; 7] = [
        &["run", "--story", "US-001"],
        &["land", "--dry-run"],
        &["doctor"],
        &["land"],
        &["land"],
        &["status"],
        &["land", "--json"],
    ];
    let codes = transcript("land", &sandbox, &commands).iter().map(|output| output.code).collect::<Vec<_>>();
    assert_eq!(codes, [0, 0, 0, 0, 2, 0, 2]);
    assert_eq!(sandbox.read("greeting.txt"), "hello\n");
    assert_eq!(sandbox.git(["status", "--porcelain"]), "");
}

#[test]
fn what_cannot_be_landed_is_said_with_what_to_do_next() {
    let sandbox = project();
    let mut outputs = vec![verdone(&sandbox, &["land"]), verdone(&sandbox, &["land", "no/such\u{1b}[2J"])];
    verdone(&sandbox, &["run", "--story", "US-001"]).assert_code(0);
    sandbox.write("PLAN.md", "my own plan\n");
    outputs.push(verdone(&sandbox, &["land"]));
    sandbox.git(["commit", "--quiet", "--all", "-m", "mine"]);
    outputs.push(verdone(&sandbox, &["land"]));
    outputs.push(verdone(&sandbox, &["land", "--json"]));
    crate::commands::stage::compare("land-refused", &sandbox, &outputs);
    assert_eq!(outputs.iter().map(|output| output.code).collect::<Vec<_>>(), [2, 2, 4, 4, 4]);
    assert_eq!(sandbox.read("PLAN.md"), "my own plan\n");
}

#[test]
fn a_branch_that_moved_on_gets_the_commits_on_top_verified_again() {
    let sandbox = project();
    verdone(&sandbox, &["run", "--story", "US-001", "--quiet"]).assert_code(0);
    sandbox.write("mine.txt", "mine\n");
    sandbox.git(["add", "mine.txt"]);
    sandbox.git(["commit", "--quiet", "--message", "mine"]);
    transcript("land-moved-on", &sandbox, &[&["land", "--dry-run"], &["land"]])[1].assert_code(0);
    assert_eq!(sandbox.git(["log", "--format=%s"]), "feat(US-001): Write a greeting\nmine\ninitial");
    assert_eq!(sandbox.read("greeting.txt"), "hello\n");
}
