//! Recorded responses of a source of Bitcoin's chain, as a JSON file: headers and coinbases by height. A source that is opened from
//! the file (`BitcoinSource::replay`) gives the same responses.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use rootlight::consensus::bitcoin::{CoinbaseProofBuf, HEADER_LEN};
use rootlight_limits::files;
use serde::{Deserialize, Serialize};

use super::coinbase::RawCoinbase;
use super::hex::bytes_of;
use crate::UpstreamError;

/// Longest file that is read, in bytes: that of some 350,000 headers.
const MAX_FILE: u64 = 64 * 1024 * 1024;

/// Most headers in a recording: those of six years. Further ones are left out.
const MAX_RECORDED_HEADERS: usize = 350_000;

/// The responses of a source, the newest for each height, and its latest errors.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct BitcoinRecording {
    pub(super) name: String,
    pub(super) offers_coinbases: bool,
    /// The height of the newest block.
    tip: Option<u32>,
    /// Headers in hexadecimal, by height.
    headers: BTreeMap<u32, String>,
    /// Coinbases by height.
    coinbases: BTreeMap<u32, RecordedCoinbase>,
    /// The latest error of each kind of request ([`TIP`], [`HEADERS`], [`COINBASES`]).
    errors: BTreeMap<String, String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RecordedCoinbase {
    /// Whether only the midstate of the transaction's hash and its end are given (`CoinbaseProofBuf`).
    is_cut: bool,
    /// The transaction in this form, in hexadecimal.
    coinbase: String,
    /// The siblings of the Merkle branch in hexadecimal, in display order (`CoinbaseProof::branch`).
    branch: String,
}

/// The kinds of requests.
const TIP: &str = "tip";
const HEADERS: &str = "headers";
const COINBASES: &str = "coinbases";

impl BitcoinRecording {
    /// An empty recording of the source with this name.
    pub(super) fn of(name: &str, offers_coinbases: bool) -> Self {
        Self { name: name.to_owned(), offers_coinbases, ..Self::default() }
    }

    pub(super) fn note_tip(&mut self, given: &Result<u32, UpstreamError>) {
        match given {
            Ok(tip) => self.tip = Some(*tip),
            Err(error) => self.fail(TIP, error),
        }
    }

    pub(super) fn note_headers(&mut self, from: u32, given: &Result<Vec<[u8; HEADER_LEN]>, UpstreamError>) {
        match given {
            Ok(headers) => {
                let free = MAX_RECORDED_HEADERS.saturating_sub(self.headers.len());
                let texts = headers.iter().take(free).map(alloy_primitives::hex::encode);
                self.headers.extend((from..).zip(texts));
            }
            Err(error) => self.fail(HEADERS, error),
        }
    }

    pub(super) fn note_coinbases(&mut self, given: &Result<Vec<RawCoinbase>, UpstreamError>) {
        match given {
            Ok(coinbases) => self.coinbases.extend(coinbases.iter().map(|given| {
                let CoinbaseProofBuf { is_cut, coinbase, branch } = &given.proof;
                let [coinbase, branch] = [coinbase, branch].map(alloy_primitives::hex::encode);
                (given.height, RecordedCoinbase { is_cut: *is_cut, coinbase, branch })
            })),
            Err(error) => self.fail(COINBASES, error),
        }
    }

    /// Records an error, by the kind of request.
    fn fail(&mut self, request: &str, error: &UpstreamError) {
        self.errors.insert(request.to_owned(), error.to_string());
    }

    /// The error for a request of this kind whose response is not recorded.
    fn error(&self, request: &str) -> UpstreamError {
        match self.errors.get(request) {
            Some(error) => UpstreamError::Silent(error.clone()),
            None => UpstreamError::NotRecorded(format!("Bitcoin's {request}")),
        }
    }

    pub(super) fn tip(&self) -> Result<u32, UpstreamError> {
        self.tip.ok_or_else(|| self.error(TIP))
    }

