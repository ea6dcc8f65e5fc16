//! One connection out of a view.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpStream, ToSocketAddrs as _};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use verdone_core::config::{Host, Route};

use super::Gateway;
use super::relay::relay;
use super::request::{Kind, Request, parse};
use super::wait::{read_some, write_all};

/// A client's head must be complete within this time, and an answer must be accepted.
const HEAD_TIME: Duration = Duration::from_secs(15);
const LARGEST_HEAD: usize = 32 * 1024;
const CONNECT_TIME: Duration = Duration::from_secs(10);
/// The number of addresses of one name that are tried.
const MOST_ADDRESSES: usize = 8;
/// How much of a refused request is read, so that its client gets to read the answer.
const LINGER_TIME: Duration = Duration::from_secs(1);
const LINGER_BYTES: usize = 256 * 1024;

/// Why there is no connection to a host.
#[derive(Debug)]
enum Refused {
    /// Not in the list.
    Host,
    /// The name leads to an address that it should not lead to.
    Address(IpAddr),
    Unreachable(io::Error),
}

/// Serves one client of the proxy.
pub(super) fn serve_request(client: &TcpStream, gateway: &Gateway, ended: &UnixStream) -> io::Result<()> {
    client.set_nonblocking(true)?;
    let _ = client.set_nodelay(true);
    let until = Instant::now() + HEAD_TIME;
    let mut head = Vec::new();
    let Some(end) = read_head(client, &mut head, ended, until)? else {
        return answer(client, "431 Request Header Fields Too Large", "the head of the request is too long", ended);
    };
    let rest = head.split_off(end);
    let request = match parse(&head) {
        Ok(request) => request,
        Err(why) => return answer(client, "400 Bad Request", why, ended),
    };
    let server = match connect(&request.host, request.port, gateway) {
        Ok(server) => server,
        Err(refused) => return refuse(client, &request, &refused, gateway, ended),
    };
    server.set_nonblocking(true)?;
    let _ = server.set_nodelay(true);
    let until = Instant::now() + HEAD_TIME;
    match &request.kind {
        Kind::Tunnel => write_all(client, b"HTTP/1.1 200 Connection established\r\n\r\n", ended, until)?,
        Kind::Plain { head } => write_all(&server, head, ended, until)?,
    }
    write_all(&server, &rest, ended, until)?;
    relay(client, &server, ended)
}

/// Connects a client to a port of this machine.
pub(super) fn forward(client: &TcpStream, port: u16, ended: &UnixStream) -> io::Result<()> {
    let server = connect_to_one(&this_machine(port))?;
    for socket in [client, &server] {
        socket.set_nonblocking(true)?;
        let _ = socket.set_nodelay(true);
    }
    relay(client, &server, ended)
}

/// Reads until the empty line and returns where it ends; `None` if the head is too long.
fn read_head(client: &TcpStream, head: &mut Vec<u8>, ended: &UnixStream, until: Instant) -> io::Result<Option<usize>> {
    const END: &[u8] = b"\r\n\r\n";
    let mut chunk = [0; 4096];
    loop {
        let before = head.len().saturating_sub(END.len() - 1);
        match read_some(client, &mut chunk, ended, until)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => head.extend_from_slice(&chunk[..count]),
        }
        if let Some(at) = head[before..].windows(END.len()).position(|bytes| bytes == END) {
            return Ok(Some(before + at + END.len()));
        }
        if head.len() > LARGEST_HEAD {
            return Ok(None);
        }
    }
}

fn connect(host: &Host, port: u16, gateway: &Gateway) -> Result<TcpStream, Refused> {
    let addresses = match (gateway.hosts.route(host, port).ok_or(Refused::Host)?, host) {
        (Route::ThisMachine, _) => this_machine(port).to_vec(),
        (Route::Address(address), _) => vec![SocketAddr::new(address, port)],
        (Route::Resolve, host) => resolve(&host.to_string(), port, gateway)?,
    };
    connect_to_one(&addresses).map_err(Refused::Unreachable)
}

/// The addresses of a name, as far as the list permits them. The connection uses these, so a second answer of the name server
/// changes nothing.
fn resolve(name: &str, port: u16, gateway: &Gateway) -> Result<Vec<SocketAddr>, Refused> {
    let found: Vec<SocketAddr> = (name, port).to_socket_addrs().map_err(Refused::Unreachable)?.take(MOST_ADDRESSES).collect();
    let (permitted, refused): (Vec<_>, Vec<_>) =
        found.into_iter().partition(|address| gateway.hosts.permits_address(address.ip(), port));
    match (permitted.is_empty(), refused.first()) {
        (false, _) => Ok(permitted),
        (true, Some(address)) => Err(Refused::Address(address.ip())),
        (true, None) => Err(Refused::Unreachable(io::ErrorKind::HostUnreachable.into())),
    }
}

fn this_machine(port: u16) -> [SocketAddr; 2] {
    [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)].map(|address| SocketAddr::new(address, port))
}

fn connect_to_one(addresses: &[SocketAddr]) -> io::Result<TcpStream> {
    let mut failed = io::Error::from(io::ErrorKind::HostUnreachable);
    for address in addresses {
        match TcpStream::connect_timeout(address, CONNECT_TIME) {
            Ok(stream) => return Ok(stream),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

/// Records a refusal and tells the client.
fn refuse(client: &TcpStream, request: &Request, refused: &Refused, gateway: &Gateway, ended: &UnixStream) -> io::Result<()> {
    let host = format!("{}:{}", request.host, request.port);
    let unlisted = match refused {
        Refused::Host => host,
        Refused::Address(address) => format!("{host} ({address})"),
        Refused::Unreachable(error) => {
            return answer(client, "502 Bad Gateway", &format!("{host} cannot be reached: {error}"), ended);
        }
    };
    gateway.refusals.record(gateway.asker, &unlisted);
    let (_, setting) = gateway.asker.describe();
    answer(client, "403 Forbidden", &format!("{unlisted} is not in [seal] {setting}"), ended)
}

fn answer(client: &TcpStream, status: &str, why: &str, ended: &UnixStream) -> io::Result<()> {
    let body = format!("verdone: {why}\n");
    let length = body.len();
    let text =
        format!("HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}");
    write_all(client, text.as_bytes(), ended, Instant::now() + HEAD_TIME)?;
    client.shutdown(Shutdown::Write)?;
    // Closing a socket with unread bytes would reset the connection before the client has read the answer.
    let until = Instant::now() + LINGER_TIME;
    let (mut chunk, mut read) = ([0; 4096], 0);
    while read < LINGER_BYTES {
        match read_some(client, &mut chunk, ended, until)? {
            0 => break,
            count => read += count,
        }
    }
    Ok(())
}
