//! What each option of the event-driven scheduler does, on timelines worked out by hand. 1 ns a byte; an
//! array read takes 50 ns, a program 700 ns, an erase 3000 ns.

use nandscape_core::{Clocked, Completion, Geometry, Ppn, Sender, SimTime, Token};
use nandscape_media::{
    Fifo, GcOrder, HostLink, Intake, Options, ReadFirst, Scheduler, Suspension, TimedOp, Timing, WriteBuffer,
};

/// 2 channels of 2 dies of 2 blocks of 6 pages: units 0 and 2 share channel 0.
const GEOMETRY: Geometry = Geometry {
    channels: 2,
    dies_per_channel: 2,
    planes_per_die: 1,
    blocks_per_plane: 2,
    pages_per_block: 6,
    page_bytes: 1000,
    sector_bytes: 1000,
    oob_bytes: 0,
};

pub const TIMING: Timing = Timing {
    read_ns: 50,
    program_ns: 700,
    erase_ns: 3000,
    channel_bytes_per_s: 1_000_000_000,
    command_ns: 0,
};

const LINK: HostLink =
    HostLink { bytes_per_s: 1_000_000_000, read_front_ns: 4, write_front_ns: 5, completion_ns: 3 };

fn page(unit: u32, page: u32) -> Ppn {
    Ppn(unit * 12 + page)
}

pub fn read(unit: u32, number: u32) -> TimedOp {
    TimedOp::Read { page: page(unit, number), transfer: 100 }
}

pub fn program(unit: u32, number: u32, transfer: u32) -> TimedOp {
    TimedOp::Program { page: page(unit, number), transfer, held: 0 }
}

pub fn erase(unit: u32, block: u32) -> TimedOp {
    TimedOp::Erase { page: page(unit, block * 6), pages: 0 }
}

pub fn buffer(bytes: u64) -> WriteBuffer {
    WriteBuffer { bytes, is_volatile: true, ..WriteBuffer::default() }
}

/// A scheduler whose operations are tagged in the order of submission.
pub struct Rig {
    pub scheduler: ReadFirst,
    tags: u64,
}

fn sender(by_host: bool) -> Sender {
    if by_host { Sender::Host } else { Sender::Device }
}

impl Rig {
    pub fn new(options: &Options) -> Self {
        Self::timed(&TIMING, options)
    }

    pub fn timed(timing: &Timing, options: &Options) -> Self {
        Self { scheduler: ReadFirst::with_options(&GEOMETRY, timing, options), tags: 0 }
    }

    /// Submits at a time, to which events are run first.
    pub fn submit(&mut self, op: TimedOp, by_host: bool, at: u64) -> Token {
        let token = self.scheduler.submit_as(op, sender(by_host), SimTime(at), Token::NONE);
        self.watch(token);
        token
    }

    pub fn watch(&mut self, token: Token) {
        self.scheduler.watch(token, self.tags);
        self.tags += 1;
    }

    pub fn host(&mut self, op: TimedOp, at: u64) -> Token {
        self.submit(op, true, at)
    }

    /// What completed up to then, as tag and time.
    pub fn until(&mut self, at: u64) -> Vec<(u64, u64)> {
        let mut out: Vec<Completion> = Vec::new();
        self.scheduler.advance(SimTime(at), &mut out);
        out.iter().map(|done| (done.tag, done.at.0)).collect()
    }

    /// Completion times by tag.
    pub fn times(&mut self) -> Vec<u64> {
        let mut done = self.until(u64::MAX);
        done.sort_unstable();
        assert_eq!(self.scheduler.outstanding(), 0);
        done.iter().map(|(_, at)| *at).collect()
    }
}

