//! How a key of the result document is shown in a sweep.

use crate::metrics::Better;
use crate::number::Kind;

/// Share of the good flash that hosts can address: `cost.logical_pages` over all pages of
/// `cost.total_blocks`. A metric of sweeps, and no key of the document.
pub const USABLE_SHARE: &str = "usable_share";

/// A metric of a sweep.
#[derive(Clone, Debug)]
pub(crate) struct Figure {
    /// Short name, such as `write p99.9`.
    pub name: String,
    /// Unit and digits.
    pub kind: Kind,
    /// Which direction is good.
    pub better: Better,
}

/// Parts of keys of which more is better.
const MORE: [&str; 6] = ["per_s", "hit_ratio", "usable", "lifetime.", "logical_pages", "requests_per"];
/// Keys that describe a run and are no better large or small.
const DESCRIBES: [&str; 5] = ["host.", "seed", "schema", "workload.", "cost.op_ratio"];

impl Figure {
    /// By a dotted key.
    pub fn of(key: &str) -> Self {
        let last = key.rsplit('.').next().unwrap_or(key);
        let kind = match last {
            _ if key.starts_with("latency_ns.") && last != "count" => Kind::Nanos,
            _ if last.ends_with("_per_s") && last.contains("bytes") => Kind::Rate,
            "waf_bytes" => Kind::Ratio,
            _ if last.ends_with("bytes") => Kind::Bytes,
            _ if last.ends_with("_ns") => Kind::Nanos,
            _ if last.starts_with("waf") || last.ends_with("ratio") || last.ends_with("share") => Kind::Ratio,
            _ if last.ends_with("mean") || last.ends_with("stddev") || last.ends_with("wall_s") => Kind::Real,
            _ if last.starts_with("years") || last == "drive_writes" || last.ends_with("waf") => Kind::Real,
            _ => Kind::Count,
        };
        let better = if DESCRIBES.iter().any(|start| key.starts_with(start)) {
            Better::Neither
        } else if MORE.iter().any(|part| key.contains(part)) {
            Better::Higher
        } else {
            Better::Lower
        };
        Self { name: name(key), kind, better }
    }
}

fn name(key: &str) -> String {
    let parts: Vec<&str> = key.split('.').collect();
    match parts[..] {
        ["waf_bytes"] => "WAF".to_owned(),
        ["waf"] => "WAF in pages".to_owned(),
        [USABLE_SHARE] => "usable share".to_owned(),
        ["cost", "dram_bytes"] => "DRAM".to_owned(),
        ["cost", "usable_bytes"] => "usable".to_owned(),
        ["throughput", "read_bytes_per_s"] => "read throughput".to_owned(),
        ["throughput", "write_bytes_per_s"] => "write throughput".to_owned(),
        ["latency_ns", of, what] => {
            let what = if what.starts_with('p') { what.replace('_', ".") } else { what.to_owned() };
            if of == "all" { what } else { format!("{of} {what}") }
        }
        _ => key.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_names_units_and_directions() {
        let of = |key: &str| {
            let figure = Figure::of(key);
            (figure.name, figure.kind, figure.better)
        };
        assert_eq!(of("waf_bytes"), ("WAF".into(), Kind::Ratio, Better::Lower));
        assert_eq!(of("latency_ns.all.p99_9"), ("p99.9".into(), Kind::Nanos, Better::Lower));
        assert_eq!(of("latency_ns.read.count"), ("read count".into(), Kind::Count, Better::Lower));
        assert_eq!(
            of("throughput.write_bytes_per_s"),
            ("write throughput".into(), Kind::Rate, Better::Higher)
        );
        assert_eq!(of(USABLE_SHARE), ("usable share".into(), Kind::Ratio, Better::Higher));
        assert_eq!(of("lifetime.drive_writes").2, Better::Higher);
        assert_eq!(of("host.writes").2, Better::Neither);
    }
}
