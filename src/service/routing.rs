//! Chooses the method for requests that name none: the release's default, another default set by an admin, or an arm
//! of an experiment, by customer.
//!
//! Pure: a setting comes in, a choice goes out. The store keeps the setting.

use std::fmt;

use atelier_core::domain::{CustomerId, Method};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The routing as an admin set it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Routing {
    /// Replaces the release's own default.
    pub default_method: Option<Method>,
    pub experiment: Option<Experiment>,
}

/// Traffic split between methods. A customer stays in one arm as long as the experiment keeps its name and arms;
/// changed shares move some customers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// Feedback is counted under `name/method`.
    pub name: String,
    pub arms: Vec<Arm>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arm {
    pub method: Method,
    /// Its share of the customers, relative to the other arms' shares.
    pub share: u32,
}

/// Why an experiment is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExperimentError {
    #[error("an experiment's name has 1 to 64 letters, digits, dots, hyphens or underscores, found {0:?}")]
    Name(String),
    #[error("an experiment has two to twenty arms, this one has {0}")]
    Arms(usize),
    #[error("the method {0} is in two arms")]
    Twice(Method),
    #[error("the arm of {0} has no share; leave it out")]
    NoShare(Method),
}

/// The chosen method, and the experiment's arm if the experiment decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    pub method: Method,
    pub arm: Option<String>,
}

/// For pages and the audit log.
impl fmt::Display for Routing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.default_method {
            Some(method) => write!(f, "{method}")?,
            None => f.write_str("the release's default")?,
        }
        match &self.experiment {
            Some(experiment) => write!(f, ", experiment {experiment}"),
            None => f.write_str(", no experiment"),
        }
    }
}

impl fmt::Display for Experiment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let arms: Vec<String> = self.arms.iter().map(|arm| format!("{} {}", arm.method, arm.share)).collect();
        write!(f, "{} ({})", self.name, arms.join(", "))
    }
}

impl Routing {
    /// Falls back to `release_default`. `has` tells which methods the release has; a method that was set for another
    /// release and is missing from this one is skipped.
    pub fn choose(
        &self,
        release_default: Method,
        has: impl Fn(Method) -> bool,
        customer: Option<&CustomerId>,
    ) -> Choice {
        if let (Some(experiment), Some(customer)) = (&self.experiment, customer) {
            let method = experiment.arm_of(customer);
            if has(method) {
                return Choice { method, arm: Some(format!("{}/{method}", experiment.name)) };
            }
        }
        let method = self.default_method.filter(|method| has(*method)).unwrap_or(release_default);
        Choice { method, arm: None }
    }
}

impl Experiment {
    pub fn check(&self) -> Result<(), ExperimentError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        if self.name.is_empty() || self.name.len() > 64 || !self.name.chars().all(plain) {
            return Err(ExperimentError::Name(self.name.clone()));
        }
        if !(2..=20).contains(&self.arms.len()) {
            return Err(ExperimentError::Arms(self.arms.len()));
        }
        for (place, arm) in self.arms.iter().enumerate() {
            if arm.share == 0 {
                return Err(ExperimentError::NoShare(arm.method));
            }
            if self.arms[..place].iter().any(|other| other.method == arm.method) {
                return Err(ExperimentError::Twice(arm.method));
            }
        }
        Ok(())
    }

    /// By a digest of the experiment's name and the customer's id: the same on every replica, and independent between
    /// experiments.
    fn arm_of(&self, customer: &CustomerId) -> Method {
        let digest = Sha256::new().chain_update(&self.name).chain_update([0]).chain_update(customer.as_str());
        let bytes = digest.finalize();
        let point = u64::from_be_bytes(bytes[..8].try_into().expect("a digest has 32 bytes; this is a bug"));
        let total: u64 = self.arms.iter().map(|arm| u64::from(arm.share)).sum();
        let mut place = u64::try_from((u128::from(point) * u128::from(total)) >> 64)
            .expect("less than the sum of the shares; this is a bug");
        for arm in &self.arms {
            let share = u64::from(arm.share);
            if place < share {
                return arm.method;
            }
            place -= share;
        }
        unreachable!("the place is less than the sum of the shares; this is a bug")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn experiment() -> Experiment {
        let arms = vec![Arm { method: Method::Gsu, share: 3 }, Arm { method: Method::None, share: 1 }];
        Experiment { name: "autumn".into(), arms }
    }

    #[test]
    fn customers_are_split_by_share_and_stay_in_their_arm() {
        let routing = Routing { default_method: Some(Method::C), experiment: Some(experiment()) };
        let mut in_gsu = 0;
        for number in 0..10_000 {
            let customer = CustomerId::new(format!("c-{number}")).unwrap();
            let choice = routing.choose(Method::Np, |_| true, Some(&customer));
            assert_eq!(choice, routing.choose(Method::Np, |_| true, Some(&customer)));
            assert_eq!(choice.arm, Some(format!("autumn/{}", choice.method)));
            in_gsu += usize::from(choice.method == Method::Gsu);
        }
        // 7,500 with a standard deviation of 43.
        assert!((7_300..7_700).contains(&in_gsu), "{in_gsu}");
    }

    #[test]
    fn a_routing_in_words() {
        assert_eq!(Routing::default().to_string(), "the release's default, no experiment");
        let routing = Routing { default_method: Some(Method::C), experiment: Some(experiment()) };
        assert_eq!(routing.to_string(), "c, experiment autumn (gsu 3, none 1)");
    }

    #[test]
    fn without_a_customer_or_the_method_the_default_answers() {
        let routing = Routing { default_method: Some(Method::C), experiment: Some(experiment()) };
        let customer = CustomerId::new("c").unwrap();
        let choose = |has: &[Method], customer| {
            let choice = routing.choose(Method::Np, |method| has.contains(&method), customer);
            (choice.method, choice.arm)
        };
        assert_eq!(choose(&Method::ALL, None), (Method::C, None));
        assert_eq!(choose(&[Method::Np], Some(&customer)), (Method::Np, None));
        assert_eq!(choose(&[Method::C, Method::Np], Some(&customer)), (Method::C, None));
    }

    #[test]
    fn invalid_experiments_are_refused() {
        assert_eq!(experiment().check(), Ok(()));
        let with = |change: fn(&mut Experiment)| {
            let mut experiment = experiment();
            change(&mut experiment);
            experiment.check().unwrap_err()
        };
        assert_eq!(with(|e| e.name = "a b".into()), ExperimentError::Name("a b".into()));
        assert_eq!(with(|e| e.arms.truncate(1)), ExperimentError::Arms(1));
        assert_eq!(with(|e| e.arms[1].method = Method::Gsu), ExperimentError::Twice(Method::Gsu));
        assert_eq!(with(|e| e.arms[1].share = 0), ExperimentError::NoShare(Method::None));
    }
}
