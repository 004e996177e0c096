// A scope is a node that keeps its parent alive; a parent knows its children. `cancel` stores
// the reason under the node's lock, closes the write fence and wakes the waiters, and then does
// the same for the nodes below. It runs no foreign code: stop tokens and callbacks go to a
// `Dispatcher`, whose threads may block.
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "calls/wakeup.h"
#include "watchdog/deadline.h"
#include "watchdog/tool_outcome.h"

namespace watchdog {
namespace {

/// Runs users' code for a cancel. Work that blocks takes one of 16 threads. When all are taken,
/// further work waits. Threads start as needed and end when idle.
class Dispatcher {
 public:
  static constexpr std::size_t threads_max = 16;

  /// For what `on_cancel` was given.
  static void call(std::function<void()> work) {
    // Never destroyed: threads of it may outlive main.
    static auto& dispatcher = *new Dispatcher;
    dispatcher.run_later(std::move(work));
  }
  /// For requests of stop tokens, which calls wait for. Callbacks that block do not delay them.
  static void stop(std::function<void()> work) {
    static auto& dispatcher = *new Dispatcher;
    dispatcher.run_later(std::move(work));
  }

 private:
  void run_later(std::function<void()> work) {
    std::unique_lock guard(mutex_);
    queue_.push_back(std::move(work));
    if (idle_ >= queue_.size()) {
      guard.unlock();
      changed_.notify_one();
      return;
    }
    if (threads_ >= threads_max) return;
    ++threads_;
    guard.unlock();
    try {
      std::thread([this] { serve(); }).detach();
    } catch (const std::system_error&) {
      // No thread to be had: better on this one than never.
      guard.lock();
      --threads_;
      if (queue_.empty() || threads_ > 0) return;
      auto late = std::move(queue_.front());
      queue_.pop_front();
      guard.unlock();
      late();
    }
  }

  void serve() {
    std::unique_lock guard(mutex_);
    while (true) {
      if (queue_.empty()) {
        ++idle_;
        const bool woken =
            changed_.wait_for(guard, std::chrono::seconds{2}, [&] { return !queue_.empty(); });
        --idle_;
        if (!woken) break;
      }
      auto work = std::move(queue_.front());
      queue_.pop_front();
      guard.unlock();
      work();
      work = nullptr;
      guard.lock();
    }
    --threads_;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;
  std::size_t threads_ = 0;
  std::size_t idle_ = 0;
};

}  // namespace

struct CancelScope::Guard::Entry {
  std::mutex mutex;
  std::function<void(const CancelReason&)> call;

  void run(const CancelReason& reason) noexcept {
    std::function<void(const CancelReason&)> once;
    {
      const std::lock_guard guard(mutex);
      once = std::exchange(call, nullptr);
    }
    try {
      if (once) once(reason);
    } catch (...) {  // a callback's trouble must not end the process
    }
  }
};

struct CancelScope::Node : std::enable_shared_from_this<Node> {
  explicit Node(CancelScopeKind which) : kind(which) {}
  ~Node() {
    if (parent) parent->leave(this);
    if (event_fd >= 0) close(event_fd);
  }
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  const CancelScopeKind kind;
  std::shared_ptr<Node> parent;  // set once, before anybody else knows the node
  std::atomic<bool> is_cancelled{false};

  std::mutex mutex;
  std::optional<CancelReason> reason;
  std::stop_source source{std::nostopstate};  // created with the first token
  int event_fd = -1;
  std::vector<Node*> children;  // each keeps this one, and leaves before it is gone
  std::optional<WriteFence> fence;
  std::vector<std::weak_ptr<Wakeup>> wakeups;
  std::vector<std::shared_ptr<Guard::Entry>> calls;

