//! How much one context may take: the run of activities of a delivery scope and its two limits (spec 02 §10).
//!
//! A batch is never declared; it is derived from the history.

use serde_json::{Map, Value};

use crate::{
    Settings,
    state::{Event, Session},
};

/// Which limit a refused activity ran into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// Too many activities; named first when both limits bind.
    ActivityCap,
    /// Too many characters.
    DeliveryBudget,
}

impl Limit {
    /// Name on the wire and in events.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::ActivityCap => "activity_cap",
            Self::DeliveryBudget => "delivery_budget",
        }
    }
}

/// Where a scope stands (`_meta.batch`); sizes in UTF-16 code units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reading {
    /// Distinct activities taken.
    pub(crate) activities: u64,
    /// How many it may take.
    pub(crate) max_activities: u64,
    /// Characters received.
    pub(crate) delivered_chars: u64,
    /// Characters it may have received when it asks for another activity.
    pub(crate) budget_chars: u64,
    /// Whether another activity is served.
    pub(crate) may_continue: bool,
}

impl Reading {
    /// The object of `_meta.batch` and of the `batch` block.
    pub(crate) fn to_map(self) -> Map<String, Value> {
        let mut members = Map::new();
        members.insert("activities".to_owned(), self.activities.into());
        members.insert("max_activities".to_owned(), self.max_activities.into());
        members.insert("delivered_chars".to_owned(), self.delivered_chars.into());
        members.insert("budget_chars".to_owned(), self.budget_chars.into());
        members.insert("may_continue".to_owned(), self.may_continue.into());
        members
    }
}

/// Reads where `scope` stands now, as `get_activity` reports it (spec 02 §10.5).
pub(crate) fn reading(session: &Session, scope: &str, context_tokens: u64, settings: &Settings) -> Reading {
    let taken = Taken::by(session, scope);
    let limits = Limits::of(context_tokens, settings);
    Reading {
        activities: count(taken.activities.len()),
        max_activities: whole(limits.activities),
        delivered_chars: whole(taken.chars),
        budget_chars: whole(limits.chars),
        may_continue: taken.exempt(session, scope) || limits.bound(&taken).is_none(),
    }
}

/// Reads whether `scope` would be served `target`: like [`reading`], but an activity it already holds is continuable.
pub(crate) fn may_continue(
    session: &Session,
    scope: &str,
    context_tokens: u64,
    settings: &Settings,
    target: &str,
) -> Reading {
    let may_continue = refused(session, scope, context_tokens, settings, target).is_none();
    Reading { may_continue, ..reading(session, scope, context_tokens, settings) }
}

/// The limit that keeps `activity` from being served to `scope`, if one does (spec 02 §10.3).
pub(crate) fn refused(
    session: &Session,
    scope: &str,
    context_tokens: u64,
    settings: &Settings,
    activity: &str,
) -> Option<Limit> {
    let taken = Taken::by(session, scope);
    if taken.exempt(session, scope) || taken.activities.contains(&activity) {
        return None;
    }
    Limits::of(context_tokens, settings).bound(&taken)
}

/// Characters that step techniques bundled into one activity may take; compared as it is, not rounded (spec 02 §7.1).
pub(crate) fn bundle_budget(context_tokens: u64, settings: &Settings) -> f64 {
    real(context_tokens) * settings.bundle_headroom_fraction * settings.chars_per_token
}

/// Whether a size is beyond a budget; equality is within.
pub(crate) fn exceeds(chars: u64, budget: f64) -> bool {
    real(chars) > budget
}

/// What a scope has received so far.
struct Taken<'s> {
    activities: Vec<&'s str>,
    chars: f64,
}

impl<'s> Taken<'s> {
    fn by(session: &'s Session, scope: &str) -> Self {
        let mut taken = Self { activities: Vec::new(), chars: 0.0 };
        for event in &session.history {
            let Some(chars) = size(event).filter(|_| scope_of(event) == Some(scope)) else { continue };
            if event.data_text("delivery") == Some("unchanged") {
                continue;
            }
            match event.kind() {
                "activity_dispatched" => {
                    taken.chars += chars;
                    let activity = event.activity();
                    if !activity.is_empty() && !taken.activities.contains(&activity) {
                        taken.activities.push(activity);
                    }
                }
                "technique_fetched" => taken.chars += chars,
                "resource_fetched" if event.data("bundled") != Some(&Value::Bool(true)) => taken.chars += chars,
                _ => {}
            }
        }
        taken
    }

