//! The samples of the article that the designs were compared in, and the originals' formats.

use super::*;
use nandscape_core::CacheCounts;
use nandscape_policies::admission::Bypass;

fn facts(counters: &Counters) -> Facts<'_> {
    Facts {
        fast_name: "/dev/sdb",
        disk_name: "/dev/sda3",
        volume_bytes: 20_971_520 * 512,
        dirty_of_all: 0,
        block_bytes: 4096,
        ways: 512,
        cluster_bytes: 0,
        metadata_block_bytes: 4096,
        skip_sequential_bytes: 0,
        mode: Mode::WriteBack,
        eviction: "fifo",
        admission: "all",
        cleaning: "set-threshold",
        metadata: "slots",
        health: Health::Normal,
        gauges: Gauges::default(),
        counters,
    }
}

fn printer(name: &str) -> &'static Printer {
    find(name).expect(name)
}

fn truth<'a>(page: &'a Page, name: &str) -> &'a str {
    &page.field(name).expect(name).truth.as_ref().expect(name).value
}

#[test]
fn dm_cache_of_fiu_prints_the_table_of_the_article() {
    let counters = Counters::default();
    let gauges = Gauges { slots: 65_536, ..Gauges::default() };
    let page = (printer("dm-cache-fiu").table)(&Facts { ways: 16, gauges, ..facts(&counters) });
    assert_eq!(
        page.text(),
        "0 20971520 cache conf: capacity(256M), associativity(16), block size(4K), write-back"
    );
    // And, which the original does not print, the line of the article that makes this cache.
    let line = "0 20971520 cache /dev/sda3 /dev/sdb 0 8 65536 16 1";
    assert_eq!(page.text_with_truths(), format!("{}\n# table: {line}", page.text()));
    assert_eq!(page.field("table").expect("a line").value, Value::from(line));
}

#[test]
fn dm_cache_of_fiu_prints_the_status_of_the_article_and_the_true_ratio_beside_it() {
    let counters = Counters::from(CacheCounts {
        read_pieces: 301_319,
        write_pieces: 353_216,
        read_piece_hits: 20_000,
        write_piece_hits: 4485,
        read_replacements: 145_972,
        write_replacements: 200_000,
        dirty_replacements: 92_857,
        ..CacheCounts::default()
    });
    let page = (printer("dm-cache-fiu").status)(&facts(&counters));
    assert_eq!(
        page.text(),
        "0 20971520 cache stats: reads(301319), writes(353216), cache hits(24485, 0.3),replacement(345972), \
         replaced dirty blocks(92857)"
    );
    assert_eq!(truth(&page, "cache hit ratio"), "3.74 %");
    assert!(
        page.text_with_truths()
            .ends_with("\n# cache hit ratio: 3.74 %; what stands after '0.' are whole percent, cut")
    );
    let none = Counters::from(CacheCounts { read_pieces: 83, ..CacheCounts::default() });
    assert_eq!(
        (printer("dm-cache-fiu").status)(&facts(&none)).text(),
        "0 20971520 cache stats: reads(83), writes(0), cache hits(0, 0.0),replacement(0), replaced dirty blocks(0)"
    );
}

/// The article's `FlashCache`: 83 reads of 4 KiB since it was made.
fn flashcache_sample() -> (Counters, Gauges) {
    let mut counters = Counters::from(CacheCounts {
        read_pieces: 83,
        read_piece_misses: 83,
        disk_reads: 83,
        fast_writes: 83,
        ..CacheCounts::default()
    });
    for _ in 0..83 {
        counters.piece_sizes.record(4096);
    }
    (counters, Gauges { slots: 14_596_608, used: 83, ..Gauges::default() })
}