  /// Takes over a reason from above, or as its own.
  bool cancel(const CancelReason& why) {
    std::vector<std::shared_ptr<Node>> below;
    std::vector<std::weak_ptr<Wakeup>> waiting;
    bool has_calls = false;
    std::stop_source stopping{std::nostopstate};
    {
      const std::lock_guard guard(mutex);
      if (fence && why.origin != CancelOrigin::deadline) fence->revoke(Millis{0});
      if (reason) return false;
      reason = why;
      is_cancelled.store(true, std::memory_order_release);
      if (event_fd >= 0) ring_fd();
      waiting.swap(wakeups);
      for (auto* child : children) {
        if (auto alive = child->weak_from_this().lock()) below.push_back(std::move(alive));
      }
      has_calls = !calls.empty();
      stopping = source;
    }
    for (const auto& wakeup : waiting) {
      if (const auto alive = wakeup.lock()) alive->ring();
    }
    if (!below.empty()) {
      const auto seen_below = from_above(why);
      for (const auto& child : below) child->cancel(seen_below);
    }
    if (stopping.stop_possible())
      Dispatcher::stop([stopping]() mutable { stopping.request_stop(); });
    if (has_calls) Dispatcher::call([self = shared_from_this()] { self->publish(); });
    return true;
  }

  static CancelReason from_above(const CancelReason& why) {
    if (why.origin == CancelOrigin::parent) return why;
    return {CancelOrigin::parent, why.scope,
            "the " + std::string(name_of(why.scope)) + " above was called off by " +
                std::string(name_of(why.origin)) + (why.text.empty() ? "" : ": " + why.text),
            why.origin};
  }

  void publish() {
    std::vector<std::shared_ptr<Guard::Entry>> published;
    CancelReason why;
    {
      const std::lock_guard guard(mutex);
      published.swap(calls);
      why = *reason;
    }
    for (const auto& entry : published) entry->run(why);
  }

  /// REQUIRES: mutex held.
  void ring_fd() const {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = write(event_fd, &one, sizeof one);
  }

