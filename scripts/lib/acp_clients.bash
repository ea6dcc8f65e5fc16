# shellcheck shell=bash
# Clients that speak the Agent Client Protocol, for the tests, at pinned versions. Sourced after tools.bash, never run.

acp_manifests=$PWD/crates/cli/tests/it/acp/clients

# Everyone who runs the tests has the first; the others are for the tier `clients`.
# shellcheck disable=SC2034 # Used by scripts/test.
acp_usual=(gemini)
acp_all=(gemini opencode copilot qwen)

# acp_folder NAME: outside of the checkout, as for Claude Code. The tests use the same folder.
acp_folder() {
  printf '%s/verdone/%s-%s\n' "${XDG_CACHE_HOME:-$HOME/.cache}" "$1" "$(acp_version "$1")"
}

acp_version() {
  sed -n 's|.*"dependencies": { "[^"]*": "\([0-9.]*\)".*|\1|p' "$acp_manifests/$1/package.json" | head -n 1
}

# acp_binary NAME FOLDER: the client's program in an installed folder. Native programs are started without their launcher in JavaScript.
acp_binary() {
  local found
  for found in "$2"/node_modules/"$1"-linux-*/bin/"$1" "$2"/node_modules/.bin/"$1"-linux-* "$2/node_modules/.bin/$1"; do
    [[ ! -x $found ]] || { printf '%s\n' "$found"; return 0; }
  done
  return 1
}

# install_acp_client NAME: installs the client if it is missing. On failure, prints the reason on standard output.
install_acp_client() (
  name=$1
  folder=$(acp_folder "$name")
  ! acp_binary "$name" "$folder" >/dev/null || return 0
  if ! have npm; then
    (need_debian npm=npm) >&2 || { printf 'npm is missing and could not be installed\n'; return 1; }
  fi
  mkdir -p "${folder%/*}" || { printf 'cannot create %s\n' "${folder%/*}"; return 1; }
  # In a folder next to it, so that a partial installation is never used.
  draft=$(mktemp -d "$folder.XXXXXX") || { printf 'cannot create a folder beside %s\n' "$folder"; return 1; }
  trap 'rm -rf "$draft"' EXIT
  cp "$acp_manifests/$name/package.json" "$acp_manifests/$name/package-lock.json" "$draft"
  log=$draft/npm.log
  printf 'installing %s %s for the tests into %s\n' "$name" "$(acp_version "$name")" "$folder" >&2
  # Not `npm ci`: it refuses lock files without the packages of other platforms, which not every registry has. What is locked is checked.
  options=(--ignore-scripts --no-audit --no-fund --engine-strict=false --fetch-retries=1)
  if ! (cd "$draft" && timeout --kill-after=10 900 npm install "${options[@]}") >"$log" 2>&1; then
    told=$(sed -n 's/^npm \(error\|ERR!\) *//p' "$log" | head -n 3 | tr '\n' ' ')
    printf 'npm could not install %s: %s\n' "$name" "${told:-no error message}"
    return 1
  fi
  # A private home: a client's first start writes there.
  home=$(mktemp -d)
  trap 'rm -rf "$draft" "$home"' EXIT
  if ! program=$(acp_binary "$name" "$draft") || ! HOME=$home timeout 120 "$program" --version >"$log" 2>&1; then
    printf 'npm installed %s, but it does not start on this machine\n' "$name"
    return 1
  fi
  # Another process may have been faster.
  mv -T "$draft" "$folder" 2>/dev/null || acp_binary "$name" "$folder" >/dev/null || { printf '%s is in the way\n' "$folder"; return 1; }
)

# name_acp_clients: exports VERDONE_GEMINI and so on for the clients that are installed.
name_acp_clients() {
  local name program
  for name in "${acp_all[@]}"; do
    if program=$(acp_binary "$name" "$(acp_folder "$name")"); then
      export "VERDONE_${name^^}=$program"
    fi
  done
}
