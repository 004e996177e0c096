/// \file
/// A question of an agent, and a person's answer to it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "watchdog/result.h"
#include "watchdog/time.h"

namespace watchdog::monitor {

/// The answers that a question takes.
enum class QuestionKind : std::uint8_t {
  permission,  ///< allow or deny
  choice       ///< one of the choices, or a text of the person's own
};

/// A question whose hook waits for the answer. A plain value, without secrets.
struct HeldQuestion {
  std::string id{};  ///< Names it among all questions of all monitors.
  std::string session{};
  QuestionKind kind = QuestionKind::permission;
  std::string tool{};  ///< For whose call the agent asks.
  std::string text{};  ///< The question, or what the call would do.
  std::vector<std::string> choices{};
  WallTime asked{};
  WallTime until{};  ///< Then only the agent's own place takes an answer.
};

/// A person's answer. A plain value.
struct PersonAnswer {
  bool allows = true;  ///< False: deny.
  std::string text{};  ///< The choice or the person's own words; of a denial the reason.
  std::string by{};    ///< The name of the person.
};

/// `allow`, `deny` or the person's words in quotes.
[[nodiscard]] std::string words_of(const PersonAnswer& answer, QuestionKind kind);

}  // namespace watchdog::monitor

namespace watchdog {
template <>
struct Names<monitor::QuestionKind> {
  static constexpr std::string_view all[] = {"permission", "choice"};
};
}  // namespace watchdog
