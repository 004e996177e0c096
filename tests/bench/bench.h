/// \file
/// What all benchmarks share: measure a thing and its comparator by turns, compare, print a line.
///
/// Machines slow down and speed up by the minute, so a number alone says little. A promise is a
/// ratio to a comparator measured in the same run, and in CPU time wherever work and not waiting is
/// promised.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "text/json_writer.h"
#include "watchdog/result.h"

namespace watchdog::bench {

/// Ends the program: a benchmark without its data measures nothing.
[[noreturn]] inline void give_up(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  std::exit(2);  // NOLINT(concurrency-mt-unsafe): nothing is left to be saved
}

template <class T>
T must(Result<T> result) {
  if (!result) give_up(result.error().message);
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

inline double seconds_of(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// Seconds, on the clock given, that `work` takes.
template <class Work>
double time_of(clockid_t clock, Work&& work) {
  const double before = seconds_of(clock);
  work();
  return seconds_of(clock) - before;
}
/// CPU seconds of all threads of this process.
template <class Work>
double cpu_of(Work&& work) {
  return time_of(CLOCK_PROCESS_CPUTIME_ID, work);
}
/// Seconds that somebody waits.
template <class Work>
double wall_of(Work&& work) {
  return time_of(CLOCK_MONOTONIC, work);
}

/// The value below which `share` of the others lie. REQUIRES: not empty.
inline double quantile(std::vector<double> values, double share) {
  const auto at = std::min(values.size() - 1,
                           static_cast<std::size_t>(share * static_cast<double>(values.size())));
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(at), values.end());
  return values[at];
}
inline double median(std::vector<double> values) {
  return quantile(std::move(values), 0.5);
}

/// Medians of what was measured by turns. `ratio` is the median of the pairs' ratios, not the ratio
/// of the medians: both halves of a pair had the same neighbours on the machine.
struct Comparison {
  double measured = 0;
  double comparator = 0;
  double ratio = 0;
};

/// Takes both by turns, first the one and then the other, after one round that does not count.
inline Comparison by_turns(int pairs, const std::function<double()>& measure,
                           const std::function<double()>& compare) {
  std::vector<double> measured;
  std::vector<double> comparator;
  std::vector<double> ratios;
  for (int pair = -1; pair < pairs; ++pair) {
    const bool measure_first = pair % 2 == 0;
    double a = measure_first ? measure() : 0;
    const double b = compare();
    if (!measure_first) a = measure();
    if (pair < 0) continue;
    measured.push_back(a);
    comparator.push_back(b);
    ratios.push_back(a / b);
  }
  return {median(measured), median(comparator), median(ratios)};
}

struct Limit {
  enum class Bound : std::uint8_t { at_most, at_least };
  Bound bound = Bound::at_most;
  double value = 0;
};
inline Limit at_most(double value) {
  return {Limit::Bound::at_most, value};
}
inline Limit at_least(double value) {
  return {Limit::Bound::at_least, value};
}

/// Prints a line for each finding and remembers whether a limit was exceeded.
class Table {
 public:
  /// REQUIRES: argv of a program whose only argument may be --json.
  Table(int argc, char** argv) : json_(argc == 2 && std::string_view(argv[1]) == "--json") {
    if (argc > 1 && !json_) give_up(std::string("usage: ") + argv[0] + " [--json]");
    if (json_) return;
    std::printf("%-32s %13s %13s %7s %11s\n", "", "measured", "comparator", "ratio", "limit");
  }

  /// The limit, where there is one, is one of the ratio.
  void add(const std::string& name, const char* unit, const Comparison& found,
           std::optional<Limit> limit = {}) {
    line(name, unit, found.measured, found.comparator, found.ratio, limit, found.ratio);
  }
  /// The limit, where there is one, is one of the value.
  void add(const std::string& name, const char* unit, double measured,
           std::optional<Limit> limit = {}) {
    line(name, unit, measured, std::nullopt, std::nullopt, limit, measured);
  }

  [[nodiscard]] int exit_code() const { return exceeded_ ? 1 : 0; }

 private:
  static std::string number(std::optional<double> value, const char* unit) {
    if (!value) return "-";
    std::array<char, 64> text{};
    const int digits = *value >= 1000 ? 0 : *value >= 100 ? 1 : 2;
    std::snprintf(text.data(), text.size(), "%.*f%s%s", digits, *value, *unit == '\0' ? "" : " ",
                  unit);
    return text.data();
  }

  void line(const std::string& name, const char* unit, double measured,
            std::optional<double> comparator, std::optional<double> ratio,
            std::optional<Limit> limit, double limited) {
    const bool upper = limit && limit->bound == Limit::Bound::at_most;
    const bool kept = !limit || (upper ? limited <= limit->value : limited >= limit->value);
    exceeded_ |= !kept;
    if (json_) {
      JsonWriter out;
      out.open_object().field("name", name).field("unit", unit).field("measured", measured);
      out.field("comparator", comparator).field("ratio", ratio);
      out.field("bound",
                limit ? std::optional<std::string>(upper ? "at_most" : "at_least") : std::nullopt);
      out.field("limit", limit ? std::optional(limit->value) : std::nullopt)
          .field("ok", kept)
          .close_object();
      std::printf("%s\n", out.finish().c_str());
    } else {
      const auto bound =
          limit ? (upper ? "<= " : ">= ") + number(limit->value, ratio ? "" : unit) : "-";
      std::printf("%-32s %13s %13s %7s %11s  %s\n", name.c_str(), number(measured, unit).c_str(),
                  number(comparator, unit).c_str(), number(ratio, "").c_str(), bound.c_str(),
                  !limit ? ""
                  : kept ? "ok"
                         : "EXCEEDED");
    }
    std::fflush(stdout);
  }

  bool json_;
  bool exceeded_ = false;
};

}  // namespace watchdog::bench
