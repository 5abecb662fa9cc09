//! The rows of the stream policies on recorded loads.
#![expect(clippy::print_stdout, reason = "an example prints")]

use nandscape_experiments::reproduce::{Context, REPRODUCTIONS};

fn main() {
    let experiment =
        REPRODUCTIONS.iter().find(|one| one.info.name == "streams-captured").expect("it is registered");
    let rows = experiment.run(&Context::new(42, None)).expect("the experiment runs");
    for row in rows {
        println!("{} | {} | {} | {}", row.name, row.unit, row.measured, row.note);
    }
}
