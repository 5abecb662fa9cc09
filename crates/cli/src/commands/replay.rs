//! `nandscape replay`.

use super::{DefaultDrive, deliver, run_options, share_of, typed};
use crate::args::ReplayArgs;
use crate::console::{Console, Result, stop_on_ctrl_c};
use nandscape_report::render_detail;
use nandscape_stack::fit;

pub fn run(args: &ReplayArgs, console: Console) -> Result<()> {
    let mut args = args.clone();
    let assumed = match &args.workload {
        Some(workload) if args.ftl.is_none() => {
            let configs = || Ok(vec![typed(&args.stack, None)?.check()?]);
            DefaultDrive::of(&args.stack, &args.fit, std::slice::from_ref(workload), configs)?
        }
        _ => DefaultDrive::No,
    };
    assumed.take(&mut args.stack, &mut args.fit);
    let mut typed = typed(&args.stack, args.ftl.as_deref())?;
    let mut config = typed.check()?;
    let mut note = None;
    if let (Some(share), Some(workload)) = (args.fit.share(), &args.workload) {
        let workloads = std::slice::from_ref(workload);
        let fitted = fit(&[config], workloads, share_of(share)?, args.stack.says_precondition())?;
        for (key, value) in fitted.sets {
            typed.set(key, &value)?;
        }
        config = typed.check()?;
        note = Some(fitted.note + &assumed.note());
    }
    if args.print_config {
        return console.result(&config.to_toml());
    }
    let workload = args.workload.as_deref().expect("required unless --print-config");
    stop_on_ctrl_c()?;
    let bar = console.progress(&config.label());
    let seeds = args.stack.several_seeds();
    let progress = |name: &str, progress| {
        if seeds.is_empty() { bar.show(progress) } else { bar.show_run(name, progress) }
    };
    let options = run_options(&args.output, &args.state, &progress)?;
    let run = match seeds {
        [] => nandscape_stack::replay(&config, workload, &options),
        seeds => nandscape_stack::replay_seeds(&config, workload, seeds, &options),
    };
    bar.finish();
    let mut runs = [run?];
    runs[0].result.notes.extend(note);
    deliver(&runs, &args.output, false, || render_detail(&runs[0], console.width()), console)
}
