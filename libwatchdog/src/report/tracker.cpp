// Most functions here make a report; the state queues it, and the writer's thread stores it. A
// forked child has the state without the thread, so calls report nothing there. Heartbeats are
// folded into one row in memory and wake nobody, unless they announce silence. `judged` works on a
// copy of the local case, with the row that is not yet written. The destructor waits for a bounded
// time, then detaches.
#include "watchdog/tracker.h"

#include <array>
#include <utility>

#include "facts/ids.h"
#include "report/beat_row.h"
#include "report/tracker_state.h"
#include "report/writer.h"
#include "watchdog/reasons.h"

namespace watchdog {
namespace {

Report make(ReportKind kind, std::string_view name, std::string_view content = {},
            std::string_view call_id = {}) {
  Report report;
  report.kind = kind;
  report.name = name;
  report.content = content;
  report.call_id = call_id;
  return report;
}

/// Fills in what the caller left to the tracker.
ProgressTracker::Config filled_in(ProgressTracker::Config config) {
  if (config.session.empty()) config.session = new_ulid(config.clock->wall());
  if (config.database.empty()) config.database = default_database();
  return config;
}

}  // namespace

Result<void> check(const ProgressTracker::Config& config) {
  if (!config.session.empty() && !is_session_id(config.session)) {
    return Error{ErrorCode::invalid, "sessionId must match [A-Za-z0-9._:@-]{1,128}", "sessionId"};
  }
  return check(config.spec);
}

ProgressReporter::ProgressReporter(std::shared_ptr<State> state) : state_(std::move(state)) {}
ProgressReporter::~ProgressReporter() = default;

ProgressTracker::ProgressTracker(Config config)
    : ProgressReporter(std::make_shared<State>(filled_in(std::move(config)))) {
  state_->thread = std::thread([state = state_] { Writer(state).run(); });
}

ProgressTracker::~ProgressTracker() {
  if (state_->forked()) {
    // The thread lives in the parent only; its locks may be held for ever here. Leave all of it.
    new std::shared_ptr<State>(std::move(state_));  // NOLINT: never freed, on purpose
    return;
  }
  std::unique_lock guard(state_->mutex);
  state_->stopping = true;
  state_->wake();
  // A writer that waits behind a stopped process cannot be called back; it must not hold the agent.
  const bool came_back = state_->settled.wait_for(guard, 2 * state_->config.refusal_max,
                                                  [&] { return state_->finished; });
  guard.unlock();
  if (came_back) {
    state_->thread.join();
  } else {
    state_->thread.detach();
  }
}

const std::string& ProgressTracker::session() const noexcept {
  return state_->config.session;
}

Advice ProgressReporter::heartbeat(const Heartbeat& beat) noexcept {
  State& state = *state_;
  if (state.forked()) return Advice::go_on;
  const auto now = state.boot_now();
  try {
    const std::lock_guard guard(state.mutex);
    if (beat.expect_quiet) {
      state.push_beats();
      Report report;
      report.at = state.config.clock->wall();
      report.expect_quiet = std::max(*beat.expect_quiet, Millis{0});
      report.detail = row_of(beat, now);
      state.push(std::move(report), now);
      state.wake();
      return state.advice();
    }
    if (state.beats && !continues(*state.beats, beat)) state.push_beats();
    if (state.beats) {
      extend(*state.beats, beat, now);
    } else {
      state.beats = row_of(beat, now);
    }
  } catch (...) {  // no memory for it: a heartbeat is not worth an agent
  }
  return state.advice();
}

Advice ProgressReporter::state_change(std::string_view type, std::string_view data) {
  return state_->say(make(ReportKind::state_change, type, data));
}

Advice ProgressReporter::tool_call(std::string_view tool, std::string_view arguments,
                                   std::string_view call_id, std::optional<Millis> deadline) {
  auto report = make(ReportKind::tool_call, tool, arguments, call_id);
  report.deadline = deadline;
  return state_->say(std::move(report));
}

Advice ProgressReporter::tool_result(std::string_view tool, std::string_view result,
                                     std::string_view call_id) {
  return state_->say(make(ReportKind::tool_result, tool, result, call_id));
}

Advice ProgressReporter::tool_error(std::string_view tool, std::string_view error,
                                    std::string_view call_id) {
  return state_->say(make(ReportKind::error, tool, error, call_id));
}

Advice ProgressReporter::message(std::string_view role, std::string_view text) {
  return state_->say(make(ReportKind::message, role, text));
}

Advice ProgressReporter::stream(std::string_view fragment) {
  State& state = *state_;
  if (state.forked()) return Advice::go_on;
  int hits = 0;
  std::string repeated;
  {
    const std::lock_guard guard(state.mutex);
    state.streaming = true;
    hits = state.answer.feed(fragment);
    repeated = state.answer.repeated();
  }
  for (; hits > 0; --hits) state.put(make(ReportKind::text_repetition, {}, repeated));
  return state.advice();
}

Advice ProgressReporter::retry() {
  return state_->say(make(ReportKind::retry, {}));
}

Advice ProgressReporter::user_input(std::string_view text) {
  return state_->say(make(ReportKind::user_input, {}, text));
}

Advice ProgressReporter::wait_for(std::string_view what, std::string_view why) {
  return state_->say(make(ReportKind::wait, what, why));
}

Advice ProgressReporter::wait_for(std::string_view what, std::string_view why, WallTime until) {
  auto report = make(ReportKind::wait, what, why);
  report.until = until;
  return state_->say(std::move(report));
}

Advice ProgressReporter::idle() {
  return state_->say(make(ReportKind::idle, {}));
}

Advice ProgressReporter::report(Report report) {
  return state_->say(std::move(report));
}

Result<void> ProgressTracker::complete() {
  return state_->end({OutcomeKind::completed, std::string(reasons::task_complete), {}});
}

Result<void> ProgressTracker::fail(std::string_view error, std::string_view reason) {
  return state_->end({OutcomeKind::failed, std::string(reason), std::string(error)});
}

Result<void> ProgressTracker::incomplete(std::string_view reason) {
  return state_->end({OutcomeKind::incomplete, std::string(reason), {}});
}

Result<void> ProgressTracker::cancelled(std::string_view by) {
  return state_->end({.kind = OutcomeKind::cancelled,
                      .reason = std::string(reasons::cancelled),
                      .subject = std::string(by)});
}

Result<void> ProgressTracker::end(Outcome outcome) {
  return state_->end(with_subject(std::move(outcome)));
}

Result<void> ProgressTracker::flush(std::stop_token stop) {
  if (state_->forked()) return {};
  return state_->wait_until_durable(stop);
}

Directive ProgressTracker::directive() const {
  if (state_->forked()) return {};
  const std::lock_guard guard(state_->mutex);
  return state_->directive;
}

void ProgressTracker::on_abort(std::function<void(const CancelRequest&)> listener) {
  if (state_->forked()) return;
  using Listener = std::function<void(const CancelRequest&)>;
  auto next = listener ? std::make_shared<const Listener>(std::move(listener)) : nullptr;
  {
    const std::lock_guard turn(state_->reporting);
    state_->abort_listener = std::move(next);
  }
  state_->wake();
}

std::stop_token ProgressTracker::cancel_token() const noexcept {
  return state_->cancel.get_token();
}

void ProgressTracker::listen(std::function<void(const Report&)> listener) {
  std::shared_ptr<State::Listener> next;
  if (listener) {
    next = std::make_shared<State::Listener>();
    next->hear = std::move(listener);
  }
  {
    const std::lock_guard guard(state_->mutex);
    std::swap(state_->listener, next);
  }
  // A listener that replaces itself cannot wait for itself.
  if (!next || CallingOut::here()) return;
  for (int calls = next->calls; calls != 0; calls = next->calls) next->calls.wait(calls);
}

const std::filesystem::path& ProgressTracker::database() const noexcept {
  return state_->config.database;
}

Case ProgressTracker::judged() const {
  if (state_->forked()) return {};
  const std::lock_guard guard(state_->mutex);
  Case judged = state_->local;
  std::vector<Transition> ignored;
  const auto now = state_->boot_now() + state_->local_offset;
  if (state_->beats) {
    Event event;
    event.seq = state_->local_seq + 1;
    event.session = 1;
    event.tick = std::max(judged.history.tick, now);
    event.at = state_->config.clock->wall();
    event.origin = state_->config.origin;
    Heartbeats row = *state_->beats;
    row.first += state_->local_offset;
    row.last += state_->local_offset;
    event.report.detail = std::move(row);
    judged.fold(event, ignored);
  }
  judged.expire(now, ignored);
  return judged;
}

std::string ProgressTracker::progress() const {
  const Case now_judged = judged();
  Millis offset{};
  if (!state_->forked()) {
    const std::lock_guard guard(state_->mutex);
    offset = state_->local_offset;
  }
  const auto now = std::max(state_->boot_now() + offset, now_judged.history.tick);
  return progress_document(state_->config.session, now_judged, state_->description, now,
                           state_->config.clock->wall());
}

}  // namespace watchdog
