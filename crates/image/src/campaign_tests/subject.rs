//! What stands over an image whose file fails: a translation layer over a journal, or a store of objects.

use super::store::{Disk, ModelStore, Sabotage};
use crate::flash::Flash;
use crate::header::Header;
use crate::layout::version_for;
use crate::start::{format, head, load};
use nandscape_core::command::Payload;
use nandscape_core::{
    AnyDevice, Capabilities, Clocked as _, Extent, Ftl, Geometry, Hint, ObjectCommand, ObjectId, Oob,
    OutOfBand, Params, SimTime, Subsystem as _,
};
use nandscape_ftl::{Journal, JournalOptions};
use nandscape_media::{NandOptions, Scheduler as _, Serial, Timed, Timing};
use nandscape_object::Oftl;
use nandscape_object::oftl::{self, ObjectOob};
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
    fn is_of_objects(&self) -> bool {
        self.layer == oftl::INFO.name
    }

    fn header(&self) -> Header {
        let oob_bytes = if self.is_of_objects() { ObjectOob::BYTES } else { Oob::BYTES };
        Header {
            version: version_for(oob_bytes as u32),
            uuid: [7; 16],
            geometry: self.geometry,
            oob_bytes: oob_bytes as u32,
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
    pub fn open<O: OutOfBand>(&self, disk: &Disk, boot: u8) -> Result<Flash<ModelStore, O>, String> {
        let store = disk.open(self.header().layout().data as usize, self.used());
        load(store, self.header(), [boot; 16], Path::new("model")).map_err(|error| error.to_string())
    }

    /// What stands over a flash, as a process that is started makes it.
    fn start(&self, disk: &Disk, boot: u8) -> Result<Box<dyn Layer>, String> {
        if self.is_of_objects() {
            self.objects(self.open(disk, boot)?)
        } else {
            self.pages(self.open(disk, boot)?)
        }
    }

    fn timed<O: OutOfBand>(&self, mut flash: Flash<ModelStore, O>) -> Timed<Flash<ModelStore, O>, Serial> {
        // Few, so that space is given up.
        flash.spare_blocks = 2;
        Timed::new(flash, Serial::new(&self.geometry, &TIMING))
    }

    fn objects(&self, flash: Flash<ModelStore, ObjectOob>) -> Result<Box<dyn Layer>, String> {
        let params = Params::check(&oftl::INFO, "ftl.", &self.typed).expect("valid parameters");
        let store = Oftl::new(self.timed(flash), &params).map_err(|error| error.to_string())?;
        Ok(Box::new(Objects(store)))
    }

    fn pages(&self, flash: Flash<ModelStore>) -> Result<Box<dyn Layer>, String> {
        let device: AnyDevice = Box::new(self.timed(flash));
        let options = JournalOptions { interval: Some(40), ..JournalOptions::default() };
        let journal = Journal::open(device, options).map_err(|error| format!("journal: {error}"))?;
        let entry = nandscape_ftl::find(self.layer).expect("registered");
        let params = Params::check(entry.info, "ftl.", &self.typed).expect("valid parameters");
        Ok(Box::new((entry.build)(Box::new(journal), &params).map_err(|error| error.to_string())?))
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
        let layer = if self.is_of_objects() {
            self.objects(format(store, header, [1; 16], &[], &NandOptions::default()).expect("nothing fails"))
        } else {
            self.pages(format(store, header, [1; 16], &[], &NandOptions::default()).expect("nothing fails"))
        };
        let mut layer = layer.expect("a new image has room");
        layer.make();
        let volumes = layer.volumes();
        let mut subject =
            ImageSubject { stack: self.clone(), disk, boot: 1, layer: Some(layer), volumes: volumes.clone() };
        for (volume, units) in volumes.into_iter().enumerate() {
            for unit in 0..units {
                let mut bytes = [0; UNIT];
                fill(volume, unit, 1, &mut bytes);
                subject.write(volume, unit..unit + 1, &bytes, false).expect("nothing fails");
            }
        }
        subject.end().expect("nothing fails");
        let mut medium = subject.disk.medium();
        medium.settle();
        medium
    }
}

/// What stands over the image, in volumes of units.
trait Layer {
    /// Units of each volume.
    fn volumes(&self) -> Vec<usize>;

    /// Makes the volumes, on a new image.
    fn make(&mut self) {}

    fn read(&mut self, volume: usize, extent: Extent, bytes: &mut [u8]) -> Result<(), String>;

    fn write(&mut self, volume: usize, extent: Extent, bytes: &[u8]) -> Result<(), String>;

    fn trim(&mut self, volume: usize, extent: Extent) -> Result<(), String>;

    fn flush(&mut self, volume: usize) -> Result<(), String>;

    fn idle(&mut self);

    fn shutdown(&mut self) -> Result<(), String>;
}

fn done<T, E: ToString>(outcome: Result<T, E>) -> Result<(), String> {
    outcome.map(drop).map_err(|error| error.to_string())
}

impl Layer for Box<dyn Ftl + Send> {
    fn volumes(&self) -> Vec<usize> {
        vec![self.logical_pages() as usize * self.device().geometry().page_bytes as usize / UNIT]
    }

    fn read(&mut self, _: usize, extent: Extent, bytes: &mut [u8]) -> Result<(), String> {
        let at = self.device().idle_from();
        done(Ftl::read(&mut **self, extent, Some(bytes), at))
    }

    fn write(&mut self, _: usize, extent: Extent, bytes: &[u8]) -> Result<(), String> {
        let (at, hint) =
            (self.device().idle_from(), Hint((extent.offset / UNIT as u64) as u16 % self.logs()));
        done(Ftl::write(&mut **self, extent, Some(bytes), hint, at))
    }

    fn trim(&mut self, _: usize, extent: Extent) -> Result<(), String> {
        let at = self.device().idle_from();
        done(self.write_zeroes(extent, at))
    }

    fn flush(&mut self, _: usize) -> Result<(), String> {
        let at = self.device().idle_from();
        done(Ftl::flush(&mut **self, at))
    }

    fn idle(&mut self) {
        let at = self.device().idle_from();
        let _ = Ftl::idle(&mut **self, at, SimTime(at.0 + 10_000_000));
    }

    fn shutdown(&mut self) -> Result<(), String> {
        let at = self.device().idle_from();
        done(Ftl::shutdown(&mut **self, at))
    }
}

/// Objects as volumes.
struct Objects(Oftl<Timed<Flash<ModelStore, ObjectOob>, Serial>>);

impl Objects {
    fn submit(&mut self, command: ObjectCommand, payload: Payload<'_>) -> Result<(), String> {
        let at = self.0.idle_from();
        done(self.0.submit(0, command.into(), payload, at))
    }
}

impl Layer for Objects {
    fn volumes(&self) -> Vec<usize> {
        vec![24, 16, 12]
    }

    fn make(&mut self) {
        for object in (0..3).map(ObjectId) {
            let create = ObjectCommand::Create { object, hint: Hint::default() };
            self.submit(create, Payload::None).expect("nothing fails");
        }
    }

    fn read(&mut self, volume: usize, extent: Extent, bytes: &mut [u8]) -> Result<(), String> {
        self.submit(ObjectCommand::Read { object: ObjectId(volume as u64), extent }, Payload::Read(bytes))
    }

    fn write(&mut self, volume: usize, extent: Extent, bytes: &[u8]) -> Result<(), String> {
        let write = ObjectCommand::Write { object: ObjectId(volume as u64), extent, hint: None };
        self.submit(write, Payload::Write(bytes))
    }

    fn trim(&mut self, volume: usize, extent: Extent) -> Result<(), String> {
        self.submit(ObjectCommand::Punch { object: ObjectId(volume as u64), extent }, Payload::None)
    }

    fn flush(&mut self, volume: usize) -> Result<(), String> {
        self.submit(ObjectCommand::Flush { object: Some(ObjectId(volume as u64)) }, Payload::None)
    }

    fn idle(&mut self) {
        let at = self.0.idle_from();
        let _ = self.0.idle(at, SimTime(at.0 + 10_000_000));
    }

    fn shutdown(&mut self) -> Result<(), String> {
        let at = self.0.idle_from();
        done(self.0.shutdown(at))
    }
}

/// A stack and its file.
pub struct ImageSubject {
    stack: Stack,
    disk: Disk,
    /// The start of the machine.
    boot: u8,
    layer: Option<Box<dyn Layer>>,
    volumes: Vec<usize>,
}

impl ImageSubject {
    /// A stack over a file, which [`Stack::fresh`] has made for it.
    pub fn new(stack: &Stack, fresh: &Medium, volumes: &[usize], faults: &Faults) -> Self {
        let disk = Disk::new(fresh.clone(), faults, stack.sabotage);
        Self { stack: stack.clone(), disk, boot: 2, layer: None, volumes: volumes.to_vec() }
    }

    /// Units of each volume, of one that was started.
    pub fn capacity(&self) -> Vec<usize> {
        self.layer.as_deref().expect("started").volumes()
    }

    fn layer(&mut self) -> Result<&mut dyn Layer, String> {
        Ok(&mut **self.layer.as_mut().ok_or("not started")?)
    }
}

fn extent(units: &Range<usize>) -> Extent {
    Extent::new((units.start * UNIT) as u64, (units.len() * UNIT) as u64)
}

impl Subject for ImageSubject {
    fn volumes(&self) -> Vec<usize> {
        self.volumes.clone()
    }

    fn start(&mut self) -> Result<(), String> {
        // Another mount has another id.
        self.boot += u8::from(self.disk.was_gone());
        self.layer = Some(self.stack.start(&self.disk, self.boot)?);
        Ok(())
    }

    fn read(&mut self, volume: usize, units: Range<usize>, bytes: &mut [u8]) -> Result<(), String> {
        self.layer()?.read(volume, extent(&units), bytes)
    }

    fn write(
        &mut self,
        volume: usize,
        units: Range<usize>,
        bytes: &[u8],
        is_durable: bool,
    ) -> Result<(), String> {
        self.layer()?.write(volume, extent(&units), bytes)?;
        if is_durable { self.flush(volume) } else { Ok(()) }
    }

    fn trim(&mut self, volume: usize, units: Range<usize>) -> Result<(), String> {
        self.layer()?.trim(volume, extent(&units))
    }

    fn flush(&mut self, volume: usize) -> Result<(), String> {
        self.layer()?.flush(volume)
    }

    fn idle(&mut self) {
        if let Ok(layer) = self.layer() {
            layer.idle();
        }
    }

    fn end(&mut self) -> Result<(), String> {
        let done = self.layer()?.shutdown();
        // Closes the image, as the end of a server does, however the shutdown went.
        self.layer = None;
        done
    }

    fn kill(&mut self, is_power_lost: bool) {
        self.disk.kill();
        self.layer = None;
        if is_power_lost {
            self.disk.lose_power();
            self.boot += 1;
        }
    }

    fn allows(&self, _: &[Fault]) -> Allowed {
        Allowed { in_service: true, ..Allowed::default() }
    }
}
