//! Which addresses are on the public internet.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Networks that lead to this machine, its neighbours or nowhere: address and length of the prefix.
const NOT_PUBLIC_V4: [(Ipv4Addr, u32); 14] = [
    (Ipv4Addr::UNSPECIFIED, 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    // Link-local, with the metadata services of clouds.
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    // Multicast, reserved and broadcast.
    (Ipv4Addr::new(224, 0, 0, 0), 4),
    (Ipv4Addr::new(240, 0, 0, 0), 4),
];

/// Of IPv6, only this block is assigned to the public internet.
const PUBLIC_V6: (Ipv6Addr, u32) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);
const DOCUMENTATION_V6: (Ipv6Addr, u32) = (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32);
/// Tunnels whose addresses contain an IPv4 address of the other end: 6to4 and Teredo.
const TUNNELS_V6: [(Ipv6Addr, u32); 2] =
    [(Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16), (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 32)];
/// Networks without IPv4 translate these addresses into the IPv4 address at their end.
const TRANSLATED_V6: (Ipv6Addr, u32) = (Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96);

pub(super) fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) if within_v6(address, TRANSLATED_V6) => {
            let [.., a, b, c, d] = address.octets();
            is_public_v4(Ipv4Addr::new(a, b, c, d))
        }
        IpAddr::V6(address) => {
            let excluded = TUNNELS_V6.into_iter().chain([DOCUMENTATION_V6]).any(|network| within_v6(address, network));
            within_v6(address, PUBLIC_V6) && !excluded
        }
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    !NOT_PUBLIC_V4.iter().any(|(network, length)| (address.to_bits() ^ network.to_bits()) >> (32 - length) == 0)
}

fn within_v6(address: Ipv6Addr, (network, length): (Ipv6Addr, u32)) -> bool {
    (address.to_bits() ^ network.to_bits()) >> (128 - length) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_the_internet_are_public() {
        for (address, public) in [
            ("93.184.215.14", true),
            ("1.1.1.1", true),
            ("172.32.0.1", true),
            ("172.15.255.255", true),
            ("172.16.0.1", false),
            ("172.31.255.255", false),
            ("10.0.0.1", false),
            ("192.168.1.1", false),
            ("127.0.0.1", false),
            ("127.53.0.9", false),
            ("0.0.0.0", false),
            ("169.254.169.254", false),
            ("100.64.0.1", false),
            ("100.128.0.1", true),
            ("224.0.0.251", false),
            ("255.255.255.255", false),
            ("::1", false),
            ("::", false),
            ("::ffff:127.0.0.1", false),
            ("::ffff:1.1.1.1", true),
            ("fe80::1", false),
            ("fd00::1", false),
            ("ff02::fb", false),
            ("64:ff9b::7f00:1", false),
            ("64:ff9b::101:101", true),
            ("2002:7f00:1::", false),
            ("2001:db8::1", false),
            ("2606:4700:4700::1111", true),
        ] {
            assert_eq!(is_public(address.parse().unwrap()), public, "{address}");
        }
    }
}
