/// \file
/// Cancellation: a tree of scopes in which a cancel goes down, and never up or sideways.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "watchdog/names.h"
#include "watchdog/time.h"

namespace watchdog {

struct Wakeup;
class WriteFence;

/// The party that cancelled.
enum class CancelOrigin : std::uint8_t {
  user,
  api,
  client_disconnect,
  parent,
  watchdog,
  deadline,
  budget,
  shutdown
};

template <>
struct Names<CancelOrigin> {
  static constexpr std::string_view all[] = {
      "user", "api", "client_disconnect", "parent", "watchdog", "deadline", "budget", "shutdown"};
};

enum class CancelScopeKind : std::uint8_t { call, wave, turn, run, process };

template <>
struct Names<CancelScopeKind> {
  static constexpr std::string_view all[] = {"call", "wave", "turn", "run", "process"};
};

/// Why a scope was cancelled. A plain value.
struct CancelReason {
  CancelOrigin origin = CancelOrigin::user;
  /// The scope of the cancel: this one, or one above it.
  CancelScopeKind scope = CancelScopeKind::run;
  std::string text{};  ///< The party and the cause, for people.
  /// If `origin` is `parent`: the party that cancelled above.
  std::optional<CancelOrigin> above{};
};

/// Returns the party that first cancelled, here or above.
[[nodiscard]] inline CancelOrigin first_origin(const CancelReason& why) noexcept {
  return why.above.value_or(why.origin);
}

/// A node of the tree. It is cancelled once and for good; the first reason stays. A cancel sets
/// flags and wakes waiting threads. Stop callbacks and `on_cancel` run on threads of their own, so
/// the caller of `cancel` may hold any lock and never waits. Thread-safe, except moving.
class CancelScope {
 public:
  [[nodiscard]] static CancelScope root(CancelScopeKind kind = CancelScopeKind::run);
  /// A root that is cancelled with that token.
  [[nodiscard]] static CancelScope bound_to(const std::stop_token& stop, CancelReason reason,
                                            CancelScopeKind kind = CancelScopeKind::run);
  /// The same; `why` is called when it is cancelled, on the thread that requests the stop.
  [[nodiscard]] static CancelScope bound_to(const std::stop_token& stop,
                                            std::function<CancelReason()> why,
                                            CancelScopeKind kind = CancelScopeKind::run);
  /// Cancelled from the start if this one is.
  [[nodiscard]] CancelScope child(CancelScopeKind kind) const;
  CancelScope(CancelScope&&) noexcept;
  CancelScope& operator=(CancelScope&&) noexcept;
  CancelScope(const CancelScope&) = delete;
  CancelScope& operator=(const CancelScope&) = delete;
  /// Cancels nothing. Scopes below it stay in the tree and follow their ancestors.
  ~CancelScope();

  /// Returns true if this call cancelled it; false if it was cancelled before.
  bool cancel(CancelReason reason) noexcept;
  [[nodiscard]] bool cancelled() const noexcept;
  /// Returns the reason. Below the cancelled scope, `origin` is `parent` and the text has the rest.
  [[nodiscard]] std::optional<CancelReason> reason() const;

  /// Requested some microseconds after `cancelled()` turned true.
  [[nodiscard]] std::stop_token token() const;
  /// A descriptor (eventfd) that becomes readable with the cancel and stays so; -1 if none is
  /// available. The scope owns it.
  [[nodiscard]] int wait_fd() const;

  /// A callback that runs once, with the cancel, or at once if that was before. Destroying the
  /// guard removes it, without waiting for a running one. Exceptions are dropped.
  class Guard {
   public:
    Guard() = default;
    ~Guard();
    Guard(Guard&&) noexcept;
    Guard& operator=(Guard&&) noexcept;

   private:
    friend class CancelScope;
    struct Entry;
    explicit Guard(std::shared_ptr<Entry> entry);
    std::shared_ptr<Entry> entry_;
  };
  [[nodiscard]] Guard on_cancel(std::function<void(const CancelReason&)> call) const;

  /// Runs a clean-up that continues although the scope is cancelled. After `at_most` its token is
  /// requested and the wait ends. It runs on its own thread and must own what it uses. Returns true
  /// if it completed.
  static bool shielded(Millis at_most, std::function<void(std::stop_token)> cleanup);

 private:
  friend class CallBatch;
  struct Node;
  explicit CancelScope(std::shared_ptr<Node> node);
  void wake(std::weak_ptr<Wakeup> wakeup) const;
  /// Closes the fence with the cancel, before `cancel` returns, unless a deadline is the origin.
  void shuts(const WriteFence& gate) const;
  /// Returns pointers to this scope and its ancestors, usable as identities while the scopes live.
  [[nodiscard]] std::vector<const void*> lineage() const;
  struct Binding;
  std::shared_ptr<Node> node_;
  std::shared_ptr<Binding> binding_;
};

}  // namespace watchdog
