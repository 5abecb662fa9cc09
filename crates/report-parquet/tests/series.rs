//! The file is read back with the reader of the same crate, which knows nothing of how it was filled.

#[path = "../../report/tests/suite/sample/mod.rs"]
mod sample;

use nandscape_core::Cause;
use nandscape_report_parquet::{render_parquet, render_sweep_parquet};
use nandscape_sim::JobSeries;
use nandscape_sim::histogram::LogHistogram;
use nandscape_sim::jobs::timeline::{Cell, Window};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Row, RowAccessor};
use std::collections::BTreeMap;

fn columns(reader: &dyn FileReader) -> BTreeMap<String, usize> {
    let schema = reader.metadata().file_metadata().schema_descr();
    schema.columns().iter().enumerate().map(|(i, c)| (c.name().to_owned(), i)).collect()
}

#[test]
fn the_intervals_add_up_to_the_result_of_every_run() {
    let runs = sample::runs(600);
    let file = render_parquet(&runs).unwrap();
    let reader = SerializedFileReader::new(parquet_bytes(file)).unwrap();
    let columns = columns(&reader);
    let mut sums: BTreeMap<(String, &str), u64> = BTreeMap::new();
    let mut rows = 0;
    let names: Vec<&str> = columns.keys().map(String::as_str).filter(|name| is_count(name)).collect();
    for row in reader.get_row_iter(None).unwrap() {
        let row = row.unwrap();
        let run = row.get_string(columns["run"]).unwrap().clone();
        for &name in &names {
            *sums.entry((run.clone(), name)).or_default() += row.get_ulong(columns[name]).unwrap();
        }
        rows += 1;
    }
    let samples: usize = runs.iter().map(|run| run.series.as_ref().unwrap().samples.len()).sum();
    assert_eq!(rows, samples);
    for run in &runs {
        let sum = |name: &'static str| sums[&(run.label.clone(), name)];
        let result = &run.result;
        assert_eq!(sum("host_write_bytes"), result.host.write_bytes, "{}", run.label);
        assert_eq!(sum("host_read_pages"), result.host.read_pages, "{}", run.label);
        assert_eq!(sum("map_update_bytes"), result.layer.map.update_bytes, "{}", run.label);
        for cause in Cause::ALL {
            let of = |what: &str| sums[&(run.label.clone(), names_of(&names, what, cause))];
            let counts = result.flash.cause(cause);
            assert_eq!(
                [of("programs"), of("reads"), of("erases")],
                [counts.programs, counts.reads, counts.erases]
            );
        }
    }
}

#[test]
fn the_last_interval_ends_with_the_figures_of_the_run() {
    let runs = sample::runs(300);
    let reader = SerializedFileReader::new(parquet_bytes(render_parquet(&runs[1..2]).unwrap())).unwrap();
    let columns = columns(&reader);
    let last = reader.get_row_iter(None).unwrap().last().unwrap().unwrap();
    let result = &runs[1].result;
    assert!((last.get_double(columns["waf_so_far"]).unwrap() - result.waf.pages.unwrap()).abs() < 1e-12);
    assert_eq!(last.get_ulong(columns["simulated_ns_so_far"]).unwrap(), result.speed.time.simulated_ns);
    let rate = result.speed.throughput.read_bytes_per_s + result.speed.throughput.write_bytes_per_s;
    let so_far = last.get_double(columns["host_bytes_per_s_so_far"]).unwrap();
    assert!((so_far / rate - 1.0).abs() < 1e-9, "{so_far} {rate}");
}

