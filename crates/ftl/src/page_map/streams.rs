//! Streams: which log a hint names, and the pieces logs are given.

use super::PageMap;
use nandscape_core::addr::PageSpan;
use nandscape_core::{FlashDevice, FtlResult, Hint, LogStatus, Logs, SimTime, state};
use std::ops::Range;

/// Bytes that the host wrote to each of its logs.
#[derive(Debug)]
pub(super) struct HostBytes {
    /// So far.
    pub all: Vec<u64>,
    /// Until the last reset of the counters.
    pub before: Vec<u64>,
}

state!(impl [] HostBytes { tables: all, before; });

impl HostBytes {
    pub fn new(logs: usize) -> Self {
        Self { all: vec![0; logs], before: vec![0; logs] }
    }
}

impl<D: FlashDevice> PageMap<D> {
    /// The log that a hint names; log 0 for hints above all logs. Without streams hints mean nothing.
    #[inline]
    pub(super) fn log_of(&mut self, hint: Hint) -> usize {
        let logs = self.host_bytes.all.len();
        if logs == 1 {
            return 0;
        }
        let log = usize::from(hint.0);
        let log = if log < logs { log } else { 0 };
        let (domains, own) = self.of_log(log);
        if !self.domains[domains.start].logs[own].active {
            self.activate(domains, own);
        }
        log
    }

    /// The domains that have a log of the host, and its number there.
    #[inline]
    fn of_log(&self, log: usize) -> (Range<usize>, usize) {
        match &self.groups {
            None => (0..self.domains.len(), log),
            Some(groups) => {
                let (group, log) = groups.of_log(log);
                (group..group + 1, log)
            }
        }
    }

    #[cold]
    fn activate(&mut self, domains: Range<usize>, log: usize) {
        for domain in &mut self.domains[domains] {
            domain.activate(log);
        }
    }

    /// The reclaim group that takes a page which the host writes to a log, and the log's number there: its
    /// own group while that has room, else the one that holds least.
    #[inline(never)]
    pub(super) fn place_in_group(&mut self, span: PageSpan, log: usize) -> (usize, usize) {
        let old = self.map.get(span.lpn);
        let groups = self.groups.as_deref_mut().expect("a device with reclaim groups");
        let (group, own) = groups.choose(log, old, span.len.into(), |group| self.domains[group].most_live());
        if !self.domains[group].logs[own].active {
            self.activate(group..group + 1, own);
        }
        (group, own)
    }
}

impl<D: FlashDevice> Logs for PageMap<D> {
    fn logs(&self) -> u16 {
        self.host_bytes.all.len() as u16
    }

    /// Sums over the domains; a piece of a striped log has a part in each, so the fullest gives the count.
    fn log_status(&self, log: u16) -> LogStatus {
        let log = usize::from(log);
        let Some(written) = self.host_bytes.all.get(log) else { return LogStatus::default() };
        let host_bytes = written - self.host_bytes.before[log];
        let block_bytes = u64::from(self.pages_per_block) * u64::from(self.page_bytes);
        let spilled_bytes = self.groups.as_ref().map_or(0, |groups| groups.spilled(log));
        let mut status = LogStatus { host_bytes, spilled_bytes, ..LogStatus::default() };
        let (domains, log) = self.of_log(log);
        for domain in &self.domains[domains] {
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
        let (domains, log) = self.of_log(log.into());
        let infos = &mut self.blocks.infos;
        let domains = self.domains[domains].iter_mut();
        let pages: u64 = domains.map(|domain| domain.renew(log, infos, self.seq)).sum();
        let total: u64 = self.domains.iter().map(|domain| u64::from(domain.blocks)).sum();
        assert!(pages <= total * u64::from(self.pages_per_block), "log {log} gave up {pages} pages");
        Ok(pages * u64::from(self.page_bytes))
    }
}
