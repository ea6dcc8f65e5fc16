use super::*;

fn commands(source: &str) -> Vec<String> {
    let script = parse(source, &Variables::new());
    script
        .commands
        .iter()
        .filter(|simple| !simple.words.is_empty())
        .map(|simple| simple.words.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))
        .collect()
}

#[test]
fn words_are_what_bash_would_pass() {
    assert_eq!(commands(r#"g"i"'t' pu\sh $'\x6f' "a b" {x,y}z"#), ["git push o a b xz yz"]);
}