/// Two runs with caches, and a disk alone.
#[test]
fn the_columns_of_a_cache_add_up_to_its_last_point_and_are_null_without_one() {
    let runs = sample::cached_runs(600);
    let reader = SerializedFileReader::new(parquet_bytes(render_parquet(&runs).unwrap())).unwrap();
    let columns = columns(&reader);
    let of_cache: Vec<&str> =
        columns.keys().map(String::as_str).filter(|name| name.starts_with("cache_")).collect();
    assert_eq!(of_cache.len(), 17, "{of_cache:?}");
    let rows: Vec<Row> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
    for run in &runs[..2] {
        let rows: Vec<&Row> =
            rows.iter().filter(|row| *row.get_string(columns["run"]).unwrap() == run.label).collect();
        let samples = &run.series.as_ref().unwrap().samples;
        assert_eq!(rows.len(), samples.len());
        let count = |row: &Row, name: &str| row.get_ulong(columns[name]).unwrap();
        for (row, sample) in rows.iter().zip(samples) {
            let point = sample.cache.unwrap();
            let standing = ["cache_slots", "cache_used", "cache_dirty", "cache_dirty_bytes"];
            let wanted = [point.slots, point.used, point.dirty, point.dirty_bytes];
            assert_eq!(standing.map(|name| count(row, name)), wanted, "{}", run.label);
            let hits = point.counts.read_hits as f64 / point.counts.reads as f64;
            assert_eq!(
                row.get_double(columns["cache_read_hit_ratio_so_far"]).ok(),
                (point.counts.reads > 0).then_some(hits)
            );
        }
        let last = samples.last().unwrap().cache.unwrap();
        for (name, wanted) in [
            ("cache_reads", last.counts.reads),
            ("cache_read_hits", last.counts.read_hits),
            ("cache_writes", last.counts.writes),
            ("cache_write_hits", last.counts.write_hits),
            ("cache_cleaned", last.counts.cleaned),
            ("cache_fast_read_bytes", last.fast.read_bytes),
            ("cache_fast_write_bytes", last.fast.write_bytes),
            ("cache_disk_read_bytes", last.disk.read_bytes),
            ("cache_disk_write_bytes", last.disk.write_bytes),
        ] {
            assert_eq!(rows.iter().map(|row| count(row, name)).sum::<u64>(), wanted, "{} {name}", run.label);
            assert!(wanted > count(rows.last().unwrap(), name), "{} {name}: intervals, not sums", run.label);
        }
        let end = rows.last().unwrap();
        let ratio = count(end, "cache_write_hits") as f64 / count(end, "cache_writes") as f64;
        let told = end.get_double(columns["cache_write_hit_ratio"]).unwrap();
        assert!((told - ratio).abs() < 1e-12, "{told} {ratio}");
    }
    let alone = rows.iter().filter(|row| *row.get_string(columns["run"]).unwrap() == runs[2].label);
    let cells = alone.flat_map(|row| of_cache.iter().map(|name| row.is_null(columns[*name]).unwrap()));
    let cells: Vec<bool> = cells.collect();
    assert!(!cells.is_empty() && cells.iter().all(|is_null| *is_null));
}

