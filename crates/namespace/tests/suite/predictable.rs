//! Predictable latency mode by the rules of NVMe: the state machine as a table, byte layouts, and that a
//! layer really keeps quiet.

use nandscape_core::command::Payload;
use nandscape_core::rng::{below, seeded};
use nandscape_core::{
    BlockCommand, Cause, Clocked, Extent, Geometry, Hint, Op, OpCounts, Params, SimTime, Subsystem,
};
use nandscape_ftl::boxed_ftls;
use nandscape_media::{Fifo, Nand, NandOptions, Scheduler, Timed, Timing};
use nandscape_namespace::sets::{
    Budget, EnduranceGroupLog, Part, PlmConfig, PlmError, PredictableLatency, SetAttributes, SetLayout,
    Window, encode_aggregate, encode_group_list, encode_set_list, event, share,
};
use nandscape_namespace::{NamespaceSpec, NvmSet, NvmSetError, NvmSubsystem, SetFacts, SharedDevice};
use std::collections::BTreeMap;

const BUDGET: Budget = Budget {
    reads_typical: 10,
    writes_typical: 4,
    time_max_ms: 100,
    ndwin_high_ms: 50,
    ndwin_low_ms: 20,
    write_bytes: 16 << 10,
};

const ALL: PlmConfig =
    PlmConfig { enabled_events: event::ALL, reads_threshold: 2, writes_threshold: 1, time_threshold_ms: 30 };

fn ms(at: u64) -> SimTime {
    SimTime(at * 1_000_000)
}

/// What a host or the passing of time does.
#[derive(Clone, Copy, Debug)]
enum Act {
    Enable,
    Disable,
    Select(u8),
    /// Reads of 4 KiB.
    Read(u64),
    /// Writes of one optimal write size, with room for plenty.
    Write(u64),
    /// A write for which the layer has no room.
    WriteWithoutRoom,
    Excursion,
    Pass,
    /// Get Log Page 0Ah with Retain Asynchronous Event clear.
    ReadLog,
}

use Act::{Disable, Enable, Excursion, Pass, Read, ReadLog, Select, Write, WriteWithoutRoom};
use Window::{Deterministic as D, NonDeterministic as N, Off};

/// Does an act at a time; says whether it was a command sequence error.
fn act(plm: &mut PredictableLatency, act: Act, at: SimTime) -> bool {
    match act {
        Enable => plm.configure(true, ALL, at),
        Disable => plm.configure(false, ALL, at),
        Select(window) => return plm.select(window, at) == Err(PlmError::CommandSequence),
        Read(count) => {
            for _ in 0..count {
                plm.read(4096, at);
            }
        }
        Write(count) => {
            for _ in 0..count {
                plm.write(16 << 10, 1 << 30, at);
            }
        }
        WriteWithoutRoom => {
            plm.write(16 << 10, 4096, at);
        }
        Excursion => plm.excursion(at),
        Pass => plm.pass(at),
        ReadLog => {
            plm.log(false, at);
        }
    }
    false
}

/// A rule: acts at times in milliseconds, then the window and the events afterwards.
type Rule = (&'static str, &'static [(u64, Act)], Window, u16);

