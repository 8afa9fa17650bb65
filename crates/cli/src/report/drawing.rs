//! The course of a session as a drawing: one row per activity and child, time from left to right.
//!
//! Long stretches in which nothing was recorded are folded, so that a session that slept over night still shows its
//! work. The drawing is a function of the report alone.

use workflow_engine::Timestamp;

use super::page::Page;
use super::{Report, State, date_time, moment, span};

const WIDTH: i64 = 1000;
const LABELS: i64 = 210;
const RIGHT: i64 = 16;
const ROW: i64 = 26;
const BAR: i64 = 14;
const TOP: i64 = 34;
/// Width of a folded stretch.
const FOLD: i64 = 34;
/// Rows of activities and of children that are drawn.
const ROWS: usize = 40;
/// Stretches shorter than this are never folded.
const SHORTEST_FOLD_MS: i64 = 10 * 60 * 1000;
const FOLDS: usize = 8;
/// Questions that are drawn on a row, the newest.
const MARKS: usize = 200;
/// Characters of a label.
const LABEL_LENGTH: usize = 28;

/// One row.
struct Row {
    label: String,
    kind: &'static str,
    bars: Vec<(Timestamp, Timestamp, String)>,
    marks: Vec<Mark>,
}

/// A question on a row.
struct Mark {
    asked: Timestamp,
    answered: Option<Timestamp>,
    title: String,
}

/// Draws, unless there is nothing to draw.
pub(super) fn draw(page: &mut Page, report: &Report) {
    let (rows, left_out) = rows(report);
    let Some(scale) = Scale::of(&rows) else { return };
    let height = TOP + ROW * i64::try_from(rows.len()).unwrap_or(0) + 12;
    let view = format!("0 0 {WIDTH} {height}");
    let (first, last) = scale.ends();
    let attributes = [
        ("viewBox", view.as_str()),
        ("role", "img"),
        ("aria-labelledby", "drawing-title drawing-text"),
        ("class", "drawing"),
    ];
    page.within("svg", &attributes, |page| {
        page.leaf("title", &[("id", "drawing-title")], "Timeline of the session");
        let text = format!(
            "{} rows from {} to {} UTC. The same is told by the tables of activities, checkpoints and children.",
            rows.len(),
            date_time(first),
            date_time(last)
        );
        page.leaf("desc", &[("id", "drawing-text")], &text);
        axis(page, &scale, height);
        for (nth, row) in rows.iter().enumerate() {
            draw_row(page, &scale, row, TOP + ROW * i64::try_from(nth).unwrap_or(0));
        }
    });
    if left_out > 0 {
        page.leaf("p", &[("class", "quiet")], &format!("{left_out} more rows are not drawn; the tables have them."));
    }
}

fn rows(report: &Report) -> (Vec<Row>, usize) {
    let mut ids: Vec<&str> = Vec::new();
    for visit in &report.visits {
        if !ids.contains(&visit.activity.as_str()) {
            ids.push(&visit.activity);
        }
    }
    let activities = ids.iter().map(|id| {
        let bars = report.visits.iter().filter(|visit| visit.activity == *id).map(|visit| {
            let length = span(visit.until.0.saturating_sub(visit.entered.0));
            let open = if visit.left.is_none() { ", still open" } else { "" };
            (visit.entered, visit.until, format!("{id}: {length} from {} UTC{open}", date_time(visit.entered)))
        });
        let marks = report.rounds.iter().rev().filter(|round| round.activity == *id).take(MARKS).filter_map(|round| {
            let answer = match (&round.option, round.dismissed) {
                (_, true) => "dismissed".to_owned(),
                (Some(option), false) if round.by_default => format!("not answered, default {option} taken"),
                (Some(option), false) => format!("answered {option}"),
                (None, false) => "waiting".to_owned(),
            };
            Some(Mark {
                asked: Timestamp::parse(round.reached_at.as_deref()?)?,
                answered: round.answered_at.as_deref().and_then(Timestamp::parse),
                title: format!("{} {answer}, asked {} UTC", round.checkpoint, moment(round.reached_at.as_deref()?)),
            })
        });
        let state = report.activities.iter().find(|activity| activity.id == *id).map(|activity| activity.state);
        Row {
            label: (*id).to_owned(),
            kind: if state == Some(State::Current) { "bar current" } else { "bar" },
            bars: bars.collect(),
            marks: marks.collect(),
        }
    });
    let children = report.children.iter().filter_map(|child| {
        let (from, to) = child.times?;
        let title = format!(
            "child {} of {}: {}, {}",
            child.session_index,
            child.workflow_id,
            child.status,
            span(to.0 - from.0)
        );
        Some(Row {
            label: format!("{}↳ {}", "  ".repeat(child.depth), child.workflow_id),
            kind: "bar child",
            bars: vec![(from, to, title)],
            marks: Vec::new(),
        })
    });
    let (activities, children): (Vec<Row>, Vec<Row>) = (activities.collect(), children.collect());
    let left_out = activities.len().saturating_sub(ROWS) + children.len().saturating_sub(ROWS);
    (activities.into_iter().take(ROWS).chain(children.into_iter().take(ROWS)).collect(), left_out)
}

/// Where a time stands: stretches of work to scale, folded ones of one width.
struct Scale {
    /// Begin, end, left and right edge; a folded one has `true`.
    stretches: Vec<(i64, i64, i64, i64, bool)>,
}

