//! `[sets]` and `[namespaces]`: what is typed becomes sets over dies and ranges of them; mistakes are refused
//! by key.

use nandscape_core::command::Payload;
use nandscape_core::{BlockCommand, BlockId, Clocked, Extent, Hint, Op, SimTime, Subsystem};
use nandscape_stack::build::BuildOptions;
use nandscape_stack::{ConfigError, StackConfig, Typed, build, build_subsystem};

const DEVICE: &str = "[device]\nchannels = 4\ndies_per_channel = 4\nplanes_per_die = 1\nblocks_per_plane = 32\npages_per_block = 16\n";

fn config(text: &str) -> Result<StackConfig, ConfigError> {
    let mut typed = Typed::new();
    typed.merge_text("test.toml", &format!("{DEVICE}{text}"))?;
    typed.check()
}

fn subsystem(text: &str) -> Result<Box<dyn Subsystem + Send>, ConfigError> {
    build_subsystem(&config(text)?)
}

/// Set and capacity of each namespace.
fn namespaces(text: &str) -> Vec<(u16, u64)> {
    let subsystem = subsystem(text).unwrap();
    subsystem.namespaces().iter().map(|ns| (ns.set, ns.capacity_bytes)).collect()
}

#[test]
fn a_device_that_is_not_divided_is_one_namespace() {
    let subsystem = subsystem("").unwrap();
    let whole = build(&config("").unwrap(), BuildOptions::default()).unwrap();
    assert_eq!(subsystem.inspect().sets(), 1);
    assert_eq!(subsystem.namespaces().len(), 1);
    assert_eq!(subsystem.namespaces()[0].name, "ns1");
    assert_eq!(subsystem.namespaces()[0].capacity_bytes, whole.namespaces()[0].capacity_bytes);
}

#[test]
fn two_namespaces_lie_in_one_set_or_in_one_each() {
    let both = "[namespaces]\ncount = 2\n[sets]\nlayout = ";
    let traditional = namespaces(&format!("{both}'traditional'"));
    assert_eq!(traditional.iter().map(|(set, _)| *set).collect::<Vec<_>>(), [0, 0]);
    for layout in ["vertical", "horizontal"] {
        let divided = namespaces(&format!("{both}'{layout}'"));
        assert_eq!(divided.iter().map(|(set, _)| *set).collect::<Vec<_>>(), [0, 1]);
        // Sets pay for open blocks and watermarks twice.
        assert!(
            divided[0].1.abs_diff(traditional[0].1) * 20 < traditional[0].1,
            "{divided:?} {traditional:?}"
        );
    }
}

#[test]
fn sets_have_the_shape_of_their_dies() {
    for (layout, shape) in [
        ("'vertical'\ncount = 4", [(1, 4); 4]),
        ("'horizontal'\ncount = 4", [(4, 1); 4]),
        ("'list'\ndies = '0-3;4-7;8-11;12,13'", [(4, 1), (4, 1), (4, 1), (2, 1)]),
    ] {
        let subsystem = subsystem(&format!("[sets]\nlayout = {layout}")).unwrap();
        assert_eq!((subsystem.inspect().sets(), subsystem.namespaces().len()), (4, 4));
        for (set, (channels, dies)) in shape.into_iter().enumerate() {
            let geometry = *subsystem.inspect().device(set as u16).geometry();
            assert_eq!((geometry.channels, geometry.dies_per_channel), (channels, dies), "{layout}");
        }
    }
}

#[test]
fn sizes_are_shares_of_the_set_or_bytes_in_whole_pages() {
    let sizes = namespaces("[namespaces]\nsizes = '25%;1MB;50%'");
    let whole = namespaces("")[0].1;
    let page = 16 << 10;
    assert_eq!(
        sizes,
        [(0, whole / 4 / page * page), (0, 1_000_000 / page * page), (0, whole / 2 / page * page)]
    );
    let placed =
        namespaces("[sets]\nlayout = 'vertical'\n[namespaces]\nsets = '1;0;1'\nsizes = '30%;100%;70%'");
    assert_eq!(placed.iter().map(|(set, _)| *set).collect::<Vec<_>>(), [1, 0, 1]);
    assert!((placed[0].1 + placed[2].1).abs_diff(placed[1].1) <= 2 * page);
}