const RULES: &[Rule] = &[
    ("the mode is off at first", &[], Off, 0),
    ("enabling begins a non-deterministic window", &[(0, Enable)], N, 0),
    ("disabling ends the mode whatever the window", &[(0, Enable), (30, Select(1)), (31, Disable)], Off, 0),
    ("disabling forgets events", &[(0, Enable), (30, Select(1)), (31, Read(11)), (32, Disable)], Off, 0),
    ("a window begins once the shortest NDWIN has passed", &[(0, Enable), (20, Select(1))], D, 0),
    ("one that is asked for too early is delayed", &[(0, Enable), (5, Select(1)), (19, Pass)], N, 0),
    ("and begins when the shortest NDWIN is over", &[(0, Enable), (5, Select(1)), (20, Pass)], D, 0),
    (
        "asking for an NDWIN takes a delayed one back",
        &[(0, Enable), (5, Select(1)), (6, Select(2)), (40, Pass)],
        N,
        0,
    ),
    ("the host may leave a window", &[(0, Enable), (20, Select(1)), (25, Select(2))], N, 0),
    (
        "and must then wait again",
        &[(0, Enable), (20, Select(1)), (25, Select(2)), (30, Select(1)), (44, Pass)],
        N,
        0,
    ),
    (
        "asking for the window one is in changes nothing",
        &[(0, Enable), (20, Select(1)), (21, Read(9)), (25, Select(1)), (26, Read(2))],
        N,
        event::READS_WARNING | event::EXCEEDED,
    ),
    ("typical reads fit", &[(0, Enable), (20, Select(1)), (21, Read(7))], D, 0),
    ("few reads left warn", &[(0, Enable), (20, Select(1)), (21, Read(8))], D, event::READS_WARNING),
    (
        "all typical reads do not end the window",
        &[(0, Enable), (20, Select(1)), (21, Read(10))],
        D,
        event::READS_WARNING,
    ),
    (
        "one more read does",
        &[(0, Enable), (20, Select(1)), (21, Read(11))],
        N,
        event::READS_WARNING | event::EXCEEDED,
    ),
    ("few writes left warn", &[(0, Enable), (20, Select(1)), (21, Write(3))], D, event::WRITES_WARNING),
    (
        "one write too many ends the window",
        &[(0, Enable), (20, Select(1)), (21, Write(5))],
        N,
        event::WRITES_WARNING | event::EXCEEDED,
    ),
    (
        "a layer without room is an excursion",
        &[(0, Enable), (20, Select(1)), (21, WriteWithoutRoom)],
        N,
        event::EXCURSION,
    ),
    ("so is any surprise", &[(0, Enable), (20, Select(1)), (21, Excursion)], N, event::EXCURSION),
    ("no surprise counts outside a window", &[(0, Enable), (5, Excursion)], N, 0),
    ("little time left warns", &[(0, Enable), (20, Select(1)), (90, Pass)], D, event::TIME_WARNING),
    ("the longest time may be used up", &[(0, Enable), (20, Select(1)), (120, Pass)], D, event::TIME_WARNING),
    ("and no more", &[(0, Enable), (20, Select(1)), (121, Pass)], N, event::EXCEEDED),
    (
        "reads outside a window cost nothing",
        &[(0, Enable), (1, Read(50)), (20, Select(1)), (21, Read(7))],
        D,
        0,
    ),
    (
        "reading the log clears the events",
        &[(0, Enable), (20, Select(1)), (21, Read(11)), (22, ReadLog)],
        N,
        0,
    ),
    (
        "a warning comes once a window",
        &[(0, Enable), (20, Select(1)), (21, Read(8)), (22, ReadLog), (23, Read(1))],
        D,
        0,
    ),
    (
        "and again in the next",
        &[
            (0, Enable),
            (20, Select(1)),
            (21, Read(8)),
            (22, ReadLog),
            (23, Select(2)),
            (43, Select(1)),
            (44, Read(8)),
        ],
        D,
        event::READS_WARNING,
    ),
];

#[test]
fn windows_follow_the_rules() {
    for (rule, acts, window, events) in RULES {
        let mut plm = PredictableLatency::new(BUDGET);
        let mut last = 0;
        for (at, what) in *acts {
            assert!(!act(&mut plm, *what, ms(*at)), "{rule}: sequence error at {what:?}");
            last = *at;
        }
        assert_eq!(plm.window(), *window, "{rule}");
        assert_eq!(plm.log(true, ms(last)).events, *events, "{rule}");
        assert_eq!(plm.has_events(), *events != 0, "{rule}");
    }
}

#[test]
fn commands_that_make_no_sense_are_refused() {
    let mut plm = PredictableLatency::new(BUDGET);
    assert_eq!(plm.select(1, ms(0)), Err(PlmError::CommandSequence));
    assert_eq!(plm.select(2, ms(0)), Err(PlmError::CommandSequence));
    plm.configure(true, ALL, ms(0));
    for reserved in [0, 3, 7] {
        assert!(matches!(plm.select(reserved, ms(0)), Err(PlmError::InvalidField(_))), "window {reserved}");
    }
    let mut data = ALL.encode();
    assert_eq!(PlmConfig::decode(&data), Ok(ALL));
    data[0] |= 1 << 4;
    assert!(matches!(PlmConfig::decode(&data), Err(PlmError::InvalidField(_))), "a reserved event bit");
}

