//! The journal by itself, below the smallest of all layers, and broken on purpose.

use nandscape_ftl::{Journal, JournalOptions};
use nandscape_media::faults::FaultPlan;
use nandscape_testkit::crash::reference::Log;
use nandscape_testkit::crash::{CrashDevice, Effort, Setup, nand};

/// The smallest layer over a journal.
pub fn setup(name: &str, options: JournalOptions) -> Setup<'static> {
    let open = move |device: CrashDevice| -> Result<nandscape_testkit::crash::Layer, String> {
        let journal = Journal::open(device, options).map_err(|error| format!("journal: {error}"))?;
        let log = Log::over_journal(journal).map_err(|error| error.to_string())?;
        Ok(Box::new(log))
    };
    Setup {
        name: name.to_owned(),
        nand: nand((2, 14, 8, 512), false),
        open: Box::new(open),
        plan: FaultPlan::default(),
        needs_flush: false,
        damage: None,
        effort: Effort::default(),
    }
}
