//! Who waits for the controller's memory, and is told when there is something in it.

use crate::options::{Rig, TIMING, buffer, erase, program, read};
use nandscape_core::rng::{below, seeded};
use nandscape_core::{Sender, SimTime};
use nandscape_media::{Options, Scheduler, Suspension, Timing, WriteBuffer};

#[test]
fn a_read_that_wakes_the_page_of_another_read_wakes_that_too() {
    let mut rig = Rig::new(&Options { program_pages: 3, buffer: buffer(3000), ..Options::default() });
    let elsewhere = rig.submit(read(1, 0), false, 0);
    let first = rig.scheduler.submit_as(program(0, 0, 1000), Sender::Device, SimTime(0), elsewhere);
    rig.watch(first);
    // Both reads wait for their pages; the second page is what the first read brings.
    let read_first = rig.submit(read(0, 0), false, 0);
    let second = rig.scheduler.submit_as(program(0, 1, 1000), Sender::Device, SimTime(0), read_first);
    rig.watch(second);
    rig.submit(read(0, 1), false, 0);
    rig.submit(program(0, 2, 1000), false, 0);
    // The data is there after 150 ns, then three pages on the bus and the array.
    assert_eq!(rig.times(), [150, 3850, 150, 3850, 150, 3850]);
}

#[test]
fn a_full_buffer_lets_no_one_in_while_its_program_waits_for_an_erase() {
    for reads_for_host in [false, true] {
        let mut rig = Rig::new(&Options { program_pages: 3, buffer: buffer(1000), ..Options::default() });
        rig.submit(read(0, 0), reads_for_host, 0);
        rig.submit(erase(0, 0), false, 0);
        rig.host(program(0, 0, 1000), 0);
        rig.host(program(1, 0, 1000), 0);
        // Read, erase, and a program of one page, which is closed for the one that waits.
        assert_eq!(rig.times(), [150, 3150, 0, 4850], "reads of the host: {reads_for_host}");
    }
}

fn drained(bytes: u64, drain_above: u64) -> Options {
    let suspension = Suspension { programs: true, most: 10, ..Suspension::default() };
    Options { buffer: WriteBuffer { drain_above, ..buffer(bytes) }, suspension, ..Options::default() }
}

#[test]
fn reads_wait_for_older_writes_while_the_buffer_is_fuller_than_it_is_to_be() {
    // The first program is on the bus to 1000 and is stopped at once for the read. Or it ends at 1700, the
    // next one at 3400, and then one page is in the buffer.
    for (drain_above, read_done) in [(0, 1150), (1000, 3550)] {
        let mut rig = Rig::new(&drained(3000, drain_above));
        for number in 0..3 {
            rig.host(program(0, number, 1000), 0);
        }
        rig.host(read(0, 5), 10);
        assert_eq!(rig.times()[3], read_done, "above {drain_above}");
    }
}

#[test]
fn every_operation_is_answered_while_a_buffer_fills_and_drains() {
    for seed in 0..500 {
        let mut rng = seeded(seed);
        let mut options = drained(1000 * (1 + below(&mut rng, 6)), 1 + below(&mut rng, 3000));
        (options.load_overlap, options.read_overlap) = (below(&mut rng, 2) == 1, below(&mut rng, 2) == 1);
        (options.hold_off_ns, options.burst_bytes) = (below(&mut rng, 400), below(&mut rng, 300) as u32);
        options.program_pages = 1 + below(&mut rng, 2) as u32;
        let timing = Timing { command_ns: below(&mut rng, 3) * 100, ..TIMING };
        let mut rig = Rig::timed(&timing, &options);
        let (mut next, gap) = ([0; 4], 1 + below(&mut rng, 300));
        for index in 0..80 {
            let at = index * gap;
            let unit = below(&mut rng, 4) as u32;
            let number = &mut next[unit as usize];
            if *number < 12 && below(&mut rng, 3) == 0 {
                rig.host(program(unit, *number, 1000), at);
                *number += 1;
            } else {
                rig.submit(read(unit, below(&mut rng, 12) as u32), below(&mut rng, 4) > 0, at);
            }
        }
        assert_eq!(rig.until(u64::MAX).len(), 80, "seed {seed}");
    }
}

#[test]
fn a_die_that_waited_for_the_bus_to_read_goes_on_when_the_buffer_fills() {
    let timing = Timing { command_ns: 100, ..TIMING };
    let mut rig = Rig::timed(&timing, &drained(8000, 3000));
    rig.host(program(0, 0, 1000), 0);
    rig.host(program(2, 0, 1000), 1000);
    // Stops the first program, and waits for the bus, which is the second one's to 2200.
    rig.host(read(0, 5), 1200);
    for number in 0..3 {
        rig.host(program(1, number, 1000), 1300);
    }
    // The first program goes on for its other 600 ns, then comes the read.
    assert_eq!(rig.times()[2], 3050);
}
