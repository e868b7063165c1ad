//! Syncs of a file while it is still being written, so that the one at its end is short.

use std::fs::File;
use std::path::Path;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

use crate::engine::files::FileOptions;
use crate::error::Result;
use crate::threads::spawn;

/// A thread that syncs a file whenever it is asked to, beside whoever writes it.
#[derive(Debug)]
pub(crate) struct SyncAhead {
    sender: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl SyncAhead {
    /// Starts the thread; `None` if the file is none of the system's.
    ///
    /// # Errors
    /// [`crate::Error::Io`] if the system allows no further thread.
    pub(crate) fn start(path: &Path, options: &dyn FileOptions) -> Result<Option<Self>> {
        if !options.file_source().are_shared() {
            return Ok(None);
        }
        let Ok(file) = File::open(path) else {
            return Ok(None);
        };
        let (sender, receiver) = sync_channel(1);
        let thread = spawn("sync", move || {
            while receiver.recv().is_ok() {
                // The engine's own sync, through another handle, says what could not be written.
                let _ = file.sync_data();
            }
        })?;
        Ok(Some(Self {
            sender: Some(sender),
            thread: Some(thread),
        }))
    }

    /// Asks for a sync of what has been written. One that has not begun yet covers it as well.
    pub(crate) fn ask(&self) {
        if let Some(sender) = &self.sender {
            let _ = sender.try_send(());
        }
    }

    /// Leaves the thread alone: it is one of another process.
    pub(crate) fn forget(mut self) {
        std::mem::forget(self.thread.take());
    }
}

impl Drop for SyncAhead {
    fn drop(&mut self) {
        self.sender = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
