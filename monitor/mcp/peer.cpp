// A request that names a revision in its `_meta` is of 2026-07-28: it is answered by itself. All
// others belong to a client that began with `initialize`. The table says which of the two kinds
// knows a method. A method that the client's kind does not know is answered with -32601.
#include "mcp/peer.h"

#include <algorithm>
#include <utility>

#include "mcp/brief.h"
#include "mcp/task_requests.h"
#include "mcp/tool_calls.h"
#include "mcp/tool_table.h"
#include "text/nearest.h"

namespace watchdog::monitor::mcp {
namespace {

constexpr std::int64_t list_ttl_ms = 3'600'000;  ///< Lists of tools change with the program only.

constexpr const char* instructions =
    "The watchdog knows how autonomous agents are: whether they make progress, are stuck, or wait "
    "for somebody. Ask `agents` first. Use `wait` instead of polling. Slow is not stuck: cancel an "
    "agent only if a person wants that.";

json versions() {
  json list = json::array();
  for (const auto& name : all_names<Revision>()) list.insert(list.begin(), name);
  return list;
}

json about_server(const ServerContext& context) {
  return {
      {"name", "watchdog-monitor"}, {"title", "watchdog-monitor"}, {"version", context.version}};
}

json cached(json result, std::int64_t ttl_ms, const char* scope) {
  result["ttlMs"] = ttl_ms;
  result["cacheScope"] = scope;
  return result;
}

/// A list that is one page. `scope`: who may keep it.
void finish_list(const ExchangePtr& exchange, json result, const char* scope) {
  if (!member(exchange->params, "cursor").is_null())
    return exchange->fail(rpc_invalid_params, "there is no further page");
  exchange->finish(exchange->is_modern() ? cached(std::move(result), list_ttl_ms, scope)
                                         : std::move(result));
}

json missing_tasks() {
  return {{"requiredCapabilities", {{"extensions", {{tasks_extension, json::object()}}}}}};
}

void fail_without_tasks(const ExchangePtr& exchange) {
  exchange->fail(rpc_missing_capability,
                 "the client must declare the extension " + std::string(tasks_extension),
                 missing_tasks());
}

void fail_without_resource(const ExchangePtr& exchange, const std::string& uri) {
  exchange->fail(exchange->is_modern() ? rpc_invalid_params : rpc_resource_not_found,
                 "there is no resource " + uri, {{"uri", uri}});
}

/// The subscriptions of one `subscriptions/listen`.
struct Subscription {
  std::shared_ptr<ResourceWatch> watch;
};

}  // namespace

struct Peer::Method {
  enum class Kind : std::uint8_t { both, old, modern, tasks, old_tasks, modern_tasks };
  std::string_view name;
  Kind kind;
  Handler answer;
};

const Peer::Method Peer::methods[] = {
    {"initialize", Method::Kind::old, &Peer::initialize},
    {"ping", Method::Kind::old, &Peer::ping},
    {"server/discover", Method::Kind::modern, &Peer::discover},
    {"tools/list", Method::Kind::both, &Peer::list_tools},
    {"tools/call", Method::Kind::both, &Peer::call},
    {"resources/list", Method::Kind::both, &Peer::list_resources},
    {"resources/templates/list", Method::Kind::both, &Peer::list_templates},
    {"resources/read", Method::Kind::both, &Peer::read_resource},
    {"resources/subscribe", Method::Kind::old, &Peer::subscribe},
    {"resources/unsubscribe", Method::Kind::old, &Peer::unsubscribe},
    {"subscriptions/listen", Method::Kind::modern, &Peer::listen},
    {"tasks/get", Method::Kind::tasks, &Peer::ask_tasks<get_task>},
    {"tasks/update", Method::Kind::modern_tasks, &Peer::ask_tasks<update_task>},
    {"tasks/result", Method::Kind::old_tasks, &Peer::ask_tasks<task_result>},
    {"tasks/list", Method::Kind::old_tasks, &Peer::ask_tasks<list_tasks>},
    {"tasks/cancel", Method::Kind::tasks, &Peer::ask_tasks<cancel_task>},
};

std::shared_ptr<Exchange> Peer::accept(const Message& message, std::shared_ptr<Source> source,
                                       Send reply, const RequestContext& context) {
  if (message.kind == Message::Kind::notification) notice(message);
  if (message.kind == Message::Kind::response) questions_->accept(message.id, message.result);
  if (message.kind != Message::Kind::request) return nullptr;
  const bool is_modern = member(message.params, "_meta").contains(meta_version);
  const auto exchange = std::make_shared<Exchange>(
      message, is_modern ? Revision::v2026_07_28 : revision_, std::move(source), std::move(reply));
  (void)is_idle();  // forgets those that are answered
  const auto key = message.id.dump();
  if (under_way_.contains(key)) {
    exchange->fail(rpc_invalid_request, "a request with this id is under way");
  } else if (under_way_.size() >= requests_max) {
    exchange->fail(rpc_internal_error, "too many requests at once; wait for answers");
  } else if (declare(exchange, context)) {
    under_way_.emplace(key, exchange);
    dispatch(exchange, message.method);
  }
  return exchange->is_over() ? nullptr : exchange;
}

/// Reads what a request says about its client. Returns false if it answered with an error.
bool Peer::declare(const ExchangePtr& exchange, const RequestContext& context) {
  const auto& meta = member(exchange->params, "_meta");
  exchange->own_session = context.own_session.empty() ? context_.own_session : context.own_session;
  if (!exchange->is_modern()) {
    exchange->can_ask = can_elicit_ && context.can_ask;
    exchange->supports_tasks =
        exchange->revision == Revision::v2025_11_25 && member(exchange->params, "task").is_object();
    return true;
  }
  const auto version = text_in(meta, meta_version);
  if (version != name_of(Revision::v2026_07_28)) {
    exchange->fail(rpc_unsupported_version, "Unsupported protocol version",
                   {{"supported", versions()}, {"requested", version}});
    return false;
  }
  const auto& capabilities = member(meta, meta_capabilities);
  if (!capabilities.is_object()) {
    exchange->fail(rpc_invalid_params,
                   std::string("_meta must have ") + meta_capabilities + ", an object");
    return false;
  }
  exchange->supports_tasks =
      member(member(capabilities, "extensions"), tasks_extension).is_object();
  exchange->can_ask = has_forms(capabilities);
  return true;
}

void Peer::dispatch(const ExchangePtr& exchange, const std::string& method) {
  using Kind = Method::Kind;
  const auto* found = std::ranges::find(methods, method, &Method::name);
  const bool is_modern = exchange->is_modern();
  const bool has_old_tasks = exchange->revision == Revision::v2025_11_25;
  bool is_known = found != std::end(methods);
  if (is_known) {
    const auto kind = found->kind;
    if (is_modern) is_known = kind != Kind::old && kind != Kind::old_tasks;
    if (!is_modern) is_known = kind == Kind::both || kind == Kind::old;
    if (has_old_tasks) is_known = is_known || kind == Kind::tasks || kind == Kind::old_tasks;
  }
  if (!is_known) return exchange->fail(rpc_method_not_found, "there is no method " + method);
  const bool is_of_tasks = found->kind == Kind::tasks || found->kind == Kind::modern_tasks;
  if (is_modern && is_of_tasks && !exchange->supports_tasks) return fail_without_tasks(exchange);
  (this->*found->answer)(exchange);
}

void Peer::notice(const Message& message) {
  if (message.method != "notifications/cancelled") return;
  const auto found = under_way_.find(member(message.params, "requestId").dump());
  if (found == under_way_.end()) return;
  const auto exchange = found->second;
  under_way_.erase(found);
  exchange->close();
}

void Peer::end_waits() {
  watch_.reset();
  for (const auto& [id, exchange] : under_way_)
    if (exchange->work) exchange->close();
}

bool Peer::is_idle() {
  std::erase_if(under_way_, [](const auto& entry) { return entry.second->is_over(); });
  return under_way_.empty();
}

void Peer::close() {
  watch_.reset();
  send_ = nullptr;
  questions_->clear();
  for (const auto& [id, exchange] : std::exchange(under_way_, {})) exchange->close();
}

void Peer::initialize(const ExchangePtr& exchange) {
  const auto asked = named<Revision>(text_in(exchange->params, "protocolVersion"));
  const bool is_old = asked && *asked != Revision::v2026_07_28;
  revision_ = is_old ? *asked : Revision::v2025_11_25;
  can_elicit_ =
      revision_ != Revision::v2025_03_26 && has_forms(member(exchange->params, "capabilities"));
  json capabilities = {{"tools", json::object()}, {"resources", {{"subscribe", true}}}};
  if (revision_ == Revision::v2025_11_25)
    capabilities["tasks"] = {{"list", json::object()},
                             {"cancel", json::object()},
                             {"requests", {{"tools", {{"call", json::object()}}}}}};
  exchange->finish({{"protocolVersion", name_of(revision_)},
                    {"capabilities", std::move(capabilities)},
                    {"serverInfo", about_server(context_)},
                    {"instructions", instructions}});
}

void Peer::discover(const ExchangePtr& exchange) {
  exchange->finish(
      cached({{"supportedVersions", versions()},
              {"capabilities",
               {{"tools", json::object()},
                {"resources", {{"subscribe", true}}},
                {"extensions", {{tasks_extension, json::object()}}}}},
              {"instructions", instructions},
              {"_meta", {{"io.modelcontextprotocol/serverInfo", about_server(context_)}}}},
             list_ttl_ms, "public"));
}

void Peer::ping(const ExchangePtr& exchange) {
  exchange->finish(json::object());
}

void Peer::list_tools(const ExchangePtr& exchange) {
  with_access(context_.loop, exchange, [exchange](const json& access) {
    json permitted = json::array();
    for (auto& tool : tool_list(exchange->revision, !exchange->own_session.empty()))
      if (is_offered(text_in(tool, "name"), access)) permitted.push_back(std::move(tool));
    finish_list(exchange, {{"tools", std::move(permitted)}}, "private");
  });
}

void Peer::call(const ExchangePtr& exchange) {
  const auto tool = text_in(exchange->params, "name");
  const auto schema = schema_of(tool, !exchange->own_session.empty());
  if (schema.is_null()) return exchange->fail(rpc_invalid_params, "there is no tool " + tool);
  const auto& given = member(exchange->params, "arguments");
  const auto arguments = given.is_null() ? json::object() : given;
  if (const auto misuse = misuse_of(schema, arguments))
    return exchange->finish(tool_error(*misuse));
  if (tool == "wait") return wait(exchange, arguments);
  if (!exchange->is_modern() && exchange->supports_tasks)
    return exchange->fail(rpc_method_not_found, tool + " cannot be a task");
  if (stops_something(tool)) return questions_->confirm(exchange, tool, arguments);
  call_tool(context_.loop, exchange, tool, arguments);
}

void Peer::list_resources(const ExchangePtr& exchange) {
  finish_list(exchange,
              {{"resources",
                {{{"uri", sessions_uri},
                  {"name", "sessions"},
                  {"description", "All sessions, those that need a person first"},
                  {"mimeType", resource_type}}}}},
              "public");
}

void Peer::list_templates(const ExchangePtr& exchange) {
  finish_list(exchange,
              {{"resourceTemplates",
                {{{"uriTemplate", session_uri_template},
                  {"name", "session"},
                  {"description", "The progress document of a session"},
                  {"mimeType", resource_type}}}}},
              "public");
}

void Peer::read_resource(const ExchangePtr& exchange) {
  const auto uri = text_in(exchange->params, "uri");
  const auto session = session_of_uri(uri);
  if (!session) return fail_without_resource(exchange, uri);
  const auto target = session->empty() ? "/api/autonomous/progress?sort=attention&limit=200"
                                       : "/api/autonomous/progress/" + *session;
  exchange->source->ask({.target = target}, [&loop = context_.loop, exchange, uri,
                                             is_list = session->empty()](Answer answer) {
    loop.post([&loop, exchange, uri, is_list, answer = std::move(answer)] {
      auto document = json::parse(answer.body, nullptr, false);
      if (answer.status == 404) return fail_without_resource(exchange, uri);
      if (answer.status != 200 || !document.is_object())
        return exchange->fail(rpc_internal_error,
                              text_in(answer_error(answer, "")["content"][0], "text"));
      if (is_list) {
        json rows = json::array();
        for (const auto& row : member(document, "sessions"))
          rows.push_back(brief(row, loop.wall()));
        document = {{"sessions", std::move(rows)}, {"total", member(document, "total")}};
      }
      bound(document, result_bytes_max);
      json result = {
          {"contents", {{{"uri", uri}, {"mimeType", resource_type}, {"text", line_of(document)}}}}};
      exchange->finish(exchange->is_modern() ? cached(std::move(result), 0, "private")
                                             : std::move(result));
    });
  });
}

void Peer::subscribe(const ExchangePtr& exchange) {
  const auto uri = text_in(exchange->params, "uri");
  if (!watch_)
    watch_ = std::make_shared<ResourceWatch>(
        context_.loop, source_, [weak = weak_from_this()](const std::string& changed) {
          const auto self = weak.lock();
          if (self && self->send_)
            self->send_(notification_of("notifications/resources/updated", {{"uri", changed}}));
        });
  if (!watch_->add(uri)) return fail_without_resource(exchange, uri);
  exchange->finish(json::object());
}

void Peer::unsubscribe(const ExchangePtr& exchange) {
  if (watch_) watch_->remove(text_in(exchange->params, "uri"));
  exchange->finish(json::object());
}

void Peer::listen(const ExchangePtr& exchange) {
  const auto& wanted = member(exchange->params, "notifications");
  if (!wanted.is_object())
    return exchange->fail(rpc_invalid_params, "\"notifications\" must be an object");
  const auto& task_ids = member(wanted, "taskIds");
  if (task_ids.is_array() && !exchange->supports_tasks) return fail_without_tasks(exchange);
  // The exchange owns the subscription, so it is named weakly here.
  const std::weak_ptr<Exchange> weak = exchange;
  const auto about = [meta = json{{meta_subscription, exchange->id()}}](json params) {
    params["_meta"] = meta;
    return params;
  };
  const auto held = std::make_shared<Subscription>();
  held->watch = std::make_shared<ResourceWatch>(
      context_.loop, exchange->source, [weak, about](const std::string& uri) {
        if (const auto open = weak.lock())
          open->notify("notifications/resources/updated", about({{"uri", uri}}));
      });
  exchange->work = held;
  json agreed = json::object();
  for (const auto& uri : member(wanted, "resourceSubscriptions"))
    if (uri.is_string() && held->watch->add(uri)) agreed["resourceSubscriptions"].push_back(uri);
  std::vector<std::shared_ptr<TaskBook::Task>> tasks;
  for (const auto& id : task_ids)
    if (auto task = id.is_string() ? context_.tasks.find(exchange->source, id) : nullptr)
      tasks.push_back(std::move(task));
  for (const auto& task : tasks) agreed["taskIds"].push_back(task->id);
  exchange->notify("notifications/subscriptions/acknowledged", about({{"notifications", agreed}}));
  for (const auto& task : tasks) {
    const auto announce = [weak, about](const TaskBook::Task& changed) {
      if (const auto open = weak.lock())
        open->notify("notifications/tasks", about(task_json(changed)));
    };
    announce(*task);
    task->listeners.emplace_back(held, announce);
  }
}

}  // namespace watchdog::monitor::mcp
