//! Zoned namespaces to put a layer on, and a layer as the crash harness wants it.

use nandscape_core::command::Payload;
use nandscape_core::rng::{below, seeded};
use nandscape_core::{
    Allocation, AnyDevice, BlockCommand, Capabilities, Command, Cost, Deferral, Extent, FlashLayer,
    FlashState, Ftl, FtlError, FtlResult, FtlStats, Geometry, Hint, Info, Inspect, LogStatus, Logs, Lpn,
    Mapping, NamespaceError, NamespaceResult, Oob, Op, Params, Ppn, SimTime, Subsystem, Token,
};
use nandscape_ftl::{Journal, JournalOptions, PageMap, page_map};
use nandscape_hostftl::zone_map::{self, Sabotage};
use nandscape_hostftl::{DmZoned, ZoneMap, dm_zoned};
use nandscape_media::faults::FaultPlan;
use nandscape_media::{Fifo, Nand, NandOptions, Scheduler, Timed, Timing};
use nandscape_namespace::SharedDevice;
use nandscape_namespace::sets::share;
use nandscape_namespace::zones::{
    self, BlockPart, CommandTimes, FlashRules, ImpliedOob, ZoneLayout, ZoneSetup, ZoneStartError,
    ZoneStripes, ZonedNamespace, with_conventional,
};
use nandscape_testkit::crash::{CrashDevice, Handle};
use std::collections::BTreeMap;

/// Times of a device that is not there for its times.
pub const TIMING: Timing = Timing {
    read_ns: 50_000,
    program_ns: 500_000,
    erase_ns: 3_000_000,
    command_ns: 0,
    channel_bytes_per_s: 800_000_000,
};

/// Zones of `pages` pages over `dies` dies with a block of each.
pub fn setup(geometry: &Geometry, dies: u32, pages: u32, limits: Option<u32>) -> ZoneSetup {
    let blocks = u64::from(pages) * u64::from(geometry.sectors_per_page());
    ZoneSetup {
        name: "zns".to_owned(),
        layout: ZoneLayout {
            zones: 0,
            conventional: 0,
            size: blocks.next_power_of_two(),
            capacity: blocks,
            block_bytes: geometry.sector_bytes,
            max_active: limits,
            max_open: limits,
            extension_bytes: 0,
            random: None,
            reads_across: false,
        },
        stripes: ZoneStripes {
            dies,
            blocks_per_die: pages.div_ceil(dies * geometry.pages_per_block),
            stripe_pages: 1,
        },
        rules: FlashRules { erases_at_reset: true, completes_stripe: false, pads: false, is_volatile: false },
        conventional_blocks: 0,
        spare_blocks: 2,
        times: CommandTimes::default(),
    }
}

pub fn params(pairs: &[(&str, &str)]) -> Params {
    params_of(&zone_map::INFO, pairs)
}

pub fn params_of(info: &Info, pairs: &[(&str, &str)]) -> Params {
    let typed: BTreeMap<_, _> =
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    Params::check(info, "host.", &typed).unwrap_or_else(|error| panic!("{error}"))
}

/// Zones of a device that keeps bytes and can be cut off.
pub type Crashing = ZonedNamespace<CrashDevice, Oob>;

/// The same with conventional zones, over a page map with a journal.
pub type Mixed = ZonedNamespace<BlockPart, Oob>;

/// Zones of which some are conventional; the device keeps bytes or not.
pub fn mixed(device: AnyDevice, setup: &ZoneSetup) -> Result<Mixed, String> {
    let stores_data = device.capabilities().stores_data;
    let layout = &setup.layout;
    let bytes = u64::from(layout.conventional) * layout.capacity * u64::from(layout.block_bytes);
    let layer = |part: BlockPart| {
        let params = params_of(&page_map::INFO, &[("capacity", &bytes.to_string())]);
        let layer: Box<dyn Ftl + Send> = if stores_data {
            let journal = Journal::open(part, JournalOptions::default());
            let journal = journal.map_err(|error| Failed(format!("journal: {error}")))?;
            Box::new(PageMap::new(journal, &params).map_err(|error| Failed(format!("page map: {error}")))?)
        } else {
            Box::new(PageMap::new(part, &params).map_err(|error| Failed(format!("page map: {error}")))?)
        };
        Ok(layer)
    };
    let shared: SharedDevice = share(device);
    with_conventional(shared, setup, layer, zones::Sabotage::None).map_err(|Failed(error)| error)
}

struct Failed(String);

