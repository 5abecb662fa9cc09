//! The stat document as `OpenMetrics`. Names, types and labels are documented in `docs/serving.md`, which a
//! test compares.

use nandscape_engine::{Latencies, NamespaceStat, Stat};
use nandscape_sim::result::LatencySummary;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode as encode_text;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::{MetricType, info::Info};
use prometheus_client::registry::{Registry, Unit};
use std::fmt::Error;

/// The text of a scrape.
pub fn encode(stat: &Stat) -> Result<String, Error> {
    let mut registry = Registry::with_prefix("nandscape");
    registry.register("build", "Version of nandscape", Info::new([("version", stat.server.version.clone())]));
    registry.register_collector(Box::new(Scrape(stat.clone())));
    let mut out = String::new();
    encode_text(&mut out, &registry)?;
    Ok(out)
}

#[derive(Debug)]
struct Scrape(Stat);

type Labels<'a> = Vec<(&'static str, &'a str)>;

/// What a namespace counts, by kind of request.
type ByOp = [(&'static str, Option<u64>); 4];

/// Families of one scrape.
struct Families<'a>(DescriptorEncoder<'a>);

impl Families<'_> {
    fn counters<'a>(
        &mut self,
        (name, help): (&str, &str),
        unit: Option<&Unit>,
        samples: impl IntoIterator<Item = (Labels<'a>, u64)>,
    ) -> Result<(), Error> {
        let mut family = self.0.encode_descriptor(name, help, unit, MetricType::Counter)?;
        for (labels, value) in samples {
            let counter = ConstCounter::new(value);
            if labels.is_empty() {
                // A family without labels has one sample.
                return counter.encode(family);
            }
            counter.encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }

    fn gauges<'a>(
        &mut self,
        (name, help): (&str, &str),
        unit: Option<&Unit>,
        samples: impl IntoIterator<Item = (Labels<'a>, f64)>,
    ) -> Result<(), Error> {
        let mut family = self.0.encode_descriptor(name, help, unit, MetricType::Gauge)?;
        for (labels, value) in samples {
            let gauge = ConstGauge::new(value);
            if labels.is_empty() {
                // A family without labels has one sample.
                return gauge.encode(family);
            }
            gauge.encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

impl Collector for Scrape {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        let (stat, mut families) = (&self.0, Families(encoder));
        hosts(stat, &mut families)?;
        flash(stat, &mut families)?;
        space(stat, &mut families)?;
        times(stat, &mut families)?;
        cache(stat, &mut families)?;
        trouble(stat, &mut families)
    }
}

fn hosts(stat: &Stat, out: &mut Families<'_>) -> Result<(), Error> {
    let of = |read: u64, write: u64, rest: [Option<u64>; 2]| {
        [("read", Some(read)), ("write", Some(write)), ("trim", rest[0]), ("flush", rest[1])]
    };
    let each = |pick: &dyn Fn(&NamespaceStat) -> ByOp| {
        let rows = stat.namespaces.iter().flat_map(|namespace| {
            pick(namespace).into_iter().filter_map(move |(op, count)| {
                Some((vec![("namespace", namespace.name.as_str()), ("op", op)], count?))
            })
        });
        rows.collect::<Vec<_>>()
    };
    out.counters(
        ("host_requests", "Requests of hosts"),
        None,
        each(&|ns| of(ns.host.reads, ns.host.writes, [Some(ns.host.trims), Some(ns.host.flushes)])),
    )?;
    out.counters(
        ("host", "Bytes that hosts read, wrote and trimmed"),
        Some(&Unit::Bytes),
        each(&|ns| of(ns.host.read_bytes, ns.host.write_bytes, [Some(ns.host.trim_bytes), None])),
    )?;
    out.counters(
        ("host_pages", "Device pages that requests of hosts touched"),
        None,
        each(&|ns| of(ns.host.read_pages, ns.host.write_pages, [None, None])),
    )?;
    out.gauges(
        ("namespace_capacity", "Capacity of a namespace"),
        Some(&Unit::Bytes),
        stat.namespaces.iter().map(|ns| (vec![("namespace", ns.name.as_str())], ns.capacity_bytes as f64)),
    )
}

fn flash(stat: &Stat, out: &mut Families<'_>) -> Result<(), Error> {
    let operations = stat.flash.by_cause.iter().flat_map(|(cause, counts)| {
        [("program", counts.programs), ("read", counts.reads), ("erase", counts.erases)]
            .map(|(op, count)| (vec![("cause", cause.as_str()), ("op", op)], count))
    });
    out.counters(
        ("flash_operations", "Pages programmed and read, blocks erased, by cause"),
        None,
        operations,
    )?;
    let waf = [("start", stat.waf.pages), ("recent", stat.interval.waf)];
    out.gauges(
        ("write_amplification", "Pages programmed over pages that hosts wrote"),
        None,
        waf.into_iter().filter_map(|(window, waf)| Some((vec![("window", window)], waf?))),
    )?;
    out.counters(("gc_runs", "Victims of garbage collection"), None, [(vec![], stat.layer.gc.runs)])?;
    out.counters(
        ("gc_moved_pages", "Pages moved by garbage collection"),
        None,
        [(vec![], stat.layer.gc.moved_pages)],
    )?;
    out.counters(
        ("map_updates", "Changed entries of mapping tables"),
        None,
        [(vec![], stat.layer.map.updates)],
    )
}

fn space(stat: &Stat, out: &mut Families<'_>) -> Result<(), Error> {
    let space = &stat.space;
    let used = space.total_blocks.saturating_sub(space.free_blocks);
    let blocks = [("erased", space.free_blocks), ("used", used), ("bad", space.bad_blocks)];
    out.gauges(
        ("blocks", "Blocks by state"),
        None,
        blocks.map(|(state, count)| (vec![("state", state)], count as f64)),
    )?;
    out.gauges(
        ("live", "Bytes of logical pages that hold data"),
        Some(&Unit::Bytes),
        [(vec![], space.live_bytes as f64)],
    )?;
    let wear = &stat.wear;
    let erases = [
        ("min", wear.erases_min as f64),
        ("max", wear.erases_max as f64),
        ("mean", wear.erases_mean),
        ("stddev", wear.erases_stddev),
    ];
    out.gauges(
        ("block_erases", "Erases of a good block since the device was made"),
        None,
        erases.map(|(statistic, value)| (vec![("statistic", statistic)], value)),
    )
}

fn quantiles(latency: &LatencySummary) -> [(&'static str, f64); 5] {
    let s = |ns: u64| ns as f64 / 1e9;
    [
        ("0.5", s(latency.p50)),
        ("0.9", s(latency.p90)),
        ("0.99", s(latency.p99)),
        ("0.999", s(latency.p99_9)),
        ("1", s(latency.max)),
    ]
}

fn times(stat: &Stat, out: &mut Families<'_>) -> Result<(), Error> {
    let by_op = |clock: &'static str, latencies: &Latencies| {
        let ops = [
            ("read", latencies.read),
            ("write", latencies.write),
            ("trim", latencies.trim),
            ("flush", latencies.flush),
        ];
        ops.into_iter().filter(|(_, latency)| latency.count > 0).flat_map(move |(op, latency)| {
            quantiles(&latency)
                .map(|(quantile, s)| (vec![("clock", clock), ("op", op), ("quantile", quantile)], s))
        })
    };
    out.gauges(
        ("latency", "Latency of requests in the model's time and in real time, since the start"),
        Some(&Unit::Seconds),
        by_op("model", &stat.service.latency_ns).chain(by_op("real", &stat.service.real_latency_ns)),
    )?;
    out.gauges(
        ("queue_wait", "How long batches of requests waited for the stack"),
        Some(&Unit::Seconds),
        quantiles(&stat.service.queue.wait_ns).map(|(quantile, s)| (vec![("quantile", quantile)], s)),
    )?;
    out.gauges(
        ("simulated", "The model's time since the start"),
        Some(&Unit::Seconds),
        [(vec![], stat.speed.time.simulated_ns as f64 / 1e9)],
    )?;
    out.gauges(
        ("uptime", "Since the server started"),
        Some(&Unit::Seconds),
        [(vec![], stat.server.uptime_s)],
    )?;
    let Some(pace) = &stat.service.pace else { return Ok(()) };
    out.counters(("paced_answers", "Answers with a time of their own"), None, [(vec![], pace.answers)])?;
    out.counters(("late_answers", "Answers that were late"), None, [(vec![], pace.late)])?;
    out.gauges(
        ("lateness", "How much later than the model's completion answers were"),
        Some(&Unit::Seconds),
        quantiles(&pace.late_ns).map(|(quantile, s)| (vec![("quantile", quantile)], s)),
    )
}

/// A cache that is served, of which the document holds whatever it counts.
fn cache(stat: &Stat, out: &mut Families<'_>) -> Result<(), Error> {
    let Some(cache) = &stat.cached else { return Ok(()) };
    let numbers = |key: &str| {
        let numbers = cache[key].as_object().into_iter().flatten();
        numbers.filter_map(|(name, value)| Some((name.as_str(), value.as_u64()?))).collect::<Vec<_>>()
    };
    let events = numbers("counters").into_iter().map(|(event, count)| (vec![("event", event)], count));
    out.counters(("cache_events", "What a cache counted, by its names in the stat document"), None, events)?;
    let gauges = numbers("gauges").into_iter().map(|(gauge, value)| (vec![("gauge", gauge)], value as f64));
    out.gauges(("cache_state", "How a cache stands, by its names in the stat document"), None, gauges)?;
    let volumes = cache["volumes"].as_array().into_iter().flatten().flat_map(|volume| {
        let name = volume["name"].as_str().unwrap_or_default();
        [("cached", "blocks"), ("dirty", "dirty_blocks")].map(|(state, key)| {
            (vec![("volume", name), ("state", state)], volume[key].as_f64().unwrap_or_default())
        })
    });
    out.gauges(("cache_volume_blocks", "Blocks of a volume in a cache"), None, volumes)?;
    let is_degraded = cache["health"].as_str() != Some("normal");
    out.gauges(
        ("cache_degraded", "1 if the cache device is used no more, or something is lost"),
        None,
        [(vec![], f64::from(u8::from(is_degraded)))],
    )?;
    let is_given_up = cache["given_up"].is_string();
    out.gauges(
        ("cache_given_up", "1 if the cache device is given up: everything goes to the disks"),
        None,
        [(vec![], f64::from(u8::from(is_given_up)))],
    )?;
    let lost = cache["lost"].as_array().into_iter().flatten();
    let lost = lost.filter_map(|range| range["len"].as_f64()).sum();
    out.gauges(
        ("cache_lost", "Bytes that were lost with the cache device and not written anew"),
        Some(&Unit::Bytes),
        [(vec![], lost)],
    )
}

fn trouble(stat: &Stat, out: &mut Families<'_>) -> Result<(), Error> {
    let errors = stat.faults.errors.iter().map(|(kind, count)| (vec![("kind", kind.as_str())], *count));
    out.counters(("request_errors", "Failed requests by kind of error"), None, errors)?;
    out.counters(
        ("checksum_errors", "Pages that failed their checksum when they were read"),
        None,
        [(vec![], stat.faults.checksum_errors)],
    )?;
    out.counters(
        ("torn_pages", "Pages that were found to be cut short"),
        None,
        [(vec![], stat.faults.torn_pages)],
    )?;
    out.gauges(
        ("read_only_sets", "Sets that take no more writes"),
        None,
        [(vec![], stat.faults.read_only.len() as f64)],
    )?;
    let recording = stat.recording.iter();
    out.counters(
        ("recorded_commands", "Commands in the recording that runs or ran last"),
        None,
        recording.map(|recording| (vec![], recording.commands)),
    )
}
