//! Conventional zones over flash: random commands against plain bytes with restarts, cuts at every operation,
//! and what the layer of the zones is told of cause and order.

use super::flash;
use nandscape_core::command::Payload;
use nandscape_core::rng::{below, seeded};
use nandscape_core::zone::{ZoneAction, ZoneCommand, ZoneError, ZoneState};
use nandscape_core::{
    Allocation, BlockCommand, Capabilities, Cause, Clocked, Command, Cost, Deferral, Extent, FlashLayer,
    FlashState, Ftl, FtlResult, FtlStats, Geometry, Hint, Info, Logs, Lpn, Mapping, NamespaceError, Oob, Op,
    Params, Ppn, SimTime, Subsystem, Token, ZoneReports,
};
use nandscape_ftl::{Journal, JournalOptions, PageMap, page_map};
use nandscape_media::faults::FaultPlan;
use nandscape_media::{Fifo, Nand, NandOptions, Scheduler, Timed};
use nandscape_namespace::SharedDevice;
use nandscape_namespace::sets::share;
use nandscape_namespace::zones::{
    BlockPart, Sabotage, ZoneLayout, ZoneSetup, ZoneStartError, ZonedNamespace, with_conventional,
};
use nandscape_testkit::crash::{
    Buffer, CrashDevice, Effort, Handle, Setup, campaign, points_from_environment,
};
use std::collections::BTreeMap;

/// Two dies of two planes of 16 blocks of 6 pages; a page is four logical blocks.
const GEOMETRY: Geometry = Geometry {
    channels: 2,
    dies_per_channel: 1,
    planes_per_die: 2,
    blocks_per_plane: 16,
    pages_per_block: 6,
    page_bytes: 2048,
    sector_bytes: 512,
    oob_bytes: 64,
};

/// Bytes of a zone that can be written, and from one zone to the next.
const CAPACITY: u64 = 88 * 512;
const SIZE: u64 = 128 * 512;

/// Two conventional zones of 22 pages in 5 blocks of each plane, and zones with write pointers behind them.
fn setup() -> ZoneSetup {
    let setup = flash::setup();
    let layout = ZoneLayout { conventional: 2, reads_across: true, ..setup.layout };
    ZoneSetup { layout, conventional_blocks: 5, spare_blocks: 4, ..setup }
}

type Zoned = ZonedNamespace<BlockPart, Oob>;

struct Failed(String);

impl From<ZoneStartError> for Failed {
    fn from(error: ZoneStartError) -> Self {
        Self(error.to_string())
    }
}

fn params(info: &Info) -> Params {
    let typed = BTreeMap::from([("capacity".to_owned(), (2 * CAPACITY).to_string())]);
    Params::check(info, "ftl.", &typed).unwrap()
}

fn zoned(shared: SharedDevice, stores_data: bool, setup: &ZoneSetup) -> Result<Zoned, String> {
    let layer = |part: BlockPart| {
        let params = params(&page_map::INFO);
        let layer: Box<dyn Ftl + Send> = if stores_data {
            let journal =
                Journal::open(part, JournalOptions::default()).map_err(|error| Failed(error.to_string()))?;
            Box::new(PageMap::new(journal, &params).map_err(|error| Failed(error.to_string()))?)
        } else {
            Box::new(PageMap::new(part, &params).map_err(|error| Failed(error.to_string()))?)
        };
        Ok(layer)
    };
    with_conventional(shared, setup, layer, Sabotage::None).map_err(|Failed(error)| error)
}

fn nand() -> Nand {
    let capabilities = Capabilities { stores_data: true, partial_transfer: true, ..Capabilities::default() };
    Nand::new(GEOMETRY, &NandOptions { capabilities, ..NandOptions::default() }).unwrap()
}

fn open(nand: Nand) -> (Zoned, Handle) {
    let (device, handle) = CrashDevice::new(nand, Buffer::None, &FaultPlan::default(), false);
    (zoned(share(device), true, &setup()).unwrap(), handle)
}

fn submit(zoned: &mut Zoned, op: Op, extent: Extent, payload: Payload<'_>) -> Result<Token, NamespaceError> {
    let command = BlockCommand::new(op, extent, Hint::default());
    zoned.submit(0, command.into(), payload, SimTime::ZERO).map(|answer| answer.done)
}

