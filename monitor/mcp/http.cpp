// A request of 2026-07-28 has a peer of its own, which goes with its answer. A client of an older
// revision has a session, which begins with `initialize`; without a session id it is answered as
// far as that is possible. Requests that wait for something are answered with a stream of events,
// because the server then notices when the client hangs up. All others are one JSON document.
#include "mcp/http.h"

#include <algorithm>
#include <chrono>
#include <future>
#include <mutex>
#include <utility>
#include <vector>

#include "facts/ids.h"
#include "mcp/api_source.h"

namespace watchdog::monitor::mcp {
namespace {

constexpr std::string_view event_stream = "text/event-stream";

/// The body of a response: messages as server-sent events. From any thread.
class EventBody final : public BodySource {
 public:
  EventBody(std::function<bool()> allowed, std::function<void()> gone)
      : allowed_(std::move(allowed)), gone_(std::move(gone)) {}
  ~EventBody() override {
    if (gone_) gone_();
  }

  void add(const json& message, bool is_last) {
    auto piece =
        std::make_shared<const std::string>("event: message\ndata: " + line_of(message) + "\n\n");
    std::function<void()> wake;
    {
      const std::lock_guard guard(mutex_);
      if (pending_bytes_ > pending_bytes_max) return close_locked();
      pending_bytes_ += piece->size();
      pending_.push_back(std::move(piece));
      is_complete_ = is_complete_ || is_last;
      wake = wake_;
    }
    if (wake) wake();
  }

  void begin(std::function<void()> wake) override {
    {
      const std::lock_guard guard(mutex_);
      wake_ = wake;
    }
    wake();
  }
  std::vector<Piece> drain() override {
    const std::lock_guard guard(mutex_);
    pending_bytes_ = 0;
    is_drained_ = is_complete_;
    return std::exchange(pending_, {});
  }
  [[nodiscard]] BodyState state() const override {
    const std::lock_guard guard(mutex_);
    if (is_broken_) return BodyState::broken;
    return is_drained_ ? BodyState::complete : BodyState::open;
  }
  [[nodiscard]] bool allowed() override { return !allowed_ || allowed_(); }
  /// No more comes.
  void finish() {
    std::function<void()> wake;
    {
      const std::lock_guard guard(mutex_);
      is_complete_ = true;
      wake = wake_;
    }
    if (wake) wake();
  }

 private:
  /// A client that reads nothing is not waited for.
  static constexpr std::size_t pending_bytes_max = 4 * 1024 * 1024;
  void close_locked() { is_broken_ = true; }

