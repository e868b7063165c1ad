//! Syncs a file while it is being written, so that the final sync is short.

use std::fs::File;
use std::path::Path;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};

use crate::engine_error::{EngineError, Result};
use crate::files::FileOptions;

/// A thread that syncs a file on request, while another thread writes it.
#[derive(Debug)]
pub struct SyncAhead {
    sender: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl SyncAhead {
    /// Starts the thread. Returns `None` unless it is a file of the operating system.
    ///
    /// # Errors
    /// [`EngineError::Io`] if the system cannot start another thread.
    pub fn start(path: &Path, options: &FileOptions) -> Result<Option<Self>> {
        if !options.files.0.are_shared() {
            return Ok(None);
        }
        let Ok(file) = File::open(path) else {
            return Ok(None);
        };
        let (sender, receiver) = sync_channel(1);
        let sync = move || {
            while receiver.recv().is_ok() {
                // The engine's own sync, through another handle, reports what could not be written.
                let _ = file.sync_data();
            }
        };
        let named = Builder::new().name("redb-sync".into());
        let thread = named.spawn(sync).map_err(|source| EngineError::Io {
            action: "starting a thread".into(),
            source,
        })?;
        Ok(Some(Self {
            sender: Some(sender),
            thread: Some(thread),
        }))
    }

    /// Requests a sync of everything written so far. A requested sync that has not begun covers it
    /// as well.
    pub fn ask(&self) {
        if let Some(sender) = &self.sender {
            let _ = sender.try_send(());
        }
    }

    /// Detaches the thread, which belongs to another process.
    pub fn forget(mut self) {
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
