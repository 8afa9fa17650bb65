//! Points in time as sessions write them (spec 03 §0.1).

use jiff::Timestamp as Instant;

/// Milliseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// RFC 3339 UTC with exactly three fractional digits and `Z`.
    pub fn text(self) -> String {
        let instant = Instant::from_millisecond(self.0).unwrap_or(Instant::UNIX_EPOCH);
        instant.strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string()
    }

    /// Reads an RFC 3339 text; `None` when it is none.
    pub fn parse(text: &str) -> Option<Self> {
        text.parse::<Instant>().ok().map(|instant| Self(instant.as_millisecond()))
    }

    /// Unix seconds, as `ts` members count.
    pub fn seconds(self) -> i64 {
        self.0.div_euclid(1000)
    }

    /// `YYYY-MM-DD` in UTC.
    pub fn date(self) -> String {
        let instant = Instant::from_millisecond(self.0).unwrap_or(Instant::UNIX_EPOCH);
        instant.strftime("%Y-%m-%d").to_string()
    }
}
