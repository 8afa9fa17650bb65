//! What is played.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Place;
use super::client::Answer;
use super::stage::{self, Role, Stage};
use crate::exit::Failure;

use Role::{Orchestrator, User, Worker};

/// How many scenes there are.
pub(super) const SCENES: usize = 7;

/// How long the timed question of the tour stays open before its default may answer it.
const AUTO_ADVANCE: Duration = Duration::from_secs(1);

/// Size of the context that the workers say they have, in tokens.
const CONTEXT: u64 = 200_000;

pub(super) struct Script {
    pub(super) stage: Stage,
    pub(super) place: Place,
    pub(super) index: String,
}

impl Script {
    /// Plays all scenes. `started` is the answer to the session's start, which has happened already.
    pub(super) fn play(&mut self, start: &Value, started: &Answer) -> Result<(), Failure> {
        self.begin(start, started)?;
        self.look_around()?;
        self.visit_stops()?;
        self.restart(start)?;
        let child = self.send_postcard()?;
        self.write_card(&child)?;
        self.look_back_and_wrap_up()
    }

    fn begin(&mut self, start: &Value, started: &Answer) -> Result<(), Failure> {
        self.stage.scene("Begin: find out how, open a session")?;
        self.stage.says(User, "I am Ada. Show me around.")?;
        self.stage.call(
            Orchestrator,
            "discover",
            &json!({}),
            &["# How to begin", "1. Call `list_workflows`", "workflow ids:"],
            "The procedure comes from the server, so no rule file in the project can go stale.",
        )?;
        stage::show(
            Orchestrator,
            "start_session",
            start,
            started,
            &["session_index", "planning_slug", "resumed"],
            "The session is two files in the workspace, and survives every agent and server.",
        )?;
        let about = self.args(json!({}));
        self.stage.call(
            Orchestrator,
            "get_workflow",
            &about,
            &["initialActivity:", "activities:", "- id: look-around", "- id: visit-stops"],
            "The orchestrator sees the way, its rules and activities, but no instructions for steps.",
        )?;
        Ok(())
    }

    fn look_around(&mut self) -> Result<(), Failure> {
        self.stage.scene("look-around: a technique, an action, a gate")?;
        self.enter("look-around", json!({}), "The server notes that the activity has begun.")?;
        self.take(
            "worker-1",
            &["- id: explain-session", "technique:", "- kind: action", "- kind: checkpoint", "message:"],
            "The worker gets this activity whole: steps, the techniques they bind, and the rules.",
        )?;
        let wanted = self.args(json!({"agent_id": "worker-1", "resource_id": "travel-guide#sessions"}));
        self.stage.call(
            Worker,
            "get_resource",
            &wanted,
            &["A session is the memory"],
            "A document that the technique points at, fetched by section and only when needed.",
        )?;
        let since = self.stop_at("choose-pace", "The worker stops. What comes next is for the user to decide.")?;
        let early = self.args(json!({"activity_id": "visit-stops"}));
        self.stage.refused(
            Orchestrator,
            "next_activity",
            &early,
            "Nobody gets past an open gate, not even an agent in a hurry.",
        )?;
        let question = self.args(json!({}));
        self.stage.call(
            Orchestrator,
            "present_checkpoint",
            &question,
            &["message:", "- id: full", "- id: short"],
            "The orchestrator puts the name in and shows the question to the user.",
        )?;
        self.stage.says(User, "The full tour.")?;
        self.answer(since, "full", "The answer is recorded, and its effect written into the session's variables.")?;
        self.go_on("The worker is told what was decided, and goes on.")
    }