  const std::function<bool()> allowed_;
  const std::function<void()> gone_;
  mutable std::mutex mutex_;
  std::function<void()> wake_;
  std::vector<Piece> pending_;
  std::size_t pending_bytes_ = 0;
  bool is_complete_ = false;
  bool is_drained_ = false;
  bool is_broken_ = false;
};

Response stream_of(std::shared_ptr<BodySource> body, const std::string& session) {
  return {.content_type = std::string(event_stream),
          .extra_headers = "X-Accel-Buffering: no\r\n" +
                           (session.empty() ? "" : "Mcp-Session-Id: " + session + "\r\n"),
          .source = std::move(body)};
}

Response json_of(const json& message, int status, const std::string& session = {}) {
  return {.status = status,
          .body = line_of(message),
          .extra_headers = session.empty() ? "" : "Mcp-Session-Id: " + session + "\r\n"};
}

Response refusal(int code, const std::string& words, int status, json id = {}) {
  return json_of(response_of(RpcError{.code = code, .message = words, .id = std::move(id)}),
                 status);
}

/// The status of an answer of 2026-07-28; older revisions have 200 for each.
int status_of(const json& answer) {
  const auto code = number_in(member(answer, "error"), "code");
  if (code == rpc_method_not_found) return 404;
  const bool is_bad = code == rpc_header_mismatch || code == rpc_missing_capability ||
                      code == rpc_unsupported_version || code == rpc_invalid_request ||
                      code == rpc_parse_error;
  return is_bad ? 400 : 200;
}

/// True for requests whose answer comes when something happens.
bool is_long(const Message& message) {
  if (message.method == "subscriptions/listen" || message.method == "tasks/result") return true;
  if (message.method != "tools/call") return false;
  const auto tool = text_in(message.params, "name");
  return tool == "wait" || tool == "check";
}

/// The session that the client's configuration names as its own; empty: none.
std::string session_named(const McpRequest& request) {
  return as_session_id(request.http.session);
}

std::optional<std::string> base64_decoded(std::string_view text) {
  static constexpr std::string_view letters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  if (text.size() % 4 != 0) return std::nullopt;
  while (text.ends_with('=')) text.remove_suffix(1);
  std::string decoded;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char letter : text) {
    const auto value = letters.find(letter);
    if (value == letters.npos) return std::nullopt;
    bits = (bits << 6U) | static_cast<std::uint32_t>(value);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    decoded += static_cast<char>((bits >> static_cast<unsigned>(count)) & 0xFFU);
  }
  return decoded;
}

/// Returns the text that a header means; nothing: it cannot be read.
std::optional<std::string> header_text(std::string_view value) {
  constexpr std::string_view begin = "=?base64?";
  constexpr std::string_view end = "?=";
  if (!value.starts_with(begin) || !value.ends_with(end) ||
      value.size() < begin.size() + end.size())
    return std::string(value);
  return base64_decoded(value.substr(begin.size(), value.size() - begin.size() - end.size()));
}

/// The answer to one POST, as far as it is there.
struct PostReply {
  Reply reply;
  std::string session;  ///< New; empty: none.
  bool is_modern = false;
  bool has_stream = false;            ///< Else one document.
  std::weak_ptr<EventBody> stream{};  ///< The connection owns it, so it goes with the client.

  void send(const json& message, bool is_last) {
    if (has_stream) {
      if (const auto open = stream.lock()) open->add(message, is_last);
      return;
    }
    // Without a stream, notifications have no way to the client.
    if (!is_last) return;
    if (const auto answer = std::exchange(reply, nullptr))
      answer(json_of(message, is_modern ? status_of(message) : 200, session));
  }
};

}  // namespace

std::optional<RpcError> header_error(const Request& request, const Message& message) {
  const auto mismatch = [&](const std::string& words) {
    return RpcError{
        .code = rpc_header_mismatch, .message = "Header mismatch: " + words, .id = message.id};
  };
  const auto version = text_in(member(message.params, "_meta"), meta_version);
  if (request.mcp_version != version)
    return mismatch("MCP-Protocol-Version is '" + request.mcp_version + "', and the message has '" +
                    version + "'");
  if (request.mcp_method != message.method)
    return mismatch("Mcp-Method is '" + request.mcp_method + "', and the message has '" +
                    message.method + "'");
  const auto& method = message.method;
  const char* source = method == "tools/call" || method == "prompts/get" ? "name"
                       : method == "resources/read"                      ? "uri"
                       : method.starts_with("tasks/")                    ? "taskId"
                                                                         : nullptr;
  if (source == nullptr) return std::nullopt;
  const auto name = text_in(message.params, source);
  if (header_text(request.mcp_name) == name) return std::nullopt;
  return mismatch("Mcp-Name is '" + request.mcp_name + "', and the message has '" + name + "'");
}

HttpHandler::HttpHandler(Api& api, std::string version)
    : api_(api), context_{loop_, std::move(version)} {}

HttpHandler::~HttpHandler() {
  stop();
}

void HttpHandler::stop() {
  loop_.stop();
  for (const auto& [id, session] : std::exchange(sessions_, {})) session.peer->close();
  for (const auto& peer : std::exchange(single_, {})) peer->close();
  context_.tasks.clear();
}

Result<void> HttpHandler::keep_tasks_in(std::filesystem::path file) {
  return context_.tasks.keep_in(std::move(file));
}

