//! Recording files: written beside their final name, which they get when they are complete.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use rootlight::light::UpstreamCall;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::upstream::UpstreamError;

/// Why a recording could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The upstream does not say where its chain ends.
    #[error("cannot find the upstream's head: {0}")]
    Head(String),
    /// Blocks that do not exist there.
    #[error("blocks {from} to {to} are not a range up to the head, {head}")]
    Range {
        /// First block wanted.
        from: u64,
        /// Last block wanted.
        to: u64,
        /// The upstream's head.
        head: u64,
    },
    /// A block that must be there is not, or is none.
    #[error("block {number}: {reason}")]
    Block {
        /// Its height.
        number: u64,
        /// What came instead.
        reason: String,
    },
    /// The upstream failed.
    #[error("{0}")]
    Upstream(String),
    /// A file cannot be written.
    #[error("{path}: {source}")]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
}

/// The files of one recording.
pub(super) struct Files {
    folder: PathBuf,
    gzip: bool,
    open: BTreeMap<&'static str, Output>,
}

enum Output {
    Plain(BufWriter<File>),
    Gzip(GzEncoder<BufWriter<File>>),
}

impl Files {
    /// Makes the folder.
    pub(super) fn create(folder: &Path, gzip: bool) -> Result<Self, RecordError> {
        let failed = |source| RecordError::Write { path: folder.to_owned(), source };
        std::fs::create_dir_all(folder).map_err(failed)?;
        Ok(Self { folder: folder.to_owned(), gzip, open: BTreeMap::new() })
    }

    /// Writes one line.
    pub(super) fn write(
        &mut self,
        name: &'static str,
        id: u64,
        call: &UpstreamCall,
        answer: Result<&RawValue, &UpstreamError>,
    ) -> Result<(), RecordError> {
        let request = call.to_request(id);
        let line = match answer {
            // The result goes through as it came, byte for byte.
            Ok(result) => format!(
                r#"{{"request":{request},"response":{{"jsonrpc":"2.0","id":{id},"result":{}}}}}"#,
                result.get()
            ),
            Err(error) => format!(
                r#"{{"request":{request},"response":{{"jsonrpc":"2.0","id":{id},"error":{}}}}}"#,
                error_object(error)
            ),
        };
        // A result may hold line breaks between its tokens; strings never hold raw ones.
        let line = line.replace(['\n', '\r'], " ");
        let path = self.partial(name);
        let failed = |source| RecordError::Write { path: path.clone(), source };
        if !self.open.contains_key(name) {
            let file = BufWriter::new(File::create(&path).map_err(failed)?);
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

    /// Completes all files.
    pub(super) fn finish(self) -> Result<(), RecordError> {
        let names: Vec<(PathBuf, PathBuf)> =
            self.open.keys().map(|name| (self.partial(name), self.complete(name))).collect();
        for (output, (partial, complete)) in self.open.into_values().zip(names) {
            let failed = |source| RecordError::Write { path: complete.clone(), source };
            let file = match output {
                Output::Plain(file) => file,
                Output::Gzip(file) => file.finish().map_err(failed)?,
            };
            let file = file.into_inner().map_err(|failure| failed(failure.into_error()))?;
            file.sync_all().map_err(failed)?;
            std::fs::rename(&partial, &complete).map_err(failed)?;
        }
        Ok(())
    }

    fn complete(&self, name: &str) -> PathBuf {
        self.folder.join(if self.gzip { format!("{name}.jsonl.gz") } else { format!("{name}.jsonl") })
    }

    /// A name that `replay:` does not read.
    fn partial(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.partial"))
    }
}

fn error_object(error: &UpstreamError) -> Value {
    match error {
        UpstreamError::Rpc { code, message, data: Some(data) } => {
            json!({"code": code, "message": message, "data": data})
        }
        UpstreamError::Rpc { code, message, data: None } => json!({"code": code, "message": message}),
        other => json!({"code": -32603, "message": other.to_string()}),
    }
}
