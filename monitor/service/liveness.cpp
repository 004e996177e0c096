#include "service/liveness.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "net/web_request.h"
#include "service/service.h"

namespace watchdog::monitor {
namespace {

namespace asio = boost::asio;

/// A server that takes longer is as good as away.
constexpr Millis answer_max{10'000};
/// The store thread completes a turn at least this often, a little later if it is busy.
constexpr Millis round{2'000};

/// Requests the URL on a thread of its own, at most as often as the server answers.
class Pinger {
 public:
  Pinger(std::string url, std::function<void(const std::string&)> log)
      : url_(std::move(url)),
        log_(std::move(log)),
        thread_([this](const std::stop_token& stop) { run(stop); }) {}

  void ping() {
    {
      const std::lock_guard guard(mutex_);
      asked_ = true;
    }
    came_.notify_one();
  }

 private:
  void run(const std::stop_token& stop) {
    std::unique_lock guard(mutex_);
    while (came_.wait(guard, stop, [this] { return asked_; })) {
      asked_ = false;
      guard.unlock();
      note(ask_once({.method = "GET", .url = url_, .at_most = answer_max}, stop));
      guard.lock();
    }
  }

  /// Says that it fails, and that it does no more, once each.
  void note(const Result<WebAnswer>& answer) {
    if (!answer && answer.error().code == ErrorCode::cancelled) return;
    const bool well = answer && answer->status < 400;
    if (!well && !failing_) {
      log_("ping failed: " + (answer ? "the ping's server says " + std::to_string(answer->status)
                                     : answer.error().message));
    }
    if (well && failing_) log_("ping recovered");
    failing_ = !well;
  }

  const std::string url_;
  const std::function<void(const std::string&)> log_;
  std::mutex mutex_;
  std::condition_variable_any came_;
  bool asked_ = false;
  bool failing_ = false;  ///< Of its own thread.
  std::jthread thread_;
};

}  // namespace

struct Liveness::State : std::enable_shared_from_this<State> {
  State(asio::io_context& context, const Backend& watched)
      : backend(watched), service(context), other(context) {}

  const Backend& backend;
  asio::steady_timer service;
  asio::steady_timer other;
  std::unique_ptr<Pinger> pinger;
  bool stopped = false;  ///< A timer may have run out before it was cancelled.

  /// Calls `say` at once and then as often, while the store thread keeps up with it.
  void repeat(asio::steady_timer& timer, Millis every, std::function<void(const Vitals&)> say) {
    if (const auto vitals = backend.vitals(); vitals && vitals->since_look < every + round)
      say(*vitals);
    timer.expires_after(every);
    timer.async_wait([self = shared_from_this(), &timer, every,
                      say = std::move(say)](const boost::system::error_code& error) {
      if (!error && !self->stopped) self->repeat(timer, every, say);
    });
  }
};

Liveness::Liveness(asio::io_context& context, const Backend& backend, Options options)
    : state_(std::make_shared<State>(context, backend)) {
  notify_service_manager("READY=1");
  if (const auto interval = service_watchdog()) {
    state_->repeat(state_->service, *interval / 2,
                   [](const Vitals&) { notify_service_manager("WATCHDOG=1"); });
  }
  if (options.url.empty()) return;
  state_->pinger = std::make_unique<Pinger>(std::move(options.url), std::move(options.log));
  state_->repeat(state_->other, options.every,
                 [pinger = state_->pinger.get()](const Vitals& vitals) {
                   if (vitals.keeps) pinger->ping();
                 });
}

Liveness::~Liveness() {
  stop();
}

void Liveness::stop() {
  if (!state_) return;
  notify_service_manager("STOPPING=1");
  state_->stopped = true;
  state_->service.cancel();
  state_->other.cancel();
  state_->pinger.reset();
  state_.reset();
}

}  // namespace watchdog::monitor
