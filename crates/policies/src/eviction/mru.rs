//! Most recently used.

use super::by_age::{ByAge, Leaves, Order};
use nandscape_core::Info;

/// The block that was asked for last leaves.
pub type Mru = ByAge<MostRecent>;

/// Its order.
#[derive(Clone, Debug)]
pub enum MostRecent {}

impl Order for MostRecent {
    const INFO: Info = Info {
        name: "mru",
        summary: "the block that was asked for last leaves: for loops larger than the cache",
        source: "[cache-article summary]",
        params: &[],
    };
    const HITS_RENEW: bool = true;
    const LEAVES: Leaves = Leaves::Youngest;
}
