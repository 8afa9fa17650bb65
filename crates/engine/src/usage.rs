//! What a session cost, as its agents reported it (spec 03 §8b).

use indexmap::IndexMap;
use serde_json::{Map, Number, Value, json};

use crate::state::{Event, Session};

/// Event type of a recorded row.
pub(crate) const ROW: &str = "activity_usage";
/// Members of `usage` that are summed; the others are carried along.
const SUMMED: [&str; 4] = ["input_tokens", "output_tokens", "total_tokens", "subagent_tokens"];
/// Agent under which rows without one are kept.
const UNATTRIBUTED: &str = "unattributed";

/// Recorded rows, in order.
pub(crate) fn rows(session: &Session) -> impl Iterator<Item = &Event> {
    session.history.iter().filter(|event| event.kind() == ROW)
}

/// Activities that an agent took and nobody has reported a row for; the one being executed is not yet due.
pub(crate) fn missing(session: &Session, agent_id: &str) -> Vec<String> {
    let mut taken: Vec<String> = Vec::new();
    for event in &session.history {
        let is_due = event.kind() == "activity_dispatched"
            && event.data_text("agentId") == Some(agent_id)
            && event.data("chars").is_some()
            && event.activity() != session.current_activity;
        if is_due && !taken.iter().any(|activity| activity == event.activity()) {
            taken.push(event.activity().to_owned());
        }
    }
    taken.retain(|activity| !rows(session).any(|row| row.activity() == activity));
    taken
}

/// The usage view; `children` says the same of sessions that are counted apart.
pub(crate) fn view(session: &Session, agent_id: Option<&str>, children: Vec<Value>) -> Map<String, Value> {
    let shown: Vec<&Event> =
        rows(session).filter(|row| agent_id.is_none() || row.data_text("agentId") == agent_id).collect();
    let mut totals = Totals::default();
    let mut cumulative: IndexMap<String, Map<String, Value>> = IndexMap::new();
    let mut unstated = 0_u64;
    for row in &shown {
        match row.data_text("basis") {
            Some("delta") => totals.add(row),
            Some("cumulative") => {
                let agent = row.data_text("agentId").unwrap_or(UNATTRIBUTED);
                let latest = cumulative.entry(agent.to_owned()).or_default();
                latest.extend(counted(row).map(|(key, count)| (key.to_owned(), Value::Number(count.clone()))));
            }
            _ => unstated += 1,
        }
    }
    let mut members = Map::new();
    members.insert("rows".to_owned(), shown.iter().map(|row| row_value(session, row)).collect());
    members.insert("totals".to_owned(), totals.value());
    members.insert("cumulative_latest_by_agent".to_owned(), json!(cumulative));
    members.insert("unstated_basis".to_owned(), unstated.into());
    if let Some(elapsed) = elapsed_ms(session) {
        members.insert("elapsed_ms".to_owned(), elapsed.into());
    }
    members.insert("wall_clock_ms_not_additive".to_owned(), true.into());
    members.insert("activities_without_usage".to_owned(), json!(without_usage(session)));
    members.insert("children_outside_totals".to_owned(), children.into());
    members
}

