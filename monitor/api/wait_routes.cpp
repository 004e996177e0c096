#include <string>
#include <utility>

#include "api/waits.h"
#include "facts/ids.h"

namespace watchdog::monitor {
namespace {

/// Before the limits of most reverse proxies.
constexpr std::int64_t wait_ms_max = 25'000;
/// The client has a condition that only it can check.
constexpr std::string_view own_condition = "condition";

Result<WaitQuestion> question_of(const Call& call) {
  const auto& target = call.target;
  if (!is_session_id(call.id)) {
    return Error{ErrorCode::invalid,
                 "'" + call.id + "' is not a session id: [A-Za-z0-9._:@-]{1,128}", "sessionId"};
  }
  const auto goal = target.text("for");
  WaitQuestion question{.session = call.id};
  if (goal == own_condition) {
    question.awaited.goal = Goal::condition;
  } else if (auto awaited = awaited_from(goal.empty() ? "completed" : goal)) {
    question.awaited = std::move(*awaited);
  } else {
    return awaited.error();
  }
  const auto on_stuck = target.choice<OnStuck>("onStuck");
  if (!on_stuck) return on_stuck.error();
  const auto on_suspect = target.choice<OnDoubt>("onSuspect");
  if (!on_suspect) return on_suspect.error();
  const auto on_quiet = target.choice<OnDoubt>("onQuiet");
  if (!on_quiet) return on_quiet.error();
  const auto further = target.number("furtherMax", question.awaited.further_max, 1, INT32_MAX);
  if (!further) return further.error();
  const auto after = target.number("after", 0, 0, INT64_MAX);
  if (!after) return after.error();
  question.awaited.on_stuck = on_stuck->value_or(OnStuck::fail);
  question.awaited.on_suspect = on_suspect->value_or(OnDoubt::keep);
  question.awaited.on_quiet = on_quiet->value_or(OnDoubt::keep);
  question.awaited.further_max = *further;
  question.after = *after;
  const auto cursor = target.text("cursor");
  if (cursor.empty()) return question;
  question.place = WaitPlace::parse(cursor);
  if (!question.place)
    return Error{ErrorCode::malformed, "that is not a cursor of an earlier answer", "cursor"};
  return question;
}

}  // namespace

void wait_for_session(const CallPtr& call) {
  auto question = question_of(*call);
  if (!question) return call->reply(error_response(question.error()));
  const auto shows = call->target.choice<WaitTells>("tell");
  if (!shows) return call->reply(error_response(shows.error()));
  const auto at_most = call->target.number("timeoutMs", wait_ms_max, 0, wait_ms_max);
  if (!at_most) return call->reply(error_response(at_most.error()));
  if (call->feed == nullptr) {
    return call->reply(
        error_response(503, "unavailable", "only a running monitor tells what happens"));
  }
  auto body = open_wait(call->backend, *call->feed,
                        {.question = std::move(*question),
                         .shows = shows->value_or(WaitTells::over),
                         .at_most = std::chrono::milliseconds(*at_most),
                         .allowed = call->access.lasting(call->request, Scope::read)});
  if (!body) {
    auto response =
        error_response(503, "exhausted", "too many waits and streams are open; try again");
    response.extra_headers = "Retry-After: 1\r\n";
    return call->reply(std::move(response));
  }
  call->reply({.source = std::move(body), .ends = true});
}

}  // namespace watchdog::monitor
