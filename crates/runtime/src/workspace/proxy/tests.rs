use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Instant;

use verdone_testkit::PATIENCE;

use super::*;

/// A proxy on a port of this machine, and a server that it may lead to.
struct World {
    proxy: Option<Proxy>,
    port: u16,
    refusals: Arc<Refusals>,
    server: TcpListener,
}

impl World {
    fn new() -> Self {
        let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let refusals = Arc::new(Refusals::default());
        let local = format!("localhost:{}", server.local_addr().unwrap().port());
        let hosts = HostList::parse(&[local.as_str(), "unresolvable.invalid"]).unwrap();
        let gateway = Gateway { hosts, port, asker: Asker::Agent, refusals: Arc::clone(&refusals) };
        let proxy = Some(Proxy::start(vec![listener], gateway).unwrap());
        Self { proxy, port, refusals, server }
    }

    fn served(&self) -> u16 {
        self.server.local_addr().unwrap().port()
    }

    fn connect(&self, text: &str) -> TcpStream {
        let mut client = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).unwrap();
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        client.write_all(text.as_bytes()).unwrap();
        client
    }

    /// The whole answer to a request that leads nowhere.
    fn answer(&self, text: &str) -> String {
        let mut answer = String::new();
        self.connect(text).read_to_string(&mut answer).unwrap();
        answer
    }
}

fn read_exactly(stream: &mut TcpStream, expected: &str) {
    let mut bytes = vec![0; expected.len()];
    stream.read_exact(&mut bytes).unwrap();
    assert_eq!(String::from_utf8_lossy(&bytes), expected);
}

#[test]
fn a_tunnel_carries_bytes_in_both_directions_until_both_ends_are_done() {
    let world = World::new();
    let mut client = world.connect(&format!("CONNECT localhost:{} HTTP/1.1\r\n\r\nearly", world.served()));
    let (mut server, _) = world.server.accept().unwrap();
    read_exactly(&mut client, "HTTP/1.1 200 Connection established\r\n\r\n");
    read_exactly(&mut server, "early");
    // More than fits into any buffer.
    let much = vec![7; 8 << 20];
    let sender = thread::spawn({
        let (much, mut client) = (much.clone(), client.try_clone().unwrap());
        move || {
            client.write_all(&much).unwrap();
            client.shutdown(std::net::Shutdown::Write).unwrap();
        }
    });
    let mut received = Vec::new();
    server.read_to_end(&mut received).unwrap();
    sender.join().unwrap();
    assert!(received == much, "{} bytes", received.len());
    server.write_all(b"late").unwrap();
    drop(server);
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "late");
    assert!(world.refusals.drain().is_empty());
}

#[test]
fn a_plain_request_reaches_the_server_with_its_own_host() {
    let world = World::new();
    let port = world.served();
    let mut client = world.connect(&format!("POST http://127.0.0.1:{port}/a HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi"));
    let (mut server, _) = world.server.accept().unwrap();
    let expected = format!("POST /a HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi");
    read_exactly(&mut server, &expected);
    server.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap();
    drop(server);
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "HTTP/1.1 204 No Content\r\n\r\n");
}

#[test]
fn every_other_host_is_refused_and_noted_once() {
    let world = World::new();
    for _ in 0..2 {
        let answer = world.answer("CONNECT evil.example:443 HTTP/1.1\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 403 Forbidden\r\n"), "{answer}");
        assert!(answer.ends_with("verdone: evil.example:443 is not in [seal] agent_network\n"), "{answer}");
    }
    let other = format!("GET http://127.0.0.1:{}/ HTTP/1.1\r\n\r\n", world.port);
    assert!(world.answer(&other).starts_with("HTTP/1.1 403 "));
    let notes = [
        "the agent tried to reach evil.example:443: not in [seal] agent_network".to_owned(),
        format!("the agent tried to reach 127.0.0.1:{}: not in [seal] agent_network", world.port),
    ];
    assert_eq!(world.refusals.drain(), notes);
    for (head, status) in [
        ("GET / HTTP/1.1\r\n\r\n".to_owned(), "400 "),
        ("CONNECT unresolvable.invalid:443 HTTP/1.1\r\n\r\n".to_owned(), "502 "),
        (format!("GET http://a.example/ HTTP/1.1\r\nA: {}\r\n\r\n", "x".repeat(100_000)), "431 "),
    ] {
        let answer = world.answer(&head);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
    }
    assert!(world.refusals.drain().is_empty(), "only hosts outside of the list are noted");
}

#[test]
fn connections_end_with_the_proxy() {
    let mut world = World::new();
    let mut client = world.connect(&format!("CONNECT 127.0.0.1:{} HTTP/1.1\r\n\r\n", world.served()));
    let (mut server, _) = world.server.accept().unwrap();
    read_exactly(&mut client, "HTTP/1.1 200 Connection established\r\n\r\n");
    // It has sent nothing yet.
    let mut silent = world.connect("");
    let begun = Instant::now();
    drop(world.proxy.take());
    for stream in [&mut client, &mut server, &mut silent] {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        assert!(matches!(stream.read(&mut [0]), Ok(0) | Err(_)));
    }
    assert!(begun.elapsed() < PATIENCE, "they are closed, not timed out");
    assert!(TcpStream::connect((Ipv4Addr::LOCALHOST, world.port)).is_err());
}

#[test]
fn the_proxy_avoids_the_listed_ports_of_this_machine() {
    let hosts = HostList::parse(&["localhost:3128", "localhost:3129", "localhost:80"]).unwrap();
    assert_eq!(ports(&hosts), [3130, 80, 3128, 3129]);
}

#[test]
fn without_its_own_listener_no_proxy_starts() {
    let gateway = Gateway { hosts: HostList::default(), port: 1, asker: Asker::Check, refusals: Arc::default() };
    assert!(Proxy::start(Vec::new(), gateway).is_err());
}
