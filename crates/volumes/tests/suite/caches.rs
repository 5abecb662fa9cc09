//! Caches over real files, changed while nobody serves them.

use crate::support::design;
use nandscape_cache::compose::Typed;
use nandscape_cache::manage::{Change, Verdict};
use nandscape_cache::status::Value;
use nandscape_core::command::Payload;
use nandscape_core::{BlockCommand, Extent, Hint, Op, SimTime};
use nandscape_volumes::{CacheFile, CacheFileError, Making, Serving, mark_of, open_cache};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

struct Place {
    dir: TempDir,
}

impl Place {
    /// A cache of 4 MiB and two disks of 1 MiB with different bytes.
    fn new() -> Self {
        let this = Self { dir: TempDir::new().unwrap() };
        CacheFile::create(&this.fast(), Some(4 << 20), &design(&[]), Making::default()).unwrap();
        for name in ["a", "b"] {
            fs::write(this.disk(name), vec![name.as_bytes()[0]; 1 << 20]).unwrap();
        }
        this
    }

    fn fast(&self) -> PathBuf {
        self.dir.path().join("fast")
    }

    fn disk(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn cache(&self) -> CacheFile {
        CacheFile::open(&self.fast(), false).unwrap()
    }

    fn verdict(&self, name: &str) -> Verdict {
        let mut cache = self.cache();
        let id = cache.look().unwrap().1.id(name).unwrap();
        cache.verdict(id, None).unwrap()
    }
}

fn write(path: &Path, offset: u64, bytes: &[u8]) {
    File::options().write(true).open(path).unwrap().write_all_at(bytes, offset).unwrap();
}

#[test]
fn a_disk_gets_a_cache_and_loses_it_again_unchanged() {
    let place = Place::new();
    let before = fs::read(place.disk("a")).unwrap();
    assert_eq!(place.cache().attach(&place.disk("a"), "data", None, false).unwrap(), 1 << 20);
    place.cache().attach(&place.disk("b"), "more", None, false).unwrap();
    let text = fs::read_to_string(mark_of(&place.disk("a"))).unwrap();
    assert!(text.contains("nandscape cache detach"), "the stamp file tells people what to do: {text}");
    assert_eq!((place.verdict("data"), place.verdict("more")), (Verdict::Same, Verdict::Same));
    let stat = place.cache().stat().unwrap();
    let names: Vec<&str> = stat.volumes.iter().map(|volume| volume.name.as_str()).collect();
    assert_eq!((names, stat.volumes[0].state.as_str()), (vec!["data", "more"], "same"));

    let mut told = Vec::new();
    let path = place.cache().detach("data", None, &mut |done, all| told.push((done, all))).unwrap();
    assert_eq!((path.as_path(), told), (place.disk("a").as_path(), vec![(0, 0)]));
    assert!(!mark_of(&place.disk("a")).exists());
    assert!(fs::read(place.disk("a")).unwrap() == before);
    // The number is free again, and the other volume is as it was.
    place.cache().attach(&place.disk("a"), "again", None, false).unwrap();
    let (_, settings) = place.cache().look().unwrap();
    assert_eq!((settings.id("again").unwrap(), settings.id("more").unwrap()), (0, 1));
}

#[test]
fn a_disk_that_was_written_to_alone_is_told_by_its_time_or_its_content() {
    let place = Place::new();
    place.cache().attach(&place.disk("a"), "data", None, false).unwrap();
    let left = fs::metadata(place.disk("a")).unwrap().modified().unwrap();
    // Where no sample is taken only the time shows it.
    write(&place.disk("a"), 500_000, b"x");
    let later = left + Duration::from_secs(1);
    File::options().write(true).open(place.disk("a")).unwrap().set_modified(later).unwrap();
    assert!(matches!(place.verdict("data"), Verdict::Changed(Change::Written { .. })));
    // With the time put back, only the content does, and only where it is looked at.
    File::options().write(true).open(place.disk("a")).unwrap().set_modified(left).unwrap();
    write(&place.disk("a"), 1024, b"x");
    File::options().write(true).open(place.disk("a")).unwrap().set_modified(left).unwrap();
    assert_eq!(place.verdict("data"), Verdict::Changed(Change::Content));
}

#[test]
fn a_file_is_taken_by_one_cache_only_and_names_are_checked() {
    let place = Place::new();
    place.cache().attach(&place.disk("a"), "data", None, false).unwrap();
    let refused = |result: Result<u64, CacheFileError>| result.unwrap_err().to_string();
    let again = refused(place.cache().attach(&place.disk("a"), "twice", None, false));
    assert!(again.contains("the disk of volume data: expected a disk of its own"), "{again}");
    let second = place.dir.path().join("second");
    let (mut other, _) = CacheFile::create(&second, Some(4 << 20), &design(&[]), Making::default()).unwrap();
    let taken = refused(other.attach(&place.disk("a"), "data", None, false));
    assert!(taken.contains("the disk has a cache already"), "{taken}");
    assert_eq!(other.look().unwrap().0.superblock.volumes, [], "nothing has changed");
    let name = refused(place.cache().attach(&place.disk("b"), "no/slash", None, false));
    assert!(name.starts_with("volume name 'no/slash': expected 1 to 32 letters"), "{name}");
    let name = refused(place.cache().attach(&place.disk("b"), "data", None, false));
    assert_eq!(name, "volume name 'data': expected one that no volume has");
    let missing = refused(place.cache().attach(&place.disk("c"), "c", None, false));
    assert!(missing.contains("/c: open: No such file"), "{missing}");
    assert!(!mark_of(&place.disk("b")).exists());
}

#[test]
fn a_cache_is_made_once_and_not_half() {
    let place = Place::new();
    let error =
        CacheFile::create(&place.fast(), None, &design(&[]), Making::default()).unwrap_err().to_string();
    assert!(error.contains("a cache is there already"), "{error}");
    CacheFile::create(
        &place.fast(),
        None,
        &design(&[("block", "64KiB")]),
        Making { replace: true, ..Making::default() },
    )
    .unwrap();
    assert_eq!(place.cache().look().unwrap().0.superblock.shape.block_bytes, 65536);
    let new = place.dir.path().join("new");
    for (keys, bytes) in [(&[][..], 8192), (&[("metadata", "none"), ("mode", "write-through")][..], 1 << 20)]
    {
        CacheFile::create(&new, Some(bytes), &design(keys), Making::default()).unwrap_err();
        assert!(!new.exists(), "what cannot be made leaves no file");
    }
}

#[test]
fn settings_change_but_not_where_blocks_lie() {
    let place = Place::new();
    let set = |key: &str, value: &str| place.cache().set(&Typed::from([(key.to_owned(), value.to_owned())]));
    set("mode", "write-through").unwrap();
    set("eviction", "lru").unwrap();
    let (_, settings) = place.cache().look().unwrap();
    assert_eq!(settings.design().unwrap().mode.name(), "write-through");
    let error = set("mode", "write-sideways").unwrap_err().to_string();
    assert!(error.contains("cache.mode"), "{error}");
    let error = set("block", "8KiB").unwrap_err().to_string();
    assert!(error.starts_with("cache.block cannot change"), "{error}");
    let error = set("nonsense", "1").unwrap_err().to_string();
    assert!(error.contains("cache.nonsense"), "{error}");
    assert_eq!(place.cache().look().unwrap().1, settings, "what was refused changed nothing");
}

#[test]
fn each_volume_is_told_with_its_own_counters_and_its_quota() {
    let place = Place::new();
    place.cache().attach(&place.disk("a"), "data", Some("10b"), false).unwrap();
    place.cache().attach(&place.disk("b"), "more", None, false).unwrap();
    let wrong = place.cache().attach(&place.fast(), "x", Some("lots"), false).unwrap_err().to_string();
    assert!(wrong.contains("the cache itself"), "{wrong}");
    let mut serving = open_cache(&place.fast(), &[], false).unwrap();
    let write = |serving: &mut Serving, volume: u32, block: u64, is_durable: bool| {
        let command = BlockCommand::new(Op::Write, Extent::new(block * 4096, 4096), Hint::default());
        let at = SimTime(block * 1_000_000);
        let payload = Payload::Write(&[7; 4096]);
        serving.subsystem.submit(volume, BlockCommand { is_durable, ..command }.into(), payload, at).unwrap();
    };
    for block in 0..30 {
        // Not in sequence: every other one.
        write(&mut serving, 0, block * 2 % 60, false);
        write(&mut serving, 0, block * 2 % 60, false);
    }
    for block in [200, 202, 204] {
        write(&mut serving, 1, block, true);
    }
    let stat = |serving: &Serving| serving.handle.stat(&serving.subsystem.inspect().cache().unwrap());
    let now = stat(&serving);
    let own = |at: usize| now.volumes[at].counters.as_ref().unwrap();
    assert_eq!((own(0).writes, own(1).writes, now.counters.writes), (60, 3, 63));
    assert_eq!((own(0).forced_writes, own(1).forced_writes), (0, 3));
    assert_eq!((now.volumes[0].quota_blocks, now.volumes[1].quota_blocks), (Some(10), None));
    assert_eq!((now.volumes[0].blocks, now.volumes[1].blocks), (10, 3), "no more than the quota");
    assert_eq!((now.volumes[1].dirty_blocks, now.volumes[1].dirty_bytes), (3, 3 * 4096));
    let printer = nandscape_cache::status::find("flashcache").unwrap();
    let number =
        |at: Option<usize>, name: &str| match &now.page(printer, at, false).field(name).unwrap().value {
            Value::Number(number) => *number,
            Value::Text(text) => panic!("{name} is {text}"),
        };
    assert_eq!((number(Some(0), "writes"), number(Some(1), "writes"), number(None, "writes")), (60, 3, 63));
    let metadata = number(None, "metadata ssd writes");
    assert!(metadata > 0 && number(Some(1), "metadata ssd writes") == metadata, "of the cache as a whole");
    let used = |at| match now.page(printer, at, true).field("cached blocks").unwrap().value {
        Value::Number(number) => number,
        Value::Text(_) => 0,
    };
    assert_eq!((used(Some(0)), used(Some(1)), used(None)), (10, 3, 13));

    // In force at once, and kept.
    let typed = |key: &str, value: &str| Typed::from([(key.to_owned(), value.to_owned())]);
    let control = serving.subsystem.control().cache.unwrap();
    control.set(&typed("quota.data", "none")).unwrap();
    control.set(&typed("limit", "20b")).unwrap();
    control.set(&typed("flushing", "cache-device")).unwrap();
    let error = control.set(&typed("quota.nope", "1b")).unwrap_err();
    assert_eq!(error, "no volume 'nope': expected one of data, more");
    for block in 0..30 {
        write(&mut serving, 0, block * 2 % 60, false);
    }
    let now = stat(&serving);
    assert_eq!((now.volumes[0].quota_blocks, now.limit_blocks, now.gauges.used), (None, Some(20), 20));
    serving.handle.close_next();
    serving.subsystem.shutdown(SimTime(1_000_000_000)).unwrap();
    drop(serving);
    let kept = place.cache().stat().unwrap();
    assert_eq!((kept.volumes[0].quota_blocks, kept.limit_blocks), (None, Some(20)));
    assert_eq!(kept.settings.iter().find(|(key, _)| key == "flushing").unwrap().1, "cache-device");
}

#[test]
fn settings_of_a_served_cache_survive_a_kill_and_an_end_in_good_order_after_it() {
    let typed = |key: &str, value: &str| Typed::from([(key.to_owned(), value.to_owned())]);
    for metadata in ["journal", "slots", "at-removal", "periodic"] {
        let place = Place::new();
        let design = design(&[("metadata", metadata), ("mode", "write-through")]);
        let making = Making { replace: true, ..Making::default() };
        CacheFile::create(&place.fast(), None, &design, making).unwrap();
        place.cache().attach(&place.disk("a"), "data", None, false).unwrap();
        let mut serving = open_cache(&place.fast(), &[], false).unwrap();
        let set = |serving: &mut Serving, key: &str, value: &str| {
            serving.subsystem.control().cache.unwrap().set(&typed(key, value))
        };
        set(&mut serving, "limit", "20b").unwrap();
        set(&mut serving, "eviction", "lru").unwrap();
        set(&mut serving, "limit", "no number").unwrap_err();
        drop(serving);
        let kept = |place: &Place| {
            let stat = place.cache().stat().unwrap();
            let eviction = stat.settings.iter().find(|(key, _)| key == "eviction").unwrap().1.clone();
            (stat.limit_blocks, eviction)
        };
        assert_eq!(kept(&place), (Some(20), "lru".to_owned()), "{metadata}");
        let mut serving = open_cache(&place.fast(), &[], false).unwrap();
        set(&mut serving, "limit", "").unwrap();
        serving.handle.close_next();
        serving.subsystem.shutdown(SimTime(1)).unwrap();
        drop(serving);
        assert_eq!(kept(&place), (None, "lru".to_owned()), "{metadata}");
    }
}

/// A `dm-cache-fiu` with two volumes of which a server wrote and flushed a block each; it ended in good order
/// or was killed.
fn fiu(mode: &str, is_closed: bool) -> Place {
    let place = Place::new();
    let design = design(&[("preset", "dm-cache-fiu"), ("mode", mode)]);
    let making = Making { replace: true, ..Making::default() };
    CacheFile::create(&place.fast(), None, &design, making).unwrap();
    place.cache().attach(&place.disk("a"), "data", None, false).unwrap();
    place.cache().attach(&place.disk("b"), "more", None, false).unwrap();
    let mut serving = open_cache(&place.fast(), &[], false).unwrap();
    for volume in 0..2 {
        let command = |op, len| BlockCommand::new(op, Extent::new(0, len), Hint::default());
        let write = Payload::Write(&[7; 4096]);
        serving.subsystem.submit(volume, command(Op::Write, 4096).into(), write, SimTime::ZERO).unwrap();
        serving.subsystem.submit(volume, command(Op::Flush, 0).into(), Payload::None, SimTime::ZERO).unwrap();
    }
    if is_closed {
        serving.handle.close_next();
        serving.subsystem.shutdown(SimTime(1)).unwrap();
    } else if mode == "write-through" {
        let set = |serving: &mut Serving, mode: &str| {
            let settings = Typed::from([("mode".to_owned(), mode.to_owned())]);
            serving.subsystem.control().cache.unwrap().set(&settings)
        };
        let error = set(&mut serving, "write-back").unwrap_err();
        assert!(error.starts_with("mode write-back of a cache that is served"), "{error}");
        set(&mut serving, "write-through").unwrap();
    }
    drop(serving);
    place
}

#[test]
fn flushed_writes_that_metadata_at_removal_lost_in_a_kill_are_not_called_complete() {
    let place = fiu("write-back", false);
    let stat = place.cache().stat().unwrap();
    assert_eq!((stat.health.as_str(), stat.volumes[0].dirty_blocks), ("failed", 0));
    assert!(stat.recovery.unwrap().contains("blocks that were dirty at this end are lost, flushed ones too"));
    let refused = |done: Result<(), CacheFileError>| {
        let error = done.unwrap_err().to_string();
        assert!(error.contains("data: flushed writes to volume 0 may be lost"), "{error}");
        assert!(error.contains("'--discard-lost' goes on without them"), "{error}");
    };
    refused(open_cache(&place.fast(), &[], false).map(drop));
    refused(open_cache(&place.fast(), &[], true).map(drop));
    refused(place.cache().detach("data", None, &mut |_, _| {}).map(drop));
    refused(place.cache().clean(None, &[], &mut |_, _| {}));
    refused(place.cache().resize("data", None).map(drop));
    place.cache().set(&Typed::from([("mode".to_owned(), "write-through".to_owned())])).unwrap();
    refused(place.cache().detach("data", None, &mut |_, _| {}).map(drop));
    // A volume that comes later has lost nothing, and the others are not forgotten.
    fs::write(place.disk("c"), vec![3; 1 << 20]).unwrap();
    place.cache().attach(&place.disk("c"), "late", None, false).unwrap();
    place.cache().detach("late", None, &mut |_, _| {}).unwrap();
    assert_eq!(place.cache().discard_lost(Some("data")).unwrap(), ["data"]);
    place.cache().detach("data", None, &mut |_, _| {}).unwrap();
    let error = open_cache(&place.fast(), &[], false).map(drop).unwrap_err().to_string();
    assert!(error.contains("more: metadata of the cache is damaged"), "{error}");
    assert_eq!(place.cache().discard_lost(None).unwrap(), ["more"]);
    drop(open_cache(&place.fast(), &[], false).unwrap());
}

#[test]
fn nothing_is_called_lost_of_metadata_at_removal_that_had_nothing_dirty() {
    for (mode, is_closed) in [("write-back", true), ("write-through", false), ("write-through", true)] {
        let place = fiu(mode, is_closed);
        assert_eq!(place.cache().stat().unwrap().health, "normal", "{mode}");
        assert!(place.cache().discard_lost(None).unwrap().is_empty(), "{mode}");
        place.cache().clean(None, &[], &mut |_, _| {}).unwrap();
        place.cache().detach("data", None, &mut |_, _| {}).unwrap();
        assert!(fs::read(place.disk("a")).unwrap()[..4096] == [7; 4096], "{mode}");
    }
}

#[test]
fn pages_of_a_served_cache_have_real_times_the_blocks_of_all_volumes_and_no_news_of_before() {
    let place = Place::new();
    let making = Making { replace: true, ..Making::default() };
    CacheFile::create(&place.fast(), None, &design(&[("cleaning", "none")]), making).unwrap();
    place.cache().attach(&place.disk("a"), "data", None, false).unwrap();
    place.cache().attach(&place.disk("b"), "more", None, false).unwrap();
    let mut serving = open_cache(&place.fast(), &[], false).unwrap();
    let stat = |serving: &Serving| serving.handle.stat(&serving.subsystem.inspect().cache().unwrap());
    assert!(stat(&serving).recovery.unwrap().ends_with("new: nothing has been cached yet"));
    for (volume, blocks) in [(0, 0..40), (1, 0..10)] {
        for block in blocks {
            let extent = Extent::new(block * 4096, 4096);
            let command = |op| BlockCommand::new(op, extent, Hint::default());
            let mut read = [0; 4096];
            let (write, read) = (Payload::Write(&[7; 4096]), Payload::Read(&mut read));
            serving.subsystem.submit(volume, command(Op::Write).into(), write, SimTime(1)).unwrap();
            serving.subsystem.submit(volume, command(Op::Read).into(), read, SimTime(1)).unwrap();
        }
    }
    let now = stat(&serving);
    assert_eq!(now.recovery.as_deref(), Some("new when its server started"));
    let of = |at: usize| now.volumes[at].counters.as_ref().unwrap();
    for at in 0..2 {
        assert!(of(at).read_ns > 0 && of(at).write_ns > 0, "files take time: {:?}", of(at));
    }
    assert_eq!(now.counters.read_ns, of(0).read_ns + of(1).read_ns);
    let bcache = nandscape_cache::status::find("bcache").unwrap();
    let available = |at| {
        let page = now.page(bcache, Some(at), false);
        page.field("cache_available_percent").unwrap().truth.clone().unwrap().value
    };
    let free = 100.0 * (now.gauges.slots - 50) as f64 / now.gauges.slots as f64;
    assert_eq!((available(0), available(1)), (format!("{free:.2} %"), format!("{free:.2} %")));
}

#[test]
fn requests_in_flight_share_the_commit_of_their_metadata() {
    let flushes = |waits: bool| {
        let place = Place::new();
        let making = Making { replace: true, ..Making::default() };
        let design = design(&[("preset", "flashcache"), ("cleaning", "none")]);
        CacheFile::create(&place.fast(), None, &design, making).unwrap();
        place.cache().attach(&place.disk("a"), "data", None, false).unwrap();
        let mut serving = open_cache(&place.fast(), &[], false).unwrap();
        if waits {
            serving.handle.wait_for_completions();
        }
        let stat = |serving: &Serving| serving.handle.stat(&serving.subsystem.inspect().cache().unwrap());
        let before = stat(&serving).counters.fast_flushes;
        let at = SimTime(1_000_000);
        let mut tokens = Vec::new();
        for block in 0..32 {
            let extent = Extent::new(block * 3 % 256 * 4096, 4096);
            let command = BlockCommand::new(Op::Write, extent, Hint::default());
            tokens.push(serving.subsystem.submit(0, command.into(), Payload::Write(&[7; 4096]), at).unwrap());
        }
        let mut done = Vec::new();
        for (tag, token) in (0..).zip(tokens) {
            assert_eq!(serving.subsystem.completion(token.done).is_some(), !waits);
            serving.subsystem.watch(token.done, tag);
        }
        while waits && done.len() < 32 {
            let next = serving.subsystem.next_event().expect("an answer waits");
            serving.subsystem.advance(next, &mut done);
        }
        let flushes = stat(&serving).counters.fast_flushes - before;
        drop(serving);
        assert_eq!(
            place.cache().stat().unwrap().gauges.dirty,
            32,
            "each entry was written before its answer"
        );
        flushes
    };
    assert_eq!((flushes(false), flushes(true)), (64, 2));
}

#[test]
fn what_is_told_of_a_cache_at_rest_is_what_a_server_makes_of_it() {
    for (keys, cutoff) in [
        (&[("preset", "bcache")][..], 4 << 20),
        (&[("preset", "bcache"), ("bcache_cutoff", "1MiB")], 1 << 20),
        (&[("sequential_read", "2MiB")], 2 << 20),
        (&[("preset", "flashcache")], 0),
        (&[("preset", "enhanceio"), ("ways", "100000")], 0),
    ] {
        let place = Place::new();
        CacheFile::create(&place.fast(), None, &design(keys), Making { replace: true, ..Making::default() })
            .unwrap();
        place.cache().attach(&place.disk("a"), "data", None, false).unwrap();
        let at_rest = place.cache().stat().unwrap();
        let serving = open_cache(&place.fast(), &[], false).unwrap();
        let served = serving.handle.stat(&serving.subsystem.inspect().cache().unwrap());
        assert_eq!(at_rest.gauges.slots, served.gauges.slots, "{keys:?}: slots that fill no set");
        for stat in [&at_rest, &served] {
            assert_eq!(stat.skip_sequential_bytes, cutoff, "{keys:?}");
            let table = stat.page(nandscape_cache::status::find("enhanceio").unwrap(), Some(0), true);
            let number = |name: &str| match &table.field(name).unwrap().value {
                Value::Number(number) => *number,
                Value::Text(text) => panic!("{name} is {text}"),
            };
            assert_eq!(number("set_size") * number("num_sets"), number("num_blocks"), "{keys:?}");
        }
    }
}

#[test]
fn a_disk_that_grew_is_taken_at_its_new_size() {
    let place = Place::new();
    place.cache().attach(&place.disk("a"), "data", None, false).unwrap();
    File::options().write(true).open(place.disk("a")).unwrap().set_len(2 << 20).unwrap();
    assert!(matches!(place.verdict("data"), Verdict::Changed(Change::Size { .. })));
    assert_eq!(place.cache().resize("data", None).unwrap(), (1 << 20, 2 << 20));
    assert_eq!(place.verdict("data"), Verdict::Same);
}

#[test]
fn what_is_no_cache_says_so() {
    let place = Place::new();
    let mut cache = CacheFile::open(&place.disk("a"), false).unwrap();
    let error = cache.look().unwrap_err().to_string();
    assert!(
        error.ends_with("a: no cache here: neither superblock, at bytes 0 and 4096, is intact"),
        "{error}"
    );
}