#[test]
fn events_that_are_not_enabled_are_not_reported() {
    let mut plm = PredictableLatency::new(BUDGET);
    plm.configure(true, PlmConfig { enabled_events: event::READS_WARNING, ..ALL }, ms(0));
    plm.select(1, ms(20)).unwrap();
    for _ in 0..11 {
        plm.read(4096, ms(21));
    }
    assert_eq!(plm.window(), N, "the window ends all the same");
    assert_eq!(plm.log(true, ms(21)).events, event::READS_WARNING);
}

#[test]
fn news_come_once_and_again_only_after_the_log_was_read() {
    let mut plm = PredictableLatency::new(BUDGET);
    plm.configure(true, ALL, ms(0));
    plm.select(1, ms(20)).unwrap();
    assert!(!plm.take_news());
    act(&mut plm, Read(8), ms(21));
    assert!(plm.take_news() && !plm.take_news());
    act(&mut plm, Read(3), ms(22));
    assert!(!plm.take_news(), "the set is in log 0Bh already");
    assert_ne!(plm.log(true, ms(23)).events, 0);
    assert!(plm.has_events(), "retained");
    plm.log(false, ms(23));
    assert!(!plm.has_events());
    plm.select(1, ms(60)).unwrap();
    act(&mut plm, Read(8), ms(61));
    assert!(plm.take_news());
}

#[test]
fn estimates_never_rise_inside_a_window() {
    for seed in 0..50 {
        let mut rng = seeded(seed);
        let mut plm = PredictableLatency::new(BUDGET);
        plm.configure(true, ALL, ms(0));
        plm.select(1, ms(20)).unwrap();
        plm.note_room(below(&mut rng, 10) << 14);
        let mut now = 20;
        let mut last = plm.log(true, ms(now));
        while last.window == D {
            now += below(&mut rng, 9);
            // Room goes up and down, as collection of another kind would make it.
            match below(&mut rng, 3) {
                0 => drop(plm.read(below(&mut rng, 9000), ms(now))),
                1 => drop(plm.write(below(&mut rng, 20_000), below(&mut rng, 1 << 18), ms(now))),
                _ => plm.pass(ms(now)),
            }
            let log = plm.log(below(&mut rng, 2) == 0, ms(now));
            if log.window == D {
                assert!(log.reads_estimate <= last.reads_estimate, "seed {seed}");
                assert!(log.writes_estimate <= last.writes_estimate, "seed {seed}");
                assert!(log.time_estimate_ms <= last.time_estimate_ms, "seed {seed}");
            }
            last = log;
        }
        assert!(now <= 20 + 100 + 10, "seed {seed}: the window outlived its longest time");
    }
}

#[test]
fn pages_have_the_standards_layout() {
    let mut plm = PredictableLatency::new(BUDGET);
    plm.configure(true, ALL, ms(0));
    plm.select(1, ms(20)).unwrap();
    act(&mut plm, Read(8), ms(30));
    act(&mut plm, Write(1), ms(30));
    let page = plm.log(true, ms(30)).encode();
    let field = |at: usize| u64::from_le_bytes(page[at..at + 8].try_into().unwrap());
    assert_eq!((page[0], page[2], page[3]), (1, 1, 0));
    assert_eq!([32, 40, 48, 56, 64].map(field), [10, 4, 100, 50, 20]);
    assert_eq!([128, 136, 144].map(field), [2, 3, 90]);
    let used = [0, 2, 32, 40, 48, 56, 64, 128, 136, 144];
    assert!((0..512).all(|at| page[at] == 0 || used.contains(&at)), "reserved bytes are 0");
    assert_eq!(encode_aggregate(&[2, 5]), [2, 0, 0, 0, 0, 0, 0, 0, 2, 0, 5, 0]);
}