#[test]
fn reads_of_a_channel_queue_at_its_command_core_bus_and_decoder() {
    let mut options = Options { core_ns: 10, decode_ns: 20, data_out_ns: 5, ..Options::default() };
    for contention in [true, false] {
        options.contention = contention;
        let mut rig = Rig::new(&options);
        for unit in [0, 2, 1] {
            rig.host(read(unit, 0), 0);
        }
        // Core to 10, array to 60, data to 165, decoder to 185; the second is in the core to 20, its data
        // follows on the bus.
        let second = if contention { 165 + 105 + 20 } else { 185 };
        assert_eq!(rig.times(), [185, second, 185], "contention {contention}");
    }
}

#[test]
fn a_read_takes_the_bus_at_the_next_border_of_a_burst() {
    // Data ready at 280, or at 300, which is a border; or never while a page is in one piece.
    for (burst, at, read_ns, program_ns) in
        [(100, 230, 400, 1800), (100, 250, 400, 1800), (0, 230, 1100, 1700)]
    {
        let mut rig = Rig::new(&Options { burst_bytes: burst, ..Options::default() });
        rig.host(program(0, 0, 1000), 0);
        rig.host(read(2, 6), at);
        assert_eq!(rig.times(), [program_ns, read_ns], "burst {burst}, read at {at}");
    }
}

#[test]
fn program_data_holds_off_for_reads_of_its_channel_but_not_for_ever() {
    for (hold_off_ns, program_ns, read_ns) in [
        // The data of the read is out at 150.
        (300, 150 + 1000 + 700, 150),
        // Begins at 30, is interrupted at 130 for data that was ready at 50.
        (30, 130 + 100 + 900 + 700, 230),
    ] {
        let mut rig = Rig::new(&Options { hold_off_ns, burst_bytes: 100, ..Options::default() });
        rig.host(program(0, 0, 1000), 0);
        rig.host(read(2, 6), 0);
        rig.host(program(1, 0, 1000), 0);
        assert_eq!(rig.times(), [program_ns, read_ns, 1700], "hold-off {hold_off_ns}");
    }
}

fn suspension() -> Suspension {
    Suspension {
        programs: true,
        erases: false,
        stop_ns: 20,
        erase_stop_ns: 20,
        resume_ns: 10,
        run_ns: 100,
        tail_ns: 50,
        most: 1,
        erase_most: 1,
    }
}

#[test]
fn a_read_stops_a_program_after_its_least_run_and_only_so_often() {
    let mut rig = Rig::new(&Options { suspension: suspension(), ..Options::default() });
    // Array from 100 to 800.
    rig.host(program(0, 0, 100), 0);
    rig.host(read(0, 6), 150);
    rig.host(read(0, 7), 400);
    // Stops at 200 and stands at 220; the read is out at 370; 600 are left from 380 on. The second read has
    // to wait for that.
    assert_eq!(rig.times(), [980, 370, 980 + 150]);
}

#[test]
fn reads_that_wait_at_a_stopped_program_all_go_first() {
    let mut rig = Rig::new(&Options { suspension: suspension(), ..Options::default() });
    rig.host(program(0, 0, 100), 0);
    rig.host(read(0, 6), 250);
    rig.host(read(0, 7), 300);
    // Stops at once: 550 were left. Two reads of 150 from 270 on, then 10.
    assert_eq!(rig.times(), [270 + 300 + 10 + 550, 420, 570]);
}

#[test]
fn nothing_stops_in_its_last_stretch_nor_an_erase_unless_it_may() {
    let mut rig = Rig::new(&Options { suspension: suspension(), ..Options::default() });
    rig.host(program(0, 0, 100), 0);
    rig.host(read(0, 6), 750);
    rig.host(erase(1, 0), 0);
    rig.host(read(1, 6), 1000);
    assert_eq!(rig.times(), [800, 950, 3000, 3150]);
    let erases = Suspension { erases: true, ..suspension() };
    let mut rig = Rig::new(&Options { suspension: erases, ..Options::default() });
    rig.host(erase(1, 0), 0);
    rig.host(read(1, 6), 1000);
    assert_eq!(rig.times(), [1170 + 10 + 2000, 1170]);
}

