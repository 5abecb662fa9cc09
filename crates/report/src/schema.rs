//! The JSON Schema of the result document, and where a value departs from it.
//!
//! Only what that schema uses is understood: `$ref`, `anyOf`, `const`, `type`, `required`, `properties`,
//! `additionalProperties`, `items`, `minimum` and `maximum`. A test checks that it uses nothing else.

use serde_json::{Map, Value};
use std::fmt;
use std::sync::LazyLock;

/// The schema (draft 2020-12) of a document, or of a list of them.
pub const RESULT_SCHEMA: &str = include_str!("../../../docs/formats/result.schema.json");

static SCHEMA: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(RESULT_SCHEMA).expect("the schema is JSON"));

/// A place where a document departs from its schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The schema does not know a key. A later version may have added it, so readers ignore this.
    Unknown {
        /// Path of the key, such as `host.reads`.
        place: String,
    },
    /// A key is not there.
    Missing {
        /// Path of the key.
        place: String,
        /// What has to be there.
        expected: String,
    },
    /// A value is of another type or out of range.
    Wrong {
        /// Path of the value; empty for the document itself.
        place: String,
        /// What has to be there.
        expected: String,
        /// What is there.
        found: String,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { place } => write!(f, "{place} is unknown"),
            Self::Missing { place, expected } => write!(f, "{place} is missing: expected {expected}"),
            Self::Wrong { place, expected, found } if place.is_empty() => {
                write!(f, "expected {expected}, found {found}")
            }
            Self::Wrong { place, expected, found } => {
                write!(f, "{place}: expected {expected}, found {found}")
            }
        }
    }
}

/// Every departure of one document from the schema, in the order of the schema.
pub fn faults(document: &Value) -> Vec<Fault> {
    let mut faults = Vec::new();
    check(definition("#/$defs/run"), document, "", &mut faults);
    faults
}

/// Whether a dotted key is a number in some document. Places in lists are numbers: `sets.0.waf`.
pub fn is_number(key: &str) -> bool {
    fn resolved(mut schema: &'static Value) -> &'static Value {
        loop {
            schema = match (schema["$ref"].as_str(), schema["anyOf"].as_array()) {
                (Some(reference), _) => definition(reference),
                (None, Some(choices)) => &choices[0],
                (None, None) => return schema,
            };
        }
    }
    let step = |schema: &'static Value, key: &str| {
        let own = schema["properties"].get(key).or_else(|| schema.get("additionalProperties"));
        let item = || key.parse::<u32>().ok().and_then(|_| schema.get("items"));
        own.or_else(item).map(resolved)
    };
    let found = key.split('.').try_fold(definition("#/$defs/run"), step);
    found.is_some_and(|schema| types(schema).iter().any(|name| ["integer", "number"].contains(name)))
}

fn definition(reference: &str) -> &'static Value {
    SCHEMA.pointer(reference.trim_start_matches('#')).expect("the schema refers to its own definitions")
}

fn check(schema: &'static Value, value: &Value, place: &str, faults: &mut Vec<Fault>) {
    if let Some(reference) = schema["$ref"].as_str() {
        return check(definition(reference), value, place, faults);
    }
    if let Some(choices) = schema["anyOf"].as_array() {
        // A definition or null, as the test of the schema makes sure.
        if !value.is_null() {
            check(&choices[0], value, place, faults);
        }
        return;
    }
    if !has_type(schema, value) || !is_in_range(schema, value) {
        let (expected, found) = (expected(schema), shown(value));
        faults.push(Fault::Wrong { place: place.to_owned(), expected, found });
        return;
    }
    match value {
        Value::Object(table) => check_table(schema, table, place, faults),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                check(&schema["items"], item, &format!("{place}[{index}]"), faults);
            }
        }
        _ => {}
    }
}

fn check_table(schema: &'static Value, table: &Map<String, Value>, place: &str, faults: &mut Vec<Fault>) {
    let at = |key: &str| if place.is_empty() { key.to_owned() } else { format!("{place}.{key}") };
    let properties = schema["properties"].as_object();
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    for key in required.filter(|key| !table.contains_key(*key)) {
        faults.push(Fault::Missing { place: at(key), expected: expected(&schema["properties"][key]) });
    }
    for (key, value) in table {
        match (properties.and_then(|known| known.get(key)), schema.get("additionalProperties")) {
            (Some(known), _) => check(known, value, &at(key), faults),
            (None, Some(others)) => check(others, value, &at(key), faults),
            (None, None) if properties.is_some() => faults.push(Fault::Unknown { place: at(key) }),
            // A table that is described elsewhere.
            (None, None) => {}
        }
    }
}

