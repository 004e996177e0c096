// The API gives transitions oldest first, so all pages are read and only the newest are kept. The
// last one left out leaves its policy's digest, which shows whether thresholds changed before the
// first shown. Evidence is asked for event by event, and once each, because neighbours share it.
// For a missing event the API gives the next one, so the numbers are compared.
#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/session_choice.h"
#include "cli/usage.h"
#include "privacy/content.h"
#include "terminal/output.h"
#include "terminal/phrases.h"
#include "terminal/situation.h"
#include "terminal/table.h"
#include "watchdog/terminal_text.h"

namespace watchdog::monitor {
namespace {

struct ExplainOptions {
  Endpoint::Options endpoint;
  SessionChoice choice;
  std::string session;  ///< The id of the chosen one.
  int limit = 50;       ///< Of the newest changes of health.
  bool all = false;
  bool json = false;
};

using nlohmann::json;

constexpr std::size_t preview_characters = 80;

struct Timeline {
  std::deque<json> changes;  ///< Transitions as the API has them, with cause and events.
  std::size_t left_out = 0;
  json policy_before;  ///< Digest of the thresholds at the newest of those left out.
};

/// Returns the newest `count_max` transitions of a session. They are reached only past all earlier
/// ones, a thousand at a time; their events are requested afterwards.
Result<Timeline> newest_changes(Endpoint& endpoint, const std::string& base,
                                std::size_t count_max) {
  Timeline timeline;
  const auto target = base + "/transitions?limit=1000&after=";
  for (std::string after = "0"; !after.empty();) {
    const auto body = endpoint.ask(Method::get, target + after);
    if (!body) return body.error();
    auto page = json::parse(*body);
    for (auto& change : page["transitions"]) {
      timeline.changes.push_back(std::move(change));
      if (timeline.changes.size() <= count_max) continue;
      timeline.policy_before = timeline.changes.front()["policyDigest"];
      timeline.changes.pop_front();
      ++timeline.left_out;
    }
    after = page["next"].is_null() ? "" : page["next"].dump();
  }
  return timeline;
}

/// The event of this number; null if it is not kept any more.
Result<json> event_of(Endpoint& endpoint, const std::string& base, std::int64_t seq) {
  const auto body =
      endpoint.ask(Method::get, base + "/events?limit=1&after=" + std::to_string(seq - 1));
  if (!body) return body.error();
  auto found = json::parse(*body)["events"];
  // If it was dropped, the next one is the answer.
  return found.empty() || found.front()["seq"] != seq ? json() : std::move(found.front());
}

/// Returns `event`, or `expiry`: the earlier state held long enough. Null: the newest event of that
/// time was dropped, so it is not known.
json cause_of(const json& change) {
  if (change["quietMs"].is_null()) return nullptr;
  return change["quietMs"] == 0 ? "event" : "expiry";
}

Result<Timeline> timeline_of(Endpoint& endpoint, const ExplainOptions& options) {
  const auto base = "/api/autonomous/sessions/" + url_encoded(options.session);
  auto timeline = newest_changes(endpoint, base,
                                 options.all ? std::numeric_limits<std::size_t>::max()
                                             : static_cast<std::size_t>(options.limit));
  if (!timeline) return timeline;
  std::map<std::int64_t, json> events;  // neighbours share their evidence
  for (auto& change : timeline->changes) {
    change["cause"] = cause_of(change);
    for (auto& proof : change["evidence"]) {
      const auto seq = proof["seq"].get<std::int64_t>();
      auto known = events.find(seq);
      if (known == events.end()) {
        auto event = event_of(endpoint, base, seq);
        if (!event) return event.error();
        known = events.emplace(seq, std::move(*event)).first;
      }
      proof["event"] = known->second;
    }
  }
  return timeline;
}

/// The acts of people and rules on the session, the oldest first. A token that may not read acts
/// gets none, and neither does anybody from an older server, which has them of all sessions alone.
Result<std::vector<json>> acts_on(Endpoint& endpoint, const std::string& session) {
  std::vector<json> acts;
  const auto target = "/api/audit?sessionId=" + url_encoded(session) + "&limit=1000&after=";
  for (json after = 0; !after.is_null();) {
    const auto body = endpoint.ask(Method::get, target + after.dump());
    const auto failed = body ? ErrorCode{} : body.error().code;
    if (!body && (failed == ErrorCode::conflict || failed == ErrorCode::malformed)) return acts;
    if (!body) return body.error();
    auto page = json::parse(*body);
    for (auto& act : page["audit"]) acts.push_back(std::move(act));
    after = page["next"];
  }
  return acts;
}

/// `loop, iteration 1 to 5, 5 times`
std::string beats_in_words(const json& event) {
  auto text = event.value("source", "");
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (event.contains("iteration_first")) {
    add("iteration " + shown(event, "iteration_first") + " to " + shown(event, "iteration"));
  } else if (event.contains("iteration")) {
    add("iteration " + shown(event, "iteration"));
  }
  if (event.value("count", 1) > 1) add(shown(event, "count") + " times");
  return text;
}

/// `completed, 3 calls`
std::string turn_in_words(const json& event) {
  auto text = event.value("reason", "");
  if (event.contains("tool_calls")) {
    text += (text.empty() ? "" : ", ") + counted_calls(event["tool_calls"]);
  }
  return terminal_line(text);
}

/// `5 of 20 after 3.0 s: copying`
std::string progress_in_words(const json& event) {
  std::string text;
  if (event.contains("value")) text = shown(event, "value");
  if (event.contains("total")) text += (text.empty() ? "of " : " of ") + shown(event, "total");
  text +=
      (text.empty() ? "after " : " after ") + lasting(event.value("elapsed_ms", std::int64_t{0}));
  if (event.contains("text")) text += ": " + shown(event, "text");
  return text;
}

/// Returns an event's text besides its kind and name.
std::string content_of(const json& event) {
  if (event["kind"] == "heartbeat") return beats_in_words(event);
  if (event["kind"] == "turn") return turn_in_words(event);
  if (event["kind"] == "tool_progress") return progress_in_words(event);
  for (const char* name : {"args", "data", "text"}) {
    if (event.contains(name)) return shown(event, name);
  }
  auto rest = event;
  for (const char* known : {"seq", "at_ms", "ts_ms", "kind", "digest", "bytes", "event_id", "type",
                            "waiting_for", "name"})
    rest.erase(known);
  return rest.empty() ? "" : terminal_json(rest.dump());
}

/// Kind, name and the beginning of what it says.
std::string preview(const json& event) {
  if (event.is_null()) return "no longer kept";
  auto text = shown(event, "kind");
  for (const char* name : {"type", "phase", "waiting_for", "name"}) {
    if (const auto word = shown(event, name); word != "–") text += " " + word;
  }
  const auto content = content_of(event);
  const auto cut = first_characters(content, preview_characters);
  if (!cut.empty()) text.append(": ").append(cut);
  return cut.size() < content.size() ? text + "…" : text;
}

std::string cause_in_words(const json& change) {
  const auto newest = "event " + shown(change, "seq");
  if (change["cause"].is_null()) return newest + " was the newest then; it is no longer kept";
  if (change["cause"] == "event") return "caused by " + newest;
  return "after " + lasting(change["quietMs"]) + " without an event since " + newest;
}

void print_heading(const std::string& session, const json& document) {
  print_line(session + "  " + coloured(condition_of(document)) + "  " + reason_in(document));
  print_notices(document);
  print_identity(document);
  print_fact("lifecycle", lifecycle_in(document));
  print_fact("health",
             coloured(shown(document, "health")) + " since " + local_time(document["healthSince"]));
  if (document["outcome"].is_object()) return;
  print_fact("next look",
             document["validUntil"].is_null()
                 ? "when the next event arrives"
                 : local_time(document["validUntil"]) + ", or earlier if an event arrives");
}

void print_change(const json& change, const json& policy_before) {
  const auto pattern = shown(change, "pattern");
  print_line(local_time(change["at"]) + "  " + coloured(shown(change, "from")) + " → " +
             coloured(shown(change, "health")) + (pattern == "–" ? "" : "  " + pattern) + "  " +
             reason_in(change));
  print_line("    " + cause_in_words(change));
  for (const auto& proof : change["evidence"]) {
    print_line("    event " + shown(proof, "seq") + "  " + preview(proof["event"]) + "  (" +
               shown(proof, "note") + ")");
  }
  // An older server does not report it.
  for (const auto& line : situation_in_words(change.value("situation", json())))
    print_line("    " + line);
  if (!policy_before.is_null() && policy_before != change["policyDigest"])
    print_line("    thresholds changed: " + shown(change, "policyDigest"));
}

void print_act(const json& act) {
  print_line(local_time(act["at"]) + "  " + shown(act, "action") + " by " + shown(act, "actor") +
             "  " + shown(act, "outcome"));
}

/// Changes of health and acts, in the order of their times.
void print_story(const Timeline& timeline, const std::vector<json>& acts) {
  auto next = acts.begin();
  const auto first = timeline.changes.empty() ? json() : timeline.changes.front()["at"];
  if (timeline.left_out > 0)
    next = std::find_if(next, acts.end(), [&](const json& act) { return act["at"] >= first; });
  auto policy_before = timeline.policy_before;
  for (const auto& change : timeline.changes) {
    for (; next != acts.end() && (*next)["at"] < change["at"]; ++next) print_act(*next);
    print_change(change, policy_before);
    policy_before = change["policyDigest"];
  }
  for (; next != acts.end(); ++next) print_act(*next);
}

/// Prints the present state.
void print_ending(const json& document) {
  const auto& outcome = document["outcome"];
  if (outcome.is_object()) {
    print_fact("outcome", coloured(shown(outcome, "kind")) + " on " + local_time(outcome["at"]) +
                              ", " + reason_in(document));
    return;
  }
  if (document["tools"].empty()) print_fact("running", "no tool call");
  print_pending(document);
  if (const auto because = explanation_in(document); !because.empty()) print_line("  " + because);
}

}  // namespace

static int explain(ExplainOptions options) {
  auto endpoint = Endpoint::open(options.endpoint);
  if (!endpoint) return complain(endpoint.error());
  auto session = session_of(*endpoint, options.choice);
  if (!session) return complain(session.error());
  options.session = std::move(*session);
  const auto body =
      endpoint->ask(Method::get, "/api/autonomous/progress/" + url_encoded(options.session));
  if (!body) return complain(body.error());
  const auto document = json::parse(*body);
  const auto timeline = timeline_of(*endpoint, options);
  if (!timeline) return complain(timeline.error());
  const auto acts = acts_on(*endpoint, options.session);
  if (!acts) return complain(acts.error());
  if (options.json) {
    print_json(json{{"session", options.session},
                    {"progress", document},
                    {"timeline", timeline->changes},
                    {"acts", *acts},
                    {"leftOut", timeline->left_out}}
                   .dump());
    return exit_done;
  }
  print_heading(options.session, document);
  print_line("");
  if (timeline->left_out > 0)
    print_line(std::to_string(timeline->left_out) + " earlier changes are not shown; use --all");
  if (timeline->left_out == 0 && timeline->changes.empty()) print_line("no change of health yet");
  print_story(*timeline, *acts);
  print_line("");
  print_ending(document);
  return exit_done;
}

void add_explain(CommandLine& line) {
  const auto options = std::make_shared<ExplainOptions>();
  auto* command = line.app.add_subcommand(
      "explain",
      "List the changes of a session's health with the events behind them, and what was done");
  add_session(*command, options->choice);
  auto* explain_limit =
      command->add_option("--limit", options->limit, "Number of newest changes to show")
          ->capture_default_str()
          ->check(integer(1, INT32_MAX));
  command->add_flag("--all", options->all, "Show all")->excludes(explain_limit);
  command->add_flag("--json", options->json, "Print one JSON object");
  add_endpoint(*command, options->endpoint);
  command->callback([&line, options] {
    need_session(options->choice);
    line.code = explain(*options);
  });
}

}  // namespace watchdog::monitor
