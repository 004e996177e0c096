// Waits for a session of a monitor. The monitor has the rule of waiting; it answers late. The
// cursor of an answer keeps the state of the wait, so another monitor of the same file can go on.
// Only a monitor that never answered is an error.
#include "cli/stream_wait.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "terminal/situation.h"
#include "wait/account.h"
#include "watchdog/terminal_text.h"

namespace watchdog::monitor {
namespace {

using nlohmann::json;

/// Between two tries to reach a monitor that is gone.
constexpr std::chrono::milliseconds try_again{500};
/// Frequent changes are shown no more often than this.
constexpr std::chrono::milliseconds between_lines{50};
/// No answer of a monitor is longer.
constexpr std::size_t wait_answer_bytes_max = 16 * 1024 * 1024;

std::string text_in(const json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

class StreamWaiting {
 public:
  explicit StreamWaiting(const StreamWait& asked)
      : asked_(asked),
        target_("/api/autonomous/sessions/" + url_encoded(asked.session) + "/wait?for=" +
                url_encoded(text_of(asked.until)) + "&onStuck=" + std::string(name_of(on_stuck())) +
                "&furtherMax=" + std::to_string(asked.until.further_max)) {
    // A monitor before 0.3 does not know these.
    if (asked.until.on_suspect == OnDoubt::fail) target_ += "&onSuspect=fail";
    if (asked.until.on_quiet == OnDoubt::fail) target_ += "&onQuiet=fail";
  }

  Result<std::string, WaitFailure> run() {
    auto client = Endpoint::connect(asked_.endpoint);
    auto endpoint = Endpoint::open(asked_.endpoint);
    if (!client || !endpoint)
      return failure(WaitEnd::misuse, (client ? endpoint.error() : client.error()).message);
    endpoint_.emplace(std::move(*endpoint));
    while (true) {
      std::string body;
      const auto response = client->listen(
          next_target(), {},
          [&](std::string_view bytes) {
            body += bytes;
            return body.size() <= wait_answer_bytes_max;
          },
          asked_.stop);
      if (asked_.stop.stop_requested()) return interrupted();
      if (auto end = body.empty() ? without_answer(response) : understand(body))
        return std::move(*end);
    }
  }

 private:
  using End = std::optional<Result<std::string, WaitFailure>>;

  /// Without anybody to ask it fails.
  [[nodiscard]] OnStuck on_stuck() const {
    return asked_.until.on_stuck == OnStuck::ask && !asked_.ask ? OnStuck::fail
                                                                : asked_.until.on_stuck;
  }

  /// The first answer is at once. A display shows each change.
  [[nodiscard]] std::string next_target() const {
    const bool is_last = asked_.stop.stop_requested();
    if (cursor_.empty() && !is_last) return target_ + "&timeoutMs=0";
    const auto* shows = is_last ? "now" : asked_.seen ? "changes" : "over";
    return target_ + "&tell=" + shows + "&cursor=" + url_encoded(cursor_);
  }

  /// An answer that was cut off is asked for again.
  End understand(const std::string& body) {
    const auto answer = json::parse(body, nullptr, false);
    if (answer.is_discarded() && is_reached_) return is_lost();
    if (!answer.is_object() || text_in(answer, "sessionId") != asked_.session) return no_monitor();
    is_reached_ = true;
    answer_ = answer;
    cursor_ = answer.at("cursor").get<std::string>();
    const auto& progress = answer.at("progress");
    if (answer.at("came").get<bool>()) return progress.dump();
    const auto end = named<WaitEnd>(text_in(answer, "end"));
    if (end == WaitEnd::stuck && on_stuck() == OnStuck::ask) {
      if (asked_.stop.stop_requested() || asked_.ask(situation_line(progress))) return {};
      return failure(WaitEnd::user_cancelled_stuck, text_in(answer, "why") + refused_to_go_on);
    }
    if (end) return failure(*end, text_in(answer, "why"));
    if (progress.is_object()) {
      print(situation_line(progress));
      if (asked_.seen) return pause(between_lines);
    } else if (asked_.must_exist) {
      return failure(WaitEnd::no_session, "unknown session " + asked_.session);
    } else if (!std::exchange(absence_reported_, true) && asked_.absent) {
      asked_.absent();
    }
    return {};
  }

  End without_answer(const Result<Response>& response) {
    if (!response) {
      if (is_reached_) return is_lost();
      return failure(WaitEnd::unavailable,
                     response.error().message +
                         ". Is a monitor running? Start one with `watchdog-monitor serve`, name "
                         "it with --server, or read a database with --db FILE");
    }
    if (response->status == 503 || response->status == 429) return pause(try_again);
    const auto error = error_from(*response);
    if (response->status != 404) return failure(WaitEnd::misuse, error.message);
    return failure(
        WaitEnd::misuse,
        "the monitor is older than this program, which needs 0.2.0 or newer: " + error.message);
  }

  End no_monitor() {
    return failure(WaitEnd::misuse, "not a watchdog-monitor, or an incompatible version");
  }

  End is_lost() {
    print("the monitor does not answer; retrying until it does");
    return pause(try_again);
  }

  End pause(std::chrono::milliseconds time) const {
    std::mutex mutex;
    std::unique_lock guard(mutex);
    std::condition_variable_any called_off;
    called_off.wait_for(guard, asked_.stop, time, [] { return false; });
    return {};
  }

  Result<std::string, WaitFailure> interrupted() {
    // The last look, with the timeline.
    if (const auto body = endpoint_->ask(Method::get, next_target())) {
      if (auto end = understand(*body)) return std::move(*end);
    }
    const auto health = answer_.is_object() && answer_.at("progress").is_object()
                            ? text_in(answer_.at("progress"), "health")
                            : std::string();
    return failure(WaitEnd::interrupted, health.empty()
                                             ? "wait interrupted before the session started"
                                             : "wait interrupted; session was " + health);
  }

  void print(const std::string& line) const {
    if (asked_.seen) asked_.seen(line);
  }

  [[nodiscard]] static std::vector<TimelineEntry> entries(const json& told) {
    std::vector<TimelineEntry> entries;
    for (const auto& entry : told)
      entries.push_back({.at = WallTime{Millis{entry.at("at").get<std::int64_t>()}},
                         .text = terminal_line(text_in(entry, "text"))});
    return entries;
  }

  Result<std::string, WaitFailure> failure(WaitEnd end, std::string why) {
    WaitFailure failed{.end = end,
                       .session = asked_.session,
                       .expected = text_of(asked_.until),
                       .why = terminal_line(why)};
    if (!answer_.is_object() || !answer_.at("progress").is_object()) return failed;
    failed.last = terminal_line(text_in(answer_, "last"));
    failed.lifecycle =
        named<Lifecycle>(text_in(answer_.at("progress"), "lifecycle")).value_or(failed.lifecycle);
    const auto& timeline = answer_.at("timeline");
    if (!timeline.is_object()) return failed;
    failed.timeline = {.first = entries(timeline.at("first")),
                       .omitted = timeline.at("omitted").get<std::int64_t>(),
                       .last = entries(timeline.at("last")),
                       .heartbeats = timeline.at("heartbeats").get<std::int64_t>()};
    return failed;
  }

  const StreamWait& asked_;
  std::string target_;
  std::optional<Endpoint> endpoint_;
  bool is_reached_ = false;  ///< The monitor has answered.
  bool absence_reported_ = false;
  std::string cursor_;
  json answer_;  ///< The newest one.
};

}  // namespace

Result<std::string, WaitFailure> wait_on_stream(const StreamWait& asked) {
  try {
    return StreamWaiting(asked).run();
  } catch (const json::exception&) {
    return WaitFailure{.end = WaitEnd::misuse,
                       .session = asked.session,
                       .expected = text_of(asked.until),
                       .why = "not a watchdog-monitor, or an incompatible version"};
  }
}

}  // namespace watchdog::monitor
