#!/usr/bin/env bash
# A typical hook after a tool, in Bash with jq, for comparison: remembers files that were read, and looks for failed tests in output.
set -euo pipefail
trap 'exit 0' ERR

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
state=${RALPH_ROOT:-$here}/.ralph

event=
if [[ ! -t 0 ]]; then
  event=$(cat)
fi
if ! printf '%s' "$event" | jq -e . >/dev/null 2>&1; then
  exit 0
fi

tool=$(printf '%s' "$event" | jq -r '.tool_name // empty')
case $tool in
  Read)
    path=$(printf '%s' "$event" | jq -r '.tool_input.file_path // empty')
    printf 'Read: %s\n' "$path" >>"$state/session.log"
    ;;
  Bash)
    output=$(printf '%s' "$event" | jq -r '.tool_response.stdout // ""')
    if [[ $output =~ (FAILED|not[[:space:]]ok|failing|AssertionError) && $output =~ (pytest|jest|cargo|mocha|tests?) ]]; then
      {
        printf '== %s\n' "$(date -Iseconds)"
        printf '%s\n' "$output" | head -n 100
      } >>"$state/failures.log"
      if (($(wc -c <"$state/failures.log") > 100000)); then
        tail -n 500 "$state/failures.log" >"$state/failures.log.new"
        mv "$state/failures.log.new" "$state/failures.log"
      fi
    fi
    ;;
esac
