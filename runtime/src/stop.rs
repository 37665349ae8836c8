//! A wish to stop, which the work at hand sees at points where things are consistent (product.md 13).

use tokio::sync::watch;

/// Can be told to stop.
#[derive(Debug, Clone)]
pub struct Stop {
    wish: watch::Sender<bool>,
}

impl Default for Stop {
    fn default() -> Self {
        Self {
            wish: watch::Sender::new(false),
        }
    }
}

impl Stop {
    /// Wishes it.
    pub fn request(&self) {
        self.wish.send_replace(true);
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
