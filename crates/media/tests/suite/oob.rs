//! Layers with an OOB of their own: one of objects, and one that keeps nothing.

use nandscape_core::{
    BlockId, Capabilities, Cause, FlashDevice, FlashError, FlashState, Geometry, Issue, OutOfBand, Ppn,
    SimTime,
};
use nandscape_media::{Breakable, Fifo, Medium, Nand, NandOptions, Scheduler, Timed, Timing};

const GEOMETRY: Geometry = Geometry {
    channels: 1,
    dies_per_channel: 1,
    planes_per_die: 1,
    blocks_per_plane: 4,
    pages_per_block: 8,
    page_bytes: 4096,
    sector_bytes: 512,
    oob_bytes: 64,
};

const TIMING: Timing =
    Timing { read_ns: 1, program_ns: 10, erase_ns: 50, channel_bytes_per_s: 1_000_000_000, command_ns: 0 };

/// Whose bytes a page of an object has.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Object {
    id: u64,
    offset: u64,
    transaction: u64,
    rest: [u64; 2],
}

impl OutOfBand for Object {
    type Page = (u64, u64);
    type Block = u64;

    const BYTES: usize = 40;
    const ERASED: (u64, u64) = (u64::MAX, 0);
    const TORN: Self = Self { id: 0, offset: 0, transaction: 0, rest: [0; 2] };

    fn is_erased(page: &(u64, u64)) -> bool {
        *page == Self::ERASED
    }

    fn split(&self) -> ((u64, u64), u64) {
        ((self.id, self.offset), self.transaction)
    }

    fn joined((id, offset): (u64, u64), transaction: u64) -> Self {
        Self { id, offset, transaction, rest: [0; 2] }
    }

    fn encode(&self, bytes: &mut [u8]) {
        let words = [self.id, self.offset, self.transaction, self.rest[0], self.rest[1]];
        for (bytes, word) in bytes.chunks_exact_mut(8).zip(words) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
    }

    fn decode(bytes: &[u8]) -> Self {
        let word = |at: usize| u64::from_le_bytes(bytes[8 * at..8 * at + 8].try_into().unwrap());
        Self { id: word(0), offset: word(1), transaction: word(2), rest: [word(3), word(4)] }
    }
}

/// A layer that knows by its write pointers what every page holds.
impl OutOfBand for Nothing {
    type Page = ();
    type Block = ();

    const BYTES: usize = 0;
    const ERASED: () = ();
    const TORN: Self = Self;

    fn is_erased((): &()) -> bool {
        false
    }

    fn split(&self) -> ((), ()) {
        ((), ())
    }

    fn joined((): (), (): ()) -> Self {
        Self
    }

    fn encode(&self, _: &mut [u8]) {}

    fn decode(_: &[u8]) -> Self {
        Self
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Nothing;

fn options(stores_data: bool) -> NandOptions {
    NandOptions {
        capabilities: Capabilities { stores_data, ..Capabilities::default() },
        ..NandOptions::default()
    }
}

fn object(page: u32) -> Object {
    Object { id: 7, offset: u64::from(page) * 4096, transaction: 100 + u64::from(page), rest: [1, 2] }
}

fn device<O: OutOfBand>(stores_data: bool) -> Timed<Nand<O>, Fifo> {
    Timed::new(Nand::with_oob(GEOMETRY, &options(stores_data)).unwrap(), Fifo::new(&GEOMETRY, &TIMING))
}

#[test]
fn a_device_with_bytes_gives_an_object_back_whole() {
    let mut device = device::<Object>(true);
    let issue = Issue::new(SimTime(0), Cause::Host);
    for page in 0..8 {
        device.program(Ppn(page), object(page), 4096, Some(&[page as u8; 4096]), issue).unwrap();
    }
    for page in 0..8 {
        let mut data = [0xff; 4096];
        let read = device.read(Ppn(page), 4096, Some(&mut data), issue).unwrap();
        assert_eq!((read.oob, data), (object(page), [page as u8; 4096]));
    }
    let whole: &dyn FlashState = &device;
    assert_eq!(whole.tally().totals.programs, 8, "what looks at devices does not ask for their OOB");
}

#[test]
fn a_device_without_bytes_keeps_what_the_layer_wants_kept() {
    let mut device = device::<Object>(false);
    let issue = Issue::new(SimTime(0), Cause::Host);
    for page in 0..3 {
        device.program(Ppn(page), object(page), 4096, None, issue).unwrap();
    }
    let read = device.read(Ppn(2), 4096, None, issue).unwrap();
    let kept = Object { transaction: 100, rest: [0; 2], ..object(2) };
    assert_eq!(read.oob, kept, "the transaction is that of the block's first page");
}

#[test]
fn a_flipped_bit_of_an_object_is_found() {
    for bit in 0..Object::BYTES as u64 * 8 {
        let mut nand = Nand::<Object>::with_oob(GEOMETRY, &options(true)).unwrap();
        nand.program(Ppn(0), object(0), Some(&[1; 4096])).unwrap();
        assert!(nand.rot(Ppn(0), 8 * 4096 + bit), "bit {bit} is stored");
        assert_eq!(nand.read(Ppn(0), None), Err(FlashError::Damaged { page: Ppn(0) }), "bit {bit}");
    }
}

#[test]
fn a_layer_without_oob_has_the_rules_all_the_same() {
    for stores_data in [false, true] {
        let mut nand = Nand::<Nothing>::with_oob(GEOMETRY, &options(stores_data)).unwrap();
        nand.program(Ppn(0), Nothing, None).unwrap();
        assert_eq!(nand.read(Ppn(0), None), Ok(Nothing));
        assert_eq!(nand.read(Ppn(1), None), Err(FlashError::Erased { page: Ppn(1) }));
        assert_eq!(nand.program(Ppn(0), Nothing, None), Err(FlashError::NotErased { page: Ppn(0) }));
        nand.tear_program(Ppn(1)).unwrap();
        let torn = nand.read(Ppn(1), None);
        assert_eq!(
            torn.is_err(),
            stores_data,
            "a medium without bytes has no mark for a torn page: {torn:?}"
        );
        nand.erase(BlockId(0)).unwrap();
        assert_eq!(nand.read(Ppn(0), None), Err(FlashError::Erased { page: Ppn(0) }));
    }
}

#[test]
#[should_panic(expected = "only with an OOB that marks erased ones")]
fn pages_in_any_order_need_a_mark() {
    let capabilities = Capabilities { out_of_order_program: true, ..Capabilities::default() };
    let _ = Nand::<Nothing>::with_oob(GEOMETRY, &NandOptions { capabilities, ..NandOptions::default() });
}
