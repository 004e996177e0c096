/// \file
/// Looks at the machine when a session gets into trouble, and keeps what it shows for bundles.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "bundle/kept_looks.h"
#include "core/store_thread.h"

namespace watchdog::monitor {

/// Returns the name of a moment that bundles are for, if the session is at one. It is a confirmed
/// trouble with the first event of its proof (`looping-17`), or a request to stop (`cancel-1`) or a
/// bad end (`failed-1`) with the attempt. Pure.
[[nodiscard]] std::optional<std::string> moment_of(const Case& judged);

/// A thread that looks once for each moment of a session whose process was found here.
class LookKeeper {
 public:
  struct Options {
    std::shared_ptr<KeptLooks> looks;  ///< Never null.
    bool asks_git = true;              ///< Looks name changed files.
    Millis look_every{5'000};
    /// Gets what an operator should know. Called from the thread.
    std::function<void(const std::string&)> log;
  };

  /// `store` must outlive it.
  LookKeeper(StoreThread& store, Options options);
  ~LookKeeper();
  LookKeeper(const LookKeeper&) = delete;
  LookKeeper& operator=(const LookKeeper&) = delete;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace watchdog::monitor
