//! How often a sender may ask: some requests at once, then one each time that has passed (the generic cell rate algorithm).

use std::{
    collections::HashMap,
    hash::Hash,
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

#[derive(Debug, Clone, Copy)]
pub(super) struct Rate {
    /// How many may come at once.
    pub(super) burst: u32,
    /// After which time one more may come.
    pub(super) every: Duration,
}

impl Rate {
    /// With a burst of one second's worth.
    pub(super) fn per_second(count: u32) -> Self {
        let burst = count.max(1);
        Self { burst, every: Duration::from_secs(1) / burst }
    }
}

/// The time up to which each sender has used its rate. For this process only: each replica counts its own.
#[derive(Debug)]
pub(super) struct Rates<S> {
    used: HashMap<S, Instant>,
    /// The senders at which those that have nothing used are dropped: only then, because that looks at all.
    most: usize,
}

impl<S> Default for Rates<S> {
    fn default() -> Self {
        Self { used: HashMap::new(), most: 0 }
    }
}

impl<S: Eq + Hash> Rates<S> {
    /// How long to wait before a number of requests, if they must wait. More than a burst may come after a pause.
    pub(super) fn check(&self, sender: &S, count: u32, rate: Rate, now: Instant) -> Result<(), Duration> {
        let each = rate.every * count;
        let ahead = self.used(sender, now) + each - now;
        match ahead.saturating_sub((rate.every * rate.burst).max(each)) {
            Duration::ZERO => Ok(()),
            wait => Err(wait),
        }
    }

    /// Counts a number of requests, or returns how long to wait before them.
    pub(super) fn take(&mut self, sender: S, count: u32, rate: Rate, now: Instant) -> Result<(), Duration> {
        self.check(&sender, count, rate, now)?;
        if self.used.len() >= self.most {
            self.used.retain(|_, used| *used > now);
            self.most = 2 * self.used.len() + 64;
        }
        let used = self.used(&sender, now) + rate.every * count;
        self.used.insert(sender, used);
        Ok(())
    }

    /// Gives back what the sender has used.
    pub(super) fn forget(&mut self, sender: &S) {
        self.used.remove(sender);
    }

    fn used(&self, sender: &S, now: Instant) -> Instant {
        self.used.get(sender).copied().map_or(now, |used| used.max(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sender_has_a_burst_and_then_its_rate() {
        let (mut rates, mut now, rate) = (Rates::default(), Instant::now(), Rate::per_second(10));
        let (one, other) = (Sender::Key(KeyId(1)), Sender::at([10, 0, 0, 7].into()));
        (0..10).for_each(|_| rates.take(one, 1, rate, now).unwrap());
        assert_eq!(rates.take(one, 1, rate, now), Err(Duration::from_millis(100)));
        rates.take(other, 9, rate, now).unwrap();
        assert_eq!(rates.take(other, 2, rate, now), Err(Duration::from_millis(100)), "together");
        now += Duration::from_millis(100);
        rates.take(one, 1, rate, now).unwrap();
        assert!(rates.take(one, 1, rate, now).is_err());
        rates.forget(&one);
        rates.take(one, 10, rate, now).unwrap();
        now += Duration::from_secs(5);
        let taken = (0..20).filter(|_| rates.take(one, 1, rate, now).is_ok()).count();
        assert_eq!(taken, 10, "the burst does not accumulate");
        for _ in 0..3 {
            now += Duration::from_secs(3);
            rates.take(other, 20, rate, now).expect("more than a burst, after a pause");
        }
    }

    #[test]
    fn idle_senders_are_dropped() {
        let (mut rates, mut now) = (Rates::default(), Instant::now());
        for second in 0..100 {
            (0..1000).for_each(|key| rates.take((second, key), 1, Rate::per_second(10), now).unwrap());
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
