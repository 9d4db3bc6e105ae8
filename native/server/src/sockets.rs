//! Addresses to listen on (`--listen`), and the listeners of TCP and of Unix sockets.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

use tokio::net::TcpListener;

use super::metered::Stream;
#[cfg(unix)]
use crate::unix_socket;

/// An address to listen on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listen {
    /// A host name or address, and a port; 0 picks a free one.
    Tcp(String, u16),
    /// The path of a Unix socket.
    Unix(PathBuf),
}

impl FromStr for Listen {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const FORM: &str = "must be HOST:PORT, [IPV6]:PORT or unix:PATH";
        if let Some(path) = text.strip_prefix("unix:") {
            return if path.is_empty() { Err(FORM) } else { Ok(Self::Unix(path.into())) };
        }
        let (host, port) = text.rsplit_once(':').ok_or(FORM)?;
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        if host.is_empty() || (bare.is_none() && host.contains(':')) {
            return Err(FORM);
        }
        let port = port.parse().map_err(|_| FORM)?;
        Ok(Self::Tcp(bare.unwrap_or(host).to_owned(), port))
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(host, port) if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp(host, port) => write!(f, "{host}:{port}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// A socket that the process was started with, already listening.
#[derive(Debug)]
pub enum Inherited {
    /// TCP.
    Tcp(std::net::TcpListener),
    /// A Unix socket.
    #[cfg(unix)]
    Unix(std::os::unix::net::UnixListener),
}

/// A socket that accepts connections.
#[derive(Debug)]
pub(super) enum Listener {
    Tcp(TcpListener),
    /// A Unix socket, and its file if this process made it.
    #[cfg(unix)]
    Unix(tokio::net::UnixListener, Option<unix_socket::SocketFile>),
}

impl Listener {
    /// Listens on an address. The file of a Unix socket gets this mode.
    pub(super) async fn bind(address: &Listen, mode: u32) -> io::Result<Self> {
        match address {
            Listen::Tcp(host, port) => {
                let bare = host.trim_start_matches('[').trim_end_matches(']');
                TcpListener::bind((bare, *port)).await.map(Self::Tcp)
            }
            #[cfg(unix)]
            Listen::Unix(path) => {
                unix_socket::bind(path, mode).map(|(listener, file)| Self::Unix(listener, Some(file)))
            }
            #[cfg(not(unix))]
            Listen::Unix(_) => {
                let _ = mode;
                Err(io::Error::new(io::ErrorKind::Unsupported, "this system has no Unix sockets"))
            }
        }
    }

    /// Makes a listener from a socket that the process was started with.
    pub(super) fn adopt(socket: Inherited) -> io::Result<Self> {
        match socket {
            Inherited::Tcp(listener) => {
                listener.set_nonblocking(true)?;
                TcpListener::from_std(listener).map(Self::Tcp)
            }
            #[cfg(unix)]
            Inherited::Unix(listener) => {
                listener.set_nonblocking(true)?;
                tokio::net::UnixListener::from_std(listener).map(|listener| Self::Unix(listener, None))
            }
        }
    }

    /// The address of a TCP socket.
    pub(super) fn address(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(listener) => listener.local_addr().ok(),
            #[cfg(unix)]
            Self::Unix(..) => None,
        }
    }

    /// The path of a Unix socket; `None` also for one without a file.
    pub(super) fn path(&self) -> Option<PathBuf> {
        match self {
            Self::Tcp(_) => None,
            #[cfg(unix)]
            Self::Unix(_, Some(file)) => Some(file.path().to_owned()),
            #[cfg(unix)]
            Self::Unix(listener, None) => Some(listener.local_addr().ok()?.as_pathname()?.to_owned()),
        }
    }

    /// Accepts a connection. Returns it with the address of the client, `None` for a Unix socket.
    pub(super) async fn accept(&self) -> io::Result<(Box<dyn Stream>, Option<IpAddr>)> {
        match self {
            Self::Tcp(listener) => {
                let (stream, address) = listener.accept().await?;
                // Disables Nagle's algorithm, because answers are small and latency matters. A failure only makes answers slower.
                let _ = stream.set_nodelay(true);
                Ok((Box::new(stream), Some(address.ip())))
            }
            #[cfg(unix)]
            Self::Unix(listener, _) => Ok((Box::new(listener.accept().await?.0), None)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_host_with_a_port_or_a_path() {
        for (text, shown) in [
            ("127.0.0.1:4444", "127.0.0.1:4444"),
            ("localhost:0", "localhost:0"),
            ("[::1]:4444", "[::1]:4444"),
            ("unix:/run/rootlight.sock", "unix:/run/rootlight.sock"),
        ] {
            assert_eq!(text.parse::<Listen>().unwrap().to_string(), shown);
        }
        for bad in ["", "4444", ":4444", "host", "host:", "host:65536", "::1:4444", "unix:", "[::1]"] {
            assert!(bad.parse::<Listen>().is_err(), "{bad}");
        }
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_socket_that_was_left_behind_is_replaced_and_one_in_use_is_not() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let address = Listen::Unix(folder.path().join("s"));
        let Listen::Unix(path) = &address else { unreachable!() };
        // The file that a killed process leaves behind.
        drop(std::os::unix::net::UnixListener::bind(path).unwrap());
        assert!(path.exists());
        let listener = Listener::bind(&address, 0o640).await.unwrap();
        assert_eq!(std::fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o640);
        let failure = Listener::bind(&address, 0o600).await.unwrap_err();
        assert_eq!(failure.kind(), io::ErrorKind::AddrInUse);
        drop(listener);
        assert!(!path.exists(), "the file is removed at the end");
        std::fs::write(path, "data").unwrap();
        assert!(Listener::bind(&address, 0o600).await.is_err());
        assert_eq!(std::fs::read(path).unwrap(), b"data");
    }
}
