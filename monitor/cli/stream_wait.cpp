// Waits for a session of a monitor. The progress document gives the state at the start and after
// a reconnection; events and transitions of the stream update it. `ruling` decides, as for a
// file.
#include "cli/stream_wait.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "codec/json.h"
#include "core/sse_reader.h"
#include "mcp/api_event.h"
#include "terminal/phrases.h"
#include "terminal/situation.h"
#include "terminal/table.h"
#include "watchdog/terminal_text.h"

namespace watchdog::monitor {
namespace {

using nlohmann::json;

/// Between two tries to reach a monitor that is gone, or to find a session that has not started.
constexpr std::chrono::milliseconds try_again{500};

std::string text_in(const json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}
std::int64_t number_in(const json& object, const char* name, std::int64_t otherwise = 0) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number_integer() ? found->get<std::int64_t>()
                                                             : otherwise;
}

class StreamWaiting {
 public:
  explicit StreamWaiting(const StreamWait& asked)
      : asked_(asked), base_("/api/autonomous/sessions/" + url_encoded(asked.session)) {}

  Result<std::string, WaitFailure> run() {
    auto client = Endpoint::connect(asked_.endpoint);
    auto endpoint = Endpoint::open(asked_.endpoint);
    if (!client || !endpoint)
      return failure(WaitEnd::misuse, (client ? endpoint.error() : client.error()).message);
    endpoint_.emplace(std::move(*endpoint));
    while (true) {
      reader_.restart();
      const auto response = client->listen(
          base_ + "/stream", reader_.last_id(),
          [&](std::string_view bytes) {
            return reader_.feed(bytes, [&](const SseRecord& record) { return understand(record); });
          },
          asked_.stop);
      if (over_) return std::move(*over_);
      if (asked_.stop.stop_requested()) {
        look();
        if (over_) return std::move(*over_);
        return failure(WaitEnd::interrupted,
                       there_ ? "wait interrupted; session was " + std::string(name_of(now_.health))
                              : "wait interrupted before the session started");
      }
      if (auto end = without_stream(response)) return std::move(*end);
      pause();
    }
  }

 private:
  using End = std::optional<Result<std::string, WaitFailure>>;

  /// The stream ended, or did not begin; empty: it is tried again.
  End without_stream(const Result<Response>& response) {
    if (!response) {
      if (!reached_) {
        return failure(WaitEnd::unavailable,
                       response.error().message +
                           ". Is a monitor running? Start one with `watchdog-monitor serve`, name "
                           "it with --server, or read a database with --db FILE");
      }
      print("the monitor does not answer; retrying until it does");
      return {};
    }
    reached_ = true;
    if (response->status == 503) return {};
    const auto error = error_from(*response);
    if (response->status != 404) return failure(WaitEnd::misuse, error.message);
    if (there_ || asked_.must_exist) return failure(WaitEnd::no_session, error.message);
    if (!std::exchange(absence_reported_, true) && asked_.absent) asked_.absent();
    return {};
  }

  void pause() {
    std::mutex mutex;
    std::unique_lock guard(mutex);
    std::condition_variable_any called_off;
    called_off.wait_for(guard, asked_.stop, try_again, [] { return false; });
  }

  void print(const std::string& line) const {
    if (asked_.seen) asked_.seen(line);
  }

  /// Returns false once the wait is over. Records of other programs or versions are skipped.
  bool understand(const SseRecord& record) {
    try {
      on_record(record);
    } catch (const json::exception&) {
    }
    return !over_;
  }

  void on_record(const SseRecord& record) {
    const auto data = json::parse(record.data, nullptr, false);
    if (!data.is_object()) return;
    reached_ = true;
    if (record.event == "snapshot" && data.contains("sessions")) {
      for (const auto& document : data["sessions"]) on_document(document);
    } else if (record.event == "session") {
      on_document(data);
    } else if (record.event == "transition") {
      now_.health = named<HealthKind>(text_in(data, "health")).value_or(now_.health);
      add_sample();
    } else if (record.event == "event") {
      on_event(api_event(data));
    }
  }

  void apply_document(const json& document) {
    document_ = document;
    now_.lifecycle = named<Lifecycle>(text_in(document, "lifecycle")).value_or(now_.lifecycle);
    now_.health = named<HealthKind>(text_in(document, "health")).value_or(now_.health);
  }

  void on_document(const json& document) {
    if (!document.is_object() || !document.contains("lifecycle")) return;
    apply_document(document);
    // Later documents may overtake events of the stream, which then still count.
    if (!std::exchange(there_, true)) {
      covered_ = number_in(document, "lastSeq");
      look_back();
    }
    print(situation_line(document));
    add_sample();
  }

  void on_event(const Event& event) {
    if (event.seq <= covered_ || event.late) return;  // a document had it already
    const auto& report = event.report;
    if (asked_.until.goal == Goal::state_change) {
      now_.holds |= is_change(report, asked_.until.what);
    }
    iterations_.fold(event);
    if (const auto* outcome = std::get_if<Outcome>(&report.detail);
        outcome != nullptr && report.kind == ReportKind::end) {
      now_.lifecycle = lifecycle_of(outcome->kind);
    } else if (report.kind == ReportKind::start) {
      now_.lifecycle = Lifecycle::running;
    }
    add_sample();
  }

  void add_sample() {
    if (over_) return;
    now_.beats = iterations_.beats;
    now_.rounds = iterations_.rounds;
    see(memory_, now_);
    judge_now();
  }

