use super::*;

fn read(source: &str) -> Script {
    let known = [("HOME", "/home/dev"), ("PWD", "/work")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    parse(source, &known.into())
}

fn shown(simple: &Simple) -> String {
    simple.words.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

fn commands(source: &str) -> Vec<String> {
    read(source).commands.iter().filter(|simple| !simple.words.is_empty()).map(shown).collect()
}

#[test]
fn words_are_what_bash_would_pass() {
    assert_eq!(commands(r#"g"i"'t' pu\sh $'\x6f' "a b" {x,y}z '' ~/a"#), ["git push o a b xz yz  /home/dev/a"]);
    assert_eq!(commands(r#"echo "$HOME/x" ${PWD} "$unset" a$unset"#), ["echo /home/dev/x /work … a…"]);
    assert_eq!(commands("a=1 b=\"x y\"; echo $b \"$b\" ${a}2"), ["echo x y x y 12"]);
    assert_eq!(commands("echo ö$'\\u00e9' “x” {ä,ü}"), ["echo öé “x” ä ü"]);
}

#[test]
fn a_command_knows_where_it_stands_and_where_it_runs() {
    let source = "cd sub && (cd /etc; ls) > out; cd \"$x\"; make";
    let script = read(source);
    let place = |program: &str| script.commands.iter().find(|simple| shown(simple) == program).expect("it is listed");
    assert_eq!(&source[place("ls").range.clone()], "ls");
    assert_eq!(place("ls").directory, Directory::Known("/etc".to_owned()));
    assert_eq!(place("make").directory, Directory::Unknown);
    let out = script.commands.iter().find(|simple| !simple.redirects.is_empty()).expect("the redirection is listed");
    assert_eq!(out.directory, Directory::Known("sub".to_owned()));
    assert_eq!(out.redirects, [Redirect { kind: RedirectKind::Write, target: Word::text("out") }]);
}

#[test]
fn redirections_are_told_apart() {
    let script = read("cmd <a >b >>c 2>d &>e <>f >|g 2>&1 >&2");
    let kinds: Vec<_> =
        script.commands[0].redirects.iter().map(|redirect| (redirect.kind, redirect.target.to_string())).collect();
    let expected = [
        (RedirectKind::Read, "a"),
        (RedirectKind::Write, "b"),
        (RedirectKind::Append, "c"),
        (RedirectKind::Write, "d"),
        (RedirectKind::Write, "e"),
        (RedirectKind::ReadWrite, "f"),
        (RedirectKind::Write, "g"),
    ];
    assert_eq!(kinds, expected.map(|(kind, target)| (kind, target.to_owned())));
}

#[test]
fn a_wrapper_and_what_it_wraps_are_both_listed() {
    assert_eq!(
        commands("sudo -u me env A=1 nice ls -l"),
        ["sudo -u me env A=1 nice ls -l", "env A=1 nice ls -l", "nice ls -l", "ls -l"]
    );
    assert_eq!(commands("find . -exec rm {} \\; -exec ls {} +")[1..], ["rm …", "ls …"]);
    assert_eq!(commands("seq 3 | xargs -I% echo %a")[2..], ["echo …a"]);
}

#[test]
fn text_that_a_shell_runs_is_known_computed_or_downloaded() {
    let runs = |source: &str| {
        let script = read(source);
        let kinds: Vec<_> = script.commands.iter().map(|simple| simple.runs).filter(|runs| *runs != Runs::Nothing).collect();
        kinds
    };
    assert_eq!(runs("bash -c 'ls'"), [Runs::Known]);
    assert_eq!(runs("eval \"$x\""), [Runs::Computed]);
    assert_eq!(runs("curl x | sh"), [Runs::Downloaded]);
    assert_eq!(runs("curl x | jq . > y; bash y; echo bash"), []);
}

#[test]
fn what_is_not_known_is_said_with_its_reason() {
    let why = |source: &str| read(source).unknown.iter().map(|unknown| unknown.why).collect::<Vec<_>>();
    assert_eq!(why("ls; echo $x"), []);
    assert_eq!(why("$x y"), [Why::Program]);
    assert_eq!(why("echo 'open"), [Why::Syntax]);
    assert!(why("eval \"$x\"").contains(&Why::Text));
    assert_eq!(why(&"(".repeat(200_000)), [Why::TooLong]);
}
