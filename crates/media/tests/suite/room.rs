//! Who waits for the controller's memory, and is told when there is something in it.

use crate::options::{Rig, buffer, erase, program, read};
use nandscape_core::{Sender, SimTime};
use nandscape_media::{Options, Scheduler};

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
