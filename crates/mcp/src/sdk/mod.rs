//! The protocol: the only room that names the SDK.
//!
//! Every revision from 2024-11-05 to 2026-07-28 on one pipe; the handshake, the inline metadata of the newest revision
//! and the shapes of results are the SDK's, the answers are [`Server`]'s.

mod pipe;

use std::io::{Read, Write};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomRequest, CustomResult, ErrorCode,
    ErrorData, GetPromptRequestParams, GetPromptResponse, GetPromptResult, Implementation, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, MetaObject, PaginatedRequestParams, Prompt,
    PromptArgument, PromptMessage, ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse,
    ReadResourceResult, Resource, ResourceContents, ResourceTemplate, Role, ServerCapabilities, ServerConfig, Tool,
    ToolAnnotations,
};
use rmcp::service::{RequestContext, RoleServer, ServerInitializeError, ServiceExt as _};
use serde_json::{Map, Value};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use crate::server::{Outcome, Server};
use crate::{prompt, resource};
use pipe::{End, Pipe};

/// Calls that run at the same time; more wait for their turn.
const PARALLEL: usize = 16;

/// How long an ended connection may take to finish its calls and write their answers.
const GRACE: Duration = Duration::from_millis(800);

/// How often it is checked whether the parent process still lives.
const PARENT_POLL: Duration = Duration::from_millis(250);

/// Serves one client over two byte streams until the input ends, the output is closed, or `orphaned` says that nobody
/// is left to serve. Calls in flight are finished first, within a second.
///
/// # Errors
/// When threads or the runtime cannot be started.
pub fn serve(
    server: &Arc<Server>,
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
    orphaned: impl Fn() -> bool + Send + 'static,
) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_stack_size(8 * 1024 * 1024)
        .enable_time()
        .build()?;
    let served = runtime.block_on(session(Arc::clone(server), input, output, orphaned));
    runtime.shutdown_timeout(Duration::from_millis(50));
    served
}

async fn session(
    server: Arc<Server>,
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
    orphaned: impl Fn() -> bool + Send + 'static,
) -> std::io::Result<()> {
    let end = End::new();
    let pipe = Pipe::new(input, output, end.clone())?;
    let drained = pipe.drain();
    let watched = end.clone();
    let watcher = tokio::spawn(async move {
        while !orphaned() {
            tokio::time::sleep(PARENT_POLL).await;
        }
        tracing::info!("nobody is left to serve");
        watched.now();
    });
    let finished = pipe.finished();
    let service = async {
        match Surface::new(server).serve(pipe).await {
            Ok(running) => {
                if let Err(error) = running.waiting().await {
                    tracing::error!(%error, "the protocol loop failed");
                }
            }
            Err(ServerInitializeError::ConnectionClosed(_)) => tracing::info!("the client left before the handshake"),
            Err(error) => tracing::info!(%error, "no handshake"),
        }
    };
    tokio::select! {
        () = service => {}
        () = async { finished.await; tokio::time::sleep(GRACE).await } => {
            tracing::warn!("calls in flight were left when the client had gone");
        }
    }
    watcher.abort();
    // The streams may be blocked; whoever closed them does not wait for the rest.
    drop(tokio::time::timeout(Duration::from_millis(100), drained).await);
    Ok(())
}

/// The handler.
#[derive(Clone)]
struct Surface {
    server: Arc<Server>,
    turns: Arc<Semaphore>,
}

impl Surface {
    fn new(server: Arc<Server>) -> Self {
        Self { server, turns: Arc::new(Semaphore::new(PARALLEL)) }
    }

    /// Runs blocking work on a thread of its own.
    async fn run<T: Send + 'static>(&self, work: impl FnOnce(&Server) -> T + Send + 'static) -> Result<T, ErrorData> {
        let server = Arc::clone(&self.server);
        let turn = Arc::clone(&self.turns).acquire_owned().await;
        spawn_blocking(move || {
            let result = work(&server);
            drop(turn);
            result
        })
        .await
        .map_err(|error| ErrorData::internal_error(format!("the call did not finish: {error}"), None))
    }

    async fn call(
        &self,
        name: String,
        arguments: Map<String, Value>,
        context: &RequestContext<RoleServer>,
    ) -> Result<Outcome, ErrorData> {
        let cancelled = context.ct.clone();
        let request = context.id.to_string();
        self.run(move |server| server.call(&name, &arguments, &request, &|| cancelled.is_cancelled())).await
    }
}

