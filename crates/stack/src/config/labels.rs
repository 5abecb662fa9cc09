//! What the runs of a comparison are called.

use super::StackConfig;
use serde_json::Value;
use std::collections::BTreeMap;

/// A name for each configuration. Where several would be called alike, those keys are added whose values
/// differ between them.
pub fn labels(configs: &[&StackConfig]) -> Vec<String> {
    // Without the keys of the workload.
    let table =
        |config: &StackConfig| serde_json::to_value(config.to_stack_table()).expect("tables are JSON");
    let plain: Vec<(String, Keys)> =
        configs.iter().map(|config| (config.label(), keys_of(&table(config)))).collect();
    let name = |((label, _), told): (&(String, Keys), Vec<(String, String)>)| with_keys(label, &told);
    plain.iter().zip(differences(&plain)).map(name).collect()
}

/// Dotted keys of a configuration with their values.
pub type Keys = BTreeMap<String, String>;

/// Values of a part that is not there or not used.
const OFF: [&str; 3] = ["0", "none", "false"];
/// Keys that name which variant of a part there is.
const VARIANT: [&str; 3] = ["kind", "policy", "preset"];
/// The key that names a drive, and the part of which it gives every key: those need no word beside the name,
/// as long as each drive has one value of them.
const DRIVE: (&str, &str) = ("device.preset", "device.");

/// Of each configuration, the keys whose values differ between those of the same label: as few as tell them
/// apart. Of a part that others do not have it is the variant, and what is off needs no word.
pub fn differences(named: &[(String, Keys)]) -> Vec<Vec<(String, String)>> {
    let of = |(label, own): &(String, Keys), all: bool| {
        let alike = || named.iter().filter(|(other, _)| other == label).map(|(_, keys)| keys);
        let is_of_drive = |key: &str| {
            let mut sheets = BTreeMap::new();
            let mut is_in_sheet = |keys: &'_ Keys| {
                let own = keys.get(key).cloned();
                keys.get(DRIVE.0)
                    .is_some_and(|drive| *sheets.entry(drive.clone()).or_insert(own.clone()) == own)
            };
            key != DRIVE.0 && key.starts_with(DRIVE.1) && alike().all(&mut is_in_sheet)
        };
        let is_told = |(key, value): &(&String, &String)| {
            let differs = alike().filter_map(|keys| keys.get(*key)).any(|other| other != *value);
            let is_missing = alike().any(|keys| !keys.contains_key(*key));
            let is_variant = key.rsplit('.').next().is_some_and(|last| VARIANT.contains(&last));
            let is_off = OFF.contains(&value.as_str());
            if is_of_drive(key) {
                return false;
            }
            if all { differs || is_missing } else { !is_off && (differs || is_missing && is_variant) }
        };
        own.iter().filter(is_told).map(|(key, value)| (key.clone(), value.clone())).collect()
    };
    let few: Vec<Vec<_>> = named.iter().map(|one| of(one, false)).collect();
    let is_twice = |at: usize| {
        (0..named.len()).any(|other| other != at && named[other].0 == named[at].0 && few[other] == few[at])
    };
    (0..named.len()).map(|at| if is_twice(at) { of(&named[at], true) } else { few[at].clone() }).collect()
}

/// A label with the keys that tell it from others.
pub fn with_keys(label: &str, keys: &[(String, String)]) -> String {
    let pairs = keys.iter().map(|(key, value)| format!(", {key}={value}"));
    format!("{label}{}", pairs.collect::<String>())
}

/// Dotted keys of a table with their values.
pub fn keys_of(table: &Value) -> Keys {
    fn collect(prefix: &str, value: &Value, keys: &mut Keys) {
        match value {
            Value::Object(table) => {
                let prefix = if prefix.is_empty() { String::new() } else { format!("{prefix}.") };
                table.iter().for_each(|(key, value)| collect(&format!("{prefix}{key}"), value, keys));
            }
            Value::String(text) => drop(keys.insert(prefix.to_owned(), text.clone())),
            other => drop(keys.insert(prefix.to_owned(), other.to_string())),
        }
    }
    let mut keys = Keys::new();
    collect("", table, &mut keys);
    keys
}
