# shellcheck shell=bash
# The official MCP SDK, whose client tests `verdone mcp`, at the pinned version. Sourced after tools.bash, never run.

sdk_manifest=$PWD/crates/cli/tests/it/mcp/sdk

# Outside of the checkout: all worktrees share it, and it survives `cargo clean`. The tests use the same folder.
sdk_folder() {
  printf '%s/verdone/mcp-sdk-%s\n' "${XDG_CACHE_HOME:-$HOME/.cache}" "$(sdk_version)"
}

sdk_version() {
  sed -n 's|.*"@modelcontextprotocol/sdk": "\([0-9.]*\)".*|\1|p' "$sdk_manifest/package.json" | head -n 1
}

# has_sdk FOLDER
has_sdk() {
  [[ -f $1/node_modules/@modelcontextprotocol/sdk/package.json ]]
}

# Installs the SDK if it is missing. On failure, prints the reason on standard output. A subshell, because of the trap.
install_sdk() (
  folder=$(sdk_folder)
  ! has_sdk "$folder" || return 0
  if ! have npm; then
    (need_debian npm=npm) >&2 || { printf 'npm is missing and could not be installed\n'; return 1; }
  fi
  mkdir -p "${folder%/*}" || { printf 'cannot create %s\n' "${folder%/*}"; return 1; }
  # In a folder next to it, so that a partial installation is never used.
  draft=$(mktemp -d "$folder.XXXXXX") || { printf 'cannot create a folder beside %s\n' "$folder"; return 1; }
  trap 'rm -rf "$draft"' EXIT
  cp "$sdk_manifest/package.json" "$sdk_manifest/package-lock.json" "$draft"
  log=$draft/npm.log
  printf 'installing the MCP SDK %s for the tests into %s\n' "$(sdk_version)" "$folder" >&2
  if ! (cd "$draft" && timeout --kill-after=10 900 npm ci --ignore-scripts --no-audit --no-fund --fetch-retries=1) >"$log" 2>&1; then
    told=$(sed -n 's/^npm \(error\|ERR!\) *//p' "$log" | head -n 3 | tr '\n' ' ')
    printf 'npm could not install the MCP SDK: %s\n' "${told:-no error message}"
    return 1
  fi
  # Another process may have been faster.
  mv -T "$draft" "$folder" 2>/dev/null || has_sdk "$folder" || { printf '%s is in the way\n' "$folder"; return 1; }
)