#[test]
fn a_read_of_the_layer_stops_nothing() {
    let mut rig = Rig::new(&Options { suspension: suspension(), ..Options::default() });
    rig.host(program(0, 0, 100), 0);
    rig.submit(read(0, 6), false, 250);
    assert_eq!(rig.times(), [800, 950]);
}

#[test]
fn pages_of_a_unit_are_programmed_together_when_the_last_is_there() {
    let mut rig = Rig::new(&Options { program_pages: 3, ..Options::default() });
    rig.submit(program(0, 0, 1000), false, 0);
    rig.submit(program(0, 1, 1000), false, 0);
    // Something else is under way.
    rig.host(erase(1, 0), 0);
    assert_eq!(rig.until(499), []);
    rig.submit(program(0, 2, 1000), false, 500);
    let unit = 500 + 3000 + 700;
    assert_eq!(rig.times(), [unit, unit, 3000, unit]);
}

#[test]
fn a_unit_short_of_pages_is_programmed_when_nothing_else_can_happen() {
    let mut rig = Rig::new(&Options { program_pages: 3, ..Options::default() });
    rig.submit(program(0, 0, 1000), false, 0);
    rig.host(read(1, 6), 400);
    // Event by event, as a replay does.
    let mut done = Vec::new();
    while let Some(at) = rig.scheduler.next_event() {
        done.extend(rig.until(at.0));
    }
    assert_eq!(done, [(1, 550), (0, 550 + 1000 + 700)]);
    // The rest of the unit is an operation of its own.
    rig.submit(program(0, 1, 1000), false, 3000);
    rig.submit(program(0, 2, 1000), false, 3000);
    assert_eq!(rig.times(), [3000 + 2000 + 700; 2]);
}

#[test]
fn nobody_waits_so_a_unit_may_stay_short() {
    let mut rig = Rig::new(&Options { program_pages: 3, buffer: buffer(6000), ..Options::default() });
    rig.host(program(0, 0, 1000), 0);
    assert_eq!(rig.until(u64::MAX), [(0, 0)]);
    assert_eq!(rig.scheduler.outstanding(), 1);
    assert_eq!(rig.scheduler.next_event(), None);
}

#[test]
fn writes_are_answered_in_the_buffer_and_wait_for_room_in_it() {
    let mut rig = Rig::new(&Options { buffer: buffer(2000), ..Options::default() });
    for number in 0..4 {
        rig.host(program(0, number, 1000), 0);
    }
    // Programs end at 1700, 3400, ...; each makes room for one more page.
    assert_eq!(rig.until(u64::MAX), [(0, 0), (1, 0), (2, 1700), (3, 3400)]);
    // A page of the layer takes no room and completes with its program.
    rig.submit(program(1, 0, 1000), false, 10_000);
    rig.host(program(1, 6, 1000), 10_000);
    assert_eq!(rig.until(u64::MAX), [(5, 10_000), (4, 11_700)]);
}

#[test]
fn the_link_delays_and_queues_in_either_direction() {
    let mut rig = Rig::new(&Options { buffer: buffer(4000), host: LINK, ..Options::default() });
    rig.host(program(0, 0, 1000), 0);
    rig.host(program(1, 0, 1000), 0);
    // On the link from 5 to 1005 and to 2005.
    assert_eq!(rig.until(u64::MAX), [(0, 1008), (1, 2008)]);
    rig.host(read(0, 6), 10_000);
    rig.host(read(1, 6), 10_000);
    // Array from 10,004, data out at 10,154, on the link to 10,254 and to 10,354.
    assert_eq!(rig.until(u64::MAX), [(2, 10_257), (3, 10_357)]);
    rig.submit(read(0, 6), false, 20_000);
    assert_eq!(rig.until(u64::MAX), [(4, 20_150)], "the layer's own reads stay inside");
}

/// A page takes 10 us, and two pages are taken at once.
fn slow_intake() -> Options {
    let intake = Intake { bytes_per_s: 100_000_000, turn: 500, ..Intake::default() };
    Options { buffer: buffer(2000), intake, ..Options::default() }
}