#[test]
fn flashcache_prints_the_table_of_the_article() {
    let (counters, gauges) = flashcache_sample();
    let facts = Facts { gauges, ..facts(&counters) };
    let page = (printer("flashcache").table)(&facts);
    let expected = "\
0 20971520 flashcache conf:
\tssd dev (/dev/sdb), disk dev (/dev/sda3) cache mode(WRITE_BACK)
\tcapacity(57018M), associativity(512), data block size(4K) metadata block size(4096b)
\tskip sequential thresh(0K)
\ttotal blocks(14596608), cached blocks(83), cache percent(0)
\tdirty blocks(0), dirty percent(0)
\tnr_queued(0)
Size Hist: 4096:83 ";
    assert_eq!(page.text(), expected);
    assert_eq!(facts.sets(), 28_509);
    let hashed = (printer("flashcache").table)(&Facts { cluster_bytes: 256 << 10, ..facts });
    assert!(hashed.text().contains("(4096b)\n\tdisk assoc(256K)\n\tskip"), "{}", hashed.text());
}

#[test]
fn flashcache_prints_the_status_of_the_article() {
    let (counters, gauges) = flashcache_sample();
    let page = (printer("flashcache").status)(&Facts { gauges, ..facts(&counters) });
    let expected = "\
0 20971520 flashcache stats: \n\treads(83), writes(0)
\tread hits(0), read hit percent(0)
\twrite hits(0) write hit percent(0)
\tdirty write hits(0) dirty write hit percent(0)
\treplacement(0), write replacement(0)
\twrite invalidates(0), read invalidates(0)
\tpending enqueues(0), pending inval(0)
\tmetadata dirties(0), metadata cleans(0)
\tmetadata batch(0) metadata ssd writes(0)
\tcleanings(0) fallow cleanings(0)
\tno room(0) front merge(0) back merge(0)
\tdisk reads(83), disk writes(0) ssd reads(0) ssd writes(83)
\tuncached reads(0), uncached writes(0), uncached IO requeue(0)
\tdisk read errors(0), disk write errors(0) ssd read errors(0) ssd write errors(0)
\tuncached sequential reads(0), uncached sequential writes(0)
\tpid_adds(0), pid_dels(0), pid_drops(0) pid_expiry(0)";
    assert_eq!(page.text(), expected);
}

#[test]
fn flashcache_prints_its_two_lists_where_it_has_them() {
    let counters = Counters::from(CacheCounts { promotions: 5, demotions: 2, ..CacheCounts::default() });
    let gauges = Gauges { slots: 100, used: 60, favoured: 45, ..Gauges::default() };
    let facts = Facts { eviction: "two-list", gauges, ..facts(&counters) };
    let page = (printer("flashcache").status)(&facts);
    let end = "\n\tlru hot blocks(45), lru warm blocks(15)\n\tlru promotions(5), lru demotions(2)";
    assert!(page.text().ends_with(end), "{}", page.text());
    let fifo = (printer("flashcache").status)(&Facts { eviction: "fifo", ..facts });
    assert!(fifo.field("lru hot blocks").is_none());
}

#[test]
fn flashcache_says_what_was_made_as_in_the_article_and_that_223_mb_are_222_7() {
    let (counters, gauges) = flashcache_sample();
    let page = flashcache_created("cache", &Facts { gauges, ..facts(&counters) }, 0, 3944 << 20);
    let expected = "\
cachedev cache, ssd_devname /dev/sdb, disk_devname /dev/sda3 cache mode WRITE_BACK block_size 8, md_block_size 8, cache_size 0
FlashCache metadata will use 223MB of your 3944MB main memory";
    assert_eq!(page.text(), expected);
    assert_eq!(truth(&page, "metadata memory"), "222.7 MiB");
}

/// Each field of the status is from a counter of its own: every counter has another value, and each value is
/// found once.
#[test]
fn no_two_fields_of_flashcache_come_from_the_same_counter() {
    let place = |name: &str| CacheCounts::NAMES.iter().position(|other| *other == name).expect("it is there");
    let mut counters = Counters::from(CacheCounts::named(|name| 1000 + place(name) as u64));
    for _ in 0..7 {
        counters.bypass.read(Bypass::Sequential, 4096);
        counters.bypass.write(Bypass::Mode, 4096);
    }
    for _ in 0..4 {
        counters.bypass.read(Bypass::Shape, 512);
        counters.bypass.write(Bypass::Sequential, 512);
    }
    let page = (printer("flashcache").status)(&facts(&counters));
    assert_eq!(page.field("uncached reads").expect("there").value, Value::Number(11));
    assert_eq!(page.field("uncached sequential reads").expect("there").value, Value::Number(7));
    assert_eq!(page.field("uncached sequential writes").expect("there").value, Value::Number(4));
    let mut seen = std::collections::BTreeSet::new();
    let plain =
        page.fields().iter().filter(|field| field.truth.is_none() && !field.name.starts_with("uncached "));
    let mut count = 0;
    for field in plain {
        assert!(seen.insert(field.value.to_string()), "{} again: {}", field.name, field.value);
        count += 1;
    }
    assert_eq!(count, 27);
}

