/// \file
/// Carries out the rules of recovery at agents' hooks.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>

#include "api/call.h"
#include "core/recovery_rule.h"
#include "core/recovery_trial.h"
#include "ingest/hook_answer.h"

namespace watchdog::monitor {

/// The rules, the pause, and what was done for the present verdicts. The memory saves questions to
/// the store; the store itself lets each act happen once. Thread-safe.
class Recovery {
 public:
  /// `pause_file` exists while the rules are paused; empty: there are no rules.
  explicit Recovery(RecoveryRules rules = {}, std::filesystem::path pause_file = {});

  /// Returns the file of a database. Monitors that share a server are paused one by one.
  [[nodiscard]] static std::filesystem::path pause_file_of(const std::filesystem::path& database);

  [[nodiscard]] const RecoveryRules& rules() const noexcept { return rules_; }
  /// Asks the file, which another process may make. A file that cannot be looked at counts as a
  /// pause.
  [[nodiscard]] bool is_paused() const noexcept;
  /// Durable when it returns. Errors: those of file_error, if the file cannot be made or removed.
  [[nodiscard]] Result<void> pause(bool pauses);

  /// Acts for one verdict of a session. A plain value.
  struct Acts {
    Seq verdict = 0;  ///< The event where its evidence begins.
    Seq at = 0;       ///< The session's newest event at the newest act.
    std::map<std::string, int> by_rule{};
  };
  /// Returns the acts that are remembered; none for another verdict.
  [[nodiscard]] Acts acts(const std::string& session, Seq verdict) const;
  /// The rule has acted `number` times.
  void note(const std::string& session, Seq verdict, const std::string& rule, int number, Seq at);
  /// Acts of this process by rule, those of dry runs included.
  [[nodiscard]] std::map<std::string, std::int64_t> done() const;
  void count(const std::string& rule);

  /// The results of acts, and of doing nothing. A plain value.
  struct Trials {
    TrialBook::ByRule counts{};
    std::map<std::string, std::int64_t> open{};  ///< Trials that go on, by rule.
    std::set<std::string> off{};                 ///< Rules that switched themselves off.
  };
  /// Replaces the figures, and the rules that are off.
  void publish(Trials trials);
  [[nodiscard]] Trials trials() const;
  [[nodiscard]] std::set<std::string> off() const;

 private:
  const RecoveryRules rules_;
  const std::filesystem::path pause_file_;
  mutable std::mutex mutex_;
  std::unordered_map<std::string, Acts> sessions_;
  std::map<std::string, std::int64_t> done_;
  Trials trials_;
};

/// The act of a rule at an event. A plain value.
struct RecoveryOutcome {
  std::optional<HookAct> act{};           ///< Empty: the hook gets no answer.
  std::optional<CancelRequest> cancel{};  ///< Set with a cancel.
};

/// An event of a hook that is stored.
struct RecoveryEvent {
  HookEvent event;
  std::string command{};  ///< Of the event's call; empty: unknown.
  bool is_known = false;  ///< It was stored before: from a transcript, or the hook came twice.
};

/// Asks the rules about the session of an event. An act is in the session's events and in the audit
/// log before `done` is called, once, from any thread. A known event gets no act if there was one
/// since its call began.
void recover(const CallPtr& call, HookAgent agent, RecoveryEvent what,
             std::function<void(RecoveryOutcome)> done);

}  // namespace watchdog::monitor