#[test]
fn endurance_groups_take_sets_by_list() {
    let groups = |text: &str| config(text).unwrap().partition.endurance_groups;
    assert_eq!(groups("[sets]\nlayout = 'vertical'\ncount = 4"), [0, 1, 2, 3]);
    assert_eq!(groups("[sets]\nlayout = 'vertical'\ncount = 4\nendurance_groups = '0,2;3,1'"), [0, 1, 0, 1]);
    let subsystem = subsystem("[sets]\nlayout = 'vertical'\nendurance_groups = '1,0'").unwrap();
    assert!(subsystem.namespaces().iter().all(|ns| ns.endurance_group == 0));
}

/// A group that is older has used more of its life, and its set fails writes while the other goes on.
#[test]
fn endurance_groups_may_be_of_unequal_age() {
    const AGES: &str = "[sets]\nlayout = 'vertical'\nage = '0;2995'";
    let mut subsystem =
        nandscape_stack::build::subsystem(&config(AGES).unwrap(), BuildOptions::default()).unwrap();
    let used = |subsystem: &nandscape_namespace::NvmSubsystem| {
        [0, 1].map(|group| subsystem.endurance_log(group).unwrap().used_percent)
    };
    assert_eq!(used(&subsystem), [0, 99]);
    let pages = subsystem.namespaces()[0].capacity_bytes / (16 << 10);
    let mut overwrite = |space: u32| {
        let failed = (0..20 * pages).find(|turn| {
            let extent = Extent::new((turn * 7 % pages) << 14, 16 << 10);
            let command = BlockCommand::new(Op::Write, extent, Hint::default());
            subsystem.submit(space, command.into(), Payload::None, SimTime::ZERO).is_err()
        });
        failed.map(|turn| turn / pages)
    };
    assert_eq!(overwrite(0), None);
    assert!(overwrite(1).is_some_and(|turns| turns < 12));
    let one = config("[sets]\nage = 70").unwrap();
    assert_eq!(one.partition.ages, [70]);
    let whole = nandscape_stack::build::subsystem(&one, BuildOptions::default()).unwrap();
    assert_eq!(whole.inspect().device(0).erase_count(BlockId(3)), 70);
}

/// A set waits for what another one asks of the controller's processor, and of none where each has its own;
/// what came before the counted part is forgotten.
#[test]
fn a_processor_is_shared_by_the_sets_of_a_device_and_not_by_those_of_hosts() {
    let read_ns = |owner: &str| {
        let text = format!("[sets]\nlayout = 'vertical'\nowner = '{owner}'\nprocessor = '10us'");
        let mut subsystem = subsystem(&text).unwrap();
        let send = |subsystem: &mut dyn Subsystem, space: u32, op: Op| {
            let command = BlockCommand::new(op, Extent::new(0, 64 << 10), Hint::default());
            let answer = subsystem.submit(space, command.into(), Payload::None, SimTime::ZERO).unwrap();
            subsystem.completion(answer.done).unwrap().0
        };
        for space in [1, 0] {
            send(&mut *subsystem, space, Op::Write);
        }
        subsystem.reset_counters(SimTime::ZERO);
        send(&mut *subsystem, 0, Op::Write);
        send(&mut *subsystem, 1, Op::Read)
    };
    // Four pages of the other set first.
    assert_eq!(read_ns("device"), read_ns("host") + 4 * 10_000);
    let error = config("[sets]\nprocessor = '1us'\n[stack]\nkind = 'zone'").and_then(|c| build_subsystem(&c));
    assert!(error.err().unwrap().to_string().contains("sets"));
}

#[test]
fn windows_and_recovery_levels_reach_the_sets() {
    let text = "[sets]\nlayout = 'vertical'\nwindows = 'host'\nread_recovery = '15;4'\ndtwin_reads = '5k'\ndtwin_time = '2s'";
    let mut subsystem =
        nandscape_stack::build::subsystem(&config(text).unwrap(), BuildOptions::default()).unwrap();
    let budget = *subsystem.predictable(1).unwrap().budget();
    assert_eq!((budget.reads_typical, budget.time_max_ms), (5000, 2000));
    assert_eq!((budget.ndwin_low_ms, budget.ndwin_high_ms), (1000, 10_000));
    assert_eq!(subsystem.read_recovery().level(0), Some(15));
    subsystem.advance(SimTime(1_500_000_000), &mut Vec::new());
    assert_eq!(subsystem.predictable(0).unwrap().window(), nandscape_namespace::sets::Window::Deterministic);
    // 60 us array read and 16 KiB at 800 MB/s.
    assert_eq!(subsystem.set_attributes(0).read_typical_100ns, 805);
}