fn check(zoned: &mut Zoned, bytes: &[Vec<u8>], context: &str) {
    for (zone, expected) in (0..).zip(bytes) {
        let mut found = vec![0xa5; SIZE as usize];
        submit(zoned, Op::Read, Extent::new(zone * SIZE, SIZE), Payload::Read(&mut found)).unwrap();
        let wrong = found.iter().zip(expected).position(|(found, expected)| found != expected);
        assert_eq!(wrong, None, "byte of zone {zone}; {context}");
    }
}

#[test]
fn bytes_are_written_anywhere_in_conventional_zones_and_at_write_pointers_in_others() {
    let (mut device, mut handle) = open(nand());
    let shape = device.namespaces()[0].zones.unwrap();
    assert_eq!((shape.conventional, shape.capacity), (2, CAPACITY));
    let mut bytes = vec![vec![0u8; SIZE as usize]; shape.zones as usize];
    let mut rng = seeded(5);
    let mut last = 0u8;
    let mut moved = 0;
    for step in 0..4_000 {
        let context = format!("step {step}");
        last = last % 250 + 1;
        let zone = below(&mut rng, 4);
        let is_conventional = zone < 2;
        let from = below(&mut rng, 88) * 512;
        let len = ((1 + below(&mut rng, 12)) * 512).min(CAPACITY - from);
        let written = u64::from(is_conventional) * from
            + u64::from(!is_conventional) * device.table().written(zone as u32) * 512;
        let len = len.min(CAPACITY - written);
        let extent = Extent::new(zone * SIZE + written, len);
        let range = written as usize..(written + len) as usize;
        match below(&mut rng, 100) {
            0..70 if len > 0 => {
                let data = vec![last; len as usize];
                submit(&mut device, Op::Write, extent, Payload::Write(&data)).unwrap();
                bytes[zone as usize][range].fill(last);
            }
            70..76 if is_conventional => {
                submit(&mut device, Op::WriteZeroes, extent, Payload::None).unwrap();
                bytes[zone as usize][range].fill(0);
            }
            76..82 if is_conventional => {
                // Whole pages of the space of the layer, which begins with zone 0.
                submit(&mut device, Op::Trim, extent, Payload::None).unwrap();
                let (first, count) = Extent::new(written, len).whole_pages(2048);
                bytes[zone as usize][(first * 2048) as usize..][..(count * 2048) as usize].fill(0);
            }
            82..88 if !is_conventional => {
                let reset = ZoneCommand::Manage { action: ZoneAction::Reset, zone: Some(zone * SIZE) };
                device.submit(0, Command::Zone(reset), Payload::None, SimTime::ZERO).unwrap();
                bytes[zone as usize].fill(0);
            }
            88..92 => drop(submit(&mut device, Op::Flush, Extent::new(0, 0), Payload::None).unwrap()),
            97..100 => {
                device.shutdown(SimTime::ZERO).unwrap();
                moved += FlashLayer::device(&device).counters().get(Cause::Gc).programs;
                (device, handle) = open(handle.nand());
                check(&mut device, &bytes, &context);
            }
            _ => {}
        }
        if step % 100 == 0 {
            Subsystem::check_invariants(&device);
            check(&mut device, &bytes, &context);
        }
    }
    // A read goes over the border of the two kinds; a write does not leave its zone.
    let mut found = vec![0; 2 * SIZE as usize];
    submit(&mut device, Op::Read, Extent::new(SIZE, 2 * SIZE), Payload::Read(&mut found)).unwrap();
    assert_eq!(found, [&*bytes[1], &*bytes[2]].concat());
    for op in [Op::Write, Op::WriteZeroes] {
        let error = submit(&mut device, op, Extent::new(87 * 512, 1024), Payload::None).unwrap_err();
        assert_eq!(error, ZoneError::Boundary.into());
    }
    let reset = ZoneCommand::Manage { action: ZoneAction::Reset, zone: None };
    device.submit(0, Command::Zone(reset), Payload::None, SimTime::ZERO).unwrap();
    assert_eq!(device.zone(0, 1).state, ZoneState::NotWritePointer);
    bytes[2..].iter_mut().for_each(|zone| zone.fill(0));
    check(&mut device, &bytes, "after a reset of all");
    assert!(moved > 0, "collection moved no page");
    let cost = device.cost();
    assert_eq!(cost.usable_bytes, u64::from(shape.zones) * CAPACITY);
    // All but those that the journal keeps.
    let blocks = u64::from(GEOMETRY.blocks());
    assert!(cost.total_blocks < blocks && cost.total_blocks > blocks * 3 / 4, "{cost:?}");
}

