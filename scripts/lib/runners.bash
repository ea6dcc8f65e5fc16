# shellcheck shell=bash
# The test runners and linters of the lie suite, at the pinned versions. Sourced after tools.bash, never run.

runners_manifest=$PWD/crates/cli/tests/it/lies/runners
runners_pins=(package.json package-lock.json requirements.txt)

# Outside of the checkout: all worktrees share it, and it survives `cargo clean`. The tests use the same folder.
runners_folder() {
  printf '%s/verdone/runners-%s\n' "${XDG_CACHE_HOME:-$HOME/.cache}" "$(runners_version)"
}

runners_version() {
  sed -n 's|.*"version": "\([0-9.]*\)".*|\1|p' "$runners_manifest/package.json" | head -n 1
}

# has_runners FOLDER: the pins are copied last, so a folder without them, or with different ones, is incomplete.
has_runners() {
  local pin
  for pin in "${runners_pins[@]}"; do
    cmp -s "$runners_manifest/$pin" "$1/$pin" || return 1
  done
}

# Installs the runners if they are missing. On failure, prints the reason on standard output. A subshell, because of the lock.
install_runners() (
  folder=$(runners_folder)
  ! has_runners "$folder" || return 0
  for program in npm=npm make=make prove=perl cc=gcc python3=python3; do
    have "${program%%=*}" || (need_debian "$program") >&2 || { printf '%s is missing and could not be installed\n' "${program%%=*}"; return 1; }
  done
  # Without the package, the venv module exists but lacks the bundled pip.
  python3 -m ensurepip --version >/dev/null 2>&1 || (need_debian /no/venv=python3-venv) >&2 ||
    { printf 'python3-venv is missing and could not be installed\n'; return 1; }
  mkdir -p "$folder" || { printf 'cannot create %s\n' "$folder"; return 1; }
  # A virtual environment cannot be moved, so it is created in its final place, by one process at a time.
  exec 9>"$folder.lock"
  flock 9
  ! has_runners "$folder" || return 0
  rm -rf "${folder:?}"/*
  log=$folder/install.log
  printf 'installing test runners %s into %s\n' "$(runners_version)" "$folder" >&2
  if ! install_python_runners "$folder" >"$log" 2>&1; then
    printf 'pip could not install the Python runners: %s\n' "$(tail -n 2 "$log" | tr '\n' ' ')"
    return 1
  fi
  if ! install_node_runners "$folder" >"$log" 2>&1; then
    told=$(sed -n 's/^npm \(error\|ERR!\) *//p' "$log" | head -n 3 | tr '\n' ' ')
    printf 'npm could not install the JavaScript runners: %s\n' "${told:-$(tail -n 1 "$log")}"
    return 1
  fi
  cp "${runners_pins[@]/#/$runners_manifest/}" "$folder"
)

# install_python_runners FOLDER
install_python_runners() {
  python3 -m venv "$1/venv" &&
    timeout --kill-after=10 900 "$1/venv/bin/pip" install --quiet --no-deps --only-binary :all: \
      --requirement "$runners_manifest/requirements.txt" &&
    "$1/venv/bin/python" -m pytest --version && "$1/venv/bin/ruff" --version && "$1/venv/bin/mypy" --version
}

# install_node_runners FOLDER
install_node_runners() {
  local options=(--ignore-scripts --no-audit --no-fund --fetch-retries=1) runner
  mkdir "$1/npm" && cp "$runners_manifest/package.json" "$1/npm" || return 1
  # The lock file has the native packages of one platform only, which is also why `npm ci` rejects it.
  if [[ $(uname -sm) == 'Linux x86_64' ]]; then
    cp "$runners_manifest/package-lock.json" "$1/npm" || return 1
  fi
  (cd "$1/npm" && timeout --kill-after=10 900 npm install "${options[@]}") || return 1
  for runner in jest mocha vitest tsc; do
    "$1/npm/node_modules/.bin/$runner" --version || return 1
  done
}