#[test]
fn rapidcache_prints_table_and_status_of_the_article() {
    let mut counters =
        Counters::from(CacheCounts { read_pieces: 663, disk_reads: 663, ..CacheCounts::default() });
    for _ in 0..663 {
        counters.piece_sizes.record(512);
        counters.bypass.read(Bypass::Shape, 512);
    }
    let facts = Facts {
        fast_name: "/dev/rxd0",
        volume_bytes: 20_971_519 * 512,
        mode: Mode::WriteThrough,
        gauges: Gauges { slots: 262_144, ..Gauges::default() },
        ..facts(&counters)
    };
    let table = "\
0 20971519 rxcache conf:
\trxd dev (/dev/rxd0), disk dev (/dev/sda3) mode (WRITETHROUGH)
\tcapacity(1024M), associativity(512), block size(4K)
\ttotal blocks(262144), cached blocks(0)
 Size Hist: 512:663 ";
    assert_eq!((printer("rapidcache").table)(&facts).text(), table);
    let status = "\
0 20971519 rxcache stats: \n\treads(663), writes(0)
\tcache hits(0) replacement(0), write replacement(0)
\tread invalidates(0), write invalidates(0)
\tuncached reads(663), uncached writes(0)
\tdisk reads(663), disk writes(0)
\tcache reads(0), cache writes(0)";
    assert_eq!((printer("rapidcache").status)(&facts).text(), status);
}

#[test]
fn rapidcache_counts_no_write_as_a_hit_and_says_so() {
    let counters =
        Counters::from(CacheCounts { read_piece_hits: 5, write_piece_hits: 3, ..CacheCounts::default() });
    let page = (printer("rapidcache").status)(&facts(&counters));
    assert_eq!(page.field("cache hits").expect("there").value, Value::Number(5));
    assert_eq!(truth(&page, "cache hits"), "8");
}

#[test]
fn dm_cache_of_linux_prints_its_values_in_order() {
    let counters = Counters::from(CacheCounts {
        read_pieces: 100,
        read_piece_hits: 60,
        write_pieces: 50,
        write_piece_hits: 20,
        read_insertions: 9,
        write_insertions: 4,
        read_replacements: 2,
        write_replacements: 1,
        ..CacheCounts::default()
    });
    let gauges = Gauges {
        slots: 3200,
        used: 200,
        dirty: 17,
        metadata_used_bytes: 70 * 4096 + 1,
        metadata_total_bytes: 4096 * 4096,
        ..Gauges::default()
    };
    let facts = Facts { block_bytes: 32 << 10, eviction: "smq", ways: 0, gauges, ..facts(&counters) };
    let line = "0 20971520 cache 8 71/4096 64 200/3200 60 40 20 30 3 13 17 1 writeback 0 smq 0 rw -";
    assert_eq!((printer("dm-cache").status)(&facts).text(), line);
    let failed = Facts { health: Health::Failed, ..facts };
    assert_eq!((printer("dm-cache").status)(&failed).text(), "0 20971520 cache Fail");
    let table = "0 20971520 cache /dev/sdb /dev/sdb /dev/sda3 64 1 writeback smq 0";
    assert_eq!((printer("dm-cache").table)(&facts).text(), table);
}