#[test]
fn commands_of_conventional_zones_have_the_cause_and_order_of_the_host() {
    let nand = Nand::new(GEOMETRY, &NandOptions::default()).unwrap();
    let shared: SharedDevice = share(Timed::new(nand, Fifo::new(&GEOMETRY, &crate::TIMING)));
    let mut device = zoned(shared, false, &setup()).unwrap();
    let mut write = |page: u64, cause, after| {
        device.control().issue.unwrap().issue(cause, after);
        let done = submit(&mut device, Op::Write, Extent::new(page * 2048, 2048), Payload::None).unwrap();
        device.completion(done).unwrap()
    };
    // A token of this scheduler is a time.
    let later = SimTime(1_000_000_000);
    assert!(write(0, Cause::Host, Token::NONE) < later);
    assert!(write(1, Cause::Merge, Token(later.0)) > later);
    assert!(write(2, Cause::Host, Token::NONE) > SimTime::ZERO);
    let counters = *FlashLayer::device(&device).counters();
    assert_eq!((counters.get(Cause::Host).programs, counters.get(Cause::Merge).programs), (2, 1));
    Subsystem::check_invariants(&device);
    device.reset_counters(SimTime::ZERO);
    assert_eq!(FlashLayer::device(&device).counters().total().programs, 0);
}

/// Conventional zones as a translation layer, for the crash harness. Each flush also writes a zone with a
/// write pointer, so that both kinds are under way.
struct AsFtl(Zoned);

impl AsFtl {
    fn inside(extent: Extent) -> impl Iterator<Item = (Extent, usize)> {
        let mut byte = extent.offset;
        std::iter::from_fn(move || {
            let (zone, from) = (byte / CAPACITY, byte % CAPACITY);
            let len = (CAPACITY - from).min(extent.end() - byte);
            let at = (byte - extent.offset) as usize;
            byte += len;
            (len > 0).then(|| (Extent::new(zone * SIZE + from, len), at))
        })
    }

    fn submit(&mut self, command: BlockCommand, payload: Payload<'_>, at: SimTime) -> FtlResult<Token> {
        let done = self.0.submit(0, command.into(), payload, at).map(|answer| answer.done);
        done.map_err(|error| match error {
            NamespaceError::Ftl(error) => error,
            error => panic!("{command:?} is refused: {error}"),
        })
    }

    fn each(&mut self, op: Op, extent: Extent, at: SimTime) -> FtlResult<Token> {
        let mut done = Token::NONE;
        for (part, _) in Self::inside(extent) {
            let one = self.submit(BlockCommand::new(op, part, Hint::default()), Payload::None, at)?;
            done = self.0.join(done, one);
        }
        Ok(done)
    }

    /// Writes a block at the write pointer of a zone, or resets it.
    fn disturb(&mut self, at: SimTime) {
        let zone = self.0.zone(0, 3);
        // A device that ran out of blocks may refuse either.
        let _ = if let Some(pointer) = zone.write_pointer {
            let write = BlockCommand::new(Op::Write, Extent::new(pointer, 512), Hint::default());
            self.0.submit(0, write.into(), Payload::Write(&[7; 512]), at)
        } else {
            let reset = ZoneCommand::Manage { action: ZoneAction::Reset, zone: Some(zone.start) };
            self.0.submit(0, Command::Zone(reset), Payload::None, at)
        };
    }
}

impl Mapping for AsFtl {
    fn logical_pages(&self) -> u64 {
        2 * CAPACITY / 2048
    }

    fn page_bytes(&self) -> u32 {
        2048
    }

    fn lookup(&self, lpn: Lpn) -> Option<Ppn> {
        self.0.lookup(lpn)
    }

