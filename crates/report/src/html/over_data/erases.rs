//! Erased blocks.

use super::{Curves, Show};
use serde_json::json;

pub const CURVES: Curves = Curves {
    kind: "erases",
    title: "Erases",
    about: "blocks erased so far",
    show: Show::Count,
    floor: 0,
    columns: &[("erases", |moment| json!(moment.now.causes.total().erases))],
    tabs: |ends| ends.any(|sample| sample.causes.total().erases).then_some(&[]),
};
