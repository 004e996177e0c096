/// \file
/// Shows a person which sessions need one, right after the program was started without arguments.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "cli/endpoint.h"
#include "watchdog/settings.h"

namespace watchdog::monitor {

/// Returns how many sessions there are of each attention, and below that those that need a person.
/// Errors: as of Endpoint::ask(); `unavailable`: another program answered.
[[nodiscard]] Result<std::string> sessions_in_brief(Endpoint& endpoint);

/// Prints the sessions of a database once its transcripts are reported, but after ten seconds at
/// the latest, and the next steps. On a thread of its own, which ends with this object.
class FirstScreen {
 public:
  FirstScreen(std::string database, Sources sources);
  /// The transcripts that were there are reported. From any thread.
  void note_caught_up();
  /// Starts to wait. Call it once.
  void begin();

 private:
  void show(bool is_all) const;

  Endpoint::Options place_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  bool is_caught_up_ = false;  ///< Guarded by `mutex_`.
  std::jthread thread_;        ///< Goes first: it uses the rest.
};

/// Looks for the monitor that keeps another one with these settings from starting. Prints where it
/// is and what its sessions need, and opens its page. Returns false if none answers there.
[[nodiscard]] bool show_running_monitor(const Settings& settings, const Sources& sources);

}  // namespace watchdog::monitor
