//! SIGHUP: reads the configuration and the certificate again.

use std::ffi::OsString;
use std::sync::{Mutex, PoisonError};

use super::args::Cli;
use super::command_line::Values;

/// Flags whose changes take effect without a restart.
const RELOADABLE: [&str; 4] = ["allow-host", "cors", "log-level", "trusted-proxy"];

/// The command line that the process was started with, and the settings in effect.
struct Started {
    arguments: Vec<OsString>,
    values: Values,
}

/// Set once when the program starts; a reload updates the settings.
static STARTED: Mutex<Option<Started>> = Mutex::new(None);

/// Remembers the command line, so that it can be read again with a changed file.
pub(super) fn remember(arguments: Vec<OsString>, values: Values) {
    *STARTED.lock().unwrap_or_else(PoisonError::into_inner) = Some(Started { arguments, values });
}

/// The names of flags with different values.
fn changed(old: &Values, new: &Values) -> Vec<String> {
    let names = old.keys().chain(new.keys().filter(|name| !old.contains_key(*name)));
    names.filter(|name| old.get(*name) != new.get(*name)).cloned().collect()
}

#[cfg(unix)]
pub(super) use unix::Hangups;

#[cfg(unix)]
mod unix {
    use rootlight_server::Control;
    use tokio::signal::unix::{Signal, SignalKind, signal};
    use tracing::{error, info, warn};

    use super::super::command_line::{NoCommand, read};
    use super::super::{logging, systemd};
    use super::{Cli, PoisonError, RELOADABLE, STARTED, changed};

    /// The SIGHUP signals that the process receives; `None` inside if they cannot be received.
    pub(crate) struct Hangups(Option<Signal>);

    impl Hangups {
        /// Begins to receive the signals.
        pub(crate) fn listen() -> Self {
            let signals = signal(SignalKind::hangup());
            Self(signals.inspect_err(|failure| warn!(%failure, "SIGHUP is not handled")).ok())
        }

        /// Reads the configuration again at each signal, for ever.
        pub(crate) async fn follow(mut self, control: Control) {
            loop {
                let received = match &mut self.0 {
                    Some(signals) => signals.recv().await,
                    None => None,
                };
                if received.is_none() {
                    return std::future::pending().await;
                }
                systemd::reloading();
                let control = control.clone();
                // Reading files would block this thread.
                if tokio::task::spawn_blocking(move || reload(&control)).await.is_err() {
                    error!("reading the configuration again failed");
                }
                systemd::ready();
            }
        }
    }

    /// Reads the certificate and the configuration again, and applies the flags of [`RELOADABLE`].
    fn reload(control: &Control) {
        control.reload_certificate();
        let mut started = STARTED.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(started) = started.as_mut() else { return };
        let (cli, values) = match read(started.arguments.clone(), true) {
            Ok(read) => read,
            Err(NoCommand::Config(failure)) => return error!("the configuration stays as it was: {failure}"),
            Err(NoCommand::Clap(failure)) => {
                // The further lines of clap's message explain the usage.
                let failure = failure.to_string();
                return error!(
                    "the configuration stays as it was: {}",
                    failure.lines().next().unwrap_or_default()
                );
            }
        };
        let (now, later): (Vec<_>, Vec<_>) = changed(&started.values, &values)
            .into_iter()
            .partition(|name| RELOADABLE.contains(&name.as_str()));
        apply(control, &cli);
        // Changes that need a restart are not stored, so that each reload warns of them.
        for name in &now {
            match values.get(name) {
                Some(value) => _ = started.values.insert(name.clone(), value.clone()),
                None => _ = started.values.remove(name),
            }
        }
        match now.as_slice() {
            [] => {
                info!("configuration read again: nothing has changed that can change while the program runs")
            }
            names => info!("configuration read again: changed {}", names.join(", ")),
        }
        if !later.is_empty() {
            warn!("these changes need a restart: {}", later.join(", "));
        }
    }

    /// Applies the flags of [`RELOADABLE`].
    fn apply(control: &Control, cli: &Cli) {
        logging::set_level(&cli.common);
        if let Some(args) = cli.server() {
            control.set_rules(args.origins(), args.hosts(), args.operations.proxies());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_found_by_name() {
        let values = |pairs: &[(&str, &str)]| -> Values {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), vec![value.into()])).collect()
        };
        let old = values(&[("cors", "a"), ("host", "h"), ("gone", "1")]);
        let new = values(&[("cors", "b"), ("host", "h"), ("more", "1")]);
        assert_eq!(changed(&old, &new), ["cors", "gone", "more"]);
        assert!(changed(&old, &old).is_empty());
    }
}
