//! Completes many outfits together, in as few runs of the model as possible.

use std::time::Instant;

use atelier_core::domain::Method;
use atelier_engine::inference::{Admission, AskError, Question};

use super::{
    Completion, CompletionError, Cost, Request, Served, choose_variants,
    conversation::Conversation,
    prepare::{Prepared, bounded},
    questions, read_answer, suggested,
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
        assert_eq!(request.method, method, "they are asked together; this is a bug");
        outcomes.push(match Prepared::new(served, request) {
            Ok(prepared) => {
                let questions = questions(&prepared, request);
                asked.push((position, prepared, questions));
                None
            }
            Err(CompletionError::Faults(found)) => Some(Err(found)),
            Err(CompletionError::Ask(error)) => return Err(error),
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
        let (mut personas, mut steps, mut blanks) = (None, None, Vec::with_capacity(prepared.blanks.len()));
        let mut unmet = Vec::new();
        for blank in &prepared.blanks {
            let mut answer = answers.next().expect("an answer a question; this is a bug");
            personas = personas.or(answer.personas.take());
            steps = steps.or(answer.steps);
            blanks.push(read_answer(served, &requests[position], &prepared, blank, answer, &mut unmet));
        }
        let mut warnings = std::mem::take(&mut prepared.warnings);
        warnings.extend(bounded(unmet));
        let needs = &prepared.reading.needs;
        let variants = choose_variants(served, &requests[position], needs, suggested(&blanks, &[]));
        outcomes[position] =
            Some(Ok(Completion { blanks, sets: Vec::new(), variants, warnings, personas, steps, cost }));
    }
    Ok(outcomes.into_iter().map(|outcome| outcome.expect("each has one; this is a bug")).collect())
}
