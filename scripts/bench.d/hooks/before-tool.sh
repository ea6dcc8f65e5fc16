#!/usr/bin/env bash
# A typical guard in Bash with jq, for comparison: read before Edit, no push and no merge. It matches text, so it is
# easy to get around, and it allows the call on every error. The benchmark compares Verdone's cost with it.
set -euo pipefail
trap 'printf "%s\n" "{\"decision\":\"allow\"}"; exit 0' ERR

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
state=${RALPH_ROOT:-$here}/.ralph

event=
if [[ ! -t 0 ]]; then
  event=$(cat)
fi
if ! printf '%s' "$event" | jq -e . >/dev/null 2>&1; then
  printf '%s\n' '{"decision":"allow"}'
  exit 0
fi

tool=$(printf '%s' "$event" | jq -r '.tool_name // empty')
arguments=$(printf '%s' "$event" | jq -c '.tool_input // empty')
case $tool in
  Edit | Write)
    path=$(printf '%s' "$arguments" | jq -r '.file_path // empty')
    if ! grep -qF "Read: $path" "$state/session.log" 2>/dev/null; then
      printf '%s\n' '{"decision":"block","message":"read the file first"}'
      exit 0
    fi
    ;;
  Bash)
    line=$(printf '%s' "$arguments" | jq -r '.command // empty')
    if [[ $line =~ (^|[[:space:]])git[[:space:]]+(push|merge)([[:space:]]|$) ]]; then
      printf '%s\n' '{"decision":"block","message":"no push and no merge here"}'
      exit 0
    fi
    ;;
esac
printf '%s\n' '{"decision":"allow"}'
