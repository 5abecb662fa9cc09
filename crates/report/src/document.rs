//! Result documents read back.

use crate::number::printable;
use crate::schema::{Fault, faults, shown};
use nandscape_sim::RunResult;
use nandscape_sim::result::{SCHEMA, ZonesResult};
use nandscape_sim::zones::ZoneColumn;
use serde::Deserialize as _;
use serde_json::Value;
use std::io::{BufReader, Read};

/// Largest text of documents that is read. The erase counts of a million blocks take some 10 MB.
const MOST_BYTES: u64 = 1 << 30;

/// What one text held.
#[derive(Clone, Debug)]
pub struct Documents {
    /// The results, in their order; at least one.
    pub results: Vec<RunResult>,
    /// Whether the text was a list, as `compare` writes it.
    pub is_list: bool,
}

/// A text that holds no result documents.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say it")]
pub enum DocumentError {
    #[error("cannot read: {0}")]
    Io(std::io::Error),
    #[error("line {line}, column {column}: {message}: expected JSON")]
    Json { line: usize, column: usize, message: String },
    #[error("longer than {} bytes: expected result documents", MOST_BYTES)]
    TooLong,
    #[error(
        "{found}: expected a result document, or a list of them, as replay --json and compare --json print"
    )]
    NoResult { found: String },
    #[error("{run}schema = {found}: expected {SCHEMA}, the only one that this version reads")]
    OtherSchema { run: String, found: String },
    #[error("{run}{message}")]
    Shape { run: String, message: String },
}

/// Reads one document, or a list of them. Keys that the schema does not know are ignored: a later version of
/// nandscape may have added them.
///
/// # Errors
///
/// What is not JSON, has another schema, lacks a key or has a value of another type.
pub fn read_documents(source: impl Read) -> Result<Documents, DocumentError> {
    let mut limited = source.take(MOST_BYTES);
    let value = serde_json::from_reader(BufReader::new(&mut limited));
    let value =
        value.map_err(|error| if limited.limit() == 0 { DocumentError::TooLong } else { json(error) })?;
    let (values, is_list) = match value {
        Value::Array(values) => (values, true),
        value => (vec![value], false),
    };
    if values.is_empty() {
        return Err(DocumentError::NoResult { found: "an empty list".to_owned() });
    }
    let is_one = values.len() == 1;
    let numbered = (1..).zip(values);
    let run = |number: usize| if is_one { String::new() } else { format!("run {number}: ") };
    let results = numbered.map(|(number, value)| result(value, &run(number))).collect::<Result<_, _>>()?;
    Ok(Documents { results, is_list })
}

fn json(error: serde_json::Error) -> DocumentError {
    let (line, column) = (error.line(), error.column());
    if error.is_io() {
        return DocumentError::Io(error.into());
    }
    let text = error.to_string();
    let message = text.split(" at line ").next().unwrap_or_default().to_owned();
    DocumentError::Json { line, column, message }
}

/// One document. `run` names it among several.
fn result(value: Value, run: &str) -> Result<RunResult, DocumentError> {
    let Some(schema) = value.as_object().map(|table| table.get("schema")) else {
        let found = format!("{run}{}", kind(&value));
        return Err(DocumentError::NoResult { found });
    };
    match schema {
        None => return Err(DocumentError::NoResult { found: format!("{run}no key 'schema'") }),
        Some(schema) if *schema != SCHEMA => {
            return Err(DocumentError::OtherSchema { run: run.to_owned(), found: printable(&shown(schema)) });
        }
        Some(_) => {}
    }
    let shape = |message: String| DocumentError::Shape { run: run.to_owned(), message };
    if let Some(fault) = faults(&value).iter().find(|fault| !matches!(fault, Fault::Unknown { .. })) {
        return Err(shape(printable(&fault.to_string())));
    }
    // Then no sum of counts that a report makes can overflow.
    if u64::try_from(sum_of_counts(&value)).is_err() {
        return Err(shape("the counts add up to more than 2^64: expected those of a run".to_owned()));
    }
    let result = RunResult::deserialize(value).map_err(|error| shape(printable(&error.to_string())))?;
    if result.between.zones.as_ref().is_some_and(|zones| !fits(zones)) {
        return Err(shape(
            "zones.history: expected as many rows in every column as there are zones".to_owned(),
        ));
    }
    Ok(result)
}

/// The sum of all integers of a document but those that are no counts.
fn sum_of_counts(value: &Value) -> u128 {
    const NO_COUNTS: [&str; 5] = ["config", "seed", "seeds", "time_ns", "up_to_ns"];
    match value {
        Value::Object(table) => {
            let counts = table.iter().filter(|(key, _)| !NO_COUNTS.contains(&key.as_str()));
            counts.map(|(_, value)| sum_of_counts(value)).sum()
        }
        Value::Array(items) => items.iter().map(sum_of_counts).sum(),
        value => value.as_u64().unwrap_or(0).into(),
    }
}

