//! Block devices: a translation layer on the device.

use super::{Over, StackEntry};
use crate::flash::{divided, subsystem};
use crate::kinds::{BLOCK, StackKind, directed, ext, f2fs, xfs};

pub const ENTRY: StackEntry = of(&BLOCK);
pub const DATA_JOURNAL: StackEntry = of(&ext::DATA_JOURNAL);
pub const ATOMIC: StackEntry = of(&ext::ATOMIC);
pub const XFS: StackEntry = of(&xfs::KIND);
pub const STREAMS: StackEntry = of(&directed::STREAMS);
pub const FDP: StackEntry = of(&directed::FDP);
pub const F2FS: StackEntry = of(&f2fs::KIND);

/// What kinds of block devices differ in are their keys.
const fn of(kind: &'static StackKind) -> StackEntry {
    StackEntry {
        kind,
        plain: |config, options| Ok(Box::new(subsystem(config, options)?)),
        over: Over::Pages(|config, device, lasts| Ok(Box::new(divided(config, device, lasts)?))),
    }
}
