/// \file
/// Writes down what came of the acts of rules, and switches off rules that do harm.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>

#include "api/recovery.h"
#include "core/backend.h"

namespace watchdog::monitor {

/// The trials of all rules, which the audit log holds. Of one thread.
class RecoveryTrials {
 public:
  using Log = std::function<void(const std::string&)>;

  /// `store` must outlive it; `recovery` is never null. `log` gets what an operator should know.
  RecoveryTrials(Backend& store, std::shared_ptr<Recovery> recovery, Log log)
      : store_(store), recovery_(std::move(recovery)), log_(std::move(log)) {}

  /// Reads new entries of the log and publishes the figures. It waits for the store.
  void read();
  /// The same. It also ends trials whose sessions have shown enough, and switches off rules.
  void look();

 private:
  using Key = std::tuple<std::string, std::string, Seq>;  ///< Rule, session, verdict.

  /// Reads entries into the book; false: the store cannot be read now.
  bool read_log();
  void watch(const OpenTrial& trial);
  void write_down(const AuditEntry& entry);
  void publish();

  Backend& store_;
  const std::shared_ptr<Recovery> recovery_;
  const Log log_;
  TrialBook book_;
  std::int64_t newest_ = 0;  ///< The id of the newest entry that the book has.
  std::map<Key, TrialStart> starts_;
};

}  // namespace watchdog::monitor
