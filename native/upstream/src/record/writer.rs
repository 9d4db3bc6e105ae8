//! Writes the files of a recording. A file is written under a temporary name, which `replay:` does not read, and gets its final
//! name when it is complete.

use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use rootlight::light::UpstreamRequest;
use rootlight_limits::files::NewFile;
use rootlight_limits::io_words::of_path;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::UpstreamError;

/// Why a recording could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what is wrong")]
pub enum RecordError {
    /// The upstream did not return the height of its head.
    #[error("cannot find the upstream's head: {0}")]
    Head(String),
    /// The range is empty or reaches above the head.
    #[error("blocks {from} to {to}: not a range of blocks up to the upstream's head, {head}")]
    Range { from: u64, to: u64, head: u64 },
    /// The upstream returned an error or malformed data for a block of the range.
    #[error("block {number}: {reason}")]
    Block {
        number: u64,
        /// The upstream's error, or the reason why its response does not decode.
        reason: String,
    },
    #[error("{0}")]
    Upstream(String),
    /// A file cannot be written.
    #[error("{path}: {}", of_path(.source))]
    Write { path: PathBuf, source: io::Error },
}

/// The files of a recording that are being written.
pub(super) struct Files {
    folder: PathBuf,
    /// Whether files are compressed.
    gzip: bool,
    /// The open files, by their names without an ending.
    open: BTreeMap<&'static str, Output>,
}

/// An open file.
enum Output {
    Plain(BufWriter<NewFile>),
    Gzip(GzEncoder<BufWriter<NewFile>>),
}

impl Files {
    /// Makes the folder; the files are made when they are first written to.
    pub(super) fn create(folder: &Path, gzip: bool) -> Result<Self, RecordError> {
        let failed = |source| RecordError::Write { path: folder.to_owned(), source };
        std::fs::create_dir_all(folder).map_err(failed)?;
        Ok(Self { folder: folder.to_owned(), gzip, open: BTreeMap::new() })
    }

    /// Writes one line with a request and its response, under an id, into the file of this name.
    pub(super) fn write(
        &mut self,
        name: &'static str,
        id: u64,
        call: &UpstreamRequest,
        answer: Result<&RawValue, &UpstreamError>,
    ) -> Result<(), RecordError> {
        let request = call.to_json(id);
        let line = match answer {
            // The result is written as it was received, byte for byte.
            Ok(result) => format!(
                r#"{{"request":{request},"response":{{"jsonrpc":"2.0","id":{id},"result":{}}}}}"#,
                result.get()
            ),
            Err(error) => format!(
                r#"{{"request":{request},"response":{{"jsonrpc":"2.0","id":{id},"error":{}}}}}"#,
                error_object(error)
            ),
        };
        // JSON allows line breaks between tokens, but not inside strings.
        let line = line.replace(['\n', '\r'], " ");
        let path = self.final_path(name);
        let failed = |source| RecordError::Write { path: path.clone(), source };
        if !self.open.contains_key(name) {
            let file = BufWriter::new(NewFile::beside(&path, false).map_err(failed)?);
            let output = if self.gzip {
                Output::Gzip(GzEncoder::new(file, Compression::best()))
            } else {
                Output::Plain(file)
            };
            self.open.insert(name, output);
        }
        match self.open.get_mut(name) {
            Some(Output::Plain(file)) => writeln!(file, "{line}").map_err(failed),
            Some(Output::Gzip(file)) => writeln!(file, "{line}").map_err(failed),
            None => Ok(()),
        }
    }

    /// Completes all files and gives them their final names.
    pub(super) fn finish(self) -> Result<(), RecordError> {
        let names: Vec<PathBuf> = self.open.keys().map(|name| self.final_path(name)).collect();
        for (output, final_path) in self.open.into_values().zip(names) {
            let failed = |source| RecordError::Write { path: final_path.clone(), source };
            let file = match output {
                Output::Plain(file) => file,
                Output::Gzip(file) => file.finish().map_err(failed)?,
            };
            let file = file.into_inner().map_err(|failure| failed(failure.into_error()))?;
            file.replace(&final_path).map_err(failed)?;
        }
        Ok(())
    }

    /// The final path of the file of this name.
    fn final_path(&self, name: &str) -> PathBuf {
        self.folder.join(if self.gzip { format!("{name}.jsonl.gz") } else { format!("{name}.jsonl") })
    }
}

/// The JSON-RPC error of a response. Errors other than those of the upstream become internal errors (-32603).
fn error_object(error: &UpstreamError) -> Value {
    match error {
        UpstreamError::Rpc { code, message, data: Some(data) } => {
            json!({"code": code, "message": message, "data": data})
        }
        UpstreamError::Rpc { code, message, data: None } => json!({"code": code, "message": message}),
        other => json!({"code": -32603, "message": other.to_string()}),
    }
}
