// Decides how a session ended if its agent only reports that it is gone. Its latest reports show
// it: a complete answer, an interruption, an open wait, an error of the model server, or unfinished
// work. Otherwise the outcome is `incomplete`.
#include <algorithm>
#include <deque>
#include <optional>
#include <utility>

#include "store/store_state.h"
#include "watchdog/reasons.h"

namespace watchdog {
namespace {

/// How many reports are read backwards; nearly always the latest few decide.
constexpr int reports_looked_at = 1'000;

/// The typed reason of what a model's server said, e.g. `HTTP 401: invalid key`.
std::string_view reason_of_error(std::string_view text) {
  constexpr std::pair<std::string_view, std::string_view> table[] = {
      {"HTTP 401", reasons::authentication},         {"HTTP 403", reasons::authentication},
      {"authentication", reasons::authentication},   {"invalid_api_key", reasons::authentication},
      {"HTTP 429", reasons::rate_limited},           {"Rate limit", reasons::rate_limited},
      {"rate_limit", reasons::rate_limited},         {"HTTP 5", reasons::model_server_error},
      {"server_error", reasons::model_server_error}, {"refused", reasons::connection_refused},
  };
  for (const auto& [part, reason] : table)
    if (text.find(part) != text.npos) return reason;
  return reasons::error;
}

Outcome failed(std::string_view reason, std::string error) {
  return {.kind = OutcomeKind::failed, .reason = std::string(reason), .error = std::move(error)};
}

Outcome unanswered(std::string error) {
  return {.kind = OutcomeKind::incomplete,
          .reason = std::string(reasons::no_answer),
          .error = std::move(error)};
}

Outcome interrupted() {
  return {.kind = OutcomeKind::cancelled,
          .reason = std::string(reasons::cancelled),
          .error = {},
          .subject = std::string(reasons::user)};
}

/// Why agents say that they end when a person at the keyboard ended them. The `exit` of Gemini CLI
/// proves nothing: Gemini CLI says it whenever its process ends, also after an error without a
/// person.
constexpr std::string_view acts_of_a_person[] = {
    "clear",     "logout",     "prompt_input_exit",
    "resume",                                    // Claude Code; Gemini CLI has some of them
    "user_exit", "abort",                        // Copilot CLI
    "aborted",   "user_close", "window_close"};  // Cursor

/// Goes through the reports of a session, the newest first, until one decides.
class LastWords {
 public:
  explicit LastWords(Outcome completed) : completed_(std::move(completed)) {}

  [[nodiscard]] std::optional<Outcome> fold(ReportKind kind, const std::string& name,
                                            const std::string& content) {
    // The monitor found a further process: nothing about the work.
    if (kind == ReportKind::start && name == found_process) return std::nullopt;
    if (retries_ && (kind == ReportKind::message || decides(kind))) {
      // The client itself gave up its request, or the server refused it.
      const bool gave_up = kind == ReportKind::message && name == "client";
      return gave_up ? unanswered(*retries_) : failed(reason_of_error(*retries_), *retries_);
    }
    if (kind == ReportKind::message) return fold_message(name, content);
    // The question was the last sentence of an answer.
    if (asked_ && is_complete_answer(kind, name, content)) return completed_;
    if (asked_ && decides(kind)) return asked_;
    switch (kind) {
      case ReportKind::idle:
        if (name == idle_reports::interrupted) return interrupted();
        if (name == idle_reports::failed && !content.empty())
          return failed(reason_of_error(content), content);
        if (name == idle_reports::relayed) rest_ = is_early_end(content) ? "" : content;
        at_rest_ = true;
        // A reminder may have come while it waited.
        may_wait_ = may_wait_ && name == idle_reports::reminder;
        return std::nullopt;
      case ReportKind::wait:
        if (!may_wait_)
          return name == wait_reports::retry && !rest_.empty() ? unanswered(rest_) : completed_;
        at_rest_ = false;
        return fold_wait(name, content);
      case ReportKind::start:
        return otherwise();
      case ReportKind::user_input:
      case ReportKind::tool_call:
      case ReportKind::tool_result:
      case ReportKind::error:
      case ReportKind::tool_timeout:
      case ReportKind::state_change:
        if (at_rest_) return completed_;
        if (!error_.empty()) return failed(reason_of_error(error_), error_);
        return unanswered("the session ended before its answer was complete");
      default:
        return std::nullopt;
    }
  }

  /// If no report decided.
  [[nodiscard]] Outcome otherwise() const {
    if (asked_) return *asked_;
    if (retries_) return failed(reason_of_error(*retries_), *retries_);
    return error_.empty() ? completed_ : failed(reason_of_error(error_), error_);
  }

 private:
  [[nodiscard]] static bool decides(ReportKind kind) {
    return kind == ReportKind::idle || kind == ReportKind::wait || kind == ReportKind::start ||
           kind == ReportKind::user_input || kind == ReportKind::tool_call ||
           kind == ReportKind::tool_result || is_failure(kind) || kind == ReportKind::state_change;
  }

