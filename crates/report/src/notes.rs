//! Notes on runs; one that several share is told once.

use crate::Run;
use nandscape_sim::result::TrustNote;

/// Who has a note, and the note, in the order in which they came first; `all` stands for all of several runs.
pub(crate) fn shared<'a>(
    runs: impl ExactSizeIterator<Item = &'a Run>,
    all: &str,
    own: impl Fn(&Run) -> Vec<String>,
) -> Vec<(String, String)> {
    let count = runs.len();
    let mut notes: Vec<(String, Vec<&str>)> = Vec::new();
    for run in runs {
        for note in own(run) {
            match notes.iter_mut().find(|(known, _)| *known == note) {
                Some((_, labels)) => labels.push(&run.label),
                None => notes.push((note, vec![&run.label])),
            }
        }
    }
    let who = |labels: Vec<&str>| {
        if labels.len() == count && count > 1 { all.to_owned() } else { labels.join(", ") }
    };
    notes.into_iter().map(|(note, labels)| (who(labels), note)).collect()
}

/// The same of what must not be taken from the figures, with the names of the checks.
pub(crate) fn cautions<'a>(runs: impl ExactSizeIterator<Item = &'a Run>, all: &str) -> Vec<(String, String)> {
    let of = |note: &TrustNote| format!("{}: {}", note.check, note.message);
    shared(runs, all, |run| run.result.trust.iter().map(of).collect())
}
