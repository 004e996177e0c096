/// \file
/// Opens pages in the browser of the desktop.
#pragma once

#include <string>

namespace watchdog::monitor {

/// Asks the desktop to open the URL, and does not wait for it. Does nothing without a display.
/// Other users see the URL in the list of processes, so it must have no token.
void open_in_browser(std::string url);

/// The same if a person is at the terminal: standard output is one, and `$CI` is not set.
void open_for_person(const std::string& url);

}  // namespace watchdog::monitor
