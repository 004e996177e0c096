/// \file
/// The result of an operation that can fail: a value, or an error.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "watchdog/names.h"

namespace watchdog {

/// The code of an error names the caller's next step. `malformed`: correct the form. `invalid`:
/// choose another value. `not_found`: look elsewhere. `conflict`: read and decide again.
/// `exhausted`: send less. `cancelled`: stop. `unavailable`: try later. `corrupt`: restore a
/// backup.
enum class ErrorCode : std::uint8_t {
  malformed,
  invalid,
  not_found,
  conflict,
  exhausted,
  cancelled,
  unavailable,
  corrupt
};

template <>
struct Names<ErrorCode> {
  static constexpr std::string_view all[] = {"malformed", "invalid",   "not_found",   "conflict",
                                             "exhausted", "cancelled", "unavailable", "corrupt"};
};

/// Why an operation failed. A plain value.
struct Error {
  ErrorCode code = ErrorCode::invalid;
  std::string message{};  ///< For a person; has the numbers and names the file or field.
  std::string field{};    ///< The input field at fault, if there is one.
  int line = 0;           ///< The input line at fault, counted from 1; 0: the input has no lines.
};

/// A value or an error. Ignoring it is a compiler warning. A plain value.
template <class T, class E = Error>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT: implicit
  Result(E error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: implicit

  [[nodiscard]] bool ok() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return ok(); }

  /// REQUIRES: ok().
  [[nodiscard]] T& value() { return std::get<0>(state_); }
  [[nodiscard]] const T& value() const { return std::get<0>(state_); }
  T& operator*() { return value(); }
  const T& operator*() const { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  /// REQUIRES: !ok().
  [[nodiscard]] const E& error() const { return std::get<1>(state_); }

 private:
  std::variant<T, E> state_;
};

/// Success or an error.
template <class E>
class [[nodiscard]] Result<void, E> {
 public:
  Result() = default;
  Result(E error) : error_(std::move(error)) {}  // NOLINT: implicit

  [[nodiscard]] bool ok() const noexcept { return !error_.has_value(); }
  explicit operator bool() const noexcept { return ok(); }
  /// REQUIRES: !ok().
  [[nodiscard]] const E& error() const { return error_.value(); }

 private:
  std::optional<E> error_;
};

}  // namespace watchdog
