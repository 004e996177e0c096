// Each call is a chain of questions: the answer to one starts the next, and the last one finishes
// the exchange. The steps run in the loop. A question that fails ends the chain with a result that
// is an error, so that the model reads why.
#include "mcp/tool_calls.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>

#include "api/target.h"
#include "bundle/tar.h"
#include "facts/ids.h"
#include "judge/attention.h"
#include "mcp/api_event.h"
#include "mcp/brief.h"
#include "watchdog/wait.h"

namespace watchdog::monitor::mcp {
namespace {

constexpr Millis check_look_again{500};
/// Clients give up after a minute or more.
constexpr Millis check_wait_max{50'000};

struct ToolCall {
  Loop& loop;
  ExchangePtr exchange;
  json arguments;
  std::string session;

  [[nodiscard]] std::string base() const { return "/api/autonomous/sessions/" + session; }
  [[nodiscard]] std::int64_t number(const char* name, std::int64_t otherwise) const {
    return number_in(arguments, name, otherwise);
  }
  void finish(json structured, const std::string& newest_last = {}) const {
    bound(structured, result_bytes_max, newest_last);
    exchange->finish(tool_result(std::move(structured)));
  }
};
using ToolCallPtr = std::shared_ptr<ToolCall>;

/// Asks, and passes what `read` makes of a good answer's body on to `next`. `read` returns nothing
/// for a body of another form.
template <class Read, class Step>
void ask_for(const ToolCallPtr& call, Question question, Read read, Step next) {
  call->exchange->source->ask(std::move(question), [call, read, next](Answer answer) {
    call->loop.post([call, read, next, answer = std::move(answer)] {
      if (call->exchange->is_over()) return;
      const bool is_good = answer.status >= 200 && answer.status < 300;
      const auto body = is_good ? read(answer.body) : std::nullopt;
      if (!body) return call->exchange->finish(answer_error(answer, call->session));
      next(call, *body);
    });
  });
}

/// The same for a body that is a JSON object.
template <class Step>
void ask(const ToolCallPtr& call, Question question, Step next) {
  const auto read = [](const std::string& text) {
    auto body = json::parse(text, nullptr, false);
    return body.is_object() ? std::optional(std::move(body)) : std::nullopt;
  };
  ask_for(call, std::move(question), read, next);
}

std::string joined(const json& words) {
  std::string text;
  for (const auto& word : words) text += (text.empty() ? "" : ",") + word.get<std::string>();
  return text;
}

/// The states that a running session of this health has. The others are named after their health.
std::vector<std::string> states_of(const std::string& health) {
  if (health == name_of(HealthKind::blocked))
    return {std::string(name_of(SessionState::needs_input)),
            std::string(name_of(SessionState::waiting))};
  return {health};
}

/// The states that both filters let through; null: all. The API filters by state.
json states_wanted(const json& arguments) {
  const auto& states = member(arguments, "state");
  const auto& healths = member(arguments, "health");
  if (!healths.is_array() || healths.empty()) return states;
  json wanted = json::array();
  for (const auto& health : healths)
    for (auto& state : states_of(health.get<std::string>()))
      if (!states.is_array() || states.empty() ||
          std::ranges::find(states, json(state)) != states.end())
        wanted.push_back(std::move(state));
  return wanted;
}

void list_agents(const ToolCallPtr& call) {
  std::string target =
      "/api/autonomous/progress?sort=attention&limit=" + std::to_string(call->number("limit", 50));
  const auto states = states_wanted(call->arguments);
  if (states.is_array() && states.empty() && !member(call->arguments, "health").empty())
    return call->finish({{"agents", json::array()}, {"total", 0}});
  for (const auto& [name, words] :
       {std::pair{"attention", member(call->arguments, "attention")}, std::pair{"state", states}})
    if (words.is_array() && !words.empty()) target += std::string("&") + name + "=" + joined(words);
  for (const auto* name : {"label", "agent", "search"})
    if (const auto text = text_in(call->arguments, name); !text.empty())
      target += std::string("&") + name + "=" + url_encoded(text);
  ask(call, {.target = target}, [](const ToolCallPtr& self, const json& list) {
    json agents = json::array();
    for (const auto& document : member(list, "sessions"))
      agents.push_back(brief(document, self->loop.wall()));
    self->finish({{"agents", std::move(agents)}, {"total", member(list, "total")}});
  });
}

void show_agent(const ToolCallPtr& call) {
  ask(call, {.target = "/api/autonomous/progress/" + call->session},
      [](const ToolCallPtr& self, const json& document) {
        const auto count = self->number("events", 20);
        if (count == 0) return self->finish({{"agent", document}, {"recent", json::array()}});
        ask(self,
            {.target = self->base() + "/events?before=" + std::to_string(INT64_MAX) +
                       "&limit=" + std::to_string(count)},
            [document](const ToolCallPtr& shown, const json& page) {
              std::vector<json> recent;
              for (const auto& stored : member(page, "events")) {
                const auto entry = timeline_entry(api_event(stored));
                recent.push_back({{"seq", number_in(stored, "seq")},
                                  {"at", iso_time(entry.at)},
                                  {"text", entry.text}});
              }
              std::ranges::sort(recent, {},
                                [](const json& event) { return number_in(event, "seq"); });
              shown->finish({{"agent", document}, {"recent", recent}}, "recent");
            });
      });
}

json proofs_of(const json& document) {
  json proofs = json::array();
  for (const auto& proof : member(document, "evidence"))
    proofs.push_back("event " + std::to_string(number_in(proof, "seq")) + ": " +
                     text_in(proof, "note"));
  return proofs;
}

/// The changes of health that were read so far.
struct Changes {
  json document;
  std::deque<json> newest{};
  std::int64_t earlier = 0;
};

/// The API gives the oldest changes first, so all pages are read and the newest are kept.
void read_changes(const ToolCallPtr& call, const std::shared_ptr<Changes>& changes,
                  std::int64_t after) {
  ask(call, {.target = call->base() + "/transitions?limit=1000&after=" + std::to_string(after)},
      [changes, after](const ToolCallPtr& self, const json& page) {
        for (const auto& change : member(page, "transitions")) {
          changes->newest.push_back({{"at", iso_time(WallTime{Millis{number_in(change, "at")}})},
                                     {"from", member(change, "from")},
                                     {"to", member(change, "health")},
                                     {"pattern", member(change, "pattern")},
                                     {"reason", member(change, "reason")},
                                     {"evidence", proofs_of(change)}});
          if (static_cast<std::int64_t>(changes->newest.size()) <= self->number("limit", 20))
            continue;
          changes->newest.pop_front();
          ++changes->earlier;
        }
        const auto next = number_in(page, "next", 0);
        if (next > after) return read_changes(self, changes, next);
        self->finish({{"agent", brief(changes->document, self->loop.wall())},
                      {"evidence", proofs_of(changes->document)},
                      {"changes", changes->newest},
                      {"earlier", changes->earlier}},
                     "changes");
      });
}

void explain_agent(const ToolCallPtr& call) {
  ask(call, {.target = "/api/autonomous/progress/" + call->session},
      [](const ToolCallPtr& self, const json& document) {
        read_changes(self, std::make_shared<Changes>(Changes{.document = document}), 0);
      });
}

void bundle_agent(const ToolCallPtr& call) {
  ask_for(call, {.target = call->base() + "/bundle"}, files_in_tar,
          [](const ToolCallPtr& self, const std::vector<NamedFile>& files) {
            const auto page = std::ranges::find(files, "README.md", &NamedFile::name);
            self->finish({{"readme", page == files.end() ? "" : page->content},
                          {"save", "watchdog-monitor bundle " + self->session}});
          });
}

json report_of(const ToolCall& call) {
  const auto kind = text_in(call.arguments, "kind");
  const auto text = text_in(call.arguments, "text");
  const auto on = text_in(call.arguments, "on");
  const auto seconds = call.number("seconds", 0);
  const auto now = call.loop.wall();
  json report = {{"event_id", new_uuid7(now)}};
  if (!text.empty()) report["text"] = text;
  if (kind == "blocked") {
    report["kind"] = "wait";
    report["waiting_for"] = on.empty() ? "input" : on;
    if (seconds > 0) report["until_ms"] = now.time_since_epoch().count() + seconds * 1'000;
  } else if (kind == "unblocked") {
    report["kind"] = "resume";
    if (!on.empty()) report["name"] = on;
  } else {
    const auto type = text_in(call.arguments, "type");
    report["kind"] = "state_change";
    report["type"] = type.empty() ? "progress" : type;
  }
  if (kind == "quiet") {
    // A heartbeat says how long the next progress may take, without being progress.
    report["kind"] = "heartbeat";
    report.erase("type");
    report.erase("text");
    report["expect_quiet_ms"] = std::max<std::int64_t>(seconds, 1) * 1'000;
  }
  return report;
}

void report_own(const ToolCallPtr& call) {
  ask(call,
      {.method = Method::post,
       .target = call->base() + "/events?source=mcp",
       .body = line_of(report_of(*call))},
      [](const ToolCallPtr& self, const json& receipt) {
        const auto& cancel = member(member(receipt, "directive"), "cancel");
        json stop;
        if (cancel.is_object())
          stop =
              "Stop now: " + text_in(cancel, "by") + " asks for it. " + text_in(cancel, "reason");
        self->finish({{"stored", true}, {"stop", std::move(stop)}});
      });
}

json meaning_of(const std::string& letter) {
  if (letter == "A") return "it makes progress";
  if (letter == "B") return "it is stuck in a loop";
  if (letter == "C") return "it is blocked";
  if (letter == "D") return "it has failed";
  return nullptr;
}

void look_at_check(const ToolCallPtr& call, const json& check, Millis left) {
  const auto id = text_in(check, "checkId");
  const bool is_pending = text_in(check, "state") == "pending";
  if (!is_pending || left <= Millis{0}) {
    return call->finish(
        {{"checkId", id},
         {"state", text_in(check, "state")},
         {"meaning", meaning_of(text_in(check, "status"))},
         {"reason", member(check, "reason")},
         {"continue", is_pending ? json("Not yet. Call check again with check=" + id) : json()}});
  }
  call->loop.after(check_look_again, [call, id, left] {
    if (call->exchange->is_over()) return;
    ask(call, {.target = "/api/autonomous/check-status/" + url_encoded(id)},
        [left](const ToolCallPtr& self, const json& again) {
          look_at_check(self, again, left - check_look_again);
        });
  });
}

void check_agent(const ToolCallPtr& call) {
  const auto pending = text_in(call->arguments, "check");
  auto question = pending.empty()
                      ? Question{.method = Method::post,
                                 .target = "/api/autonomous/check-status",
                                 .body = line_of({{"sessionId", call->session}})}
                      : Question{.target = "/api/autonomous/check-status/" + url_encoded(pending)};
  ask(call, std::move(question), [](const ToolCallPtr& self, const json& check) {
    look_at_check(self, check, check_wait_max);
  });
}

void cancel_agent(const ToolCallPtr& call) {
  ask(call,
      {.method = Method::post,
       .target = call->base() + "/cancel",
       .body = line_of({{"reason", text_in(call->arguments, "reason")}})},
      [](const ToolCallPtr& self, const json& stored) {
        self->finish(
            {{"ended", member(stored, "ended") == true}, {"message", text_in(stored, "message")}});
      });
}

void abort_call(const ToolCallPtr& call) {
  auto target = "/api/turns/" + url_encoded(text_in(call->arguments, "turn"));
  const auto id = text_in(call->arguments, "call");
  target += id.empty() ? "/abort" : "/abort-tool/" + url_encoded(id);
  ask(call,
      {.method = Method::post,
       .target = target,
       .body = line_of({{"reason", text_in(call->arguments, "reason")}})},
      [](const ToolCallPtr& self, const json&) {
        self->finish({{"requested", true},
                      {"message", "Requested. The agent gets it with its next report"}});
      });
}

}  // namespace

json answer_error(const Answer& answer, const std::string& about) {
  if (answer.status == 0) return tool_error(answer.body);
  const auto body = json::parse(answer.body, nullptr, false);
  auto message = text_in(member(body, "error"), "message");
  if (message.empty()) message = "The monitor answers with status " + std::to_string(answer.status);
  if (answer.status == 404 && !about.empty())
    message += ". The tool `agents` lists the sessions that there are";
  if (answer.status == 401)
    message += ". Give the MCP server a token: --token-file FILE, or a header Authorization";
  return tool_error(message);
}

void call_tool(Loop& loop, const ExchangePtr& exchange, const std::string& tool,
               const json& arguments) {
  auto session = text_in(arguments, "session");
  if (const auto& own = exchange->own_session; tool == "report" && !own.empty()) {
    if (!session.empty() && session != own)
      return exchange->finish(tool_error("report is about your own session, " + own +
                                         ". Leave out the argument session"));
    session = own;
  }
  const auto call = std::make_shared<ToolCall>(ToolCall{loop, exchange, arguments, session});
  const bool needs_session = tool != "agents" && tool != "abort_call";
  if (needs_session && !is_session_id(session))
    return exchange->finish(
        tool_error("session must be the id of a session, as `agents` lists it"));
  if (tool == "agents") return list_agents(call);
  if (tool == "agent") return show_agent(call);
  if (tool == "explain") return explain_agent(call);
  if (tool == "bundle") return bundle_agent(call);
  if (tool == "report") return report_own(call);
  if (tool == "check") return check_agent(call);
  if (tool == "cancel") return cancel_agent(call);
  abort_call(call);
}

}  // namespace watchdog::monitor::mcp
