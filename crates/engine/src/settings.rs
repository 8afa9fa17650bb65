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
    /// Levels that a value sent by a caller may nest (spec 03 §3.3).
    pub max_nesting: usize,
    /// UTF-8 bytes of one parameter that is an object or an array, serialised.
    pub max_map_bytes: usize,
    /// UTF-8 bytes of one text anywhere in a parameter.
    pub max_string_bytes: usize,
    /// Entries of one array parameter.
    pub max_array_entries: usize,
    /// Bytes of a session's canonical text from which every call warns (spec 03 §3.8).
    pub large_session_bytes: usize,
    /// Bytes of a session's canonical text above which it may not grow.
    pub max_session_bytes: usize,
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
            max_nesting: 64,
            max_map_bytes: 1024 * 1024,
            max_string_bytes: 256 * 1024,
            max_array_entries: 1000,
            large_session_bytes: 8 * 1024 * 1024,
            max_session_bytes: 64 * 1024 * 1024,
        }
    }
}