#[test]
fn the_controller_takes_a_buffer_full_at_once_and_its_rate_in_the_long_run() {
    let mut rig = Rig::new(&slow_intake());
    for unit in 0..4 {
        rig.host(program(unit, 0, 1000), 0);
    }
    assert_eq!(rig.until(50_000), [(0, 0), (1, 0), (2, 10_000), (3, 20_000)]);
}

#[test]
fn the_layer_has_one_turn_at_the_controller_between_commands_of_the_host() {
    let mut rig = Rig::new(&slow_intake());
    // Two pages at once; of the others half a page each 5 us. The last 1.7 us are bus and array.
    for unit in 0..4 {
        rig.submit(program(unit, 0, 1000), false, 0);
    }
    rig.until(6000);
    rig.host(program(0, 6, 1000), 6000);
    rig.until(21_000);
    // Comes while the first half of the fourth page is taken: the second half waits for it.
    rig.host(program(1, 6, 1000), 21_000);
    let seen = rig.until(50_000);
    assert_eq!(seen, [(5, 35_000), (3, 41_700)]);
}

#[test]
fn a_page_that_waits_for_the_read_of_one_in_the_controller_has_a_turn_of_its_own() {
    let intake = Intake { turn: 1000, ..slow_intake().intake };
    let mut rig = Rig::new(&Options { program_pages: 2, intake, ..slow_intake() });
    for unit in 0..3 {
        rig.submit(program(unit, 0, 1000), false, 0);
    }
    // The third page is in the controller after 10 us: it is read there, and the read ends at once.
    let read = rig.submit(read(2, 0), false, 0);
    let copy = rig.scheduler.submit_as(program(3, 0, 1000), sender(false), SimTime(0), read);
    rig.watch(copy);
    let seen = rig.until(u64::MAX);
    assert!(seen.contains(&(3, 10_000)), "{seen:?}");
    assert!(seen.contains(&(4, 22_700)), "10 us later, then a busy bus and the array: {seen:?}");
}

/// Times from one answer to the next of 4000 pages of the host that the controller takes as fast as it can.
fn intake_gaps(spread: f64) -> Vec<u64> {
    let mut options = slow_intake();
    options.intake.spread = spread;
    let mut rig = Rig::new(&options);
    let run = |rig: &mut Rig, at| {
        for number in 0..4000 {
            rig.host(program(number % 4, number / 4 % 6, 1000), at);
        }
        let times: Vec<u64> = rig.until(u64::MAX).iter().map(|(_, at)| *at).collect();
        assert_eq!(times.len(), 4000);
        // The first are in the buffer at once.
        times[8..].windows(2).map(|pair| pair[1] - pair[0]).collect::<Vec<_>>()
    };
    let gaps = run(&mut rig, 0);
    rig.scheduler.reset(SimTime(1_000_000_000));
    assert_eq!(gaps, run(&mut rig, 1_000_000_000), "the same again after a reset");
    gaps
}

#[test]
fn the_time_that_the_controller_takes_varies_about_its_mean_by_the_share_that_is_exponential() {
    assert_eq!(intake_gaps(0.0), intake_gaps(0.0));
    assert!(intake_gaps(0.0).iter().all(|ns| *ns == 10_000));
    for spread in [0.5, 1.0] {
        let gaps = intake_gaps(spread);
        assert_eq!(gaps, intake_gaps(spread));
        let count = gaps.len() as f64;
        let mean = gaps.iter().sum::<u64>() as f64 / count;
        let variance = gaps.iter().map(|ns| (*ns as f64 - mean).powi(2)).sum::<f64>() / count;
        assert!((mean / 10_000.0 - 1.0).abs() < 0.03, "{spread}: a mean of {mean} ns");
        assert!((variance.sqrt() / 10_000.0 - spread).abs() < 0.05 * spread, "{spread}: {}", variance.sqrt());
    }
}

