#include "cli/settings_watch.h"

#include <utility>

namespace watchdog::monitor {

SettingsWatch::SettingsWatch(Options options)
    : options_(std::move(options)),
      file_(options_.sources.file ? *options_.sources.file
                                  : usual_settings_file(options_.sources.environment)),
      known_(version()),
      seen_(known_),
      periodic_(options_.every, [this] { look(); }) {}

SettingsWatch::Version SettingsWatch::version() const {
  std::error_code missing;
  Version found{.written = std::filesystem::last_write_time(file_, missing)};
  if (missing) return {};
  found.bytes = std::filesystem::file_size(file_, missing);
  return missing ? Version{} : found;
}

void SettingsWatch::look() {
  const auto now = version();
  // Editors take a file away, or empty it, for a moment when they save it: the second look counts.
  if (std::exchange(seen_, now) != now || now == known_ || now == Version{}) return;
  const auto said = [&](const std::string& why) {
    known_ = now;
    options_.log("the changed settings in " + file_.string() + " are not used: " + why);
  };
  const auto loaded = Configuration::load(options_.sources);
  if (!loaded) return said(to_text(loaded.error()));
  if (auto used = options_.changed(loaded->settings()); !used) return said(used.error().message);
  known_ = now;
  std::string names;
  for (const auto& [name, channel] : loaded->settings().alerts.channels)
    names += (names.empty() ? "" : ", ") + name;
  if (names.empty()) names = "none";
  options_.log("the settings of alerts in " + file_.string() + " are read again; channels: " +
               names + ". Other settings are used when the monitor starts again");
}

}  // namespace watchdog::monitor
