//! `nandscape replay`.

use super::{command_line, deliver, interval_ns, typed, wants_series};
use crate::args::ReplayArgs;
use crate::console::{Console, Failure, STOP, stop_on_ctrl_c};
use nandscape_report::{ReportContext, render_detail};
use nandscape_stack::RunOptions;

/// Replays one workload through one translation layer.
pub fn run(args: &ReplayArgs, console: Console) -> Result<(), Failure> {
    let config = typed(&args.stack, args.ftl.as_deref())?.check()?;
    if args.print_config {
        return console.result(&config.to_toml());
    }
    let workload = args.workload.as_deref().expect("required unless --print-config");
    stop_on_ctrl_c()?;
    let bar = console.progress(&config.label());
    let options = RunOptions {
        stop: Some(&STOP),
        with_series: wants_series(&args.output),
        interval_ns: interval_ns(&args.output)?,
        with_detail: args.output.detail,
        count_programs: args.output.report.is_some(),
        progress: &|_, progress| bar.show(progress),
    };
    let run = nandscape_stack::replay(&config, workload, &options);
    bar.finish();
    let runs = [run?];
    let context = ReportContext { command: command_line(), ..ReportContext::default() };
    deliver(&runs, &args.output, &context, false, || render_detail(&runs[0]), console)
}
