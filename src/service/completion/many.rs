//! Many outfits completed together: what a request each would have said, in as few runs of the model as possible.

use std::time::Instant;

use super::{Completion, CompletionError, Conversation, Cost, Prepared, Request, Served, questions, whole};
use crate::service::fault::Fault;
use crate::{
    domain::Method,
    models::engine::{Admission, AskError, Question},
};

/// A completion or what is wrong with the request, for each in their order. Lift, reasons and joint sets are left out.
///
/// Each costs as much as the longest outfit of its run and the longest list of a feature's values in it, so like is
/// asked about with like.
pub async fn complete_many(
    served: Served<'_>,
    method: Method,
    requests: &[Request],
    deadline: Instant,
) -> Result<Vec<Result<Completion, Vec<Fault>>>, AskError> {
    let mut outcomes: Vec<Option<Result<Completion, Vec<Fault>>>> = Vec::with_capacity(requests.len());
    let mut asked = Vec::new();
    for (place, request) in requests.iter().enumerate() {
        assert_eq!(request.method, method, "they are asked together; this is a bug");
        outcomes.push(match Prepared::new(served, request) {
            Ok(prepared) => {
                let questions = questions(&prepared, request);
                asked.push((place, prepared, questions));
                None
            }
            Err(CompletionError::Faults(found)) => Some(Err(found)),
            Err(CompletionError::Ask(error)) => return Err(error),
        });
    }
    asked.sort_by_key(|(_, prepared, _)| {
        (prepared.slots.len(), prepared.context.iter().map(Vec::len).max().unwrap_or(0))
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
    for (place, mut prepared, _) in asked {
        let (mut personas, mut steps, mut blanks) = (None, None, Vec::with_capacity(prepared.blanks.len()));
        for blank in &prepared.blanks {
            let mut answer = answers.next().expect("an answer a question; this is a bug");
            personas = personas.or(answer.personas.take());
            steps = steps.or(answer.steps);
            blanks.push(whole(served, &requests[place], &prepared, blank, answer));
        }
        let slots = prepared.known;
        let warnings = std::mem::take(&mut prepared.warnings);
        outcomes[place] =
            Some(Ok(Completion { blanks, sets: Vec::new(), warnings, personas, steps, slots, cost }));
    }
    Ok(outcomes.into_iter().map(|outcome| outcome.expect("each has one; this is a bug")).collect())
}
