//! A cache whose disks cannot be stamped, such as on a file system that is full, served without a change to
//! anything.

use nandscape_cache::Mode;
use nandscape_cache::compose::{ComposeError, Design};
use nandscape_cache::engine::{Disk as Member, Started};
use nandscape_core::{SimTime, Store};
use nandscape_disk::decorate::{Failing, Fault, Operations, Overlay, When};
use nandscape_policies::eviction::AnyEviction;

type BoxedStore = Box<dyn Store + Send>;

/// A disk that takes no writes.
pub(super) fn disk(store: BoxedStore) -> BoxedStore {
    Box::new(Failing::new(store, Operations::default(), [(When::From(0), Fault::ReadOnly)]))
}

/// Opens the cache over such disks. What it has is served from it, and everything else from the disks;
/// nothing comes to it, nothing is cleaned, and what its start writes to its own device stays in memory.
pub(super) fn open(
    design: &Design,
    fast: BoxedStore,
    disks: Vec<Member>,
) -> Result<Started<AnyEviction>, ComposeError> {
    let mut started = design.open(Box::new(Overlay::new(fast)), disks, SimTime::ZERO)?;
    started.cache.set_mode(Mode::PassThrough);
    started.cache.set_cleanings(Vec::new());
    started.cache.set_admission(None);
    Ok(started)
}