#[test]
fn without_a_buffer_a_write_is_answered_after_its_program() {
    let mut rig = Rig::new(&Options { host: LINK, ..Options::default() });
    rig.host(program(0, 0, 1000), 0);
    assert_eq!(rig.times(), [5 + 1000 + 1000 + 700 + 3]);
}

#[test]
fn a_page_in_the_buffer_is_read_without_the_flash() {
    let mut rig =
        Rig::new(&Options { program_pages: 3, buffer: buffer(6000), host: LINK, ..Options::default() });
    rig.host(program(0, 0, 1000), 0);
    rig.host(read(0, 0), 2000);
    assert_eq!(rig.until(u64::MAX), [(0, 1008), (1, 2000 + 4 + 100 + 3)]);
    // One whose data is still on its way is read when it is there.
    rig.host(program(0, 1, 1000), 5000);
    rig.host(read(0, 1), 5000);
    assert_eq!(rig.until(u64::MAX), [(2, 6008), (3, 6008 + 100 + 3)]);
}

#[test]
fn a_flush_waits_for_what_a_volatile_buffer_holds() {
    for is_volatile in [true, false] {
        let buffer = WriteBuffer { is_volatile, ..buffer(6000) };
        let mut rig = Rig::new(&Options { program_pages: 3, buffer, ..Options::default() });
        rig.host(program(0, 0, 1000), 0);
        rig.host(program(0, 1, 1000), 0);
        let token = rig.scheduler.barrier(SimTime(0));
        assert_eq!(token == Token::NONE, !is_volatile);
        rig.watch(token);
        let flushed = if is_volatile { 2700 } else { 0 };
        assert!(rig.until(u64::MAX).contains(&(2, flushed)), "volatile {is_volatile}");
        assert_eq!(rig.scheduler.barrier(SimTime(3000)), Token::NONE, "nothing to flush");
    }
}

#[test]
fn room_held_by_units_short_of_pages_is_freed_for_those_who_wait() {
    // A page of each of two blocks fills the buffer; what would complete their units waits outside.
    let mut rig = Rig::new(&Options { program_pages: 3, buffer: buffer(3000), ..Options::default() });
    for (unit, number) in [(0, 0), (0, 6), (1, 0), (1, 6), (0, 1), (0, 7)] {
        rig.host(program(unit, number, 1000), 0);
    }
    let times = rig.until(u64::MAX);
    assert_eq!(times.len(), 6, "{times:?}");
    assert_eq!(times[..3], [(0, 0), (1, 0), (2, 0)]);
}

#[test]
fn read_times_follow_the_page_type_and_program_times_the_word_line() {
    let mut rig = Rig::new(&Options { reads_ns: vec![40, 50, 60], ..Options::default() });
    for number in [0, 1, 2, 3, 6] {
        rig.host(read(number % 4, number), u64::from(number) * 1000);
    }
    assert_eq!(rig.times(), [140, 1150, 2160, 3140, 6140]);

    let spans = |options: &Options| -> Vec<u64> {
        let mut rig = Rig::new(options);
        let pages = (0..4).flat_map(|unit| (0..6).map(move |number| (unit, number)));
        for (index, (unit, number)) in pages.enumerate() {
            rig.host(program(unit, number, 100), index as u64 * 10_000);
        }
        rig.times().iter().enumerate().map(|(index, at)| at - index as u64 * 10_000 - 100).collect()
    };
    let lines = spans(&Options { program_spread: 0.1, ..Options::default() });
    assert_eq!(lines[..6], lines[18..], "the same on every die");
    assert!(lines.iter().all(|ns| (630..=770).contains(ns)) && lines[..6].iter().any(|ns| *ns != lines[0]));
    let each = spans(&Options { program_jitter: 0.1, ..Options::default() });
    assert_ne!(each[..6], each[18..], "each its own");
    assert!(each.iter().all(|ns| (630..=770).contains(ns)));
    assert_eq!(
        each,
        spans(&Options { program_jitter: 0.1, ..Options::default() }),
        "and the same every time"
    );
}

