//! A list of hosts as the network of agents or checks: what is in it is reached through the proxy, and nothing else by any program.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use verdone_testkit::{Output, Sandbox, repeat_unprivileged};

use crate::commands::stage::{BINARY, verdone};

/// A server outside of any workspace that answers every request with one word and counts its connections.
struct Server {
    port: u16,
    connections: Arc<AtomicUsize>,
}

impl Server {
    fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let connections = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&connections);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                counted.fetch_add(1, Ordering::SeqCst);
                thread::spawn(move || answer(client));
            }
        });
        Self { port, connections }
    }

    fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

fn answer(mut client: TcpStream) {
    let _ = client.read(&mut [0; 4096]);
    let _ = client.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\nConnection: close\r\n\r\nserved\n");
}

const GATE: &str = "[[gate]]\nname = \"readme\"\ncommand = \"test -s README.md\"\n";

/// One story and a command as the agent.
fn project(tables: &str, agent: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.add_tool("curl");
    sandbox.add_program("python3", Path::new("/usr/bin/python3"));
    sandbox.write("PLAN.md", "- [ ] US-001: Write a greeting\n  - Verification: `grep hello greeting.txt`\n");
    sandbox.write(".verdone/config.toml", format!("[agent.command]\nrun = \"try-agent\"\n{GATE}{tables}"));
    sandbox.add_script("try-agent", &format!("#!/bin/sh\n{agent}\necho hello > greeting.txt\n"));
    sandbox.repo();
    sandbox
}

/// The two places in which commands run, each with its setting and the word for its processes.
const PLACES: [(&str, &[&str], &str); 2] = [("agent_network", &[], "the agent"), ("check_network", &["--checks"], "a check")];

fn shell(sandbox: &Sandbox, arguments: &[&str], script: &str) -> Output {
    verdone(sandbox, &[&["workspace", "shell"], arguments, &["--", "bash", "-c", script]].concat())
}

/// Removes every variable that names a proxy.
const WITHOUT_PROXY: &str = "env -u HTTP_PROXY -u HTTPS_PROXY -u ALL_PROXY -u http_proxy -u https_proxy -u all_proxy";

/// Ways to reach a port of this machine; each prints `served`.
fn ways_in(port: u16) -> Vec<(&'static str, String)> {
    let python = "import socket,sys; s=socket.create_connection((\"127.0.0.1\", int(sys.argv[1])), 5); \
                  s.sendall(b\"GET / HTTP/1.0\\r\\n\\r\\n\"); print(s.makefile().read())";
    vec![
        ("curl", format!("curl -s http://localhost:{port}/")),
        ("curl without variables", format!("{WITHOUT_PROXY} curl -s http://127.0.0.1:{port}/")),
        ("curl through the proxy", format!("curl -s --noproxy '' http://localhost:{port}/")),
        ("curl through a tunnel", format!("curl -s --noproxy '' --proxytunnel http://127.0.0.1:{port}/")),
        ("bash", format!("exec 3<>/dev/tcp/127.0.0.1/{port}; printf 'GET / HTTP/1.0\\r\\n\\r\\n' >&3; cat <&3")),
        ("python", format!("python3 -c '{python}' {port}")),
    ]
}

#[test]
fn what_is_in_the_list_is_reached_by_every_program() {
    as_everybody(|| {
        for (setting, arguments, _) in PLACES {
            let server = Server::start();
            let sandbox = project(&format!("[seal]\n{setting} = [\"localhost:{}\"]\n", server.port), "");
            for (name, command) in ways_in(server.port) {
                let output = shell(&sandbox, arguments, &command);
                assert!(output.stdout.contains("served"), "{setting}, {name}:\n{}{}", output.stdout, output.stderr);
                assert_eq!(output.stderr, "", "{setting}, {name}");
            }
            // A service of the workspace's own needs no entry.
            let own = "python3 -m http.server 8123 --bind 127.0.0.1 >/dev/null 2>&1 & \
                       until curl -s http://localhost:8123/ -o /dev/null; do sleep 0.05; done; echo own";
            assert_eq!(shell(&sandbox, arguments, own).stdout, "own\n", "{setting}");
        }
    });
}