    fn visit_stops(&mut self) -> Result<(), Failure> {
        self.stage.scene("visit-stops: loops, gates that repeat, a worker that is lost")?;
        let report = json!({
            "step_manifest": [
                {"step_id": "explain-session", "output": "two files, and the slug resumes them"},
                {"step_id": "note-name", "output": "Ada"},
                {"step_id": "choose-pace", "output": "full"}
            ],
            "variables_changed": {"traveller_name": "Ada"}
        });
        self.enter("visit-stops", report, "On leaving, an activity reports what its steps produced.")?;
        self.take(
            "worker-1",
            &["loopType: forEach", "over: stop_list", "id: keep-stop#{current_stop}"],
            "A loop with a gate in its body: one round for each stop.",
        )?;
        let technique = self.args(json!({"agent_id": "worker-1", "step_id": "describe-stop"}));
        self.stage.call(
            Worker,
            "get_technique",
            &technique,
            &["source:", "- title: 1. Initial", "- Say in one sentence", "- title: 3. Final", "destination:"],
            "What a group of techniques shares is written once and composed into each: here 1 and 3.",
        )?;
        let since = self.stop_at("keep-stop#sessions", "In a loop the gate's id says which round it belongs to.")?;
        self.stage.says(User, "Keep it.")?;
        self.answer(since, "keep", "One round done.")?;
        self.go_on("And on to the next stop. But:")?;

        self.stage.tells("worker-1 is lost, with all that it knew. A new one takes over.")?;
        self.take(
            "worker-2",
            &["id: visit-stops"],
            "It gets the same activity, in full, because it knows nothing yet.",
        )?;
        let again = self.args(json!({"checkpoint_id": "keep-stop#sessions"}));
        self.stage.call(
            Worker,
            "yield_checkpoint",
            &again,
            &["status", "resolved_option"],
            "The first question was answered in this visit, so the user is not asked again.",
        )?;
        let since = self.stop_at("keep-stop#gates", "The second round.")?;
        self.stage.says(User, "Leave that one out.")?;
        self.answer(since, "drop", "Another round, another answer.")?;
        self.go_on("And on.")?;
        let since = self.stop_at("keep-stop#delivery", "The third round. The user has gone for coffee.")?;
        wait(since, AUTO_ADVANCE);
        let advance = self.args(json!({"auto_advance": true}));
        self.stage.call(
            Orchestrator,
            "respond_checkpoint",
            &advance,
            &["resolved_option"],
            "This gate has a default and a time, 1 s. The server keeps the time.",
        )?;
        self.go_on("And on.")?;
        let since = self.stop_at("ready-to-send", "The loop is done; a last question before the way divides.")?;
        self.stage.says(User, "Yes, send a postcard.")?;
        self.answer(since, "send", "The variable decides which transition is taken.")?;
        self.go_on("The worker is done here.")
    }

    fn restart(&mut self, start: &Value) -> Result<(), Failure> {
        self.stage.scene("A restart, and on: the server is stopped and started again")?;
        let server = (self.place.state)()?;
        self.stage.reconnect(&server)?;
        self.stage.call(
            Orchestrator,
            "start_session",
            start,
            &["session_index", "resumed"],
            "The same slug resumes the same session.",
        )?;
        let about = self.args(json!({}));
        self.stage.call(
            Orchestrator,
            "get_workflow_status",
            &about,
            &["status", "current_activity", "completed_activities", "/variables/wants_postcard"],
            "Where it stands, and what was decided.",
        )?;
        Ok(())
    }

    fn send_postcard(&mut self) -> Result<String, Failure> {
        self.stage.scene("send-postcard: a workflow starts another one")?;
        let report = json!({
            "transition_condition": "wants_postcard == true",
            "step_manifest": [
                {"step_id": "each-stop", "output": "three rounds"},
                {"step_id": "describe-stop", "output": {"stop_note": "three notes", "spoken_text": "three sentences"}},
                {"step_id": "count-stops", "output": "3"},
                {"step_id": "ready-to-send", "output": "send"}
            ],
            "variables_changed": {"stop_count": 3}
        });
        self.enter("send-postcard", report, "The orchestrator says which condition it went by; the server compares.")?;
        self.take(
            "worker-2",
            &["technique:", "triggers:", "- { workflow: postcard"],
            "The activity says which workflow to start.",
        )?;
        let child = self.args(json!({"agent_id": "orchestrator-2", "workflow_id": "postcard"}));
        let answer = self.stage.call(
            Orchestrator,
            "dispatch_child",
            &child,
            &["session_index", "/workflow/initialActivity"],
            "The child has a session of its own inside this one. Its calls carry its own index.",
        )?;
        let child: Option<Value> = serde_json::from_str(&answer.text).ok();
        let child = child.and_then(|answer| answer.get("session_index")?.as_str().map(str::to_owned));
        child.ok_or_else(|| Failure::failed("the child has no session_index"))
    }

    fn write_card(&mut self, child: &str) -> Result<(), Failure> {
        self.stage.scene("write-card: the child's one activity")?;
        let parent = std::mem::replace(&mut self.index, child.to_owned());
        self.enter("write-card", json!({}), "The same calls, on the child's session.")?;
        self.take(
            "worker-3",
            &["artifact:", "audience:", "next:"],
            "No way leads out of this activity, so the answer says how the workflow ends.",
        )?;
        self.write("01-postcard.md", "Sessions, gates, delivery.\nNothing gets lost.\nNobody answers for me.\nAda\n")?;
        let since = self.stop_at("approve-card", "The card is written; may it be posted?")?;
        self.stage.says(User, "Post it.")?;
        self.answer(since, "post", "The child's gates come to the same user.")?;
        self.go_on("The worker reports, and the child ends:")?;
        let report = json!({
            "step_manifest": [
                {"step_id": "write-lines", "output": "01-postcard.md"}, {"step_id": "approve-card", "output": "post"}
            ]
        });
        self.enter("__terminal__", report, "The session of the child is completed.")?;
        self.index = parent;
        let children = self.args(json!({"view": "children"}));
        self.stage.call(
            Orchestrator,
            "inspect_session",
            &children,
            &["/0/workflowId", "/0/status"],
            "The parent knows.",
        )?;
        Ok(())
    }

