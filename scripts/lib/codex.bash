# shellcheck shell=bash
# The Codex client for the tests, at the pinned version. Sourced after tools.bash, never run.

codex_manifest=$PWD/crates/cli/tests/it/codex/client

# Outside of the checkout: all worktrees share it, and it survives `cargo clean`. The tests use the same folder.
codex_folder() {
  printf '%s/verdone/codex-%s\n' "${XDG_CACHE_HOME:-$HOME/.cache}" "$(codex_version)"
}

codex_version() {
  sed -n 's|.*"@openai/codex": "\([0-9.]*\)".*|\1|p' "$codex_manifest/package.json" | head -n 1
}

# codex_binary FOLDER: the program for this machine's platform in an installed folder.
codex_binary() {
  local found
  for found in "$1"/node_modules/@openai/codex-*/vendor/*/bin/codex; do
    [[ ! -x $found ]] || { printf '%s\n' "$found"; return 0; }
  done
  return 1
}

# Installs the client if it is missing. On failure, prints the reason on standard output. A subshell, because of the trap.
install_codex() (
  folder=$(codex_folder)
  ! codex_binary "$folder" >/dev/null || return 0
  if ! have npm; then
    (need_debian npm=npm) >&2 || { printf 'npm is missing and could not be installed\n'; return 1; }
  fi
  mkdir -p "${folder%/*}" || { printf 'cannot create %s\n' "${folder%/*}"; return 1; }
  # In a folder next to it, so that a partial installation is never used.
  draft=$(mktemp -d "$folder.XXXXXX") || { printf 'cannot create a folder beside %s\n' "$folder"; return 1; }
  trap 'rm -rf "$draft"' EXIT
  cp "$codex_manifest/package.json" "$codex_manifest/package-lock.json" "$draft"
  log=$draft/npm.log
  printf 'installing Codex %s for the tests into %s\n' "$(codex_version)" "$folder" >&2
  options=(--ignore-scripts --no-audit --no-fund --engine-strict=false --fetch-retries=1)
  if ! (cd "$draft" && timeout --kill-after=10 900 npm ci "${options[@]}") >"$log" 2>&1; then
    told=$(sed -n 's/^npm \(error\|ERR!\) *//p' "$log" | head -n 3 | tr '\n' ' ')
    printf 'npm could not install Codex: %s\n' "${told:-no error message}"
    return 1
  fi
  if ! told=$(codex_binary "$draft") || ! "$told" --version >"$log" 2>&1; then
    printf 'npm installed Codex, but it does not start on this machine\n'
    return 1
  fi
  # Another process may have been faster.
  mv -T "$draft" "$folder" 2>/dev/null || codex_binary "$folder" >/dev/null || { printf '%s is in the way\n' "$folder"; return 1; }
)
