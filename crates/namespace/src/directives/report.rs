//! What directives have counted, for the result document.

use super::state::{Directives, Logs};
use nandscape_core::{FdpReport, LogStatus, PlacementReport, StreamReport};

impl Directives {
    /// Counts start anew: open streams, enabled directives and logged events stay.
    pub fn reset_counts(&mut self, logs: &dyn Logs) {
        (self.unstreamed_bytes, self.left_bytes) = (0, 0);
        if let Some(streams) = &mut self.streams {
            streams.reset_counts();
        }
        for group in 0..self.groups.len() as u16 {
            let media = self.group_media(group, logs);
            if let Some(fdp) = &mut self.groups[usize::from(group)] {
                fdp.reset_counts(media);
            }
        }
    }

    /// What was counted since the last reset.
    pub fn report(&self, logs: &dyn Logs) -> PlacementReport {
        let mut report = PlacementReport {
            directive: if self.streams.is_some() { "streams" } else { "fdp" }.to_owned(),
            unplaced_bytes: self.unstreamed_bytes,
            left_bytes: self.left_bytes,
            ..PlacementReport::default()
        };
        self.report_streams(&mut report, logs);
        self.report_fdp(&mut report, logs);
        report.streams.sort_by_key(|stream| (stream.set, stream.log));
        report
    }

    fn report_streams(&self, report: &mut PlacementReport, logs: &dyn Logs) {
        let Some(streams) = &self.streams else { return };
        (report.opened, report.evicted) = (streams.opened, streams.evicted);
        for (namespace, id, log, is_open, written) in streams.written() {
            let set = self.namespaces[namespace as usize].as_ref().map_or(0, |active| active.set);
            let status = if is_open { logs.log_status(set, log) } else { LogStatus::default() };
            report.streams.push(StreamReport {
                namespace: namespace + 1,
                id,
                set,
                log,
                host_bytes: written.bytes,
                writes: written.writes,
                pieces: status.pieces,
                piece_bytes: status.piece_bytes,
                ..StreamReport::default()
            });
        }
    }

    fn report_fdp(&self, report: &mut PlacementReport, logs: &dyn Logs) {
        let mut sum: Option<FdpReport> = None;
        for (group, fdp) in self.groups.iter().enumerate() {
            let Some((fdp, active)) = fdp.as_ref().and_then(|fdp| Some((fdp, fdp.active()?))) else {
                continue;
            };
            let total = sum.get_or_insert_default();
            let statistics = fdp.statistics(self.group_media(group as u16, logs));
            total.hbmw += statistics.host;
            total.mbmw += statistics.media;
            total.mbe += statistics.erased;
            report.left_bytes += fdp.left_bytes;
            report.unplaced_bytes += fdp.unplaced_bytes;
            total.invalid_pids += fdp.invalid_pids;
            total.host_events += fdp.host_events.total;
            total.controller_events += fdp.controller_events.total;
            let set = self.sets.iter().position(|of| usize::from(*of) == group).unwrap_or(0) as u16;
            for (log, namespace, written) in fdp.written() {
                let (group, unit) = active.of_log(log);
                let status = logs.log_status(set, log);
                report.streams.push(StreamReport {
                    namespace: namespace + 1,
                    id: unit,
                    group,
                    set,
                    log,
                    host_bytes: written.bytes,
                    writes: written.writes,
                    pieces: status.pieces,
                    piece_bytes: status.piece_bytes,
                    spilled_bytes: status.spilled_bytes,
                });
            }
        }
        report.fdp = sum.map(|total| FdpReport {
            dlwa: (total.hbmw > 0).then(|| total.mbmw as f64 / total.hbmw as f64),
            ..total
        });
    }
}
