//! Namespaces as files of a FUSE mount, ready for loop devices; a store of objects as a file system.
//!
//! * [`BlockFile`]: what a file of fixed size makes of reads, writes, punched holes and syncs, in commands of
//!   the engine. Knows nothing of FUSE.
//! * [`ObjectFs`]: what a file system makes of its calls, in commands of the object command set. Knows
//!   nothing of FUSE either.
//! * [`Mount`]: the files of all namespaces in a directory, served by threads that run the engine themselves,
//!   without handing over.
//! * [`LoopDevice`]: a block device over such a file, which is how kernel file systems come to it.
//! * [`leftovers`]: what a killed server left behind.
//! * [`guard`]: what keeps a server below a block device from waiting for itself when memory is short.
//!
//! Linux only, no libfuse: the mount is made by a system call, or by `fusermount3` where the caller may not
//! mount.

mod answers;
mod block_file;
mod client;
mod errors;
mod files;
pub mod guard;
mod later;
pub mod leftovers;
mod loop_device;
mod mount;
mod object_fs;
mod table;

pub use block_file::BlockFile;
pub use client::{Client, Done, Failed};
pub use errors::{MountError, errno};
pub use loop_device::{LoopDevice, LoopError, LoopOptions, SECTORS};
pub use mount::{LEAST_MEMORY_BYTES, Mount, MountOptions};
pub use object_fs::{Changes, Entry, New, ObjectFs, Quota, ROOT, Stat, attributes::Kind};
