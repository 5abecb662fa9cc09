//! What fails below zones, and what becomes of them.

use super::body::Fault;
use super::metadata::{LOG_ENDED, Record};
use super::namespace::ZonedNamespace;
use super::tag::ZoneOob;
use nandscape_core::{FlashDevice, FlashError, FtlError, NamespaceError, NamespaceResult, SimTime, Token};

impl<O: ZoneOob, D: FlashDevice<O>> ZonedNamespace<D, O> {
    /// A zone could not be written: it can be read from now on.
    #[cold]
    pub(super) fn failed(&mut self, zone: u32, fault: Fault, at: SimTime) -> NamespaceError {
        if let Fault::Flash(FlashError::ReadOnly { reason }) = fault {
            self.read_only = Some(reason);
        }
        if self.table.fail_writes(zone).is_some() {
            let records = [
                Record::Finished { zone, written: self.body.blocks_of(self.body.programmed(zone)) },
                Record::Failed { zone, is_offline: false },
            ];
            // Where the log fails too, a start finds out again.
            let _ = self.record(&records, at);
        }
        fault.into()
    }

    /// Logs records; a device that cannot is read-only from then on.
    pub(super) fn record(&mut self, records: &[Record], at: SimTime) -> NamespaceResult<Token> {
        self.body.log(records, &self.table, at).map_err(|fault| self.log_failed(fault))
    }

    #[cold]
    pub(super) fn log_failed(&mut self, fault: Fault) -> NamespaceError {
        if fault != Fault::NoBlock {
            return fault.into();
        }
        self.read_only = Some(LOG_ENDED);
        FtlError::ReadOnly { reason: LOG_ENDED }.into()
    }
}