impl Scale {
    fn of(rows: &[Row]) -> Option<Self> {
        let mut times: Vec<i64> = Vec::new();
        for row in rows {
            times.extend(row.bars.iter().flat_map(|(from, to, _)| [from.0, to.0]));
            times
                .extend(row.marks.iter().flat_map(|mark| [Some(mark.asked.0), mark.answered.map(|at| at.0)]).flatten());
        }
        times.sort_unstable();
        times.dedup();
        let (first, last) = (*times.first()?, *times.last()?);
        let total = last.saturating_sub(first);
        let mut gaps: Vec<(i64, i64)> = times
            .windows(2)
            .filter_map(|pair| Some((*pair.first()?, *pair.last()?)))
            .filter(|(from, to)| to - from > SHORTEST_FOLD_MS && to - from > total / 6)
            .collect();
        gaps.truncate(FOLDS);
        let folded: i64 = gaps.iter().map(|(from, to)| to - from).sum();
        let worked = (total - folded).max(1);
        let room = WIDTH - RIGHT - LABELS - FOLD * i64::try_from(gaps.len()).unwrap_or(0);
        let mut stretches = Vec::new();
        let (mut time, mut edge) = (first, LABELS);
        let width =
            |length: i64| i64::try_from(i128::from(length) * i128::from(room) / i128::from(worked)).unwrap_or(0);
        for (from, to) in gaps {
            let right = edge + width(from - time);
            stretches.push((time, from, edge, right, false));
            stretches.push((from, to, right, right + FOLD, true));
            (time, edge) = (to, right + FOLD);
        }
        stretches.push((time, last, edge, WIDTH - RIGHT, false));
        Some(Self { stretches })
    }

    fn ends(&self) -> (Timestamp, Timestamp) {
        let first = self.stretches.first().map_or(0, |stretch| stretch.0);
        let last = self.stretches.last().map_or(0, |stretch| stretch.1);
        (Timestamp(first), Timestamp(last))
    }

    fn at(&self, time: Timestamp) -> i64 {
        let found = self.stretches.iter().find(|(_, to, ..)| time.0 <= *to).or(self.stretches.last());
        let Some((from, to, left, right, _)) = found else { return LABELS };
        let length = i128::from((to - from).max(1));
        let into = i128::from((time.0 - from).max(0));
        left + i64::try_from(into * i128::from(right - left) / length).unwrap_or(0)
    }
}

fn axis(page: &mut Page, scale: &Scale, height: i64) {
    let bottom = (height - 8).to_string();
    let (first, last) = scale.ends();
    let many_days = first.date() != last.date();
    let short = last.0 - first.0 < 10_000;
    let label = |time: i64| {
        let text = date_time(Timestamp(time));
        let exact = Timestamp(time).text();
        let cut = match (many_days, short) {
            (true, _) => text.get(5..16),
            (false, false) => text.get(11..19),
            (false, true) => exact.get(11..21),
        };
        cut.unwrap_or_default().to_owned()
    };
    let mut free_from = 0;
    for (from, to, left, right, folded) in &scale.stretches {
        if *folded {
            let (x, width) = (left.to_string(), (right - left).to_string());
            let fold_height = (height - 8 - 20).to_string();
            page.within(
                "rect",
                &[("x", &x), ("y", "20"), ("width", &width), ("height", &fold_height), ("class", "fold")],
                |page| page.leaf("title", &[], &format!("nothing happened for {}", span(to - from))),
            );
            continue;
        }
        let ticks = ((right - left) / 150).clamp(0, 6);
        for tick in 0..=ticks {
            let x = if ticks == 0 { *left } else { left + (right - left) * tick / ticks };
            let time = if ticks == 0 { *from } else { from + (to - from) / ticks * tick };
            let text = label(time);
            let half = i64::try_from(text.len()).unwrap_or(0) * 3 + 6;
            let at = x.to_string();
            page.leaf("line", &[("x1", &at), ("x2", &at), ("y1", "20"), ("y2", &bottom), ("class", "tick")], "");
            let middle = x.min(WIDTH - half);
            if middle - half >= free_from {
                let middle_text = middle.to_string();
                page.leaf("text", &[("x", &middle_text), ("y", "13"), ("class", "time")], &text);
                free_from = middle + half;
            }
        }
    }
}

fn draw_row(page: &mut Page, scale: &Scale, row: &Row, y: i64) {
    let middle = y + ROW / 2;
    page.within("g", &[], |page| {
        let mut label: String = row.label.chars().take(LABEL_LENGTH).collect();
        if label.len() < row.label.len() {
            label.push('…');
        }
        let (x, text_y) = ((LABELS - 12).to_string(), (middle + 4).to_string());
        page.within("text", &[("x", &x), ("y", &text_y), ("class", "label")], |page| {
            page.leaf("title", &[], &row.label);
            page.text(&label);
        });
        for (from, to, title) in &row.bars {
            let left = scale.at(*from);
            let width = (scale.at(*to) - left).max(3).min(WIDTH - left);
            let (x, y, width) = (left.to_string(), (middle - BAR / 2).to_string(), width.to_string());
            let height = BAR.to_string();
            let attributes = [
                ("x", x.as_str()),
                ("y", &y),
                ("width", &width),
                ("height", &height),
                ("rx", "3"),
                ("class", row.kind),
            ];
            page.within("rect", &attributes, |page| page.leaf("title", &[], title));
        }
        for mark in &row.marks {
            let asked = scale.at(mark.asked);
            if let Some(answered) = mark.answered {
                // The original stamps answers with whole seconds, so one may seem to come before its question.
                let until = scale.at(answered).max(asked).to_string();
                let (from, to, y) = (asked.to_string(), until, middle.to_string());
                page.leaf("line", &[("x1", &from), ("x2", &to), ("y1", &y), ("y2", &y), ("class", "wait")], "");
            }
            let shape = format!("M{asked} {}l5 5l-5 5l-5 -5z", middle - 5);
            let class = if mark.answered.is_some() { "gate" } else { "gate open" };
            page.within("path", &[("d", &shape), ("class", class)], |page| page.leaf("title", &[], &mark.title));
        }
    });
}
