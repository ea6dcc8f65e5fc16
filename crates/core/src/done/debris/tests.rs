use super::*;

fn kinds(path: &str, text: &str) -> Vec<DebrisKind> {
    let all: Vec<u32> = (1..=text.lines().count() as u32).collect();
    debris(path, text, &all).into_iter().map(|found| found.kind).collect()
}

#[test]
fn debris_is_found_where_it_counts() {
    use DebrisKind::{Note, Placeholder, Print, Trap};
    let table: [(&str, &str, &[DebrisKind]); 40] = [
        ("a.rs", "// TODO: later", &[Note]),
        ("a.rs", "let s = \"TODO: later\";", &[]),
        ("a.rs", "/* FIXME */ let x = 1;", &[Note]),
        ("a.rs", "// the todo list is sorted", &[]),
        ("a.rs", "// XXX why", &[Note]),
        ("a.rs", "const TODO: &str = \"x\";", &[]),
        ("a.rs", "fn f() { todo!() }", &[Placeholder]),
        ("a.rs", "fn f() { unimplemented!(\"x\") }", &[Placeholder]),
        ("a.rs", "let s = \"todo!()\";", &[]),
        ("a.rs", "dbg!(x);", &[Trap]),
        ("a.rs", "// dbg!(x)", &[]),
        ("a.rs", "println!(\"x\");", &[]),
        ("a.rs", "eprintln!(\"x\");", &[]),
        ("a.ts", "console.log(x)", &[Print]),
        ("a.ts", "// console.log(x)", &[]),
        ("a.ts", "const s = 'console.log(x)'", &[]),
        ("a.ts", "debugger;", &[Trap]),
        ("a.ts", "const debuggerUrl = 1", &[]),
        ("a.ts", "throw new Error('not implemented')", &[Placeholder]),
        ("a.ts", "throw new Error('Method not implemented.')", &[Placeholder]),
        ("a.ts", "throw new Error('the file is not there')", &[]),
        ("a.ts", "// your code here", &[Placeholder]),
        ("a.ts", "console.error(x)", &[]),
        ("bin/cli.js", "console.log(usage)", &[]),
        ("a.tsx", "<p>{/* TODO: x */}</p>", &[Note]),
        ("a.py", "raise NotImplementedError", &[Placeholder]),
        ("a.py", "pass  # placeholder", &[Placeholder]),
        ("a.py", "print(x)", &[Print]),
        ("a.py", "'''print(x) TODO: y'''", &[]),
        ("a.py", "breakpoint()", &[Trap]),
        ("a.py", "import pdb; pdb.set_trace()", &[Trap]),
        ("a.py", "pprint_all = 1", &[]),
        ("a.go", "println(x)", &[Print]),
        ("a.go", "fmt.Println(x) // TODO(me): y", &[Note]),
        ("a.go", "panic(\"not implemented\")", &[Placeholder]),
        ("a.rb", "binding.pry", &[Trap]),
        ("a.rb", "raise NotImplementedError, 'x'", &[Placeholder]),
        ("a.sh", "echo x # FIXME", &[Note]),
        ("a.sh", "set -x", &[Trap]),
        ("notes.md", "TODO: write", &[]),
    ];
    for (path, text, expected) in table {
        assert_eq!(kinds(path, text), expected, "{path}: {text}");
    }
}

#[test]
fn only_added_lines_count_and_only_prints_do_not_block() {
    let text = "// TODO: old\nlet x = 1;\n// TODO: new\nconsole.log(x)\n";
    let found = debris("a.js", text, &[3, 4, 99]);
    let seen: Vec<(u32, bool)> = found.iter().map(|found| (found.line, found.blocking)).collect();
    assert_eq!(seen, [(3, true), (4, false)]);
    assert_eq!(found[0].text, "// TODO: new");
}
