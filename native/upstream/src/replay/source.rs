//! The files of a recording: opened on disk, or decompressed in memory; and the errors of recordings.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use flate2::read::MultiGzDecoder;
use rootlight_limits::budget::{Budget, Reservation};
use rootlight_limits::io_words::of_path;

use crate::words::other_network;

/// Bytes by which the buffer of a file that is being decompressed grows. They are reserved before, because the decompressed length
/// is not known.
const STEP: usize = 1024 * 1024;
/// Longest line, in bytes. The largest recorded responses (block traces) are below 5 MiB.
const LINE_BYTES: u64 = 16 * 1024 * 1024;

/// Why a recording cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what is wrong")]
pub enum ReplayError {
    /// A file or folder cannot be read.
    #[error("recording {path}: {}", of_path(.source))]
    Read { path: PathBuf, source: io::Error },
    #[error(
        "recording {0}: no .jsonl or .jsonl.gz file in this folder: give one that `rootlight record` has written"
    )]
    Empty(PathBuf),
    /// No line is a recorded request or a node.
    #[error(
        "recording {0}: it has no recorded request: give a file or folder that `rootlight record` has written"
    )]
    NoRecording(PathBuf),
    /// A compressed file is damaged, cut off, or something else.
    #[error(
        "recording {path}: {source}: it is damaged, or no gzip file: write it again, or give it its right name"
    )]
    NotGzip { path: PathBuf, source: io::Error },
    /// The recorded node is of another network.
    #[error("recording {path}: {}", other_network(*.found, *.expected))]
    OtherNetwork { path: PathBuf, found: u64, expected: u64 },
    /// Decompressed files and indexes of all recordings together exceed their budget.
    #[error(
        "recording {path}: decompressed files and the index of all recordings together take more than {limit} bytes; \
         decompress the files, which then stay on disk, or use fewer of them"
    )]
    TooLarge { path: PathBuf, limit: usize },
    /// The path is a device or pipe, which may never end.
    #[error("recording {0}: neither a regular file nor a folder: give one of these")]
    NotAFile(PathBuf),
    #[error("recording {path}: a line has more than {limit} bytes, which no recording has: check the path")]
    LongLine { path: PathBuf, limit: u64 },
}

/// A callback that receives the offset and text of a line.
type Each<'a> = &'a mut dyn FnMut(u64, &[u8]) -> Result<(), ReplayError>;

/// A file of a recording.
pub(super) struct RecordingFile {
    path: PathBuf,
    kind: FileData,
}

/// The contents of a file.
enum FileData {
    /// On disk.
    File(Mutex<File>),
    /// Decompressed in memory, with the reservation of the budget.
    Memory(Vec<u8>, #[allow(dead_code)] Reservation),
}

/// Opens a file, or all files of a folder in the order of their names. The bytes of decompressed files are taken from the budget.
pub(super) fn open(path: &Path, budget: &Budget) -> Result<Vec<RecordingFile>, ReplayError> {
    let failed = |source| ReplayError::Read { path: path.to_owned(), source };
    if !std::fs::metadata(path).map_err(failed)?.is_dir() {
        return Ok(vec![open_file(path, budget)?]);
    }
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path).map_err(failed)? {
        let file = entry.map_err(failed)?.path();
        let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if name.ends_with(".jsonl") || name.ends_with(".jsonl.gz") {
            files.push(file);
        }
    }
    if files.is_empty() {
        return Err(ReplayError::Empty(path.to_owned()));
    }
    files.sort();
    files.iter().map(|file| open_file(file, budget)).collect()
}

/// Opens one file, or decompresses it.
fn open_file(path: &Path, budget: &Budget) -> Result<RecordingFile, ReplayError> {
    let failed = |source| ReplayError::Read { path: path.to_owned(), source };
    if !std::fs::metadata(path).map_err(failed)?.is_file() {
        return Err(ReplayError::NotAFile(path.to_owned()));
    }
    let mut file = File::open(path).map_err(failed)?;
    if path.extension().is_some_and(|extension| extension == "gz") {
        return decompress(path, &mut file, budget);
    }
    Ok(RecordingFile { path: path.to_owned(), kind: FileData::File(Mutex::new(file)) })
}