#[test]
fn a_second_page_register_lets_data_in_while_the_array_programs() {
    let mut rig = Rig::new(&Options { load_overlap: true, ..Options::default() });
    for number in 0..3 {
        rig.host(program(0, number, 300), 0);
    }
    // Loads end at 300, 600 and 1300 (the register is free again at 1000): the arrays run one behind the
    // other.
    assert_eq!(rig.times(), [1000, 1700, 2400]);
    let mut rig = Rig::new(&Options { load_overlap: true, ..Options::default() });
    rig.host(program(0, 0, 1000), 0);
    rig.host(program(0, 1, 1000), 0);
    assert_eq!(rig.times(), [1700, 2700], "the load is longer than the array");
}

#[test]
fn a_second_page_register_lets_data_out_while_the_array_reads() {
    for (read_overlap, command_ns, times) in [
        (false, 0, [150, 300, 450]),
        // The second array read ends at 100 and keeps its register until 150, when the third begins.
        (true, 0, [150, 250, 350]),
        // At 60 the command of the second read goes before the data of the first, at 170 that of the third.
        (true, 10, [170, 280, 380]),
    ] {
        let timing = Timing { command_ns, ..TIMING };
        let options = Options { read_overlap, ..Options::default() };
        let scheduler = ReadFirst::with_options(&GEOMETRY, &timing, &options);
        let mut rig = Rig { scheduler, tags: 0 };
        for number in 0..3 {
            rig.host(read(0, number), 0);
        }
        assert_eq!(rig.times(), times, "overlap {read_overlap}, command {command_ns}");
    }
}

#[test]
fn pages_of_a_row_on_several_planes_take_one_array_read() {
    let times = |numbers: &[u32], options: &Options| {
        let mut rig = Rig::new(options);
        for number in numbers {
            rig.host(read(0, *number), 0);
        }
        rig.times()
    };
    let rows = Options { read_pages: 2, ..Options::default() };
    // The page that was asked for first comes last, as with several planes of a die.
    assert_eq!(times(&[0, 1], &rows), [250, 150]);
    assert_eq!(times(&[0, 1], &Options::default()), [150, 300]);
    assert_eq!(times(&[1, 2], &rows), [150, 300], "two rows");
    assert_eq!(times(&[0, 0], &rows), [150, 300], "one page twice");
    assert_eq!(times(&[0, 7], &rows), [150, 300], "two blocks");
    // A page far behind in the queue is not looked for.
    let behind = |others: usize| {
        let numbers: Vec<u32> = [0].into_iter().chain(std::iter::repeat_n(2, others)).chain([1]).collect();
        times(&numbers, &rows)[0]
    };
    assert_eq!([behind(63), behind(64)], [250, 150]);
    let both = Options { read_overlap: true, ..rows };
    // The second row is read to 100, and its data follows the first's at 250.
    assert_eq!(times(&[0, 1, 2, 3], &both), [250, 150, 450, 350]);
}

#[test]
fn a_paced_buffer_takes_writes_evenly() {
    let gaps = |is_paced: bool| {
        let buffer = WriteBuffer { is_paced, ..buffer(12_000) };
        let mut rig = Rig::new(&Options { program_pages: 3, buffer, ..Options::default() });
        // Two dies of one channel, half of whose pages are written at once, and again after erases.
        for round in 0..6 {
            for block in 0..2 {
                for number in 0..6 {
                    for unit in [0, 2] {
                        rig.host(program(unit, block * 6 + number, 1000), 0);
                    }
                }
            }
            if round < 5 {
                for (unit, block) in [(0, 0), (0, 1), (2, 0), (2, 1)] {
                    rig.submit(erase(unit, block), false, 0);
                }
            }
        }
        let mut answers: Vec<u64> = rig.until(u64::MAX).iter().map(|(_, at)| *at).collect();
        answers.sort_unstable();
        answers.windows(2).map(|two| two[1] - two[0]).collect::<Vec<u64>>()
    };
    let [paced, free] = [gaps(true), gaps(false)];
    assert_eq!(paced[..11], free[..11], "half of an empty buffer fills at once, and nothing is known yet");
    // The bus takes a page in 1000 ns. Without pacing three come in whenever a program ends.
    assert!(free[40..].iter().all(|gap| [0, 700, 1300, 1400, 1700, 3000].contains(gap)), "{free:?}");
    assert!(paced[40..].iter().all(|gap| (1..2000).contains(gap)), "{paced:?}");
    let [even, uneven] = [&paced, &free].map(|gaps| gaps.iter().sum::<u64>());
    assert!(even.abs_diff(uneven) < uneven / 20, "the rate is nearly the same: {even} ns, {uneven} ns");
}

