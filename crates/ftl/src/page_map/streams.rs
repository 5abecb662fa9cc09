//! Streams: which log a hint names, and the pieces logs are given.

use super::PageMap;
use nandscape_core::{FlashDevice, FtlResult, Hint, LogStatus, Logs, SimTime};

impl<D: FlashDevice> PageMap<D> {
    /// The log that a hint names; log 0 for hints above all logs. Without streams hints mean nothing.
    #[inline]
    pub(super) fn log_of(&mut self, hint: Hint) -> usize {
        if self.host_bytes.len() == 1 {
            return 0;
        }
        let log = usize::from(hint.0);
        let log = if log < self.host_bytes.len() { log } else { 0 };
        if !self.domains[0].logs[log].active {
            self.activate(log);
        }
        log
    }

    #[cold]
    fn activate(&mut self, log: usize) {
        for domain in &mut self.domains {
            domain.activate(log);
        }
    }
}

impl<D: FlashDevice> Logs for PageMap<D> {
    fn logs(&self) -> u16 {
        self.host_bytes.len() as u16
    }

    /// Sums over the domains; a piece of a striped log has a part in each, so the fullest gives the count.
    fn log_status(&self, log: u16) -> LogStatus {
        let log = usize::from(log);
        let Some(written) = self.host_bytes.get(log) else { return LogStatus::default() };
        let host_bytes = written - self.host_bytes_before[log];
        let block_bytes = u64::from(self.pages_per_block) * u64::from(self.page_bytes);
        let mut status = LogStatus { host_bytes, ..LogStatus::default() };
        for domain in &self.domains {
            let Some(pieces) = &domain.pieces else { continue };
            status.piece_bytes += u64::from(pieces.blocks_per_piece) * block_bytes;
            status.room_bytes += u64::from(pieces.left(log)) * block_bytes
                + domain.open_pages(log) * u64::from(self.page_bytes);
            status.pieces = status.pieces.max(u64::from(pieces.count(log)));
        }
        status
    }

    /// Closes the present piece of a log everywhere.
    fn renew_log(&mut self, log: u16, _: SimTime) -> FtlResult<u64> {
        if log >= self.logs() {
            return Ok(0);
        }
        let log = usize::from(log);
        let infos = &mut self.blocks.infos;
        let pages: u64 = self.domains.iter_mut().map(|domain| domain.renew(log, infos, self.seq)).sum();
        let total: u64 = self.domains.iter().map(|domain| u64::from(domain.blocks)).sum();
        assert!(pages <= total * u64::from(self.pages_per_block), "log {log} gave up {pages} pages");
        Ok(pages * u64::from(self.page_bytes))
    }
}