    pub(super) fn headers(&self, from: u32, count: u32) -> Result<Vec<[u8; HEADER_LEN]>, UpstreamError> {
        if self.headers.is_empty() {
            return Err(self.error(HEADERS));
        }
        let texts = (from..from.saturating_add(count)).map_while(|height| self.headers.get(&height));
        let headers = texts.map(|text| bytes_of(text)?.try_into().ok());
        let headers: Option<Vec<[u8; HEADER_LEN]>> = headers.collect();
        headers.ok_or_else(|| UpstreamError::Malformed("a recorded header has not 80 bytes".into()))
    }

    pub(super) fn coinbases(&self, heights: &[u32]) -> Result<Vec<RawCoinbase>, UpstreamError> {
        let known = heights.iter().filter_map(|height| Some((*height, self.coinbases.get(height)?)));
        let read = known.map(|(height, recorded)| {
            let RecordedCoinbase { is_cut, coinbase, branch } = recorded;
            let (coinbase, branch) = (bytes_of(coinbase)?, bytes_of(branch)?);
            Some(RawCoinbase { height, proof: CoinbaseProofBuf { is_cut: *is_cut, coinbase, branch } })
        });
        let read: Option<Vec<RawCoinbase>> = read.collect();
        let read = read.ok_or_else(|| UpstreamError::Malformed("a recorded coinbase is cut".into()))?;
        if read.is_empty() { Err(self.error(COINBASES)) } else { Ok(read) }
    }

    pub(super) fn write(&self, file: &Path) -> io::Result<()> {
        if let Some(folder) = file.parent() {
            std::fs::create_dir_all(folder)?;
        }
        files::write(file, &serde_json::to_vec(self)?)
    }

    pub(super) fn read(file: &Path) -> io::Result<Self> {
        Ok(serde_json::from_slice(&files::read(file, MAX_FILE)?)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_gives_what_the_source_gave() {
        let mut recording = BitcoinRecording::of("tcp://a:1", true);
        recording.note_tip(&Err(UpstreamError::Timeout(7)));
        recording.note_headers(5, &Err(UpstreamError::Timeout(7)));
        let coinbase = RawCoinbase::whole(6, vec![1, 2], &[rootlight::types::B256::repeat_byte(3)]);
        recording.note_coinbases(&Ok(vec![coinbase.clone()]));
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("below").join("bitcoin.json");
        recording.write(&file).unwrap();
        let mut read = BitcoinRecording::read(&file).unwrap();
        assert_eq!(read, recording);
        let silent = UpstreamError::Silent("upstream did not answer within 7 ms".into());
        assert_eq!((read.tip(), read.headers(5, 9)), (Err(silent.clone()), Err(silent)));
        assert_eq!(read.coinbases(&[7, 6]), Ok(vec![coinbase]));
        assert!(matches!(read.coinbases(&[7]), Err(UpstreamError::NotRecorded(_))));
        // Later headers replace earlier ones.
        read.note_headers(5, &Ok(vec![[1; HEADER_LEN], [2; HEADER_LEN]]));
        read.note_headers(6, &Ok(vec![[4; HEADER_LEN], [5; HEADER_LEN]]));
        read.note_tip(&Ok(7));
        assert_eq!(read.tip(), Ok(7));
        assert_eq!(read.headers(5, 9), Ok(vec![[1; HEADER_LEN], [4; HEADER_LEN], [5; HEADER_LEN]]));
        assert_eq!((read.headers(6, 1), read.headers(8, 1)), (Ok(vec![[4; HEADER_LEN]]), Ok(Vec::new())));
    }

    #[test]
    fn files_that_are_no_recording_are_errors() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x");
        assert!(BitcoinRecording::read(&file).is_err());
        for text in ["", "{}", "[]", "{\"name\":1}"] {
            std::fs::write(&file, text).unwrap();
            assert!(BitcoinRecording::read(&file).is_err(), "{text}");
        }
    }
}
