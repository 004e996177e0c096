/// \file
/// The state that a StoreReader and a Store on the same connection share.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "store/lock.h"
#include "store/sqlite.h"
#include "store/store_reader.h"

namespace watchdog {

/// Of the columns sessions.cancel and sessions.aborts.
[[nodiscard]] Directive directive_from(const std::string& cancel, const std::string& aborts);

struct StoreReader::State {
  explicit State(std::shared_ptr<Database> connection) : database(std::move(connection)) {}
  ~State();
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  std::shared_ptr<Database> database;
  std::unordered_map<std::string, Statement> statements;
  int generation = fork_generation();

  /// The statement of this text, reset and ready to bind.
  [[nodiscard]] Statement& prepared(std::string_view sql);
  /// Follows `prev` from `from` down to, not including, `after`; oldest first.
  [[nodiscard]] std::vector<Event> walk(Seq from, Seq after);
  [[nodiscard]] std::vector<Seq> chain(Seq from, Seq after);
  [[nodiscard]] Seq head_of(SessionKey session);
  [[nodiscard]] Instant latest_tick();
  void add_unwritten(std::vector<Transition>& concluded, const Case& judged,
                     std::vector<Transition>& changes);
  [[nodiscard]] static Case case_before_events(const SessionRow& row);
  /// Runs `work`, turning what it throws into an Error.
  template <class T, class Work>
  [[nodiscard]] Result<T> guarded(Work&& work);
};

template <class T, class Work>
Result<T> StoreReader::State::guarded(Work&& work) {
  try {
    return work();
  } catch (const SqlFailure& failure) {
    for (auto& [sql, statement] : statements) statement.reset();
    return failure.error;
  }
}

}  // namespace watchdog
