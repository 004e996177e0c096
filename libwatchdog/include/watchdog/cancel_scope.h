/// \file
/// Calling off: a tree of scopes in which a cancel goes down, and never up or sideways.
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
class WriteGate;

/// Who called it off.
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

/// Why something was called off. A plain value.
struct CancelReason {
  CancelOrigin origin = CancelOrigin::user;
  /// Where the cancel was asked for: this scope, or one above it.
  CancelScopeKind scope = CancelScopeKind::run;
  std::string text{};  ///< Who and why, for people.
};

/// A node of the tree. Cancelled once and for good; the first reason stays. Cancelling flips flags
/// and wakes waiting threads; stop callbacks and `on_cancel` run on threads of their own, so that
/// whoever cancels may hold any lock and is never held up. Thread-safe, but for moving.
class CancelScope {
 public:
  [[nodiscard]] static CancelScope root(CancelScopeKind kind = CancelScopeKind::run);
  /// A root that is cancelled when somebody asks that token.
  [[nodiscard]] static CancelScope bound_to(const std::stop_token& stop, CancelReason reason,
                                            CancelScopeKind kind = CancelScopeKind::run);
  /// Cancelled from the beginning if this one is.
  [[nodiscard]] CancelScope child(CancelScopeKind kind) const;
  CancelScope(CancelScope&&) noexcept;
  CancelScope& operator=(CancelScope&&) noexcept;
  CancelScope(const CancelScope&) = delete;
  CancelScope& operator=(const CancelScope&) = delete;
  /// Cancels nothing. What is below it stays in the tree, and is reached from above.
  ~CancelScope();

  /// True if this call did it; false if it was cancelled before.
  bool cancel(CancelReason reason) noexcept;
  [[nodiscard]] bool cancelled() const noexcept;
  /// Below the scope where the cancel was asked for, `origin` is `parent` and the text tells the
  /// rest.
  [[nodiscard]] std::optional<CancelReason> reason() const;

  /// Asked for some microseconds after `cancelled()` turned true.
  [[nodiscard]] std::stop_token token() const;
  /// A descriptor (eventfd) that becomes readable with the cancel and stays so; -1 if there is none
  /// to be had. The scope owns it.
  [[nodiscard]] int wait_fd() const;

  /// A call that happens once, with the cancel; at once if that was before. Destroying the guard
  /// takes it back, but does not wait for one under way. What it throws is dropped.
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

  /// Clean-up that goes on although the scope is cancelled, for so long at most: then its token is
  /// asked for, and it is not waited for any longer. Runs on a thread of its own, and must own what
  /// it uses. True if it came to its end.
  static bool shielded(Millis at_most, std::function<void(std::stop_token)> cleanup);

 private:
  friend class CallBatch;
  struct Node;
  explicit CancelScope(std::shared_ptr<Node> node);
  void wake(std::weak_ptr<Wakeup> wakeup) const;
  /// The gate is shut when the cancel returns, unless a deadline is its origin.
  void shuts(const WriteGate& gate) const;
  /// It and what it belongs to, upwards: to tell nodes apart as long as they are there.
  [[nodiscard]] std::vector<const void*> lineage() const;
  struct Binding;
  std::shared_ptr<Node> node_;
  std::shared_ptr<Binding> binding_;
};

}  // namespace watchdog
