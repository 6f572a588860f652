//! What is set for the pages and stays set over their launches and supervisors: rules for requests, what is emulated,
//! and the chosen page.
//!
//! Kept in a file of the state folder. Does not talk to pages.

use std::path::PathBuf;
use std::sync::Mutex;

use serde::{Deserialize, Serialize};
use tether_base::bounded_file::{self, Links};
use tether_base::error::{Error, ErrorKind, Result};
use tether_base::sync::lock;
use tracing::debug;

use crate::vocabulary::{PageEmulation, RequestRule};

/// The largest file of settings, in bytes.
const MAX_FILE: u64 = 1 << 20;
const MAX_RULES: usize = 100;
const MAX_PATTERN: usize = 2000;

/// The settings of a workspace's pages.
#[derive(Debug, Default)]
pub struct PageSettings {
    file: Option<PathBuf>,
    current: Mutex<StoredSettings>,
}

/// As the file has them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct StoredSettings {
    rules: Vec<RequestRule>,
    last_rule: u32,
    /// The page that a caller has chosen, by its target id.
    chosen_page: Option<String>,
    emulation: PageEmulation,
}

impl PageSettings {
    /// Those that an earlier supervisor has stored; without a file, none are.
    pub fn load(file: Option<PathBuf>) -> PageSettings {
        let text = file.as_ref().and_then(|file| bounded_file::read_text(file, MAX_FILE, Links::Refuse).ok());
        let current = text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        PageSettings { file, current: Mutex::new(current) }
    }

    fn change<T>(&self, change: impl FnOnce(&mut StoredSettings) -> T) -> T {
        let mut current = lock(&self.current);
        let before = current.clone();
        let outcome = change(&mut current);
        if *current != before
            && let Some(file) = &self.file
            && let Err(cause) = store(file, &current)
        {
            // Only a later supervisor misses them.
            debug!("cannot store the settings of pages: {cause}");
        }
        outcome
    }

    /// The rules for requests, oldest first.
    pub fn rules(&self) -> Vec<RequestRule> {
        lock(&self.current).rules.clone()
    }

    /// Adds a rule, in the place of one with the same pattern; returns its number.
    pub fn add_rule(&self, rule: RequestRule) -> Result<u32> {
        if rule.url.is_empty() || rule.url.len() > MAX_PATTERN {
            return Err(Error::usage("a rule needs a pattern of URLs").hint(format!("of at most {MAX_PATTERN} bytes")));
        }
        self.change(|settings| {
            settings.rules.retain(|other| other.url != rule.url);
            if settings.rules.len() >= MAX_RULES {
                return Err(Error::usage(format!("there are {MAX_RULES} rules already")).hint("remove some of them"));
            }
            settings.last_rule = settings.last_rule.wrapping_add(1).max(1);
            settings.rules.push(RequestRule { id: settings.last_rule, ..rule });
            Ok(settings.last_rule)
        })
    }

    /// Removes a rule by its number, or all.
    pub fn remove_rules(&self, id: Option<u32>) -> Result<()> {
        self.change(|settings| {
            let before = settings.rules.len();
            settings.rules.retain(|rule| id.is_some_and(|id| rule.id != id));
            match id {
                Some(id) if settings.rules.len() == before => {
                    Err(Error::new(ErrorKind::NotFound, format!("there is no rule {id}")))
                }
                _ => Ok(()),
            }
        })
    }

    /// Removes what ends with a launch.
    pub fn end_launch(&self) {
        self.change(|settings| {
            settings.rules.retain(|rule| rule.keep);
            settings.chosen_page = None;
        });
    }

    /// The newest rule for a URL, and counts its use. (The count is not stored by itself.)
    pub fn use_rule(&self, url: &str) -> Option<RequestRule> {
        let mut current = lock(&self.current);
        let rule = current.rules.iter_mut().rev().find(|rule| rule.matches(url))?;
        rule.hits += 1;
        Some(rule.clone())
    }

    /// The page that a caller has chosen, by its target id.
    pub fn chosen_page(&self) -> Option<String> {
        lock(&self.current).chosen_page.clone()
    }

    /// Chooses a page for the operations that name none.
    pub fn choose_page(&self, target: Option<String>) {
        self.change(|settings| settings.chosen_page = target);
    }

    /// What is emulated.
    pub fn emulation(&self) -> PageEmulation {
        lock(&self.current).emulation.clone()
    }

    /// Changes what is emulated.
    pub fn set_emulation(&self, emulation: PageEmulation) {
        self.change(|settings| settings.emulation = emulation);
    }

    /// What is set, a line each.
    pub fn describe(&self) -> Vec<String> {
        let current = lock(&self.current);
        let emulation = current.emulation.describe();
        let emulated = emulation.map(|it| format!("pages emulate {it}; `tether emulate --reset` ends it"));
        emulated.into_iter().chain(current.rules.iter().map(ToString::to_string)).collect()
    }
}

fn store(file: &std::path::Path, settings: &StoredSettings) -> std::io::Result<()> {
    let temporary = file.with_extension("json.new");
    std::fs::write(&temporary, serde_json::to_vec(settings)?)?;
    std::fs::rename(&temporary, file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_stored_and_those_of_a_launch_end_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = Some(folder.path().join("page-settings.json"));
        let settings = PageSettings::load(file.clone());
        let rule = |url: &str, keep| RequestRule { url: url.into(), keep, block: true, ..RequestRule::default() };
        let ids = [rule("a", false), rule("b", true), rule("a", true)].map(|it| settings.add_rule(it).unwrap());
        assert_eq!(ids, [1, 2, 3]);
        settings.add_rule(rule("c", false)).unwrap();
        let later = PageSettings::load(file);
        let urls = |it: &PageSettings| it.rules().into_iter().map(|rule| rule.url).collect::<Vec<_>>();
        assert_eq!(urls(&later), ["b", "a", "c"]);
        later.end_launch();
        assert_eq!(urls(&later), ["b", "a"]);
        assert_eq!((later.use_rule("http://x/ab").unwrap().id, later.use_rule("http://x/b").unwrap().id), (3, 2));
        assert!(later.remove_rules(Some(1)).is_err());
        later.remove_rules(Some(2)).unwrap();
        assert_eq!(urls(&later), ["a"]);
        later.remove_rules(None).unwrap();
        assert!(later.rules().is_empty() && later.add_rule(RequestRule::default()).is_err());
    }
}
