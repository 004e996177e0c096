// Into a file a `ProgressTracker` reports. To a monitor one thread posts a queue of finished texts.
// The first `sending` of them are under way; they leave the queue when they are stored or refused
// for good. Reports have ids and times before they wait, so a repeated post changes nothing. Of
// beats only the newest waits, and it goes behind all reports. The thread owns its state with the
// object, so a destructor that must not wait can leave it behind.
#include "cli/session_reporting.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <nlohmann/json.hpp>
#include <stop_token>
#include <thread>
#include <utility>

#include "codec/json.h"
#include "facts/ids.h"
#include "privacy/redaction.h"
#include "terminal/output.h"
#include "watchdog/tracker.h"

namespace watchdog::monitor {
namespace {

class FileReporting final : public Reporting {
 public:
  FileReporting(const ReportedSession& session, const std::filesystem::path& database)
      : tracker_({.session = session.id,
                  .spec = session.spec,
                  .database = database,
                  .sidecar = false,  // its heartbeats would know nothing of the command
                  .origin = ReportOrigin::run,
                  .refusal_max = end_wait_max / 2}) {}

  void beat(const Counters& counters) override {
    std::vector<watchdog::Counter> shown;
    shown.reserve(counters.size());
    for (const auto& [name, value] : counters) shown.push_back({name, value});
    tracker_.heartbeat({.counters = shown, .source = Source::sidecar});
  }
  void say(Report report) override { tracker_.report(std::move(report)); }
  [[nodiscard]] std::optional<CancelRequest> cancelled() const override {
    return tracker_.directive().cancel;
  }
  void on_cancel(std::function<void()> listener) override {
    on_cancel_.emplace(tracker_.cancel_token(), std::move(listener));
  }
  Result<void> end(Outcome outcome) override { return tracker_.end(std::move(outcome)); }

