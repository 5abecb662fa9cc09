//! Result documents read back.

use crate::number::printable;
use crate::schema::{Fault, faults, shown};
use nandscape_sim::RunResult;
use nandscape_sim::result::SCHEMA;
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
    RunResult::deserialize(value).map_err(|error| shape(printable(&error.to_string())))
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
        assert_eq!(message(&with("/error", json!([]))), "error: expected a table or null, found a list");
        let mut missing = minimal();
        missing["latency_ns"]["all"].as_object_mut().unwrap().remove("p50");
        assert_eq!(
            message(&json!([minimal(), missing])),
            "run 2: latency_ns.all.p50 is missing: expected an integer from 0 on"
        );
    }

    #[test]
    fn bytes_of_any_kind_are_an_error_and_no_panic() {
        let deep = "[".repeat(100_000);
        for bytes in [&b"\xff\xfe"[..], b"\0", deep.as_bytes(), b"{\"schema\":1e999}", b"\"\\ud800\""] {
            assert!(read_documents(bytes).is_err());
        }
    }
}
