#include "text/wildcard.h"

#include <cstddef>

namespace watchdog {

bool matches_wildcard(std::string_view pattern, std::string_view name) noexcept {
  // The newest star takes one character more whenever what follows it does not fit.
  std::size_t at = 0, in = 0, star = std::string_view::npos, retry = 0;
  while (in < name.size()) {
    if (at < pattern.size() && pattern[at] == '*') {
      star = at++;
      retry = in;
    } else if (at < pattern.size() && pattern[at] == name[in]) {
      ++at;
      ++in;
    } else if (star != std::string_view::npos) {
      at = star + 1;
      in = ++retry;
    } else {
      return false;
    }
  }
  while (at < pattern.size() && pattern[at] == '*') ++at;
  return at == pattern.size();
}

}  // namespace watchdog
