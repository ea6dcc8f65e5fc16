//! The user's git hooks run for every story's commit.

use crate::run_loop::world::{HONEST, ONE, World, text};

#[test]
fn a_refusal_is_fed_back_and_repaired() {
    let script = "[[turn]]\nturn = 1\nsteps = [{ create = \"a\", text = \"bad\" }]\n[[turn]]\nsteps = [{ create = \"a\", text = \"good\" }]\n";
    let world = World::new(ONE, script);
    world.hook("pre-commit", "git show :a | grep -q good || { echo the-hook-said-no >&2; exit 1; }");
    world.run(0);
    assert!(world.prompt(2).contains("the-hook-said-no"), "{}", world.prompt(2));
    assert_eq!(world.git(&["show", "HEAD:a"]), "good");
    assert_eq!(world.subjects(), ["feat(US-001): Write a", "initial"]);
    world.assert_clean();
}

#[test]
fn the_same_tree_refused_twice_needs_a_human() {
    let world = World::new(ONE, HONEST);
    world.hook("commit-msg", "echo this-never-works >&2; exit 1");
    let output = world.run(4);
    assert_eq!(world.finish(), "blocked");
    assert!(output.stdout.contains("this-never-works"), "{}", output.stdout);
    assert_eq!(world.all("commit_refused").len(), 2);
    assert_eq!(world.git(&["show", &format!("{}:a", world.kept())]), "one");
    assert_eq!(world.subjects(), ["initial"]);
    assert_eq!(world.plan(), ONE);
    world.assert_clean();
}

#[test]
fn what_a_hook_rewrites_is_verified_again_before_it_counts() {
    let plan = ONE.replace("test -f a", "test -f a && ! grep -q bad a");
    let world = World::new(&plan, HONEST);
    world.hook("pre-commit", "echo rewritten > a; git add a");
    world.run(0);
    assert_eq!(world.git(&["show", "HEAD:a"]), "rewritten");
    let blob = world.git(&["notes", "--ref=verdone", "list", "HEAD"]);
    let note: serde_json::Value = serde_json::from_str(&world.git(&["cat-file", "blob", &blob])).unwrap();
    assert_eq!(text(&note["tree"]), world.git(&["rev-parse", "HEAD^{tree}"]));
    world.assert_clean();
}

#[test]
fn a_hook_that_breaks_the_work_makes_no_commit() {
    let plan = ONE.replace("test -f a", "test -f a && ! grep -q bad a");
    let world = World::new(&plan, HONEST);
    world.hook("pre-commit", "echo bad > a; git add a");
    world.run(4);
    assert_eq!(world.subjects(), ["initial"]);
    assert_eq!(world.plan(), plan);
    assert_eq!(world.sandbox.run("git", ["notes", "--ref=verdone", "list"]).stdout, "");
    world.assert_clean();
}

#[test]
fn a_commit_msg_hook_may_add_to_the_message() {
    let world = World::new(ONE, HONEST);
    world.hook("commit-msg", "printf 'Ticket: 7\\n' >> \"$1\"");
    world.run(0);
    assert_eq!(world.trailer("HEAD", "Ticket"), "7");
    assert_eq!(world.trailer("HEAD", "Verdone-Story"), "US-001");
}

#[test]
fn what_a_hook_does_to_git_or_elsewhere_stays_in_its_workspace() {
    let world = World::new(ONE, HONEST);
    let outside = world.sandbox.root().join("outside");
    let hook = format!(
        "echo ran >> ../tmp/ran; git config core.hooksPath /dev/null; git tag mine; git branch mine; echo x > stray; : > ~/stray; : > {} || true",
        outside.display()
    );
    world.hook("pre-commit", &hook);
    world.hook("post-commit", &hook);
    world.run(0);
    assert_eq!(world.sandbox.read("../tmp/ran"), "ran\nran\n");
    assert_eq!(world.git(&["diff", "--name-only", "HEAD^", "HEAD"]), "PLAN.md\na");
    assert!(!outside.exists() && !world.sandbox.home().join("stray").exists());
    world.assert_clean();
}

#[test]
fn a_hook_cannot_change_what_the_commit_says_about_its_verification() {
    let world = World::new(ONE, HONEST);
    let forge = "sed -i -e '/^Verdone-Story/d' -e 's/^Verdone-Evidence: .*/verdone-evidence: sha256:0/' \"$1\"; \
                 printf 'Ticket: 7\\nVerdone-Proof: other\\n\\nThe end.\\n' >> \"$1\"";
    world.hook("commit-msg", forge);
    world.run(0);
    let said = world.git(&["log", "-1", "--format=%B"]);
    assert_eq!(world.trailer("HEAD", "Verdone-Story"), "US-001", "{said}");
    assert_eq!(world.trailer("HEAD", "Verdone-Proof"), "verified", "{said}");
    assert!(world.trailer("HEAD", "Verdone-Evidence").len() > 64, "{said}");
    assert!(said.contains("Ticket: 7") && said.contains("The end."), "{said}");
    world.verdone(&["audit"]).assert_code(0);
}

#[test]
fn a_message_without_end_is_refused() {
    let world = World::new(ONE, HONEST);
    world.hook("commit-msg", "head -c 100000 /dev/zero | tr '\\0' x >> \"$1\"");
    let output = world.run(4);
    assert!(output.stdout.contains("one larger than 65536 bytes"), "{}", output.stdout);
}
