//! How much of a cache is used, and how much of it each volume may hold: what is set beside the keys of the
//! design.

use super::settings::{LIMIT, QUOTA, Settings};
use super::{Result, check_changeable};
use nandscape_cache::compose::{Design, Typed};
use nandscape_core::ParamError;

/// What settings make of a cache with so many slots.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Shares {
    /// Slots that are used at most.
    pub limit: Option<u32>,
    /// Slots that volumes may hold, by number.
    pub quotas: Vec<(u16, Option<u32>)>,
}

impl Settings {
    /// What they say of a cache with so many slots.
    pub(super) fn shares(&self, design: &Design, all: u32) -> Result<Shares, ParamError> {
        let of = |key: &str, text: &Option<String>| match text {
            None => Ok(None),
            Some(text) => design.slots(key, text, all),
        };
        let quotas = self.volumes.iter().map(|(id, volume)| {
            let key = format!("{QUOTA}.{}", volume.name);
            Ok((*id, of(&key, &volume.quota)?))
        });
        Ok(Shares { limit: of(LIMIT, &self.limit)?, quotas: quotas.collect::<Result<_, ParamError>>()? })
    }

    /// Takes other settings: keys of the design, `limit` and `quota.VOLUME`; without a value, what holds
    /// where nothing is said. `blocks` are cached. Parameters of a policy that is no longer named go with
    /// it. What is refused changes nothing that is kept.
    pub(super) fn change(&mut self, changes: &Typed, blocks: u64) -> Result<()> {
        let mut new = self.clone();
        let mut design = changes.clone();
        let kept = |text: &str| (!matches!(text, "" | "none")).then(|| text.to_owned());
        for (key, text) in changes {
            if key == LIMIT {
                new.limit = kept(text);
            } else if let Some(name) = key.strip_prefix(QUOTA).and_then(|rest| rest.strip_prefix('.')) {
                let id = new.id(name)?;
                if let Some(volume) = new.volumes.get_mut(&id) {
                    volume.quota = kept(text);
                }
            } else {
                continue;
            }
            design.remove(key);
        }
        check_changeable(&design, blocks)?;
        for (key, value) in &design {
            if value.is_empty() {
                new.design.remove(key);
            } else {
                new.design.insert(key.clone(), value.clone());
            }
        }
        let checked = loop {
            match new.design() {
                Err(ParamError::UnknownKey { key, .. })
                    if is_left_over(&key, &design) && new.design.remove(own(&key)).is_some() => {}
                checked => break checked?,
            }
        };
        new.shares(&checked, 1 << 20)?;
        *self = new;
        Ok(())
    }
}

fn own(key: &str) -> &str {
    key.strip_prefix("cache.").unwrap_or(key)
}

/// Whether a key that nothing has any more was not asked for just now.
fn is_left_over(key: &str, changes: &Typed) -> bool {
    changes.get(own(key)).is_none_or(String::is_empty)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Named;

    fn typed(pairs: &[(&str, &str)]) -> Typed {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    fn settings() -> Settings {
        let mut settings = Settings { design: typed(&[("small", "20%")]), ..Settings::default() };
        let named = Named { name: "data".to_owned(), path: "disk".into(), quota: None };
        settings.volumes.insert(3, named);
        settings
    }

    #[test]
    fn quotas_and_limit_are_set_kept_and_taken_back() {
        let mut settings = settings();
        settings.change(&typed(&[("quota.data", "25%"), ("limit", "500b")]), 9).unwrap();
        let design = settings.design().unwrap();
        let shares = settings.shares(&design, 1000).unwrap();
        assert_eq!(shares, Shares { limit: Some(500), quotas: vec![(3, Some(250))] });
        let kept = Settings::parse(std::path::Path::new("f"), &settings.text()).unwrap();
        assert_eq!(kept, settings);
        settings.change(&typed(&[("quota.data", "none"), ("limit", "")]), 9).unwrap();
        assert_eq!(settings.shares(&design, 1000).unwrap().quotas, [(3, None)]);
        assert_eq!(settings.limit, None);
        let before = settings.clone();
        for (pairs, wanted) in [
            (&[("quota.nope", "25%")][..], "no volume 'nope'"),
            (&[("quota.data", "much")], "cache.quota.data = 'much'"),
            (&[("limit", "101%")], "cache.limit = '101%'"),
            (&[("quota", "1b")], "cache.quota"),
            (&[("size", "1b")], "cache.size cannot change"),
        ] {
            let error = settings.change(&typed(pairs), 9).unwrap_err().to_string();
            assert!(error.contains(wanted), "{pairs:?}: {error}");
        }
        assert_eq!(settings, before, "what is refused changes nothing");
    }

    #[test]
    fn parameters_of_a_policy_go_with_it_and_an_empty_value_takes_a_key_back() {
        let mut settings = settings();
        settings.change(&typed(&[("eviction", "lru")]), 9).unwrap();
        assert_eq!(settings.design, typed(&[("eviction", "lru")]));
        let error = settings.change(&typed(&[("small", "20%")]), 9).unwrap_err().to_string();
        assert!(error.contains("cache.small"), "{error}");
        settings.change(&typed(&[("eviction", "")]), 9).unwrap();
        assert!(settings.design.is_empty());
    }
}
