//! `eth_bridgeState`: the state that the Bridge reports itself. The Bridge is the native contract that moves bitcoins to
//! Rootstock (peg-in) and back (peg-out).

use alloc::{string::String, vec::Vec};

use alloy_primitives::{Address, Bytes, U256, address, hex};
use serde::Serialize;

use super::{
    call::CallBlock,
    error::RpcError,
    method::{HandlerResult, Method, verified},
    params::Params,
};
use crate::{
    engine::View,
    exec::{CallMessage, CallOutcome, call},
    state::StateOverride,
};

/// The Bridge contract.
const BRIDGE: Address = address!("0000000000000000000000000000000001000006");
/// Selector of the Bridge's method `getStateForDebugging()`.
const STATE_SELECTOR: [u8; 4] = [0x0d, 0x0c, 0xee, 0x93];

pub(super) const METHODS: &[Method] = &[Method::read(
    "eth_bridgeState",
    &[],
    "{btcBlockchainBestChainHeight, rskTxsWaitingForSignatures}",
    "Height of the Bridge's Bitcoin chain, and the hashes, without 0x, of peg-outs that wait for signatures.",
    bridge_state,
)
.relayed()
.costs(50)];

/// The result of `eth_bridgeState`.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct BridgeState {
    btc_blockchain_best_chain_height: u64,
    rsk_txs_waiting_for_signatures: Vec<String>,
}

fn bridge_state(view: &dyn View, _: Params<'_>) -> HandlerResult {
    let message = CallMessage {
        to: Some(BRIDGE),
        data: Bytes::copy_from_slice(&STATE_SELECTOR),
        ..CallMessage::default()
    };
    let block = CallBlock::inside(view.head()?);
    let none = StateOverride::default();
    // `None`: without an inspector.
    let result = block.run(view, |context, limits| call(context, &message, &none, limits, None))?;
    let CallOutcome::Success { output, .. } = result.into_outcome() else {
        return Err(RpcError::Internal.into());
    };
    verified(&decode(&output).ok_or(RpcError::Internal)?)
}

/// Decodes the result of the method, which is of the ABI type `bytes`: a word with the offset 32, a word with the length, then
/// an RLP list of the Bitcoin height, the Bridge's unspent outputs, the peg-outs that wait for signatures, and further cells
/// that are not read.
fn decode(output: &[u8]) -> Option<BridgeState> {
    let length = usize::try_from(U256::try_from_be_slice(output.get(32..64)?)?).ok()?;
    let mut bytes = output.get(64..64_usize.checked_add(length)?)?;
    let mut items = list(&mut bytes)?;
    let height = string(&mut items)?;
    string(&mut items)?;
    let mut waiting = string(&mut items)?;
    let mut pairs = list(&mut waiting)?;
    let mut hashes = Vec::new();
    // Each peg-out is the hash of the Rootstock transaction, then the Bitcoin transaction.
    while !pairs.is_empty() {
        hashes.push(hex::encode(string(&mut pairs)?));
        string(&mut pairs)?;
    }
    Some(BridgeState {
        btc_blockchain_best_chain_height: u64::try_from(U256::try_from_be_slice(height)?).ok()?,
        rsk_txs_waiting_for_signatures: hashes,
    })
}

/// The payload of the RLP list at the start of `bytes`, which then begin after it.
fn list<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    alloy_rlp::Header::decode_bytes(bytes, true).ok()
}

/// The payload of the RLP string at the start of `bytes`, which then begin after it.
fn string<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    alloy_rlp::Header::decode_bytes(bytes, false).ok()
}

#[cfg(test)]
mod tests {
    use alloy_primitives::B256;

    use super::*;

    fn string_of(bytes: &[u8]) -> Vec<u8> {
        alloy_rlp::encode(bytes)
    }

    fn list_of(items: &[Vec<u8>]) -> Vec<u8> {
        let payload = items.concat();
        let mut out = Vec::new();
        alloy_rlp::Header { list: true, payload_length: payload.len() }.encode(&mut out);
        out.extend(payload);
        out
    }

    fn returned(state: &[u8]) -> Vec<u8> {
        let word = |number: usize| U256::from(number).to_be_bytes::<32>().to_vec();
        let mut padded = state.to_vec();
        padded.resize(state.len().next_multiple_of(32), 0);
        [word(32), word(state.len()), padded].concat()
    }

    #[test]
    fn waiting_peg_outs_are_listed_by_their_hash() {
        let hash = B256::repeat_byte(0xab);
        let waiting = list_of(&[string_of(hash.as_slice()), string_of(b"bitcoin transaction")]);
        let state =
            list_of(&[string_of(&[0x0c, 0x11]), string_of(&[0xc0]), string_of(&waiting), string_of(&[])]);
        let decoded = decode(&returned(&state)).unwrap();
        assert_eq!(decoded.btc_blockchain_best_chain_height, 0x0c11);
        assert_eq!(decoded.rsk_txs_waiting_for_signatures, ["ab".repeat(32)]);
    }

    #[test]
    fn a_report_that_is_cut_short_is_not_decoded() {
        let state = list_of(&[string_of(&[1]), string_of(&[0xc0]), string_of(&[0xc0])]);
        let whole = returned(&state);
        assert!(decode(&whole).is_some());
        assert_eq!(decode(&whole[..66]), None);
        assert_eq!(decode(&returned(&list_of(&[string_of(&[1])]))), None);
    }
}