impl ServerHandler for Surface {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_resources().enable_prompts().build();
        let settings = self.server.settings();
        ServerConfig::new(capabilities)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
            .with_server_info(Implementation::new(settings.server_name.as_str(), settings.server_version.as_str()))
            .with_instructions(prompt::instructions())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools().to_vec()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        tools().iter().find(|tool| tool.name == name).cloned()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let outcome = self.call(request.name.into_owned(), arguments, &context).await?;
        Ok(result(outcome).into())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let workflows = self.run(|server| server.corpus().list().workflows).await?;
        let arguments: Vec<PromptArgument> = prompt::PARAMETERS
            .iter()
            .map(|(name, text)| PromptArgument::new(*name).with_description(*text).with_required(false))
            .collect();
        let prompts = workflows
            .into_iter()
            .map(|workflow| {
                let text = format!("Starts or resumes the workflow {}.", workflow.id);
                Prompt::new(workflow.id, Some(text), Some(arguments.clone())).with_title(workflow.title)
            })
            .collect();
        Ok(ListPromptsResult::with_all_items(prompts))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let name = request.name;
        let found = self
            .run(move |server| {
                let corpus = server.corpus();
                prompt::find(&corpus, &name).ok_or_else(|| {
                    format!("Prompt {name} not found; there is one per workflow: {}", corpus.workflow_ids().join(", "))
                })
            })
            .await?;
        let workflow = found.map_err(|message| ErrorData::invalid_params(message, None))?;
        let message = PromptMessage::new_text(Role::User, prompt::text(&workflow, &arguments));
        Ok(GetPromptResult::new(vec![message]).with_description(workflow.title).into())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let resources = resource::list()
            .into_iter()
            .map(|entry| {
                Resource::new(entry.uri, entry.name).with_description(entry.description).with_mime_type(entry.mime)
            })
            .collect();
        Ok(ListResourcesResult::with_all_items(resources))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let templates = resource::templates()
            .into_iter()
            .map(|entry| {
                ResourceTemplate::new(entry.uri, entry.name)
                    .with_description(entry.description)
                    .with_mime_type(entry.mime)
            })
            .collect();
        Ok(ListResourceTemplatesResult::with_all_items(templates))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = request.uri.clone();
        let read = self.run(move |server| server.read_resource(&uri)).await?;
        match read {
            Ok(document) => {
                let contents = ResourceContents::text(document.text, request.uri).with_mime_type(document.mime);
                Ok(ReadResourceResult::new(vec![contents]).into())
            }
            Err(message) => Err(ErrorData::resource_not_found(message, Some(serde_json::json!({"uri": request.uri})))),
        }
    }

    /// Requests that the SDK could not read: those of a known method have parameters of the wrong shape.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        if request.method == "tools/call" {
            let parameters = request.params.unwrap_or_default();
            let Some(name) = parameters.get("name").and_then(Value::as_str) else {
                return Err(ErrorData::invalid_params("tools/call needs the name of a tool, a text, in `name`", None));
            };
            let sent = parameters.get("arguments").cloned().unwrap_or_default();
            let outcome = match object(&sent) {
                Some(arguments) => self.call(name.to_owned(), arguments, &context).await?,
                None => Server::arguments_are_no_object(name, &sent),
            };
            let value = serde_json::to_value(result(outcome))
                .map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
            return Ok(CustomResult::new(value));
        }
        if KNOWN_METHODS.contains(&request.method.as_str()) {
            let message = format!("Invalid params for {}", request.method);
            return Err(ErrorData::invalid_params(message, None));
        }
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, format!("Method not found: {}", request.method), None))
    }
}

/// Methods whose parameters have a shape.
const KNOWN_METHODS: &[&str] = &[
    "initialize",
    "tools/list",
    "prompts/list",
    "prompts/get",
    "resources/list",
    "resources/read",
    "resources/templates/list",
];

/// Arguments that came as `null` or as JSON text.
fn object(value: &Value) -> Option<Map<String, Value>> {
    match value {
        Value::Null => Some(Map::new()),
        Value::Object(members) => Some(members.clone()),
        Value::String(text) => serde_json::from_str(text).ok(),
        _ => None,
    }
}

fn result(outcome: Outcome) -> CallToolResult {
    let content = vec![ContentBlock::text(outcome.text)];
    let mut result = if outcome.is_error { CallToolResult::error(content) } else { CallToolResult::success(content) };
    result.meta = outcome.meta.map(MetaObject);
    result
}

/// The tools as they are listed; made once.
fn tools() -> &'static [Tool] {
    static TOOLS: OnceLock<Vec<Tool>> = OnceLock::new();
    TOOLS.get_or_init(|| workflow_engine::TOOLS.iter().map(|tool| listed(tool)).collect())
}

fn listed(tool: &workflow_engine::Tool) -> Tool {
    let schema = match (tool.schema)() {
        Value::Object(schema) => schema,
        _ => Map::new(),
    };
    let annotations = ToolAnnotations::new()
        .read_only(tool.annotations.read_only)
        .idempotent(tool.annotations.idempotent)
        .destructive(false)
        .open_world(false);
    Tool::new(tool.name, tool.description, Arc::new(schema)).with_title(tool.title).with_annotations(annotations)
}