#[test]
fn identify_data_has_the_standards_layout() {
    let entry = |set_id| SetAttributes {
        set_id,
        endurance_group_id: 3,
        read_typical_100ns: 950,
        optimal_write_bytes: 49_152,
        total_bytes: 1 << 40,
        unallocated_bytes: 7,
    };
    let sets: Vec<SetAttributes> = (1..=40).map(entry).collect();
    let data = encode_set_list(&sets, 1);
    assert_eq!((data.len(), data[0]), (4096, 31), "31 entries at most");
    assert!(data[1..128].iter().all(|byte| *byte == 0));
    assert_eq!(data[128..132], [1, 0, 3, 0]);
    assert_eq!(data[136..144], [0xB6, 3, 0, 0, 0, 0xC0, 0, 0]);
    assert_eq!(data[144..160], (1u128 << 40).to_le_bytes());
    assert_eq!(data[160], 7);
    let tail = encode_set_list(&sets, 39);
    assert_eq!((tail[0], tail[128], tail[256]), (2, 39, 40));
    let groups = encode_group_list(&[1, 2, 9], 2);
    assert_eq!(groups[..8], [2, 0, 2, 0, 9, 0, 0, 0]);
    let log = EnduranceGroupLog {
        spare_percent: 9,
        spare_threshold_percent: 10,
        used_percent: 12,
        written_bytes: 2_000_000_000,
        media_bytes: 2_000_000_001,
        write_commands: 5,
        total_bytes: 77,
        ..EnduranceGroupLog::default()
    };
    let page = log.encode();
    assert_eq!((page[0], page[3], page[4], page[5]), (1, 9, 10, 12));
    assert_eq!((page[64], page[80], page[112], page[160]), (2, 3, 5, 77));
}

const GEOMETRY: Geometry = Geometry {
    channels: 2,
    dies_per_channel: 4,
    planes_per_die: 1,
    blocks_per_plane: 40,
    pages_per_block: 32,
    page_bytes: 4096,
    sector_bytes: 4096,
    oob_bytes: 0,
};

const TIMING: Timing = Timing {
    read_ns: 60_000,
    program_ns: 700_000,
    erase_ns: 3_000_000,
    channel_bytes_per_s: 800_000_000,
    command_ns: 0,
};

const FACTS: SetFacts = SetFacts {
    read_typical_ns: 65_120,
    endurance: Some(3000),
    dtwin_reads: 1_000_000,
    dtwin_ms: 3_600_000,
    ndwin_high_ms: 200,
    ndwin_low_ms: 100,
    read_recovery: 4,
    keeps_windows: false,
};

/// Two horizontal sets with a namespace each.
fn subsystem(kind: &str, facts: SetFacts) -> NvmSubsystem {
    let device =
        Timed::new(Nand::new(GEOMETRY, &NandOptions::default()).unwrap(), Fifo::new(&GEOMETRY, &TIMING));
    let shared: SharedDevice = share(device);
    let layout = SetLayout::horizontal(&GEOMETRY, 2).unwrap();
    let entries = boxed_ftls();
    let entry = entries.iter().find(|entry| entry.info.name == kind).unwrap();
    let typed = if kind == "page-map" {
        BTreeMap::from([("op".to_owned(), "0.4".to_owned())])
    } else {
        BTreeMap::new()
    };
    let params = Params::check(entry.info, "ftl.", &typed).unwrap();
    let sets: Vec<NvmSet> = layout
        .sets()
        .iter()
        .enumerate()
        .map(|(index, dies)| NvmSet {
            ftl: (entry.build)(Box::new(Part::new(SharedDevice::clone(&shared), dies)), &params).unwrap(),
            endurance_group: index as u16 / 2,
            facts,
        })
        .collect();
    let capacity_bytes = sets[0].ftl.logical_pages() * 4096;
    let namespaces: Vec<NamespaceSpec> = (0..2)
        .map(|set| NamespaceSpec { name: format!("ns{}", set + 1), set, offset_bytes: 0, capacity_bytes })
        .collect();
    NvmSubsystem::divided(shared, sets, &namespaces).unwrap()
}

