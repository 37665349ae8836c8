//! What was asked already: one question per reference and one login per registry, however often a command looks.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use tokio::sync::Mutex;

use super::super::credentials::Login;
use crate::engine::EngineResult;

/// How long an answer is good for: longer than a command between its plan and its apply, shorter than a token lives.
const GOOD_FOR: Duration = Duration::from_secs(300);

/// Answers of registries and of credential helpers.
#[derive(Default)]
pub(in super::super) struct Memory {
    digests: Mutex<BTreeMap<String, (Instant, Option<String>)>>,
    platforms: Mutex<BTreeMap<String, (Instant, Vec<String>)>>,
    /// Held while a helper is asked, so that it is asked once.
    logins: Mutex<BTreeMap<String, (Instant, Login)>>,
}

impl Memory {
    /// The digest of a reference, asked for unless it is known.
    pub(in super::super) async fn digest(
        &self,
        reference: &str,
        ask: impl Future<Output = EngineResult<Option<String>>>,
    ) -> EngineResult<Option<String>> {
        known(&self.digests, reference, ask).await
    }

    /// The platforms of a digest, asked for unless they are known.
    pub(in super::super) async fn platforms(
        &self,
        reference: &str,
        ask: impl Future<Output = EngineResult<Vec<String>>>,
    ) -> EngineResult<Vec<String>> {
        known(&self.platforms, reference, ask).await
    }

    /// The login of a registry, asked for unless it is known.
    pub(in super::super) async fn login(
        &self,
        registry: &str,
        ask: impl Future<Output = EngineResult<Login>>,
    ) -> EngineResult<Login> {
        let mut logins = self.logins.lock().await;
        if let Some((at, known)) = logins.get(registry)
            && at.elapsed() < GOOD_FOR
        {
            return Ok(known.clone());
        }
        let found = ask.await?;
        logins.insert(registry.to_owned(), (Instant::now(), found.clone()));
        Ok(found)
    }
}

async fn known<T: Clone>(
    answers: &Mutex<BTreeMap<String, (Instant, T)>>,
    reference: &str,
    ask: impl Future<Output = EngineResult<T>>,
) -> EngineResult<T> {
    if let Some((at, answer)) = answers.lock().await.get(reference)
        && at.elapsed() < GOOD_FOR
    {
        return Ok(answer.clone());
    }
    let found = ask.await?;
    let mut answers = answers.lock().await;
    answers.insert(reference.to_owned(), (Instant::now(), found.clone()));
    Ok(found)
}
