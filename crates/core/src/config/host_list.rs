//! The hosts that a workspace may reach: parsed from settings, and consulted for each connection.
//!
//! An entry without a port means the ports of HTTP and HTTPS. A name covers only itself, `*.example.org` only names below
//! `example.org`. A name may lead only to public addresses; any other address must be in the list, too.

mod address;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use address::is_public;

/// This machine, in the list and in requests.
const LOCALHOST: &str = "localhost";
/// The ports of an entry without a port.
const WEB_PORTS: [u16; 2] = [80, 443];
/// DNS allows no longer names and labels.
const LONGEST_NAME: usize = 253;
const LONGEST_LABEL: usize = 63;
/// Every forwarded port is a listening socket, and only so many descriptors fit into one message.
const MOST_LOCAL_PORTS: usize = 100;

/// A valid list of hosts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostList {
    entries: Vec<Entry>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    pattern: Pattern,
    /// `None` for [`WEB_PORTS`].
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Pattern {
    Name(String),
    /// All names below this one.
    Below(String),
    Address(IpAddr),
    /// The loopback interface outside of the workspace.
    ThisMachine,
}

/// A host that a process asks for, in lower case and without a dot at the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Host {
    Name(String),
    Address(IpAddr),
}

/// How a permitted host is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// The loopback interface of this machine.
    ThisMachine,
    Address(IpAddr),
    /// The addresses of the name, as far as [`HostList::permits_address`] says so.
    Resolve,
}

/// Why an entry is invalid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostProblem {
    pub message: String,
    pub hint: Option<String>,
}

impl HostList {
    /// Parses a list. On failure, also returns the index of the invalid entry, unless it is the whole list that is invalid.
    pub fn parse<S: AsRef<str>>(entries: &[S]) -> Result<Self, (Option<usize>, HostProblem)> {
        if entries.is_empty() {
            let problem = HostProblem {
                message: "the list of hosts is empty".to_owned(),
                hint: Some("write \"off\" to allow no host".to_owned()),
            };
            return Err((None, problem));
        }
        let parse = |(n, text): (usize, &S)| parse_entry(text.as_ref()).map_err(|problem| (Some(n), problem));
        let list = Self { entries: entries.iter().enumerate().map(parse).collect::<Result<_, _>>()? };
        if list.local_ports().len() > MOST_LOCAL_PORTS {
            let message = format!("more than {MOST_LOCAL_PORTS} ports of this machine");
            return Err((None, HostProblem { message, hint: None }));
        }
        Ok(list)
    }

    /// How to reach a host at a port; `None` if that is not permitted.
    pub fn route(&self, host: &Host, port: u16) -> Option<Route> {
        let covered = self.entries.iter().any(|entry| entry.pattern.covers(host) && entry.has_port(port));
        covered.then(|| match host {
            host if host.is_this_machine() => Route::ThisMachine,
            Host::Name(_) => Route::Resolve,
            Host::Address(address) => Route::Address(*address),
        })
    }

    /// Whether a name of the list may lead to this address.
    pub fn permits_address(&self, address: IpAddr, port: u16) -> bool {
        let address = address.to_canonical();
        is_public(address) || self.route(&Host::Address(address), port).is_some()
    }

    /// The ports of this machine's loopback interface that are in the list, each once.
    pub fn local_ports(&self) -> Vec<u16> {
        let local = self.entries.iter().filter(|entry| entry.pattern == Pattern::ThisMachine);
        let mut ports: Vec<u16> = local.filter_map(|entry| entry.port).collect();
        ports.sort_unstable();
        ports.dedup();
        ports
    }
}

impl Entry {
    fn has_port(&self, port: u16) -> bool {
        self.port.map_or_else(|| WEB_PORTS.contains(&port), |own| own == port)
    }
}

impl Pattern {
    fn covers(&self, host: &Host) -> bool {
        match (self, host) {
            (Self::Name(own), Host::Name(name)) => own == name,
            (Self::Below(parent), Host::Name(name)) => {
                name.strip_suffix(parent.as_str()).and_then(|rest| rest.strip_suffix('.')).is_some_and(|rest| !rest.is_empty())
            }
            (Self::Address(own), Host::Address(address)) => own == address,
            (Self::ThisMachine, host) => host.is_this_machine(),
            (Self::Name(_) | Self::Below(_), Host::Address(_)) | (Self::Address(_), Host::Name(_)) => false,
        }
    }
}

impl Host {
    /// Parses a host as it is in a request: a name, an IPv4 address, or an IPv6 address in brackets.
    pub fn parse(text: &str) -> Option<Self> {
        if let Some(inner) = text.strip_prefix('[') {
            let address: Ipv6Addr = inner.strip_suffix(']')?.parse().ok()?;
            return Some(Self::Address(IpAddr::V6(address).to_canonical()));
        }
        let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
        if ends_in_number(&name) {
            // Resolvers read `127.1` and `2130706433` as addresses, too.
            return name.parse::<Ipv4Addr>().ok().map(|address| Self::Address(address.into()));
        }
        is_name(&name).then_some(Self::Name(name))
    }