/// `cost_known`, `rows` and `totals` of a session that is counted apart.
pub(crate) fn digest(session: &Session) -> [(&'static str, Value); 3] {
    let mut totals = Totals::default();
    rows(session).filter(|row| row.data_text("basis") == Some("delta")).for_each(|row| totals.add(row));
    let count = rows(session).count();
    [("cost_known", (count > 0).into()), ("rows", count.into()), ("totals", totals.value())]
}

/// Sums per summed member.
#[derive(Default)]
struct Totals(IndexMap<&'static str, Number>);

impl Totals {
    fn add(&mut self, row: &Event) {
        for (key, count) in counted(row) {
            let sum = self.0.get(key).map_or_else(|| count.clone(), |so_far| plus(so_far, count));
            self.0.insert(key, sum);
        }
    }

    fn value(&self) -> Value {
        let sums = SUMMED.iter().filter_map(|key| Some(((*key).to_owned(), Value::Number(self.0.get(key)?.clone()))));
        Value::Object(sums.collect())
    }
}

/// The summed members of a row that are numbers.
fn counted(row: &Event) -> impl Iterator<Item = (&'static str, &Number)> {
    SUMMED.iter().filter_map(|key| match row.data("usage")?.get(key)? {
        Value::Number(count) => Some((*key, count)),
        _ => None,
    })
}

/// Exact for integers, else in floating point; a sum that is no finite number keeps what was there.
fn plus(left: &Number, right: &Number) -> Number {
    let whole = left.as_i64().zip(right.as_i64()).and_then(|(left, right)| left.checked_add(right));
    if let Some(sum) = whole {
        return sum.into();
    }
    let sum = left.as_f64().zip(right.as_f64()).map(|(left, right)| left + right);
    sum.and_then(Number::from_f64).unwrap_or_else(|| left.clone())
}

fn row_value(session: &Session, row: &Event) -> Value {
    let mut members = Map::new();
    members.insert("activity".to_owned(), row.activity().into());
    members.insert("timestamp".to_owned(), row.timestamp().into());
    members.insert("usage".to_owned(), row.data("usage").cloned().unwrap_or_else(|| json!({})));
    members.insert("basis".to_owned(), row.data_text("basis").unwrap_or("unstated").into());
    if let Some(agent) = row.data_text("agentId") {
        members.insert("agentId".to_owned(), agent.into());
    }
    if let Some(wall) = wall_clock_ms(session, row.activity()) {
        members.insert("wall_clock_ms".to_owned(), wall.into());
    }
    Value::Object(members)
}

/// From the first time an activity was entered to the last time it was left; `None` while it runs.
fn wall_clock_ms(session: &Session, activity: &str) -> Option<i64> {
    let of = |kind: &'static str| {
        session
            .history
            .iter()
            .enumerate()
            .filter(move |(_, event)| event.kind() == kind && event.activity() == activity)
    };
    let (_, first) = of("activity_entered").next()?;
    let (last_entry, _) = of("activity_entered").next_back()?;
    let (last_exit, last) = of("activity_exited").next_back()?;
    if last_entry > last_exit {
        return None;
    }
    Some(last.time()?.0.saturating_sub(first.time()?.0))
}

fn elapsed_ms(session: &Session) -> Option<i64> {
    if session.history.len() < 2 {
        return None;
    }
    let times = || session.history.iter().filter_map(Event::time).map(|time| time.0);
    Some(times().max()?.saturating_sub(times().min()?))
}

fn without_usage(session: &Session) -> Vec<&str> {
    let has_row = |activity: &str| rows(session).any(|row| row.activity() == activity);
    let done = session.completed_activities.iter().map(String::as_str);
    done.filter(|activity| *activity != workflow_corpus::TERMINAL && !has_row(activity)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Timestamp, workspace::Workspace};

    /// A session of `mini` in activity `ship` after `plan`.
    fn walked() -> (Workspace, String) {
        let workspace = Workspace::new();
        let answer = workspace.json("start_session", json!({"workflow_id": "mini", "planning_slug": "a"}));
        let index = answer["session_index"].as_str().unwrap().to_owned();
        for activity in ["plan", "ship"] {
            workspace.call("next_activity", json!({"session_index": index, "activity_id": activity}));
        }
        (workspace, index)
    }

    fn record(workspace: &Workspace, index: &str, activity: &str, usage: &Value, basis: &str, agent: Option<&str>) {
        let mut arguments = json!({"session_index": index, "activity": activity, "usage": usage, "basis": basis});
        if let Some(agent) = agent {
            arguments["agent_id"] = agent.into();
        }
        workspace.call("record_usage", arguments);
    }

    #[test]
    fn the_view_sums_deltas_and_keeps_the_latest_cumulative() {
        let (workspace, index) = walked();
        record(
            &workspace,
            &index,
            "plan",
            &json!({"input_tokens": 100, "output_tokens": 1.5, "model": "m"}),
            "delta",
            Some("w1"),
        );
        record(&workspace, &index, "plan", &json!({"input_tokens": 50, "output_tokens": "many"}), "delta", None);
        record(&workspace, &index, "ship", &json!({"input_tokens": 7}), "cumulative", Some("w2"));
        record(&workspace, &index, "ship", &json!({"input_tokens": 9, "total_tokens": 10}), "cumulative", Some("w2"));
        record(&workspace, &index, "ship", &json!({"input_tokens": 3}), "cumulative", None);
        workspace.change(&index, |session| {
            let old = Event::new(ROW).with_activity("ship").with_data("usage", json!({"input_tokens": 1000}));
            session.record(old, Timestamp(0));
        });
        let session = workspace.session(&index);
        let seen = Value::Object(view(&session, None, Vec::new()));
        assert_eq!(seen["totals"], json!({"input_tokens": 150, "output_tokens": 1.5}));
        assert_eq!(
            seen["cumulative_latest_by_agent"],
            json!({"w2": {"input_tokens": 9, "total_tokens": 10}, "unattributed": {"input_tokens": 3}})
        );
        assert_eq!(seen["unstated_basis"], 1);
        assert_eq!(seen["rows"].as_array().unwrap().len(), 6);
        assert_eq!(seen["rows"][0]["usage"]["model"], "m", "other members are carried");
        assert_eq!(seen["rows"][0]["wall_clock_ms"], 1000);
        assert!(seen["rows"][2].get("wall_clock_ms").is_none(), "ship is running");
        assert_eq!(seen["rows"][5]["basis"], "unstated");
        assert_eq!(seen["wall_clock_ms_not_additive"], true);
        assert_eq!(seen["activities_without_usage"], json!([]));

        let mine = Value::Object(view(&session, Some("w1"), Vec::new()));
        assert_eq!(mine["rows"].as_array().unwrap().len(), 1);
        assert_eq!(mine["totals"]["input_tokens"], 100);
    }

    #[test]
    fn completed_activities_without_a_row_are_named() {
        let (workspace, index) = walked();
        workspace.change(&index, |session| session.completed_activities.push(workflow_corpus::TERMINAL.to_owned()));
        assert_eq!(without_usage(&workspace.session(&index)), ["plan"]);
    }

    #[test]
    fn elapsed_time_needs_two_events() {
        let (workspace, index) = walked();
        let mut session = workspace.session(&index);
        assert_eq!(elapsed_ms(&session), Some(2000));
        session.history.truncate(1);
        assert_eq!(elapsed_ms(&session), None);
    }

    #[test]
    fn sums_stay_exact_or_finite() {
        let number = |value: Value| value.as_number().unwrap().clone();
        assert_eq!(plus(&1.into(), &2.into()), 3.into());
        let large = plus(&i64::MAX.into(), &1.into());
        assert!(large.is_f64());
        assert_eq!(plus(&number(json!(1.0e308)), &number(json!(1.0e308))), number(json!(1.0e308)));
    }
}
