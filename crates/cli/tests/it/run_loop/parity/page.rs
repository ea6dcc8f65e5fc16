//! The table as shown on the page about verification.

use std::fmt::Write as _;

use verdone_core::verify::Surface;

use super::rules::{Cell, RULES};

pub(crate) fn name_of(surface: Surface) -> &'static str {
    match surface {
        Surface::Run => "run",
        Surface::Loop => "session loop",
        Surface::Verify => "verify",
        Surface::VerifyBase => "verify --base",
        Surface::AuditRerun => "audit --rerun",
        Surface::Accept => "accept",
    }
}

/// One line per rule, followed by the reasons why cells differ or are empty, each once.
pub(crate) fn table() -> String {
    let names: Vec<String> = Surface::ALL.iter().map(|surface| name_of(*surface).to_owned()).collect();
    let mut out = format!("| rule | {} |\n|---|{}\n", names.join(" | "), "---|".repeat(names.len()));
    let mut notes: Vec<&str> = Vec::new();
    let mut number = |why: &'static str| {
        let at = notes.iter().position(|known| *known == why).unwrap_or_else(|| {
            notes.push(why);
            notes.len() - 1
        });
        at + 1
    };
    for rule in RULES {
        let cell = |cell: &Cell| match cell {
            Cell::Is(fate) => fate.to_string(),
            Cell::Differs(fate, why) => format!("{fate} ({})", number(why)),
            Cell::Not(why) => format!("– ({})", number(why)),
        };
        let cells: Vec<String> = rule.cells.iter().map(cell).collect();
        let _ = writeln!(out, "| {} | {} |", rule.name, cells.join(" | "));
    }
    out.push('\n');
    for (at, why) in notes.iter().enumerate() {
        let _ = writeln!(out, "{}. {why}", at + 1);
    }
    out
}
