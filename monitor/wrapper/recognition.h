/// \file
/// The lines of a command's output that show progress.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "watchdog/report.h"
#include "watchdog/result.h"

namespace watchdog::monitor {

/// Thread-safe.
class Recognition {
 public:
  /// Lines in which one of these expressions (RE2's syntax) is found are state changes; with
  /// `json_events`, lines that are events as they are posted are these events. Errors: `invalid`,
  /// naming the expression.
  [[nodiscard]] static Result<Recognition> of(const std::vector<std::string>& expressions,
                                              bool json_events);

  /// True if there is no line that says anything.
  [[nodiscard]] bool is_idle() const;
  /// Returns the event in the line, if it is one. The wrapper begins the session, so a `start` is
  /// not one.
  [[nodiscard]] std::optional<Report> event_in(std::string_view line) const;
  /// True if one of the expressions is found in the line.
  [[nodiscard]] bool finds(std::string_view line) const;

 private:
  struct Expressions;
  std::shared_ptr<const Expressions> expressions_;
  bool json_events_ = false;
};

}  // namespace watchdog::monitor
