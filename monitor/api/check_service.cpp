// `ask` looks for a check of the same id, then for one under way, and only then starts another. An
// answer is stored before it is published. Until then a check of this process is pending, although
// the file has its answer. Otherwise `ask` would return a check that is done as one under way. The
// file is asked for other checks, where the answer `ID` counts before the question `?ID`. A stored
// question has failed if the process that asked is gone. Callers share the lock `closing`; the
// destructor takes it alone, so no call meets a checker that is being destroyed.
#include "api/check_service.h"

#include <algorithm>
#include <array>
#include <future>
#include <mutex>
#include <shared_mutex>
#include <utility>

#include "facts/ids.h"
#include "loop/check_subject.h"
#include "store/event_reader.h"

namespace watchdog::monitor {
namespace {

/// Marks questions of the monitor, to distinguish them from agents that ask about themselves.
constexpr std::string_view asker = "monitor";

/// A question of another monitor that is older than this gets no answer any more.
constexpr Millis answer_awaited_for{180'000};

constexpr std::array doubtful{HealthKind::suspect, HealthKind::stuck, HealthKind::looping};

Error nobody() {
  return {
      ErrorCode::unavailable,
      "there is no model to ask: start the monitor with --llm-base-url, or set OPENAI_BASE_URL"};
}

Error unknown(const std::string& id) {
  return {ErrorCode::not_found, "there is no check " + id, "checkId"};
}

}  // namespace

struct CheckService::State {
  State(Backend& given, Options chosen) : backend(given), options(std::move(chosen)) {}

  Backend& backend;
  Options options;
  std::shared_mutex closing;               ///< Held while the checker is used, alone to close it.
  std::unique_ptr<StatusChecker> checker;  ///< Null: there is no model to ask, or not any more.

  [[nodiscard]] bool may_start(std::string_view session) {
    const std::shared_lock open(closing);
    return checker && checker->may_start(session);
  }

  [[nodiscard]] std::optional<Check> known(std::string_view id) {
    const std::shared_lock open(closing);
    return checker ? checker->find(id) : std::nullopt;
  }

  [[nodiscard]] std::optional<Check> under_way(std::string_view session) {
    const std::shared_lock open(closing);
    return checker ? checker->pending(session) : std::nullopt;
  }

  [[nodiscard]] Result<Check> started(CheckSubject subject, std::string id) {
    const std::shared_lock open(closing);
    if (!checker) return nobody();
    return checker->start(std::move(subject), std::move(id));
  }

  void keep(const Check& check, std::string_view model, Done done) {
    Batch batch{
        .session = check.session, .creation = Creation::refuse, .by = ReportOrigin::monitor};
    batch.reports.push_back(report_of(check, model));
    backend.append(std::move(batch), [check, done = std::move(done)](const Result<Receipt>& kept) {
      if (done) done(kept ? Result<Check>(check) : Result<Check>(kept.error()));
    });
  }

  /// Returns when it is durable: a published answer stays readable.
  void keep_now(const Check& check, std::string_view model) {
    std::promise<Result<Check>> kept;
    keep(check, model, [&](Result<Check> result) { kept.set_value(std::move(result)); });
    const auto result = kept.get_future().get();
    if (!result) options.log("check " + check.id + " cannot be kept: " + result.error().message);
  }

  /// `subject` is the session as in the file.
  void start(CheckSubject subject, std::string id, const Done& done) {
    auto check = started(std::move(subject), std::move(id));
    if (!check) return done(check.error());
    if (check->state != CheckState::pending) return done(*check);  // asked for again
    keep(*check, asker, done);
  }

  /// Asks about a session in trouble, unless that is not wanted, or is done already.
  void look_at(StoreReader& reader, const SessionRow& row) {
    if (is_end(row.lifecycle) || !options.on_suspicion(row.spec) || !may_start(row.id)) return;
    auto subject = check_subject(reader, row);
    if (!subject || !subject->judged.policy->concurrent_checks || pending_check(*subject)) return;
    start(std::move(*subject), {}, [this, id = row.id](const Result<Check>& check) {
      if (!check) options.log("session " + id + " is not checked: " + check.error().message);
    });
  }

  /// Called from the checker's threads, which may wait.
  [[nodiscard]] bool is_outdated_now(const Check& check) const {
    if (const auto watched = backend.watched(check.session))
      return is_outdated(watched->judged.history, check.seen);
    if (!backend.is_shared()) return false;
    const auto outdated = std::make_shared<std::promise<bool>>();
    backend.read(
        [this, outdated, check](StoreReader& reader) {
          const auto row = reader.session(check.session);
          const auto found = row ? look_up(backend, reader, *row) : Result<Watched>(row.error());
          outdated->set_value(found && is_outdated(found->judged.history, check.seen));
        },
        [outdated](const Error&) { outdated->set_value(false); });
    return outdated->get_future().get();
  }