    fn look_back_and_wrap_up(&mut self) -> Result<(), Failure> {
        self.stage.scene("look-back and wrap-up: a borrowed activity, and the end")?;
        let report = json!({
            "step_manifest": [
                {"step_id": "address-card", "output": {"card_address": "a friend", "spoken_text": "done"}},
                {"step_id": "dispatch-postcard", "output": "completed"}
            ]
        });
        self.enter("look-back", report, "This activity belongs to another workflow, meta; the tour borrows it.")?;
        self.take(
            "worker-2",
            &["id: look-back", "message:", "{summary_line}"],
            "Its question is a fragment that any workflow may use.",
        )?;
        let since = self.stop_at("keep-notes", "One more question.")?;
        self.stage.says(User, "Go on.")?;
        self.answer(since, "go-on", "Recorded.")?;
        self.go_on("Done.")?;
        let report = json!({
            "step_manifest": [
                {"step_id": "sum-up", "output": "three stops, one postcard"}, {"step_id": "keep-notes", "output": "go-on"}
            ]
        });
        self.enter("wrap-up", report, "The last activity.")?;
        self.take(
            "worker-2",
            &["status:", "code:", "limit:"],
            "Three activities are enough for one context. Expected, so no error.",
        )?;
        self.take(
            "worker-4",
            &["- id: tour_summary", "name: tour-summary.md"],
            "A fresh worker gets it, and hears which file to leave behind.",
        )?;
        self.write("04-tour-summary.md", "# The tour\n\nThree stops, one postcard. Read on in the README.\n")?;
        let report = json!({"step_manifest": [{"step_id": "hand-out-souvenir", "output": "04-tour-summary.md"}]});
        self.enter("__terminal__", report, "The workflow is over.")?;
        let about = self.args(json!({}));
        self.stage.call(
            Orchestrator,
            "get_workflow_status",
            &about,
            &["status", "completed_activities"],
            "The whole story stays in the planning folder, beside the work:",
        )?;
        let mut files: Vec<String> = fs::read_dir(&self.place.planning)?
            .filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()))
            .filter(|name| name != ".session.lock")
            .collect();
        files.sort();
        self.stage.tells(&format!("{}/: {}", super::SLUG, files.join(" ")))
    }

    /// Arguments with the session's index in front.
    fn args(&self, arguments: Value) -> Value {
        let mut all = json!({"session_index": self.index});
        if let (Some(all), Value::Object(members)) = (all.as_object_mut(), arguments) {
            all.extend(members);
        }
        all
    }

    fn enter(&mut self, activity: &str, report: Value, meaning: &str) -> Result<(), Failure> {
        let mut arguments = self.args(json!({"activity_id": activity}));
        if let (Some(all), Value::Object(members)) = (arguments.as_object_mut(), report) {
            all.extend(members);
        }
        self.stage.call(Orchestrator, "next_activity", &arguments, &["name"], meaning)?;
        Ok(())
    }

    fn take(&mut self, agent: &str, excerpt: &[&str], meaning: &str) -> Result<(), Failure> {
        let arguments = self.args(json!({"agent_id": agent, "context_tokens": CONTEXT}));
        self.stage.call(Worker, "get_activity", &arguments, excerpt, meaning)?;
        Ok(())
    }

    /// Stops at a gate; answers when that was.
    fn stop_at(&mut self, checkpoint: &str, meaning: &str) -> Result<Instant, Failure> {
        let arguments = self.args(json!({"checkpoint_id": checkpoint}));
        self.stage.call(Worker, "yield_checkpoint", &arguments, &["status"], meaning)?;
        Ok(Instant::now())
    }

    fn answer(&mut self, since: Instant, option: &str, meaning: &str) -> Result<(), Failure> {
        wait(since, self.place.min_response);
        let arguments = self.args(json!({"option_id": option}));
        let excerpt = ["resolved_option", "/effect/setVariable"];
        self.stage.call(Orchestrator, "respond_checkpoint", &arguments, &excerpt, meaning)?;
        Ok(())
    }

    fn go_on(&mut self, meaning: &str) -> Result<(), Failure> {
        let arguments = self.args(json!({}));
        self.stage.call(Worker, "resume_checkpoint", &arguments, &["status"], meaning)?;
        Ok(())
    }

    /// Leaves a file behind, as a worker does.
    fn write(&self, name: &str, text: &str) -> Result<(), Failure> {
        self.place.writing.during(|| fs::write(self.place.planning.join(name), text))?;
        self.stage.tells(&format!("The worker writes {name} into the planning folder."))
    }
}

/// Waits until a time has passed since a moment.
fn wait(since: Instant, time: Duration) {
    thread::sleep(time.saturating_sub(since.elapsed()));
}