/// Names of the types that a schema allows.
fn types(schema: &Value) -> Vec<&str> {
    match &schema["type"] {
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
        name => name.as_str().into_iter().collect(),
    }
}

fn has_type(schema: &Value, value: &Value) -> bool {
    types(schema).into_iter().any(|name| match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "integer" => value.is_u64() || value.is_i64(),
        _ => value.is_number(),
    })
}

fn is_in_range(schema: &Value, value: &Value) -> bool {
    let Value::Number(number) = value else { return true };
    let is_const = schema.get("const").is_none_or(|only| only == value);
    // Only integers have limits, and none is below 0.
    let is_above = schema.get("minimum").is_none() || number.is_u64();
    let most = schema["maximum"].as_u64().unwrap_or(u64::MAX);
    is_const && is_above && number.as_u64().is_none_or(|number| number <= most)
}

/// What a schema asks for, in words.
fn expected(schema: &'static Value) -> String {
    if let Some(reference) = schema["$ref"].as_str() {
        return expected(definition(reference));
    }
    if let Some(choices) = schema["anyOf"].as_array() {
        return choices.iter().map(expected).collect::<Vec<_>>().join(" or ");
    }
    if let Some(only) = schema.get("const") {
        return only.to_string();
    }
    let word = |name: &str| match (name, schema["maximum"].as_u64()) {
        ("object", _) => "a table".to_owned(),
        ("array", _) => "a list".to_owned(),
        ("string", _) => "text".to_owned(),
        ("boolean", _) => "true or false".to_owned(),
        ("integer", Some(most)) => format!("an integer from 0 to {most}"),
        ("integer", None) => "an integer from 0 on".to_owned(),
        ("null", _) => "null".to_owned(),
        _ => "a number".to_owned(),
    };
    types(schema).into_iter().map(word).collect::<Vec<_>>().join(" or ")
}

/// A value in a message: short ones as they are.
pub(crate) fn shown(value: &Value) -> String {
    match value {
        Value::Object(_) => "a table".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::String(text) if text.chars().count() > 40 => "a long text".to_owned(),
        plain => plain.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn each_schema(schema: &'static Value, see: &mut impl FnMut(&'static Value)) {
        see(schema);
        for key in ["properties", "$defs"] {
            let inner = schema[key].as_object().into_iter().flatten();
            inner.for_each(|(_, inner)| each_schema(inner, see));
        }
        for key in ["items", "additionalProperties"] {
            schema.get(key).into_iter().for_each(|inner| each_schema(inner, see));
        }
        schema["anyOf"].as_array().into_iter().flatten().for_each(|inner| each_schema(inner, see));
    }

    #[test]
    fn the_schema_uses_only_what_is_checked() {
        let known = [
            "$schema",
            "$defs",
            "$ref",
            "title",
            "description",
            "anyOf",
            "type",
            "const",
            "minimum",
            "maximum",
            "required",
            "properties",
            "additionalProperties",
            "items",
        ];
        each_schema(&SCHEMA, &mut |schema| {
            let table = schema.as_object().unwrap();
            for key in table.keys() {
                assert!(known.contains(&key.as_str()), "{key}");
            }
            if let Some(choices) = schema["anyOf"].as_array()
                && schema.get("$defs").is_none()
            {
                assert!(choices[0].get("$ref").is_some() && choices[1]["type"] == "null", "{schema}");
                assert_eq!(choices.len(), 2);
            }
            if let Some(reference) = schema["$ref"].as_str() {
                let _ = definition(reference);
            }
            for name in types(schema) {
                let names = ["object", "array", "string", "boolean", "null", "integer", "number"];
                assert!(names.contains(&name), "{name}");
            }
            let is_integer = types(schema).contains(&"integer");
            let is_limited = schema.get("minimum").is_some() || schema.get("const").is_some();
            assert_eq!(is_integer, is_limited, "{schema}");
            for key in schema["required"].as_array().into_iter().flatten() {
                assert!(schema["properties"].get(key.as_str().unwrap()).is_some(), "{key}");
            }
        });
    }

    #[test]
    fn keys_of_numbers_are_known() {
        for key in
            ["waf_bytes", "latency_ns.write.p99_9", "cost.dram_bytes", "flash.by_cause.gc.programs", "seed"]
        {
            assert!(is_number(key), "{key}");
        }
        for key in ["", "waf_byte", "latency_ns", "config.ftl.op", "version", "latency_ns.write.p99_9.x"] {
            assert!(!is_number(key), "{key}");
        }
    }
}
