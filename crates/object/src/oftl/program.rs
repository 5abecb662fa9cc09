//! Writes of pages to the update windows.

use super::blocks::Which;
use super::oob::{ObjectOob, PageKind};
use super::{Oftl, Sabotage};
use nandscape_core::{
    Barrier, BlockId, Cause, FlashDevice, FlashError, FtlError, Issue, NamespaceError, NamespaceResult, Ppn,
    SimTime, Token,
};
use nandscape_ftl::victim::BlockState;

/// A write: pages that are there whole or not at all after a loss of power.
#[derive(Clone, Copy, Debug)]
pub(super) struct Write {
    pub tid: u64,
    /// Pages that it has; 0: pages that were moved, each on its own.
    pages: u32,
    programmed: u32,
    pub at: SimTime,
}

impl Write {
    pub const fn is_complete(&self) -> bool {
        self.programmed == self.pages
    }
}

/// A page of a write.
#[derive(Clone, Copy, Debug)]
pub(super) struct Page<'a> {
    pub kind: PageKind,
    pub object: u64,
    pub offset: u32,
    pub len: u32,
    /// The write that its data came with.
    pub version: u64,
    pub data: Option<&'a [u8]>,
    pub after: Token,
    pub cause: Cause,
}

impl<D: FlashDevice<ObjectOob>> Oftl<D> {
    /// Begins a write of so many pages.
    pub(super) const fn begin(&mut self, pages: u32, at: SimTime) -> Write {
        self.tid += 1;
        Write { tid: self.tid, pages, programmed: 0, at }
    }

    /// Begins to move pages.
    pub(super) const fn begin_copy(&self, at: SimTime) -> Write {
        Write { tid: self.tid, pages: 0, programmed: 0, at }
    }

    /// Programs a page of a write; gives where it is.
    #[inline]
    pub(super) fn program(&mut self, write: &mut Write, page: &Page<'_>) -> NamespaceResult<u32> {
        let which = if page.kind == PageKind::Data { Which::Data } else { Which::Metadata };
        let is_copy = write.pages == 0;
        let is_last = write.programmed + 1 == write.pages;
        let oob = ObjectOob {
            kind: page.kind,
            is_copy,
            tcnt: if is_last { write.pages } else { 0 },
            version: page.version,
            object: page.object,
            offset: page.offset,
            len: page.len,
            tid: write.tid,
        };
        loop {
            if self.blocks.windows[which as usize].room == 0 {
                self.extend(which, write.at)?;
            }
            let ppn = self.blocks.allocate(which);
            let block = ppn.0 / self.blocks.pages;
            let after = if self.sabotage == Sabotage::EarlyProgram {
                page.after
            } else {
                self.device.join(page.after, self.blocks.after[block as usize])
            };
            let issue = Issue { after, ..Issue::new(write.at, page.cause).by_device(page.cause) };
            match self.device.program(ppn, oob, self.sizes.page_bytes, page.data, issue) {
                Ok(token) => {
                    self.blocks.validate(ppn.0);
                    self.written = self.device.join(self.written, token);
                    write.programmed += 1;
                    return Ok(ppn.0);
                }
                Err(FlashError::ProgramFailed { .. }) => self.blocks.give_up(which, block),
                Err(error) => return Err(self.failed(error)),
            }
        }
    }

    /// The device does something that it should not: nothing is written any more.
    #[cold]
    pub(super) fn failed(&mut self, error: FlashError) -> NamespaceError {
        self.stopped.get_or_insert(match error {
            FlashError::ReadOnly { reason } => reason,
            _ => "the flash failed",
        });
        FtlError::Flash(error).into()
    }

    /// Completes when whatever was written so far is durable.
    pub(super) fn durable(&mut self, at: SimTime) -> NamespaceResult<Token> {
        let barrier = self.device.barrier(Barrier::Durable, at).map_err(|error| self.failed(error))?;
        if self.sabotage == Sabotage::EarlyFlush {
            return Ok(Token::NONE);
        }
        Ok(self.device.join(self.written, barrier))
    }

    /// Completes when nothing that is issued after it survives what a write before does not.
    pub(super) fn ordered(&mut self, at: SimTime) -> NamespaceResult<Token> {
        let barrier = self.device.barrier(Barrier::Order, at).map_err(|error| self.failed(error))?;
        Ok(self.device.join(self.written, barrier))
    }

    /// Erases a block that has no valid pages, once what `after` stands for is done. It is free afterwards;
    /// or bad, if the erase fails or a program has failed before: such a block is erased, too, so that
    /// nothing says that it is bad before its pages are elsewhere.
    pub(super) fn erase(
        &mut self,
        block: u32,
        cause: Cause,
        after: Token,
        at: SimTime,
    ) -> NamespaceResult<()> {
        let id = BlockId(block);
        let has_failed = self.blocks.infos[block as usize].state == BlockState::Failed;
        let after = if self.sabotage == Sabotage::EarlyErase { Token::NONE } else { after };
        match self.device.erase(id, Issue { after, ..Issue::new(at, cause) }) {
            Ok(token) => {
                self.blocks.erases += 1;
                self.erased = self.device.join(self.erased, token);
                self.blocks.after[block as usize] = token;
                if !has_failed {
                    self.blocks.free(block, self.geometry.unit_of(id).0);
                    return Ok(());
                }
            }
            Err(
                FlashError::EraseFailed { .. } | FlashError::WornOut { .. } | FlashError::BadBlock { .. },
            ) => {}
            Err(error) => return Err(self.failed(error)),
        }
        self.device.mark_bad(id);
        self.blocks.bad(block);
        Ok(())
    }

    /// Reads a page as it is on the flash; nothing where the device keeps no bytes.
    pub(super) fn read_page(
        &mut self,
        place: u32,
        cause: Cause,
        at: SimTime,
    ) -> Result<(ObjectOob, Vec<u8>, Token), FlashError> {
        let page_bytes = self.sizes.page_bytes;
        let mut data = vec![0; if self.sizes.stores_data { page_bytes as usize } else { 0 }];
        let buffer = (!data.is_empty()).then_some(data.as_mut_slice());
        let issue = Issue::new(at, cause).by_device(cause);
        let read = self.device.read(Ppn(place), page_bytes, buffer, issue)?;
        Ok((read.oob, data, read.done))
    }

    /// Reads a page that has to be readable.
    pub(super) fn read_sure(&mut self, place: u32, at: SimTime) -> NamespaceResult<Vec<u8>> {
        let (_, data, done) = self.read_page(place, Cause::Meta, at).map_err(FtlError::Flash)?;
        self.wait_for(done);
        Ok(data)
    }
}
