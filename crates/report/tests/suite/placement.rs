//! Streams and placement handles in the reports.

use crate::sample;

use nandscape_core::{FdpReport, PlacementReport, StreamReport};
use nandscape_report::{ReportContext, Run, render_detail, render_html};

fn run(placement: PlacementReport) -> Run {
    let mut run = sample::runs(200).swap_remove(0);
    run.result.placement = Some(placement);
    run
}

fn streams(count: u16) -> PlacementReport {
    PlacementReport {
        directive: "streams".into(),
        unplaced_bytes: 4096,
        opened: 7,
        evicted: 3,
        left_bytes: 0,
        streams: (1..=count)
            .map(|id| StreamReport {
                namespace: 1,
                id: id * 10,
                set: 0,
                log: id,
                host_bytes: u64::from(id) << 20,
                writes: u64::from(id) * 8,
                pieces: 2,
                piece_bytes: 1 << 20,
                ..StreamReport::default()
            })
            .collect(),
        fdp: None,
    }
}

#[test]
fn a_table_of_streams_ends_the_text_of_a_run() {
    let text = render_detail(&run(streams(2)), None);
    let part = text.split("\nstreams: ").nth(1).expect("a part for streams");
    assert_eq!(
        part.lines().take(4).collect::<Vec<_>>(),
        [
            "7 streams opened, 3 of them in place of another; 4 KiB unstreamed",
            "stream  namespace  log  written  writes  pieces  piece",
            "    10          1    1    1 MiB       8       2  1 MiB",
            "    20          1    2    2 MiB      16       2  1 MiB",
        ]
    );
    let mut without = sample::runs(200).swap_remove(0);
    without.result.placement = None;
    assert!(!render_detail(&without, None).contains("streams"));
}

#[test]
fn many_streams_are_summed_up() {
    let text = render_detail(&run(streams(40)), None);
    assert!(text.contains("\nand 8 more, written 292 MiB\n"), "{text}");
}

#[test]
fn statistics_of_data_placement_are_named_as_in_the_standard() {
    let mut placement = streams(1);
    placement.directive = "fdp".into();
    placement.fdp = Some(FdpReport {
        hbmw: 1 << 20,
        mbmw: 3 << 19,
        mbe: 1 << 21,
        dlwa: Some(1.5),
        host_events: 2,
        ..FdpReport::default()
    });
    let text = render_detail(&run(placement.clone()), None);
    let facts = "4 KiB without a valid placement identifier; HBMW 1 MiB, MBMW 1.50 MiB, MBE 2 MiB, DLWA 1.5; 2 host and 0 controller events";
    assert!(text.contains(facts), "{text}");
    assert!(text.contains("handle  namespace"), "{text}");
    let mut hostile = run(placement);
    hostile.label = "<script>".into();
    let html = render_html(&[hostile], &ReportContext::default());
    assert!(html.contains("Streams and placement handles") && html.contains("DLWA 1.5"));
    assert!(html.contains("&lt;script&gt;: 4 KiB without"), "labels are escaped");
}

#[test]
fn the_part_survives_json() {
    let run = run(streams(2));
    let json = serde_json::to_string(&run.result).unwrap();
    let again: nandscape_sim::RunResult = serde_json::from_str(&json).unwrap();
    assert_eq!(again.placement, run.result.placement);
    let mut without = run.result;
    without.placement = None;
    assert!(!serde_json::to_string(&without).unwrap().contains("placement"));
}
