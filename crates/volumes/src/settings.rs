//! What a cache keeps in its superblock: the design, and name and path of each volume, as TOML.

use super::{CacheFileError, Result};
use nandscape_cache::compose::{Design, Typed};
use nandscape_cache::presets::Flushing;
use nandscape_core::ParamError;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A volume as people call it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// Its name, under which it is served.
    pub name: String,
    /// Its disk.
    pub path: PathBuf,
    /// How much of the cache it may hold, as it was typed; see `shares`.
    pub quota: Option<String>,
}

/// All of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Keys of the design as they were typed.
    pub design: Typed,
    /// By number.
    pub volumes: BTreeMap<u16, Named>,
    /// Where the blocks are, if not behind the metadata.
    pub data: Option<PathBuf>,
    /// How much of the cache is used at most, as it was typed.
    pub limit: Option<String>,
}

/// Key of what is used of a cache at most.
pub(super) const LIMIT: &str = "limit";
/// Key of what a volume may hold at most, before a dot and its name.
pub(super) const QUOTA: &str = "quota";
const VOLUME: &str = "volume";
const DATA: &str = "data";

impl Settings {
    pub(crate) fn wrong(fast: &Path, detail: &str) -> CacheFileError {
        CacheFileError::refused(fast, format!("settings of the cache: {detail}"))
    }

    /// From the text in the superblock of the cache at `fast`.
    pub fn parse(fast: &Path, text: &str) -> Result<Self> {
        let wrong = |detail: String| Self::wrong(fast, &detail);
        let table: toml::Table = text.parse().map_err(|error: toml::de::Error| wrong(error.to_string()))?;
        let mut settings = Self::default();
        for (key, value) in table {
            match value {
                toml::Value::String(value) if key == LIMIT => settings.limit = Some(value),
                toml::Value::String(value) if key == DATA => settings.data = Some(value.into()),
                toml::Value::String(value) => drop(settings.design.insert(key, value)),
                toml::Value::Table(volumes) if key == VOLUME => {
                    for (id, volume) in volumes {
                        let text = |key: &str| volume.get(key).and_then(toml::Value::as_str);
                        let (Ok(id), Some(name), Some(path)) = (id.parse(), text("name"), text("path"))
                        else {
                            return Err(wrong(format!("volume {id}: expected name and path")));
                        };
                        let quota = text(QUOTA).map(str::to_owned);
                        settings
                            .volumes
                            .insert(id, Named { name: name.to_owned(), path: path.into(), quota });
                    }
                }
                value => return Err(wrong(format!("{key} = {value}: expected text"))),
            }
        }
        Ok(settings)
    }

    /// For a superblock.
    pub fn text(&self) -> String {
        let text = |text: &str| toml::Value::String(text.to_owned());
        let mut table: toml::Table =
            self.design.iter().map(|(key, value)| (key.clone(), text(value))).collect();
        let volumes: toml::Table = self
            .volumes
            .iter()
            .map(|(id, volume)| {
                let path = volume.path.to_string_lossy();
                let pairs = [("name", volume.name.as_str()), ("path", &path)];
                let pairs = pairs.into_iter().chain(volume.quota.as_deref().map(|quota| (QUOTA, quota)));
                let pairs = pairs.map(|(key, value)| (key.to_owned(), text(value)));
                (id.to_string(), toml::Value::Table(pairs.collect()))
            })
            .collect();
        if let Some(limit) = &self.limit {
            table.insert(LIMIT.to_owned(), text(limit));
        }
        if let Some(data) = &self.data {
            table.insert(DATA.to_owned(), text(&data.to_string_lossy()));
        }
        if !volumes.is_empty() {
            table.insert(VOLUME.to_owned(), toml::Value::Table(volumes));
        }
        table.to_string()
    }

    /// The design, checked. Keys are named as they are typed, such as `cache.mode`.
    ///
    /// Files lose what was not flushed; so here a published design flushes as nandscape's own does, unless it
    /// was asked to do as it did.
    pub fn design(&self) -> Result<Design, ParamError> {
        let mut design = Design::parse("cache.", &self.design)?;
        if !self.design.contains_key("flushing") {
            design.flushing = Flushing::Both;
        }
        Ok(design)
    }

    /// The number of the volume of that name.
    pub fn id(&self, name: &str) -> Result<u16> {
        let found = self.volumes.iter().find(|(_, volume)| volume.name == name).map(|(id, _)| *id);
        let unknown = || format!("no volume '{name}': expected one of {}", self.names());
        found.ok_or_else(|| CacheFileError::Usage(unknown()))
    }

    fn names(&self) -> String {
        if self.volumes.is_empty() {
            return "none, since no volume is attached".to_owned();
        }
        self.volumes.values().map(|volume| volume.name.as_str()).collect::<Vec<_>>().join(", ")
    }
}

/// What [`is_name`] asks for.
pub const NAME_EXPECTED: &str = "1 to 32 letters, digits, '-', '_' and '.', the first one no '-' or '.'";

/// Whether this can be the name of a volume: of an export, a file and a key.
pub fn is_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    (1..=32).contains(&name.len()) && name.chars().all(is_plain) && !name.starts_with(['.', '-'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_come_back_as_they_were_written_and_a_plain_design_is_understood() {
        let mut settings = Settings::default();
        settings.design.insert("mode".to_owned(), "write-through".to_owned());
        let path = PathBuf::from("/srv/a \"disk\"\\with\nodd characters");
        settings.volumes.insert(3, Named { name: "data".to_owned(), path, quota: Some("25%".to_owned()) });
        settings.limit = Some("100b".to_owned());
        settings.data = Some(PathBuf::from("/dev/disk/by-id/blocks"));
        assert_eq!(Settings::parse(Path::new("f"), &settings.text()).unwrap(), settings);
        let design = settings.design().unwrap();
        let plain = Settings::parse(Path::new("f"), &design.text()).unwrap();
        assert_eq!(plain.design, settings.design);
        assert_eq!(settings.id("data").unwrap(), 3);
        assert_eq!(settings.id("x").unwrap_err().to_string(), "no volume 'x': expected one of data");
    }

    #[test]
    fn a_published_design_over_files_flushes_both_sides_unless_it_was_asked_not_to() {
        let flushing = |typed: &[(&str, &str)]| {
            let design = typed.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
            Settings { design, ..Settings::default() }.design().unwrap().flushing
        };
        assert_eq!(flushing(&[("preset", "flashcache")]), Flushing::Both);
        assert_eq!(flushing(&[("preset", "flashcache"), ("flushing", "nothing")]), Flushing::Nothing);
    }

    #[test]
    fn text_that_is_not_settings_is_an_error_that_names_the_file() {
        for text in ["mode = 3", "[volume.0]\nname = \"a\"", "[other]", "x", "[volume.x]\nname='a'\npath='b'"]
        {
            let error = Settings::parse(Path::new("fast.img"), text).unwrap_err().to_string();
            assert!(error.starts_with("fast.img: settings of the cache: "), "{error}");
        }
    }

    #[test]
    fn names_are_what_can_be_a_file_an_export_and_a_key() {
        for name in ["a", "data-1", "vg0_root.img"] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", "a b", "-a", ".a", "a/b", "ä", &"x".repeat(33)] {
            assert!(!is_name(name), "{name}");
        }
    }
}
