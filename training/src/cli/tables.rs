//! Figures as lines of a table.

use crate::metrics::Summary;

pub fn print_header(first: &str) {
    println!(
        "{first:<44} {:>7}  {:>15}  {:>7}  {:>7}  {:>8}  {:>6}  {:>7}",
        "slots", "cross-entropy", "recall1", "recall5", "recall250", "MRR", "NDCG10"
    );
}

pub fn print_row(name: &str, answers: &Summary) {
    println!(
        "{name:<44} {:>7}  {:>7.4} ± {:.4}  {:>6.2}%  {:>6.2}%  {:>8.2}%  {:.4}  {:.4}",
        answers.slots,
        answers.cross_entropy.mean,
        answers.cross_entropy.standard_error,
        100.0 * answers.recall_at_1.mean,
        100.0 * answers.recall_at_5.mean,
        100.0 * answers.recall_at_250.mean,
        answers.mrr.mean,
        answers.ndcg_at_10.mean,
    );
}

/// A list below a table.
pub(super) fn print_lines(lines: &[String]) {
    if !lines.is_empty() {
        println!("\n{}", lines.join("\n"));
    }
}