/// Two programs of the layer, then one of the host, all on one die at once.
fn contest(gc_order: GcOrder) -> Vec<u64> {
    let mut rig = Rig::new(&Options { gc_order, ..Options::default() });
    rig.submit(program(0, 0, 100), false, 0);
    rig.submit(program(0, 1, 100), false, 0);
    rig.host(program(0, 6, 100), 0);
    rig.times()
}

#[test]
fn the_layer_can_stand_back_for_the_host() {
    assert_eq!(contest(GcOrder::Fifo), [800, 1600, 2400]);
    assert_eq!(contest(GcOrder::HostFirst), [1600, 2400, 800]);
    assert_eq!(contest(GcOrder::RateLimited { gap_ns: 5000 }), [800, 5800, 1600]);
}

#[test]
fn reads_of_the_layer_stand_back_in_the_command_core_too() {
    let contest = |gc_order| {
        let mut rig = Rig::new(&Options { gc_order, core_ns: 100, ..Options::default() });
        for (unit, number) in [(0, 0), (0, 1), (2, 0)] {
            rig.submit(read(unit, number), false, 0);
        }
        rig.host(read(2, 1), 1);
        rig.times()
    };
    assert_eq!(contest(GcOrder::Fifo), [250, 400, 500, 650]);
    // The second of the layer is in the core from 200 to 300, the third to 400.
    assert_eq!(contest(GcOrder::HostFirst), [250, 450, 550, 350]);
}

#[test]
fn the_layer_does_not_stand_back_when_the_host_waits_for_its_erase() {
    for gc_order in [GcOrder::HostFirst, GcOrder::RateLimited { gap_ns: 1_000_000 }] {
        let mut rig = Rig::new(&Options { gc_order, ..Options::default() });
        let copy = rig.submit(program(0, 0, 100), false, 0);
        let erased = rig.scheduler.submit_as(erase(0, 1), Sender::Device, SimTime(0), copy);
        rig.watch(erased);
        rig.host(program(0, 6, 100), 0);
        assert_eq!(rig.times(), [800, 3800, 4600], "{gc_order:?}");
    }
}

#[test]
fn an_erase_that_waits_for_moved_pages_does_not_wait_for_a_full_unit() {
    // The moved page is alone in its unit; other reads keep events coming, so that only the waiting write can
    // close it.
    let mut rig = Rig::new(&Options { program_pages: 3, buffer: buffer(3000), ..Options::default() });
    let copy = rig.submit(program(0, 0, 1000), false, 0);
    let erased = rig.scheduler.submit_as(erase(1, 0), Sender::Device, SimTime(0), copy);
    rig.watch(erased);
    for number in 0..3 {
        rig.host(program(1, number, 1000), 0);
    }
    assert_eq!(rig.times(), [1700, 4700, 0, 0, 0]);
}

#[test]
fn a_page_that_waits_for_one_of_its_own_program_is_programmed_with_it() {
    for is_joined in [false, true] {
        let mut rig = Rig::new(&Options { program_pages: 3, buffer: buffer(3000), ..Options::default() });
        let first = rig.submit(program(0, 0, 1000), false, 0);
        let other = rig.submit(program(1, 0, 1000), false, 0);
        let after = if is_joined { rig.scheduler.join(first, other) } else { first };
        let second = rig.scheduler.submit_as(program(0, 1, 1000), Sender::Device, SimTime(0), after);
        rig.watch(second);
        let times = rig.times();
        assert_eq!(times[0], times[2], "one program, joined: {is_joined}");
        assert!(times[0] >= 1700 && times[1] >= 1700, "{times:?}");
    }
}

