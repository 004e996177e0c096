/// \file
/// Numbers of a JSON object that cannot be below 0.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "codec/fields.h"
#include "watchdog/budget.h"
#include "watchdog/time.h"

namespace watchdog {

/// Reads counting fields; none may exceed `budget_max`. A refused field has no value, so no code
/// computes with it.
class Counts {
 public:
  explicit Counts(Fields& fields) : fields_(fields) {}

  std::optional<std::int64_t> integer(std::string_view name, std::int64_t max = budget_max) {
    std::optional<std::int64_t> value;
    fields_.integer(name, value);
    if (value && (*value < 0 || *value > max)) {
      fields_.fail(ErrorCode::invalid, name, "must be from 0 to " + std::to_string(max));
      return std::nullopt;
    }
    return value;
  }
  std::optional<double> number(std::string_view name) {
    std::optional<double> value;
    fields_.number(name, value);
    if (value && !(*value >= 0 && *value <= static_cast<double>(budget_max))) {
      fields_.fail(ErrorCode::invalid, name, "must be from 0 to " + std::to_string(budget_max));
      return std::nullopt;
    }
    return value;
  }
  std::optional<Millis> ms(std::string_view name) {
    const auto value = integer(name);
    return value ? std::optional<Millis>(*value) : std::nullopt;
  }
  /// Writers round up, so the largest number of seconds is a little more than the largest time.
  std::optional<Millis> seconds(std::string_view name) {
    const auto value = integer(name, budget_max / 1'000 + 1);
    return value ? std::optional<Millis>(std::min(*value * 1'000, budget_max)) : std::nullopt;
  }

 private:
  Fields& fields_;
};

}  // namespace watchdog
