//! Notes on runs; one that several share is told once.

use crate::Run;
use nandscape_sim::RunResult;

/// Who has a note, and the note, in the order in which they came first; `all` stands for all of several runs.
pub(crate) fn shared(
    runs: &[Run],
    all: &str,
    own: impl Fn(&RunResult) -> Vec<String>,
) -> Vec<(String, String)> {
    let mut notes: Vec<(String, Vec<&str>)> = Vec::new();
    for run in runs {
        for note in own(&run.result) {
            match notes.iter_mut().find(|(known, _)| *known == note) {
                Some((_, labels)) => labels.push(&run.label),
                None => notes.push((note, vec![&run.label])),
            }
        }
    }
    let who = |labels: Vec<&str>| {
        if labels.len() == runs.len() && runs.len() > 1 { all.to_owned() } else { labels.join(", ") }
    };
    notes.into_iter().map(|(note, labels)| (who(labels), note)).collect()
}
