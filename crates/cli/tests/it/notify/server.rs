//! An HTTP server on a loopback port that keeps what it gets and answers as told.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use serde_json::Value;

/// How to answer one request.
#[derive(Debug, Clone, Copy)]
pub(super) enum Answer {
    Status(u16),
    /// Read it, and never answer.
    Hang,
}

#[derive(Debug, Clone)]
pub(super) struct Received {
    /// Method and path.
    pub(super) first_line: String,
    pub(super) headers: Vec<String>,
    pub(super) body: Value,
}

pub(super) struct Server {
    pub(super) port: u16,
    received: Arc<Mutex<Vec<Received>>>,
}

impl Server {
    /// Answers in this order; the last answer is repeated.
    pub(super) fn start(answers: &'static [Answer]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (port, received) = (listener.local_addr().unwrap().port(), Arc::new(Mutex::new(Vec::new())));
        let kept = Arc::clone(&received);
        thread::spawn(move || {
            let mut hanging = Vec::new();
            for (number, stream) in listener.incoming().enumerate() {
                let mut stream = stream.unwrap();
                let request = read(&stream);
                kept.lock().unwrap_or_else(PoisonError::into_inner).push(request);
                match answers[number.min(answers.len() - 1)] {
                    Answer::Status(status) => {
                        let _ = write!(stream, "HTTP/1.1 {status} Answer\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
                    }
                    Answer::Hang => hanging.push(stream),
                }
            }
        });
        Self { port, received }
    }

    pub(super) fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn read(stream: &TcpStream) -> Received {
    let mut reader = BufReader::new(stream);
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if line.trim().is_empty() {
            break;
        }
        head.push(line.trim().to_owned());
    }
    let length = head.iter().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length:").map(str::to_owned));
    let mut body = vec![0; length.unwrap().trim().parse().unwrap()];
    reader.read_exact(&mut body).unwrap();
    let first_line = head.remove(0);
    Received { first_line, headers: head, body: serde_json::from_slice(&body).unwrap() }
}
