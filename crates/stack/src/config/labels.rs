//! What the runs of a comparison are called.

use super::StackConfig;
use std::collections::BTreeMap;

/// A name for each configuration. Where several would be called alike, those keys are added whose values
/// differ between them.
pub fn labels(configs: &[&StackConfig]) -> Vec<String> {
    let plain: Vec<(String, BTreeMap<String, String>)> =
        configs.iter().map(|config| (config.label(), keys_of(config))).collect();
    let name = |(label, own): &(String, BTreeMap<String, String>)| {
        let alike = || plain.iter().filter(|(other, _)| other == label);
        let differs =
            |(key, value): &(&String, &String)| alike().any(|(_, keys)| keys.get(*key) != Some(*value));
        let told: Vec<String> =
            own.iter().filter(differs).map(|(key, value)| format!("{key}={value}")).collect();
        if told.is_empty() { label.clone() } else { format!("{label}, {}", told.join(", ")) }
    };
    plain.iter().map(name).collect()
}

/// Dotted keys of a configuration but those of the workload, with their values.
fn keys_of(config: &StackConfig) -> BTreeMap<String, String> {
    fn collect(prefix: &str, table: &toml::Table, keys: &mut BTreeMap<String, String>) {
        for (key, value) in table {
            match value {
                toml::Value::Table(inner) => collect(&format!("{prefix}{key}."), inner, keys),
                toml::Value::String(text) => drop(keys.insert(format!("{prefix}{key}"), text.clone())),
                other => drop(keys.insert(format!("{prefix}{key}"), other.to_string())),
            }
        }
    }
    let mut keys = BTreeMap::new();
    collect("", &config.to_stack_table(), &mut keys);
    keys
}
