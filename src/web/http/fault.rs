//! Maps the use cases' errors to problems. A fault's field becomes a JSON pointer into the request's body.

use std::time::Duration;

use super::{Finding, Kind, Problem};
use crate::{
    models::engine::AskError,
    service::{
        completion::CompletionError,
        fault::{Fault, Field, ServiceError},
        feedback::ReportError,
        live_release::ActivateError,
    },
    util::json_pointer::step,
};

/// `Retry-After` if a model server cannot be reached.
const UNREACHABLE: Duration = Duration::from_secs(1);

fn pointer(field: &Field) -> String {
    match field {
        Field::Customer => "/customer".into(),
        Field::CustomerAt(place) => format!("/customers/{place}"),
        Field::Customers => "/customers".into(),
        Field::Feature(name) => format!("/features{}", step(name)),
        Field::Outfit => "/outfit".into(),
        Field::Slot(slot) => format!("/outfit/{slot}"),
        Field::ArticleAt(place) => format!("/articles/{place}"),
        Field::Method => "/method".into(),
        Field::Methods => "/methods".into(),
        Field::MethodAt(place) => format!("/methods/{place}"),
        Field::K => "/k".into(),
        Field::Diversity => "/diversity".into(),
        Field::Lift => "/lift".into(),
        Field::Sets => "/sets".into(),
        Field::TypesOf(slot) => format!("/filters/types/{slot}"),
        Field::TypeAt { slot, place } => format!("/filters/types/{slot}/{place}"),
        Field::Excluded => "/filters/exclude".into(),
        Field::Price => "/filters/price".into(),
        Field::PriceMin => "/filters/price/min".into(),
        Field::PriceMax => "/filters/price/max".into(),
        Field::EventId => "/id".into(),
        Field::EventSlot => "/slot".into(),
        Field::EventArticle => "/article".into(),
        Field::Rank => "/rank".into(),
        Field::DefaultMethod => "/default_method".into(),
        Field::Experiment => "/experiment".into(),
        Field::ArmMethod(place) => format!("/experiment/arms/{place}/method"),
    }
}

impl From<Fault> for Finding {
    fn from(fault: Fault) -> Self {
        Self::at(pointer(&fault.field), fault.detail)
    }
}

impl From<Vec<Fault>> for Problem {
    fn from(faults: Vec<Fault>) -> Self {
        Self::invalid(faults.into_iter().map(Finding::from).collect())
    }
}

impl From<ServiceError> for Problem {
    fn from(error: ServiceError) -> Self {
        match error {
            ServiceError::Faults(faults) => faults.into(),
            ServiceError::Ask(error) => error.into(),
            ServiceError::Store(error) => error.into(),
        }
    }
}

impl From<CompletionError> for Problem {
    fn from(error: CompletionError) -> Self {
        ServiceError::from(error).into()
    }
}

impl From<AskError> for Problem {
    fn from(error: AskError) -> Self {
        match error {
            AskError::Full { retry_after, .. } => {
                Self::new(Kind::QueueFull, error.to_string()).retry_after(retry_after)
            }
            AskError::Deadline { .. } => Self::new(Kind::Deadline, error.to_string()),
            AskError::Unreachable(_) => Self::inside(Kind::Unavailable, error).retry_after(UNREACHABLE),
            AskError::Failed(_) | AskError::NoMethod(_) => Self::inside(Kind::Internal, error),
        }
    }
}

impl From<ReportError> for Problem {
    fn from(error: ReportError) -> Self {
        match error {
            ReportError::Fault(fault) => vec![fault].into(),
            ReportError::Ticket(error) => Self::new(Kind::NotFound, error.to_string()),
            ReportError::Store(error) => error.into(),
        }
    }
}

impl From<ActivateError> for Problem {
    fn from(error: ActivateError) -> Self {
        match error {
            ActivateError::NoRelease { .. } => Self::new(Kind::NotFound, error.to_string()),
            ActivateError::Load(_) => Self::new(Kind::Refused, error.to_string()),
            ActivateError::Store(error) => error.into(),
        }
    }
}
