//! A translation layer over a journal over an image whose file fails.

use super::store::{Disk, ModelStore, Sabotage};
use crate::flash::Flash;
use crate::header::Header;
use crate::layout::VERSION;
use crate::start::{format, head, load};
use nandscape_core::{
    AnyDevice, Capabilities, Extent, Ftl, Geometry, Hint, Oob, OutOfBand as _, Params, SimTime,
};
use nandscape_ftl::{Journal, JournalOptions};
use nandscape_media::{Scheduler as _, Serial, Timed, Timing};
use nandscape_testkit::campaign::{Allowed, Fault, Faults, Medium, Subject, fill};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

/// Bytes of a unit.
const UNIT: usize = 512;

const TIMING: Timing = Timing {
    read_ns: 10_000,
    program_ns: 100_000,
    erase_ns: 400_000,
    channel_bytes_per_s: 1_000_000_000,
    command_ns: 0,
};

/// What is built.
#[derive(Clone, Debug)]
pub struct Stack {
    pub layer: &'static str,
    pub typed: BTreeMap<String, String>,
    pub geometry: Geometry,
    pub sabotage: Sabotage,
}

impl Stack {
    fn header(&self) -> Header {
        Header {
            version: VERSION,
            uuid: [7; 16],
            geometry: self.geometry,
            oob_bytes: Oob::BYTES as u32,
            endurance: None,
            capabilities: Capabilities {
                stores_data: true,
                out_of_order_program: self.layer.contains("sbm"),
                ..Capabilities::default()
            },
            created_s: 0,
            config: String::new(),
        }
    }

    fn used(&self) -> usize {
        let layout = self.header().layout();
        (layout.page_table
            + layout.to_second_record
            + u64::from(self.geometry.pages()) * u64::from(layout.record_bytes)) as usize
    }

    /// The flash on a disk, as a process that is started opens it.
    pub fn open(&self, disk: &Disk, boot: u8) -> Result<Flash<ModelStore>, String> {
        let store = disk.open(self.header().layout().data as usize, self.used());
        load(store, self.header(), [boot; 16], Path::new("model")).map_err(|error| error.to_string())
    }

    /// The layer over a flash that was just made or opened.
    fn over(&self, mut flash: Flash<ModelStore>) -> Result<Box<dyn Ftl + Send>, String> {
        // Few, so that space is given up.
        flash.spare_blocks = 2;
        let device: AnyDevice = Box::new(Timed::new(flash, Serial::new(&self.geometry, &TIMING)));
        let options = JournalOptions { interval: Some(40), ..JournalOptions::default() };
        let journal = Journal::open(device, options).map_err(|error| format!("journal: {error}"))?;
        let entry = nandscape_ftl::find(self.layer).expect("registered");
        let params = Params::check(entry.info, "ftl.", &self.typed).expect("valid parameters");
        (entry.build)(Box::new(journal), &params).map_err(|error| error.to_string())
    }

    /// A file with a layer in which every unit holds version 1, durably and cleanly closed.
    pub fn fresh(&self) -> Medium {
        let header = self.header();
        let layout = header.layout();
        let mut medium = Medium::new(layout.file_bytes);
        medium.poke(0, &head(&header));
        // The tables take space from the beginning.
        medium.poke(0, &{
            let mut tables = vec![0; self.used().next_multiple_of(4096)];
            medium.peek(0, &mut tables);
            tables
        });
        let disk = Disk::new(medium, &Faults::default(), Sabotage::None);
        let store = disk.open(layout.data as usize, self.used());
        let flash = format(store, header, [1; 16], &[]).expect("nothing fails");
        let mut subject = ImageSubject { stack: self.clone(), disk, boot: 1, ftl: None, units: 0 };
        let ftl = self.over(flash).expect("a new image has room");
        subject.units = units_of(&*ftl);
        subject.ftl = Some(ftl);
        for unit in 0..subject.units {
            let mut bytes = [0; UNIT];
            fill(0, unit, 1, &mut bytes);
            subject.write(0, unit..unit + 1, &bytes, false).expect("nothing fails");
        }
        subject.end().expect("nothing fails");
        let mut medium = subject.disk.medium();
        medium.settle();
        medium
    }
}

