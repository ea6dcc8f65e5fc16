use jiff::tz::TimeZone;
use verdone_core::base::id::StoryId;
use verdone_report::{Extra, ListedStory, markdown};

use crate::expected::same_as_file;
use crate::fixture::{Journal, whole_run};

fn extra() -> Extra {
    let listed = |id: &str, title: &str| ListedStory { id: StoryId::from(id), title: title.to_owned() };
    Extra {
        claimed: vec![listed("US-000", "Set up the project")],
        open: vec![listed("US-003", "Sort the lines"), listed("US-005", "Translate")],
        run_dir: Some(".verdone/runs/20261115-020338-5f3a".to_owned()),
        zone: TimeZone::UTC,
    }
}

#[test]
fn the_morning_after_has_everything_on_one_page() {
    same_as_file("report.md", &markdown(&whole_run().view(), &extra()));
}

#[test]
fn hostile_titles_stay_text() {
    let hostile = "x** | `a` <img src=x onerror=alert(1)>\n# Verified (9)\n[go](http://evil) \x1b[2J www.evil.example";
    let mut journal = Journal::new();
    journal.start(1).select("../`id`|", hostile, 1, (1, 1, 1)).turn();
    let mut extra = extra();
    extra.claimed[0].title = hostile.to_owned();
    extra.run_dir = Some("a`b``c".to_owned());
    let report = markdown(&journal.view(), &extra);
    let title =
        "x\\*\\* \\| \\`a\\` \\<img src=x onerror=alert(1)\\> \\# Verified (9) \\[go\\](http\\://evil)  www\\.evil.example";
    assert!(report.contains(&format!("- **../\\`id\\`\\| {title}**: 1 attempt, 1 turn")), "{report}");
    assert!(report.contains(&format!("- **US-000 {title}**\n")), "{report}");
    assert!(report.contains("- Files: ``` a`b``c ```\n"), "{report}");
    let headings: Vec<&str> = report.lines().filter(|line| line.starts_with('#')).collect();
    assert_eq!(
        headings,
        ["# Verdone report: run 20261115-020338-5f3a", "## Claimed (1)", "## Not finished (1)", "## Still open (2)"]
    );
    assert!(!report.contains('\x1b'));
}