#[test]
fn bcache_counts_partial_hits_as_misses_and_says_so() {
    let mut counters = Counters::from(CacheCounts {
        read_hits: 2,
        read_partial_hits: 1,
        read_misses: 3,
        write_hits: 1,
        bypassed_read_misses: 4,
        ..CacheCounts::default()
    });
    counters.bypass.read(Bypass::Sequential, 3 << 19);
    let page = (printer("bcache").status)(&facts(&counters));
    let start: Vec<&str> = page.text().lines().take(6).collect();
    let expected = [
        "bypassed                           1.5M",
        "cache_hits                            3",
        "cache_misses                          4",
        "cache_hit_ratio                      42",
        "cache_bypass_hits                     0",
        "cache_bypass_misses                   4",
    ];
    assert_eq!(start, expected);
    assert_eq!(truth(&page, "bypassed"), "1572864");
    assert_eq!(truth(&page, "cache_misses"), "3");
    assert_eq!(truth(&page, "cache_hit_ratio"), "42.86 %");
    let table = (printer("bcache").table)(&Facts { eviction: "lru", ..facts(&counters) });
    assert_eq!(
        table.field("cache_mode").expect("there").value.to_string(),
        "writethrough [writeback] writearound none"
    );
    let policy = table.field("cache_replacement_policy").expect("there").value.to_string();
    assert_eq!(policy, "[lru] fifo random");
}

#[test]
fn enhanceio_counts_in_sectors_and_prints_readdisk_twice() {
    let counters = Counters::from(CacheCounts {
        read_bytes: 8192,
        read_hit_bytes: 4096,
        write_bytes: 512,
        disk_reads: 5,
        disk_writes: 6,
        read_ns: 2_999_999,
        ..CacheCounts::default()
    });
    let gauges = Gauges { slots: 1 << 20, ..Gauges::default() };
    let facts = Facts { eviction: "lru", ways: 256, gauges, ..facts(&counters) };
    let page = (printer("enhanceio").status)(&facts);
    assert!(
        page.text().starts_with(
            "reads                                16\nwrites                                1\n"
        )
    );
    assert_eq!(page.field("read_hit_pct").expect("there").value, Value::Number(50));
    assert_eq!(page.field("writedisk").expect("there").value, Value::Number(5));
    assert_eq!(truth(&page, "writedisk"), "6");
    assert_eq!(page.field("rdtime_ms").expect("there").value, Value::Number(2));
    let table = (printer("enhanceio").table)(&facts);
    let expected = "\
src_name   /dev/sda3
ssd_name   /dev/sdb
src_size   20971520
ssd_size   1048576
set_size          256
block_size       4096
mode                1
eviction            2
num_sets         4096
num_blocks    1048576
metadata        large
state        normal";
    assert_eq!(table.text(), expected);
}

#[test]
fn own_status_names_each_reason_of_a_bypass() {
    let mut counters = Counters::from(CacheCounts {
        reads: 3,
        read_hits: 1,
        write_bytes: 8192,
        fast_write_bytes: 8192,
        ..CacheCounts::default()
    });
    counters.metadata_bytes = 4096;
    counters.bypass.read(Bypass::TooFewHits, 4096);
    let page = (printer("nandscape").status)(&facts(&counters));
    assert_eq!(page.field("bypass_too-few-hits").expect("there").value, Value::Number(1));
    assert_eq!(page.field("read_hit_share").expect("there").value.to_string(), "33.33 %");
    assert_eq!(page.field("fast_written_per_host_write").expect("there").value.to_string(), "1.500");
    assert!(page.field("bypass_sequential").is_none());
}

#[test]
fn every_page_has_a_json_form_with_each_field_once() {
    let (counters, gauges) = flashcache_sample();
    let facts = Facts { gauges, ..facts(&counters) };
    for printer in PRINTERS {
        for page in [(printer.table)(&facts), (printer.status)(&facts)] {
            let json = serde_json::to_value(&page).expect("plain data");
            let fields = json.as_object().expect("an object");
            assert_eq!(fields.len(), page.fields().len(), "{}: a name twice", printer.info.name);
            for field in page.fields().iter().filter(|field| field.truth.is_some()) {
                assert!(fields[&field.name]["true"].is_string(), "{}", field.name);
            }
        }
    }
    let json = serde_json::to_value((printer("flashcache").table)(&facts)).expect("plain data");
    assert_eq!(json["capacity"], 57_018);
    assert_eq!(json["cache percent"]["printed"], 0);
    assert_eq!(json["cache percent"]["true"], "0.00 %");
}
