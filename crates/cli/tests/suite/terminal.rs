//! What is different on a terminal: tables fit it, and the best values are marked.
#![expect(clippy::print_stderr, reason = "a skip that is seen")]

use std::process::Command;

/// What a command prints on a terminal of so many columns; `None` without a tool that makes one.
fn on_terminal(columns: u16, args: &[&str]) -> Option<String> {
    let words: Vec<String> = args.iter().map(|word| format!("'{word}'")).collect();
    let line = format!(
        "stty cols {columns} rows 40; exec '{}' --quiet {}",
        env!("CARGO_BIN_EXE_nandscape"),
        words.join(" ")
    );
    let output = Command::new("script").args(["-qec", &line, "/dev/null"]).env("TERM", "xterm").output();
    let Some(output) = output.ok().filter(|output| output.status.success()) else {
        eprintln!("SKIP: script (util-linux) or stty is absent");
        return None;
    };
    Some(String::from_utf8(output.stdout).unwrap().replace('\r', ""))
}

fn piped(args: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_nandscape")).args(args).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// Lines of a table from this line of its head on.
fn table(text: &str, head: &str) -> Vec<String> {
    let start = text.lines().position(|line| line.starts_with(head)).unwrap_or_else(|| panic!("{text}"));
    text.lines().skip(start).take_while(|line| !line.is_empty()).map(str::to_owned).collect()
}

const COMPARE: &[&str] = &[
    "compare",
    "zipf:count=20000,bs=16k,span=80%",
    "--scale",
    "1/64",
    "--ftl",
    "page-map",
    "--set",
    "ftl.op=10%,50%",
    "--precondition",
    "fill+uniform:1x",
];

#[test]
fn tables_of_a_comparison_fit_the_terminal_and_mark_the_best() {
    let Some(wide) = on_terminal(300, COMPARE) else { return };
    let plain = piped(COMPARE);
    assert!(!plain.contains("* the best"), "{plain}");
    assert!(wide.contains("\n* the best, where runs differ by 0.5 % or more\n"), "{wide}");
    assert!(!wide.contains("not shown"), "{wide}");
    let bare = |text: &str| -> Vec<String> {
        let rows = table(text, "FTL").into_iter().filter(|line| line.starts_with("page-map"));
        rows.flat_map(|line| line.split_whitespace().map(|cell| cell.replace('*', "")).collect::<Vec<_>>())
            .collect()
    };
    assert_eq!(bare(&wide), bare(&plain));
    let narrow = on_terminal(60, COMPARE).unwrap();
    let lines = table(&narrow, "FTL");
    assert!(lines.iter().all(|line| line.chars().count() <= 60), "{narrow}");
    assert!(lines[0].contains("WAF") && lines[0].contains("p99"), "{narrow}");
    assert!(narrow.contains("not shown for lack of room, but in --json: "), "{narrow}");
    let stacked = on_terminal(24, COMPARE).unwrap();
    assert!(stacked.contains("FTL: page-map, ftl.op=0.1\n  WAF: "), "{stacked}");
}

#[test]
fn caches_of_one_size_have_a_mark_each() {
    let args = [
        "cache",
        "simulate",
        "zipf:count=50k,bs=4k",
        "--eviction",
        "lru,fifo,belady",
        "--size",
        "400b,4000b",
    ];
    let Some(wide) = on_terminal(200, &args) else { return };
    let marked: Vec<&str> = wide.lines().filter(|line| line.contains("* ")).collect();
    assert!(marked.iter().any(|line| line.starts_with("belady")), "{wide}");
    assert_eq!(marked.iter().filter(|line| line.starts_with("belady")).count(), 2, "{wide}");
    let narrow = on_terminal(50, &args).unwrap();
    assert!(table(&narrow, "eviction").iter().all(|line| line.chars().count() <= 50), "{narrow}");
    assert!(!piped(&args).contains('*'));
}
