/// \file
/// What an operation that can fail because of the world returns: a value, or the reason why not.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "watchdog/names.h"

namespace watchdog {

/// What the caller can do about it: write it properly (`malformed`: not of the shape), choose
/// another value (`invalid`: of the shape, but not allowed), look elsewhere (`not_found`), read and
/// decide again (`conflict`), send less (`exhausted`), stop (`cancelled`), try later
/// (`unavailable`), restore a backup (`corrupt`).
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

/// Why an operation was not done. A plain value.
struct Error {
  ErrorCode code = ErrorCode::invalid;
  std::string message;  ///< For a person; carries the numbers and names the file or field.
  std::string field{};  ///< The input field at fault, if there is one.
  int line = 0;         ///< The input line at fault, counted from 1; 0: the input has no lines.
};

/// A value or the reason why there is none. Dropping one silently is a compiler warning. A plain
/// value.
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

/// Done, or the reason why not.
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