struct Host {
    subsystem: NvmSubsystem,
    now: SimTime,
    rng: nandscape_core::rng::Xoshiro256PlusPlus,
}

impl Host {
    /// A host over full namespaces that were overwritten at random, so that every further write needs
    /// collection sooner or later.
    fn new(facts: SetFacts) -> Self {
        let mut this = Self { subsystem: subsystem("page-map", facts), now: ms(0), rng: seeded(1) };
        for namespace in 0..2 {
            let pages = this.pages();
            for page in 0..pages {
                this.write(namespace, page);
            }
            for _ in 0..2 * pages {
                this.write_anywhere(namespace);
            }
        }
        this.now = this.subsystem.idle_from();
        this
    }

    fn pages(&self) -> u64 {
        self.subsystem.namespaces()[0].capacity_bytes / 4096
    }

    fn write(&mut self, namespace: u32, page: u64) {
        let command = BlockCommand::new(Op::Write, Extent::new(page * 4096, 4096), Hint::default());
        self.subsystem.submit(namespace, command.into(), Payload::None, self.now).unwrap();
        self.now += 1_000_000;
    }

    fn write_anywhere(&mut self, namespace: u32) {
        let pages = self.pages();
        let page = below(&mut self.rng, pages);
        self.write(namespace, page);
    }

    fn gc(&self, set: u16) -> OpCounts {
        self.subsystem.inspect().device(set).counters().get(Cause::Gc)
    }

    fn enter(&mut self, set: u16, config: PlmConfig) {
        self.subsystem.configure_predictable(set, true, config, self.now).unwrap();
        self.now += 100 * 1_000_000;
        self.subsystem.select_window(set, 1, self.now).unwrap();
        assert_eq!(self.subsystem.predictable(set).unwrap().window(), D);
    }
}

#[test]
fn collection_keeps_out_of_a_window_and_is_made_up_for_after_it() {
    let mut host = Host::new(FACTS);
    host.enter(0, PlmConfig { enabled_events: event::ALL, ..PlmConfig::default() });
    let promised = host.subsystem.predictable(0).unwrap().budget().writes_typical;
    assert!(promised >= 100, "{promised}");
    let before = host.gc(0);
    let shown = host.subsystem.predictable_log(0, true, host.now).unwrap().writes_estimate;
    assert!(shown > promised / 2 && shown <= promised, "{shown} of {promised}");
    for _ in 0..shown {
        host.write_anywhere(0);
    }
    assert_eq!(host.gc(0), before, "the set collected in its window");
    assert_eq!(host.subsystem.predictable_log(0, true, host.now).unwrap().window, D);
    host.write_anywhere(0);
    let log = host.subsystem.predictable_log(0, false, host.now).unwrap();
    assert_eq!(log.window, N);
    assert!(log.events & (event::EXCEEDED | event::EXCURSION) != 0, "{:#x}", log.events);
    assert!(host.gc(0).erases > before.erases, "what was put off is made up for");
    assert_eq!(host.subsystem.predictable_events(), encode_aggregate(&[]));
    host.subsystem.check_invariants();
}

#[test]
fn a_window_of_one_set_does_not_hold_up_another() {
    let mut host = Host::new(FACTS);
    host.enter(0, PlmConfig::default());
    let (quiet, busy) = (host.gc(0), host.gc(1));
    for _ in 0..500 {
        host.write_anywhere(1);
    }
    assert_eq!(host.gc(0), quiet);
    assert!(host.gc(1).erases > busy.erases);
    assert_eq!(host.subsystem.predictable(0).unwrap().window(), D);
    assert_eq!(host.subsystem.predictable(1).unwrap().window(), Off);
}

#[test]
fn a_window_that_outlasts_its_time_ends_as_time_passes() {
    let mut host = Host::new(SetFacts { dtwin_ms: 500, ..FACTS });
    host.enter(1, PlmConfig { enabled_events: event::EXCEEDED, ..PlmConfig::default() });
    host.subsystem.advance(host.now + 499_000_000, &mut Vec::new());
    assert_eq!(host.subsystem.predictable(1).unwrap().window(), D);
    host.subsystem.advance(host.now + 501_000_000, &mut Vec::new());
    assert_eq!(host.subsystem.predictable(1).unwrap().window(), N);
    assert_eq!(host.subsystem.predictable_events(), encode_aggregate(&[2]));
    assert!(host.subsystem.take_predictable_news() && !host.subsystem.take_predictable_news());
}

