/// \file
/// The progress that programs show on the icon of their terminal (OSC 9;4, from ConEmu).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "watchdog/result.h"

namespace watchdog::monitor {

/// The value of the sequence `ESC ] 9 ; 4 ; STATE ; PERCENT BEL`. A plain value.
struct TerminalProgress {
  enum class State : std::uint8_t { none, normal, error, indeterminate, paused };
  State state = State::none;
  int percent = 0;  ///< 0 … 100.

  friend bool operator==(const TerminalProgress&, const TerminalProgress&) = default;
};

/// Finds the sequences in what a program writes, wherever it is cut. Use from one thread at a time.
class ProgressSequence {
 public:
  /// The newest in these bytes and those before, if one ends here.
  [[nodiscard]] std::optional<TerminalProgress> feed(std::string_view bytes);

 private:
  /// The beginning of a sequence, its ESC included; empty: none.
  std::string begun_;
};

}  // namespace watchdog::monitor

namespace watchdog {
template <>
struct Names<monitor::TerminalProgress::State> {
  static constexpr std::string_view all[] = {"none", "normal", "error", "indeterminate", "paused"};
};
}  // namespace watchdog
