#include "alerts/escape.h"

#include <algorithm>

#include "privacy/content.h"

namespace watchdog::monitor {
namespace {

constexpr std::string_view ellipsis = "…";
constexpr std::string_view invisible = "\u200B";  // a space without width

std::string entity_of(std::string_view one) {
  if (one == "&") return "&amp;";
  if (one == "<") return "&lt;";
  if (one == ">") return "&gt;";
  return std::string(one);
}

std::string markdown_of(std::string_view one, bool begins_line) {
  constexpr std::string_view special = "\\*_~`|<>[]()#";
  const bool is_special = one.size() == 1 && special.find(one) != std::string_view::npos;
  // A dash and a plus make a list at the beginning of a line only.
  const bool is_list = begins_line && (one == "-" || one == "+");
  if (is_special || is_list) return "\\" + std::string(one);
  return one == "@" ? "@" + std::string(invisible) : std::string(one);
}

}  // namespace

std::string escaped(std::string_view text, Escapes escapes, std::size_t bytes_max) {
  std::string safe;
  const auto room = bytes_max - std::min(bytes_max, ellipsis.size());
  std::string_view before = "\n";
  while (!text.empty()) {
    auto one = first_characters(text, 1);
    if (one.empty()) one = text.substr(0, 1);
    std::string shown(one);
    switch (escapes) {
      case Escapes::none:
        break;
      case Escapes::entities:
        shown = entity_of(one);
        break;
      case Escapes::markdown:
        shown = markdown_of(one, before == "\n");
        break;
      case Escapes::mentions:
        if (one == "@") shown += invisible;
        break;
      case Escapes::templates:
        if (one == "{") shown += invisible;
        break;
    }
    if (safe.size() + shown.size() > room) return safe + std::string(ellipsis);
    safe += shown;
    before = one;
    text.remove_prefix(one.size());
  }
  return safe;
}

}  // namespace watchdog::monitor
