//! Completes many outfits together, in as few runs of the model as possible.

use std::time::Instant;

use atelier_core::domain::Method;
use atelier_engine::inference::{Admission, AskError, Question};

use super::{
    Completion, Cost, Request, Served, conversation::Conversation, prepare::Prepared, questions, read_answers,
};
use crate::platform::fault::Fault;

/// Returns a completion or its faults for each request, in their order. Leaves out lift, reasons and joint sets.
///
/// A run costs as much as if all its outfits were as long as the longest, and had as many values of a feature. So requests
/// of one size run together.
pub async fn complete_many(
    served: Served<'_>,
    method: Method,
    requests: &[Request],
    deadline: Instant,
) -> Result<Vec<Result<Completion, Vec<Fault>>>, AskError> {
    let mut outcomes: Vec<Option<Result<Completion, Vec<Fault>>>> = Vec::with_capacity(requests.len());
    let mut asked = Vec::new();
    for (position, request) in requests.iter().enumerate() {
        assert_eq!(request.method, method, "they are asked together");
        outcomes.push(match Prepared::new(served, request) {
            Ok(prepared) => {
                let questions = questions(&prepared, request);
                asked.push((position, prepared, questions));
                None
            }
            Err(faults) => Some(Err(faults)),
        });
    }
    asked.sort_by_key(|(_, prepared, _)| {
        (prepared.slots.len(), prepared.reading.context.iter().map(Vec::len).max().unwrap_or(0))
    });
    let all: Vec<Question> =
        asked.iter_mut().flat_map(|(_, _, questions)| std::mem::take(questions)).collect();
    let (cost, answers) = if all.is_empty() {
        (Cost::default(), Vec::new())
    } else {
        let opened = Conversation::open(served.serving, method, deadline, Admission::Patient, all);
        let (conversation, answers) = opened.await?;
        (conversation.cost(), answers)
    };
    let mut answers = answers.into_iter();
    for (position, mut prepared, _) in asked {
        let mut completion = read_answers(served, &requests[position], &mut prepared, &mut answers);
        completion.add_variants(served, &requests[position], &prepared);
        outcomes[position] = Some(Ok(Completion { cost, ..completion }));
    }
    Ok(outcomes.into_iter().map(|outcome| outcome.expect("each has one")).collect())
}
