// Descriptions of native contracts, which are part of every Rootstock node: the chain has no code of them.

/** Descriptions by address. Addresses 1 to 9 are those of Ethereum, the others are Rootstock's own. */
const DESCRIPTIONS: Readonly<Record<string, string>> = {
  '0x0000000000000000000000000000000001000006': 'the Bridge, a native contract: it holds the bitcoins of the two-way peg',
  '0x0000000000000000000000000000000001000008': 'REMASC, a native contract: it shares the fees among the miners',
  '0x0000000000000000000000000000000001000009': 'a native contract that converts Bitcoin’s HD wallet keys',
  '0x0000000000000000000000000000000001000010': 'a native contract that reads headers of earlier blocks',
  '0x0000000000000000000000000000000001000011': 'a native contract that returns the call depth',
  '0x0000000000000000000000000000000001000016': 'a native contract that adds points of secp256k1',
  '0x0000000000000000000000000000000001000017': 'a native contract that multiplies points of secp256k1',
  ...Object.fromEntries(['recovers the signer of a message', 'computes SHA-256', 'computes RIPEMD-160', 'returns its input', 'computes powers of large numbers', 'adds points of a curve', 'multiplies points of a curve', 'checks a pairing', 'computes BLAKE2'].map(
    (does, at) => [`0x${(at + 1).toString(16).padStart(40, '0')}`, `a native contract that ${does}`])),
};

/** The description of a native contract; `undefined` for other addresses. */
export const nativeName = (address: string): string | undefined => DESCRIPTIONS[address.toLowerCase()];
