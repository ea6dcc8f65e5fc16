//! How long the tamper report takes on a change of 500 files, and on hostile text. `scripts/bench tamper` builds and runs it.

#![expect(clippy::disallowed_methods, clippy::disallowed_types, reason = "a benchmark reads the clock; the crate does not")]
#![expect(clippy::print_stdout, reason = "its output is its result")]

use std::time::{Duration, Instant};

use verdone_core::tamper::{Change, Context, report};

const FILES: usize = 500;
const TESTS: usize = 40;
const ROUNDS: usize = 5;

fn main() {
    let files: Vec<(String, String, String)> = (0..FILES).map(file).collect();
    let changes: Vec<Change<'_>> = files
        .iter()
        .map(|(path, old, new)| Change { path, old: Some(old.as_bytes()), new: Some(new.as_bytes()), old_path: None })
        .collect();
    let bytes: usize = files.iter().map(|(_, old, new)| old.len() + new.len()).sum();
    let (time, alarms) = median(&changes);
    println!(
        "{FILES} files, {TESTS} tests in each, {} MB before and after: {} ms, {alarms} alarms",
        bytes / 1_000_000,
        time.as_millis()
    );
    for (piece, path) in [
        ("it('a',()=>{", "a.test.ts"),
        ("describe('a',()=>{", "a.test.ts"),
        ("`${", "a.test.ts"),
        ("#[cfg(x)] mod a{#[test] fn b(){", "tests/a.rs"),
        ("#[test] fn b(){assert!(true);}\n", "tests/a.rs"),
        ("describe 'a' do\n", "a_spec.rb"),
        ("def test_a():\n assert x\n", "test_a.py"),
        ("func TestA(t){\n", "a_test.go"),
        ("@test \"a\" {\n", "test/a.bats"),
        ("test x || true\n", "tests/run.sh"),
    ] {
        let text = piece.repeat(1_000_000 / piece.len());
        let change = Change { path, old: Some(b"x"), new: Some(text.as_bytes()), old_path: None };
        println!("1 MB of {piece:?}: {} ms", median(&[change]).0.as_millis());
    }
}

fn median(changes: &[Change<'_>]) -> (Duration, usize) {
    let mut alarms = 0;
    let mut times: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            alarms = std::hint::black_box(report(changes, &Context::default())).len();
            start.elapsed()
        })
        .collect();
    times.sort();
    (times[ROUNDS / 2], alarms)
}

/// A file of tests in one of six languages: one test is gone, one is new, one has changed.
fn file(number: usize) -> (String, String, String) {
    type Write = fn(usize, usize) -> String;
    let (path, write): (String, Write) = match number % 6 {
        0 => (format!("tests/t{number}.rs"), |n, v| {
            format!("#[test]\nfn works_{n}() {{\n    let x = make({v});\n    assert_eq!(f(x), {v});\n}}\n")
        }),
        1 => (format!("src/t{number}.test.ts"), |n, v| {
            format!("it(\"works {n}\", async () => {{\n  const x = make({v});\n  expect(await f(x)).toBe({v});\n}});\n")
        }),
        2 => {
            (format!("tests/test_{number}.py"), |n, v| format!("def test_{n}():\n    x = make({v})\n    assert f(x) == {v}\n\n"))
        }
        3 => (format!("t{number}_test.go"), |n, v| {
            format!("func TestWorks{n}(t *testing.T) {{\n\tif f(make({v})) != {v} {{\n\t\tt.Fatal(\"no\")\n\t}}\n}}\n")
        }),
        4 => (format!("spec/t{number}_spec.rb"), |n, v| {
            format!("  it \"works {n}\" do\n    x = make({v})\n    expect(f(x)).to eq({v})\n  end\n")
        }),
        _ => (format!("test/t{number}.bats"), |n, v| {
            format!("@test \"works {n}\" {{\n  run f {v}\n  [ \"$output\" = \"{v}\" ]\n}}\n")
        }),
    };
    let old: String = (0..TESTS).map(|n| write(n, n * 7 + number)).collect();
    let new: String = (1..=TESTS).map(|n| write(n, n * 7 + number + usize::from(n == 3))).collect();
    (path, old, new)
}
