//! The only way out of a view whose network is a list of hosts: an HTTP proxy in this process, which listens inside the view.
//!
//! The launcher listens on ports of the view's loopback interface and hands the sockets to us. One of them is the proxy's, which
//! programs find in variables such as `HTTPS_PROXY`. The others are the listed ports of this machine, under the same numbers.
//! Whatever goes wrong, there is no other way: the view has no interface but its loopback. Everything here ends with the view.

mod connection;
mod refusals;
mod relay;
mod request;
mod wait;

use std::io;
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use verdone_core::config::{HostList, NetworkAccess};

pub(super) use refusals::Refusals;

/// The customary port of proxies. In a new network, only a listed port of this machine can be in the way.
const USUAL_PORT: u16 = 3128;
/// Connections at the same time. More of them wait in the kernel's queue.
const MOST_CONNECTIONS: usize = 128;
/// How long to wait before looking again for a free connection or descriptor.
const PAUSE: Duration = Duration::from_millis(20);

/// Whose connections a proxy serves, for messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asker {
    Agent,
    Check,
}

/// Which hosts the processes of a view may reach.
#[derive(Debug, Clone)]
pub(super) struct Gateway {
    hosts: HostList,
    /// The proxy's port.
    port: u16,
    asker: Asker,
    refusals: Arc<Refusals>,
}

impl Gateway {
    /// `None` if the setting is not a list.
    pub(super) fn new(setting: &NetworkAccess, asker: Asker, refusals: &Arc<Refusals>) -> Option<Self> {
        let hosts = setting.hosts()?;
        Some(Self { port: proxy_port(&hosts), hosts, asker, refusals: Arc::clone(refusals) })
    }
}

/// The proxy's port inside the view.
pub(super) fn proxy_port(hosts: &HostList) -> u16 {
    let local = hosts.local_ports();
    (USUAL_PORT..=u16::MAX).find(|port| !local.contains(port)).unwrap_or(USUAL_PORT)
}

/// All ports that lead out of the view.
pub(super) fn ports(hosts: &HostList) -> Vec<u16> {
    std::iter::once(proxy_port(hosts)).chain(hosts.local_ports()).collect()
}

/// Serves until it is dropped.
#[derive(Debug)]
pub(super) struct Proxy {
    /// Every thread notices when this is closed.
    leash: Option<UnixStream>,
    acceptor: Option<JoinHandle<()>>,
}

/// What the threads of a proxy share.
#[derive(Debug)]
struct Shared {
    gateway: Gateway,
    /// The other end of the leash.
    ended: UnixStream,
    connections: AtomicUsize,
}

impl Proxy {
    pub(super) fn start(listeners: Vec<TcpListener>, gateway: Gateway) -> io::Result<Self> {
        let mut numbered = Vec::new();
        for listener in listeners {
            listener.set_nonblocking(true)?;
            numbered.push((listener.local_addr()?.port(), listener));
        }
        if !numbered.iter().any(|(number, _)| *number == gateway.port) {
            return Err(io::Error::other("the view does not listen"));
        }
        let (leash, ended) = UnixStream::pair()?;
        let shared = Arc::new(Shared { gateway, ended, connections: AtomicUsize::new(0) });
        let acceptor = thread::Builder::new().name("proxy".to_owned()).spawn(move || accept(&numbered, &shared))?;
        Ok(Self { leash: Some(leash), acceptor: Some(acceptor) })
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        drop(self.leash.take());
        // It waits for nothing else, so it ends at once. Connections end a moment later.
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
    }
}

fn accept(listeners: &[(u16, TcpListener)], shared: &Arc<Shared>) {
    let pause = Timespec { tv_sec: 0, tv_nsec: PAUSE.subsec_nanos().into() };
    loop {
        let full = shared.connections.load(Ordering::Acquire) >= MOST_CONNECTIONS;
        let mut events = vec![PollFd::new(&shared.ended, PollFlags::IN)];
        if !full {
            events.extend(listeners.iter().map(|(_, listener)| PollFd::new(listener, PollFlags::IN)));
        }
        match poll(&mut events, full.then_some(&pause)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
        }
        if !events[0].revents().is_empty() {
            return;
        }
        let ready = listeners.iter().zip(&events[1..]).filter(|(_, event)| !event.revents().is_empty());
        for ((port, listener), _) in ready {
            match listener.accept() {
                Ok((client, _)) => serve(client, *port, shared),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // Too many open files, or a client that is already gone.
                Err(_) => thread::sleep(PAUSE),
            }
        }
    }
}

/// Serves a client in a separate thread. If there can be no more threads, the client is disconnected.
fn serve(client: std::net::TcpStream, port: u16, shared: &Arc<Shared>) {
    let counted = Counted::new(shared);
    let _ = thread::Builder::new().name("proxy-client".to_owned()).spawn(move || {
        let shared = &counted.0;
        // A client that breaks off, or a server that does, is nobody else's concern.
        let _ = if port == shared.gateway.port {
            connection::serve_request(&client, &shared.gateway, &shared.ended)
        } else {
            connection::forward(&client, port, &shared.ended)
        };
    });
}

/// One of the connections that are counted.
#[derive(Debug)]
struct Counted(Arc<Shared>);

impl Counted {
    fn new(shared: &Arc<Shared>) -> Self {
        shared.connections.fetch_add(1, Ordering::AcqRel);
        Self(Arc::clone(shared))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests;
