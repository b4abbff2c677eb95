//! How a client talks to registries. Everything comes in as values: the command line knows the environment, this does not.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBuilder};

/// Addresses of proxies as in HTTP_PROXY, HTTPS_PROXY and NO_PROXY.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Proxies {
    /// For `http://`.
    pub http: Option<String>,
    /// For `https://`.
    pub https: Option<String>,
    /// Names, separated by commas, that are asked directly. Loopback always is.
    pub no_proxy: Option<String>,
}

impl fmt::Debug for Proxies {
    /// Addresses may hold passwords.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let given = |address: &Option<String>| address.as_ref().map(|_| "..");
        f.debug_struct("Proxies").field("http", &given(&self.http)).field("https", &given(&self.https)).finish()
    }
}

/// How often and after which time a request is made again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// How often in all.
    pub attempts: usize,
    /// The first wait; each next one is twice as long, plus up to the same again at random.
    pub first: Duration,
    /// The longest wait that is chosen here.
    pub longest: Duration,
    /// The longest wait that a registry may ask for (`Retry-After`).
    pub asked: Duration,
    /// Start of the random numbers, so that many clients do not come back all at once.
    pub seed: u64,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            attempts: 5,
            first: Duration::from_millis(500),
            longest: Duration::from_secs(20),
            asked: Duration::from_secs(300),
            seed: 0,
        }
    }
}

impl RetryPolicy {
    /// The waits between the attempts.
    pub(super) fn waits(&self) -> impl Iterator<Item = Duration> {
        ExponentialBuilder::default()
            .with_min_delay(self.first)
            .with_max_delay(self.longest)
            .with_max_times(self.attempts.saturating_sub(1))
            .with_jitter()
            .with_jitter_seed(self.seed)
            .build()
    }
}

/// Waits. Tests count instead.
pub type Sleep = Arc<dyn Fn(Duration) + Send + Sync>;

/// How a client talks.
#[derive(Clone)]
pub struct ClientOptions {
    /// Registries (host and port as in references) that are asked by plain HTTP. No other one ever is, loopback included.
    pub plain_http: BTreeSet<String>,
    /// Name (for messages) and content of PEM files with more certificate authorities.
    pub authorities: Vec<(String, Vec<u8>)>,
    /// Whether the authorities of the system count.
    pub system_roots: bool,
    /// Proxies.
    pub proxies: Proxies,
    /// Most time for making a connection, and for a connection that stands still.
    pub timeout: Duration,
    /// Trying again.
    pub retry: RetryPolicy,
    /// `User-Agent`.
    pub user_agent: String,
    /// Bytes of one PATCH, where a registry takes blobs only in pieces. Never less than it asks for.
    pub chunk: u64,
    /// How to wait.
    pub sleep: Sleep,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            plain_http: BTreeSet::new(),
            authorities: Vec::new(),
            system_roots: true,
            proxies: Proxies::default(),
            timeout: Duration::from_secs(60),
            retry: RetryPolicy::default(),
            user_agent: concat!("flux-gen/", env!("CARGO_PKG_VERSION")).to_owned(),
            chunk: 16 << 20,
            sleep: Arc::new(std::thread::sleep),
        }
    }
}

impl fmt::Debug for ClientOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { plain_http, authorities, system_roots, proxies, timeout, retry, user_agent, chunk, sleep: _ } = self;
        f.debug_struct("ClientOptions")
            .field("plain_http", plain_http)
            .field("authorities", &authorities.iter().map(|(name, _)| name).collect::<Vec<_>>())
            .field("system_roots", system_roots)
            .field("proxies", proxies)
            .field("timeout", timeout)
            .field("retry", retry)
            .field("user_agent", user_agent)
            .field("chunk", chunk)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_and_stay_within_bounds() {
        let policy = RetryPolicy { attempts: 8, ..RetryPolicy::default() };
        let waits: Vec<Duration> = policy.waits().collect();
        assert_eq!(waits.len(), 7);
        assert_eq!(waits, policy.waits().collect::<Vec<_>>(), "the seed decides");
        assert!(waits[0] >= policy.first && waits.iter().all(|w| *w <= policy.longest * 2), "{waits:?}");
        let other: Vec<Duration> = RetryPolicy { seed: 1, ..policy }.waits().collect();
        assert_ne!(waits, other);
        assert_eq!(RetryPolicy { attempts: 1, ..policy }.waits().count(), 0);
    }

    #[test]
    fn proxies_do_not_show_passwords() {
        let proxies = Proxies { https: Some("http://me:hunter2@proxy:1".to_owned()), ..Proxies::default() };
        let options = ClientOptions { proxies, ..ClientOptions::default() };
        assert!(!format!("{options:?}").contains("hunter2"));
    }
}
