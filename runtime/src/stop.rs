//! A wish to stop, which the work at hand sees at points where things are consistent (product.md 13).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::watch;

/// Can be told to stop.
#[derive(Debug, Clone)]
pub struct Stop {
    wish: watch::Sender<bool>,
    /// Whether there is something to be finished or undone first.
    busy: Arc<AtomicBool>,
}

impl Default for Stop {
    fn default() -> Self {
        Self {
            wish: watch::Sender::new(false),
            busy: Arc::default(),
        }
    }
}

impl Stop {
    /// Wishes it.
    pub fn request(&self) {
        self.wish.send_replace(true);
    }

    /// From here on, whoever works sees to the wish himself.
    pub fn begin_work(&self) {
        self.busy.store(true, Ordering::SeqCst);
    }

    /// Resolves once it is wished while nothing has to be finished or undone.
    pub async fn wait_idle(&self) {
        self.wait().await;
        if self.busy.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
    }

    /// Whether it was wished.
    pub fn requested(&self) -> bool {
        *self.wish.borrow()
    }

    /// Resolves once it is wished.
    pub async fn wait(&self) {
        let mut wish = self.wish.subscribe();
        if wish.wait_for(|wished| *wished).await.is_err() {
            // The sender is ours and lives as long as this does.
            std::future::pending::<()>().await;
        }
    }
}
