//! `get_activity`: everything a worker needs for the current activity (spec 02 §6, §7; spec 03 §5.9).

use std::num::NonZeroU64;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use workflow_corpus::{Activity, Bundle, StepKind, Unresolved, Warning, Workflow};

use crate::{
    Annotations, Arguments, Call, Environment, Refusal, Reply, Target, Tool,
    batch::{self, Limit},
    body::{Sections, artifact_list, enforcement_notes},
    delivery::{
        BundleMode, Delivery, Projection, SEPARATOR, chars, hashes, refers_back, rules, with_hash, yaml, yaml_member,
    },
    dispatch,
    ledger::{Ledger, content_hash, marker},
    schema::input_schema,
    state::Event,
};

pub(crate) static TOOL: Tool = Tool {
    name: "get_activity",
    title: "Get activity",
    description: "Loads the current activity with everything needed to carry it out: a worker's first call, after the \
                  orchestrator has called next_activity. The text begins with the technique bundle (techniques, rules, \
                  unresolved) and, under step_techniques, the techniques of the ungated steps as far as they fit into \
                  the declared context window; take the steps in order and print '▶ step <step_id>' before each. Below \
                  the line '---' stand activity_rules, enforcement_notes and the activity itself. For a step that is \
                  not in step_techniques call get_technique { step_id }; resources come with get_resource. \
                  context_tokens is required and never remembered. bundle: 'reference' replaces what this agent \
                  already received by a marker with its hash, 'full' sends everything; by default the session's \
                  context mode decides. A worker passes the agent_id of its dispatch: it identifies the context that \
                  receives the content and bounds how many activities one context takes. An answer 'status: refused' \
                  is no error: report the activity as needing its own dispatch.",
    annotations: Annotations { read_only: false, idempotent: true },
    gated: true,
    retryable: false,
    traced: true,
    schema: input_schema::<Params>,
    target,
    run,
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Params {
    /// The session, as returned by start_session.
    session_index: String,
    /// Size of your own context window in tokens. Required on every call; sizes what is bundled.
    context_tokens: NonZeroU64,
    /// 'reference': content you already received is replaced by a marker; 'full': everything. Default: as the session.
    #[serde(default)]
    bundle: Option<BundleMode>,
    /// The identity your dispatch gave you; leave it out only if you are the session's own agent.
    #[serde(default)]
    #[schemars(length(min = 1))]
    agent_id: Option<String>,
}

const BUNDLE_NOTE: &str = "delivery: unchanged = you already received this value; its full copy carries the same \
                           content_hash. Among the rules, an owner with a marker stands for its own rules. If it is no \
                           longer in your context, call get_activity with bundle: full.";

const STEP_NOTE: &str = "Each block is what get_technique { step_id } would return. Take the steps in order and print \
                         \"▶ step <step_id>\" before each; a listed step needs no call. A block of a loop body serves \
                         every iteration. A step that is not listed needs get_technique { step_id } first. Resources \
                         are never included: get_resource { resource_id } when a step needs one.";

fn target(_env: &Environment<'_>, arguments: &Arguments) -> Result<Target, Refusal> {
    let params: Params = arguments.decode(TOOL.name)?;
    Target::session(&params.session_index)
}

fn run(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let params: Params = call.arguments.decode(TOOL.name)?;
    let scope = call.scope(params.agent_id.as_deref())?;
    let tokens = params.context_tokens.get();
    let current = call.current_activity()?;
    let workflow = call.workflow()?;
    call.warn_drift(&workflow)?;
    let session = call.session()?;
    let omitted = if params.agent_id.is_none() { dispatch::warn_omitted_agent(session) } else { None };
    if let Some(limit) = batch::refused(session, &scope, tokens, call.env.settings, &current) {
        return refuse(call, &scope, &current, tokens, limit);
    }
    let activity = call.activity()?;
    let artifacts = call.env.corpus.artifacts(&activity);
    let enforcement = enforcement_notes(&activity);
    let inherited: Vec<String> = workflow.rules.activity.iter().chain(&workflow.rules.universal).cloned().collect();

    let session = call.session()?;
    let dispatched = dispatch::kind(session, &scope);
    let reference = refers_back(params.bundle, session);
    let mut delivery = Response::open(Ledger::open(session, &scope, reference), reference);
    delivery.bundle(call.env.corpus.activity_bundle(&workflow, &activity));
    delivery.steps(call.env, &workflow, &activity, tokens);
    let sections = Sections {
        session_index: &session.session_index,
        activity: &activity,
        activity_rules: delivery.activity_rules(&inherited),
        enforcement_notes: &enforcement,
        artifacts: &artifacts,
    };
    let mut text = delivery.above() + SEPARATOR + &sections.text();
    let size = chars(&text);

    let Response { ledger, bundled, warnings, .. } = delivery;
    call.warnings.extend(warnings);
    call.warnings.extend(omitted);
    let now = call.now();
    let session = call.session_mut()?;
    ledger.save(session, &scope);
    dispatch::record_activity(session, &scope, &current, size, now);
    for step in &bundled {
        session.record(step.event(&current, &scope), now);
        dispatch::record_step(session, &scope, &step.id, now);
    }
    call.advance();
    let session = call.session()?;
    let reading = batch::reading(session, &scope, tokens, call.env.settings).to_map();
    text.push('\n');
    text.push_str(&yaml_member("batch", reading.clone().into()));

    let mut reply = Reply::text(&session.session_index, text);
    let meta = &mut reply.meta;
    if let Some(prefix) = &activity.artifact_prefix {
        meta.insert("artifact_prefix".to_owned(), prefix.clone().into());
    }
    meta.insert("artifacts".to_owned(), artifact_list(&artifacts));
    meta.insert("activity_rules".to_owned(), inherited.into());
    meta.insert("dispatch".to_owned(), dispatched.into());
    meta.insert("batch".to_owned(), reading.into());
    if !bundled.is_empty() {
        let ids: Vec<Value> = bundled.iter().map(|step| step.id.clone().into()).collect();
        meta.insert("bundled_steps".to_owned(), ids.into());
    }
    if !enforcement.is_empty() {
        meta.insert("enforcement_notes".to_owned(), enforcement.into());
    }
    Ok(reply)
}

/// The answer of a batch that is full: expected, no error, and counted once per scope, activity and limit
/// (spec 02 §10.4).
fn refuse(call: &mut Call<'_>, scope: &str, activity: &str, tokens: u64, limit: Limit) -> Result<Reply, Refusal> {
    let session = call.session()?;
    let reading = batch::may_continue(session, scope, tokens, call.env.settings, activity);
    let session_index = session.session_index.clone();
    let known = session.history.iter().any(|event| {
        event.kind() == "batch_refused"
            && event.activity() == activity
            && event.data_text("agentId") == Some(scope)
            && event.data_text("limit") == Some(limit.as_str())
    });
    if !known {
        let event = Event::new("batch_refused")
            .with_activity(activity)
            .with_data("agentId", scope)
            .with_data("limit", limit.as_str())
            .with_data("activities", reading.activities)
            .with_data("chars", reading.delivered_chars)
            .with_data("maxActivities", reading.max_activities)
            .with_data("budgetChars", reading.budget_chars);
        let now = call.now();
        call.session_mut()?.record(event, now);
        call.advance();
    }
    let mut refusal = Map::new();
    refusal.insert("code".to_owned(), "BATCH_FULL".into());
    refusal.insert("limit".to_owned(), limit.as_str().into());
    refusal.insert("session_index".to_owned(), session_index.clone().into());
    refusal.insert("activity".to_owned(), activity.into());
    refusal.insert("agent_id".to_owned(), scope.into());
    for name in ["activities", "max_activities", "delivered_chars", "budget_chars"] {
        refusal.insert(name.to_owned(), reading.to_map().remove(name).unwrap_or_default());
    }
    let used = match limit {
        Limit::ActivityCap => format!("{} of {} activities", reading.activities, reading.max_activities),
        Limit::DeliveryBudget => format!("{} of {} characters", reading.delivered_chars, reading.budget_chars),
    };
    let mut members = Map::new();
    members.insert("status".to_owned(), "refused".into());
    members.extend(refusal.clone());
    members.insert(
        "message".to_owned(),
        format!(
            "Nothing was delivered: agent '{scope}' has taken {used}. Stop here and report activity '{activity}' as \
             needing its own dispatch. The orchestrator dispatches a replacement under a new agent_id."
        )
        .into(),
    );
    let mut reply = Reply::text(&session_index, yaml(members));
    reply.meta.insert("batch".to_owned(), reading.to_map().into());
    reply.meta.insert("refusal".to_owned(), refusal.into());
    Ok(reply)
}

/// The warning for a step that cannot be bundled because its technique is nowhere.
fn unresolved_step(step: &str, unresolved: &Unresolved) -> Warning {
    Warning {
        code: "W_REFERENCE_UNRESOLVED",
        message: format!(
            "Technique '{}' of step '{step}' was left out of step_techniques: {}",
            unresolved.reference, unresolved.reason
        ),
    }
}

/// A step technique that went out with the activity.
struct BundledStep {
    id: String,
    technique: String,
    chars: u64,
    delivery: Delivery,
}

impl BundledStep {
    fn event(&self, activity: &str, scope: &str) -> Event {
        Event::new("technique_bundled")
            .with_activity(activity)
            .with_data("techniqueId", self.technique.as_str())
            .with_data("stepId", self.id.as_str())
            .with_data("agentId", scope)
            .with_data("chars", self.chars)
            .with_data("delivery", self.delivery.as_str())
    }
}

/// The response while it is put together.
struct Response {
    ledger: Ledger,
    members: Map<String, Value>,
    /// Of the rules, which cannot carry their own.
    hashes: Map<String, Value>,
    bundled: Vec<BundledStep>,
    warnings: Vec<Warning>,
    /// Links of bundled techniques that lead nowhere; reported after everything else.
    dangling: Vec<Warning>,
}

impl Response {
    fn open(ledger: Ledger, reference: bool) -> Self {
        let mut members = Map::new();
        if reference {
            members.insert("bundle_mode".to_owned(), "reference".into());
            members.insert("bundle_note".to_owned(), BUNDLE_NOTE.into());
        }
        Self { ledger, members, hashes: Map::new(), bundled: Vec::new(), warnings: Vec::new(), dangling: Vec::new() }
    }

    /// Techniques, rules and unresolved references (spec 02 §3.2).
    fn bundle(&mut self, bundle: Bundle) {
        let mut techniques = Map::new();
        for (name, body) in bundle.techniques {
            let hash = content_hash(&yaml(body.clone()));
            let key = format!("bundle:{name}");
            let entry = if self.ledger.held_before(&key, &hash) {
                marker(&hash).into()
            } else {
                self.ledger.record(key, &hash);
                with_hash(&body.into(), &hash)
            };
            techniques.insert(name, entry);
        }
        if !techniques.is_empty() {
            self.members.insert("techniques".to_owned(), techniques.into());
        }
        if !bundle.rules.is_empty() {
            let (value, hashes) = rules(&bundle.rules, &mut self.ledger);
            self.members.insert("rules".to_owned(), value);
            self.hashes = hashes;
        }
        if !bundle.unresolved.is_empty() {
            self.members.insert("unresolved".to_owned(), bundle.unresolved.into());
        }
        self.warn(bundle.warnings);
    }

    /// The techniques of the ungated steps, in order, until the budget is spent (spec 02 §7.3).
    fn steps(&mut self, env: &Environment<'_>, workflow: &Workflow, activity: &Activity, tokens: u64) {
        let cap = activity.bundle_max_chars;
        if cap == Some(0) {
            return;
        }
        let budget = batch::bundle_budget(tokens, env.settings);
        let mut spent = 0;
        let mut entries = Map::new();
        for step in activity.flat_steps() {
            if step.gated || !matches!(step.step.kind, StepKind::Technique { .. }) {
                continue;
            }
            let composed = match env.corpus.step_technique(workflow, activity, &step) {
                Ok(composed) => composed,
                Err(unresolved) => {
                    self.warn([unresolved_step(&step.qualified_id, &unresolved)]);
                    continue;
                }
            };
            let technique = composed.resolved.id.as_str();
            let projection = Projection::of(technique, &composed.value);
            if cap.is_some_and(|cap| projection.chars > cap) {
                continue;
            }
            let mut entry = Map::new();
            entry.insert("marker".to_owned(), format!("▼ STEP {} · technique {technique}", step.qualified_id).into());
            let delivery = if projection.held(&self.ledger) {
                entry.extend(marker(&projection.hash));
                Delivery::Unchanged
            } else if batch::exceeds(spent + projection.chars, budget) {
                break;
            } else {
                spent += projection.chars;
                entry.extend(projection.deliver(&mut self.ledger));
                Delivery::Full
            };
            self.bundled.push(BundledStep {
                id: step.qualified_id.clone(),
                technique: technique.to_owned(),
                chars: chars(&yaml(entry.clone())),
                delivery,
            });
            entries.insert(step.qualified_id.clone(), entry.into());
            self.warn(composed.warnings.iter().cloned());
            self.dangling.extend(composed.dangling.iter().cloned());
        }
        if !entries.is_empty() {
            self.members.insert("step_techniques".to_owned(), entries.into());
            self.members.insert("step_techniques_note".to_owned(), STEP_NOTE.into());
        }
    }

    /// The small document of the inherited rules: in full with its hash, or a marker; empty without rules.
    fn activity_rules(&mut self, rules: &[String]) -> Map<String, Value> {
        let mut members = Map::new();
        if !rules.is_empty() {
            let value = Value::from(rules.to_vec());
            let hash = content_hash(&workflow_yaml::to_string(&value));
            let key = format!("activity_rules:{hash}");
            if self.ledger.held_before(&key, &hash) {
                members.insert("activity_rules".to_owned(), marker(&hash).into());
            } else {
                self.ledger.record(key, &hash);
                members.insert("activity_rules".to_owned(), value);
                members.insert("content_hashes".to_owned(), hashes("activity_rules", &hash));
            }
        }
        members
    }

    /// What stands above the separator.
    fn above(&mut self) -> String {
        let dangling = std::mem::take(&mut self.dangling);
        self.warn(dangling);
        if !self.hashes.is_empty() {
            self.members.insert("content_hashes".to_owned(), std::mem::take(&mut self.hashes).into());
        }
        yaml(std::mem::take(&mut self.members))
    }

    fn warn(&mut self, warnings: impl IntoIterator<Item = Warning>) {
        for warning in warnings {
            if !self.warnings.contains(&warning) {
                self.warnings.push(warning);
            }
        }
    }
}
