//! Least recently used.

use super::by_age::{ByAge, Leaves, Order};
use nandscape_core::Info;

/// The block that was not asked for for longest leaves.
pub type Lru = ByAge<LeastRecent>;

/// Its order.
#[derive(Clone, Debug)]
pub enum LeastRecent {}

impl Order for LeastRecent {
    const INFO: Info = Info {
        name: "lru",
        summary: "the block that was not asked for for longest leaves",
        source: "FIU dm-cache, EnhanceIO, OCF",
        params: &[],
    };
    const HITS_RENEW: bool = true;
    const LEAVES: Leaves = Leaves::Oldest;
}
