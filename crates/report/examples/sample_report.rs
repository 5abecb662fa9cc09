//! Writes a report of five made-up runs: `cargo run -p nandscape-report --example sample_report -- OUT.html
//! [REQUESTS]`. For working on the look of the report without running a simulation.

#[path = "../tests/suite/sample/mod.rs"]
mod sample;

use nandscape_report::{ReportContext, render_html, render_text, write_atomically};
use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let out = args.next().ok_or("usage: sample_report OUT.html [REQUESTS]")?;
    let requests = args.next().map_or(Ok(2200), |text| text.parse())?;
    let runs = sample::runs(requests);
    let context = ReportContext {
        command: format!("cargo run -p nandscape-report --example sample_report -- {out} {requests}"),
        ..ReportContext::default()
    };
    let html = render_html(&runs, &context);
    write_atomically(Path::new(&out), html.as_bytes())?;
    #[expect(clippy::print_stdout, reason = "the example's output")]
    {
        print!("{}", render_text(&runs, None));
        println!("\n{out}: {} kB", html.len() / 1000);
    }
    Ok(())
}