  /// Returns the check, from here or from the file.
  [[nodiscard]] Result<Check> found(StoreReader& reader, const std::string& id) {
    const auto here = known(id);
    return here ? Result<Check>(*here) : stored(reader, id);
  }

  /// True if another monitor asked, and its model may still answer.
  [[nodiscard]] bool is_awaited(const Event& question) const {
    return backend.is_shared() && backend.now() - question.tick < answer_awaited_for;
  }

  /// Returns a check of the session that another monitor has under way.
  [[nodiscard]] std::optional<Check> under_way_elsewhere(const CheckSubject& subject) const {
    auto pending = pending_check(subject);
    if (!pending) return std::nullopt;
    const auto question = std::ranges::find(
        subject.recent, "?" + pending->id,
        [](const Event& event) -> const auto& { return event.report.event_id; });
    if (question == subject.recent.end() || !is_awaited(*question)) return std::nullopt;
    return pending;
  }

  [[nodiscard]] Result<Check> stored(StoreReader& reader, const std::string& id) const {
    for (const auto& event_id : {id, "?" + id}) {
      const auto event = EventReader(reader).opinion(event_id);
      if (!event) return event.error();
      if (!*event) continue;
      const auto row = reader.session((*event)->session);
      if (!row) return row.error();
      auto check = check_of(**event, row->id);
      if (!check) continue;
      // The asking process is gone, and its answer with it.
      const bool lost =
          ((*event)->report.name == asker && !is_awaited(**event)) || is_end(row->lifecycle);
      if (check->state == CheckState::pending && lost) {
        check->state = CheckState::failed;
        check->reason = "the process that asked was gone before the answer came";
      }
      return *check;
    }
    return unknown(id);
  }
};

CheckService::CheckService(Backend& backend, Model model, Options options)
    : can_ask_(static_cast<bool>(model)),
      state_(std::make_shared<State>(backend, std::move(options))) {
  if (!model) return;
  const auto name = state_->options.checker.model;
  // The checker dies first: its calls never outlive the state.
  auto* state = state_.get();
  state->checker = std::make_unique<StatusChecker>(
      StatusChecker::Parts{
          .model = std::move(model),
          .outdated = [state](const Check& check) { return state->is_outdated_now(check); },
          .done = [state, name](const Check& check) { state->keep_now(check, name); }},
      state->options.checker);
}

CheckService::~CheckService() {
  const std::unique_lock alone(state_->closing);
  state_->checker.reset();
}

void CheckService::ask(std::string session, std::string id, Done done) {
  if (!can_ask_) return done(nobody());
  if (!id.empty() && !is_session_id(id)) {
    return done(Error{ErrorCode::invalid,
                      "checkId must be 1 to 128 of the characters A-Z a-z 0-9 . _ : @ -",
                      "checkId"});
  }
  state_->backend.read(
      [state = state_, session, id, done](StoreReader& reader) {
        const auto row = reader.session(session);
        if (!row) return done(row.error());
        if (!id.empty()) {
          // The same question twice has one answer.
          const auto earlier = state->found(reader, id);
          if (earlier && earlier->session == session) return done(*earlier);
          if (earlier) {
            return done(
                Error{ErrorCode::conflict, "check " + id + " is another session's", "checkId"});
          }
        }
        if (is_end(row->lifecycle)) {
          return done(Error{
              ErrorCode::conflict,
              "session " + session + " has ended already: " + std::string(name_of(row->lifecycle)),
              "sessionId"});
        }
        // One question at a time: other callers wait for the same answer.
        if (const auto check = state->under_way(session)) return done(*check);
        auto subject = check_subject(reader, *row);
        if (!subject) return done(subject.error());
        if (const auto check = state->under_way_elsewhere(*subject)) return done(*check);
        state->start(std::move(*subject), id, done);
      },
      [done](Error error) { done(std::move(error)); });
}

void CheckService::find(std::string id, Done done) {
  if (const auto here = state_->known(id)) return done(*here);
  state_->backend.read(
      [state = state_, id, done](StoreReader& reader) { done(state->found(reader, id)); },
      [done](Error error) { done(std::move(error)); });
}

void CheckService::look_around() {
  if (!can_ask_ || !state_->options.on_suspicion) return;
  state_->backend.read(
      [state = state_](StoreReader& reader) {
        for (const auto health : doubtful) {
          const auto rows = reader.sessions({.healths = {health}, .lifecycle = Lifecycle::running});
          if (!rows) return;
          for (const auto& row : *rows) state->look_at(reader, row);
        }
      },
      [](const Error&) {});
}

void CheckService::notice(const Transition& change) {
  if (!can_ask_ || !state_->options.on_suspicion) return;
  if (std::find(doubtful.begin(), doubtful.end(), change.health.kind) == doubtful.end()) return;
  state_->backend.read(
      [state = state_, session = change.session](StoreReader& reader) {
        if (const auto row = reader.session(session)) state->look_at(reader, *row);
      },
      [](const Error&) {});
}

}  // namespace watchdog::monitor
