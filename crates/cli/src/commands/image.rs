//! `nandscape image`: make, look at and check image files.

use super::typed_device;
use crate::args::ImageVerb;
use crate::console::{Console, Failure, Result};
use nandscape_core::Subsystem;
use nandscape_core::units::format_bytes;
use nandscape_stack::storing::{self, Checked, Held};
use nandscape_stack::{Contents, Header, StackConfig};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::Path;

/// Problems that are printed; JSON has more.
const MOST_PRINTED: usize = 100;

pub fn run(verb: &ImageVerb, console: Console) -> Result<()> {
    match verb {
        ImageVerb::Create { file, device, ftl } => {
            create(&typed_device(device, ftl.as_deref())?.check()?, file, console)
        }
        ImageVerb::Info { file, json } => info(file, *json, console),
        ImageVerb::Check { file, json } => check(file, *json, console),
    }
}

fn create(config: &StackConfig, file: &Path, console: Console) -> Result<()> {
    storing::create(config, file)?;
    let capacity = format_bytes(config.seen_geometry().capacity_bytes());
    console.note(&format!("{}: {capacity} of flash under {}", file.display(), config.ftl));
    Ok(())
}

fn info(file: &Path, as_json: bool, console: Console) -> Result<()> {
    let Held { config, header, contents } = storing::look(file)?;
    if as_json {
        let document = json!({
            "schema": 1,
            "file": file,
            "uuid": header.uuid_text(),
            "created_s": header.created_s,
            "geometry": header.geometry,
            "contents": contents,
            "config": config.to_json(),
        });
        return console.json(&document);
    }
    console.result(&(describe(&header, &contents) + "\n" + &header.config))
}

/// What a check of an image finds, with progress; and the stack, if it starts.
pub fn look_over(file: &Path, console: Console) -> Result<(Checked, Option<Box<dyn Subsystem + Send>>)> {
    let bar = console.progress("check");
    let checked = storing::check_and_keep(file, &mut |done, all| bar.show_pages(done, all));
    bar.finish();
    Ok(checked?)
}

/// The same as JSON.
pub fn document(file: &Path, checked: &Checked) -> Value {
    let mut document = serde_json::to_value(checked).expect("plain data");
    document["schema"] = json!(1);
    document["file"] = json!(file);
    document["ok"] = json!(checked.is_good());
    document
}

fn check(file: &Path, as_json: bool, console: Console) -> Result<()> {
    let (checked, _) = look_over(file, console)?;
    let is_good = checked.is_good();
    if as_json {
        console.json(&document(file, &checked))?;
    } else {
        console.result(&report(file, &checked))?;
    }
    if is_good { Ok(()) } else { Err(Failure::Reported) }
}

/// What was found, for people; the last line sums it up.
pub fn report(file: &Path, checked: &Checked) -> String {
    let findings = &checked.findings;
    let mut text = String::new();
    for problem in findings.problems.iter().take(MOST_PRINTED) {
        let block = problem.block.map_or_else(String::new, |block| format!(" block {block},"));
        let page = problem.page.map_or_else(String::new, |page| format!(" page {page},"));
        let place = format!("offset {}:{block}{page}", problem.offset);
        let _ =
            writeln!(text, "{}: {}: {}", file.display(), place.trim_end_matches([',', ':']), problem.what);
    }
    if findings.problem_count > MOST_PRINTED as u64 {
        let _ = writeln!(text, "... and {} more", findings.problem_count - MOST_PRINTED as u64);
    }
    for (set, recovery) in checked.recovery.iter().enumerate() {
        let _ = writeln!(text, "set {set}: {}", recovery.summary());
    }
    if let Some(error) = &checked.start_error {
        let _ = writeln!(text, "the stack does not start from the image: {error}");
    }
    for lost in checked.lost.iter().take(MOST_PRINTED) {
        let object = lost.object.map_or_else(String::new, |object| format!(" object {object},"));
        let place = format!("{},{object} offset {}", lost.namespace, lost.offset);
        let _ = writeln!(text, "{}: {place}: {}", file.display(), lost.error);
    }
    if checked.lost_pages > MOST_PRINTED as u64 {
        let _ = writeln!(text, "... and {} more", checked.lost_pages - MOST_PRINTED as u64);
    }
    if checked.lost_pages > 0 {
        let _ = writeln!(text, "{} mapped pages cannot be read", checked.lost_pages);
    }
    let contents = &findings.contents;
    let torn = match contents.torn_pages {
        0 => String::new(),
        pages => format!(", {pages} cut short by a loss of power"),
    };
    let _ = write!(
        text,
        "{} pages programmed{torn}; {} verified, {} wrong",
        contents.programmed_pages, findings.verified_pages, findings.problem_count
    );
    text
}

fn describe(header: &Header, contents: &Contents) -> String {
    let geometry = &header.geometry;
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "{name:12} {value}");
    };
    line("uuid", header.uuid_text());
    line("state", if contents.is_clean { "closed" } else { "left open" }.to_owned());
    line(
        "flash",
        format!(
            "{}: {} channels x {} dies x {} planes x {} blocks x {} pages x {}",
            format_bytes(geometry.capacity_bytes()),
            geometry.channels,
            geometry.dies_per_channel,
            geometry.planes_per_die,
            geometry.blocks_per_plane,
            geometry.pages_per_block,
            format_bytes(u64::from(geometry.page_bytes))
        ),
    );
    line(
        "file",
        format!("{}, {} on disk", format_bytes(contents.file_bytes), format_bytes(contents.disk_bytes)),
    );
    let Contents { used_blocks, blocks, blank_pages, torn_pages, erases_min, erases_max, .. } = contents;
    let blocks = format!("{} pages in {used_blocks} of {blocks} blocks", contents.programmed_pages);
    line("programmed", format!("{blocks}, {blank_pages} of them zeroes, {torn_pages} cut short"));
    line("erases", format!("{erases_min} to {erases_max}, mean {:.2}", contents.erases_mean));
    let bad: Vec<String> = contents.bad_blocks.iter().take(32).map(u32::to_string).collect();
    let more = if contents.bad_blocks.len() > bad.len() { " ..." } else { "" };
    line("bad blocks", format!("{} {}{more}", contents.bad_blocks.len(), bad.join(",")).trim().to_owned());
    text
}
