//! Builds a view and keeps it open. Its namespaces exist as long as this process, and others enter them.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, Ipv6Addr, TcpListener};
use std::path::Path;
use std::process::ExitCode;

use rustix::mount::{MountPropagationFlags, mount_change};
use rustix::process::{Resource, Rlimit, getgid, getrlimit, getuid, setrlimit};

use super::failure::{self, Failure, Step};
use super::{EMPTY_FILE, READY, fault, handed_sockets, mounts, sys, system};
use crate::launcher::plan::{Network, ViewPlan};

/// The id of root inside. Files still belong to root outside.
const UNPRIVILEGED_ID: u32 = 1000;

/// Reports on stdout whether the view is ready, then waits until stdin closes. This is a socket, over which the parent gets the
/// view's listening sockets. It also closes when the parent dies, whichever of its threads started us. A parent-death signal would
/// already come when that thread ends.
pub(super) fn run(plan: &Path) -> ExitCode {
    let built = build(plan).and_then(|listeners| {
        handed_sockets::send(&io::stdin(), &listeners).map_err(|error| Failure::new(Step::Network, &error))
    });
    if let Err(failure) = built {
        let line = serde_json::to_string(&failure).unwrap_or_default();
        let _ = writeln!(io::stdout(), "{line}");
        return ExitCode::from(failure::EXIT);
    }
    let told = writeln!(io::stdout(), "{READY}").and_then(|()| io::stdout().flush());
    if told.is_ok() {
        let _ = io::stdin().read(&mut [0]);
    }
    ExitCode::SUCCESS
}

/// Returns the sockets that listen in the view's network.
fn build(file: &Path) -> Result<Vec<TcpListener>, Failure> {
    let plan = read_plan(file)?;
    allow_many_descriptors();
    let as_root = getuid().is_root();
    let listeners = create_namespaces(&plan.network)?;
    let step = |step| move |error: io::Error| Failure::new(step, &error);
    fault::inject("mount", libc::EACCES).map_err(step(Step::Mount))?;
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", private).map_err(|error| Failure::new(Step::Mount, &error.into()))?;
    // Open it in the new namespace, or it could not be mounted there, and before any mount covers it.
    let empty = file.with_file_name(EMPTY_FILE);
    let empty = File::open(&empty).map_err(|error| Failure::at(Step::Plan, &empty, &error))?;
    let detached = mounts::build(&plan, as_root)?;
    system::make_read_only(as_root).map_err(step(Step::ReadOnly))?;
    // Few programs need a terminal. If the kernel refuses, there is none.
    let _ = system::attach_terminals();
    mounts::attach(detached, &empty)?;
    Ok(listeners)
}

pub(super) fn read_plan(file: &Path) -> Result<ViewPlan, Failure> {
    let unreadable = |error: io::Error| Failure::at(Step::Plan, file, &error);
    let text = fs::read(file).map_err(unreadable)?;
    serde_json::from_slice(&text).map_err(|error| unreadable(error.into()))
}

/// Creates the network namespace last, to tell a system that refuses only this one from a system that refuses all.
fn create_namespaces(network: &Network) -> Result<Vec<TcpListener>, Failure> {
    let (user, group) = (getuid(), getgid());
    fault::inject("unshare", libc::EPERM)
        .and_then(|()| sys::unshare(sys::NEW_USER | sys::NEW_MOUNT | sys::NEW_IPC))
        .map_err(|error| Failure::new(Step::Unshare, &error))?;
    // Without CAP_SETGID outside, the kernel first requires that groups cannot be dropped: a group may exist to deny access.
    write_map("setgroups", "deny")?;
    write_map("uid_map", &format!("{} {user} 1", inside_id(user.is_root(), user.as_raw())))?;
    write_map("gid_map", &format!("{} {group} 1", inside_id(group.is_root(), group.as_raw())))?;
    let failed = |error: io::Error| Failure::new(Step::Network, &error);
    match network {
        Network::Open => Ok(Vec::new()),
        Network::Off => leave_network().map(|()| Vec::new()).map_err(failed),
        Network::ListenOn(ports) => leave_network().and_then(|()| listen(ports)).map_err(failed),
    }
}

fn leave_network() -> io::Result<()> {
    fault::inject("network", libc::ENOSPC)?;
    sys::unshare(sys::NEW_NET)?;
    sys::bring_loopback_up()
}

/// Listens on both addresses of the loopback interface, because programs resolve `localhost` to either.
fn listen(ports: &[u16]) -> io::Result<Vec<TcpListener>> {
    let mut listeners = Vec::new();
    for port in ports {
        listeners.push(TcpListener::bind((Ipv4Addr::LOCALHOST, *port))?);
        // The kernel may have no IPv6.
        listeners.extend(TcpListener::bind((Ipv6Addr::LOCALHOST, *port)));
    }
    Ok(listeners)
}

fn inside_id(is_root: bool, id: u32) -> u32 {
    if is_root { UNPRIVILEGED_ID } else { id }
}

fn write_map(name: &str, text: &str) -> Result<(), Failure> {
    let path = Path::new("/proc/self").join(name);
    fault::inject("idmap", libc::EPERM)
        .and_then(|()| fs::write(&path, text))
        .map_err(|error| Failure::at(Step::IdMap, &path, &error))
}

/// Every mount is a descriptor until it is attached, and a big repository has hundreds of them.
fn allow_many_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}
