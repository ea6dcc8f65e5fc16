#!/usr/bin/env bash
# A typical hand-written loop, for comparison: find the first open box, run the agent, commit everything, tick the box.
# It verifies nothing and keeps no real checkpoint. The benchmark compares Verdone's cost with it.
#
#   loop.sh PLAN AGENT ITERATIONS
set -euo pipefail

plan=$1
agent=$2
iterations=$3

for ((i = 0; i < iterations; i++)); do
  line=$(grep -n -m1 '^[[:space:]]*- \[ \] ' "$plan" || true)
  [[ -n $line ]] || exit 0
  number=${line%%:*}
  story=$(printf '%s\n' "$line" | cut -d: -f2 | sed 's/.*\] //')

  git rev-parse HEAD >.checkpoint.new
  mv .checkpoint.new .checkpoint

  prompt=$(mktemp)
  printf 'Work on %s.\n' "$line" >"$prompt"
  if timeout 60 sh -c "$agent" <"$prompt"; then
    git add -A
    git commit --quiet --no-verify -m "feat($story): done"
    sed -i "${number}s/\[ \]/[x]/" "$plan"
  fi
  rm -f "$prompt"
done