impl From<ZoneStartError> for Failed {
    fn from(error: ZoneStartError) -> Self {
        Self(format!("zones: {error}"))
    }
}

/// A wholly erased device that keeps bytes.
pub fn nand(geometry: Geometry) -> Nand {
    let capabilities = Capabilities { stores_data: true, partial_transfer: true, ..Capabilities::default() };
    Nand::new(geometry, &NandOptions { capabilities, ..NandOptions::default() }).expect("no bad blocks")
}

/// Zones of a device without bytes.
pub type TimedZones = ZonedNamespace<Timed<Nand<ImpliedOob>, Fifo>, ImpliedOob>;

pub fn timed(geometry: Geometry, setup: &ZoneSetup, timing: &Timing) -> TimedZones {
    let capabilities = Capabilities { partial_transfer: true, ..Capabilities::default() };
    let options = NandOptions { capabilities, ..NandOptions::default() };
    let nand = Nand::with_oob(geometry.checked().expect("a shape"), &options).expect("no bad blocks");
    setup.check(&geometry).unwrap_or_else(|error| panic!("{error}"));
    ZonedNamespace::new(Timed::new(nand, Fifo::new(&geometry, timing)), setup).expect("a new device")
}

/// Submits a block command.
pub fn submit<S: Subsystem>(
    subsystem: &mut S,
    op: Op,
    extent: Extent,
    payload: Payload<'_>,
) -> NamespaceResult<Token> {
    let command = BlockCommand::new(op, extent, Hint(0));
    Ok(subsystem.submit(0, command.into(), payload, SimTime::ZERO)?.done)
}

/// A layer of the host as a translation layer, for the crash harness.
pub struct AsFtl<T>(pub T);

impl AsFtl<ZoneMap<Crashing>> {
    pub fn open(
        device: CrashDevice,
        setup: &ZoneSetup,
        params: &Params,
        sabotage: Sabotage,
    ) -> Result<Self, String> {
        let zoned = ZonedNamespace::new(device, setup).map_err(|error| format!("zones: {error}"))?;
        let map = ZoneMap::with_sabotage(zoned, params, sabotage).map_err(|error| error.to_string())?;
        Ok(Self(map))
    }
}

impl AsFtl<DmZoned<Mixed>> {
    pub fn open_chunks(
        device: AnyDevice,
        setup: &ZoneSetup,
        params: &Params,
        sabotage: dm_zoned::Sabotage,
    ) -> Result<Self, String> {
        let layer = DmZoned::with_sabotage(mixed(device, setup)?, params, sabotage);
        Ok(Self(layer.map_err(|error| error.to_string())?))
    }
}

impl<T: Subsystem> AsFtl<T> {
    fn submit(&mut self, command: BlockCommand, payload: Payload<'_>, at: SimTime) -> FtlResult<Token> {
        flash_error(self.0.submit(0, Command::Block(command), payload, at).map(|answer| answer.done))
    }
}

fn flash_error<T>(result: NamespaceResult<T>) -> FtlResult<T> {
    result.map_err(|error| match error {
        NamespaceError::Ftl(error) => error,
        error => panic!("a block device is refused something by the zones: {error}"),
    })
}

impl<T: Subsystem + FlashLayer> Mapping for AsFtl<T> {
    fn logical_pages(&self) -> u64 {
        self.0.logical_pages()
    }

    fn page_bytes(&self) -> u32 {
        self.0.page_bytes()
    }

    fn lookup(&self, lpn: Lpn) -> Option<Ppn> {
        self.0.lookup(lpn)
    }

    fn allocation(&self, extent: Extent) -> Allocation {
        Mapping::allocation(&self.0, extent)
    }

    fn stats(&self) -> FtlStats {
        self.0.stats()
    }

    fn reset_stats(&mut self) {
        self.0.reset_stats();
    }

    fn cost(&self) -> Cost {
        self.0.cost()
    }

    fn check_invariants(&self) {
        Subsystem::check_invariants(&self.0);
    }
}

impl<T: Subsystem + FlashLayer> Logs for AsFtl<T> {
    fn logs(&self) -> u16 {
        self.0.logs()
    }

    fn log_status(&self, log: u16) -> LogStatus {
        self.0.log_status(log)
    }
}

impl<T: Subsystem + FlashLayer> Deferral for AsFtl<T> {}

impl<T: Subsystem + FlashLayer> FlashLayer for AsFtl<T> {
    fn device(&self) -> &dyn FlashState {
        let Inspect { layers, .. } = self.0.inspect();
        layers.first().expect("a layer").device()
    }