#[test]
fn kept_windows_alternate_by_themselves() {
    let mut host = Host::new(SetFacts { dtwin_ms: 500, keeps_windows: true, ..FACTS });
    host.subsystem.reset_counters(host.now);
    let start = host.now;
    let mut windows = Vec::new();
    for step in 0..240 {
        host.subsystem.advance(start + step * 10_000_000, &mut Vec::new());
        let window = host.subsystem.predictable(0).unwrap().window();
        if windows.last() != Some(&window) {
            windows.push(window);
        }
    }
    assert_eq!(windows, [N, D, N, D, N, D, N, D], "100 ms and 500 ms in turn");
}

#[test]
fn layers_that_cannot_wait_refuse_the_mode_and_windows_need_it() {
    let mut thesis = subsystem("pm-gcl", FACTS);
    assert!(thesis.predictable(0).is_none());
    let refused = thesis.configure_predictable(0, true, PlmConfig::default(), ms(0));
    assert!(matches!(refused, Err(NvmSetError::Command(PlmError::InvalidField(_)))), "{refused:?}");
    let mut subsystem = subsystem("page-map", FACTS);
    assert_eq!(subsystem.select_window(0, 1, ms(0)), Err(NvmSetError::Command(PlmError::CommandSequence)));
    let refused = subsystem.select_window(9, 1, ms(0));
    assert!(matches!(refused, Err(NvmSetError::Command(PlmError::InvalidField(_)))), "{refused:?}");
    assert_eq!(thesis.controller_attributes(), 0b01_1100);
    assert_eq!(subsystem.controller_attributes(), 0b11_1100);
}

#[test]
fn endurance_groups_report_their_own_writes() {
    let host = Host::new(FACTS);
    let log = host.subsystem.endurance_log(0).unwrap();
    let bytes: u64 =
        (0..2).map(|namespace| host.subsystem.inspect().host_counts(namespace).write_bytes).sum();
    assert_eq!(log.written_bytes, u128::from(bytes), "both sets are in group 0");
    let programs: u64 = (0..2).map(|set| host.subsystem.inspect().device(set).tally().totals.programs).sum();
    assert_eq!(log.media_bytes, u128::from(programs * 4096));
    assert!(log.waf().unwrap() > 1.0);
    assert_eq!((log.spare_percent, log.unallocated_bytes), (100, 0));
    assert!(log.endurance_bytes > 0 && log.endurance_bytes < 3000 * log.total_bytes * 2);
    assert_eq!(host.subsystem.endurance_log(1), None);
    assert_eq!(host.subsystem.endurance_groups(), [0]);
    assert_eq!(host.subsystem.identify_groups(0)[..4], [1, 0, 1, 0]);
    let sets = host.subsystem.identify_sets(2);
    assert_eq!((sets[0], sets[128], sets[130]), (1, 2, 1), "set 2 of group 1");
    assert_eq!(sets[136..140], 652u32.to_le_bytes(), "65.12 us in 100 ns, rounded up");
}

#[test]
fn read_recovery_levels_are_kept_per_set_and_unsupported_ones_refused() {
    let mut subsystem = subsystem("page-map", FACTS);
    assert_eq!(subsystem.read_recovery().supported(), 1 | 1 << 4 | 1 << 15);
    assert_eq!(subsystem.read_recovery().level(1), Some(4));
    subsystem.set_read_recovery(1, 15).unwrap();
    assert_eq!((subsystem.read_recovery().level(0), subsystem.read_recovery().level(1)), (Some(4), Some(15)));
    for (set, level) in [(0, 3), (0, 16), (2, 4)] {
        assert!(subsystem.set_read_recovery(set, level).is_err(), "set {set}, level {level}");
    }
}