    /// Whether this is the loopback interface, by its name or by one of the two addresses that services use.
    fn is_this_machine(&self) -> bool {
        match self {
            Self::Name(name) => name == LOCALHOST,
            Self::Address(address) => *address == Ipv4Addr::LOCALHOST || *address == Ipv6Addr::LOCALHOST,
        }
    }
}

impl std::fmt::Display for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(IpAddr::V4(address)) => write!(f, "{address}"),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

fn ends_in_number(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or_default();
    let hexadecimal = last.strip_prefix("0x").is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_hexdigit()));
    hexadecimal || (!last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit()))
}

fn is_name(name: &str) -> bool {
    let is_label = |label: &str| {
        let plain = label.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte));
        plain && !label.is_empty() && label.len() <= LONGEST_LABEL && !label.starts_with('-') && !label.ends_with('-')
    };
    name.len() <= LONGEST_NAME && name.split('.').all(is_label)
}

fn parse_entry(text: &str) -> Result<Entry, HostProblem> {
    if let Some((scheme, rest)) = text.split_once("://") {
        let host = rest.split('/').next().unwrap_or_default();
        return Err(problem(format!("`{text}` is a URL"), format!("leave out `{scheme}://` and the path: \"{host}\"")));
    }
    let (host, port) = split_port(text)?;
    let pattern = parse_pattern(text, host)?;
    if pattern == Pattern::ThisMachine && port.is_none() {
        return Err(problem(format!("`{text}` needs a port"), "name the service's port: \"localhost:5432\"".to_owned()));
    }
    Ok(Entry { pattern, port })
}

fn split_port(text: &str) -> Result<(&str, Option<u16>), HostProblem> {
    let in_brackets = text.starts_with('[');
    if !in_brackets && text.matches(':').count() > 1 {
        return Err(problem(
            format!("`{text}` is not a host"),
            "write an IPv6 address in brackets: \"[2001:db8::1]:443\"".to_owned(),
        ));
    }
    let split =
        if in_brackets { text.rsplit_once("]:").map(|(host, port)| (&text[..=host.len()], port)) } else { text.split_once(':') };
    let Some((host, digits)) = split else { return Ok((text, None)) };
    let number = digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse::<u16>().ok()).flatten();
    match number.filter(|number| *number > 0) {
        Some(port) => Ok((host, Some(port))),
        None => Err(HostProblem { message: format!("`{digits}` in `{text}` is not a port: expected 1 to 65535"), hint: None }),
    }
}

fn parse_pattern(text: &str, host: &str) -> Result<Pattern, HostProblem> {
    if let Some(parent) = host.strip_prefix("*.") {
        return parse_wildcard(text, parent);
    }
    if host == "*" {
        return Err(problem(format!("`{text}` would allow every host"), "write \"open\" for an open network".to_owned()));
    }
    if host.contains('*') {
        return Err(problem(format!("`{text}`: `*` can only stand for whole labels at the beginning"), EXAMPLE.to_owned()));
    }
    match Host::parse(host).ok_or_else(|| not_a_host(text))? {
        host if host.is_this_machine() => Ok(Pattern::ThisMachine),
        Host::Name(name) => Ok(Pattern::Name(name)),
        Host::Address(address) if address.is_loopback() || address.is_unspecified() => {
            Err(problem(format!("`{text}` cannot be used"), "write \"localhost:PORT\" for a service on this machine".to_owned()))
        }
        Host::Address(address) => Ok(Pattern::Address(address)),
    }
}

const EXAMPLE: &str = "for example \"*.example.org\"";

fn parse_wildcard(text: &str, parent: &str) -> Result<Pattern, HostProblem> {
    match Host::parse(parent) {
        Some(Host::Name(name)) if name.contains('.') => Ok(Pattern::Below(name)),
        Some(Host::Name(_)) => {
            Err(problem(format!("`{text}` is too broad"), "name at least two labels after `*.`: \"*.example.org\"".to_owned()))
        }
        Some(Host::Address(_)) => Err(problem(format!("`{text}`: an address cannot have `*`"), EXAMPLE.to_owned())),
        None if parent.contains('*') => {
            Err(problem(format!("`{text}`: `*` can only stand for whole labels at the beginning"), EXAMPLE.to_owned()))
        }
        None => Err(not_a_host(text)),
    }
}

fn not_a_host(text: &str) -> HostProblem {
    let hint = if text.is_ascii() {
        "name a host, with a port if it is not 80 or 443: \"example.org:8443\""
    } else {
        "write the name in its ASCII form, which begins with xn--"
    };
    problem(format!("{text:?} is not a host"), hint.to_owned())
}

fn problem(message: String, hint: String) -> HostProblem {
    HostProblem { message, hint: Some(hint) }
}

#[cfg(test)]
mod tests;
