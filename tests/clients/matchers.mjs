// What libraries without a package for Node.js look for in the text and code of an error, as their sources have it.

/**
 * graph-node: with one of them in the text it asks `eth_getLogs` for a tenth of the range, without it fails
 * (`TOO_MANY_LOGS_FINGERPRINTS` in chain/ethereum/src/ethereum_adapter.rs).
 */
export const graphNodeNarrows = ({ message }) =>
  ['ServerError(-32005)', '503 Service Unavailable', 'ServerError(-32000)', 'Try with this block range', 'block range too large'].some((words) => message.includes(words));

/** graph-node: a call that fails the same way everywhere (`RPC_EXECUTION_ERRORS` in chain/ethereum/src/call_helper.rs). */
export const graphNodeReverts = ({ message }) =>
  ['revert', 'invalid jump destination', 'invalid opcode', 'stack limit reached 1024', 'out of gas', 'stack underflow', 'vm execution error', 'invalidjump', 'notactivated', 'invalidfeopcode', 'stackunderflow', 'stackoverflow', 'opcodenotfound'].some((words) => message.toLowerCase().includes(words));

/**
 * foundry and every other user of alloy: whether the request is sent again (`ErrorPayload::is_retry_err` in
 * crates/json-rpc/src/response/error.rs).
 */
export const alloyRetries = ({ code, message }) =>
  code === 429 || code === -32005
  || (code === -32016 && message.includes('rate limit'))
  || (code === -32012 && message.includes('credits'))
  || (code === -32007 && message.includes('request limit reached'))
  || ['header not found', 'daily request count exceeded, request rate limited'].includes(message)
  || ['rate limit', 'rate exceeded', 'too many requests', 'credits limited', 'request limit'].some((words) => message.includes(words));

/** The Safe transaction service: the exception for a transaction that is refused (`_TX_ERROR_MAPPING_RAW` of safe-eth-py). */
const SAFE = [
  ['transaction with the same hash was already imported', 'TransactionAlreadyImported'],
  ['replacement transaction underpriced', 'ReplacementTransactionUnderpriced'],
  ['txpool is full', 'TransactionQueueLimitReached'],
  ['transaction underpriced', 'TransactionGasPriceTooLow'],
  ['nonce too low', 'NonceTooLow'],
  ['nonce too high', 'NonceTooHigh'],
  ['insufficient funds', 'InsufficientFunds'],
  ['exceeds block gas limit', 'GasLimitExceeded'],
];

export const safeException = ({ message }) => SAFE.find(([words]) => message.toLowerCase().includes(words))?.[1];
