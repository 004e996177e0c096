// The store thread. One turn takes the queue, arrives, commits all batches together, looks,
// answers, and does a piece of retention. Callers on other threads only put tasks into the
// queue. A second thread refuses tasks that wait too long.
#include "core/store_thread.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "core/query_thread.h"
#include "core/retention_rounds.h"
#include "core/row_pace.h"
#include "core/spare_memory.h"
#include "core/store_queue.h"
#include "core/summary.h"
#include "ingest/joiner.h"
#include "ingest/subagent_tasks.h"
#include "privacy/content.h"
#include "store/alert_acts.h"
#include "store/change_notifier.h"
#include "store/memory_count.h"
#include "store/retention.h"
#include "store/sharing.h"
#include "store/transition_reader.h"
#include "watchdog/repetition.h"

namespace watchdog::monitor {
namespace {

/// The observer wants to look at least once a second.
constexpr Millis look_every{1'000};
/// Nothing reports the events that other monitors store on a server.
constexpr Millis look_on_server_every{100};
}  // namespace

struct StoreThread::State {
  State(Options chosen, Store opened)
      : options(std::move(chosen)),
        wake_fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        store(std::move(opened)),
        retention(options.retention, options.log),
        on_server(store.is_on_server()),
        queue(options.pending_bytes_max),
        room(options.database) {}
  ~State() {
    if (wake_fd >= 0) close(wake_fd);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  const Options options;
  int wake_fd;

  // Of the store thread:
  Store store;
  ChangeListener appends;
  Joiner joiner{Joiner::earlier_in(store)};
  SubagentTasks subagent_tasks;
  RetentionRounds retention;
  AlertRules alert_rules = options.alerts;
  bool log_saved = false;  ///< The log vanished, and the file is not open again yet.
  bool trouble_said = false;
  RowPace pace;

  std::atomic<bool> shared = false;  ///< Other monitors judge some of the sessions.
  using Held = std::array<std::atomic<bool>, shard_count>;
  const std::shared_ptr<Held> held = std::make_shared<Held>();  ///< On a server.
  const std::shared_ptr<std::atomic<Seq>> judged = std::make_shared<std::atomic<Seq>>(0);
  const bool on_server;
  std::chrono::steady_clock::time_point next_messages{};
  StoreQueue queue;

  mutable std::mutex mutex;
  std::optional<AlertRules> wanted_rules;  ///< To be used from the next turn on.
  std::optional<Error> trouble;
  std::int64_t file_bytes = 0;
  std::optional<Vitals::Shares> shares;
  Millis renewed{};  ///< When its leases were, since boot.
  std::int64_t log_bytes = 0;
  Instant next_due = never;
  std::chrono::steady_clock::time_point came_round = std::chrono::steady_clock::now();
  std::shared_ptr<Observer> seen;  ///< The observer, for questions of other threads.
  Millis tick_offset{};

  std::mutex listening;
  std::function<void(const Transition&)> listener;
  std::function<void()> message_listener;

  std::thread thread;
  std::jthread overdue_timer;  ///< Answers requests that waited too long for the disk.
  QueryThread room;  ///< Last, so that it closes first: what is read there asks for the rest.

  void wake() const {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(wake_fd, &one, sizeof one);
  }

  [[nodiscard]] std::shared_ptr<Observer> observer_seen() const {
    const std::lock_guard guard(mutex);
    return seen;
  }

  Result<void> begin() {
    Observer::Options observing{
        .concluded = [this](const TransitionRow& row,
                            const std::string& session) { publish(row, session); },
        .seen = [this](const Event& event, const std::string& session) { publish(event, session); },
        .alerts = alert_rules};
    if (options.feed != nullptr) {
      observing.seen_some = [feed = options.feed] { feed->flush(); };
      observing.reloaded = [feed = options.feed](Seq seq, std::int64_t transition) {
        feed->restart({.seq = seq, .transition = transition});
      };
    }
    auto started = Observer::start(store, std::move(observing));
    if (!started) return started.error();
    // An erasure that a crash cut off is finished by the next judge.
    if (auto finished = store.erase({}); !finished) options.log(finished.error().message);
    RetentionActs(store).shed_memory();
    return_spare_memory();
    const std::lock_guard guard(mutex);
    seen = std::move(*started);
    tick_offset = store.now() - Instant{system_clock().since_boot()};
    if (store.is_on_server()) return {};
    if (auto bound = ChangeListener::for_all(options.database)) appends = std::move(*bound);
    return {};
  }

  void publish(const Event& event, const std::string& session) {
    if (options.feed != nullptr) options.feed->event(event, session);
    // Each monitor counts what it judges, so the sum of all is right.
    if (options.metrics != nullptr && store.owns(event.session))
      options.metrics->count_event(event);
  }

  void publish(const TransitionRow& row, const std::string& session) {
    if (options.feed != nullptr) options.feed->transition(row, session);
    if (!store.owns(row.transition.session)) return;
    if (options.metrics != nullptr) options.metrics->transitions[row.transition.health.kind].add();
    const std::lock_guard guard(listening);
    if (listener) listener(row.transition);
  }

  /// Wakes the listeners. Rows of sessions follow soon, from the thread that reads lists.
  void feed_listeners(Backend& backend) {
    if (options.feed == nullptr) return;
    options.feed->flush();
    const auto now = std::chrono::steady_clock::now();
    const auto pending = options.feed->pending();
    if (pending == Feed::Pending::none || now < pace.due(pending)) return;
    pace.begin(now);
    room.read(
        [this, &backend](StoreReader& reader) {
          const auto begin = std::chrono::steady_clock::now();
          publish_changed(*options.feed, backend, reader);
          pace.add(std::chrono::steady_clock::now() - begin);
        },
        [](const Error&) {});
  }

  void publish_messages() {
    const auto now = std::chrono::steady_clock::now();
    // Another monitor made messages of alerts that this one sends, or is gone.
    const bool asks = on_server && now >= next_messages;
    if (!AlertActs(store).drain_new_messages() && !asks) return;
    next_messages = now + look_every;
    const std::lock_guard guard(listening);
    if (message_listener) message_listener();
  }

  /// Returns why a report would be refused now. REQUIRES: the mutex is held.
  [[nodiscard]] std::optional<Error> trouble_now() const {
    if (trouble) return trouble;
    if (!retention.has_room()) return no_room();
    const auto idle = std::chrono::steady_clock::now() - came_round;
    if (idle <= look_every + options.refusal_max) return std::nullopt;
    return Error{
        ErrorCode::unavailable,
        "the database could not be written for " +
            std::to_string(std::chrono::duration_cast<std::chrono::seconds>(idle).count()) +
            " s: another writer or the disk does not come to its end"};
  }

  void report(const Result<void>& result) {
    {
      const std::lock_guard guard(mutex);
      trouble = result ? std::nullopt : std::optional(result.error());
    }
    if (!result && !trouble_said) options.log("cannot store reports: " + result.error().message);
    if (result && trouble_said) options.log("reports are stored again");
    trouble_said = !result;
  }

  /// The database or its log was removed or replaced: starts again with the present files. All
  /// connections of this process are closed first: SQLite would share the old index among them.
  Result<void> reopen_if_vanished() {
    if (!store.vanished()) return seen ? Result<void>{} : begin();
    room.close();
    if (store.close()) log_saved = true;
    {
      const std::lock_guard guard(mutex);
      seen.reset();
    }
    appends = ChangeListener();
    auto opened = Store::open({.database = options.database, .policy = options.policy});
    if (!opened) return opened.error();
    store = std::move(*opened);
    if (auto begun = begin(); !begun) return begun;
    options.log(std::exchange(log_saved, false)
                    ? "the log of the database " + options.database.string() +
                          " was removed or replaced; the monitor saved what it held"
                    : "the database " + options.database.string() +
                          " vanished, and the monitor made it again");
    return {};
  }

  /// Commits and answers what came in. `looked` is set if the observer looked meanwhile.
  Result<void> commit(std::optional<Result<Instant>>& looked) {
    const auto& claimed = queue.claim_batches();
    if (claimed.empty()) return {};
    std::vector<Batch> batches;
    batches.reserve(claimed.size());
    for (const auto& pending : claimed) {
      joiner.join(pending->batch);
      subagent_tasks.join(pending->batch);
      batches.push_back(std::move(pending->batch));
    }
    const auto began = std::chrono::steady_clock::now();
    auto receipts = store.append(batches);
    if (receipts && options.metrics != nullptr) {
      options.metrics->commit.observe(std::chrono::steady_clock::now() - began);
      for (const auto& receipt : *receipts) {
        if (receipt)
          options.metrics->duplicates.add(static_cast<std::int64_t>(receipt->duplicates));
      }
    }
    // Judged before it is answered, so the next question of the client includes it.
    if (receipts) looked = seen->look();
    const auto settled = queue.settle_batches();
    for (std::size_t at = 0; at < settled.size(); ++at) {
      const bool made = receipts && (*receipts)[at] && (*receipts)[at]->created;
      if (made && options.feed != nullptr) options.feed->created(batches[at].session);
      // Before a cancel is answered: the session's next request is denied from then on.
      if (options.cancelled != nullptr && receipts && (*receipts)[at])
        options.cancelled->learn(batches[at].session, (*receipts)[at]->directive);
      settled[at]->answer(receipts ? std::move((*receipts)[at])
                                   : Result<Receipt>(receipts.error()));
    }
    return receipts ? Result<void>{} : receipts.error();
  }

  /// Does what others want done with the store; `there` is why it cannot be.
  void write_for_others(const Result<void>& there) {
    for (const auto& writing : queue.claim_writings())
      writing->answer(there ? writing->work(store) : there);
    queue.settle_writings();
  }

  /// Waiting callers get the error instead of silence.
  Result<void> refuse_turn(const Result<void>& why) {
    queue.claim_batches();
    for (const auto& pending : queue.settle_batches()) pending->answer(why.error());
    write_for_others(why);
    return why;
  }

  Result<void> turn(Instant& due) {
    auto there = reopen_if_vanished();
    if (!there) return refuse_turn(there);
    // Before what came in is stamped: an absence of the monitor must not be taken for silence.
    if (auto arrived = seen->arrive(); !arrived) return refuse_turn(arrived);
    write_for_others({});
    {
      const std::lock_guard guard(mutex);
      if (wanted_rules) seen->set_alert_rules(alert_rules = *std::exchange(wanted_rules, {}));
    }
    std::optional<Result<Instant>> looked;
    auto committed = commit(looked);
    // Reports that cannot be stored are not received: a session that tries meanwhile is not silent.
    if (!committed) return committed;
    if (!looked) looked = seen->look();
    if (options.feed != nullptr) options.feed->flush();  // nothing else comes first
    publish_messages();
    if (*looked) due = **looked;
    if (!*looked) return looked->error();
    if (!Sharing(store).is_taking_over()) judged->store(seen->folded());
    for (const auto& task : queue.claim_tasks()) task.done(erase(task.erasure));
    return retention.step(store, *seen);
  }

  Result<std::vector<std::string>> erase(const Erasure& erasure) {
    const auto artifacts =
        options.artifacts.empty() ? artifacts_beside(options.database) : options.artifacts;
    auto erased = erase_with_artifacts(store, erasure, artifacts);
    seen->forget(RetentionActs(store).drain_dropped());
    if (erased && !erasure.only_say && options.forgotten) options.forgotten(*erased);
    return erased;
  }

  /// Updates the values for other threads, once a turn.
  void count_stock(Instant due) {
    const auto size = [](const std::filesystem::path& file) {
      std::error_code absent;
      const auto bytes = std::filesystem::file_size(file, absent);
      return absent ? std::int64_t{0} : static_cast<std::int64_t>(bytes);
    };
    const auto file = store.is_on_server() ? store.bytes() : size(options.database);
    const auto log = size(options.database.string() + "-wal");
    const auto found = Sharing(store).shares();
    const std::lock_guard guard(mutex);
    if (store.is_on_server()) {
      tick_offset = store.now() - Instant{system_clock().since_boot()};
      shares = Vitals::Shares{.shards = found.shards,
                              .held = found.held,
                              .monitors = static_cast<int>(found.monitors.size()),
                              .step_downs = found.step_downs};
      renewed = found.renewed;
      const Sharing sharing(store);
      // Sessions that are not in memory yet are in the database, as those of others are.
      shared.store(shares->monitors > 1 || sharing.is_taking_over());
      for (int shard = 0; shard < shard_count; ++shard)
        (*held)[static_cast<std::size_t>(shard)].store(sharing.holds(shard));
    }
    file_bytes = file;
    log_bytes = log;
    next_due = due;
    came_round = std::chrono::steady_clock::now();
  }

  /// A turn without memory is refused to its callers. The observer's memory may then be incomplete,
  /// and is read from the file again.
  Result<void> turn_or_refuse(Instant& due) {
    try {
      return turn(due);
    } catch (const std::bad_alloc&) {
      const Error error{ErrorCode::unavailable, "no memory is left to store reports; try again"};
      for (const auto& pending : queue.settle_batches()) pending->answer(error);
      write_for_others(error);
      const std::lock_guard guard(mutex);
      seen.reset();
      return error;
    }
  }

  void run(Backend& backend) {
    while (true) {
      Instant due = never;
      const auto turned = turn_or_refuse(due);
      if (!turned) {
        for (const auto& task : queue.claim_tasks()) task.done(turned.error());
      }
      try {
        report(turned);
        count_stock(due);
        feed_listeners(backend);
      } catch (const std::bad_alloc&) {
        // The next turn.
      }
      if (queue.is_over()) break;
      wait(due);
    }
    if (!seen) return;
    if (auto kept = seen->checkpoint(); !kept) options.log(kept.error().message);
  }

  void wait(Instant due) const {
    auto left = store.is_on_server() ? look_on_server_every : look_every;
    if (due != never) left = std::clamp(due - store.now(), Millis{0}, left);
    if (const auto pause = retention.until_next()) left = std::clamp(*pause, Millis{0}, left);
    if (const auto pending = options.feed ? options.feed->pending() : Feed::Pending::none;
        pending != Feed::Pending::none) {
      const auto rows = pace.due(pending) - std::chrono::steady_clock::now();
      left = std::min(left, std::max(std::chrono::ceil<Millis>(rows), Millis{1}));
    }
    std::array<pollfd, 2> fds{pollfd{wake_fd, POLLIN, 0}, pollfd{appends.fd(), POLLIN, 0}};
    poll(fds.data(), fds.size(), static_cast<int>(left.count()) + (due != never ? 1 : 0));
    std::uint64_t count = 0;
    [[maybe_unused]] const auto got = ::read(wake_fd, &count, sizeof count);
    if ((fds[1].revents & POLLIN) != 0) appends.clear();
  }

  /// A stopped writer of another process holds the lock while it is stopped. Callers here get an
  /// error after a while; their reports stay in the queue.
  void answer_overdue(const std::stop_token& stop) {
    std::mutex sleeping;
    std::condition_variable_any never_notified;
    std::unique_lock guard(sleeping);
    while (!stop.stop_requested()) {
      never_notified.wait_for(guard, stop, std::chrono::milliseconds(500), [] { return false; });
      try {
        answer_the_late();
      } catch (const std::bad_alloc&) {
        // Half a second later.
      }
    }
  }

  void answer_the_late() {
    const auto [batches, writings] =
        queue.late(std::chrono::steady_clock::now() - options.refusal_max);
    const auto why = "the database could not be written for " +
                     std::to_string(options.refusal_max.count()) +
                     " ms: another writer does not come to its end";
    for (const auto& pending : batches) {
      pending->answer(Error{ErrorCode::unavailable,
                            why + ". The report stays queued; with an event_id it may be sent "
                                  "again safely"});
    }
    for (const auto& writing : writings) writing->answer(Error{ErrorCode::unavailable, why});
  }
};

StoreThread::StoreThread(std::unique_ptr<State> state) : state_(std::move(state)) {}

Result<std::unique_ptr<StoreThread>> StoreThread::start(Options options) {
  keep_spare_memory();
  stop_counting_memory();
  auto store = Store::open({.database = options.database, .policy = options.policy});
  if (!store) return store.error();
  auto state = std::make_unique<State>(std::move(options), std::move(*store));
  if (auto begun = state->begin(); !begun) return begun.error();
  state->count_stock(never);
  auto* running = state.get();
  state->overdue_timer =
      std::jthread([running](const std::stop_token& stop) { running->answer_overdue(stop); });
  std::unique_ptr<StoreThread> store_thread(new StoreThread(std::move(state)));
  running->thread =
      std::thread([running, backend = store_thread.get()] { running->run(*backend); });
  return store_thread;
}

StoreThread::~StoreThread() {
  state_->queue.stop();
  state_->wake();
  state_->thread.join();
}

void StoreThread::listen(std::function<void(const Transition&)> listener) {
  const std::lock_guard guard(state_->listening);
  state_->listener = std::move(listener);
}

void StoreThread::set_alert_rules(AlertRules rules) {
  {
    const std::lock_guard guard(state_->mutex);
    state_->wanted_rules = std::move(rules);
  }
  state_->wake();
}

void StoreThread::listen_for_messages(std::function<void()> listener) {
  const std::lock_guard guard(state_->listening);
  state_->message_listener = std::move(listener);
}

void StoreThread::append(Batch batch, std::function<void(Result<Receipt>)> done) {
  auto pending = std::make_shared<PendingBatch>();
  // On the caller's thread: most of a long content is compared and not kept.
  for (auto& report : batch.reports) {
    if (report.content.size() <= preview_chars_max) continue;
    mark(report);
    measure(report);
  }
  pending->bytes = batch_weight(batch);
  pending->batch = std::move(batch);
  pending->done = std::move(done);
  if (!state_->queue.add(pending)) {
    return pending->answer(
        Error{ErrorCode::unavailable, "too many reports wait for the disk; try again"});
  }
  state_->wake();
}

void StoreThread::write(std::function<Result<void>(Store&)> work,
                        std::function<void(Result<void>)> done) {
  auto writing = std::make_shared<PendingWrite>();
  writing->work = std::move(work);
  writing->done = std::move(done);
  state_->queue.add(std::move(writing));
  state_->wake();
}

void StoreThread::read(std::function<void(StoreReader&)> work, std::function<void(Error)> failed) {
  state_->room.read(std::move(work), std::move(failed));
}

std::vector<ChannelStatus> StoreThread::channels() const {
  return state_->options.registry ? state_->options.registry->channels()
                                  : std::vector<ChannelStatus>{};
}

bool StoreThread::test_channel(const std::string& name, ChannelTested done) {
  return state_->options.registry && state_->options.registry->test(name, std::move(done));
}

std::shared_ptr<const Observer> StoreThread::observer() const {
  return state_->observer_seen();
}

std::vector<std::string> StoreThread::sessions_where(
    const std::function<bool(const Case&)>& is_meant) const {
  const auto seen = observer();
  return seen ? seen->sessions_where(is_meant) : std::vector<std::string>();
}

void StoreThread::erase(Erasure erasure,
                        std::function<void(Result<std::vector<std::string>>)> done) {
  state_->queue.add(StoreTask{std::move(erasure), std::move(done)});
  state_->wake();
}

const Metrics* StoreThread::metrics() const {
  return state_->options.metrics;
}

std::optional<Vitals> StoreThread::vitals() const {
  Vitals vitals;
  if (const auto observer = state_->observer_seen()) vitals.sessions = observer->tally();
  const auto present = now();
  const std::lock_guard guard(state_->mutex);
  vitals.keeps = !state_->trouble_now();
  vitals.retention_waits = state_->retention.waits();
  vitals.file_bytes = state_->file_bytes;
  vitals.shares = state_->shares;
  if (vitals.shares) vitals.shares->since_renewal = system_clock().since_boot() - state_->renewed;
  vitals.log_bytes = state_->log_bytes;
  vitals.queue_bytes = static_cast<std::int64_t>(state_->queue.bytes());
  if (state_->next_due != never) vitals.overdue = std::max(present - state_->next_due, Millis{0});
  vitals.since_look =
      std::chrono::duration_cast<Millis>(std::chrono::steady_clock::now() - state_->came_round);
  return vitals;
}

Instant StoreThread::now() const {
  const std::lock_guard guard(state_->mutex);
  return Instant{system_clock().since_boot() + state_->tick_offset};
}

std::function<bool(SessionKey)> StoreThread::judges() const {
  if (!state_->on_server) return [](SessionKey) { return true; };
  return [held = state_->held](SessionKey session) {
    return (*held)[static_cast<std::size_t>(shard_of(session))].load();
  };
}

std::function<Seq()> StoreThread::judged() const {
  return [judged = state_->judged] { return judged->load(); };
}

bool StoreThread::is_shared() const {
  return state_->shared.load();
}

bool StoreThread::is_on_server() const {
  return state_->on_server;
}

bool StoreThread::has_room() const {
  return state_->retention.has_room();
}

std::optional<Error> StoreThread::trouble() const {
  const std::lock_guard guard(state_->mutex);
  return state_->trouble_now();
}

}  // namespace watchdog::monitor
