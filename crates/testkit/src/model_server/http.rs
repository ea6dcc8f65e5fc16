//! The subset of HTTP/1.1 that a coding client uses: requests with a length or in chunks, complete or streamed answers, persistent
//! connections.

use std::io::{self, BufRead, Read, Write};

/// Test clients send less. More is a mistake, and must not fill the memory.
const MAX_HEAD: usize = 256 * 1024;
const MAX_BODY: usize = 64 * 1024 * 1024;

/// A parsed request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HttpRequest {
    pub(super) method: String,
    pub(super) target: String,
    /// Names are in lower case.
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

impl HttpRequest {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(super) fn wants_close(&self) -> bool {
        self.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"))
    }
}

/// The next request on a connection; `None` if the peer closed it between two requests.
pub(super) fn read_request(input: &mut impl BufRead, output: &mut impl Write) -> io::Result<Option<HttpRequest>> {
    let mut budget = MAX_HEAD;
    let Some(first) = read_line(input, &mut budget)? else { return Ok(None) };
    let mut words = first.split(' ');
    let (Some(method), Some(target)) = (words.next(), words.next()) else { return Err(broken("no request line")) };
    let mut request = HttpRequest { method: method.to_owned(), target: target.to_owned(), headers: Vec::new(), body: Vec::new() };
    loop {
        let line = read_line(input, &mut budget)?.ok_or_else(|| broken("ends within its head"))?;
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').ok_or_else(|| broken("a header without a colon"))?;
        request.headers.push((name.trim().to_ascii_lowercase(), value.trim().to_owned()));
    }
    if request.header("expect").is_some_and(|value| value.eq_ignore_ascii_case("100-continue")) {
        output.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        output.flush()?;
    }
    let in_chunks = request.header("transfer-encoding").is_some_and(|value| value.to_ascii_lowercase().contains("chunked"));
    request.body = if in_chunks {
        read_chunks(input)?
    } else {
        let length = request.header("content-length").map_or(Ok(0), |value| value.parse().map_err(|_| broken("a bad length")))?;
        read_exactly(input, length)?
    };
    Ok(Some(request))
}

fn read_chunks(input: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let line = read_line(input, &mut MAX_HEAD.clone())?.ok_or_else(|| broken("ends between chunks"))?;
        let size = line.split(';').next().unwrap_or_default().trim();
        let size = usize::from_str_radix(size, 16).map_err(|_| broken("a bad chunk size"))?;
        if size == 0 {
            while read_line(input, &mut MAX_HEAD.clone())?.is_some_and(|line| !line.is_empty()) {}
            return Ok(body);
        }
        if body.len().saturating_add(size) > MAX_BODY {
            return Err(broken("a body that is too long"));
        }
        body.extend(read_exactly(input, size)?);
        read_line(input, &mut MAX_HEAD.clone())?;
    }
}

fn read_exactly(input: &mut impl BufRead, length: usize) -> io::Result<Vec<u8>> {
    if length > MAX_BODY {
        return Err(broken("a body that is too long"));
    }
    let mut body = vec![0; length];
    input.read_exact(&mut body)?;
    Ok(body)
}

/// A line without its end; `None` at the end of input.
fn read_line(input: &mut impl BufRead, budget: &mut usize) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    input.by_ref().take(*budget as u64).read_until(b'\n', &mut line)?;
    *budget -= line.len();
    if line.is_empty() {
        return if *budget == 0 { Err(broken("a head that is too long")) } else { Ok(None) };
    }
    while line.last().is_some_and(|byte| matches!(byte, b'\n' | b'\r')) {
        line.pop();
    }
    Ok(Some(String::from_utf8_lossy(&line).into_owned()))
}

fn broken(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("a broken request: {what}"))
}

/// Writes a complete answer. `HEAD` gets only the head.
pub(super) fn write_whole(
    output: &mut impl Write,
    method: &str,
    status: u16,
    headers: &[(String, String)],
    body: &[u8],
) -> io::Result<()> {
    let mut bytes = head(status, headers);
    bytes.extend_from_slice(format!("content-length: {}\r\n\r\n", body.len()).as_bytes());
    if method != "HEAD" {
        bytes.extend_from_slice(body);
    }
    output.write_all(&bytes)?;
    output.flush()
}

/// Starts a chunked answer.
pub(super) fn begin_stream(output: &mut impl Write, headers: &[(String, String)]) -> io::Result<()> {
    let mut bytes = head(200, headers);
    bytes.extend_from_slice(b"transfer-encoding: chunked\r\n\r\n");
    output.write_all(&bytes)?;
    output.flush()
}

/// Writes one chunk and flushes it.
pub(super) fn write_chunk(output: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
    chunk.extend_from_slice(bytes);
    chunk.extend_from_slice(b"\r\n");
    output.write_all(&chunk)?;
    output.flush()
}

pub(super) fn end_stream(output: &mut impl Write) -> io::Result<()> {
    output.write_all(b"0\r\n\r\n")?;
    output.flush()
}

fn head(status: u16, headers: &[(String, String)]) -> Vec<u8> {
    let mut text = format!("HTTP/1.1 {status} {}\r\n", reason(status));
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.into_bytes()
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        413 => "Content Too Large",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        529 => "Overloaded",
        _ => "Other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> io::Result<Option<HttpRequest>> {
        read_request(&mut io::BufReader::new(bytes), &mut io::sink())
    }

    #[test]
    fn a_body_is_read_by_its_length_or_by_its_chunks() {
        let by_length = read(b"POST /v1/x?y=1 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhelloPOST").unwrap().unwrap();
        let in_chunks =
            read(b"POST /v1/x?y=1 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\nt: u\r\n\r\n")
                .unwrap()
                .unwrap();
        for request in [by_length, in_chunks] {
            assert_eq!((request.method.as_str(), request.target.as_str()), ("POST", "/v1/x?y=1"));
            assert_eq!(request.body, b"hello");
        }
    }

    #[test]
    fn a_closed_connection_is_no_error_between_two_requests_and_one_within() {
        assert_eq!(read(b"").unwrap(), None);
        for cut in ["GET", "GET / HTTP/1.1\r\n", "POST / HTTP/1.1\r\ncontent-length: 9\r\n\r\nhalf"] {
            assert!(read(cut.as_bytes()).is_err(), "{cut:?}");
        }
    }

    #[test]
    fn a_request_that_is_too_long_or_broken_is_refused() {
        let long = format!("GET / HTTP/1.1\r\nx: {}\r\n\r\n", "y".repeat(MAX_HEAD));
        for text in [long.as_str(), "POST / HTTP/1.1\r\ncontent-length: 99999999999\r\n\r\n", "G / HTTP/1.1\r\nnocolon\r\n\r\n"] {
            assert!(read(text.as_bytes()).is_err());
        }
    }
}
