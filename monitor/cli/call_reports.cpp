// One thread sends the front of a queue. The first `sending` lines, all of one session, are under
// way. They leave the queue when they are stored, or refused for good. Each line has its event id
// and its time before it waits, so one that is sent twice is stored once. The thread owns the state
// together with the object, so an end that must not wait leaves it behind. The session of a call
// with a trace is asked for with the call's first line. The other lines of the call follow it,
// whatever becomes known meanwhile. So only the thread knows what its own session has to hear.
#include "cli/call_reports.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <nlohmann/json.hpp>
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
constexpr std::size_t joined_max = 4'096;
constexpr std::chrono::milliseconds pause_first{100};
constexpr std::chrono::milliseconds pause_max{5'000};
constexpr std::chrono::seconds end_wait{2};

}  // namespace

struct CallReports::State {
  struct Line {
    std::string session;
    std::string properties;  ///< Of the session.
    std::string text;
    std::optional<Own> own;  ///< Nothing: the session is named, or it is decided.
  };
  struct Joined {
    std::string call;
    std::string trace;
    std::string session;  ///< Empty: that of the proxy.
  };

  Endpoint::Options options;
  bool has_server = false;  ///< A file knows no traces.
  std::string source;
  std::function<void(const std::string&)> complain;

  // Of the thread alone.
  std::optional<Endpoint> endpoint;
  std::unordered_set<std::string> known;
  std::deque<Joined> joined;  ///< Open calls with a trace, the oldest first.
  bool has_begun = false;     ///< The proxy's own session has,
  bool is_busy = false;       ///< and it heard of a call since it rested.
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
      std::unique_lock guard(mutex);
      changed.wait(guard, [this] { return is_stopping || !lines.empty(); });
      if (lines.empty()) break;
      const auto batch = next_batch();
      if (batch.empty() && lines.empty()) continue;
      const auto undecided = batch.empty() ? *lines.front().own : Own{};
      guard.unlock();
      const bool is_done = batch.empty() ? look_up(undecided) : send(batch);
      guard.lock();
      if (is_done) {
        for (std::size_t at = 0; at < batch.size(); ++at) drop(lines.begin());
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

  std::deque<Line>::iterator drop(std::deque<Line>::iterator line) {
    bytes -= line->text.size();
    return lines.erase(line);
  }

  /// The first lines, all of one session; empty: there are none, or the session of the first one is
  /// not known. REQUIRES: `mutex` is locked.
  std::vector<Line> next_batch() {
    std::vector<Line> batch;
    std::size_t size = 0;
    for (auto line = lines.begin(); line != lines.end() && size <= posted_bytes_max;) {
      if (line->own) {
        const auto* owner = owner_of(*line->own);
        if (owner == nullptr) break;
        if (!is_wanted(*line->own, owner->empty())) {
          line = drop(line);
          continue;
        }
        if (!owner->empty()) line->session = *owner;
        if (const auto own = *std::exchange(line->own, std::nullopt); own.part == Part::call_end)
          forget(own);
      }
      if (!batch.empty() && line->session != batch.front().session) break;
      size += line->text.size();
      batch.push_back(*line);
      ++line;
    }
    return batch;
  }

  /// The session that the call joined; empty: none. Null: it is to be asked for.
  const std::string* owner_of(const Own& own) const {
    static const std::string none;
    if (own.trace.empty() || !has_server) return &none;
    const auto found = std::ranges::find_if(
        joined, [&](const Joined& one) { return one.call == own.call && one.trace == own.trace; });
    return found == joined.end() ? nullptr : &found->session;
  }

  void forget(const Own& own) {
    std::erase_if(
        joined, [&](const Joined& one) { return one.call == own.call && one.trace == own.trace; });
  }

  /// Whether the session hears of it. `is_own`: it is that of the proxy.
  bool is_wanted(const Own& own, bool is_own) {
    switch (own.part) {
      case Part::begin:
        return is_own && !std::exchange(has_begun, true);
      case Part::call:
      case Part::call_end:
        if (is_own) is_busy = true;
        return true;
      case Part::rest:
        return std::exchange(is_busy, false);
      case Part::end:
        return has_begun;
    }
    return true;
  }

  /// Asks which session the trace belongs to. False: to be tried again.
  bool look_up(const Own& own) {
    if (!open()) return false;
    const auto answer = endpoint->ask(Method::get, "/api/autonomous/traces/" + own.trace);
    if (!answer && answer.error().code == ErrorCode::unavailable) return fail(answer.error());
    Joined found{.call = own.call, .trace = own.trace, .session = {}};
    const auto read = nlohmann::json::parse(answer ? *answer : "", nullptr, false);
    if (read.is_object() && read.contains("sessionId") && read["sessionId"].is_string())
      found.session = read["sessionId"].get<std::string>();
    if (!is_session_id(found.session)) found.session.clear();
    if (joined.size() == joined_max) joined.pop_front();
    joined.push_back(std::move(found));
    return true;
  }

  /// Complains, once. False: to be tried again.
  bool fail(const Error& error) {
    if (!std::exchange(has_complained, true))
      complain("tool calls are not reported: " + error.message + ". They still go through");
    return error.code != ErrorCode::unavailable;
  }

  bool open() {
    if (endpoint) return true;
    auto opened = Endpoint::open(options);
    if (!opened) return fail({ErrorCode::unavailable, opened.error().message});
    endpoint.emplace(std::move(*opened));
    return true;
  }

  /// False: to be tried again.
  bool send(const std::vector<Line>& batch) {
    if (!open()) return false;
    const auto sent = post(batch);
    if (!sent) return fail(sent.error());
    has_complained = false;
    return true;
  }

  Result<void> post(const std::vector<Line>& batch) {
    const auto& session = batch.front().session;
    if (!known.contains(session)) {
      auto creation = batch.front().properties;
      creation.insert(1, "\"sessionId\":\"" + session + "\"" + (creation == "{}" ? "" : ","));
      const auto made = endpoint->ask(Method::post, "/api/autonomous/sessions", creation);
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

  void add(const std::string& session, const SessionSpec& spec, Report report,
           std::optional<Own> own) {
    const auto now = system_clock().wall();
    if (report.event_id.empty()) report.event_id = source + ":" + new_uuid7(now);
    if (!report.ts_ms) report.ts_ms = now.time_since_epoch().count();
    redact(report);  // the monitor may have other patterns
    Event event;
    event.report = std::move(report);
    auto kept = spec;
    redact(kept);
    Line line{session, to_json(kept), to_json(event), std::move(own)};
    const std::lock_guard guard(mutex);
    if (bytes + line.text.size() > waiting_bytes_max) return;
    bytes += line.text.size();
    lines.push_back(std::move(line));
    changed.notify_all();
  }
};

CallReports::CallReports(Endpoint::Options endpoint, std::string source,
                         std::function<void(const std::string&)> complain)
    : state_(std::make_shared<State>()) {
  state_->options = std::move(endpoint);
  state_->options.writes = true;
  state_->has_server = !state_->options.server.empty();
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
  state_->add(session, spec, std::move(report), std::nullopt);
}

void CallReports::add_own(const std::string& session, const SessionSpec& spec, Report report,
                          Own own) {
  state_->add(session, spec, std::move(report), std::move(own));
}

}  // namespace watchdog::monitor
