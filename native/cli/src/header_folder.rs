//! The folder in which a light client stores verified headers: that of `--data-dir`, or for a start by window one below the
//! user's folder for caches.

use std::env;
use std::path::{Path, PathBuf};

use rootlight::consensus::Network;
use rootlight_node::light::LightStart;

use super::source_args::SourceArgs;

/// The value of `--data-dir` with which nothing is stored.
const NOTHING: &str = "none";

/// The folder of verified headers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum HeaderFolder {
    /// Nowhere.
    None,
    /// In the folder that the user names.
    Named(PathBuf),
    /// In the usual folder below the user's caches. The program runs without it if it cannot be used.
    Usual(PathBuf),
}

impl HeaderFolder {
    /// The folder of `--data-dir`. Without it, a start by window has one below the user's folder for caches.
    pub(super) fn of(argument: Option<&Path>, start: &LightStart, network: &Network) -> Self {
        match (argument, start) {
            (Some(folder), _) if folder == Path::new(NOTHING) => Self::None,
            (Some(folder), _) => Self::Named(folder.to_owned()),
            (None, LightStart::Window(_)) => {
                usual().map_or(Self::None, |folder| Self::Usual(folder.join(name(network))))
            }
            (None, LightStart::At(_) | LightStart::Work(_)) => Self::None,
        }
    }

    pub(super) fn path(&self) -> Option<&Path> {
        match self {
            Self::None => None,
            Self::Named(folder) | Self::Usual(folder) => Some(folder),
        }
    }
}

/// The folder of `--data-dir`, if the flag names one. Only one program uses this folder, whereas several may share the usual one.
pub(super) fn named(args: &SourceArgs) -> Option<&Path> {
    args.data_dir.as_deref().filter(|folder| *folder != Path::new(NOTHING))
}

/// The program's folder below the user's folder for caches.
pub(super) fn usual() -> Option<PathBuf> {
    caches(|name| env::var_os(name).map(PathBuf::from)).map(|folder| folder.join("rootlight"))
}

/// The user's folder for caches, by the rules of the system. `variable` reads the environment.
fn caches(variable: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    // A path that is not absolute is ignored, as the XDG base directory specification demands.
    let folder = |name| variable(name).filter(|folder| folder.is_absolute());
    if cfg!(windows) {
        return folder("LOCALAPPDATA");
    }
    let below_home = if cfg!(target_os = "macos") { "Library/Caches" } else { ".cache" };
    let xdg = folder("XDG_CACHE_HOME").filter(|_| !cfg!(target_os = "macos"));
    xdg.or_else(|| folder("HOME").map(|home| home.join(below_home)))
}

/// A name for the network's folder. A network file may give any name, which must not lead elsewhere.
fn name(network: &Network) -> String {
    let is_plain = |name: &str| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
    };
    match is_plain(&network.name) {
        true => network.name.clone(),
        false => format!("chain-{}", network.chain_id),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window() -> LightStart {
        LightStart::Window(Network::mainnet().start_by_work().unwrap())
    }

    #[test]
    fn only_a_start_by_window_has_a_folder_of_its_own() {
        let mainnet = Network::mainnet();
        let work = LightStart::Work(mainnet.start_by_work().unwrap());
        assert_eq!(HeaderFolder::of(None, &work, &mainnet), HeaderFolder::None);
        assert_eq!(HeaderFolder::of(Some(Path::new("none")), &window(), &mainnet), HeaderFolder::None);
        for start in [window(), work] {
            let named = HeaderFolder::of(Some(Path::new("kept")), &start, &mainnet);
            assert_eq!(named, HeaderFolder::Named("kept".into()));
        }
    }

    #[test]
    #[cfg(all(unix, not(target_os = "macos")))]
    fn caches_are_where_the_environment_says() {
        let given = |pairs: &'static [(&str, &str)]| {
            caches(move |name| pairs.iter().find(|(known, _)| *known == name).map(|(_, path)| path.into()))
        };
        assert_eq!(given(&[("XDG_CACHE_HOME", "/c"), ("HOME", "/h")]), Some("/c".into()));
        assert_eq!(given(&[("XDG_CACHE_HOME", "c"), ("HOME", "/h")]), Some("/h/.cache".into()));
        assert_eq!(given(&[("HOME", "/h")]), Some("/h/.cache".into()));
        assert_eq!(given(&[]), None);
    }

    #[test]
    fn a_networks_name_leads_nowhere_else() {
        let named = |text: &str| {
            let mut network = Network::mainnet();
            network.name = text.into();
            name(&network)
        };
        assert_eq!(named("mainnet"), "mainnet");
        for text in ["", "..", "a/b", "a b"] {
            assert_eq!(named(text), "chain-30", "{text}");
        }
    }
}
