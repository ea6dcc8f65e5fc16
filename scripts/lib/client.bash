# shellcheck shell=bash
# The Claude Code that the tests run, at the version that they pin. Sourced after tools.bash, never run.

client_manifest=$PWD/crates/cli/tests/claude/client

# Outside of the checkout: every work tree shares it, and it is there after `cargo clean`. The tests look into the same folder.
client_folder() {
  printf '%s/verdone/claude-code-%s\n' "${XDG_CACHE_HOME:-$HOME/.cache}" "$(client_version)"
}

client_version() {
  sed -n 's|.*"@anthropic-ai/claude-code": "\([0-9.]*\)".*|\1|p' "$client_manifest/package.json" | head -n 1
}

# client_binary FOLDER: the program of this machine's kind in an installed folder.
client_binary() {
  local found
  for found in "$1"/node_modules/@anthropic-ai/claude-code-*/claude; do
    [[ ! -x $found ]] || { printf '%s\n' "$found"; return 0; }
  done
  return 1
}

# Installs the client unless it is there. Where that fails, the reason is on standard output. A subshell, for the trap's sake.
install_client() (
  folder=$(client_folder)
  ! client_binary "$folder" >/dev/null || return 0
  if ! have npm; then
    (need_debian npm=npm) >&2 || { printf 'npm is missing and could not be installed\n'; return 1; }
  fi
  mkdir -p "${folder%/*}" || { printf '%s cannot be made\n' "${folder%/*}"; return 1; }
  # Beside its place, so that a half of it is never taken for the client.
  draft=$(mktemp -d "$folder.XXXXXX") || { printf 'no folder can be made beside %s\n' "$folder"; return 1; }
  trap 'rm -rf "$draft"' EXIT
  cp "$client_manifest/package.json" "$client_manifest/package-lock.json" "$draft"
  log=$draft/npm.log
  printf 'installing Claude Code %s for the tests into %s\n' "$(client_version)" "$folder" >&2
  options=(--ignore-scripts --no-audit --no-fund --engine-strict=false --fetch-retries=1)
  if ! (cd "$draft" && timeout --kill-after=10 900 npm ci "${options[@]}") >"$log" 2>&1; then
    told=$(sed -n 's/^npm \(error\|ERR!\) *//p' "$log" | head -n 3 | tr '\n' ' ')
    printf 'npm could not get Claude Code: %s\n' "${told:-it said nothing}"
    return 1
  fi
  if ! told=$(client_binary "$draft") || ! "$told" --version >"$log" 2>&1; then
    printf 'npm got Claude Code, but nothing that starts on this machine\n'
    return 1
  fi
  # Somebody else may have been faster.
  mv -T "$draft" "$folder" 2>/dev/null || client_binary "$folder" >/dev/null || { printf '%s is in the way\n' "$folder"; return 1; }
)