void HttpHandler::forget(std::vector<std::string> sessions) {
  constexpr std::chrono::milliseconds patience{500};
  const auto done = std::make_shared<std::promise<void>>();
  loop_.post([this, done, sessions = std::move(sessions)] {
    context_.tasks.forget(sessions);
    done->set_value();
  });
  (void)done->get_future().wait_for(patience);
}

void HttpHandler::answer(McpRequest request, Reply reply) {
  loop_.post([this, request = std::move(request), reply = std::move(reply)] {
    if (request.http.method == Method::post) return post(request, reply);
    if (request.http.method == Method::del) return end_session(request, reply);
    open_stream(request, reply);
  });
}

void HttpHandler::post(const McpRequest& request, const Reply& reply) {
  if (!request.http.content_type.starts_with("application/json"))
    return reply(error_response(415, "malformed", "Content-Type must be application/json"));
  if (request.http.body.size() > message_bytes_max)
    return reply(
        refusal(rpc_invalid_request,
                "a message may have at most " + std::to_string(message_bytes_max) + " bytes", 413));
  const auto read = message_from(request.http.body);
  if (!read) return reply(json_of(response_of(read.error()), 400));
  const auto& message = *read;
  const auto stated = named<Revision>(request.http.mcp_version);
  const bool is_modern = member(message.params, "_meta").contains(meta_version);
  if (is_modern || stated == Revision::v2026_07_28) {
    if (message.kind != Message::Kind::request) return reply({.status = 202});
    if (const auto error = header_error(request.http, message))
      return reply(json_of(response_of(*error), 400));
    return accept(request, message, std::make_shared<Peer>(context_, nullptr), "", reply);
  }
  if (!request.http.mcp_version.empty() && !stated)
    return reply(refusal(rpc_unsupported_version, "Unsupported protocol version", 400, message.id));
  const auto source = std::make_shared<ApiSource>(api_, loop_, request.http, request.caller);
  if (message.kind == Message::Kind::request && message.method == "initialize") {
    const auto peer = std::make_shared<Peer>(context_, source);
    return accept(request, message, peer, begin_session(request, peer), reply);
  }
  std::shared_ptr<Peer> peer;
  if (request.http.mcp_session.empty()) {
    peer = std::make_shared<Peer>(context_, source);
    peer->settle(stated.value_or(Revision::v2025_03_26));
  } else {
    auto* session = session_of(request, reply);
    if (session == nullptr) return;
    peer = session->peer;
  }
  if (message.kind == Message::Kind::request) return accept(request, message, peer, "", reply);
  (void)peer->accept(message, source, {});
  reply({.status = 202});
}

void HttpHandler::accept(const McpRequest& request, const Message& message,
                         const std::shared_ptr<Peer>& peer, const std::string& session,
                         const Reply& reply) {
  const bool streams = request.http.accept.find(event_stream) != std::string::npos;
  auto asked = message;
  // Progress would have no way to the client.
  if (!streams && asked.params.contains("_meta") && asked.params["_meta"].is_object())
    asked.params["_meta"].erase("progressToken");
  if (!streams && message.method == "subscriptions/listen")
    return reply(
        refusal(rpc_invalid_request, "Accept must have text/event-stream", 406, message.id));
  const auto made = std::make_shared<PostReply>(
      PostReply{.reply = reply,
                .session = session,
                .is_modern = member(message.params, "_meta").contains(meta_version)});
  const bool is_single = session.empty() && request.http.mcp_session.empty();
  if (is_single) single_.insert(peer);
  const auto over = [this, peer, is_single] {
    if (!is_single) return;
    single_.erase(peer);
    peer->close();
  };
  // The first messages, until it is known whether the answer is a stream.
  const auto early = std::make_shared<std::optional<std::vector<json>>>(std::vector<json>{});
  const auto exchange =
      peer->accept(asked, std::make_shared<ApiSource>(api_, loop_, request.http, request.caller),
                   [made, early, over, &loop = loop_](const json& answer, bool is_last) {
                     if (*early && !is_last) {
                       (*early)->push_back(answer);
                       return;
                     }
                     made->send(answer, is_last);
                     if (is_last) loop.post(over);
                   },
                   {.can_ask = streams || made->is_modern, .own_session = session_named(request)});
  if (exchange && streams && (is_long(message) || exchange->is_asking)) {
    const auto gone = [this, weak = std::weak_ptr<Exchange>(exchange), over] {
      loop_.post([weak, over] {
        if (const auto open = weak.lock()) open->close();
        over();
      });
    };
    const auto body = std::make_shared<EventBody>(request.allowed, gone);
    made->stream = body;
    made->has_stream = true;
    // A client that cancels by a notification keeps its connection open.
    exchange->closed = [weak = std::weak_ptr<EventBody>(body)] {
      if (const auto open = weak.lock()) open->finish();
    };
    for (const auto& answer : **early) made->send(answer, false);
    std::exchange(made->reply, nullptr)(stream_of(body, ""));
  }
  early->reset();
}