/// Decompresses a gzip file into memory.
pub(super) fn gunzip(name: &str, bytes: &[u8], budget: &Budget) -> Result<RecordingFile, ReplayError> {
    decompress(Path::new(name), &mut Cursor::new(bytes), budget)
}

/// Decompresses a file into memory, as far as the budget allows.
fn decompress(path: &Path, from: &mut dyn Read, budget: &Budget) -> Result<RecordingFile, ReplayError> {
    let (mut bytes, mut reserved) = (Vec::new(), Reservation::default());
    let mut decoder = MultiGzDecoder::new(from);
    loop {
        let part = decoder.by_ref().take(STEP as u64);
        hold(path, budget, &mut reserved, STEP)?;
        bytes.reserve_exact(STEP);
        // The braces end the life of `part`, which borrows the decoder, with this statement.
        let read = { part }.read_to_end(&mut bytes);
        let read = read.map_err(|source| ReplayError::NotGzip { path: path.to_owned(), source })?;
        if read < STEP {
            bytes.shrink_to_fit();
            reserved.shrink_to(bytes.len());
            return Ok(RecordingFile { path: path.to_owned(), kind: FileData::Memory(bytes, reserved) });
        }
    }
}

/// Reserves bytes of the budget of all recordings. An error names the path.
fn hold(path: &Path, budget: &Budget, reserved: &mut Reservation, bytes: usize) -> Result<(), ReplayError> {
    let more = budget.try_take(bytes);
    reserved
        .merge(more.ok_or_else(|| ReplayError::TooLarge { path: path.to_owned(), limit: budget.size() })?);
    Ok(())
}

impl RecordingFile {
    /// Reserves bytes of the budget of all recordings, for the index of this file.
    pub(super) fn hold(
        &self,
        budget: &Budget,
        reserved: &mut Reservation,
        bytes: usize,
    ) -> Result<(), ReplayError> {
        hold(&self.path, budget, reserved, bytes)
    }

    /// Calls `each` with the offset and text of every line.
    pub(super) fn lines(&self, each: Each<'_>) -> Result<(), ReplayError> {
        match &self.kind {
            FileData::Memory(bytes, _) => self.scan(&mut Cursor::new(bytes), each),
            FileData::File(file) => {
                let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
                file.seek(SeekFrom::Start(0)).map_err(|source| self.failed(source))?;
                self.scan(&mut BufReader::with_capacity(1 << 16, &mut *file), each)
            }
        }
    }

    /// Calls `each` with the offset and text of every line.
    fn scan(&self, reader: &mut dyn BufRead, each: Each<'_>) -> Result<(), ReplayError> {
        let (mut offset, mut line) = (0_u64, Vec::new());
        loop {
            line.clear();
            let read =
                reader.take(LINE_BYTES).read_until(b'\n', &mut line).map_err(|source| self.failed(source))?;
            if read == 0 {
                return Ok(());
            }
            // The line may go on after the bytes that were read.
            if read as u64 == LINE_BYTES {
                return Err(ReplayError::LongLine { path: self.path.clone(), limit: LINE_BYTES });
            }
            each(offset, &line)?;
            offset = offset.saturating_add(read as u64);
        }
    }

    /// Returns the bytes at an offset that [`RecordingFile::lines`] reported; `None` if the file has changed since.
    pub(super) fn read(&self, offset: u64, length: u32) -> Option<Vec<u8>> {
        let length = usize::try_from(length).ok()?;
        match &self.kind {
            FileData::Memory(bytes, _) => {
                let start = usize::try_from(offset).ok()?;
                bytes.get(start..start.checked_add(length)?).map(<[u8]>::to_vec)
            }
            FileData::File(file) => {
                let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
                let mut bytes = vec![0; length];
                file.seek(SeekFrom::Start(offset)).ok()?;
                file.read_exact(&mut bytes).ok()?;
                Some(bytes)
            }
        }
    }

    fn failed(&self, source: io::Error) -> ReplayError {
        ReplayError::Read { path: self.path.clone(), source }
    }
}
