/// \file
/// A value or the reason why there is none, and names of enumerators.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace watchdog {

/// Specialised beside each enum that has names: `all` lists them in the order of the enumerators.
template <class Enum>
struct Names;

/// True if the enum has an enumerator of this value. Compilers spell such a value by its name, and
/// any other as a cast: `Kind::end`, but `(Kind)27`.
template <class Enum, Enum value>
[[nodiscard]] constexpr bool is_enumerator() {
  const std::string_view spelled = __PRETTY_FUNCTION__;
  const auto at = spelled.find("value = ");
  return at != std::string_view::npos && spelled[at + 8] != '(';
}

/// True if the names are as many as the enumerators: the last has a name, and no further one is.
template <class Enum>
[[nodiscard]] constexpr bool all_are_named() {
  constexpr auto count = std::size(Names<Enum>::all);
  return is_enumerator<Enum, static_cast<Enum>(count - 1)>() &&
         !is_enumerator<Enum, static_cast<Enum>(count)>();
}

/// The name of an enumerator. REQUIRES: `value` is one of the enum's enumerators.
template <class Enum>
[[nodiscard]] constexpr std::string_view name_of(Enum value) {
  static_assert(all_are_named<Enum>(), "the names and the enumerators are not equally many");
  return Names<Enum>::all[static_cast<std::size_t>(value)];
}

/// Returns the enumerator of a name, or nothing.
template <class Enum>
[[nodiscard]] constexpr std::optional<Enum> named(std::string_view name) {
  static_assert(all_are_named<Enum>(), "the names and the enumerators are not equally many");
  std::size_t at = 0;
  for (const auto candidate : Names<Enum>::all) {
    if (candidate == name) return static_cast<Enum>(at);
    ++at;
  }
  return std::nullopt;
}

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
  ErrorCode code = ErrorCode::invalid;  ///< The kind of error.
  std::string message{};  ///< For a person; has the numbers and names the file or field.
  std::string field{};    ///< The input field at fault, if there is one.
  int line = 0;           ///< The input line at fault, counted from 1; 0: the input has no lines.
};

/// A value or an error. Ignoring it is a compiler warning. A plain value.
template <class T, class E = Error>
class [[nodiscard]] Result {
 public:
  /// Holds a value.
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT: implicit
  /// Holds an error.
  Result(E error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: implicit

  /// Returns true if there is a value.
  [[nodiscard]] bool ok() const noexcept { return state_.index() == 0; }
  /// Returns true if there is a value.
  explicit operator bool() const noexcept { return ok(); }

  /// REQUIRES: ok().
  [[nodiscard]] T& value() { return std::get<0>(state_); }
  /// Returns the value. REQUIRES: ok().
  [[nodiscard]] const T& value() const { return std::get<0>(state_); }
  /// Returns the value. REQUIRES: ok().
  T& operator*() { return value(); }
  /// Returns the value. REQUIRES: ok().
  const T& operator*() const { return value(); }
  /// Accesses the value. REQUIRES: ok().
  T* operator->() { return &value(); }
  /// Accesses the value. REQUIRES: ok().
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
  /// Holds an error.
  Result(E error) : error_(std::move(error)) {}  // NOLINT: implicit

  /// Returns true if there is a value.
  [[nodiscard]] bool ok() const noexcept { return !error_.has_value(); }
  /// Returns true if there is a value.
  explicit operator bool() const noexcept { return ok(); }
  /// REQUIRES: !ok().
  [[nodiscard]] const E& error() const { return error_.value(); }

 private:
  std::optional<E> error_;
};

}  // namespace watchdog
