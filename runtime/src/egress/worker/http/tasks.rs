//! The tasks that belong to one connection: they end with it.

use std::sync::{Arc, Mutex, PoisonError};

use hyper::rt::Executor;
use tokio::task::JoinSet;

/// Tasks that are ended when the last handle that is not one of their own is dropped.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tasks(Arc<Mutex<JoinSet<()>>>);

/// Ends the tasks when it is dropped.
pub(crate) struct EndTasks(Tasks);

impl Tasks {
    /// Starts one.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Those that have ended make room.
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task);
    }

    /// Ends them all with the value that this gives: tasks that hold a handle keep each other alive otherwise.
    pub(crate) fn end_with(&self) -> EndTasks {
        EndTasks(self.clone())
    }

    /// Waits until all have ended by themselves.
    pub(crate) async fn ended(&self) {
        let mut tasks = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        while tasks.join_next().await.is_some() {}
    }
}

impl Drop for EndTasks {
    fn drop(&mut self) {
        let Tasks(tasks) = &self.0;
        tasks
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .abort_all();
    }
}

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for Tasks {
    fn execute(&self, task: F) {
        self.spawn(task);
    }
}
