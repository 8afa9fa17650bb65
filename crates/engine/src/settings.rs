//! What an operator may set and the engine reads.

/// Limits and names; the defaults are those of spec 04 §2.2.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Name shown by `discover` and `health_check`.
    pub server_name: String,
    /// Version shown there; never compared with workflow versions.
    pub server_version: String,
    /// `BUNDLE_HEADROOM_FRACTION`.
    pub bundle_headroom_fraction: f64,
    /// `BUNDLE_CHARS_PER_TOKEN`.
    pub chars_per_token: f64,
    /// `BATCH_HEADROOM_FRACTION`, within 0…1.
    pub batch_headroom_fraction: f64,
    /// `BATCH_MAX_ACTIVITIES`, within 1…100.
    pub batch_max_activities: f64,
    /// `CHECKPOINT_MIN_RESPONSE_MS`.
    pub checkpoint_min_response_ms: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            server_name: "workflow-server".to_owned(),
            server_version: env!("CARGO_PKG_VERSION").to_owned(),
            bundle_headroom_fraction: 0.8,
            chars_per_token: 4.0,
            batch_headroom_fraction: 0.35,
            batch_max_activities: 3.0,
            checkpoint_min_response_ms: 3000,
        }
    }
}
