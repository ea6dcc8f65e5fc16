//! An agent that Verdone does not know, but that speaks the Agent Client Protocol: a script in the shell.

use verdone_testkit::Sandbox;

use crate::claude::world::{settings, verdone};
use crate::run_loop::world::ONE;

/// Asks to push, ends its turn when that is denied, then asks to write the file and does it.
const AGENT: &str = r#"#!/bin/sh
ask() {
  printf '{"id":"q","method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"%s","kind":"execute","title":"harmless","rawInput":{"command":"%s"}},"options":[{"optionId":"always","kind":"allow_always"},{"optionId":"yes","kind":"allow_once"},{"optionId":"no","kind":"reject_once"}]}}\n' "$1" "$2"
  IFS= read -r answer
}
update() { printf '{"method":"session/update","params":{"sessionId":"s1","update":%s}}\n' "$1"; }
while IFS= read -r line; do
  id=${line#*'"id":'}
  id=${id%%[,\}]*}
  case $line in
    *'"initialize"'*) printf '{"id":%s,"result":{"protocolVersion":1}}\n' "$id" ;;
    *'"session/new"'*) printf '{"id":%s,"result":{"sessionId":"s1"}}\n' "$id" ;;
    *'"session/prompt"'*)
      case $line in *'From Verdone'*) command='echo one > a' ;; *) command='git push' ;; esac
      ask "$command" "$command"
      case $answer in *'"yes"'*) sh -c "$command"; update "{\"sessionUpdate\":\"tool_call_update\",\"toolCallId\":\"$command\",\"status\":\"completed\"}"
        update '{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"I wrote a."}}' ;;
      esac
      printf '{"id":%s,"result":{"stopReason":"end_turn"}}\n' "$id" ;;
    *) ;;
  esac
done
"#;

#[test]
fn an_unknown_acp_agent_works_and_hears_why_its_push_was_denied() {
    let sandbox = Sandbox::new();
    let agent = sandbox.add_script("my-agent", AGENT);
    let config = format!("[agent]\nname = \"acp\"\n[agent.acp]\ncommand = [\"{}\"]\n", agent.display());
    sandbox.write(".verdone/config.toml", settings(&config, &sandbox));
    sandbox.write("PLAN.md", ONE);
    sandbox.repo();
    let output = sandbox.verdone(verdone(), ["run"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    assert_eq!(sandbox.git(["show", "HEAD:a"]), "one");
    assert!(output.stdout.contains("Bash: git push") || output.stderr.contains("Bash: git push"), "{}", output.transcript());
}
