//! Progress on stderr, on one line.

use indicatif::{ProgressBar, ProgressStyle};
use nandscape_sim::Progress;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Length of a line of several runs, whose requests are not added up: they differ in what they take.
const WHOLE: u64 = 10_000;

/// How far one of several runs is.
#[derive(Clone, Copy, Debug, Default)]
struct Run {
    /// Writes before the counted part: done, and in all.
    before: (u64, u64),
    /// Requests of the counted part: done, and in all, which may be unknown.
    counted: (u64, Option<u64>),
}

impl Run {
    fn follow(&mut self, progress: Progress) {
        if progress.preconditioning {
            self.before = (progress.requests, progress.expected.unwrap_or(0));
        } else {
            self.before.0 = self.before.1;
            self.counted = (progress.requests, progress.expected.or(self.counted.1));
        }
    }

    /// Share of it that is done, from 0 to 1. `others` is the counted part of another run, for one that has
    /// not begun its own.
    fn share(&self, others: Option<u64>) -> f64 {
        let Some(counted) = self.counted.1.or(others) else { return 0.0 };
        let all = self.before.1 + counted;
        if all == 0 { 0.0 } else { (self.before.0 + self.counted.0) as f64 / all as f64 }
    }
}

/// What is done of all runs, of [`WHOLE`].
fn done_of(runs: &BTreeMap<String, Run>) -> u64 {
    let counted = runs.values().find_map(|run| run.counted.1.filter(|all| *all > 0));
    let shares: f64 = runs.values().map(|run| run.share(counted).min(1.0)).sum();
    (shares / runs.len().max(1) as f64 * WHOLE as f64) as u64
}

/// A line of progress.
#[derive(Debug)]
pub struct Bar {
    bar: ProgressBar,
    /// Runs that share the line, by their labels.
    runs: Mutex<BTreeMap<String, Run>>,
}

impl Bar {
    pub(super) const fn new(bar: ProgressBar) -> Self {
        Self { bar, runs: Mutex::new(BTreeMap::new()) }
    }

    /// One of several runs: the line shows all of them together.
    pub fn show_run(&self, label: &str, progress: Progress) {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        runs.entry(label.to_owned()).or_default().follow(progress);
        let done = runs.values().filter(|run| run.share(None) >= 1.0).count();
        self.show_as("{prefix} {wide_bar} {msg}, {percent} % [{elapsed}, {eta} left]");
        self.bar.set_length(WHOLE);
        self.bar.set_message(format!("{done}/{} runs", runs.len()));
        self.bar.set_position(done_of(&runs));
    }

    pub fn show(&self, progress: Progress) {
        let style = match (progress.preconditioning, progress.expected) {
            (true, Some(_)) => {
                "{prefix} preconditioning {wide_bar} {human_pos}/{human_len} writes [{elapsed}, {eta} left]"
            }
            (true, None) => "{prefix} preconditioning {human_pos} writes [{elapsed}]",
            (false, Some(_)) => {
                "{prefix} {wide_bar} {human_pos}/{human_len} requests [{elapsed}, {eta} left]"
            }
            (false, None) => "{prefix} {spinner} {human_pos} requests [{elapsed}]",
        };
        if let Some(expected) = progress.expected {
            self.bar.set_length(expected);
        }
        self.set(style, progress.requests);
    }

    pub fn show_runs(&self, done: u64, all: u64) {
        self.bar.set_length(all);
        self.set("{prefix} {wide_bar} {human_pos}/{human_len} runs [{elapsed}, {eta} left]", done);
    }

    pub fn show_pages(&self, done: u64, all: u64) {
        self.bar.set_length(all);
        self.set("{prefix} {wide_bar} {human_pos}/{human_len} pages [{elapsed}, {eta} left]", done);
    }

    pub fn show_bytes(&self, done: u64, all: u64) {
        self.bar.set_length(all);
        self.set("{prefix} {wide_bar} {bytes}/{total_bytes} [{elapsed}, {eta} left]", done);
    }

    fn set(&self, style: &str, done: u64) {
        self.show_as(style);
        self.bar.set_position(done);
    }

    fn show_as(&self, style: &str) {
        self.bar.set_style(ProgressStyle::with_template(style).expect("the templates are valid"));
    }

    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_that_wait_count_as_much_as_those_that_run() {
        let bar = Bar::new(ProgressBar::hidden());
        let part = |preconditioning, requests, expected| Progress { preconditioning, requests, expected };
        let done = || done_of(&bar.runs.lock().unwrap());
        for label in ["a", "b", "c", "d"] {
            bar.show_run(label, part(false, 0, None));
        }
        assert_eq!(done(), 0);
        bar.show_run("a", part(true, 50, Some(100)));
        assert_eq!(done(), 0, "nothing is known of the counted part");
        bar.show_run("a", part(false, 100, Some(300)));
        assert_eq!(done(), WHOLE / 8, "200 of 400 of a quarter");
        bar.show_run("b", part(true, 100, Some(100)));
        assert_eq!(done(), WHOLE / 8 + WHOLE / 16, "100 of 400, as of the other run");
        for label in ["a", "b", "c", "d"] {
            bar.show_run(label, part(false, 300, Some(300)));
        }
        assert_eq!((done(), bar.bar.message().as_str()), (WHOLE, "4/4 runs"));
    }
}