  void judge_now() {
    const auto health = std::string(name_of(memory_.latest.health));
    switch (ruling(asked_.until, memory_)) {
      case Ruling::go_on:
        return;
      case Ruling::met:
        over_ = came();
        return;
      case Ruling::ended:
        over_ =
            failure(WaitEnd::ended,
                    "it ended as " + std::string(name_of(memory_.latest.lifecycle)) + " instead");
        return;
      case Ruling::dead:
        over_ = failure(WaitEnd::dead, "its process is gone, and it never said that it ended");
        return;
      case Ruling::ask:
        if (asked_.ask) {
          // The question is about the present state.
          if (last_look() != Ruling::ask) return judge_now();
          if (asked_.ask(situation_line(document_))) return forgive(memory_);
          fail_unless_over(WaitEnd::user_cancelled_stuck,
                           "it is " + health + ", and who was asked did not want to go on");
          return;
        }
        [[fallthrough]];
      case Ruling::stuck:
        fail_unless_over(WaitEnd::stuck, "it has been " + health + " for " +
                                             std::to_string(further_iterations(memory_)) +
                                             " further iterations (limit " +
                                             std::to_string(asked_.until.further_max) + ")");
    }
  }

  /// The last look.
  void fail_unless_over(WaitEnd end, const std::string& why) {
    const auto now = last_look();
    const bool refuted = now == Ruling::go_on && end == WaitEnd::stuck;
    if (now == Ruling::met || now == Ruling::ended || now == Ruling::dead) {
      judge_now();
    } else if (!refuted) {
      over_ = failure(end, why);
    }
  }

  Ruling last_look() {
    failing_ = true;
    look();
    failing_ = false;
    return ruling(asked_.until, memory_);
  }

  void look() {
    const auto body = endpoint_->ask(Method::get, progress_);
    if (!body) return;
    const auto document = json::parse(*body, nullptr, false);
    if (!document.is_object()) return;
    apply_document(document);
    see(memory_, now_);
    if (!failing_) judge_now();
  }

  /// Passes the session's events after one, oldest first, until the receiver has enough.
  void each_event(Seq seq, const std::function<bool(const Event&)>& visit) {
    for (std::string after = std::to_string(seq); !after.empty();) {
      const auto body = endpoint_->ask(Method::get, base_ + "/events?limit=1000&after=" + after);
      if (!body) return;
      const auto page = json::parse(*body, nullptr, false);
      if (!page.is_object() || !page.contains("events")) return;
      for (const auto& event : page["events"]) {
        if (!visit(api_event(event))) return;
      }
      after = page["next"].is_number() ? page["next"].dump() : "";
    }
  }

  std::vector<Transition> changes() {
    std::vector<Transition> changes;
    for (std::string after = "0"; !after.empty();) {
      const auto body =
          endpoint_->ask(Method::get, base_ + "/transitions?limit=1000&after=" + after);
      if (!body) break;
      const auto page = json::parse(*body, nullptr, false);
      if (!page.is_object() || !page.contains("transitions")) break;
      for (const auto& row : page["transitions"]) {
        Transition change{.seq = number_in(row, "seq"),
                          .at = WallTime{Millis{number_in(row, "at")}},
                          .reason = text_in(row, "reason")};
        change.from = named<HealthKind>(text_in(row, "from")).value_or(HealthKind::unknown);
        change.health.kind =
            named<HealthKind>(text_in(row, "health")).value_or(HealthKind::unknown);
        changes.push_back(std::move(change));
      }
      after = page["next"].is_number() ? page["next"].dump() : "";
    }
    return changes;
  }

  /// The goal may have been met before the wait, and trouble may have begun.
  void look_back() {
    if (asked_.until.goal == Goal::state_change) {
      each_event(0, [&](const Event& event) {
        now_.holds |= !event.late && is_change(event.report, asked_.until.what);
        return !now_.holds;
      });
    }
    if (!is_stuck(now_.health)) return;
    const auto since = stuck_since(changes());
    if (!since) return;
    see(memory_, {.health = now_.health});
    each_event(*since, [&](const Event& event) {
      if (event.seq <= covered_) iterations_.fold(event);
      return event.seq <= covered_;
    });
  }

  Timeline timeline() {
    const auto changed = changes();
    auto change = changed.begin();
    Timeline timeline;
    each_event(0, [&](const Event& event) {
      for (; change != changed.end() && change->seq < event.seq; ++change)
        timeline.add(timeline_entry(*change));
      if (const auto* beats = std::get_if<Heartbeats>(&event.report.detail)) {
        timeline.heartbeats += beats->count;
      } else {
        timeline.add(timeline_entry(event));
      }
      return true;
    });
    for (; change != changed.end(); ++change) timeline.add(timeline_entry(*change));
    return timeline;
  }

  Result<std::string, WaitFailure> came() {
    auto body = endpoint_->ask(Method::get, progress_);
    return body ? std::move(*body) : std::string();
  }

  Result<std::string, WaitFailure> failure(WaitEnd end, std::string why) {
    WaitFailure failed{.end = end,
                       .session = asked_.session,
                       .expected = text_of(asked_.until),
                       .why = terminal_line(why),
                       .lifecycle = now_.lifecycle};
    if (there_ && endpoint_) {
      failed.timeline = timeline();
      failed.last = situation_line(document_);
    }
    return failed;
  }

  const StreamWait& asked_;
  const std::string base_;
  const std::string progress_ = "/api/autonomous/progress/" + url_encoded(asked_.session);
  std::optional<Endpoint> endpoint_;
  SseReader reader_;
  bool reached_ = false;  ///< The monitor has answered.
  bool there_ = false;    ///< And knows the session.
  bool absence_reported_ = false;
  bool failing_ = false;  ///< The last look is under way.
  json document_ = json::object();
  std::int64_t covered_ = 0;  ///< Events up to this one are in a document.
  SessionSample now_;
  WaitMemory memory_;
  IterationCount iterations_;
  End over_;
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