/// Whether the history of zones, if there is one, has a time for each column and a place for each row.
fn fits(zones: &ZonesResult) -> bool {
    let Some(history) = &zones.history else { return true };
    let rows = history.columns.first().map_or(0, |column| column.states.len());
    let is_row = |letters: &str| letters.is_ascii() && letters.len() == rows;
    let is_none_or_row = |letters: &str| letters.is_empty() || is_row(letters);
    let is_column = |column: &ZoneColumn| {
        is_row(&column.states)
            && column.written.len() == rows
            && (column.valid.is_empty() || column.valid.len() == rows)
            && is_none_or_row(&column.owners)
            && is_none_or_row(&column.lifetimes)
    };
    let each = history.zones_per_row;
    let is_covered = each > 0
        && rows == zones.zones.div_ceil(each) as usize
        && u32::try_from(rows).is_ok_and(|rows| rows.checked_mul(each).is_some());
    history.columns.is_empty()
        || is_covered
            && history.time_ns.len() == history.columns.len()
            && history.columns.iter().all(is_column)
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a table",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::document;
    use serde_json::json;

    fn minimal() -> Value {
        let mut result = RunResult::default();
        result.run.schema = SCHEMA;
        result.run.config = json!({});
        document(&result)
    }

    fn message(value: &Value) -> String {
        read_documents(value.to_string().as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn a_document_reads_back_with_keys_of_later_versions() {
        let mut later = minimal();
        later["later"] = json!({"any": [1]});
        later["host"]["later"] = json!("x");
        let text = json!([minimal(), later]).to_string();
        let read = read_documents(text.as_bytes()).unwrap();
        assert!(read.is_list && read.results.len() == 2);
        assert_eq!(document(&read.results[1]), minimal());
        assert!(!read_documents(minimal().to_string().as_bytes()).unwrap().is_list);
    }

    #[test]
    fn errors_name_the_place_and_what_was_expected() {
        assert_eq!(
            read_documents(&b"{\"schema\": 1,\n  nope"[..]).unwrap_err().to_string(),
            "line 2, column 3: key must be a string: expected JSON"
        );
        let empty = read_documents(&b""[..]).unwrap_err().to_string();
        assert!(empty.starts_with("line 1, column 0: EOF while parsing a value"), "{empty}");
        for value in [json!(3), json!([]), json!({}), json!([{"rows": 1}, 2])] {
            assert!(message(&value).contains("expected a result document, or a list of them"), "{value}");
        }
        let with = |pointer: &str, value: Value| {
            let mut document = minimal();
            *document.pointer_mut(pointer).unwrap() = value;
            document
        };
        assert!(message(&with("/schema", json!(2))).starts_with("schema = 2: expected 1"));
        let wrong = message(&with("/host/reads", json!("many")));
        assert_eq!(wrong, "host.reads: expected an integer from 0 on, found \"many\"");
        assert!(message(&with("/host/reads", json!(-1))).contains("found -1"));
        assert!(message(&with("/lifetime/endurance", json!(1u64 << 40))).contains("from 0 to 4294967295"));
        assert_eq!(message(&with("/error", json!([]))), "error: expected a table, found a list");
        let mut missing = minimal();
        missing["latency_ns"]["all"].as_object_mut().unwrap().remove("p50");
        assert_eq!(
            message(&json!([minimal(), missing])),
            "run 2: latency_ns.all.p50 is missing: expected an integer from 0 on"
        );
    }

    #[test]
    fn counts_that_no_run_has_are_refused() {
        let mut large = minimal();
        // With the 1 of `schema` as much as there may be.
        large["gc"]["runs"] = (u64::MAX - 1).into();
        large["seed"] = u64::MAX.into();
        assert!(read_documents(large.to_string().as_bytes()).is_ok());
        large["gc"]["moved_pages"] = 1.into();
        assert!(message(&large).contains("more than 2^64"));

        let column = |states: &str| json!({"states": states, "written": [0, 0], "valid": [null, 1]});
        let zones = |zones: u32, columns: Vec<Value>| {
            let mut document = minimal();
            let history =
                json!({"zones_per_row": 2, "interval_ns": 1, "time_ns": [0, 1], "columns": columns});
            document["zones"] =
                serde_json::to_value(ZonesResult { zones, ..ZonesResult::default() }).unwrap();
            document["zones"]["history"] = history;
            document
        };
        let is_read = |document: Value| read_documents(document.to_string().as_bytes()).is_ok();
        assert!(is_read(zones(3, vec![column("ee"), column("fe")])) && is_read(zones(0, vec![])));
        for (count, columns) in [
            (3, vec![column("ee")]),
            (3, vec![column("ee"), column("eee")]),
            (3, vec![column("ee"), column("\u{e9}")]),
            (5, vec![column("ee"), column("ee")]),
            (u32::MAX, vec![column("ee"), column("ee")]),
        ] {
            assert!(message(&zones(count, columns)).starts_with("zones.history: "));
        }
    }

    #[test]
    fn bytes_of_any_kind_are_an_error_and_no_panic() {
        let deep = "[".repeat(100_000);
        for bytes in [&b"\xff\xfe"[..], b"\0", deep.as_bytes(), b"{\"schema\":1e999}", b"\"\\ud800\""] {
            assert!(read_documents(bytes).is_err());
        }
    }
}
