//! Streams and reclaim unit handles of a run: what was written to each, and its lines in the text.

use crate::Run;
use crate::number::{Kind, four_digits, grouped, or_dash};
use crate::table::{Head, Table};
use nandscape_core::PlacementReport;
use std::fmt::Write as _;

/// Streams that a table lists; the rest is summed up in one line, so that ten thousand ids do not make ten
/// thousand lines.
const LISTED: usize = 32;

pub(crate) fn facts(placement: &PlacementReport) -> String {
    let bytes = |n: u64| if n == 0 { "nothing".to_owned() } else { Kind::Bytes.show_alone(n as f64) };
    let mut out = match placement.directive.as_str() {
        "streams" => format!(
            "{} streams opened, {} of them in place of another; {} unstreamed",
            placement.opened,
            placement.evicted,
            bytes(placement.unplaced_bytes)
        ),
        "fdp" => format!("{} without a valid placement identifier", bytes(placement.unplaced_bytes)),
        _ => format!("{} in the default log", bytes(placement.unplaced_bytes)),
    };
    if placement.left_bytes > 0 {
        let _ = write!(out, "; {} left unwritten in pieces", bytes(placement.left_bytes));
    }
    if let Some(fdp) = &placement.fdp {
        let _ = write!(
            out,
            "; HBMW {}, MBMW {}, MBE {}, DLWA {}",
            bytes(fdp.hbmw),
            bytes(fdp.mbmw),
            bytes(fdp.mbe),
            or_dash(fdp.dlwa, four_digits)
        );
        if fdp.host_events + fdp.controller_events > 0 {
            let _ = write!(out, "; {} host and {} controller events", fdp.host_events, fdp.controller_events);
        }
    }
    out
}

pub(crate) fn columns(placement: &PlacementReport) -> Vec<(&'static str, Vec<String>)> {
    let listed = &placement.streams[..placement.streams.len().min(LISTED)];
    let all = |cell: &dyn Fn(&nandscape_core::StreamReport) -> String| listed.iter().map(cell).collect();
    let name = if placement.directive == "fdp" { "handle" } else { "stream" };
    let bytes = |n: u64| if n == 0 { "0".to_owned() } else { Kind::Bytes.show_alone(n as f64) };
    let mut out = vec![(name, all(&|stream| stream.id.to_string()))];
    if listed.iter().any(|stream| stream.namespace > 0) {
        out.push(("namespace", all(&|stream| stream.namespace.to_string())));
    }
    if listed.iter().any(|stream| stream.set > 0) {
        out.push(("set", all(&|stream| stream.set.to_string())));
    }
    if listed.iter().any(|stream| stream.group > 0) {
        out.push(("group", all(&|stream| stream.group.to_string())));
    }
    out.push(("log", all(&|stream| stream.log.to_string())));
    out.push(("written", all(&|stream| bytes(stream.host_bytes))));
    if listed.iter().any(|stream| stream.writes > 0) {
        out.push(("writes", all(&|stream| grouped(stream.writes))));
    }
    out.push(("pieces", all(&|stream| grouped(stream.pieces))));
    out.push(("piece", all(&|stream| bytes(stream.piece_bytes))));
    if listed.iter().any(|stream| stream.spilled_bytes > 0) {
        out.push(("to other groups", all(&|stream| bytes(stream.spilled_bytes))));
    }
    out
}

/// The line for streams that the table does not list.
pub(crate) fn not_listed(placement: &PlacementReport) -> Option<String> {
    let rest = placement.streams.get(LISTED..).filter(|rest| !rest.is_empty())?;
    let bytes = rest.iter().map(|stream| stream.host_bytes).sum::<u64>();
    Some(format!("and {} more, written {}", rest.len(), Kind::Bytes.show_alone(bytes as f64)))
}

/// The streams of a run; empty if it has none.
pub(crate) fn placement_text(run: &Run, width: Option<usize>) -> String {
    let Some(placement) = &run.result.placement else { return String::new() };
    let mut out = format!("\nstreams: {}\n", facts(placement));
    let mut table = Table::new();
    for (name, cells) in columns(placement) {
        table.column(Head::number("", name, ""), cells);
    }
    out.push_str(&table.render(width));
    if let Some(line) = not_listed(placement) {
        let _ = writeln!(out, "{line}");
    }
    out
}
