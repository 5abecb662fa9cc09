//! A device type without values, so that the registry can be listed where there is no device.

use nandscape_core::{
    BlockId, Capabilities, CauseTable, Clocked, Completion, FlashDevice, FlashError, Geometry, Issue, Oob,
    OpCounts, PageRead, Ppn, SimTime, Token,
};

/// No value of this type exists, so none of the methods below can be called.
pub(crate) enum NoDevice {}

impl FlashDevice for NoDevice {
    fn geometry(&self) -> &Geometry {
        match *self {}
    }

    fn capabilities(&self) -> Capabilities {
        match *self {}
    }

    fn read(&mut self, _: Ppn, _: u32, _: Option<&mut [u8]>, _: Issue) -> Result<PageRead, FlashError> {
        match *self {}
    }

    fn program(&mut self, _: Ppn, _: Oob, _: u32, _: Option<&[u8]>, _: Issue) -> Result<Token, FlashError> {
        match *self {}
    }

    fn erase(&mut self, _: BlockId, _: Issue) -> Result<Token, FlashError> {
        match *self {}
    }

    fn join(&mut self, _: Token, _: Token) -> Token {
        match *self {}
    }

    fn read_unmapped(&mut self, _: Ppn, _: u32, _: Issue) -> Result<Token, FlashError> {
        match *self {}
    }

    fn is_programmed(&self, _: Ppn) -> bool {
        match *self {}
    }

    fn write_pointer(&self, _: BlockId) -> u32 {
        match *self {}
    }

    fn erase_count(&self, _: BlockId) -> u32 {
        match *self {}
    }

    fn is_bad(&self, _: BlockId) -> bool {
        match *self {}
    }

    fn counters(&self) -> &CauseTable {
        match *self {}
    }

    fn medium_totals(&self) -> OpCounts {
        match *self {}
    }

    fn reset_counters(&mut self) {
        match *self {}
    }

    fn reset_time(&mut self, _: SimTime) {
        match *self {}
    }
}

impl Clocked for NoDevice {
    fn completion(&self, _: Token) -> Option<SimTime> {
        match *self {}
    }

    fn watch(&mut self, _: Token, _: u64) {
        match *self {}
    }

    fn advance(&mut self, _: SimTime, _: &mut Vec<Completion>) {
        match *self {}
    }

    fn next_event(&self) -> Option<SimTime> {
        match *self {}
    }

    fn idle_from(&self) -> SimTime {
        match *self {}
    }
}