 private:
  ProgressTracker tracker_;
  std::optional<std::stop_callback<std::function<void()>>> on_cancel_;
};

constexpr std::size_t queue_bytes_max = 8U << 20U;
constexpr std::size_t request_bytes_max = 1U << 20U;
constexpr Millis retry_first{100};
constexpr Millis retry_max{2'000};

std::string as_posted(Report report) {
  redact(report);  // the monitor may have other patterns
  Event event;
  event.report = std::move(report);
  return to_json(event);
}

class ServerReporting final : public Reporting {
 public:
  ServerReporting(const ReportedSession& session, Endpoint endpoint)
      : state_(std::make_shared<State>(session, std::move(endpoint))) {
    Report start;
    start.kind = ReportKind::start;
    start.detail = this_process();
    say(std::move(start));
    thread_ = std::thread([state = state_] { state->run(); });
  }
  ~ServerReporting() override {
    std::unique_lock guard(state_->mutex);
    state_->stopping = true;
    state_->changed.notify_all();
    // A monitor that does not answer must not delay the command's end.
    const bool came_back =
        state_->changed.wait_for(guard, retry_first, [this] { return state_->finished; });
    guard.unlock();
    came_back ? thread_.join() : thread_.detach();
  }
  ServerReporting(const ServerReporting&) = delete;
  ServerReporting& operator=(const ServerReporting&) = delete;

  void beat(const Counters& counters) override {
    Report report;
    report.detail = Heartbeats{.phase = {}, .source = Source::sidecar, .counters = counters};
    auto text = as_posted(std::move(report));
    const std::lock_guard guard(state_->mutex);
    state_->beat = std::move(text);
    state_->changed.notify_all();
  }
  void say(Report report) override {
    const auto now = system_clock().wall();
    if (report.event_id.empty()) report.event_id = new_uuid7(now);
    if (!report.ts_ms) report.ts_ms = now.time_since_epoch().count();
    auto text = as_posted(std::move(report));
    const std::lock_guard guard(state_->mutex);
    if (state_->queue_bytes + text.size() > queue_bytes_max) return;
    state_->queue_bytes += text.size();
    state_->queue.push_back(std::move(text));
    state_->changed.notify_all();
  }
  [[nodiscard]] std::optional<CancelRequest> cancelled() const override {
    const std::lock_guard guard(state_->mutex);
    return state_->cancel;
  }
  void on_cancel(std::function<void()> listener) override {
    const std::lock_guard guard(state_->mutex);
    state_->listener = std::move(listener);
    if (state_->cancel) state_->listener();
  }
  Result<void> end(Outcome outcome) override {
    Report report;
    report.kind = ReportKind::end;
    report.detail = std::move(outcome);
    say(std::move(report));
    std::unique_lock guard(state_->mutex);
    const bool sent = state_->changed.wait_for(
        guard, end_wait_max, [this] { return state_->queue.empty() && state_->sending == 0; });
    state_->listener = nullptr;
    if (sent) return {};
    return Error{ErrorCode::unavailable,
                 state_->refusal.empty() ? "the monitor does not answer" : state_->refusal};
  }

 private:
  /// The thread's state, for as long as it runs.
  struct State {
    State(const ReportedSession& session, Endpoint to) : id(session.id), endpoint(std::move(to)) {
      auto spec = session.spec;
      redact(spec);
      creation = to_json(spec);
      creation.insert(1, "\"sessionId\":\"" + id + "\"" + (creation == "{}" ? "" : ","));
    }

    const std::string id;
    std::string creation;  ///< Asks for the session; empty: it is there.
    Endpoint endpoint;     ///< Of the thread alone.

    std::mutex mutex;
    std::condition_variable changed;
    std::deque<std::string> queue;  ///< Events as they are posted.
    std::size_t queue_bytes = 0;
    std::size_t sending = 0;  ///< Of the queue's front, these are under way.
    std::string beat;         ///< The newest, not sent yet; empty: none.
    std::string refusal;
    std::optional<CancelRequest> cancel;
    std::function<void()> listener;
    bool stopping = false;
    bool finished = false;

    void run() {
      auto pause = retry_first;
      while (true) {
        const auto body = next();
        if (body.empty()) break;
        if (send(body)) {
          pause = retry_first;
          continue;
        }
        std::unique_lock guard(mutex);
        if (changed.wait_for(guard, pause, [this] { return stopping; })) break;
        pause = std::min(2 * pause, retry_max);
      }
      const std::lock_guard guard(mutex);
      finished = true;
      changed.notify_all();
    }

    /// Lines that are to be sent, once there are any; empty: there will be none.
    std::string next() {
      std::unique_lock guard(mutex);
      changed.wait(guard, [this] { return stopping || !queue.empty() || !beat.empty(); });
      std::string body;
      for (sending = 0; sending < queue.size() && body.size() < request_bytes_max; ++sending)
        body += queue[sending] + "\n";
      if (sending == queue.size()) body += std::exchange(beat, {});
      return body;
    }

    /// False: to be tried again.
    bool send(const std::string& body) {
      const auto answer = ask(body);
      const std::lock_guard guard(mutex);
      // A report that is refused as invalid will be refused again.
      const bool is_done = answer.ok() || answer.error().code != ErrorCode::unavailable;
      if (!answer.ok()) complain_once(answer.error());
      if (answer.ok()) learn(*answer);
      for (; is_done && sending > 0; --sending) {
        queue_bytes -= queue.front().size();
        queue.pop_front();
      }
      sending = 0;
      changed.notify_all();
      return is_done;
    }

    Result<std::string> ask(const std::string& body) {
      if (!creation.empty()) {
        auto made = endpoint.ask(Method::post, "/api/autonomous/sessions", creation);
        // Conflict: it exists with other properties.
        if (!made && made.error().code != ErrorCode::conflict) return made.error();
        creation.clear();
      }
      return endpoint.ask(Method::post, "/api/autonomous/sessions/" + id + "/events?source=run",
                          body);
    }

    /// REQUIRES: mutex held.
    void complain_once(const Error& error) {
      if (refusal.empty())
        print_error("watchdog: session " + id + " is not reported: " + error.message +
                    ". The command goes on\n");
      refusal = error.message;
    }

    /// Reads the monitor's directive. REQUIRES: mutex held.
    void learn(const std::string& answer) {
      const auto parsed = nlohmann::json::parse(answer, nullptr, false);
      const auto asked = nlohmann::json::json_pointer("/directive/cancel");
      if (cancel || !parsed.is_object() || !parsed.value("directive", nlohmann::json()).is_object())
        return;
      const auto found = parsed.value(asked, nlohmann::json());
      if (!found.is_object()) return;
      cancel = CancelRequest{.by = found.value("by", ""), .reason = found.value("reason", "")};
      if (listener) listener();
    }
  };

  std::shared_ptr<State> state_;
  std::thread thread_;
};

}  // namespace

std::unique_ptr<Reporting> report_to_file(const ReportedSession& session,
                                          const std::filesystem::path& database) {
  return std::make_unique<FileReporting>(session, database);
}

std::unique_ptr<Reporting> report_to_server(const ReportedSession& session, Endpoint endpoint) {
  return std::make_unique<ServerReporting>(session, std::move(endpoint));
}

}  // namespace watchdog::monitor
