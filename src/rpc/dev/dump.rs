//! `anvil_dumpState` and `anvil_loadState`: the accounts of a chain as JSON in anvil's form, compressed with gzip. Cells of
//! native contracts that do not fit a word of 32 bytes are in an additional member `cells`, which anvil ignores.

use alloc::{collections::BTreeMap, string::String};

use alloy_primitives::{Address, B256, Bytes, U256, hex};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{chain, chain_at, gzip, number, write};
use crate::{
    dev::{DevError, DumpedAccount, MAX_DUMP},
    engine::{Level, LocalNode},
    rpc::{
        error::{ParamError, RpcError},
        method::{HandlerResult, Method, done, optional, required},
        params::Params,
    },
    types::Header,
};

/// Version of the form of a dump. Later forms have greater numbers, and [`load`] refuses them.
const VERSION: u64 = 1;

pub(super) const METHODS: &[Method] = &[
    write(
        ("anvil_dumpState", &["hardhat_dumpState"]),
        &[optional("historicalStates", "boolean")],
        "DATA",
        "The accounts with code and storage, and the time of the head, as compressed JSON in anvil's form; without blocks.",
        dump,
    ),
    write(
        ("anvil_loadState", &["hardhat_loadState"]),
        &[required("state", "DATA")],
        "boolean",
        "Puts the accounts of a dump of this chain or of anvil into the state, and moves the clock to its time if that is later.",
        load,
    ),
];

/// A dump. Its lists of blocks and transactions are empty, because only the state is dumped.
#[derive(Serialize)]
struct Dump {
    version: u64,
    block: DumpedBlock,
    accounts: BTreeMap<Address, WrittenAccount>,
    best_block_number: u64,
    blocks: [(); 0],
    transactions: [(); 0],
}

/// The environment of the head, as anvil writes it.
#[derive(Serialize)]
struct DumpedBlock {
    number: U256,
    beneficiary: Address,
    timestamp: U256,
    gas_limit: u64,
    basefee: u64,
    difficulty: U256,
    prevrandao: B256,
}

/// An account in a dump. Anvil has no members `contract` and `cells`.
#[derive(Serialize)]
struct WrittenAccount {
    nonce: u64,
    balance: U256,
    code: Bytes,
    /// Cells of at most 32 bytes, as words.
    storage: BTreeMap<B256, B256>,
    /// Whether the account is a contract: it has or had storage or code.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    contract: bool,
    /// Cells whose bytes cannot be read back from a word.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    cells: BTreeMap<U256, Bytes>,
}

fn dump(node: &mut dyn LocalNode, _: Params<'_>) -> HandlerResult {
    let chain = chain(node)?;
    let head = chain.view().head();
    let accounts = chain.dump().map_err(RpcError::from)?;
    let dump = Dump {
        version: VERSION,
        block: block(head),
        accounts: accounts
            .into_iter()
            .map(|(address, account)| (address, written_account(account)))
            .collect(),
        best_block_number: head.number,
        blocks: [],
        transactions: [],
    };
    let text = serde_json::to_vec(&dump)?;
    // `load` limits the bytes of the text, so that a longer dump could not be loaded.
    if text.len() > MAX_DUMP {
        return Err(RpcError::from(DevError::TooLarge).into());
    }
    done(&hex::encode_prefixed(gzip::packed(&text)), Level::Local)
}

fn block(head: &Header) -> DumpedBlock {
    DumpedBlock {
        number: U256::from(head.number),
        beneficiary: head.coinbase.unwrap_or_default(),
        timestamp: U256::from(head.timestamp),
        gas_limit: u64::try_from(head.gas_limit.value()).unwrap_or(u64::MAX),
        // Rootstock has neither a base fee nor random numbers of a beacon chain.
        basefee: 0,
        difficulty: head.difficulty.value(),
        prevrandao: B256::ZERO,
    }
}

