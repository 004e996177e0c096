#include "llm/time_zone.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>

namespace watchdog {
namespace {

constexpr std::size_t file_bytes_max = 256U << 10U;
constexpr std::size_t header_bytes = 44;

/// Reads big-endian integers. After the end all are 0 and `failed` is set.
struct Reader {
  std::string_view bytes;
  bool failed = false;

  std::int64_t integer(std::size_t size) {
    if (bytes.size() < size) {
      failed = true;
      return 0;
    }
    std::uint64_t value = (static_cast<unsigned char>(bytes.front()) & 0x80U) != 0 ? ~0ULL : 0;
    for (std::size_t i = 0; i < size; ++i)
      value = (value << 8U) | static_cast<unsigned char>(bytes[i]);
    bytes.remove_prefix(size);
    return static_cast<std::int64_t>(value);
  }
  void skip(std::size_t size) {
    failed |= bytes.size() < size;
    bytes.remove_prefix(std::min(size, bytes.size()));
  }
};

/// The counts that follow the 20 first bytes of a block.
struct Counts {
  std::size_t utc = 0, standard = 0, leaps = 0, times = 0, types = 0, letters = 0;
};

std::optional<Counts> counts_in(Reader& in) {
  if (!in.bytes.starts_with("TZif")) return std::nullopt;
  in.skip(20);
  const auto count = [&] {
    return static_cast<std::size_t>(std::clamp<std::int64_t>(in.integer(4), 0, file_bytes_max));
  };
  const Counts counts{.utc = count(),
                      .standard = count(),
                      .leaps = count(),
                      .times = count(),
                      .types = count(),
                      .letters = count()};
  return in.failed ? std::nullopt : std::optional(counts);
}

bool is_name(std::string_view name) {
  return name.size() <= 64 && name.front() != '/' && name.find("..") == std::string_view::npos &&
         std::ranges::all_of(name, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '_' || c == '-' || c == '+' || c == '/';
         });
}

}  // namespace

std::optional<TimeZone> TimeZone::from(std::string_view bytes) {
  if (bytes.size() > file_bytes_max) return std::nullopt;
  Reader in{bytes};
  auto counts = counts_in(in);
  if (!counts) return std::nullopt;
  std::size_t time_bytes = 4;
  if (bytes.size() > header_bytes && bytes[4] >= '2') {  // a second block has times of 8 bytes
    in.skip(counts->times * 5 + counts->types * 6 + counts->letters + counts->leaps * 8 +
            counts->standard + counts->utc);
    counts = counts_in(in);
    if (!counts) return std::nullopt;
    time_bytes = 8;
  }
  std::vector<std::int64_t> times(std::min(counts->times, in.bytes.size()));
  for (auto& time : times) time = in.integer(time_bytes);
  std::vector<std::int64_t> kinds(times.size());
  for (auto& kind : kinds) kind = in.integer(1);
  std::vector<Millis> offsets(std::min(counts->types, in.bytes.size()));
  for (auto& offset : offsets) {
    offset = std::chrono::seconds(in.integer(4));
    in.skip(2);
  }
  constexpr Millis day{86'400'000};
  const auto is_valid = [&](Millis offset) { return std::chrono::abs(offset) <= 2 * day; };
  if (in.failed || offsets.empty() || !std::ranges::all_of(offsets, is_valid)) return std::nullopt;
  TimeZone zone;
  zone.first_ = offsets.front();
  constexpr std::int64_t seconds_max = 1LL << 40U;
  for (std::size_t i = 0; i < times.size(); ++i) {
    const auto kind = static_cast<std::size_t>(kinds[i]);
    if (kind >= offsets.size()) return std::nullopt;
    const std::chrono::seconds at(std::clamp(times[i], -seconds_max, seconds_max));
    zone.changes_.push_back({WallTime(at), offsets[kind]});
  }
  if (!std::ranges::is_sorted(zone.changes_, {}, &Change::at)) return std::nullopt;
  return zone;
}

std::optional<TimeZone> TimeZone::named(std::string_view name) {
  std::string path = "/etc/localtime";
  bool is_own = name.empty();
  if (is_own) {
    const char* chosen = std::getenv("TZ");  // NOLINT(concurrency-mt-unsafe): nobody sets it
    if (chosen != nullptr) name = chosen;
    if (name.starts_with(':')) name.remove_prefix(1);
  }
  if (name == "UTC" || name == "GMT") return TimeZone();
  if (!name.empty()) {
    if (!is_name(name)) return std::nullopt;
    path = "/usr/share/zoneinfo/" + std::string(name);
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) return is_own && name.empty() ? std::optional(TimeZone()) : std::nullopt;
  std::string bytes(file_bytes_max + 1, '\0');
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<std::size_t>(file.gcount()));
  return from(bytes);
}

Millis TimeZone::offset(WallTime at) const noexcept {
  const auto next = std::ranges::upper_bound(changes_, at, {}, &Change::at);
  return next == changes_.begin() ? first_ : std::prev(next)->offset;
}

}  // namespace watchdog
