// One thread sends the front of a queue. The first `sending` lines, all of one session, are under
// way. They leave the queue when they are stored, or refused for good. Each line has its event id
// and its time before it waits, so one that is sent twice is stored once. The thread owns the state
// together with the object, so an end that must not wait leaves it behind.
#include "cli/call_reports.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_set>
#include <utility>

#include "codec/json.h"
#include "facts/ids.h"
#include "http/client.h"
#include "privacy/redaction.h"

namespace watchdog::monitor {
namespace {

constexpr std::size_t waiting_bytes_max = 8U << 20U;
constexpr std::size_t posted_bytes_max = 1U << 20U;
constexpr std::size_t known_max = 10'000;
constexpr std::chrono::milliseconds pause_first{100};
constexpr std::chrono::milliseconds pause_max{5'000};
constexpr std::chrono::seconds end_wait{2};

}  // namespace

struct CallReports::State {
  struct Line {
    std::string session;
    std::string creation;
    std::string text;
  };

  Endpoint::Options options;
  std::string source;
  std::function<void(const std::string&)> complain;

  // Of the thread alone.
  std::optional<Endpoint> endpoint;
  std::unordered_set<std::string> known;
  bool has_complained = false;

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Line> lines;
  std::size_t bytes = 0;
  bool is_stopping = false;
  bool is_finished = false;
  std::thread thread;

  void run() {
    auto pause = pause_first;
    while (true) {
      std::vector<Line> batch;
      {
        std::unique_lock guard(mutex);
        changed.wait(guard, [this] { return is_stopping || !lines.empty(); });
        if (lines.empty()) break;
        std::size_t size = 0;
        for (const auto& line : lines) {
          if (line.session != lines.front().session || size > posted_bytes_max) break;
          size += line.text.size();
          batch.push_back(line);
        }
      }
      const bool is_done = send(batch);
      std::unique_lock guard(mutex);
      if (is_done) {
        for (std::size_t at = 0; at < batch.size() && !lines.empty(); ++at) {
          bytes -= lines.front().text.size();
          lines.pop_front();
        }
        pause = pause_first;
        continue;
      }
      if (is_stopping) break;
      changed.wait_for(guard, pause, [this] { return is_stopping; });
      pause = std::min(2 * pause, pause_max);
    }
    const std::lock_guard guard(mutex);
    is_finished = true;
    changed.notify_all();
  }

  /// False: to be tried again.
  bool send(const std::vector<Line>& batch) {
    const auto sent = post(batch);
    if (sent) {
      has_complained = false;
      return true;
    }
    if (!std::exchange(has_complained, true))
      complain("tool calls are not reported: " + sent.error().message + ". They still go through");
    return sent.error().code != ErrorCode::unavailable;
  }

  Result<void> post(const std::vector<Line>& batch) {
    if (!endpoint) {
      auto opened = Endpoint::open(options);
      if (!opened) return Error{ErrorCode::unavailable, opened.error().message};
      endpoint.emplace(std::move(*opened));
    }
    const auto& session = batch.front().session;
    if (!known.contains(session)) {
      const auto made =
          endpoint->ask(Method::post, "/api/autonomous/sessions", batch.front().creation);
      // Conflict: it exists with other properties.
      if (!made && made.error().code != ErrorCode::conflict) return made.error();
      if (known.size() >= known_max) known.clear();
      known.insert(session);
    }
    std::string body;
    for (const auto& line : batch) body += line.text + "\n";
    const auto answer = endpoint->ask(
        Method::post,
        "/api/autonomous/sessions/" + url_encoded(session) + "/events?source=" + source, body);
    if (!answer) return answer.error();
    return {};
  }
};

CallReports::CallReports(Endpoint::Options endpoint, std::string source,
                         std::function<void(const std::string&)> complain)
    : state_(std::make_shared<State>()) {
  state_->options = std::move(endpoint);
  state_->options.writes = true;
  state_->source = std::move(source);
  state_->complain = std::move(complain);
  state_->thread = std::thread([state = state_] { state->run(); });
}

CallReports::~CallReports() {
  std::unique_lock guard(state_->mutex);
  state_->is_stopping = true;
  state_->changed.notify_all();
  const bool is_sent =
      state_->changed.wait_for(guard, end_wait, [this] { return state_->is_finished; });
  guard.unlock();
  // A monitor that does not answer must not keep the agent's program from ending. The thread shares
  // the state, so it may outlive this.
  is_sent ? state_->thread.join() : state_->thread.detach();
}

void CallReports::add(const std::string& session, const SessionSpec& spec, Report report) {
  const auto now = system_clock().wall();
  if (report.event_id.empty()) report.event_id = state_->source + ":" + new_uuid7(now);
  if (!report.ts_ms) report.ts_ms = now.time_since_epoch().count();
  redact(report);  // the monitor may have other patterns
  Event event;
  event.report = std::move(report);
  auto kept = spec;
  redact(kept);
  auto creation = to_json(kept);
  creation.insert(1, "\"sessionId\":\"" + session + "\"" + (creation == "{}" ? "" : ","));
  State::Line line{session, std::move(creation), to_json(event)};
  const std::lock_guard guard(state_->mutex);
  if (state_->bytes + line.text.size() > waiting_bytes_max) return;
  state_->bytes += line.text.size();
  state_->lines.push_back(std::move(line));
  state_->changed.notify_all();
}

}  // namespace watchdog::monitor
