//! The web pages that may call a method. A page in a browser on the operator's machine can reach a local server, so that methods
//! which use keys must not answer every page.

/// Which web pages may call a method. Programs may call every method, except those of [`PageAccess::Operator`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageAccess {
    /// Any page: the method only reads, or takes data that its author has signed.
    Any,
    /// Pages of this machine and pages that the operator allows: the method uses keys or changes the chain directly.
    Own,
    /// Pages of this machine and pages that the operator names: the method shows the host's upstreams or its pool.
    Named,
    /// Like [`Self::Named`], and of programs only those of the operator: the method shows or changes how the host treats
    /// other callers. For callers that may not call it, the method does not exist.
    Operator,
}

impl PageAccess {
    /// The name in the catalogue of methods.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::Own => "own",
            Self::Named => "named",
            Self::Operator => "operator",
        }
    }
}

#[cfg(feature = "dev")]
impl PageAccess {
    /// Why other pages may not call a method with this access, for the error. The error is given for [`Self::Own`] and
    /// [`Self::Named`].
    pub(super) const fn reason(self) -> &'static str {
        match self {
            Self::Any | Self::Own => "it uses keys or changes the chain directly",
            Self::Named | Self::Operator => "it shows the upstreams or the pool of this host",
        }
    }
}
