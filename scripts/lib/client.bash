# shellcheck shell=bash
# The Claude Code client for the tests, at the pinned version. Sourced after tools.bash, never run.

client_manifest=$PWD/crates/cli/tests/it/claude/client

# Outside of the checkout: all worktrees share it, and it survives `cargo clean`. The tests use the same folder.
client_folder() {
  printf '%s/verdone/claude-code-%s\n' "${XDG_CACHE_HOME:-$HOME/.cache}" "$(client_version)"
}

client_version() {
  sed -n 's|.*"@anthropic-ai/claude-code": "\([0-9.]*\)".*|\1|p' "$client_manifest/package.json" | head -n 1
}

# client_binary FOLDER: the program for this machine's platform in an installed folder.
client_binary() {
  local found
  for found in "$1"/node_modules/@anthropic-ai/claude-code-*/claude; do
    [[ ! -x $found ]] || { printf '%s\n' "$found"; return 0; }
  done
  return 1
}

# Installs the client if it is missing. On failure, prints the reason on standard output. A subshell, because of the trap.
install_client() (
  folder=$(client_folder)
  ! client_binary "$folder" >/dev/null || return 0
  if ! have npm; then
    (need_debian npm=npm) >&2 || { printf 'npm is missing and could not be installed\n'; return 1; }
  fi
  mkdir -p "${folder%/*}" || { printf 'cannot create %s\n' "${folder%/*}"; return 1; }
  # In a folder next to it, so that a partial installation is never used.
  draft=$(mktemp -d "$folder.XXXXXX") || { printf 'cannot create a folder beside %s\n' "$folder"; return 1; }
  trap 'rm -rf "$draft"' EXIT
  cp "$client_manifest/package.json" "$client_manifest/package-lock.json" "$draft"
  log=$draft/npm.log
  printf 'installing Claude Code %s for the tests into %s\n' "$(client_version)" "$folder" >&2
  options=(--ignore-scripts --no-audit --no-fund --engine-strict=false --fetch-retries=1)
  if ! (cd "$draft" && timeout --kill-after=10 900 npm ci "${options[@]}") >"$log" 2>&1; then
    told=$(sed -n 's/^npm \(error\|ERR!\) *//p' "$log" | head -n 3 | tr '\n' ' ')
    printf 'npm could not install Claude Code: %s\n' "${told:-no error message}"
    return 1
  fi
  if ! told=$(client_binary "$draft") || ! "$told" --version >"$log" 2>&1; then
    printf 'npm installed Claude Code, but it does not start on this machine\n'
    return 1
  fi
  # Another process may have been faster.
  mv -T "$draft" "$folder" 2>/dev/null || client_binary "$folder" >/dev/null || { printf '%s is in the way\n' "$folder"; return 1; }
)
