//! `verdone land`: what is printed, and what is printed instead of landing.

use crate::stage::{project, transcript, verdone};

#[test]
fn a_run_in_a_worktree_is_landed() {
    let sandbox = project();
    let commands: [&[&str]; 4] = [&["run", "--worktree", "--story", "US-001"], &["doctor"], &["land"], &["status"]];
    let codes = transcript("land", &sandbox, &commands).iter().map(|output| output.code).collect::<Vec<_>>();
    assert_eq!(codes, [0, 0, 0, 0]);
    assert_eq!(sandbox.read("greeting.txt"), "hello\n");
}

#[test]
fn what_cannot_be_landed_is_told_with_the_way_on() {
    let sandbox = project();
    let mut outputs = vec![verdone(&sandbox, &["land"]), verdone(&sandbox, &["land", "no/such\u{1b}[2J"])];
    verdone(&sandbox, &["run", "--worktree", "--story", "US-001"]).assert_code(0);
    sandbox.write("PLAN.md", "my own plan\n");
    outputs.push(verdone(&sandbox, &["land"]));
    sandbox.git(["commit", "--quiet", "--all", "-m", "mine"]);
    outputs.push(verdone(&sandbox, &["land"]));
    outputs.push(verdone(&sandbox, &["land", "--json"]));
    crate::stage::compare("land-refused", &sandbox, &outputs);
    assert_eq!(outputs.iter().map(|output| output.code).collect::<Vec<_>>(), [2, 2, 4, 4, 4]);
}
