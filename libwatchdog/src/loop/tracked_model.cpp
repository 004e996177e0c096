#include <array>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "watchdog/reasons.h"
#include "watchdog/run.h"

namespace watchdog {
namespace {

/// Totals of all requests of a run: counters are running totals.
class Received {
 public:
  explicit Received(ProgressTracker& tracker) : tracker_(tracker) {}

  void begin() {
    const std::lock_guard guard(mutex_);
    prompt_ += std::exchange(last_.prompt_read, 0);
    pieces_ += std::exchange(last_.pieces, 0);
  }

  void receive(const ChatProgress& progress, std::string_view text) {
    std::array<Counter, 2> counters{};
    {
      const std::lock_guard guard(mutex_);
      last_ = progress;
      counters = {{{"prompt_tokens", static_cast<double>(prompt_ + progress.prompt_read)},
                   {"tokens", static_cast<double>(pieces_ + progress.pieces)}}};
    }
    // A helper's heartbeat: that words come proves life and movement, but no pass of the loop.
    tracker_.heartbeat({.counters = counters, .source = Source::sidecar});
    if (!text.empty()) tracker_.stream(text);
  }

 private:
  ProgressTracker& tracker_;
  std::mutex mutex_;
  ChatProgress last_;
  std::int64_t prompt_ = 0;
  std::int64_t pieces_ = 0;
};

/// False if it was called off meanwhile.
bool pause(Millis time, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any never_notified;
  std::unique_lock guard(mutex);
  never_notified.wait_for(guard, stop, time, [] { return false; });
  return !stop.stop_requested();
}

}  // namespace

Model tracked(Model model, ProgressTracker& tracker, const RunOptions& options, Retries retries) {
  auto received = std::make_shared<Received>(tracker);
  return [model = std::move(model), &tracker, options, received, retries = std::move(retries)](
             const ChatRequest& request, const ChatSink& sink,
             const std::stop_token& stop) -> Result<ChatAnswer, Failure> {
    auto wait = options.retry_first;
    for (int tries = 1;; ++tries) {
      received->begin();
      bool came = false;
      const auto answer = model(
          request,
          [&](const ChatProgress& progress, std::string_view text) {
            came = came || !text.empty();
            received->receive(progress, text);
            if (sink) sink(progress, text);
          },
          stop);
      if (answer || stop.stop_requested()) return answer;
      if (retries.failed) retries.failed(tries);
      if (!answer.error().recoverable || tries > options.tries) return answer;
      if (came) tracker.retry();
      tracker.wait_for(backend, "its model's server: " + answer.error().message);
      // Never sooner than the server asks for: it may still be busy with what it could not finish.
      if (retries.waiting) retries.waiting(true);
      const bool on = pause(std::max(wait, answer.error().retry_after.value_or(Millis{0})), stop);
      if (retries.waiting) retries.waiting(false);
      if (!on) {
        return Failure{.reason = std::string(reasons::cancelled),
                       .message = "called off while waiting for the model's server: " +
                                  answer.error().message};
      }
      wait = std::min(2 * wait, options.retry_longest);
    }
  };
}

}  // namespace watchdog
