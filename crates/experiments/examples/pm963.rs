//! The rows of the PM963 experiment as the table of its document, at full scale.
#![expect(clippy::print_stdout, reason = "an example prints")]

use nandscape_experiments::reproduce::{Context, REPRODUCTIONS};

fn main() {
    let experiment = REPRODUCTIONS.iter().find(|one| one.info.name == "pm963").expect("it is registered");
    let rows = experiment.run(&Context::new(42, None)).expect("the experiment runs");
    println!("| source | what | published | measured | ratio | note |\n|---|---|---|---|---|---|");
    for row in rows {
        let number = |value: &serde_json::Value| match value {
            serde_json::Value::Number(n) => {
                format!("{:.1}", n.as_f64().unwrap_or(f64::NAN)).trim_end_matches(".0").to_owned()
            }
            serde_json::Value::Bool(true) => "holds".to_owned(),
            serde_json::Value::Bool(false) => "does not hold".to_owned(),
            other => other.as_str().unwrap_or_default().to_owned(),
        };
        let ratio = row.ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.2}"));
        println!(
            "| {} | {} | {} {} | {} | {ratio} | {} |",
            row.source,
            row.name,
            number(&row.published),
            row.unit,
            number(&row.measured),
            row.note
        );
    }
}
