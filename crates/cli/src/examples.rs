//! What the help of each command has beside its arguments: examples at its end, and no flag that it refuses.

use crate::verbs::Cli;
use clap::{Command, CommandFactory};

/// Commands as they are typed behind `nandscape`, each with examples.
const EXAMPLES: &[(&str, &[&str])] = &[
    (
        "",
        &[
            "nandscape compare my.csv.zst --report out.html",
            "nandscape cache advise my.csv.zst",
            "nandscape list ftls",
        ],
    ),
    (
        "replay",
        &[
            "nandscape replay my.csv.zst",
            "nandscape replay zipf:bs=16k,count=1M --scale 1/16 --precondition fill --save-state full.state",
            "nandscape replay other.csv --scale 1/16 --load-state full.state",
        ],
    ),
    (
        "compare",
        &[
            "nandscape compare my.csv.zst --report out.html",
            "nandscape compare my.csv.zst --fit 90% --set ftl.op=7%,14%,28%",
            "nandscape compare my.csv.zst --ftl pm-gcl,page-map --device thesis",
        ],
    ),
    (
        "report",
        &[
            "nandscape replay my.csv.zst --set ftl.op=0.07 --json > small.json",
            "nandscape replay my.csv.zst --set ftl.op=0.28 --json > large.json",
            "nandscape report small.json large.json --report both.html",
        ],
    ),
    (
        "sweep",
        &[
            "nandscape sweep op.toml --out op --report op.html",
            "nandscape sweep op.toml --out op --resume",
            "nandscape report op",
        ],
    ),
    ("neighbours", &["nandscape neighbours jobs.fio --victim reader --layouts vertical,horizontal"]),
    (
        "reproduce",
        &["nandscape reproduce --list", "nandscape reproduce thesis-table-4.2 --report thesis.html"],
    ),
    ("trace", &["nandscape trace stats my.csv.zst", "nandscape trace head my.csv.zst -n 3"]),
    (
        "trace stats",
        &[
            "nandscape trace stats my.csv.zst",
            "nandscape trace stats files.csv blocks.csv --report levels.html",
        ],
    ),
    ("trace convert", &["nandscape trace convert my.spc --output my.csv.zst"]),
    (
        "trace generate",
        &["nandscape trace generate zipf:theta=0.99,bs=4k,count=1M --capacity 4GiB --output zipf.csv.zst"],
    ),
    ("trace head", &["nandscape trace head my.csv.zst -n 3"]),
    ("image", &["nandscape image create flash.nand --scale 1/16", "nandscape image check flash.nand"]),
    ("image create", &["nandscape image create flash.nand --scale 1/16 --ftl page-map --set ftl.op=28%"]),
    ("image info", &["nandscape image info flash.nand --json"]),
    ("image check", &["nandscape image check flash.nand"]),
    ("serve", &["nandscape serve nbd --scale 1/16 --image flash.nand --socket flash.sock"]),
    (
        "serve fuse",
        &[
            "nandscape serve fuse --mount flash --loop --image flash.nand",
            "nandscape serve fuse --stack zone-files --mount files --image zones.nand",
        ],
    ),
    (
        "serve nbd",
        &[
            "nandscape serve nbd --scale 1/16 --image flash.nand --socket flash.sock",
            "nandscape serve nbd --cache fast.img --listen localhost:0",
        ],
    ),
    (
        "cache",
        &[
            "nandscape cache advise my.csv.zst",
            "nandscape cache create fast.img --size 256MiB",
            "nandscape cache attach fast.img disk.img --name data",
        ],
    ),
    (
        "cache create",
        &[
            "nandscape cache create metadata.img --data blocks.img --size 1GiB --preset dm-cache",
            "nandscape cache create a.img --mirror b.img --size 1GiB",
            "nandscape cache create --table '0 2097152 cache disk.img fast.img 0 8 65536 16 1' --size 260MiB",
        ],
    ),
    ("cache attach", &["nandscape cache attach fast.img disk.img --name data --quota 25%"]),
    ("cache detach", &["nandscape cache detach fast.img data"]),
    ("cache list", &["nandscape cache list"]),
    ("cache ram", &["nandscape cache ram create 256 --disk data=disk.img", "nandscape cache ram list"]),
    ("cache ram create", &["nandscape cache ram create 256 --disk data=disk.img --socket ram.sock"]),
    ("cache ram attach", &["nandscape cache ram attach disk.img --name data"]),
    ("cache ram detach", &["nandscape cache ram detach data"]),
    ("cache ram list", &["nandscape cache ram list"]),
    ("cache status", &["nandscape cache status fast.img --json"]),
    ("cache table", &["nandscape cache table fast.img"]),
    ("cache clean", &["nandscape cache clean fast.img data"]),
    ("cache set", &["nandscape cache set fast.img mode=write-through quota.data=25%"]),
    ("cache fail", &["nandscape cache fail a.img b.img"]),
    ("cache replace", &["nandscape cache replace a.img b.img c.img"]),
    ("cache resize", &["nandscape cache resize fast.img data"]),
    ("cache salvage", &["nandscape cache salvage fast.img data --to rescued.img"]),
    (
        "cache simulate",
        &[
            "nandscape cache simulate my.csv.zst --eviction lru,sieve,s3-fifo --size 64MiB,1GiB",
            "nandscape cache simulate my.csv.zst --preset nandscape,bcache --size 10%",
        ],
    ),
    (
        "cache advise",
        &[
            "nandscape cache advise my.csv.zst --report curve.html",
            "nandscape cache advise my.csv.zst --sample 1% --size 5%,10%,20%",
        ],
    ),
    ("fs", &["nandscape fs classify disk.img"]),
    ("fs classify", &["nandscape fs classify disk.img --offset 1MiB --ranges"]),
    ("stat", &["nandscape stat", "nandscape stat --watch=5"]),
    ("control", &["nandscape control checkpoint", "nandscape control --socket flash.ctl shutdown"]),
    ("control reset", &["nandscape control reset"]),
    ("control checkpoint", &["nandscape control checkpoint"]),
    ("control record-start", &["nandscape control record-start load.csv.zst"]),
    ("control record-stop", &["nandscape control record-stop"]),
    ("control snapshot", &["nandscape control snapshot copy.nand"]),
    ("control shutdown", &["nandscape control --socket flash.ctl shutdown"]),
    ("zone", &["nandscape zone report", "nandscape zone reset zones.nand --zone 3"]),
    ("object", &["nandscape object ls objects.nand"]),
    ("object ls", &["nandscape object ls objects.nand"]),
    ("object stat", &["nandscape object stat objects.nand /dir/file"]),
    ("object check", &["nandscape object check objects.nand"]),
    ("list", &["nandscape list devices", "nandscape list ftls --detail"]),
    ("completions", &["nandscape completions bash > ~/.local/share/bash-completion/completions/nandscape"]),
    ("man", &["nandscape man --out man"]),
];

