//! The user's folders by the XDG rules; without a home, the working folder.

use std::path::PathBuf;

use etcetera::{BaseStrategy, choose_base_strategy};

/// For what the user would miss.
pub fn data_folder() -> PathBuf {
    choose_base_strategy().map_or_else(|_| "data".into(), |home| home.data_dir().join("atelier"))
}

/// For what can be fetched again.
pub fn cache_folder() -> PathBuf {
    choose_base_strategy().map_or_else(|_| "data/cache".into(), |home| home.cache_dir().join("atelier"))
}
