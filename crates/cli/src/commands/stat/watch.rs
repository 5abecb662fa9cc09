//! A line for each interval, as iostat prints them, and below it the strip of zones where there are any. In a
//! terminal the strip stays below the last line.

use super::text::amplification;
use super::zones::strip;
use crate::console::{Console, Failure, Result, STOP, Screen, stop_on_ctrl_c};
use nandscape_core::units::{format_bytes, format_ns};
use nandscape_engine::Stat;
use nandscape_engine::control::Client;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Lines between two headings.
const PAGE: usize = 20;
/// How often an interrupt is looked for.
const LOOK: Duration = Duration::from_millis(100);

/// Asks again and again. Figures of a line are those of its interval, latencies those of the last ten
/// seconds.
pub fn run(client: &mut Client, seconds: f64, as_json: bool, console: Console) -> Result<()> {
    if !(0.1..=86400.0).contains(&seconds) {
        return Err(Failure::usage(format!("--watch={seconds}: expected seconds from 0.1 to 86400")));
    }
    stop_on_ctrl_c()?;
    let (_, mut before) = client.stat()?;
    let mut strip_lines = 0;
    for line in 0.. {
        if !sleep(Duration::from_secs_f64(seconds)) {
            return Ok(());
        }
        let (document, now) = client.stat()?;
        if as_json {
            console.result(&document.to_string())?;
        } else {
            let screen = Screen::of_stdout();
            let mut text = if screen.is_live { up(strip_lines) } else { String::new() };
            if line % PAGE == 0 {
                text += HEADING;
                text.push('\n');
            }
            text += &interval(&before, &now);
            let strip = now.zones.as_ref().map(|zones| strip(zones, &screen)).unwrap_or_default();
            strip_lines = strip.len();
            for line in strip {
                text.push('\n');
                text += &line;
            }
            console.result(&text)?;
        }
        before = now;
    }
    Ok(())
}

/// Goes up so many lines and clears them.
fn up(lines: usize) -> String {
    if lines == 0 { String::new() } else { format!("\u{1b}[{lines}A\u{1b}[J") }
}

/// `false` if it was interrupted.
fn sleep(span: Duration) -> bool {
    let end = Instant::now() + span;
    while !STOP.load(Ordering::Relaxed) {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        std::thread::sleep(left.min(LOOK));
    }
    false
}

const HEADING: &str = " reads/s writes/s     read/s  written/s    WAF   moved/s erases/s   free  \
                       model p99 r/w          real p99 r/w";

fn interval(before: &Stat, now: &Stat) -> String {
    let seconds = (now.server.uptime_s - before.server.uptime_s).max(1e-9);
    // Counters go back when they are reset.
    let per_s = |now: u64, before: u64| now.checked_sub(before).unwrap_or(now) as f64 / seconds;
    let (host, old) = (&now.host, &before.host);
    let programs = now.flash.programs.checked_sub(before.flash.programs);
    let written = host.write_bytes.checked_sub(old.write_bytes);
    let waf = programs.zip(written).and_then(|(programs, written)| amplification(now, programs, written));
    let waf = waf.map_or_else(|| "-".to_owned(), |waf| format!("{waf:.3}"));
    let (model, real) = (&now.interval.latency_ns, &now.interval.real_latency_ns);
    let pair = |read: u64, write: u64| format!("{} / {}", format_ns(read), format_ns(write));
    format!(
        "{:>8.0} {:>8.0} {:>10} {:>10} {waf:>6} {:>9.0} {:>8.0} {:>6}  {:<21}  {}",
        per_s(host.reads, old.reads),
        per_s(host.writes, old.writes),
        format_bytes(per_s(host.read_bytes, old.read_bytes) as u64),
        format_bytes(per_s(host.write_bytes, old.write_bytes) as u64),
        per_s(now.layer.gc.moved_pages, before.layer.gc.moved_pages),
        per_s(now.flash.erases, before.flash.erases),
        now.space.free_blocks,
        pair(model.read.p99, model.write.p99),
        pair(real.read.p99, real.write.p99)
    )
}
