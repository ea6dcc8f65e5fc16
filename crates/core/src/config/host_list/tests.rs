use proptest::prelude::*;

use super::*;

fn list(entries: &[&str]) -> HostList {
    HostList::parse(entries).unwrap()
}

fn reaches(list: &HostList, host: &str, port: u16) -> Option<Route> {
    list.route(&Host::parse(host)?, port)
}

#[test]
fn a_host_is_reached_if_an_entry_covers_its_name_and_port() {
    let entries =
        ["api.example.com", "*.example.org:443", "Git.Example.net:8443", "192.0.2.7", "[2001:db8::1]:22", "localhost:5432"];
    let list = list(&entries);
    for (host, port, expected) in [
        ("api.example.com", 443, Some(Route::Resolve)),
        ("api.example.com", 80, Some(Route::Resolve)),
        ("API.Example.com.", 443, Some(Route::Resolve)),
        ("api.example.com", 22, None),
        ("example.com", 443, None),
        ("x.api.example.com", 443, None),
        ("api.example.com.evil.net", 443, None),
        ("a.example.org", 443, Some(Route::Resolve)),
        ("a.b.example.org", 443, Some(Route::Resolve)),
        ("a.example.org", 80, None),
        ("example.org", 443, None),
        ("evil-example.org", 443, None),
        ("git.example.net", 8443, Some(Route::Resolve)),
        ("git.example.net", 443, None),
        ("192.0.2.7", 443, Some(Route::Address("192.0.2.7".parse().unwrap()))),
        ("[::ffff:192.0.2.7]", 443, Some(Route::Address("192.0.2.7".parse().unwrap()))),
        ("192.0.2.8", 443, None),
        ("[2001:db8::1]", 22, Some(Route::Address("2001:db8::1".parse().unwrap()))),
        ("localhost", 5432, Some(Route::ThisMachine)),
        ("127.0.0.1", 5432, Some(Route::ThisMachine)),
        ("[::1]", 5432, Some(Route::ThisMachine)),
        ("localhost", 5433, None),
        ("127.0.0.2", 5432, None),
        // Other spellings of addresses.
        ("127.1", 5432, None),
        ("2130706433", 5432, None),
        ("0x7f.0.0.1", 5432, None),
        ("0x7f000001", 5432, None),
        ("a.example.org\n", 443, None),
        ("", 443, None),
    ] {
        assert_eq!(reaches(&list, host, port), expected, "{host}:{port}");
    }
    assert_eq!(list.local_ports(), [5432]);
}

#[test]
fn a_name_leads_to_public_addresses_and_to_those_in_the_list() {
    let list = list(&["internal.example.org", "10.1.2.3:8443", "localhost:5432"]);
    for (address, port, permitted) in [
        ("93.184.215.14", 443, true),
        ("10.1.2.3", 8443, true),
        ("10.1.2.3", 443, false),
        ("10.1.2.4", 8443, false),
        ("127.0.0.1", 443, false),
        ("127.0.0.1", 5432, true),
        ("::ffff:10.9.9.9", 443, false),
        ("169.254.169.254", 80, false),
    ] {
        assert_eq!(list.permits_address(address.parse().unwrap(), port), permitted, "{address}:{port}");
    }
}

#[test]
fn an_entry_that_cannot_work_says_why() {
    for (entry, said, hint) in [
        ("https://api.example.com/v1", "is a URL", "\"api.example.com\""),
        ("example.org/path", "is not a host", "name a host"),
        ("user@example.org", "is not a host", ""),
        ("", "is not a host", ""),
        ("a b", "is not a host", ""),
        ("-a.example.org", "is not a host", ""),
        ("a..b", "is not a host", ""),
        ("bücher.example", "is not a host", "xn--"),
        ("*", "would allow every host", "\"open\""),
        ("*:443", "would allow every host", ""),
        ("*.org", "is too broad", "two labels"),
        ("a.*.org", "can only stand for whole labels", ""),
        ("*a.example.org", "can only stand for whole labels", ""),
        ("*.*.example.org", "can only stand for whole labels", ""),
        ("*.1.2.3.4", "an address cannot have", ""),
        ("example.org:0", "`0` in `example.org:0` is not a port", ""),
        ("example.org:65536", "not a port", ""),
        ("example.org:", "not a port", ""),
        ("example.org:+80", "not a port", ""),
        ("example.org:https", "not a port", ""),
        ("::1", "is not a host", "brackets"),
        ("[::1", "is not a host", ""),
        ("127.1:80", "is not a host", ""),
        ("127.0.0.53:53", "cannot be used", "localhost:PORT"),
        ("0.0.0.0:80", "cannot be used", ""),
        ("localhost", "needs a port", "localhost:5432"),
        ("127.0.0.1", "needs a port", ""),
        ("[::1]", "needs a port", ""),
    ] {
        let (n, problem) = HostList::parse(&["example.com", entry]).unwrap_err();
        assert_eq!(n, Some(1), "{entry}");
        assert!(problem.message.contains(said), "{entry}: {}", problem.message);
        assert!(problem.hint.unwrap_or_default().contains(hint), "{entry}");
    }
    let (n, empty) = HostList::parse::<&str>(&[]).unwrap_err();
    assert_eq!((n, empty.hint.as_deref()), (None, Some("write \"off\" to allow no host")));
    let ports: Vec<String> = (1..=101).map(|port| format!("localhost:{port}")).collect();
    assert!(HostList::parse(&ports).unwrap_err().1.message.contains("more than 100 ports"));
}

proptest! {
    #[test]
    fn nothing_makes_the_parser_panic(entry in "\\PC{0,40}", host in "\\PC{0,40}", port: u16) {
        if let Ok(list) = HostList::parse(&[&entry]) && let Some(host) = Host::parse(&host) {
            let _ = list.route(&host, port);
        }
    }

    #[test]
    fn text_of_hostile_hosts_is_plain(host in "(?s).{0,40}|[a-z.\\-\\x00-\\x20]{0,20}") {
        if let Some(host) = Host::parse(&host) {
            let plain = |c: char| c.is_ascii_alphanumeric() || ".-_:[]".contains(c);
            prop_assert!(host.to_string().chars().all(plain), "{host}");
        }
    }

    #[test]
    fn a_name_covers_only_itself(listed in "[a-z]{1,5}(\\.[a-z]{2,5}){1,2}", wanted in "[a-z]{1,5}(\\.[a-z]{2,5}){1,3}") {
        let covered = reaches(&list(&[&listed]), &wanted, 443).is_some();
        prop_assert_eq!(covered, listed == wanted);
    }

    #[test]
    fn a_wildcard_covers_exactly_the_names_below(
        parent in "[a-z]{1,4}\\.[a-z]{2,3}",
        label in "[a-z0-9]{1,4}(\\.[a-z0-9]{1,4}){0,2}",
        glue in "(\\.|-|)",
    ) {
        let list = list(&[&format!("*.{parent}")]);
        prop_assert!(reaches(&list, &parent, 443).is_none());
        let [joined, longer] = [format!("{label}{glue}{parent}"), format!("{label}.{parent}.evil.net")];
        prop_assert_eq!(reaches(&list, &joined, 443).is_some(), glue == ".");
        prop_assert!(reaches(&list, &longer, 443).is_none());
    }

    #[test]
    fn an_entry_with_a_port_covers_no_other_port(own in 1_u16.., other: u16) {
        let list = list(&[&format!("example.org:{own}"), &format!("localhost:{own}")]);
        for host in ["example.org", "localhost", "127.0.0.1"] {
            prop_assert_eq!(reaches(&list, host, other).is_some(), own == other);
        }
    }
}
