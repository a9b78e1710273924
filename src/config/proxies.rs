//! Networks of proxies.

use std::net::IpAddr;

/// Networks such as `10.0.0.0/8`, and single addresses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Networks(Vec<(IpAddr, u32)>);

impl Networks {
    /// Reads what spaces separate.
    pub fn parse(text: &str) -> Result<Self, String> {
        let read = |network: &str| {
            let (address, bits) =
                network.split_once('/').map_or((network, None), |(at, bits)| (at, Some(bits)));
            let address: IpAddr = address.parse().ok()?;
            let most = if address.is_ipv4() { 32 } else { 128 };
            let bits = bits.map_or(Some(most), |bits| bits.parse().ok())?;
            (bits <= most).then_some((address, bits))
        };
        let expected = "expected addresses and networks such as 10.0.0.0/8, separated by spaces; found";
        let networks = text.split_whitespace();
        let networks = networks.map(|network| read(network).ok_or_else(|| format!("{expected} {network:?}")));
        networks.collect::<Result<_, _>>().map(Self)
    }

    pub fn contain(&self, address: IpAddr) -> bool {
        self.0.iter().any(|(network, bits)| match (network, address) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                (network.to_bits() ^ address.to_bits()).leading_zeros() >= *bits
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                (network.to_bits() ^ address.to_bits()).leading_zeros() >= *bits
            }
            _ => false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_contain_their_addresses() {
        let networks = Networks::parse("10.0.0.0/8 192.0.2.7 fd00::/8").unwrap();
        let contain = |address: &str| networks.contain(address.parse().unwrap());
        assert!(contain("10.255.0.1") && contain("192.0.2.7") && contain("fd12::1"));
        assert!(!contain("11.0.0.1") && !contain("192.0.2.8") && !contain("fe80::1") && !contain("::"));
        assert!(Networks::parse("0.0.0.0/0").unwrap().contain([8, 8, 8, 8].into()));
        for wrong in ["192.0.2.1/33", "fd00::/129", "10.0.0.0/", "10.0.0.0/-1", "proxy", "10.0.0"] {
            let error = Networks::parse(&format!("::1 {wrong}")).unwrap_err();
            assert!(error.ends_with(&format!("separated by spaces; found {wrong:?}")), "{error}");
        }
    }
}