  /// The agent says that its answer is complete, or another way saw it first.
  [[nodiscard]] static bool is_complete_answer(ReportKind kind, std::string_view name,
                                               std::string_view content) {
    const bool is_relayed =
        name == idle_reports::relayed && (content.empty() || is_early_end(content));
    return kind == ReportKind::idle && (name.empty() || is_relayed);
  }

  std::optional<Outcome> fold_message(const std::string& role, const std::string& content) {
    if (role == "server" || role == "error") {
      // Right before the turn was over: there was no answer.
      if (at_rest_ || asked_) return failed(reason_of_error(content), content);
      if (error_.empty())
        error_ = content.empty() ? "the model server answered with an error" : content;
    } else if (role == "assistant" && at_rest_) {
      return completed_;
    }
    return std::nullopt;
  }

  std::optional<Outcome> fold_wait(const std::string& name, const std::string& content) {
    const auto& why = content.empty() ? error_ : content;
    if (name == wait_reports::children) return completed_;
    if (name == wait_reports::login) return failed(reasons::authentication, why);
    if (name == wait_reports::quota || name == wait_reports::billing)
      return failed(reasons::rate_limited, why);
    if (name == wait_reports::overload || name == backend) return failed(reason_of_error(why), why);
    if (name == wait_reports::retry) {
      retries_ = why;
      return std::nullopt;
    }
    if (!error_.empty()) return failed(reason_of_error(error_), error_);
    asked_ = unanswered("the session ended while it waited for " + name +
                        (content.empty() ? "" : ": " + content));
    return std::nullopt;
  }

  Outcome completed_;
  std::string error_;                   ///< The newest that a model's server said.
  std::optional<std::string> retries_;  ///< Why it waits for the next try of a request.
  std::string rest_;                    ///< Why the proxy ended such a wait.
  bool at_rest_ = false;                ///< The newest that decides is that its turn is done.
  bool may_wait_ = true;
  /// The newest that decides is that it asks a person: then this, unless its turn had failed.
  std::optional<Outcome> asked_;
};

/// Gives the reports to LastWords, the newest first. Hooks report at once, while a transcript is
/// read a moment later: its lines are taken by their own time.
class ByTime {
 public:
  struct Row {
    ReportKind kind;
    std::string name;
    std::string content;
    std::int64_t at_ms;
  };

  explicit ByTime(LastWords words) : words_(std::move(words)) {}

  void add(Row row, bool is_line) {
    if (!is_line) {
      while (!lines_.empty() && lines_.front().at_ms >= row.at_ms) fold_line();
      fold(row);
    } else if (lines_.push_back(std::move(row)); lines_.size() > lines_max) {
      fold_line();
    }
  }
  /// The outcome, if one of the reports so far decides.
  [[nodiscard]] const std::optional<Outcome>& outcome() const { return outcome_; }
  /// After the last report.
  [[nodiscard]] Outcome finish() {
    while (!lines_.empty()) fold_line();
    return outcome_ ? std::move(*outcome_) : words_.otherwise();
  }

 private:
  /// So many lines may be read after a hook reported something newer.
  static constexpr std::size_t lines_max = 32;

  void fold(const Row& row) {
    if (!outcome_) outcome_ = words_.fold(row.kind, row.name, row.content);
  }
  void fold_line() {
    fold(lines_.front());
    lines_.pop_front();
  }

  LastWords words_;
  std::deque<Row> lines_;  ///< Of a transcript, the newest first: not yet in their place.
  std::optional<Outcome> outcome_;
};

/// A person ended the agent in the middle of its work. That person knows it and needs no alert.
Outcome by_person(Outcome outcome) {
  if (outcome.kind != OutcomeKind::incomplete) return outcome;
  auto ended = interrupted();
  ended.error = std::move(outcome.error);
  return ended;
}

}  // namespace

Outcome Store::State::Appender::outcome_by_answer(const Head& head, Outcome reported) {
  reported.by_answer = false;
  const bool is_act =
      std::ranges::find(acts_of_a_person, reported.reason) != std::end(acts_of_a_person);
  // An agent's own word, such as `other` or `exit`, does not say how its work ended.
  reported.reason = reasons::task_complete;
  ByTime reports{LastWords(std::move(reported))};
  Backwards at(*log_.reader.state_, "kind, name, content, at_ms, origin, prev", 5, head.seq);
  for (int looked = 0; !reports.outcome() && looked < reports_looked_at && at.step(); ++looked) {
    const auto& query = at.row();
    const auto kind = query.integer(0);
    if (kind < 0 || kind >= static_cast<std::int64_t>(std::size(Names<ReportKind>::all))) continue;
    reports.add({.kind = static_cast<ReportKind>(kind),
                 .name = query.text(1),
                 .content = query.text(2),
                 .at_ms = query.integer(3)},
                query.integer(4) == static_cast<std::int64_t>(ReportOrigin::transcript));
  }
  auto outcome = reports.finish();
  return is_act ? by_person(std::move(outcome)) : outcome;
}

}  // namespace watchdog
