//! Facts about the structure of the production code, printed so that two commits can be compared.
//!
//! Production code is `src` of every crate without test modules. Printed are the traits with more than 16
//! methods, the structs of the data path (`cache`, `engine`, `ftl`, `media`, `sim`) with more than 20 fields,
//! circles of imports between sibling modules, files of more than 600 lines, forwarding methods (the body is
//! one call of the method of the same name on a field) with the lines they take, the size of each crate, and
//! the functions of the translation layers, the journal and the cache's directory that change something and
//! assert nothing.
//!
//! `nandscape-structure [ROOT]` prints the facts. With `--check` it also ends with status 1 if a limit is
//! exceeded.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod assertions;
mod circles;
mod facts;
mod modules;

use assertions::Assertions;
use facts::{Counted, Facts};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

/// Methods of a trait.
const METHODS_MAX: usize = 16;
/// Fields of a struct on the data path.
const FIELDS_MAX: usize = 20;
/// Lines of a file.
const LINES_MAX: usize = 600;
/// Lines of methods that only call a field's method of the same name.
const FORWARDING_MAX: usize = 250;
/// Changing functions of layers, journal and directory without an assertion: four take what flash holds,
/// which is whatever somebody wrote there.
const SILENT_MAX: usize = 4;
/// Assertions per thousand lines of these.
const DENSITY_MIN: usize = 20;
/// Crates whose structs are counted.
const DATA_PATH: [&str; 6] = ["cache", "engine", "ftl", "media", "policies", "sim"];

fn main() -> ExitCode {
    let (flags, roots): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|word| word.starts_with('-'));
    if let Some(flag) = flags.iter().find(|flag| *flag != "--check") {
        eprintln!("{flag}: expected --check, or the folder of the workspace");
        return ExitCode::from(2);
    }
    let root = roots.first().map_or_else(|| PathBuf::from("."), PathBuf::from);
    let crates = match modules::crates(&root.join("crates")) {
        Ok(crates) => crates,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let facts: Vec<Facts> = crates.iter().map(Facts::of).collect();
    let is_exceeded =
        print(&facts) | print_assertions(&crates.iter().map(Assertions::of).collect::<Vec<_>>());
    let is_checked = !flags.is_empty();
    if is_exceeded && is_checked { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Prints everything; gives whether a limit is exceeded.
fn print(facts: &[Facts]) -> bool {
    let above = |of: fn(&Facts) -> &Vec<Counted>, max: usize| {
        let mut found: Vec<_> = facts.iter().flat_map(of).filter(|one| one.count > max).collect();
        found.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.name.cmp(&b.name)));
        found
    };
    let traits = above(|facts| &facts.traits, METHODS_MAX);
    section("traits", &format!("of more than {METHODS_MAX} methods"), &traits);
    let structs = above(|facts| &facts.structs, FIELDS_MAX);
    let (plain, owners): (Vec<_>, Vec<_>) = structs.into_iter().partition(|one| one.is_plain);
    section("structs", &format!("of more than {FIELDS_MAX} fields on the data path"), &owners);
    section("plain structs", "of that size, numbers and texts alone: counters and configuration", &plain);
    let circles: Vec<&String> = facts.iter().flat_map(|facts| &facts.circles).collect();
    println!("circles: {} between sibling modules", circles.len());
    for circle in &circles {
        println!("  {circle}");
    }
    let files = above(|facts| &facts.files, LINES_MAX);
    section("files", &format!("of more than {LINES_MAX} lines"), &files);
    let lines = print_forwarding(facts);
    print_sizes(facts);
    !(traits.is_empty() && owners.is_empty() && circles.is_empty() && files.is_empty())
        || lines > FORWARDING_MAX
}

fn section(what: &str, which: &str, found: &[&Counted]) {
    println!("{what}: {} {which}", found.len());
    for one in found {
        println!("  {:5} {}", one.count, one.name);
    }
}

/// Forwarding methods by the type that has them; gives their lines.
fn print_forwarding(facts: &[Facts]) -> usize {
    let mut owners = BTreeMap::<&str, usize>::new();
    let (mut lines, mut methods) = (0, 0);
    for one in facts.iter().flat_map(|facts| &facts.forwarding) {
        *owners.entry(one.name.rsplit_once("::").map_or("", |(owner, _)| owner)).or_default() += one.count;
        (lines, methods) = (lines + one.count, methods + 1);
    }
    println!("forwarding: {lines} lines of {methods} methods, expected at most {FORWARDING_MAX}");
    let mut owners: Vec<_> = owners.into_iter().collect();
    owners.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
    for (owner, lines) in owners {
        println!("  {lines:5} {owner}");
    }
    lines
}

fn print_sizes(facts: &[Facts]) {
    let (lines, code) = facts.iter().fold((0, 0), |sum, one| (sum.0 + one.lines, sum.1 + one.code));
    println!("production: {lines} lines, {code} of them code");
    for one in facts {
        println!("  {:6} {:6} {}", one.lines, one.code, one.name);
    }
}

/// Functions without an assertion; gives whether they are too many.
fn print_assertions(found: &[Assertions]) -> bool {
    let sum = |of: fn(&Assertions) -> usize| found.iter().map(of).sum::<usize>();
    let (count, lines, stated) = (sum(|one| one.count), sum(|one| one.lines), sum(|one| one.stated));
    let silent: Vec<&String> = found.iter().flat_map(|one| &one.silent).collect();
    let density = count * 1000 / lines.max(1);
    println!(
        "assertions: {count} in {lines} lines of layers, journal and directory, {density} per thousand, \
         expected at least {DENSITY_MIN}; {stated} changing functions with one, {} without, expected at most \
         {SILENT_MAX}",
        silent.len()
    );
    for name in &silent {
        println!("  {name}");
    }
    silent.len() > SILENT_MAX || density < DENSITY_MIN
}
