//! Least and most recently used by turns.

use super::by_age::{ByAge, Leaves, Order};
use nandscape_core::{Info, keys};

/// The block asked for least recently leaves, but at a share of the evictions the one asked for most
/// recently: a part of a loop that does not fit stays, and what nobody asks for any more still leaves.
pub type LruMru = ByAge<ByTurns>;

/// Its order.
#[derive(Clone, Debug)]
pub enum ByTurns {}

keys! { PARAMS:
    MRU: f64 = share() or "50%", "share of the evictions at which the block asked for most recently leaves";
}

impl Order for ByTurns {
    const INFO: Info = Info {
        name: "lru-mru",
        summary: "the block asked for least recently leaves, at a share of the evictions the most recent one",
        source: "[cache-article summary]",
        params: PARAMS,
    };
    const HITS_RENEW: bool = true;
    const LEAVES: Leaves = Leaves::Both(MRU);
}