/// A die of two planes of a block of 6 pages each.
fn planes(multi_plane: bool, ops: &[TimedOp]) -> Vec<u64> {
    let geometry = Geometry { planes_per_die: 2, blocks_per_plane: 1, ..GEOMETRY };
    let options = Options { multi_plane, reads_ns: vec![50, 80], ..Options::default() };
    let mut rig = Rig { scheduler: ReadFirst::with_options(&geometry, &TIMING, &options), tags: 0 };
    for op in ops {
        rig.host(*op, 0);
    }
    rig.times()
}

#[test]
fn operations_on_equal_pages_of_two_planes_run_as_one() {
    // One array time, one transfer behind the other.
    let programs = [program(0, 0, 100), program(0, 6, 100)];
    assert_eq!(planes(false, &programs), [800, 1600]);
    assert_eq!(planes(true, &programs), [900, 900]);
    assert_eq!(planes(true, &[erase(0, 0), erase(0, 1)]), [3000, 3000]);
    let reads = [read(0, 1), read(0, 7), read(0, 2)];
    assert_eq!(planes(false, &reads), [180, 360, 510]);
    // The first of a pair leaves the die last; the third read is on another page.
    assert_eq!(planes(true, &reads), [280, 180, 280 + 150]);
}

#[test]
fn planes_join_only_on_equal_pages_and_in_the_order_of_their_blocks() {
    // Page 1 of the first block may not go with page 1 of the second, before page 0 of which is there.
    let ops = [program(0, 0, 100), program(0, 1, 100), program(0, 6, 100), program(0, 7, 100)];
    assert_eq!(planes(true, &ops), [900, 1800, 900, 1800]);
    assert_eq!(
        planes(true, &[program(0, 1, 100), program(0, 6, 100), program(0, 7, 100)]),
        [800, 1600, 2400]
    );
}

#[test]
fn fifo_has_the_same_link_and_buffer() {
    let fifo = |options: &Options| Fifo::with_options(&GEOMETRY, &TIMING, options);
    let at = |scheduler: &mut Fifo, op, by_host, at| {
        scheduler.submit_as(op, sender(by_host), SimTime(at), Token::NONE).0
    };
    let mut it = fifo(&Options { buffer: buffer(2000), ..Options::default() });
    let answers: Vec<u64> = (0..4).map(|number| at(&mut it, program(0, number, 1000), true, 0)).collect();
    assert_eq!(answers, [0, 0, 1700, 3400]);
    assert_eq!(at(&mut it, program(1, 0, 1000), false, 10_000), 11_700);
    assert_eq!(it.barrier(SimTime(3000)), Token(6800));
    assert_eq!(it.barrier(SimTime(7000)), Token::NONE);
    let mut it = fifo(&Options { buffer: buffer(4000), host: LINK, ..Options::default() });
    assert_eq!([0, 1].map(|unit| at(&mut it, program(unit, 0, 1000), true, 0)), [1008, 2008]);
    assert_eq!([0, 1].map(|unit| at(&mut it, read(unit, 6), true, 10_000)), [10_257, 10_357]);
    assert_eq!(at(&mut it, read(0, 6), false, 20_000), 20_150);
    let mut it = fifo(&Options { host: LINK, ..Options::default() });
    assert_eq!(at(&mut it, program(0, 0, 1000), true, 0), 5 + 1000 + 1000 + 700 + 3);
    let protected = WriteBuffer { is_volatile: false, ..buffer(2000) };
    let mut it = fifo(&Options { buffer: protected, ..Options::default() });
    at(&mut it, program(0, 0, 1000), true, 0);
    assert_eq!(it.barrier(SimTime(0)), Token::NONE);
}