  void leave(Node* child) {
    const std::lock_guard guard(mutex);
    children.erase(std::remove(children.begin(), children.end(), child), children.end());
  }
};

CancelScope::CancelScope(std::shared_ptr<Node> node) : node_(std::move(node)) {}
CancelScope::CancelScope(CancelScope&&) noexcept = default;
CancelScope& CancelScope::operator=(CancelScope&&) noexcept = default;
CancelScope::~CancelScope() = default;

CancelScope CancelScope::root(CancelScopeKind kind) {
  return CancelScope(std::make_shared<Node>(kind));
}

/// Cancels on the thread that requests the stop; that runs no callback.
struct CancelScope::Binding {
  Binding(const std::stop_token& stop, std::shared_ptr<Node> node,
          std::function<CancelReason()> why)
      : callback(stop, [node = std::move(node), why = std::move(why)] {
          auto reason = why();
          reason.scope = node->kind;
          node->cancel(reason);
        }) {}
  std::stop_callback<std::function<void()>> callback;
};

CancelScope CancelScope::bound_to(const std::stop_token& stop, CancelReason reason,
                                  CancelScopeKind kind) {
  return bound_to(
      stop, [why = std::move(reason)] { return why; }, kind);
}

CancelScope CancelScope::bound_to(const std::stop_token& stop, std::function<CancelReason()> why,
                                  CancelScopeKind kind) {
  auto scope = root(kind);
  scope.binding_ = std::make_shared<Binding>(stop, scope.node_, std::move(why));
  return scope;
}

CancelScope CancelScope::child(CancelScopeKind kind) const {
  auto node = std::make_shared<Node>(kind);
  node->parent = node_;
  std::optional<CancelReason> why;
  {
    const std::lock_guard guard(node_->mutex);
    node_->children.push_back(node.get());
    why = node_->reason;
  }
  if (why) node->cancel(Node::from_above(*why));
  return CancelScope(std::move(node));
}

bool CancelScope::cancel(CancelReason reason) noexcept {
  reason.scope = node_->kind;
  return node_->cancel(reason);
}

bool CancelScope::cancelled() const noexcept {
  return node_->is_cancelled.load(std::memory_order_acquire);
}

std::optional<CancelReason> CancelScope::reason() const {
  const std::lock_guard guard(node_->mutex);
  return node_->reason;
}

std::stop_token CancelScope::token() const {
  bool late = false;
  std::stop_source source{std::nostopstate};
  {
    const std::lock_guard guard(node_->mutex);
    if (!node_->source.stop_possible()) {
      node_->source = std::stop_source{};
      late = node_->reason.has_value();
    }
    source = node_->source;
  }
  if (late) source.request_stop();  // no callback is registered yet
  return source.get_token();
}

int CancelScope::wait_fd() const {
  const std::lock_guard guard(node_->mutex);
  if (node_->event_fd < 0) {
    node_->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (node_->event_fd >= 0 && node_->reason) node_->ring_fd();
  }
  return node_->event_fd;
}

void CancelScope::wake(std::weak_ptr<Wakeup> wakeup) const {
  {
    const std::lock_guard guard(node_->mutex);
    if (!node_->reason) {
      node_->wakeups.push_back(std::move(wakeup));
      return;
    }
  }
  if (const auto alive = wakeup.lock()) alive->ring();
}

void CancelScope::shuts(const WriteFence& fence) const {
  const std::lock_guard guard(node_->mutex);
  node_->fence = fence;
  if (node_->reason) node_->fence->revoke(Millis{0});
}

std::vector<const void*> CancelScope::lineage() const {
  std::vector<const void*> nodes;
  for (const auto* node = node_.get(); node != nullptr; node = node->parent.get()) {
    nodes.push_back(node);
  }
  return nodes;
}

CancelScope::Guard::Guard(std::shared_ptr<Entry> entry) : entry_(std::move(entry)) {}
CancelScope::Guard::Guard(Guard&&) noexcept = default;

CancelScope::Guard& CancelScope::Guard::operator=(Guard&& other) noexcept {
  std::swap(entry_, other.entry_);
  return *this;
}

CancelScope::Guard::~Guard() {
  if (!entry_) return;
  const std::lock_guard guard(entry_->mutex);
  entry_->call = nullptr;
}

CancelScope::Guard CancelScope::on_cancel(std::function<void(const CancelReason&)> call) const {
  auto entry = std::make_shared<Guard::Entry>();
  entry->call = std::move(call);
  std::optional<CancelReason> why;
  {
    const std::lock_guard guard(node_->mutex);
    why = node_->reason;
    if (!why) {
      auto& calls = node_->calls;
      calls.erase(std::remove_if(calls.begin(), calls.end(),
                                 [](const auto& old) { return old.use_count() == 1; }),
                  calls.end());
      calls.push_back(entry);
    }
  }
  if (why) Dispatcher::call([entry, why = *why] { entry->run(why); });
  return Guard(std::move(entry));
}

bool CancelScope::shielded(Millis at_most, std::function<void(std::stop_token)> cleanup) {
  struct Shared {
    std::mutex mutex;
    std::condition_variable changed;
    bool done = false;
    std::stop_source source;
  };
  const auto shared = std::make_shared<Shared>();
  const auto work = [shared, cleanup = std::move(cleanup)] {
    try {
      cleanup(shared->source.get_token());
    } catch (...) {  // as far as it came
    }
    const std::lock_guard guard(shared->mutex);
    shared->done = true;
    shared->changed.notify_all();
  };
  try {
    std::thread(work).detach();
  } catch (const std::system_error&) {
    work();
    return true;
  }
  std::unique_lock guard(shared->mutex);
  if (shared->changed.wait_for(guard, at_most, [&] { return shared->done; })) return true;
  guard.unlock();
  Dispatcher::stop([shared] { shared->source.request_stop(); });
  return false;
}

}  // namespace watchdog
