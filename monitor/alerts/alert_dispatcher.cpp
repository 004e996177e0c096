// One thread repeats a turn: it runs the tests that callers asked for, reads the next message, and
// then waits or sends. It stores the result before it reads again, so no delivered message is sent
// twice while the monitor runs. The back-off belongs to the channel, so a new alert wakes the
// thread but does not shorten the pause. At a stop the message under way has 3 s. An aborted one is
// not recorded, so the next start sends it again. Of several monitors on one database each claims a
// message before it sends it.
#include "alerts/alert_dispatcher.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <future>
#include <mutex>
#include <new>
#include <random>
#include <thread>
#include <utility>

#include "facts/ids.h"
#include "store/alert_acts.h"
#include "store/sharing.h"

namespace watchdog::monitor {
namespace {

using Clock = std::chrono::steady_clock;

/// After this many failures in a row a channel is dead until it works again.
constexpr int failures_until_dead = 5;
/// After this many refusals in a row by a working channel a message is given up.
constexpr int refusals_max = 3;
/// No server may ask for more.
constexpr Millis retry_after_max{3'600'000};
/// How long messages under way may take at a stop.
constexpr Millis farewell{3'000};
/// A look without being woken, should a ring be lost; and the pause after the store failed.
constexpr Millis unrung_look_every{30'000};
constexpr Millis store_pause{1'000};
/// A claim lasts for a try of the channel, until the result is stored, and some more.
constexpr Millis claim_spare{5'000};

}  // namespace

struct AlertDispatcher::State {
  State(Backend& where_from, ChannelStatusRegistry& where_shown, AlertSender by, Options chosen)
      : backend(where_from),
        registry(where_shown),
        sender(std::move(by)),
        options(std::move(chosen)) {}

  Backend& backend;
  ChannelStatusRegistry& registry;
  const AlertSender sender;
  const Options options;

  // Of the thread, which sends one message at a time. So one count of refusals is enough: it
  // belongs to the message that was refused last.
  int failures = 0;
  std::string refused;  ///< The message that was refused last,
  int refusals = 0;     ///< and how often.
  std::string error;
  Clock::time_point try_at{};
  std::mt19937 random{std::random_device{}()};
  Millis claimed_until{};  ///< By the time since boot, which goes on while the process sleeps.

  std::mutex mutex;
  std::condition_variable_any changed;
  bool woken = false;
  bool stopped = false;
  Clock::time_point stopped_at{};
  bool finished = false;
  std::vector<ChannelTested> channel_tests;
  std::stop_source abandon;
  std::thread thread;

  /// Waits until the time, a stop, or (`or_woken`) a notification.
  void wait_until(Clock::time_point time, bool or_woken) {
    std::unique_lock guard(mutex);
    changed.wait_until(guard, time, [&] { return stopped || (or_woken && woken); });
    if (or_woken) woken = false;
  }

  [[nodiscard]] bool is_stopped() {
    const std::lock_guard guard(mutex);
    return stopped;
  }

  /// Claims the next message, where other monitors may send it, too.
  Result<std::vector<Alert>> claim() {
    const auto alerts = std::make_shared<std::vector<Alert>>();
    const auto done = std::make_shared<std::promise<Result<void>>>();
    claimed_until = now() + options.timeout + claim_spare;
    backend.write(
        // The answer may come first, when the store is slow, and then this object may be gone.
        [alerts, channel = options.name, single = sender.is_single(),
         lasts = options.timeout + 2 * claim_spare](Store& store) -> Result<void> {
          auto claimed = Sharing(store).claim_message(channel, single, lasts);
          if (!claimed) return claimed.error();
          *alerts = std::move(*claimed);
          return {};
        },
        [done](Result<void> claimed) { done->set_value(std::move(claimed)); });
    if (auto claimed = done->get_future().get(); !claimed) return claimed.error();
    return std::move(*alerts);
  }

  static Millis now() { return system_clock().since_boot(); }

  Result<std::vector<Alert>> next() {
    if (backend.is_on_server()) return claim();
    const auto found = std::make_shared<std::promise<Result<std::vector<Alert>>>>();
    backend.read(
        [found, channel = options.name, single = sender.is_single()](StoreReader& reader) {
          found->set_value(reader.next_message(channel, single));
        },
        [found](Error why) { found->set_value(std::move(why)); });
    return found->get_future().get();
  }

  Result<void> note(const Attempt& attempt) {
    const auto done = std::make_shared<std::promise<Result<void>>>();
    backend.write([attempt](Store& store) { return AlertActs(store).note(attempt); },
                  [done](Result<void> noted) { done->set_value(std::move(noted)); });
    return done->get_future().get();
  }

  void show(std::optional<Instant> unsent_since) {
    registry.put({.name = options.name,
                  .type = options.type,
                  .condition = failures >= failures_until_dead ? ChannelCondition::dead
                               : failures > 0                  ? ChannelCondition::failing
                                                               : ChannelCondition::ok,
                  .error = error,
                  .unsent_since = unsent_since});
  }

  /// Full of chance, so that many that failed together do not come back together.
  void pause(std::optional<Millis> asked) {
    auto time = options.retry_first;
    for (int doubled = 1; doubled < failures && time < options.retry_longest; ++doubled) time *= 2;
    time = std::min(time, options.retry_longest);
    time -= Millis{std::uniform_int_distribution<Millis::rep>(0, time.count() / 2)(random)};
    if (asked) time = std::max(time, std::min(*asked, retry_after_max));
    try_at = Clock::now() + time;
  }

  void learn(const SendResult& result) {
    using Kind = SendResult::Kind;
    const bool was_dead = failures >= failures_until_dead;
    failures = result.kind == Kind::failed ? failures + 1 : 0;
    error = result.kind == Kind::accepted ? "" : result.answer;
    if (was_dead && failures == 0) options.log("alerts reach channel " + options.name + " again");
    if (failures == failures_until_dead)
      options.log("alerts do not reach channel " + options.name +
                  "; the monitor tries again with growing pauses: " + error);
    if (result.kind != Kind::accepted) pause(result.retry_after);
  }

  void deliver(std::vector<Alert> alerts) {
    const auto& first = alerts.front();
    AlertMessage message{.key = sender.is_single() ? first.message + "-" + std::to_string(first.id)
                                                   : first.message};
    Attempt attempt{.channel = options.name};
    for (const auto& alert : alerts) attempt.alerts.push_back(alert.id);
    message.alerts = std::move(alerts);
    const auto result = sender.send(message, abandon.get_token());
    if (abandon.stop_requested() && result.kind == SendResult::Kind::failed) return;
    learn(result);
    // Another message may have come before it meanwhile, or taken its place.
    const bool again = std::exchange(refused, message.key) == message.key;
    refusals = result.kind == SendResult::Kind::refused ? (again ? refusals : 0) + 1 : 0;
    attempt.error = error;
    attempt.state = error.empty() ? DeliveryState::sent : DeliveryState::pending;
    if (refusals >= refusals_max) {
      refusals = 0;
      attempt.state = DeliveryState::dead;
      options.log("channel " + options.name +
                  " refused a message, so the monitor dropped it: " + error);
    }
    // A message whose result could not be stored must not be sent again.
    for (auto done = note(attempt); !done && !is_stopped(); done = note(attempt))
      wait_until(Clock::now() + store_pause, false);
    if (options.metrics == nullptr) return;
    if (attempt.state == DeliveryState::sent) options.metrics->alerts_sent.add();
    if (attempt.state == DeliveryState::dead) options.metrics->alerts_given_up.add();
  }

  void try_it(const ChannelTested& done) {
    const auto result =
        sender.send({.key = "test-" + new_ulid(system_clock().wall())}, abandon.get_token());
    done({.sent = result.kind == SendResult::Kind::accepted, .answer = result.answer});
  }

  /// A caller waits for these: they come before failed ones.
  void run_channel_tests() {
    std::vector<ChannelTested> asked;
    {
      const std::lock_guard guard(mutex);
      asked.swap(channel_tests);
    }
    for (const auto& done : asked) try_it(done);
  }

  void turn() {
    run_channel_tests();
    auto alerts = next();
    if (!alerts) {
      error = alerts.error().message;
      return wait_until(Clock::now() + store_pause, false);
    }
    show(alerts->empty() ? std::nullopt : alerts->front().sent_with);
    if (alerts->empty()) {
      wait_until(Clock::now() + unrung_look_every, true);
    } else if (Clock::now() < try_at) {
      wait_until(std::min(try_at, Clock::now() + unrung_look_every), true);
    } else if (!backend.is_on_server() || now() + options.timeout <= claimed_until) {
      deliver(std::move(*alerts));
    }  // else this process slept, and another monitor may have sent it meanwhile
  }

  void run() {
    while (!is_stopped()) {
      try {
        turn();
      } catch (const std::bad_alloc&) {
        wait_until(Clock::now() + store_pause, false);
      }
    }
    std::vector<ChannelTested> left;
    {
      const std::lock_guard guard(mutex);
      left.swap(channel_tests);
    }
    for (const auto& done : left) done({.answer = "the monitor stops"});
    const std::lock_guard guard(mutex);
    finished = true;
    changed.notify_all();
  }
};

AlertDispatcher::AlertDispatcher(Backend& backend, ChannelStatusRegistry& registry,
                                 AlertSender sender, Options options)
    : state_(std::make_unique<State>(backend, registry, std::move(sender), std::move(options))) {
  state_->show({});
  state_->thread = std::thread([state = state_.get()] { state->run(); });
  state_->registry.connect(state_->options.name, [state = state_.get()](ChannelTested done) {
    const std::lock_guard alone(state->mutex);
    state->channel_tests.push_back(std::move(done));
    state->woken = true;
    state->changed.notify_all();
  });
}

AlertDispatcher::~AlertDispatcher() {
  state_->registry.connect(state_->options.name, nullptr);
  stop();
  {
    std::unique_lock guard(state_->mutex);
    state_->changed.wait_until(guard, state_->stopped_at + farewell,
                               [this] { return state_->finished; });
  }
  state_->abandon.request_stop();
  state_->thread.join();
}

void AlertDispatcher::wake() {
  const std::lock_guard guard(state_->mutex);
  state_->woken = true;
  state_->changed.notify_all();
}

void AlertDispatcher::stop() {
  const std::lock_guard guard(state_->mutex);
  if (std::exchange(state_->stopped, true)) return;
  state_->stopped_at = Clock::now();
  state_->changed.notify_all();
}

}  // namespace watchdog::monitor
