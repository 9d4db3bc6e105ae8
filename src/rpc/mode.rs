//! The modes of Rootlight, by which rows of the method table say whether and within which limits they answer.

/// A way of running Rootlight, named by the command that starts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The development chain.
    Dev,
    /// The follower: it executes the blocks of another node.
    Follow,
    /// The light client.
    Light,
}

impl Mode {
    /// Every mode.
    pub const ALL: [Self; 3] = [Self::Dev, Self::Follow, Self::Light];

    /// The name of the command.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dev => "dev",
            Self::Follow => "follow",
            Self::Light => "light",
        }
    }
}