#[test]
fn nothing_else_is_reached_by_any_program() {
    as_everybody(|| {
        for (setting, arguments, asker) in PLACES {
            let (listed, other) = (Server::start(), Server::start());
            let open = project("", "");
            for (name, command) in ways_in(other.port).iter().filter(|(name, _)| !name.contains("through")) {
                let output = shell(&open, arguments, command);
                assert!(output.stdout.contains("served"), "{name} works in an open network:\n{}{}", output.stdout, output.stderr);
            }
            let before = other.connections();

            let sandbox = project(&format!("[seal]\n{setting} = [\"localhost:{}\"]\n", listed.port), "");
            let other_port = other.port;
            for (name, command) in ways_in(other_port) {
                let output = shell(&sandbox, arguments, &format!("{command}; true"));
                assert!(!output.stdout.contains("served"), "{setting}, {name}:\n{}", output.stdout);
            }
            for (command, code) in [
                (format!("curl -s -o /dev/null -w '%{{http_code}}' --noproxy '' http://localhost:{other_port}/"), "403"),
                ("curl -s -o /dev/null -w '%{http_connect}' https://api.example.com/".to_owned(), "403"),
                ("curl -s -o /dev/null -w '%{http_code}' http://api.example.com/".to_owned(), "403"),
                (format!("{WITHOUT_PROXY} curl -s -o /dev/null http://api.example.com/; echo $?"), "6\n"),
                (format!("{WITHOUT_PROXY} curl -s -o /dev/null http://192.0.2.1/; echo $?"), "7\n"),
            ] {
                assert_eq!(shell(&sandbox, arguments, &command).stdout, code, "{setting}, {command}");
            }
            for url in [format!("git://127.0.0.1:{other_port}/x.git"), format!("http://127.0.0.1:{other_port}/x.git")] {
                for before in ["", WITHOUT_PROXY, "env NO_PROXY= no_proxy="] {
                    let push = format!("{before} git push --quiet {url} HEAD:refs/heads/x 2>&1 && echo pushed");
                    let output = shell(&sandbox, arguments, &push);
                    assert!(!output.stdout.contains("pushed"), "{setting}, {push}:\n{}", output.stdout);
                }
            }
            assert_eq!(other.connections(), before, "{setting}: the kernel lets nothing through");
            assert_eq!(listed.connections(), 0);

            let many = format!("for n in 1 2 3; do curl -s --noproxy '' http://localhost:{other_port}/; done");
            let output = shell(&sandbox, arguments, &many);
            let note = format!("{asker} tried to reach localhost:{other_port}: not in [seal] {setting}");
            assert_eq!(output.stderr, format!("note: {note}\n"));
            let said = format!("verdone: localhost:{other_port} is not in [seal] {setting}\n");
            assert_eq!(output.stdout, said.repeat(3), "the program gets the same message");
        }
    });
}

#[test]
fn a_name_in_the_list_does_not_lead_into_private_networks() {
    let server = Server::start();
    let list = format!("[seal]\nagent_network = [\"inside.localhost:{}\"]\n", server.port);
    let sandbox = project(&list, "");
    // Resolvers know every name below `localhost` as this machine; those that do not know it find nothing.
    let output = shell(&sandbox, &[], &format!("curl -s --noproxy '' -p http://inside.localhost:{}/; true", server.port));
    assert!(!output.stdout.contains("served"), "{}", output.stdout);
    assert_eq!(server.connections(), 0);
}

