//! The head of a request to a proxy: `CONNECT host:port`, or a plain request with an absolute URL.

use verdone_core::config::Host;

/// Headers between the client and us, and those that we write ourselves.
const NOT_FORWARDED: [&str; 6] = ["host", "connection", "keep-alive", "proxy-connection", "proxy-authorization", "upgrade"];

/// What a client wants.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) host: Host,
    pub(super) port: u16,
    pub(super) kind: Kind,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Bytes in both directions.
    Tunnel,
    /// One HTTP request; the head as the server gets it.
    Plain { head: Vec<u8> },
}

/// Parses a head, which ends with an empty line. The error is a sentence for the client.
pub(super) fn parse(head: &[u8]) -> Result<Request, &'static str> {
    const UNREADABLE: &str = "the request cannot be read";
    let text = head.strip_suffix(b"\r\n\r\n").ok_or(UNREADABLE)?;
    let lines = split_lines(text).ok_or(UNREADABLE)?;
    let (first, headers) = lines.split_first().ok_or(UNREADABLE)?;
    let first = std::str::from_utf8(first).ok().filter(|line| line.is_ascii()).ok_or(UNREADABLE)?;
    let mut parts = first.split(' ');
    let (Some(method), Some(target), Some(version), None) = (parts.next(), parts.next(), parts.next(), parts.next()) else {
        return Err(UNREADABLE);
    };
    if !matches!(version, "HTTP/1.0" | "HTTP/1.1") || method.is_empty() || !method.bytes().all(|byte| byte.is_ascii_alphabetic())
    {
        return Err(UNREADABLE);
    }
    if method == "CONNECT" {
        let (host, port) = parse_authority(target, None).ok_or("CONNECT needs a host and a port")?;
        return Ok(Request { host, port, kind: Kind::Tunnel });
    }
    let Some(rest) = target.strip_prefix("http://") else {
        return Err("this is a proxy: it needs an absolute http:// URL, or CONNECT for anything else");
    };
    let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let (host, port) = parse_authority(authority, Some(80)).ok_or("the host in the URL cannot be read")?;
    let slash = if path.starts_with('/') { "" } else { "/" };
    let shown_port = if port == 80 { String::new() } else { format!(":{port}") };
    // A server with several sites chooses one by this header, so it must be the one in the URL.
    let mut out = format!("{method} {slash}{path} {version}\r\nHost: {host}{shown_port}\r\n").into_bytes();
    for header in headers {
        let name = header_name(header).ok_or(UNREADABLE)?;
        if !NOT_FORWARDED.contains(&name.as_str()) {
            out.extend_from_slice(header);
            out.extend_from_slice(b"\r\n");
        }
    }
    // Each connection is for one host, so there is no second request on it.
    out.extend_from_slice(b"Connection: close\r\n\r\n");
    Ok(Request { host, port, kind: Kind::Plain { head: out } })
}

/// `None` if another reader could see other lines: at a single CR or LF.
fn split_lines(text: &[u8]) -> Option<Vec<&[u8]>> {
    let mut lines = Vec::new();
    let mut rest = text;
    loop {
        let Some(end) = rest.iter().position(|byte| matches!(byte, b'\r' | b'\n' | 0)) else {
            lines.push(rest);
            return Some(lines);
        };
        let (line, after) = rest.split_at(end);
        lines.push(line);
        rest = after.strip_prefix(b"\r\n")?;
    }
}

/// The name of a header in lower case. A line that continues another has none.
fn header_name(line: &[u8]) -> Option<String> {
    let name = &line[..line.iter().position(|byte| *byte == b':')?];
    let plain = !name.is_empty() && name.iter().all(u8::is_ascii_graphic);
    plain.then(|| String::from_utf8_lossy(name).to_ascii_lowercase())
}

fn parse_authority(text: &str, default: Option<u16>) -> Option<(Host, u16)> {
    let split = if text.ends_with(']') { None } else { text.rsplit_once(':') };
    let (host, port) = match split {
        Some((host, digits)) => {
            let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            (host, plain.then(|| digits.parse().ok()).flatten().filter(|port| *port > 0)?)
        }
        None => (text, default?),
    };
    Some((Host::parse(host)?, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Host {
        Host::parse(text).unwrap()
    }

    #[test]
    fn a_tunnel_names_host_and_port() {
        let head = b"CONNECT API.example.com:443 HTTP/1.1\r\nHost: other.example:443\r\n\r\n";
        let expected = Request { host: name("api.example.com"), port: 443, kind: Kind::Tunnel };
        assert_eq!(parse(head), Ok(expected));
        let head = b"CONNECT [2001:db8::1]:8443 HTTP/1.1\r\n\r\n";
        assert_eq!(parse(head).unwrap().host, name("[2001:db8::1]"));
    }

    #[test]
    fn a_plain_request_is_for_the_host_in_its_url() {
        let head = b"POST http://example.org:8080/a?b=c HTTP/1.1\r\nHost: other.example\r\nProxy-Authorization: x\r\nConnection: keep-alive\r\n\
                     X-A: \xe4\r\nContent-Length: 2\r\n\r\n";
        let request = parse(head).unwrap();
        assert_eq!((request.host, request.port), (name("example.org"), 8080));
        let expected =
            b"POST /a?b=c HTTP/1.1\r\nHost: example.org:8080\r\nX-A: \xe4\r\nContent-Length: 2\r\nConnection: close\r\n\r\n";
        assert_eq!(request.kind, Kind::Plain { head: expected.to_vec() });
        let Kind::Plain { head } = parse(b"GET http://example.org?x HTTP/1.0\r\n\r\n").unwrap().kind else { panic!() };
        assert_eq!(head, b"GET /?x HTTP/1.0\r\nHost: example.org\r\nConnection: close\r\n\r\n");
    }

    #[test]
    fn what_could_be_read_in_two_ways_is_refused() {
        for head in [
            "CONNECT example.org HTTP/1.1",
            "CONNECT example.org:0 HTTP/1.1",
            "CONNECT example.org:99999 HTTP/1.1",
            "CONNECT user@example.org:443 HTTP/1.1",
            "CONNECT  example.org:443 HTTP/1.1",
            "CONNECT example.org:443 HTTP/2",
            "CONNECT example.org:443",
            "GET / HTTP/1.1",
            "GET https://example.org/ HTTP/1.1",
            "GET http:///x HTTP/1.1",
            "GET http://user:secret@example.org/ HTTP/1.1",
            "GET http://example.org#x/ HTTP/1.1",
            "GET http://example.org/ HTTP/1.1\r\nA: b\nHost: other.example",
            "GET http://example.org/ HTTP/1.1\r\nA: b\rHost: other.example",
            "GET http://example.org/ HTTP/1.1\r\n Host: other.example",
            "GET http://example.org/ HTTP/1.1\r\nHost : other.example",
            "GET http://example.org/ HTTP/1.1\r\nno colon",
            "",
            "\0",
        ] {
            let head = format!("{head}\r\n\r\n");
            assert!(parse(head.as_bytes()).is_err(), "{head:?}");
        }
        assert!(parse(b"CONNECT example.org:443 HTTP/1.1\r\n").is_err(), "no end");
    }

    proptest::proptest! {
        #[test]
        fn no_head_makes_the_parser_panic(head in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200)) {
            let _ = parse(&[&head[..], b"\r\n\r\n"].concat());
            let _ = parse(&[b"GET http://", &head[..], b" HTTP/1.1\r\n\r\n"].concat());
        }
    }
}
