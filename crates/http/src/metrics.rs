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

/// Families of one scrape. The unit of a family is the end of its name.
struct Families<'a>(DescriptorEncoder<'a>);

impl Families<'_> {
    fn family<'a, M: EncodeMetric>(
        &mut self,
        kind: MetricType,
        (name, help): (&str, &str),
        samples: impl Iterator<Item = (Labels<'a>, M)>,
    ) -> Result<(), Error> {
        let units = [("_bytes", Unit::Bytes), ("_seconds", Unit::Seconds)];
        let mut of = units.iter().filter_map(|(end, unit)| Some((name.strip_suffix(end)?, Some(unit))));
        let (name, unit) = of.next().unwrap_or((name, None));
        let mut family = self.0.encode_descriptor(name, help, unit, kind)?;
        for (labels, metric) in samples {
            if labels.is_empty() {
                // A family without labels has one sample.
                return metric.encode(family);
            }
            metric.encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }

    fn counters<'a>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (Labels<'a>, u64)>,
    ) -> Result<(), Error> {
        let samples = samples.into_iter().map(|(labels, value)| (labels, ConstCounter::new(value)));
        self.family(MetricType::Counter, (name, help), samples)
    }

    fn gauges<'a>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (Labels<'a>, f64)>,
    ) -> Result<(), Error> {
        let samples = samples.into_iter().map(|(labels, value)| (labels, ConstGauge::new(value)));
        self.family(MetricType::Gauge, (name, help), samples)
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) -> Result<(), Error> {
        self.counters(name, help, [(vec![], value)])
    }

    fn gauge(&mut self, name: &str, help: &str, value: f64) -> Result<(), Error> {
        self.gauges(name, help, [(vec![], value)])
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
        "host_requests",
        "Requests of hosts",
        each(&|ns| of(ns.host.reads, ns.host.writes, [Some(ns.host.trims), Some(ns.host.flushes)])),
    )?;
    out.counters(
        "host_bytes",
        "Bytes that hosts read, wrote and trimmed",
        each(&|ns| of(ns.host.read_bytes, ns.host.write_bytes, [Some(ns.host.trim_bytes), None])),
    )?;
    out.counters(
        "host_pages",
        "Device pages that requests of hosts touched",
        each(&|ns| of(ns.host.read_pages, ns.host.write_pages, [None, None])),
    )?;
    out.gauges(
        "namespace_capacity_bytes",
        "Capacity of a namespace",
        stat.namespaces.iter().map(|ns| (vec![("namespace", ns.name.as_str())], ns.capacity_bytes as f64)),
    )
}

fn flash(stat: &Stat, out: &mut Families<'_>) -> Result<(), Error> {
    let operations = stat.flash.by_cause.iter().flat_map(|(cause, counts)| {
        [("program", counts.programs), ("read", counts.reads), ("erase", counts.erases)]
            .map(|(op, count)| (vec![("cause", cause.as_str()), ("op", op)], count))
    });
    out.counters("flash_operations", "Pages programmed and read, blocks erased, by cause", operations)?;
    let waf = [("start", stat.waf.pages), ("recent", stat.interval.waf)];
    out.gauges(
        "write_amplification",
        "Pages programmed over pages that hosts wrote",
        waf.into_iter().filter_map(|(window, waf)| Some((vec![("window", window)], waf?))),
    )?;
    out.counter("gc_runs", "Victims of garbage collection", stat.layer.gc.runs)?;
    out.counter("gc_moved_pages", "Pages moved by garbage collection", stat.layer.gc.moved_pages)?;
    out.counter("map_updates", "Changed entries of mapping tables", stat.layer.map.updates)
}

