//! The rate limit of a key or an address: requests per second, with a burst of one second's worth.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr},
    time::{Duration, Instant},
};

use super::KeyId;

/// Whose requests are counted together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sender {
    Key(KeyId),
    Address(IpAddr),
    /// Events of pages, which come several in a request.
    Events(IpAddr),
}

impl Sender {
    /// The sender at an address.
    pub fn at(address: IpAddr) -> Self {
        Self::Address(network(address))
    }

    /// The sender of a page's events at an address.
    pub fn of_events(address: IpAddr) -> Self {
        Self::Events(network(address))
    }
}

/// The address, or its network: a home has 2^64 addresses of IPv6, which count as one.
pub(super) fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        IpAddr::V4(_) => address,
    }
}

/// The time up to which each sender has used its rate (the generic cell rate algorithm). For this process only: each
/// replica counts its own.
#[derive(Debug, Default)]
pub(super) struct Rates {
    used: HashMap<Sender, Instant>,
    /// The senders at which those that have nothing used are dropped: only then, because that looks at all.
    most: usize,
}

impl Rates {
    /// Counts a number of requests, or returns how long to wait before the next.
    pub(super) fn take(
        &mut self,
        sender: Sender,
        count: u32,
        per_second: u32,
        now: Instant,
    ) -> Result<(), Duration> {
        /// How much may come at once, in seconds' worth of requests.
        const BURST: Duration = Duration::from_secs(1);
        let each = Duration::from_secs(1) / per_second.max(1) * count;
        if self.used.len() >= self.most {
            self.used.retain(|_, used| *used > now);
            self.most = 2 * self.used.len() + 64;
        }
        let used = self.used.get(&sender).copied().filter(|used| *used > now).unwrap_or(now);
        let ahead = used + each - now;
        if ahead > BURST.max(each) {
            return Err(ahead.saturating_sub(BURST.max(each)));
        }
        self.used.insert(sender, used + each);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sender_has_a_burst_and_then_its_rate() {
        let (mut rates, mut now) = (Rates::default(), Instant::now());
        let (one, other) = (Sender::Key(KeyId(1)), Sender::at([10, 0, 0, 7].into()));
        (0..10).for_each(|_| rates.take(one, 1, 10, now).unwrap());
        assert_eq!(rates.take(one, 1, 10, now), Err(Duration::from_millis(100)));
        rates.take(other, 9, 10, now).unwrap();
        assert_eq!(rates.take(other, 2, 10, now), Err(Duration::from_millis(100)), "together");
        now += Duration::from_millis(100);
        rates.take(one, 1, 10, now).unwrap();
        assert!(rates.take(one, 1, 10, now).is_err());
        now += Duration::from_secs(5);
        let taken = (0..20).filter(|_| rates.take(one, 1, 10, now).is_ok()).count();
        assert_eq!(taken, 10, "the burst does not accumulate");
        for _ in 0..3 {
            now += Duration::from_secs(1);
            rates.take(other, 1, 1, now).unwrap();
        }
    }

    #[test]
    fn idle_senders_are_dropped() {
        let (mut rates, mut now) = (Rates::default(), Instant::now());
        for second in 0..100_u64 {
            for address in 0..1000_u64 {
                rates.take(Sender::Key(KeyId((second * 1000 + address).cast_signed())), 1, 10, now).unwrap();
            }
            now += Duration::from_secs(1);
        }
        assert!(rates.used.len() <= 3000, "{}", rates.used.len());
    }

    #[test]
    fn a_network_of_a_home_is_one_sender() {
        let at = |text: &str| Sender::at(text.parse().unwrap());
        assert_eq!(at("2001:db8::1"), at("2001:db8::ffff:1"));
        assert_ne!(at("2001:db8::1"), at("2001:db8:0:1::1"));
        assert_ne!(at("10.0.0.1"), at("10.0.0.2"));
    }
}
