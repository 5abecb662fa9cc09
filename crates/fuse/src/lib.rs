//! Namespaces as files of a FUSE mount, ready for loop devices.
//!
//! * [`BlockFile`]: what a file of fixed size makes of reads, writes, punched holes and syncs, in commands of
//!   the engine. Knows nothing of FUSE.
//! * [`Mount`]: the files of all namespaces in a directory, served by threads that run the engine themselves,
//!   without handing over.
//! * [`LoopDevice`]: a block device over such a file, which is how kernel file systems come to it.
//! * [`leftovers`]: what a killed server left behind.
//! * [`guard`]: what keeps a server below a block device from waiting for itself when memory is short.
//!
//! Linux only, no libfuse: the mount is made by a system call, or by `fusermount3` where the caller may not
//! mount.

mod block_file;
mod errors;
mod files;
pub mod guard;
mod later;
pub mod leftovers;
mod loop_device;
mod mount;
mod table;

pub use block_file::{BlockFile, Done, Failed};
pub use errors::{MountError, errno};
pub use loop_device::{LoopDevice, LoopError, LoopOptions, SECTORS};
pub use mount::{LEAST_MEMORY_BYTES, Mount, MountOptions};
