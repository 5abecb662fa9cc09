//! The integration tests of this crate, in one program.

mod cache_article;
mod neighbours;
mod nvm_sets;
mod pm963;
mod policies;
mod reproduce;
mod streams;

use nandscape_experiments::reproduce::{Context, REPRODUCTIONS};
use nandscape_report::ReproductionRow;

/// The rows of an experiment, at its smaller scale if it has one.
fn rows(id: &str) -> Vec<ReproductionRow> {
    let reproduction = REPRODUCTIONS.iter().find(|r| r.info.name == id).unwrap();
    let mut context = Context::new(42, None);
    context.is_quick = true;
    reproduction.run(&context).unwrap()
}
