//! What an image is kept in.

use crate::layout::Layout;
use nandscape_core::BlockId;
use std::io;

/// A file whose beginning, header and tables, is in memory and written back whenever the system likes.
///
/// A failure of the machine after `sync` keeps what was written; before, it keeps any part, in any order.
pub trait Store {
    fn tables(&self) -> &[u8];

    /// Header and tables, to be changed.
    fn tables_mut(&mut self) -> &mut [u8];

    fn read_at(&self, offset: u64, data: &mut [u8]) -> io::Result<()>;

    fn write_at(&mut self, offset: u64, data: &[u8]) -> io::Result<()>;

    /// Is told before the bytes of an erased block are overwritten or given up.
    fn before_overwrite(&mut self, _block: BlockId, _layout: &Layout) {}

    /// Gives up the space of a range of data, which then reads as zeroes or as before.
    fn punch(&mut self, offset: u64, len: u64) -> io::Result<()>;

    /// Makes everything safe from a failure of the machine.
    fn sync(&mut self) -> io::Result<()>;

    /// Has the next sync write all of the tables, changed or not.
    fn rewrite_tables(&mut self) {
        for byte in self.tables_mut().iter_mut().step_by(4096) {
            // What the compiler knows nothing of it also writes.
            *byte = std::hint::black_box(*byte);
        }
    }

    /// Whether a part of the tables was lost: reads and writes since this was last false may be wrong.
    fn is_lost(&self) -> bool {
        false
    }
}