    /// The session's own agent is unbounded, and a first activity is always served.
    fn exempt(&self, session: &Session, scope: &str) -> bool {
        scope == session.agent_id || self.activities.is_empty()
    }
}

/// The two limits of a context.
struct Limits {
    activities: f64,
    chars: f64,
}

impl Limits {
    fn of(context_tokens: u64, settings: &Settings) -> Self {
        Self {
            activities: settings.batch_max_activities.floor().max(1.0),
            chars: (real(context_tokens) * settings.batch_headroom_fraction * settings.chars_per_token).floor(),
        }
    }

    fn bound(&self, taken: &Taken<'_>) -> Option<Limit> {
        if real(count(taken.activities.len())) >= self.activities {
            Some(Limit::ActivityCap)
        } else if taken.chars > self.chars {
            Some(Limit::DeliveryBudget)
        } else {
            None
        }
    }
}

/// The delivery scope an event belongs to.
pub(crate) fn scope_of(event: &Event) -> Option<&str> {
    event.data_text("agentId")
}

/// The recorded size; sizes that are no finite number ≥ 0 are none.
pub(crate) fn size(event: &Event) -> Option<f64> {
    event.data("chars")?.as_f64().filter(|chars| chars.is_finite() && *chars >= 0.0)
}

fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

#[expect(clippy::cast_precision_loss, reason = "budgets are IEEE doubles by definition (spec 02 T-31)")]
fn real(number: u64) -> f64 {
    number as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "`as` saturates; sizes and limits are not negative"
)]
fn whole(number: f64) -> u64 {
    number as u64
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Limit, Limits, bundle_budget, exceeds, may_continue, reading, refused};
    use crate::{Settings, state::Session};

    /// A session of agent `owner` with these events.
    fn session(history: &[Value]) -> Session {
        let history: Vec<Value> = history
            .iter()
            .map(|event| {
                let mut event = event.clone();
                event["timestamp"] = "2026-01-02T03:04:05.678Z".into();
                event
            })
            .collect();
        let state = json!({
            "schemaVersion": 1, "status": "running", "workflowId": "demo", "workflowVersion": "1.0.0",
            "agentId": "owner", "sessionIndex": "ABCDE2", "currentActivity": "a", "currentTechnique": "",
            "condition": "", "seq": 3, "ts": 1, "startedAt": "2026-01-02T03:04:05.678Z", "completedActivities": [],
            "skippedActivities": [], "variables": {}, "checkpointResponses": {}, "history": history,
            "triggeredWorkflows": [],
        });
        Session::from_json(&state).expect("the state is complete")
    }

    fn taken(agent: &str, activity: &str, chars: u64) -> Value {
        json!({"type": "activity_dispatched", "activity": activity,
               "data": {"agentId": agent, "dispatch": "fresh", "chars": chars}})
    }

    fn fetched(kind: &str, agent: &str, chars: impl Into<Value>, more: &Value) -> Value {
        let mut data = json!({"agentId": agent, "chars": chars.into()});
        for (key, value) in more.as_object().into_iter().flatten() {
            data[key] = value.clone();
        }
        json!({"type": kind, "activity": "a", "data": data})
    }

    const TOKENS: u64 = 200_000;

    fn limit(history: &[Value], scope: &str, activity: &str) -> Option<Limit> {
        refused(&session(history), scope, TOKENS, &Settings::default(), activity)
    }

    #[test]
    fn trap_02_15_t24_equality_admits_and_the_cap_binds_with_room() {
        let at_budget = [taken("w", "a", 280_000)];
        assert_eq!(limit(&at_budget, "w", "b"), None);
        let over = [taken("w", "a", 280_001)];
        assert_eq!(limit(&over, "w", "b"), Some(Limit::DeliveryBudget));
        let full = [taken("w", "a", 1), taken("w", "b", 1), taken("w", "c", 1)];
        assert_eq!(limit(&full, "w", "d"), Some(Limit::ActivityCap));
        let both = [taken("w", "a", 280_001), taken("w", "b", 1), taken("w", "c", 1)];
        assert_eq!(limit(&both, "w", "d"), Some(Limit::ActivityCap), "the cap is named first");
    }

    #[test]
    fn trap_03_14_33_the_boundary_is_inclusive_and_two_scopes_are_exempt() {
        assert_eq!(limit(&[taken("w", "a", 280_000)], "w", "b"), None);
        assert_eq!(limit(&[taken("w", "a", 280_001)], "w", "b"), Some(Limit::DeliveryBudget));
        assert_eq!(limit(&[taken("owner", "a", 9_000_000)], "owner", "b"), None, "the session's own agent");
        let lazy = [fetched("technique_fetched", "w", 9_000_000, &json!({}))];
        assert_eq!(limit(&lazy, "w", "b"), None, "no activity taken yet");
    }

    #[test]
    fn trap_02_15_t31_budget_arithmetic_is_ieee_left_to_right() {
        let settings = Settings::default();
        let floored = reading(&session(&[]), "w", 99_999, &settings).budget_chars;
        assert_eq!(floored, 139_998);
        assert!(bundle_budget(99_999, &settings) > 319_996.0, "the eager budget is not floored");
        assert!(!exceeds(319_996, bundle_budget(99_999, &settings)));
        assert!(exceeds(319_997, bundle_budget(99_999, &settings)));
        assert_eq!(reading(&session(&[]), "w", TOKENS, &settings).budget_chars, 280_000);
        let tight = Settings { batch_max_activities: 0.5, batch_headroom_fraction: 0.0, ..settings };
        let limits = Limits::of(TOKENS, &tight);
        assert!((limits.activities - 1.0).abs() < f64::EPSILON && limits.chars.abs() < f64::EPSILON);
    }

    #[test]
    fn trap_02_15_t26_a_first_arrival_by_technique_takes_no_activity() {
        let history = [
            json!({"type": "activity_dispatched", "activity": "a", "data": {"agentId": "w", "dispatch": "fresh"}}),
            fetched("technique_fetched", "w", 300_000, &json!({"delivery": "full"})),
        ];
        let now = reading(&session(&history), "w", TOKENS, &Settings::default());
        assert_eq!((now.activities, now.delivered_chars, now.may_continue), (0, 300_000, true));
        assert_eq!(limit(&history, "w", "a"), None);
    }

    #[test]
    fn only_what_reached_the_scope_counts() {
        let history = [
            taken("w", "a", 100),
            taken("other", "b", 1000),
            json!({"type": "activity_redelivered", "activity": "a", "data": {"agentId": "w", "chars": 100}}),
            json!({"type": "batch_refused", "activity": "d", "data": {"agentId": "w", "chars": 100}}),
            fetched("technique_bundled", "w", 50, &json!({"delivery": "full"})),
            fetched("technique_fetched", "w", 7, &json!({"delivery": "full"})),
            fetched("technique_fetched", "w", 70, &json!({"delivery": "unchanged"})),
            fetched("resource_fetched", "w", 3, &json!({})),
            fetched("resource_fetched", "w", 30, &json!({"bundled": true})),
            fetched("resource_fetched", "w", -4, &json!({})),
            fetched("resource_fetched", "w", "12", &json!({})),
            fetched("resource_fetched", "w", Value::Null, &json!({})),
            taken("w", "a", 100),
        ];
        let now = reading(&session(&history), "w", TOKENS, &Settings::default());
        assert_eq!((now.activities, now.delivered_chars), (1, 210));
        assert!(now.may_continue);
    }

    #[test]
    fn a_boundary_reading_differs_only_for_a_held_target() {
        let history = [taken("w", "a", 1), taken("w", "b", 1), taken("w", "c", 1)];
        let (session, settings) = (session(&history), Settings::default());
        let held = may_continue(&session, "w", TOKENS, &settings, "b");
        let new = may_continue(&session, "w", TOKENS, &settings, "d");
        let after = reading(&session, "w", TOKENS, &settings);
        assert!(held.may_continue && !new.may_continue && !after.may_continue);
        assert_eq!((held.activities, held.budget_chars), (after.activities, after.budget_chars));
    }
}
