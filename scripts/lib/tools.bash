# shellcheck shell=bash
# Installs missing tools that the scripts need. Sourced, never run.

# Tools installed by `cargo install` are found even if the shell's profile does not add their folder.
# Tools that create and mount file systems are found by other users than root, too.
export PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH:/usr/sbin:/sbin"

have() {
  command -v "$1" >/dev/null 2>&1
}

die() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

# need_debian PROGRAM=PACKAGE...: installs the packages of missing programs.
need_debian() {
  local pair missing=() sudo=()
  for pair in "$@"; do
    have "${pair%%=*}" || missing+=("${pair#*=}")
  done
  if ((${#missing[@]} == 0)); then
    return 0
  fi
  have apt-get || die "missing: ${missing[*]}. Install them with your system's package manager and try again."
  if ((EUID != 0)); then
    have sudo || die "missing: ${missing[*]}. As root: apt-get install ${missing[*]}"
    sudo=(sudo -n)
  fi
  printf 'installing Debian packages: %s\n' "${missing[*]}"
  "${sudo[@]}" apt-get update -qq || printf 'warning: could not refresh the package lists\n' >&2
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null ||
    die "apt-get could not install: ${missing[*]}"
}

# need_component PROBE COMPONENT: a part of the Rust toolchain that rustup can add.
need_component() {
  local probe=$1 component=$2
  if bash -c "$probe" >/dev/null 2>&1; then
    return 0
  fi
  have rustup || die "the Rust toolchain has no $component, and rustup is not installed: install $component and try again."
  printf 'adding the Rust component %s\n' "$component"
  rustup component add "$component" || die "rustup could not add $component"
}

# need_crate PROGRAM CRATE VERSION: a tool from the crate registry. Any installed version will do.
# Built without optimisation: for a tool that runs for a second, minutes of compiling are not worth it.
need_crate() {
  local program=$1 crate=$2 version=$3
  if have "$program"; then
    return 0
  fi
  printf 'installing the crate %s %s (once, a minute or two)\n' "$crate" "$version"
  CARGO_PROFILE_DEV_DEBUG=0 cargo install --quiet --debug --locked "$crate" --version "$version" ||
    die "cargo could not install $crate"
}

# Runs a command with its temporary files in memory, if we are root and may mount a tmpfs: the tests create thousands of small
# repositories, and on a disk a third of the time goes into creating their files.
in_memory() {
  if ((EUID != 0)) || ! unshare --mount true 2>/dev/null; then
    "$@"
    return
  fi
  local folder code=0
  folder=$(mktemp -d)
  # shellcheck disable=SC2016 # expanded by the inner shell
  unshare --mount sh -c 'mount -t tmpfs -o size=8g,mode=1777 verdone-tests "$0" && TMPDIR=$0 exec "$@"' "$folder" "$@" || code=$?
  rmdir "$folder"
  return "$code"
}
