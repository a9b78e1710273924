//! Use cases' faults as the API reports them: each field is a JSON pointer into the request's body.

use atelier_core::util::json_pointer::step;

use crate::{
    service::{
        fault::{Fault, Field, ServiceError},
        feedback::ReportError,
    },
    web::http::{Finding, Problem},
};

pub(crate) fn problem(error: ServiceError) -> Problem {
    match error {
        ServiceError::Faults(faults) => Problem::invalid(faults.into_iter().map(finding).collect()),
        ServiceError::Ask(error) => error.into(),
        ServiceError::Store(error) => error.into(),
    }
}

/// The problem of an event that was not recorded.
pub(crate) fn event_problem(error: ReportError) -> Problem {
    match error {
        ReportError::Fault(fault) => Problem::invalid(vec![finding(fault)]),
        ReportError::Ticket(error) => error.into(),
        ReportError::Store(error) => error.into(),
    }
}

pub(crate) fn finding(fault: Fault) -> Finding {
    Finding::at(pointer(&fault.field), fault.detail)
}

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
        Field::Sets => "/sets".into(),
        Field::TypesOf(slot) => format!("/filters/types/{slot}"),
        Field::TypeAt { slot, place } => format!("/filters/types/{slot}/{place}"),
        Field::Excluded => "/filters/exclude".into(),
        Field::Price => "/filters/price".into(),
        Field::PriceMin => "/filters/price/min".into(),
        Field::PriceMax => "/filters/price/max".into(),
        Field::PriceTotal => "/filters/price/total".into(),
        Field::Store => "/filters/store".into(),
        Field::EventId => "/id".into(),
        Field::EventSlot => "/slot".into(),
        Field::EventArticle => "/article".into(),
        Field::Rank => "/rank".into(),
        Field::DefaultMethod => "/default_method".into(),
        Field::Experiment => "/experiment".into(),
        Field::ArmMethod(place) => format!("/experiment/arms/{place}/method"),
    }
}
