//! A medium whose type is known only at run time: memory or a file, with faults or without.

use crate::Medium;
use nandscape_core::{BlockId, Capabilities, FlashError, Geometry, MediumHealth, Oob, OpCounts, Ppn};

/// A medium of any type. Every method is passed on; one that is added to the trait with a default must be
/// added here too.
pub type AnyMedium = Box<dyn Medium + Send>;

impl Medium for AnyMedium {
    fn geometry(&self) -> &Geometry {
        (**self).geometry()
    }

    fn capabilities(&self) -> Capabilities {
        (**self).capabilities()
    }

    fn read(&mut self, page: Ppn, data: Option<&mut [u8]>) -> Result<Oob, FlashError> {
        (**self).read(page, data)
    }

    fn read_part(&mut self, page: Ppn, start: u32, data: &mut [u8]) -> Result<Oob, FlashError> {
        (**self).read_part(page, start, data)
    }

    fn prepare_read(&self, page: Ppn) {
        (**self).prepare_read(page);
    }

    fn note_unmapped_read(&mut self) {
        (**self).note_unmapped_read();
    }

    fn program(&mut self, page: Ppn, oob: Oob, data: Option<&[u8]>) -> Result<(), FlashError> {
        (**self).program(page, oob, data)
    }

    fn erase(&mut self, block: BlockId) -> Result<(), FlashError> {
        (**self).erase(block)
    }

    fn sync(&mut self) -> Result<(), FlashError> {
        (**self).sync()
    }

    fn mark_bad(&mut self, block: BlockId) {
        (**self).mark_bad(block);
    }

    fn tear_program(&mut self, page: Ppn) -> Result<(), FlashError> {
        (**self).tear_program(page)
    }

    fn tear_erase(&mut self, block: BlockId) {
        (**self).tear_erase(block);
    }

    fn rot(&mut self, page: Ppn, bit: u64) -> bool {
        (**self).rot(page, bit)
    }

    fn health(&self) -> MediumHealth {
        (**self).health()
    }

    fn slow_factor(&self, page: Ppn) -> u32 {
        (**self).slow_factor(page)
    }

    fn is_programmed(&self, page: Ppn) -> bool {
        (**self).is_programmed(page)
    }

    fn write_pointer(&self, block: BlockId) -> u32 {
        (**self).write_pointer(block)
    }

    fn erase_count(&self, block: BlockId) -> u32 {
        (**self).erase_count(block)
    }

    fn is_bad(&self, block: BlockId) -> bool {
        (**self).is_bad(block)
    }

    fn totals(&self) -> OpCounts {
        (**self).totals()
    }

    fn reset_totals(&mut self) {
        (**self).reset_totals();
    }

    fn program_counts(&self) -> Option<&[u32]> {
        (**self).program_counts()
    }
}
