//! `rootlight_mineBitcoin`: mines on the Bitcoin chain that a development chain may have besides its own blocks, to test how
//! clients judge a Rootstock chain by Bitcoin's. A tag is the mark in a Bitcoin coinbase that names a Rootstock block.

use alloc::string::String;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{chain_at, write};
use crate::{
    consensus::bitcoin::reversed,
    dev::BitcoinTag,
    engine::{Level, LocalNode},
    rpc::{
        error::{ParamError, RpcError},
        method::{HandlerResult, Method, done, optional},
        params::{Params, parse_number},
    },
    types::json::Quantity,
};

pub(super) const METHODS: &[Method] = &[write(
    ("rootlight_mineBitcoin", &[]),
    &[optional("blocks", "QUANTITY"), optional("options", "MINE_OPTIONS")],
    "{height, hash} of the newest Bitcoin block",
    "Mines Bitcoin blocks beside the chain (--bitcoin-chain), by default 1, at most 2,016; {tag, parent}: tag is none, own, kin, foreign or ahead, and blocks above the height parent are replaced.",
    mine,
)];

/// The options in the second parameter: the kind of the blocks' tags ([`BitcoinTag`]), and the height of the block below them.
#[derive(Deserialize)]
struct Options<'a> {
    #[serde(default)]
    tag: Option<String>,
    #[serde(borrow, default)]
    parent: Option<&'a RawValue>,
}

/// The result: the newest Bitcoin block.
#[derive(Serialize)]
struct Tip {
    height: Quantity,
    hash: String,
}

fn mine(node: &mut dyn LocalNode, params: Params<'_>) -> HandlerResult {
    let count = if params.is_given(0) { parse_u64(&params.text(0))? } else { 1 };
    let options: Option<Options<'_>> = params.object(1, "options: tag and parent")?;
    let (mut tag, mut parent) = (BitcoinTag::None, None);
    if let Some(options) = options {
        if let Some(name) = options.tag {
            tag = parse_tag(&name)?;
        }
        if let Some(height) = options.parent {
            // The height is a string or a JSON number.
            let text: String = serde_json::from_str(height.get()).unwrap_or_else(|_| height.get().into());
            parent = Some(u32::try_from(parse_u64(&text)?).map_err(|_| ParamError::Number(text))?);
        }
    }
    let (chain, now) = chain_at(node)?;
    let tip = chain.mine_bitcoin(count, tag, parent, now).map_err(RpcError::from)?;
    let hash = alloc::format!("{:x}", reversed(&tip.hash));
    done(&Tip { height: Quantity::from(u64::from(tip.height)), hash }, Level::Local)
}

fn parse_tag(name: &str) -> Result<BitcoinTag, ParamError> {
    let found = BitcoinTag::ALL.into_iter().find(|tag| tag.name() == name);
    found.ok_or(ParamError::Type { position: 1, expected: "a tag: none, own, kin, foreign or ahead" })
}

fn parse_u64(text: &str) -> Result<u64, ParamError> {
    u64::try_from(parse_number(text)?).map_err(|_| ParamError::Number(text.into()))
}