HttpHandler::Session* HttpHandler::session_of(const McpRequest& request, const Reply& reply) {
  const auto found = sessions_.find(request.http.mcp_session);
  if (found == sessions_.end() || found->second.owner != request.caller) {
    reply(error_response(404, "not_found", "there is no such MCP session; initialize again"));
    return nullptr;
  }
  found->second.used = loop_.wall();
  return &found->second;
}

std::string HttpHandler::begin_session(const McpRequest& request,
                                       const std::shared_ptr<Peer>& peer) {
  drop_idle();
  // 160 random bits.
  auto id = new_ulid(loop_.wall()) + new_ulid(loop_.wall());
  sessions_.emplace(id, Session{.peer = peer, .owner = request.caller, .used = loop_.wall()});
  return id;
}

void HttpHandler::finish_stream(const Session& session) {
  if (const auto stream = std::static_pointer_cast<EventBody>(session.stream.lock()))
    stream->finish();
}

void HttpHandler::end(const Session& session) {
  session.peer->close();
  finish_stream(session);
}

void HttpHandler::drop_idle() {
  const auto now = loop_.wall();
  const auto is_idle = [&](const Session& session) {
    return session.stream.expired() && session.peer->is_idle();
  };
  std::erase_if(sessions_, [&](const auto& entry) {
    const auto& session = entry.second;
    if (now - session.used < session_idle_max || !is_idle(session)) return false;
    end(entry.second);
    return true;
  });
  while (sessions_.size() >= sessions_max) {
    // The caller with the most sessions loses one, so nobody ends the sessions of others.
    std::map<std::string_view, std::size_t> counts;
    for (const auto& [id, session] : sessions_) ++counts[session.owner];
    const auto oldest = std::ranges::min_element(sessions_, {}, [&](const auto& entry) {
      return std::pair(-static_cast<std::ptrdiff_t>(counts[entry.second.owner]), entry.second.used);
    });
    end(oldest->second);
    sessions_.erase(oldest);
  }
}

void HttpHandler::open_stream(const McpRequest& request, const Reply& reply) {
  if (request.http.mcp_session.empty())
    return reply(error_response(400, "malformed", "Mcp-Session-Id is missing: POST initialize"));
  if (request.http.accept.find(event_stream) == std::string::npos)
    return reply(error_response(406, "malformed", "Accept must have text/event-stream"));
  auto* session = session_of(request, reply);
  if (session == nullptr) return;
  const auto body = std::make_shared<EventBody>(request.allowed, nullptr);
  if (request.http.method == Method::head) return reply(stream_of(body, ""));
  const std::weak_ptr<EventBody> weak = body;
  finish_stream(*session);
  session->stream = body;
  session->peer->send_to([weak](const json& message) {
    if (const auto open = weak.lock()) open->add(message, false);
  });
  reply(stream_of(body, ""));
}

void HttpHandler::end_session(const McpRequest& request, const Reply& reply) {
  if (session_of(request, reply) == nullptr) return;
  const auto found = sessions_.find(request.http.mcp_session);
  end(found->second);
  sessions_.erase(found);
  reply({.status = 204});
}

}  // namespace watchdog::monitor::mcp
