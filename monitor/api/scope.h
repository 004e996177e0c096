/// \file
/// The permissions of a token.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "watchdog/result.h"

namespace watchdog::monitor {

enum class Scope : std::uint8_t {
  read,    ///< See sessions, their events and healths.
  report,  ///< Say what an agent does; ask a model about it.
  act      ///< Cancel sessions, silence alerts, read the audit log.
};

/// A set of scopes. A plain value.
class Scopes {
 public:
  constexpr Scopes() = default;
  constexpr Scopes(std::initializer_list<Scope> scopes) {
    for (const auto scope : scopes) add(scope);
  }
  [[nodiscard]] static constexpr Scopes all() { return {Scope::read, Scope::report, Scope::act}; }

  constexpr void add(Scope scope) { bits_ |= bit(scope); }
  [[nodiscard]] constexpr bool contains(Scope scope) const { return (bits_ & bit(scope)) != 0; }
  [[nodiscard]] constexpr bool empty() const { return bits_ == 0; }
  constexpr bool operator==(const Scopes&) const = default;

 private:
  static constexpr unsigned bit(Scope scope) { return 1U << static_cast<unsigned>(scope); }
  unsigned bits_ = 0;
};

}  // namespace watchdog::monitor

namespace watchdog {
template <>
struct Names<monitor::Scope> {
  static constexpr std::string_view all[] = {"read", "report", "act"};
};
}  // namespace watchdog