    fn read_only(&self) -> Option<&'static str> {
        FlashLayer::read_only(&self.0)
    }
}

nandscape_core::no_state!(impl [T: Subsystem + FlashLayer] AsFtl<T>: "a layer of a test");

impl<T: Subsystem + FlashLayer> Ftl for AsFtl<T> {
    fn read(&mut self, extent: Extent, data: Option<&mut [u8]>, at: SimTime) -> FtlResult<Token> {
        let payload = data.map_or(Payload::None, Payload::Read);
        self.submit(BlockCommand::new(Op::Read, extent, Hint(0)), payload, at)
    }

    fn write(&mut self, extent: Extent, data: Option<&[u8]>, hint: Hint, at: SimTime) -> FtlResult<Token> {
        let payload = data.map_or(Payload::None, Payload::Write);
        self.submit(BlockCommand::new(Op::Write, extent, hint), payload, at)
    }

    fn trim(&mut self, extent: Extent, at: SimTime) -> FtlResult<Token> {
        self.submit(BlockCommand::new(Op::Trim, extent, Hint(0)), Payload::None, at)
    }

    fn write_zeroes(&mut self, extent: Extent, at: SimTime) -> FtlResult<Token> {
        self.submit(BlockCommand::new(Op::WriteZeroes, extent, Hint(0)), Payload::None, at)
    }

    fn flush(&mut self, at: SimTime) -> FtlResult<Token> {
        self.submit(BlockCommand::FLUSH, Payload::None, at)
    }

    fn shutdown(&mut self, at: SimTime) -> FtlResult<Token> {
        flash_error(self.0.shutdown(at))
    }

    fn idle(&mut self, at: SimTime, until: SimTime) -> FtlResult<()> {
        flash_error(self.0.idle(at, until))
    }

    fn device_mut(&mut self) -> &mut dyn FlashState {
        unimplemented!("only commands reach the zones from above")
    }
}

/// Asserts that an error is one of a device that takes no more writes.
pub fn is_read_only(error: &NamespaceError) -> bool {
    matches!(error, NamespaceError::Ftl(FtlError::ReadOnly { .. }))
}

/// Every byte as it must be.
pub fn check<S: Subsystem>(layer: &mut S, bytes: &[u8], context: &str) {
    let mut found = vec![0xa5; bytes.len()];
    submit(layer, Op::Read, Extent::new(0, bytes.len() as u64), Payload::Read(&mut found)).unwrap();
    let wrong = found.iter().zip(bytes).position(|(found, expected)| found != expected);
    assert_eq!(wrong.map(|at| (at, found[at], bytes[at])), None, "byte, found, expected; {context}");
}

/// Random writes of pages while blocks fail, with starts in between, until a layer is read-only, which some
/// of the seeds must reach. What was answered stays.
pub fn outlives_failing_zones<S: Subsystem>(
    open: impl Fn(Nand, &FaultPlan) -> (S, Handle),
    (plan, nand): (&FaultPlan, &Nand),
    seeds: u64,
    (steps, steps_per_start): (u64, u64),
    page: u64,
) {
    let mut ended = 0;
    for seed in 0..seeds {
        let (mut layer, mut handle) = open(nand.clone(), &FaultPlan { seed, ..plan.clone() });
        let mut rng = seeded(seed);
        let capacity = layer.namespaces()[0].capacity_bytes;
        let mut bytes = vec![0u8; capacity as usize];
        for step in 0..steps {
            let context = format!("seed {seed}, step {step}");
            let offset = below(&mut rng, capacity / page) * page;
            let data = vec![step as u8 | 1; page as usize];
            match submit(&mut layer, Op::Write, Extent::new(offset, page), Payload::Write(&data)) {
                Ok(_) => bytes[offset as usize..][..page as usize].copy_from_slice(&data),
                Err(error) => {
                    assert!(is_read_only(&error), "{error}: {context}");
                    ended += 1;
                    break;
                }
            }
            if step % 500 == 499 {
                check(&mut layer, &bytes, &context);
                layer.check_invariants();
            }
            if step % steps_per_start == steps_per_start - 1 {
                submit(&mut layer, Op::Flush, Extent::new(0, 0), Payload::None).unwrap();
                drop(layer);
                (layer, handle) =
                    open(handle.nand(), &FaultPlan { seed: seed ^ (step << 8), ..plan.clone() });
                check(&mut layer, &bytes, &context);
            }
        }
        check(&mut layer, &bytes, "at the end");
    }
    assert!(ended > 0, "no device ended");
}
