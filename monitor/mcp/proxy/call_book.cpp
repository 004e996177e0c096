// Messages pass as they came. Four things differ from a pipe. A call without a token for progress
// gets one of the proxy, which keeps the progress to itself. A call that does not move is answered
// with an error and cancelled, and its late result is dropped. A client that takes tasks gets one
// for a call that takes long. All calls are answered when the server ends. Ids of the proxy are
// texts that begin with the prefix of its tokens, so they differ from those of clients.
#include "mcp/proxy/call_book.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "mcp/peer.h"
#include "mcp/proxy/progress_token.h"
#include "privacy/content.h"

namespace watchdog::monitor::mcp {
namespace {

constexpr std::size_t news_bytes_max = 200;
/// A longer pause between two steps is not the calls' fault.
constexpr Millis stall_min{10'000};
constexpr Millis tick_max{1'000};
/// Dropped texts that are shown, and how much of each.
constexpr std::int64_t junk_shown_max = 5;
constexpr std::string_view white = " \t\r\n";
constexpr std::size_t junk_chars_max = 200;

std::string news_of(const json& params) {
  const auto& data = member(params, "data");
  auto text = data.is_string() ? data.get<std::string>() : line_of(data);
  if (text.size() > news_bytes_max) text.resize(news_bytes_max);
  return text;
}

void answer(CallBookEnds& ends, const json& id, json result) {
  ends.to_client(line_of(response_of(id, std::move(result))));
}

/// True for a text that no client can take for messages: a banner, or a line of a log. Texts that
/// look like messages pass, also in a form that the proxy does not read.
bool is_junk(std::string_view text, const std::optional<Envelope>& seen) {
  if (seen &&
      (seen->kind != Message::Kind::response || !seen->result.is_null() || !seen->error.is_null()))
    return false;
  // As messages and lists of them begin. `[info]` and `{main}` are of logs.
  std::string first;
  for (const char letter : text) {
    if (white.find(letter) == std::string_view::npos) first += letter;
    if (first.size() == 2) break;
  }
  const bool is_document = first == "{\"" || first == "[{";
  return !is_document || text.find("\"jsonrpc\"") == std::string_view::npos;
}

/// Keeps it from the client, which may be strict. `number`: of such texts so far.
void tell_of_junk(CallBookEnds& ends, std::int64_t number, std::string_view text) {
  if (number > junk_shown_max) return;
  ends.tell(
      "the tool server wrote a text to its standard output that is not a message, and is not "
      "passed on: " +
      std::string(
          first_characters(redact(text.substr(text.find_first_not_of(white))), junk_chars_max)));
  if (number == junk_shown_max) ends.tell("further texts of that kind are dropped without a word");
}

/// Says which of the requests has had no answer for a while.
template <class Asked>
void tell_of_mute(CallBookEnds& ends, Asked& asked_requests, const CallBook::Options& options,
                  Instant now) {
  const auto after = std::min(options.mute_after, options.idle.value_or(options.mute_after));
  for (auto& [key, asked] : asked_requests) {
    // A task's result may take as long as the task.
    if (asked.is_told || !asked.task.empty() || now - asked.begun < after) continue;
    asked.is_told = true;
    ends.tell("the tool server has not answered \"" +
              std::string(first_characters(redact(asked.method), junk_chars_max)) + "\" for " +
              std::to_string((now - asked.begun).count() / 1'000) +
              " s; the client still waits for it");
  }
}

std::string cancel_text(const json& id, const std::string& why) {
  return line_of(notification_of("notifications/cancelled", {{"requestId", id}, {"reason", why}}));
}

/// The name of the program at the other end; empty: the request does not say it.
std::string client_in(const Envelope& seen) {
  const bool begins = seen.method == "initialize";
  const auto& info = begins ? member(seen.params, "clientInfo")
                            : member(seen.meta(), "io.modelcontextprotocol/clientInfo");
  return text_in(info, "name");
}

/// Answers a call with a task, if there is room for one.
void answer_with_task(CallBookEnds& ends, OwnTasks& tasks, ProxiedCall& call, WallTime now) {
  auto* task = tasks.begin({}, true, now);
  if (task == nullptr) return;
  const auto& words = call.movement.words();
  task->words = words.empty() ? "The tool server works on it" : words;
  call.own_task = task->id;
  call.is_unsent = false;
  auto result = task_form(*task);
  result["resultType"] = "task";
  answer(ends, call.id, std::move(result));
}

}  // namespace

CallBook::CallBook(CallBookEnds& ends, Options options)
    : ends_(ends),
      options_(std::move(options)),
      line_([this](std::string message) { ends_.to_server(std::move(message)); },
            options_.token_prefix) {}

void CallBook::from_client(std::string message, Instant now) {
  const auto seen = envelope_of(message);
  if (!seen) return line_.send(std::move(message));
  switch (seen->kind) {
    case Message::Kind::request:
      return on_request(*seen, std::move(message), now);
    case Message::Kind::notification:
      return on_client_notice(*seen, std::move(message), now);
    case Message::Kind::response:
      if (server_asked_.erase(seen->key()) > 0 && server_asked_.empty()) pause_all(false, now);
      line_.send(std::move(message));
  }
}

void CallBook::on_request(const Envelope& seen, std::string message, Instant now) {
  if (auto name = client_in(seen); !name.empty()) tally_.client = std::move(name);
  if (line_.is_full(message.size()))
    return ends_.to_client(line_of(response_of(RpcError{
        .message = "the tool server begins again; too much waits for it", .id = seen.id})));
  if (seen.method == "tools/call") return begin_call(seen, std::move(message), now);
  if (seen.method.starts_with("tasks/") && answer_own_task(seen, now)) return;
  if (seen.method == "initialize") line_.remember(message);
  if (asked_.size() < requests_max)
    asked_.emplace(seen.key(),
                   Asked{.id = seen.id,
                         .method = seen.method,
                         .task = seen.method.starts_with("tasks/") ? text_in(seen.params, "taskId")
                                                                   : std::string(),
                         .begun = now});
  line_.send(std::move(message));
}

void CallBook::begin_call(const Envelope& seen, std::string message, Instant now) {
  const auto key = seen.key();
  ProxiedCall call(seen, options_.idle, now);
  if (open() >= options_.calls_max)
    return answer(ends_, seen.id, refused_result(call.tool, options_.calls_max, call.is_modern));
  // A second call of the same id breaks the protocol: it is the server's to answer.
  if (calls_.contains(key)) return line_.send(std::move(message));
  given_up_.erase(key);
  ++tally_.calls;
  if (options_.names_calls && call.owner.session.empty() && call.call_id.empty())
    call.call_id = line_.next_id();
  const auto& token = member(call.meta, "progressToken");
  if (token.is_null()) {
    const auto own = line_.next_id();
    if (auto asked = with_progress_token(message, own)) {
      message = std::move(*asked);
      call.token_key = json(own).dump();
      call.is_own_token = true;
    }
  } else {
    call.client_token = token;
    call.token_key = token.dump();
  }
  if (!call.token_key.empty()) tokens_.emplace(call.token_key, key);
  if (!server_asked_.empty()) call.movement.pause(PauseReason::awaiting_input, now);
  ends_.report(call.owner, call.call_report(member(seen.params, "arguments")));
  if (calls_.empty() && server_tasks_.empty()) ticked_ = now;
  calls_.emplace(key, std::move(call));
  line_.send(std::move(message));
}

bool CallBook::answer_own_task(const Envelope& seen, Instant now) {
  auto* task = own_tasks_.find(text_in(seen.params, "taskId"));
  if (task == nullptr) return false;
  if (seen.method == "tasks/get") {
    answer(ends_, seen.id, task_form(*task));
  } else if (seen.method == "tasks/result" && !task->result.is_null()) {
    answer(ends_, seen.id, task->result);
  } else {
    if (seen.method == "tasks/cancel" && !task->is_over()) {
      const auto found = std::ranges::find_if(
          calls_, [&](const auto& entry) { return entry.second.own_task == task->id; });
      task->status = "cancelled";
      task->words = "The client cancelled the call";
      task->updated = options_.wall();
      if (found != calls_.end()) {
        line_.send(cancel_text(found->second.id, "the client cancelled the task"));
        ends_.report(found->second.owner,
                     found->second.cancelled_report("it cancelled the task", now));
        given_up_.add(found->first);
        tokens_.erase(found->second.token_key);
        calls_.erase(found);
      }
    }
    answer(ends_, seen.id, task->is_modern ? json{{"resultType", "complete"}} : task_form(*task));
  }
  return true;
}

void CallBook::on_client_notice(const Envelope& seen, std::string message, Instant now) {
  if (seen.method != "notifications/cancelled") return line_.send(std::move(message));
  const auto key = member(seen.params, "requestId").dump();
  asked_.erase(key);
  // The server was asked to stop it before.
  if (given_up_.contains(key)) return;
  if (const auto found = calls_.find(key); found != calls_.end()) {
    ends_.report(found->second.owner,
                 found->second.cancelled_report(text_in(seen.params, "reason"), now));
    tokens_.erase(found->second.token_key);
    calls_.erase(found);
  }
  line_.send(std::move(message));
}

void CallBook::from_server(std::string message, Instant now) {
  message = without_mark(std::move(message));
  auto seen = envelope_of(message);
  if (is_junk(message, seen)) {
    if (message.find_first_not_of(white) != std::string::npos)
      tell_of_junk(ends_, ++tally_.junk, message);
    return;
  }
  if (!seen) return ends_.to_client(std::move(message));
  switch (seen->kind) {
    case Message::Kind::response:
      return on_response(*seen, std::move(message), now);
    case Message::Kind::notification:
      return on_server_notice(*seen, std::move(message), now);
    case Message::Kind::request:
      if (server_asked_.size() < requests_max) {
        if (server_asked_.empty()) pause_all(true, now);
        server_asked_.insert(seen->key());
      }
      ends_.to_client(std::move(message));
  }
}

void CallBook::on_response(const Envelope& seen, std::string message, Instant now) {
  ++tally_.answers;
  const auto key = seen.key();
  if (line_.is_own_answer(key)) return;
  if (given_up_.erase(key)) {
    ++tally_.late;
    return;
  }
  if (const auto found = calls_.find(key); found != calls_.end())
    return end_call(found, seen, std::move(message), now);
  if (const auto asked = asked_.find(key); asked != asked_.end()) {
    const auto task = asked->second.task;
    const auto method = asked->second.method;
    asked_.erase(asked);
    if (method == "tasks/result") {
      if (const auto found = server_tasks_.find(task); found != server_tasks_.end()) {
        ends_.report(found->second.owner, found->second.end_report(seen.result, seen.error));
        server_tasks_.erase(found);
      }
    } else if (!task.empty()) {
      on_task(task, seen.result, now);
    }
  }
  ends_.to_client(std::move(message));
}

void CallBook::end_call(Calls::iterator found, const Envelope& seen, std::string message,
                        Instant now) {
  auto call = std::move(found->second);
  calls_.erase(found);
  tokens_.erase(call.token_key);
  const auto& old_task = member(seen.result, "task");
  const auto& state = old_task.is_object() ? old_task : seen.result;
  const bool is_task = old_task.is_object() || text_in(seen.result, "resultType") == "task";
  const auto task = text_in(state, "taskId");
  if (is_task && !task.empty() && call.own_task.empty() && server_tasks_.size() < requests_max) {
    call.server_task = task;
    (void)call.movement.task(text_in(state, "lastUpdatedAt"), text_in(state, "statusMessage"), now);
    server_tasks_.insert_or_assign(task, std::move(call));
    return ends_.to_client(std::move(message));
  }
  ends_.report(call.owner, call.end_report(seen.result, seen.error));
  if (call.own_task.empty()) return ends_.to_client(std::move(message));
  own_tasks_.finish(call.own_task, options_.wall(),
                    seen.error.is_null()
                        ? seen.result
                        : error_result(text_in(seen.error, "message"), call.is_modern));
}

void CallBook::on_task(const std::string& task, const json& state, Instant now) {
  const auto found = server_tasks_.find(task);
  if (found == server_tasks_.end() || !state.is_object()) return;
  auto& call = found->second;
  const auto status = text_in(state, "status");
  if (status == "completed" || status == "failed" || status == "cancelled") {
    // In 2025-11-25 the result comes by a request of its own.
    if (!call.is_modern && status == "completed") return;
    auto error = member(state, "error");
    if (status != "completed" && error.is_null()) error = {{"message", "the task is " + status}};
    ends_.report(call.owner, call.end_report(member(state, "result"), error));
    server_tasks_.erase(found);
    return;
  }
  if (call.movement.task(text_in(state, "lastUpdatedAt"), text_in(state, "statusMessage"), now))
    if (call.moved(now)) ends_.report(call.owner, call.progress_report(now));
}

void CallBook::on_server_notice(const Envelope& seen, std::string message, Instant now) {
  if (seen.method == "notifications/progress") return on_progress(seen, std::move(message), now);
  if (seen.method == "notifications/tasks" || seen.method == "notifications/tasks/status") {
    on_task(text_in(seen.params, "taskId"), seen.params, now);
  } else if (seen.method == "notifications/message") {
    // It does not say which call it belongs to: it may be any that is open.
    const auto news = news_of(seen.params);
    for (auto& [key, call] : calls_)
      if (call.movement.message(news, now)) {
        call.news = news;
        if (call.moved(now)) ends_.report(call.owner, call.progress_report(now));
      }
  }
  ends_.to_client(std::move(message));
}

void CallBook::on_progress(const Envelope& seen, std::string message, Instant now) {
  const auto key = member(seen.params, "progressToken").dump();
  const auto token = tokens_.find(key);
  if (token == tokens_.end()) {
    // Of the proxy, for a call that is over: the client did not ask for it.
    if (line_.is_own_id(key)) {
      ++tally_.swallowed;
      return;
    }
    return ends_.to_client(std::move(message));
  }
  const auto found = calls_.find(token->second);
  if (found == calls_.end()) return;
  auto& call = found->second;
  const auto& value = member(seen.params, "progress");
  const auto& total = member(seen.params, "total");
  const auto text = text_in(seen.params, "message");
  const double reached = value.is_number() ? value.get<double>() : std::nan("");
  const bool has_moved = call.movement.progress(
      reached, total.is_number() ? std::optional(total.get<double>()) : std::nullopt, text, now);
  if (call.is_own_token || !call.own_task.empty()) {
    ++tally_.swallowed;
  } else if (!(reached > call.server_value && reached <= call.sent_value)) {
    // Progress that the proxy sent meanwhile would be above it otherwise.
    if (reached > call.server_value) call.server_value = call.sent_value = reached;
    call.sent_at = now;
    call.is_unsent = false;
    ends_.to_client(std::move(message));
  }
  if (!has_moved) return;
  if (auto* task = call.own_task.empty() ? nullptr : own_tasks_.find(call.own_task)) {
    if (!text.empty()) task->words = text;
    task->updated = options_.wall();
  }
  if (call.moved(now)) ends_.report(call.owner, call.progress_report(now));
}

void CallBook::server_worked(Instant now) {
  for (auto* calls : {&calls_, &server_tasks_})
    for (auto& [key, call] : *calls) {
      call.movement.alive(now);
      if (call.is_report_due(now)) ends_.report(call.owner, call.progress_report(now));
    }
}

void CallBook::pause_all(bool pauses, Instant now) {
  for (auto* calls : {&calls_, &server_tasks_})
    for (auto& [key, call] : *calls)
      pauses ? call.movement.pause(PauseReason::awaiting_input, now)
             : call.movement.resume(PauseReason::awaiting_input, now);
}

void CallBook::tick(Instant now) {
  const auto gap = now - std::exchange(ticked_, now);
  if (gap >= stall_min) {
    for (auto* calls : {&calls_, &server_tasks_})
      for (auto& [key, call] : *calls) call.movement.compensate(gap - tick_max);
  }
  tell_of_mute(ends_, asked_, options_, now);
  std::vector<std::string> over;
  for (auto& [key, call] : calls_) {
    if (call.movement.is_over(now)) {
      over.push_back(key);
      continue;
    }
    if (call.supports_tasks && call.own_task.empty() && now - call.begun >= options_.task_after)
      answer_with_task(ends_, own_tasks_, call, options_.wall());
    if (auto progress = call.due_progress(now)) ends_.to_client(line_of(*progress));
  }
  for (const auto& key : over) {
    auto call = calls_.extract(key);
    give_up(key, std::move(call.mapped()), now);
  }
  over.clear();
  for (auto& [key, call] : server_tasks_)
    if (call.movement.is_over(now)) over.push_back(key);
  for (const auto& key : over) {
    auto call = server_tasks_.extract(key);
    give_up_server_task(std::move(call.mapped()), now);
  }
}

std::optional<Millis> CallBook::next(Instant now) const {
  const bool waits = std::ranges::any_of(
      asked_, [](const auto& entry) { return !entry.second.is_told && entry.second.task.empty(); });
  if (open() == 0 && !waits) return std::nullopt;
  auto wait = tick_max;
  for (const auto* calls : {&calls_, &server_tasks_})
    for (const auto& [key, call] : *calls)
      if (call.movement.deadline().next_expiry() - wait < now)
        wait = std::max(call.movement.deadline().next_expiry() - now, Millis{0});
  return wait;
}

void CallBook::give_up(const std::string& key, ProxiedCall call, Instant now) {
  ++tally_.given_up;
  tokens_.erase(call.token_key);
  auto result = call.timeout_result(now, true);
  ends_.report(call.owner, call.timeout_report(result, now));
  given_up_.add(key);
  line_.send(cancel_text(call.id, "no progress within the proxy's deadline"));
  if (call.own_task.empty()) {
    answer(ends_, call.id, std::move(result));
  } else {
    own_tasks_.finish(call.own_task, options_.wall(), std::move(result));
  }
}

void CallBook::give_up_server_task(ProxiedCall call, Instant now) {
  ++tally_.given_up;
  auto result = call.timeout_result(now, true);
  ends_.report(call.owner, call.timeout_report(result, now));
  const auto id = line_.next_id();
  json params = {{"taskId", call.server_task}};
  auto meta = call.meta;
  if (meta.is_object()) meta.erase("progressToken");
  if (call.is_modern) params["_meta"] = std::move(meta);
  line_.expect(id);
  line_.send(line_of(request_of(id, "tasks/cancel", std::move(params))));
  // From now on the proxy answers for it.
  if (auto* task = own_tasks_.begin(call.server_task, call.is_modern, options_.wall()))
    OwnTasks::settle(*task, std::move(result), "The call was given up", options_.wall());
}

void CallBook::server_gone(const std::string& cause, Instant now) {
  const auto why = cause + " before it answered";
  // Calls that came since the former end still wait here.
  const bool may_have_run = !line_.is_closed();
  for (auto& [key, call] : std::exchange(calls_, {})) {
    auto result = call.lost_result(why, may_have_run);
    ends_.report(call.owner, call.end_report(result, {}));
    if (call.own_task.empty()) {
      answer(ends_, call.id, std::move(result));
    } else {
      own_tasks_.finish(call.own_task, options_.wall(), std::move(result));
    }
  }
  for (auto& [key, call] : std::exchange(server_tasks_, {})) {
    auto result = call.lost_result(why, true);
    ends_.report(call.owner, call.end_report(result, {}));
    if (auto* task = own_tasks_.begin(key, call.is_modern, options_.wall()))
      OwnTasks::settle(*task, std::move(result), "The tool server is gone", options_.wall());
  }
  for (const auto& [key, asked] : std::exchange(asked_, {}))
    ends_.to_client(line_of(response_of(RpcError{.message = why, .id = asked.id})));
  tokens_.clear();
  server_asked_.clear();
  given_up_.clear();
  line_.close();
  ticked_ = now;
}

void CallBook::fail_request(std::string key, const std::string& why, bool may_have_run) {
  if (key.empty() && calls_.size() + asked_.size() == 1)
    key = asked_.empty() ? calls_.begin()->first : asked_.begin()->first;
  if (const auto asked = asked_.find(key); asked != asked_.end()) {
    ends_.to_client(line_of(response_of(RpcError{.message = why, .id = asked->second.id})));
    asked_.erase(asked);
    return;
  }
  const auto found = calls_.find(key);
  if (found == calls_.end()) return;
  auto call = std::move(found->second);
  calls_.erase(found);
  tokens_.erase(call.token_key);
  auto result = call.lost_result(why, may_have_run);
  ends_.report(call.owner, call.end_report(result, {}));
  call.own_task.empty() ? answer(ends_, call.id, std::move(result))
                        : own_tasks_.finish(call.own_task, options_.wall(), std::move(result));
}

void CallBook::server_restarted() {
  line_.open();
}

}  // namespace watchdog::monitor::mcp
