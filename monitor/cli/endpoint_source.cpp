// A monitor's stream is followed over HTTP and opened again when it breaks. A file has no stream:
// `wait` of the library looks at the session whenever the file changes, and never ends by itself
// because its condition never holds.
#include "cli/endpoint_source.h"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "core/sse_reader.h"
#include "store/event_reader.h"
#include "watchdog/wait.h"

namespace watchdog::monitor {
namespace {

using mcp::Answer;
using nlohmann::json;

/// Between two tries to reach a monitor that is gone, and two looks at a file.
constexpr std::chrono::milliseconds look_again{500};

Answer answer_of(const Error& error) {
  int status = 400;
  if (error.code == ErrorCode::unavailable) return {.status = 0, .body = error.message};
  if (error.code == ErrorCode::not_found) status = 404;
  return {.status = status, .body = json{{"error", {{"message", error.message}}}}.dump()};
}

void pause(const std::stop_token& stop) {
  std::mutex mutex;
  std::unique_lock guard(mutex);
  std::condition_variable_any called_off;
  called_off.wait_for(guard, stop, look_again, [] { return false; });
}

class ThreadFollowing final : public mcp::Following {
 public:
  explicit ThreadFollowing(std::function<void(std::stop_token)> work) : thread_(std::move(work)) {}

 private:
  std::jthread thread_;  ///< Stopped and joined with this.
};

void end(const mcp::Source::Listener& listener, Answer answer) {
  if (listener.ended) listener.ended(std::move(answer));
}

void follow_server(const Endpoint::Options& options, const std::string& target,
                   const mcp::Source::Listener& listener, const std::stop_token& stop) {
  auto client = Endpoint::connect(options);
  if (!client) return end(listener, answer_of(client.error()));
  SseReader reader;
  while (!stop.stop_requested()) {
    reader.restart();
    const auto response = client->listen(
        target, "",
        [&](std::string_view bytes) {
          return reader.feed(bytes, [&](const SseRecord& record) {
            if (!stop.stop_requested()) listener.on_record(record.event, record.data);
            return !stop.stop_requested();
          });
        },
        stop);
    if (stop.stop_requested()) return;
    if (response && response->status != 200 && response->status != 503)
      return end(listener, {.status = response->status, .body = response->body});
    if (listener.lost) listener.lost();
    pause(stop);
  }
}

void follow_session(const std::string& database, const std::string& session,
                    const mcp::Source::Listener& listener, const std::stop_token& stop) {
  Wait asked{.session = session,
             .database = database,
             .until = {.goal = Goal::condition, .what = "never", .on_stuck = OnStuck::keep},
             .must_exist = true,
             .stop = stop};
  asked.condition = [](const Observed&) { return false; };
  asked.seen = [&](const Observed* seen) {
    if (seen != nullptr) listener.on_record("session", seen->document());
  };
  const auto waited = watchdog::wait(asked);
  if (waited || stop.stop_requested()) return;
  const auto& failed = waited.error();
  if (failed.end == WaitEnd::no_session)
    end(listener, answer_of({ErrorCode::not_found, failed.why}));
  if (failed.end == WaitEnd::unavailable || failed.end == WaitEnd::misuse)
    end(listener, answer_of({ErrorCode::unavailable, failed.why}));
}

/// Reports that something changed, whatever it is.
void follow_file(const std::string& database, const mcp::Source::Listener& listener,
                 const std::stop_token& stop) {
  Seq newest = -1;
  while (!stop.stop_requested()) {
    auto reader = StoreReader::open(database);
    const auto found = reader ? EventReader(*reader).newest() : reader.error();
    if (found && newest >= 0 && found->first > newest) listener.on_record("session", "{}");
    if (found) newest = found->first;
    pause(stop);
  }
}

}  // namespace

struct EndpointSource::Queue {
  std::mutex mutex;
  std::condition_variable_any changed;
  std::deque<std::function<void()>> work;
  std::jthread thread{[this](const std::stop_token& stop) {
    std::unique_lock guard(mutex);
    while (changed.wait(guard, stop, [this] { return !work.empty(); })) {
      const auto next = std::move(work.front());
      work.pop_front();
      guard.unlock();
      next();
      guard.lock();
    }
  }};
};

EndpointSource::EndpointSource(Endpoint::Options options)
    : options_(std::move(options)), queue_(std::make_unique<Queue>()) {}
EndpointSource::~EndpointSource() = default;

Answer EndpointSource::answer_to(const mcp::Question& question) {
  const bool writes = question.method != Method::get;
  auto& endpoint = writes ? writing_ : reading_;
  if (!endpoint) {
    auto options = options_;
    options.writes = writes;
    auto opened = Endpoint::open(options);
    if (!opened) return answer_of(opened.error());
    endpoint.emplace(std::move(*opened));
  }
  auto body = writes ? endpoint->act(question.method, question.target, question.body)
                     : endpoint->ask(question.method, question.target, question.body);
  return body ? Answer{.body = std::move(*body)} : answer_of(body.error());
}

void EndpointSource::ask(mcp::Question question, std::function<void(Answer)> done) {
  {
    const std::lock_guard guard(queue_->mutex);
    queue_->work.emplace_back([this, question = std::move(question), done = std::move(done)] {
      done(answer_to(question));
    });
  }
  queue_->changed.notify_one();
}

std::unique_ptr<mcp::Following> EndpointSource::follow(const std::string& session,
                                                       Listener listener) {
  const auto database = options_.database;
  return std::make_unique<ThreadFollowing>(
      [options = options_, database, session,
       listener = std::move(listener)](const std::stop_token& stop) {
        if (!database.empty())
          return session.empty() ? follow_file(database, listener, stop)
                                 : follow_session(database, session, listener, stop);
        follow_server(options,
                      "/api/autonomous/" + (session.empty() ? "" : "sessions/" + session + "/") +
                          "stream?include=sessions",
                      listener, stop);
      });
}

}  // namespace watchdog::monitor
