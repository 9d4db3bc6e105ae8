//! Proposes new built-in checkpoints that several sources confirm: of Rootstock's chain (`rootstock`) and of Bitcoin's (`bitcoin`). The
//! file `source_text` writes them into the source code.

mod bitcoin;
mod rootstock;
mod source_text;

pub use bitcoin::{BitcoinProposal, propose_bitcoin};
pub use rootstock::{CheckpointProposal, DEPTH, ProposeError, ProposeOptions, propose};
pub use source_text::{SourceTextError, with_bitcoin_checkpoint, with_checkpoint};