/// Two jobs in two intervals, the second shorter, the second job reading in one of them only.
#[test]
fn job_files_have_a_row_for_each_job_direction_and_interval() {
    let cell = |requests: u64, latency: u64| Cell {
        requests,
        bytes: requests * 4096,
        latency_sum_ns: requests * latency,
        latency_max_ns: 2 * latency,
        buckets: {
            let mut histogram = LogHistogram::default();
            (0..requests).for_each(|_| histogram.record(latency));
            histogram.sparse()
        },
    };
    let cache =
        sample::cached_runs(60)[0].series.as_ref().unwrap().samples.iter().map(|s| s.cache).next().unwrap();
    let window = |end_ns, [a, b]: [u64; 2]| Window {
        end_ns,
        rows: vec![[cell(0, 0), cell(a, 1000)], [cell(b, 64), cell(a + b, 200)]],
        cache,
        ..Window::default()
    };
    let mut runs = sample::cached_runs(60);
    runs.truncate(1);
    let rows = vec!["log".to_owned(), "table".to_owned()];
    let windows = vec![window(1_000_000, [3, 0]), window(1_500_000, [5, 7])];
    (runs[0].series, runs[0].jobs) = (None, Some(JobSeries { interval_ns: 1_000_000, rows, windows }));
    let reader = SerializedFileReader::new(parquet_bytes(render_parquet(&runs).unwrap())).unwrap();
    let columns = columns(&reader);
    let rows: Vec<Row> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
    let told: Vec<_> = rows
        .iter()
        .map(|row| {
            let text = |name: &str| row.get_string(columns[name]).unwrap().clone();
            let count = |name: &str| row.get_ulong(columns[name]).unwrap();
            let rate = row.get_double(columns["requests_per_s"]).unwrap();
            let p99 = row.get_ulong(columns["latency_p99_ns"]).ok();
            let interval = row.get_uint(columns["interval"]).unwrap();
            let times = (interval, count("start_ns"), count("end_ns"));
            (text("job"), text("direction"), times, count("requests"), count("bytes"), rate, p99.is_some())
        })
        .collect();
    let (first, second) = ((0, 0, 1_000_000), (1, 1_000_000, 1_500_000));
    let row = |job: &str, direction: &str, times, requests: u64, rate| {
        (job.to_owned(), direction.to_owned(), times, requests, requests * 4096, rate, requests > 0)
    };
    let wanted = [
        row("log", "read", first, 0, 0.0),
        row("log", "write", first, 3, 3000.0),
        row("table", "read", first, 0, 0.0),
        row("table", "write", first, 3, 3000.0),
        row("log", "read", second, 0, 0.0),
        row("log", "write", second, 5, 10_000.0),
        row("table", "read", second, 7, 14_000.0),
        row("table", "write", second, 12, 24_000.0),
    ];
    assert_eq!(told, wanted);
    let of_reads = |name: &str| rows[6].get_ulong(columns[name]).unwrap();
    assert_eq!((of_reads("latency_max_ns"), of_reads("cache_slots")), (128, cache.unwrap().slots));
    assert!((60..=64).contains(&of_reads("latency_p50_ns")), "{}", of_reads("latency_p50_ns"));
    assert_eq!(rows[6].get_double(columns["latency_mean_ns"]).ok(), Some(64.0));
    assert_eq!(of_reads("cache_reads"), 0, "as the interval before ended");
}

#[test]
fn runs_without_a_series_give_a_file_without_rows() {
    let mut runs = sample::runs(20);
    for run in &mut runs {
        run.series = None;
    }
    for runs in [&runs[..], &[]] {
        let reader = SerializedFileReader::new(parquet_bytes(render_parquet(runs).unwrap())).unwrap();
        assert_eq!(reader.metadata().file_metadata().num_rows(), 0);
        assert!(columns(&reader).contains_key("programs_gc"));
    }
}

#[test]
fn a_sweep_has_a_row_for_each_point_and_seed() {
    let file = render_sweep_parquet(&sample::sweep("zipf")).unwrap();
    let reader = SerializedFileReader::new(parquet_bytes(file)).unwrap();
    let names = columns(&reader);
    for name in ["point", "ftl.op", "ftl.victim", "seed", "waf_bytes", "latency_ns.all.p99_9", "error"] {
        assert!(names.contains_key(name), "{name}");
    }
    let rows: Vec<String> = reader.get_row_iter(None).unwrap().map(|row| row.unwrap().to_string()).collect();
    assert_eq!(rows.len(), 8);
    assert!(
        rows[0].contains("point: 0, ftl.op: 0.07, ftl.victim: \"greedy\", seed: 1, waf_bytes: 4.01"),
        "{}",
        rows[0]
    );
    assert!(rows[0].contains("error: null") && rows[7].contains("waf_bytes: null"), "{}", rows[7]);
    assert!(rows[7].contains("error: \"zipf\""), "{}", rows[7]);
}

fn is_count(name: &str) -> bool {
    let starts = ["host_", "programs_", "reads_", "erases_", "map_", "gc_"];
    starts.iter().any(|start| name.starts_with(start))
        && !name.ends_with("_so_far")
        && !name.contains("per_s")
}

fn names_of<'a>(names: &[&'a str], what: &str, cause: Cause) -> &'a str {
    let wanted = format!("{what}_{}", cause.name());
    names.iter().find(|name| **name == wanted).copied().unwrap_or_else(|| panic!("no column {wanted}"))
}

fn parquet_bytes(file: Vec<u8>) -> bytes::Bytes {
    bytes::Bytes::from(file)
}