fn space(stat: &Stat, out: &mut Families<'_>) -> Result<(), Error> {
    let space = &stat.space;
    let used = space.total_blocks.saturating_sub(space.free_blocks);
    let blocks = [("erased", space.free_blocks), ("used", used), ("bad", space.bad_blocks)];
    out.gauges(
        "blocks",
        "Blocks by state",
        blocks.map(|(state, count)| (vec![("state", state)], count as f64)),
    )?;
    out.gauge("live_bytes", "Bytes of logical pages that hold data", space.live_bytes as f64)?;
    if let Some(files) = &space.objects {
        let bytes = [("live", files.live_bytes), ("used", files.used_bytes), ("moved", files.moved_bytes)];
        let bytes = bytes.map(|(kind, bytes)| (vec![("kind", kind)], bytes as f64));
        out.gauges("files_bytes", "Of a store of files: live, in zones that hold data, moved", bytes)?;
    }
    let wear = &stat.wear;
    let erases = [
        ("min", wear.erases_min as f64),
        ("max", wear.erases_max as f64),
        ("mean", wear.erases_mean),
        ("stddev", wear.erases_stddev),
    ];
    out.gauges(
        "block_erases",
        "Erases of a good block since the device was made",
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
        "latency_seconds",
        "Latency of requests in the model's time and in real time, since the start",
        by_op("model", &stat.service.latency_ns).chain(by_op("real", &stat.service.real_latency_ns)),
    )?;
    out.gauges(
        "queue_wait_seconds",
        "How long batches of requests waited for the stack",
        quantiles(&stat.service.queue.wait_ns).map(|(quantile, s)| (vec![("quantile", quantile)], s)),
    )?;
    out.gauge(
        "simulated_seconds",
        "The model's time since the start",
        stat.speed.time.simulated_ns as f64 / 1e9,
    )?;
    out.gauge("uptime_seconds", "Since the server started", stat.server.uptime_s)?;
    let Some(pace) = &stat.service.pace else { return Ok(()) };
    out.counter("paced_answers", "Answers with a time of their own", pace.answers)?;
    out.counter("late_answers", "Answers that were late", pace.late)?;
    out.gauges(
        "lateness_seconds",
        "How much later than the model's completion answers were",
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
    out.counters("cache_events", "What a cache counted, by its names in the stat document", events)?;
    let gauges = numbers("gauges").into_iter().map(|(gauge, value)| (vec![("gauge", gauge)], value as f64));
    out.gauges("cache_state", "How a cache stands, by its names in the stat document", gauges)?;
    let volumes = cache["volumes"].as_array().into_iter().flatten().flat_map(|volume| {
        let name = volume["name"].as_str().unwrap_or_default();
        [("cached", "blocks"), ("dirty", "dirty_blocks")].map(|(state, key)| {
            (vec![("volume", name), ("state", state)], volume[key].as_f64().unwrap_or_default())
        })
    });
    out.gauges("cache_volume_blocks", "Blocks of a volume in a cache", volumes)?;
    let is_degraded = cache["health"].as_str() != Some("normal");
    out.gauge(
        "cache_degraded",
        "1 if the cache device or a member of its mirror is used no more, or something is lost",
        f64::from(u8::from(is_degraded)),
    )?;
    let is_given_up = cache["given_up"].is_string();
    out.gauge(
        "cache_given_up",
        "1 if the cache device is given up: everything goes to the disks",
        f64::from(u8::from(is_given_up)),
    )?;
    let lost = cache["lost"].as_array().into_iter().flatten();
    let lost = lost.filter_map(|range| range["len"].as_f64()).sum();
    out.gauge("cache_lost_bytes", "Bytes that were lost with the cache device and not written anew", lost)
}

fn trouble(stat: &Stat, out: &mut Families<'_>) -> Result<(), Error> {
    let errors = stat.faults.errors.iter().map(|(kind, count)| (vec![("kind", kind.as_str())], *count));
    out.counters("request_errors", "Failed requests by kind of error", errors)?;
    out.counter(
        "checksum_errors",
        "Pages that failed their checksum when they were read",
        stat.faults.checksum_errors,
    )?;
    out.counter("torn_pages", "Pages that were found to be cut short", stat.faults.torn_pages)?;
    out.gauge("read_only_sets", "Sets that take no more writes", stat.faults.read_only.len() as f64)?;
    let recording = stat.recording.iter();
    out.counters(
        "recorded_commands",
        "Commands in the recording that runs or ran last",
        recording.map(|recording| (vec![], recording.commands)),
    )
}