#[test]
fn mistakes_name_key_value_and_expectation() {
    for (text, wanted) in [
        ("[sets]\nlayout = 'diagonal'", &["sets.layout = 'diagonal'", "horizontal"][..]),
        ("[sets]\nlayot = 'list'", &["sets.layot", "known keys: layout"]),
        ("[sets]\ncount = 2", &["sets.count = '2'", "no count with sets.layout = 'none'"]),
        ("[sets]\nlayout = 'vertical'\ncount = 3", &["sets.count = '3'", "divisor of the 4 channels"]),
        ("[sets]\nlayout = 'horizontal'\ncount = 8", &["sets.count = '8'", "divisor of the 4 dies"]),
        ("[sets]\nlayout = 'list'", &["sets.dies = ''", "dies from 0 to 15"]),
        ("[sets]\nlayout = 'list'\ndies = '0-16'", &["sets.dies = '0-16'", "dies from 0 to 15"]),
        ("[sets]\ndies = '0-3'", &["sets.dies", "sets.layout = 'list'"]),
        ("[sets]\nlayout = 'vertical'\nendurance_groups = '0'", &["sets.endurance_groups = '0'", "0 to 1"]),
        ("[sets]\nlayout = 'vertical'\nread_recovery = '4;16'", &["sets.read_recovery = '4;16'", "0 to 15"]),
        ("[sets]\nlayout = 'vertical'\nage = '1;2;3'", &["sets.age = '1;2;3'", "each of the 2 sets"]),
        ("[sets]\nage = 'old'", &["sets.age = 'old'", "a number of erases"]),
        ("[sets]\nage = 3000", &["sets.age = '3000'", "below device.endurance = 3000"]),
        ("[sets]\nndwin_low = '20s'", &["sets.ndwin_high = '10s'", "sets.ndwin_low = 20s"]),
        ("[sets]\ndtwin_time = '10us'", &["sets.dtwin_time = '10us'", "1ms"]),
        ("[sets]\nwindows = 'host'\n[ftl]\nkind = 'pm-gcl'", &["sets.windows = 'host'", "not pm-gcl"]),
        ("[namespaces]\nsizes = '60%;60%'", &["namespaces.sizes = '60%;60%'", "ns2", "left"]),
        ("[namespaces]\nsizes = '1'", &["namespaces.sizes = '1'", "ns1"]),
        ("[namespaces]\nsizes = 'half'", &["namespaces.sizes = 'half'", "50%"]),
        ("[namespaces]\nsets = '1'", &["namespaces.sets = '1'", "0 to 0"]),
        ("[namespaces]\ncount = 3\nsets = '0;0'", &["namespaces.sets = '0;0'", "3 namespaces"]),
        ("[namespaces]\ncount = 0", &["namespaces.count = '0'", "1 to 1024"]),
        ("[nvmsets]\ncount = 2", &["nvmsets", "sets, namespaces"]),
    ] {
        let message = subsystem(text).map(|_| ()).unwrap_err().to_string();
        for part in wanted {
            assert!(message.contains(part), "{text}: '{message}' lacks '{part}'");
        }
    }
}

#[test]
fn what_is_printed_reads_back() {
    for text in [
        "",
        "[sets]\nlayout = 'list'\ndies = '0-3;4-7'\nread_recovery = '0;15'\n[namespaces]\nsizes = '10%;90%'",
        "[sets]\nlayout = 'horizontal'\ncount = 4\nendurance_groups = '0,1;2,3'",
    ] {
        let config = config(text).unwrap();
        let mut typed = Typed::new();
        typed.merge_text("printed", &config.to_toml()).unwrap();
        assert_eq!(typed.check().unwrap().to_toml(), config.to_toml());
        assert_eq!(config.to_toml().contains("[sets]"), !text.is_empty());
    }
}

#[test]
fn a_trace_runs_on_one_namespace_in_some_dies_and_not_on_two() {
    let error = build(&config("[namespaces]\ncount = 2").unwrap(), BuildOptions::default());
    assert!(error.map(|_| ()).unwrap_err().to_string().contains("expected one"));
    let part = config("[sets]\nlayout = 'list'\ndies = '0-3'").unwrap();
    let mut namespace = build(&part, BuildOptions::default()).unwrap();
    assert_eq!(namespace.inspect().device(0).geometry().units(), 4);
    let command = BlockCommand::new(Op::Write, Extent::new(0, 65536), Hint::default());
    namespace.submit(0, command.into(), Payload::None, SimTime::ZERO).unwrap();
    assert_eq!(namespace.inspect().device(0).counters().total().programs, 4);
    namespace.check_invariants();
}
