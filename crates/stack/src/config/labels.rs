//! What the runs of a comparison are called.

use super::StackConfig;
use std::collections::BTreeMap;

/// A name for each configuration. Where several would be called alike, those keys are added whose values
/// differ between them.
pub fn labels(configs: &[&StackConfig]) -> Vec<String> {
    let plain: Vec<(String, Keys)> = configs.iter().map(|config| (config.label(), keys_of(config))).collect();
    let name = |((label, _), told): (&(String, Keys), Vec<(String, String)>)| with_keys(label, &told);
    plain.iter().zip(differences(&plain)).map(name).collect()
}

/// Dotted keys of a configuration with their values.
pub type Keys = BTreeMap<String, String>;

/// Of each configuration, the keys whose values differ between those of the same label.
pub fn differences(named: &[(String, Keys)]) -> Vec<Vec<(String, String)>> {
    let own = |(label, own): &(String, Keys)| {
        let alike = || named.iter().filter(|(other, _)| other == label);
        let differs =
            |(key, value): &(&String, &String)| alike().any(|(_, keys)| keys.get(*key) != Some(*value));
        own.iter().filter(differs).map(|(key, value)| (key.clone(), value.clone())).collect()
    };
    named.iter().map(own).collect()
}

/// A label with the keys that tell it from others.
pub fn with_keys(label: &str, keys: &[(String, String)]) -> String {
    let pairs = keys.iter().map(|(key, value)| format!(", {key}={value}"));
    format!("{label}{}", pairs.collect::<String>())
}

/// Dotted keys of a configuration but those of the workload, with their values.
fn keys_of(config: &StackConfig) -> Keys {
    fn collect(prefix: &str, table: &toml::Table, keys: &mut Keys) {
        for (key, value) in table {
            match value {
                toml::Value::Table(inner) => collect(&format!("{prefix}{key}."), inner, keys),
                toml::Value::String(text) => drop(keys.insert(format!("{prefix}{key}"), text.clone())),
                other => drop(keys.insert(format!("{prefix}{key}"), other.to_string())),
            }
        }
    }
    let mut keys = Keys::new();
    collect("", &config.to_stack_table(), &mut keys);
    keys
}