#[test]
fn a_run_shows_once_what_its_agent_and_its_checks_tried_to_reach() {
    let (listed, other) = (Server::start(), Server::start());
    let try_port = |port: u16| format!("curl -s --noproxy '' http://localhost:{port}/");
    let gate = format!("[[gate]]\nname = \"net\"\ncommand = \"{}; true\"\n", try_port(other.port));
    let list = format!("[\"localhost:{}\"]", listed.port);
    let tables = format!("[seal]\nagent_network = {list}\ncheck_network = {list}\n{gate}");
    let agent = format!("{}\n{}\n{}", try_port(listed.port), try_port(other.port), try_port(other.port));
    let sandbox = project(&tables, &agent);
    let output = verdone(&sandbox, &["run"]);
    output.assert_code(0);
    let all = format!("{}{}", output.stdout, output.stderr);
    let hosts = format!("localhost:{}", listed.port);
    assert!(all.contains(&format!("The agent reaches only {hosts}; checks reach only {hosts}")), "{all}");
    for note in [
        format!("he agent tried to reach localhost:{}: not in [seal] agent_network", other.port),
        format!(" check tried to reach localhost:{}: not in [seal] check_network", other.port),
    ] {
        assert_eq!(all.matches(&note).count(), 1, "{note}\n{all}");
    }
    assert_eq!((listed.connections(), other.connections()), (1, 0));
    let started = verdone(&sandbox, &["log", "--json"]).stdout;
    let started: serde_json::Value = serde_json::from_str(started.lines().next().unwrap()).unwrap();
    assert_eq!(started["seal"]["agent_hosts"][0], hosts.as_str(), "{started}");
}

#[test]
fn a_list_that_cannot_be_enforced_refuses_to_run() {
    as_everybody(|| {
        for setting in ["agent_network", "check_network"] {
            for (fault, reason) in [
                ("network", "cannot create a network namespace: No space left on device"),
                ("unshare", "cannot create namespaces: Operation not permitted"),
                ("mount", "cannot mount anything in the new namespace: Permission denied"),
            ] {
                let mut sandbox = project(&format!("[seal]\n{setting} = [\"example.org\"]\n"), "touch \"$MARK\"");
                let mark = sandbox.root().join("tmp/agent-ran");
                sandbox.set("MARK", &mark);
                sandbox.set("VERDONE_LAUNCH_FAIL", fault);
                for arguments in [&["run"][..], &["verify"], &["workspace", "shell", "--", "touch", "x"]] {
                    let output = verdone(&sandbox, arguments);
                    output.assert_code(2);
                    let expected = format!("the hosts in [seal] {setting} cannot be enforced on this machine: {reason}");
                    assert!(output.stderr.contains(&expected), "{fault}, {arguments:?}:\n{}", output.stderr);
                    assert!(output.stderr.contains(&format!("[seal] {setting} = \"open\"")), "{}", output.stderr);
                }
                assert!(!mark.exists(), "{fault}: the agent was started");
                let doctor = verdone(&sandbox, &["doctor"]);
                doctor.assert_code(2);
                assert!(
                    doctor.stdout.contains(&format!("the hosts in [seal] {setting} cannot be enforced")),
                    "{}",
                    doctor.stdout
                );
            }
        }
    });
}

#[test]
fn the_doctor_names_the_hosts() {
    let mut sandbox = project("[seal]\nagent_network = [\"api.example.com\", \"*.example.org:443\"]\n", "");
    let doctor = verdone(&sandbox, &["doctor"]);
    doctor.assert_code(0);
    assert!(doctor.stdout.contains("agent_network: only api.example.com, *.example.org:443"), "{}", doctor.stdout);
    assert!(!doctor.stdout.contains("your own proxy"), "{}", doctor.stdout);
    sandbox.set("https_proxy", "http://proxy.example:8080");
    let doctor = verdone(&sandbox, &["doctor"]);
    assert!(doctor.stdout.contains("not through your own proxy in https_proxy"), "{}", doctor.stdout);
}

/// Runs the test as the current user and, if that is root, once more as an unprivileged user.
fn as_everybody(test: impl Fn()) {
    test();
    repeat_unprivileged(Path::new(BINARY));
}
