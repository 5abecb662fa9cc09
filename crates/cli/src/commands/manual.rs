//! Completions and man pages, both from the one command-line definition.

use super::list::{infos, keys};
use crate::args::Listing;
use crate::console::{Console, Failure, Result};
use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Arg, Command};
use clap_complete::Shell;
use std::path::Path;

pub fn completions(shell: Shell, cli: Command, console: Console) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut with_values(cli), "nandscape", &mut script);
    let script = String::from_utf8_lossy(&script);
    if shell == Shell::Bash {
        let complete = "complete -F _nandscape ";
        return console
            .result(&(KEYS.to_owned() + &script.replace(complete, "complete -F _nandscape_keys ")));
    }
    console.result(&script)
}

/// No blank behind a key, since its value follows. bash takes `=` for the end of a word, so that behind it
/// there is nothing to complete.
const KEYS: &str = r#"_nandscape_keys() {
    if [[ "$2" == "=" || "$3" == "=" ]]; then
        COMPREPLY=()
        return 0
    fi
    _nandscape "$@"
    if [[ "${COMPREPLY[0]}" == *= ]]; then
        compopt -o nospace 2>/dev/null
    fi
    return 0
}

"#;

/// Arguments whose values are names of a registry.
const NAMED: [(&str, Listing); 10] = [
    ("ftl", Listing::Ftls),
    ("device", Listing::Devices),
    ("stack", Listing::Stacks),
    ("eviction", Listing::Evictions),
    ("preset", Listing::Caches),
    ("cache_preset", Listing::Caches),
    ("format", Listing::Formats),
    ("to", Listing::Formats),
    ("generator", Listing::Workloads),
    ("ids", Listing::Reproductions),
];

/// The command line for completions: names are given as the only values, though they are not in the parser.
fn with_values(command: Command) -> Command {
    let path = command.get_name().to_owned();
    command.mut_subcommands(with_values).mut_args(|arg| {
        let values = values(&path, &arg);
        if values.is_empty() { arg } else { arg.value_parser(PossibleValuesParser::new(values)) }
    })
}

fn values(verb: &str, arg: &Arg) -> Vec<PossibleValue> {
    let id = arg.get_id().as_str();
    let of = |listing, end: &str| -> Vec<PossibleValue> {
        infos(listing).iter().map(|info| PossibleValue::new(format!("{}{end}", info.name))).collect()
    };
    match (verb, id) {
        // Elsewhere it is a file.
        ("compare", "cache") => of(Listing::Caches, ""),
        // Keys of one cache.
        ("create", "sets") => Vec::new(),
        (_, "sets") => keys().into_iter().map(|key| PossibleValue::new(format!("{key}="))).collect(),
        (_, "write") => of(Listing::Outputs, "="),
        _ => NAMED.iter().find(|(name, _)| *name == id).map_or_else(Vec::new, |(_, list)| of(*list, "")),
    }
}

/// Writes `nandscape.1` and one page per verb into `out`.
pub fn pages(out: &Path, cli: Command, console: Console) -> Result<()> {
    let failed = |e: std::io::Error| Failure::run(format!("{}: {e}", out.display()));
    std::fs::create_dir_all(out).map_err(failed)?;
    clap_mangen::generate_to(cli, out).map_err(failed)?;
    console.note(&format!("man pages: {}", out.display()));
    Ok(())
}
