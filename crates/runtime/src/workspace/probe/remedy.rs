//! Why a system refuses a view, and how to fix it.

use std::fs;
use std::path::Path;

use super::super::view::ViewError;
use super::Refusal;
use crate::launcher::{self, Failure, Step};

/// The errors that distinguish refusals. Their numbers are the same on every Linux.
const EPERM: i32 = 1;
const EACCES: i32 = 13;
const ENODEV: i32 = 19;
const EINVAL: i32 = 22;
const ENOSPC: i32 = 28;
const ENOSYS: i32 = 38;

pub(super) fn explain(error: &ViewError, container: Option<&str>) -> Refusal {
    let ViewError::Refused(failure) = error else {
        return Refusal { failure: None, reason: error.to_string(), remedy: None };
    };
    let reason = failure.to_string();
    Refusal { failure: Some(failure.clone()), reason, remedy: remedy(failure, container, apparmor_restricts()) }
}

/// If the kernel refuses a private `/proc` with exactly this error, the first process of a view continues without one.
pub(super) fn no_own_proc(container: Option<&str>) -> Refusal {
    let failure = Failure { step: Step::Proc, path: Some("/proc".to_owned()), errno: EPERM };
    let reason = format!("{failure}, because parts of the current /proc are masked");
    let remedy = match container {
        Some(_) => "start the container with an unmasked /proc (Docker and Podman: --security-opt systempaths=unconfined)",
        None => "run Verdone outside other sandboxes, or leave /proc unmasked in them",
    };
    Refusal { failure: Some(failure), reason, remedy: Some(remedy.to_owned()) }
}

fn remedy(failure: &Failure, container: Option<&str>, apparmor: bool) -> Option<String> {
    let text = match (failure.step, failure.errno) {
        (Step::Unshare | Step::IdMap | Step::Mount, EPERM | EACCES) if apparmor => apparmor_profile(),
        (Step::Unshare, EPERM | ENOSYS) if container.is_some() => {
            "the container's seccomp profile forbids namespaces: start it with --security-opt seccomp=unconfined, or with a profile \
             that allows unshare, setns and mount"
                .to_owned()
        }
        (Step::Unshare, EPERM | ENOSYS) => "allow user namespaces (sudo sysctl kernel.unprivileged_userns_clone=1 where it \
                                            exists), and check for a seccomp filter or a chroot around Verdone"
            .to_owned(),
        (Step::Unshare, ENOSPC) => {
            "raise the namespace limit: sudo sysctl user.max_user_namespaces=10000 user.max_mnt_namespaces=10000 \
             user.max_ipc_namespaces=10000"
                .to_owned()
        }
        (Step::Network, ENOSPC) => "raise the namespace limit: sudo sysctl user.max_net_namespaces=10000".to_owned(),
        (Step::IdMap | Step::Mount, EPERM | EACCES) => "Verdone runs inside another sandbox (Landlock or a security module) that \
                                                        forbids mounts: run Verdone outside it, or allow mounts there"
            .to_owned(),
        (Step::Overlay, EINVAL) => "the state folder's file system does not support copy-on-write layers (overlayfs, as in \
                                    containers, or a network file system): set XDG_STATE_HOME or `workspace.state` to a folder \
                                    on ext4, xfs, btrfs or tmpfs; in a container, to one on a volume"
            .to_owned(),
        (Step::Overlay, ENODEV) => "the kernel has no overlayfs: load it with `sudo modprobe overlay`".to_owned(),
        (_, ENOSYS) => "a view needs Linux 5.12 or later, and no seccomp filter that hides its mount calls".to_owned(),
        _ => return None,
    };
    Some(text)
}

/// Ubuntu 23.10 and later: namespaces can be created, but are useless without a profile that allows them.
fn apparmor_restricts() -> bool {
    let setting = fs::read_to_string("/proc/sys/kernel/apparmor_restrict_unprivileged_userns");
    setting.is_ok_and(|value| value.trim() == "1")
}

fn apparmor_profile() -> String {
    let program = launcher::program();
    format!(
        "AppArmor restricts user namespaces. Allow them for Verdone: write this to /etc/apparmor.d/verdone and run \
         `sudo apparmor_parser -r /etc/apparmor.d/verdone`:\n\
         abi <abi/4.0>,\n\
         include <tunables/global>\n\
         profile verdone \"{}\" flags=(unconfined) {{\n\
         \x20 userns,\n\
         }}",
        program.display()
    )
}

/// Evidence that we run in a container.
pub(super) fn container() -> Option<String> {
    let file = ["/.dockerenv", "/run/.containerenv"].into_iter().find(|path| Path::new(path).exists()).map(str::to_owned);
    file.or_else(|| std::env::var("container").ok().filter(|name| !name.is_empty()).map(|name| format!("container={name}")))
        .or_else(|| container_of(&fs::read_to_string("/proc/1/cgroup").ok()?))
}

fn container_of(cgroups: &str) -> Option<String> {
    const NAMES: [&str; 5] = ["docker", "kubepods", "containerd", "libpod", "lxc"];
    let line = cgroups.lines().find(|line| NAMES.iter().any(|name| line.contains(name)))?;
    Some(format!("cgroup {line}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_refusal_has_its_remedy() {
        let failure = |step, errno| Failure { step, path: None, errno };
        for (step, errno, container, apparmor, expected) in [
            (Step::Unshare, EPERM, Some("/.dockerenv"), false, "seccomp=unconfined"),
            (Step::Unshare, EPERM, None, false, "unprivileged_userns_clone"),
            (Step::Unshare, ENOSPC, None, false, "max_user_namespaces"),
            (Step::Network, ENOSPC, None, false, "max_net_namespaces"),
            (Step::IdMap, EPERM, None, true, "  userns,\n"),
            (Step::Mount, EACCES, None, true, "apparmor_parser"),
            (Step::Mount, EPERM, None, false, "another sandbox"),
            (Step::Overlay, EINVAL, None, false, "XDG_STATE_HOME"),
            (Step::Overlay, ENODEV, None, false, "modprobe"),
            (Step::Scratch, ENOSYS, None, false, "5.12"),
        ] {
            let text = remedy(&failure(step, errno), container, apparmor).unwrap();
            assert!(text.contains(expected), "{step:?} {errno}: {text}");
        }
        assert_eq!(remedy(&failure(Step::Bind, 2), None, false), None);
    }

    #[test]
    fn a_container_is_known_by_its_cgroup() {
        assert!(container_of("0::/kubepods/besteffort/pod1\n").is_some());
        assert_eq!(container_of("0::/init.scope\n"), None);
    }
}