/// Flags that a command refuses or has no use for, though it shares their group with others.
const HIDDEN: &[(&str, &[&str])] = &[
    ("report", &["detail", "interval", "series"]),
    ("neighbours", &["precondition"]),
    ("trace head", &["limit"]),
    ("cache simulate", &["time_scale"]),
    ("cache advise", &["time_scale"]),
];

/// The whole command line, as it is parsed and as help, man pages and completions show it.
pub fn command() -> Command {
    complete("", Cli::command())
}

fn complete(path: &str, command: Command) -> Command {
    let hidden = HIDDEN.iter().find(|(name, _)| *name == path).map_or(&[][..], |(_, flags)| *flags);
    let lines = EXAMPLES.iter().find(|(name, _)| *name == path).map_or(&[][..], |(_, lines)| *lines);
    let mut text = format!("Examples:\n  {}", lines.join("\n  "));
    if let Some(rest) = command.get_after_help() {
        text = format!("{text}\n\n{rest}");
    }
    command
        .after_help(text)
        .mut_args(|arg| if hidden.contains(&arg.get_id().as_str()) { arg.hide(true) } else { arg })
        .mut_subcommands(|below| complete(format!("{path} {}", below.get_name()).trim_start(), below))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::FromArgMatches;

    /// Every command with its path, but for the generated `help`.
    fn commands(path: &str, command: &Command, all: &mut Vec<(String, Command)>) {
        all.push((path.to_owned(), command.clone()));
        for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
            commands(format!("{path} {}", below.get_name()).trim_start(), below, all);
        }
    }

    /// The words of a command, of which some may be in quotes.
    fn words(line: &str) -> Vec<&str> {
        let parts = line.split('\'').enumerate();
        let words = parts.flat_map(|(number, part)| match number % 2 {
            0 => part.split_whitespace().collect(),
            _ => vec![part],
        });
        std::iter::once("nandscape").chain(words).collect()
    }

    #[test]
    fn every_command_has_examples_that_are_parsed() {
        let mut all = Vec::new();
        commands("", &command(), &mut all);
        assert!(all.len() > 40, "{}", all.len());
        for (path, command) in &all {
            let help = command.clone().render_long_help().to_string();
            let lines = help.lines().skip_while(|line| *line != "Examples:").skip(1);
            let lines: Vec<&str> = lines.map_while(|line| line.strip_prefix("  nandscape ")).collect();
            assert!((1..=3).contains(&lines.len()), "nandscape {path} --help has {} examples", lines.len());
            let is_of_it =
                |line: &&str| path.split_whitespace().all(|verb| line.split(' ').any(|word| word == verb));
            assert!(
                lines.iter().any(is_of_it),
                "nandscape {path} --help has examples of other commands only"
            );
            for line in lines {
                let typed = line.split(" > ").next().unwrap_or_default();
                let parsed = super::command().try_get_matches_from(words(typed));
                let parsed = parsed.and_then(|matches| Cli::from_arg_matches(&matches));
                assert!(parsed.is_ok(), "nandscape {line}: {}", parsed.unwrap_err());
            }
        }
        for (path, _) in EXAMPLES {
            assert!(all.iter().any(|(known, _)| known == path), "examples of '{path}', which is no command");
        }
    }

    #[test]
    fn no_help_lists_flags_that_are_refused() {
        let mut all = Vec::new();
        commands("", &command(), &mut all);
        for (path, flags) in HIDDEN {
            let (_, command) = all.iter().find(|(known, _)| known == path).expect("a command");
            let help = command.clone().render_help().to_string();
            for flag in *flags {
                let flag = format!("      --{}", flag.replace('_', "-"));
                let is_listed = help.lines().any(|line| line.starts_with(&flag));
                assert!(!is_listed, "nandscape {path} --help lists {flag}");
            }
        }
    }
}
