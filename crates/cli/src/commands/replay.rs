//! `nandscape replay`.

use super::{deliver, run_options, typed};
use crate::args::ReplayArgs;
use crate::console::{Console, Result, stop_on_ctrl_c};
use nandscape_report::render_detail;

pub fn run(args: &ReplayArgs, console: Console) -> Result<()> {
    let config = typed(&args.stack, args.ftl.as_deref())?.check()?;
    if args.print_config {
        return console.result(&config.to_toml());
    }
    let workload = args.workload.as_deref().expect("required unless --print-config");
    stop_on_ctrl_c()?;
    let bar = console.progress(&config.label());
    let progress = |_: &str, progress| bar.show(progress);
    let options = run_options(&args.output, &progress)?;
    let run = nandscape_stack::replay(&config, workload, &options);
    bar.finish();
    let runs = [run?];
    deliver(&runs, &args.output, false, || render_detail(&runs[0]), console)
}
