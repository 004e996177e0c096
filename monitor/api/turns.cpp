#include "api/turns.h"

#include <algorithm>

#include "codec/progress.h"
#include "privacy/content.h"
#include "text/json_writer.h"

namespace watchdog::monitor {
namespace {

/// As a history keeps it.
constexpr std::size_t call_id_chars = 64;

Error no_turn(std::string_view id) {
  return {ErrorCode::not_found, "there is no active turn " + std::string(id), "turnId"};
}

/// Returns true if it is the turn, or one below it.
bool belongs_to(const History& history, const OpenTurn& turn, std::string_view ancestor) {
  const OpenTurn* at = &turn;
  for (std::size_t level = 0; at != nullptr && level < open_turns_max; ++level) {
    if (at->id == ancestor) return true;
    at = find_turn(history, at->parent);
  }
  return false;
}

bool is_running(const History& history, const CancelRequest& asked) {
  const auto id = first_characters(asked.call, call_id_chars);
  return std::any_of(
      history.open_calls->begin(), history.open_calls->end(),
      [&](const OpenCall& call) { return call.notes->turn == asked.turn && call.call_id == id; });
}

Report end_of(const OpenTurn& turn) {
  Report end;
  end.kind = ReportKind::turn;
  end.name = turn_reports::turn_end;
  end.call_id = turn.id;
  end.detail = TurnFacts{
      .parent = turn.parent, .depth = turn.depth, .reason = "aborted", .calls = turn.calls};
  return end;
}

}  // namespace

Response turns_response(const std::vector<ActiveTurn>& turns, Instant now) {
  JsonWriter out;
  out.open_object().key("turns").open_array();
  for (const auto& [session, agent, turn, calls] : turns) {
    const auto* newest = calls.empty() ? nullptr : &calls.back();
    const auto then = std::max(now, turn.since);
    out.open_object().field("sessionId", session).key("nousId");
    agent.empty() ? out.value(nullptr) : out.value(agent);
    const auto elapsed = [&](const OpenCall& call) {
      return std::max(then - call.since, Millis{0}).count();
    };
    write_turn(out, turn, newest, then);
    out.key("currentToolElapsedMs");
    newest != nullptr ? out.value(elapsed(*newest)) : out.value(nullptr);
    out.key("tools").open_array();
    for (const auto& call : calls) {
      out.open_object().field("name", call.name).key("callId");
      call.call_id.empty() ? out.value(nullptr) : out.value(call.call_id);
      out.field("elapsedMs", elapsed(call)).close_object();
    }
    out.close_array().close_object();
  }
  out.close_array().close_object();
  return {.body = out.finish()};
}

Result<std::string> session_of_turn(Backend& backend, std::string_view turn) {
  auto found = backend.turns(2, turn);
  if (!found) return found.error();
  if (found->empty()) return no_turn(turn);
  if (found->size() > 1) {
    return Error{ErrorCode::conflict,
                 "a turn " + std::string(turn) + " is open in session " + found->front().session +
                     " and in " + found->back().session,
                 "turnId"};
  }
  return std::move(found->front().session);
}

Result<std::vector<Report>> reports_to_abort(const Case& judged, const Directive& directive,
                                             const CancelRequest& asked, bool unserved) {
  const auto& history = judged.history;
  const auto* turn = find_turn(history, asked.turn);
  if (turn == nullptr) return no_turn(asked.turn);
  if (!asked.call.empty() && !is_running(history, asked)) {
    return Error{ErrorCode::not_found, "turn " + asked.turn + " has no running call " + asked.call,
                 "toolId"};
  }
  const auto& aborts = directive.aborts;
  const bool known = (turn->aborting && asked.call.empty()) ||
                     std::any_of(aborts.begin(), aborts.end(), [&](const CancelRequest& abort) {
                       return abort.turn == asked.turn && abort.call == asked.call;
                     });
  std::vector<Report> reports;
  if (!known) {
    Report& cancel = reports.emplace_back();
    cancel.kind = ReportKind::cancel;
    cancel.detail = asked;
  }
  if (!unserved) return reports;
  // Those that began last end first.
  const auto& open = *history.notes->turns;
  for (auto at = open.rbegin(); at != open.rend(); ++at) {
    if (belongs_to(history, *at, asked.turn)) reports.push_back(end_of(*at));
  }
  return reports;
}

}  // namespace watchdog::monitor
