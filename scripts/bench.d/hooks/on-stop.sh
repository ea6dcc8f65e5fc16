#!/usr/bin/env bash
# A typical Stop hook in Bash, for comparison: reports a story that is not ticked.
set -euo pipefail
trap 'exit 0' ERR

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
state=${RALPH_ROOT:-$here}/.ralph

if [[ -f $state/current-story ]]; then
  story=$(cat "$state/current-story")
  if [[ -n $story ]] && ! grep -qF "[x] $story" "${PLAN_PATH:-$state/plan.md}" 2>/dev/null; then
    printf 'incomplete:%s:%s\n' "$story" "$(date +%s)" >>"$state/sessions.log"
  fi
fi
