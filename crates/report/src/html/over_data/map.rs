//! Traffic of the mapping table.

use super::{Curves, Show};
use crate::html::values::number;

pub const CURVES: Curves = Curves {
    kind: "map",
    title: "Map update traffic",
    about: "bytes of mapping table changed so far",
    show: Show::Bytes,
    floor: 0,
    columns: &[("map", |moment| number(moment.now.ftl.map_update_bytes as f64))],
    tabs: |ends| ends.any(|sample| sample.ftl.map_update_bytes).then_some(&[]),
};