fn written_account(account: DumpedAccount) -> WrittenAccount {
    let DumpedAccount { nonce, balance, code, contract, cells } = account;
    let words = cells.iter().filter(|(_, value)| value.len() <= 32);
    let storage = words.map(|(slot, value)| (B256::from(*slot), B256::left_padding_from(value))).collect();
    // Native contracts store values with leading zero bytes, whose number a word does not show.
    let fits_word = |value: &Bytes| value.len() <= 32 && value.first() != Some(&0);
    let cells = cells.into_iter().filter(|(_, value)| !fits_word(value)).collect();
    WrittenAccount { nonce, balance, code, storage, contract, cells }
}

/// A dump of this program or of anvil. Unknown members are ignored.
#[derive(Deserialize)]
struct ReadDump<'a> {
    #[serde(default)]
    version: Option<u64>,
    #[serde(borrow, default)]
    block: Option<ReadBlock<'a>>,
    #[serde(borrow)]
    accounts: BTreeMap<Address, ReadAccount<'a>>,
}

#[derive(Deserialize)]
struct ReadBlock<'a> {
    #[serde(borrow, default)]
    timestamp: Option<&'a RawValue>,
}

/// An account of a dump; anvil's have no members `contract` and `cells`.
#[derive(Deserialize)]
struct ReadAccount<'a> {
    #[serde(borrow)]
    nonce: &'a RawValue,
    #[serde(borrow)]
    balance: &'a RawValue,
    #[serde(default)]
    code: Bytes,
    #[serde(default)]
    storage: BTreeMap<U256, U256>,
    #[serde(default)]
    contract: bool,
    #[serde(default)]
    cells: BTreeMap<U256, Bytes>,
}

fn load(node: &mut dyn LocalNode, params: Params<'_>) -> HandlerResult {
    let data = params.data(0)?;
    let text = match gzip::is_packed(&data) {
        true => gzip::unpacked(&data, MAX_DUMP).ok_or(ParamError::Dump("it is damaged or too large"))?,
        false if data.len() > MAX_DUMP => return Err(RpcError::from(DevError::TooLarge).into()),
        false => data.to_vec(),
    };
    let read: ReadDump<'_> = serde_json::from_slice(&text)
        .map_err(|_| ParamError::Dump("it is no state of this chain or of anvil"))?;
    if read.version.is_some_and(|version| version > VERSION) {
        return Err(ParamError::Dump("a later version of this program has written it").into());
    }
    let time = read.block.and_then(|block| block.timestamp).map(number).transpose()?;
    let accounts = read.accounts.into_iter().map(|(address, account)| Ok((address, account.dumped()?)));
    let accounts: BTreeMap<_, _> = accounts.collect::<Result<_, ParamError>>()?;
    let (chain, now) = chain_at(node)?;
    // The clock is changed only after the accounts are loaded, so that a dump that fails changes nothing.
    let mut clock = *chain.clock();
    let time = time.map_or(0, |time| u64::try_from(time).unwrap_or(u64::MAX));
    if time > clock.now(now) {
        clock.set(time, now).map_err(RpcError::from)?;
    }
    chain.load(&accounts).map_err(RpcError::from)?;
    *chain.clock_mut() = clock;
    done(&true, Level::Local)
}

impl ReadAccount<'_> {
    /// The account as the chain loads it.
    fn dumped(self) -> Result<DumpedAccount, ParamError> {
        let nonce = number(self.nonce)?;
        // No nonce comes after the last one (EIP-2681).
        let nonce = u64::try_from(nonce).ok().filter(|nonce| *nonce < u64::MAX);
        let word = |(slot, word): (U256, U256)| (slot, Bytes::from(word.to_be_bytes_trimmed_vec()));
        let mut cells: BTreeMap<U256, Bytes> = self.storage.into_iter().map(word).collect();
        cells.extend(self.cells);
        Ok(DumpedAccount {
            nonce: nonce.ok_or_else(|| ParamError::Number(String::from(self.nonce.get())))?,
            balance: number(self.balance)?,
            code: self.code,
            contract: self.contract,
            cells,
        })
    }
}
