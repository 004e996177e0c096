#include "text/figures.h"

#include <cstddef>

namespace watchdog {

std::string grouped(std::int64_t number) {
  std::string text = std::to_string(number);
  for (auto at = static_cast<std::ptrdiff_t>(text.size()) - 3; at > (number < 0 ? 1 : 0); at -= 3)
    text.insert(static_cast<std::size_t>(at), 1, ',');
  return text;
}

std::string span_of(Millis time) {
  const auto seconds = (time.count() + 500) / 1'000;
  return seconds < 600 ? std::to_string(seconds) + " s" : grouped(seconds / 60) + " min";
}

std::string counted_as(std::int64_t number, const char* what) {
  return grouped(number) + " " + what + (number == 1 ? "" : "s");
}

}  // namespace watchdog