fn units_of(ftl: &dyn Ftl) -> usize {
    ftl.logical_pages() as usize * ftl.device().geometry().page_bytes as usize / UNIT
}

/// A stack and its file.
pub struct ImageSubject {
    stack: Stack,
    disk: Disk,
    /// The start of the machine.
    boot: u8,
    ftl: Option<Box<dyn Ftl + Send>>,
    units: usize,
}

impl ImageSubject {
    /// A stack over a file, which [`Stack::fresh`] has made for it.
    pub fn new(stack: &Stack, fresh: &Medium, units: usize, faults: &Faults) -> Self {
        let disk = Disk::new(fresh.clone(), faults, stack.sabotage);
        Self { stack: stack.clone(), disk, boot: 2, ftl: None, units }
    }

    /// Units, of one that was started.
    pub fn capacity(&self) -> usize {
        units_of(self.ftl.as_deref().expect("started"))
    }

    fn ftl(&mut self) -> Result<(&mut (dyn Ftl + Send), SimTime), String> {
        let ftl = self.ftl.as_deref_mut().ok_or("not started")?;
        let at = ftl.device().idle_from();
        Ok((ftl, at))
    }
}

fn extent(units: &Range<usize>) -> Extent {
    Extent::new((units.start * UNIT) as u64, (units.len() * UNIT) as u64)
}

impl Subject for ImageSubject {
    fn volumes(&self) -> Vec<usize> {
        vec![self.units]
    }

    fn start(&mut self) -> Result<(), String> {
        // Another mount has another id.
        self.boot += u8::from(self.disk.was_gone());
        let flash = self.stack.open(&self.disk, self.boot)?;
        self.ftl = Some(self.stack.over(flash)?);
        Ok(())
    }

    fn read(&mut self, _: usize, units: Range<usize>, bytes: &mut [u8]) -> Result<(), String> {
        let (ftl, at) = self.ftl()?;
        ftl.read(extent(&units), Some(bytes), at).map(drop).map_err(|error| error.to_string())
    }

    fn write(
        &mut self,
        volume: usize,
        units: Range<usize>,
        bytes: &[u8],
        is_durable: bool,
    ) -> Result<(), String> {
        let (ftl, at) = self.ftl()?;
        let hint = Hint(units.start as u16 % ftl.logs());
        ftl.write(extent(&units), Some(bytes), hint, at).map_err(|error| error.to_string())?;
        if is_durable { self.flush(volume) } else { Ok(()) }
    }

    fn trim(&mut self, _: usize, units: Range<usize>) -> Result<(), String> {
        let (ftl, at) = self.ftl()?;
        ftl.write_zeroes(extent(&units), at).map(drop).map_err(|error| error.to_string())
    }

    fn flush(&mut self, _: usize) -> Result<(), String> {
        let (ftl, at) = self.ftl()?;
        ftl.flush(at).map(drop).map_err(|error| error.to_string())
    }

    fn idle(&mut self) {
        if let Ok((ftl, at)) = self.ftl() {
            let _ = ftl.idle(at, SimTime(at.0 + 10_000_000));
        }
    }

    fn end(&mut self) -> Result<(), String> {
        let (ftl, at) = self.ftl()?;
        let done = ftl.shutdown(at).map(drop).map_err(|error| error.to_string());
        // Closes the image, as the end of a server does, however the shutdown went.
        self.ftl = None;
        done
    }

    fn kill(&mut self, is_power_lost: bool) {
        self.disk.kill();
        self.ftl = None;
        if is_power_lost {
            self.disk.lose_power();
            self.boot += 1;
        }
    }

    fn allows(&self, _: &[Fault]) -> Allowed {
        Allowed { in_service: true, ..Allowed::default() }
    }
}