    fn allocation(&self, extent: Extent) -> Allocation {
        let (part, _) = Self::inside(extent).next().expect("a page");
        Mapping::allocation(&self.0, part)
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

impl Logs for AsFtl {}

impl Deferral for AsFtl {}

impl FlashLayer for AsFtl {
    fn device(&self) -> &dyn FlashState {
        FlashLayer::device(&self.0)
    }

    fn read_only(&self) -> Option<&'static str> {
        self.0.read_only()
    }
}

nandscape_core::no_state!(impl [] AsFtl: "a layer of a test");

impl Ftl for AsFtl {
    fn read(&mut self, extent: Extent, mut data: Option<&mut [u8]>, at: SimTime) -> FtlResult<Token> {
        let mut done = Token::NONE;
        for (part, from) in Self::inside(extent) {
            let payload = data
                .as_deref_mut()
                .map_or(Payload::None, |data| Payload::Read(&mut data[from..from + part.len as usize]));
            let one = self.submit(BlockCommand::new(Op::Read, part, Hint::default()), payload, at)?;
            done = self.0.join(done, one);
        }
        Ok(done)
    }

    fn write(&mut self, extent: Extent, data: Option<&[u8]>, hint: Hint, at: SimTime) -> FtlResult<Token> {
        let mut done = Token::NONE;
        for (part, from) in Self::inside(extent) {
            // The zones take whole logical blocks.
            let (first, end) = (part.offset / 512 * 512, part.end().next_multiple_of(512));
            let whole = Extent::new(first, end - first);
            let mut bytes = vec![0; whole.len as usize];
            if whole != part {
                let read = BlockCommand::new(Op::Read, whole, Hint::default());
                self.submit(read, Payload::Read(&mut bytes), at)?;
            }
            let data = &data.expect("the device keeps bytes")[from..from + part.len as usize];
            bytes[(part.offset - first) as usize..][..data.len()].copy_from_slice(data);
            let one = self.submit(BlockCommand::new(Op::Write, whole, hint), Payload::Write(&bytes), at)?;
            done = self.0.join(done, one);
        }
        Ok(done)
    }

    fn trim(&mut self, extent: Extent, at: SimTime) -> FtlResult<Token> {
        let (first, count) = extent.whole_pages(2048);
        self.each(Op::Trim, Extent::new(first * 2048, count * 2048), at)
    }

    fn write_zeroes(&mut self, extent: Extent, at: SimTime) -> FtlResult<Token> {
        let mut done = Token::NONE;
        for end in extent.ragged_ends(2048) {
            let zeroes = vec![0; end.len as usize];
            let one = self.write(end, Some(&zeroes), Hint::default(), at)?;
            done = self.0.join(done, one);
        }
        let (first, count) = extent.whole_pages(2048);
        let dropped = self.each(Op::WriteZeroes, Extent::new(first * 2048, count * 2048), at)?;
        Ok(self.0.join(done, dropped))
    }

    fn flush(&mut self, at: SimTime) -> FtlResult<Token> {
        self.disturb(at);
        self.submit(BlockCommand::FLUSH, Payload::None, at)
    }

    fn shutdown(&mut self, at: SimTime) -> FtlResult<Token> {
        self.0.shutdown(at).map_err(|error| match error {
            NamespaceError::Ftl(error) => error,
            error => panic!("shutdown: {error}"),
        })
    }

    fn idle(&mut self, at: SimTime, until: SimTime) -> FtlResult<()> {
        self.0.idle(at, until).expect("nothing to refuse");
        Ok(())
    }

    fn device_mut(&mut self) -> &mut dyn FlashState {
        unimplemented!("only commands reach the zones from above")
    }
}

fn case(name: &str, plan: FaultPlan) -> Setup<'static> {
    let open = |device| Ok(Box::new(AsFtl(zoned(share(device), true, &setup())?)) as _);
    let effort = Effort { steps: 40, ..Effort::default() };
    let name = name.to_owned();
    Setup { name, nand: nand(), open: Box::new(open), plan, needs_flush: true, damage: None, effort }
}

#[test]
fn conventional_zones_survive_every_cut() {
    let command = "cargo test -p nandscape-namespace --test suite zones::conventional::conventional_zones_survive_every_cut -- --exact --nocapture";
    let failing = FaultPlan { program: 0.01, erase: 0.02, ..FaultPlan::default() };
    let cases = [case("conventional", FaultPlan::default()), case("conventional failing", failing)];
    let tally = campaign("conventional zones", &cases, points_from_environment(10_000, 100), command);
    assert!(std::env::var("CRASH_CASE").is_ok() || tally.erases > 0, "{tally}");
}
