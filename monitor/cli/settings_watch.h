/// \file
/// Notices that a monitor's settings of alerts have changed.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "cli/periodic.h"
#include "watchdog/settings.h"

namespace watchdog::monitor {

/// Looks at the file of settings once a second. If it is another one than before, or has come, all
/// sources are read again. Settings that cannot be used change nothing, and are logged once.
class SettingsWatch {
 public:
  struct Options {
    Sources sources;  ///< As the monitor was started with.
    /// Uses the new settings, as far as it can while it runs. Errors: why it does not.
    std::function<Result<void>(const Settings&)> changed;
    std::function<void(const std::string&)> log;
    Millis every{1'000};
  };
  explicit SettingsWatch(Options options);

 private:
  /// Differs between two versions of a file.
  struct Version {
    std::filesystem::file_time_type written{};
    std::uintmax_t bytes = 0;
    bool operator==(const Version&) const = default;
  };
  void look();
  [[nodiscard]] Version version() const;

  const Options options_;
  const std::filesystem::path file_;  ///< Empty: none is read.
  Version known_;
  Version seen_;       ///< At the last look.
  Periodic periodic_;  ///< Last: its looks use the rest.
};

}  // namespace watchdog::monitor
