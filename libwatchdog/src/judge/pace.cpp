#include <algorithm>
#include <cmath>
#include <numbers>

#include "facts/digest.h"
#include "watchdog/history.h"

namespace watchdog {
namespace {

constexpr float window = 200;       ///< Samples; more let old ones fade.
constexpr double prior_weight = 8;  ///< Pseudo-samples,
constexpr double prior_spread = 1;  ///< whose standard deviation is a factor of e.
/// For a very regular session too: one that takes 28 seconds for each reflection and then five
/// minutes to read a prompt is slow, not suspect.
constexpr double spread_min = 0.75;
constexpr std::uint32_t everything_else = 0;

std::uint32_t short_digest(std::uint64_t digest) {
  return std::max(static_cast<std::uint32_t>(digest >> 32U), 1U);
}

double ln_seconds(Millis time) {
  return std::log(static_cast<double>(std::max<std::int64_t>(time.count(), 1)) / 1'000.0);
}

const Pace::Samples* find(const std::vector<Pace::Samples>& samples, std::uint32_t kind) {
  const auto found = std::find_if(samples.begin(), samples.end(),
                                  [&](const auto& item) { return item.kind == kind; });
  return found == samples.end() ? nullptr : &*found;
}

}  // namespace

std::uint32_t Pace::kind_of_phase(std::string_view phase) noexcept {
  return short_digest(combined(1, digest_of(phase)));
}

std::uint32_t Pace::kind_of_tool(std::string_view tool) noexcept {
  return short_digest(combined(2, digest_of(tool)));
}

void Pace::add(std::uint32_t kind, Millis interval) {
  const auto* known = find(samples, kind);
  if (known == nullptr && samples.size() >= kinds_max) {
    kind = everything_else;
    known = find(samples, kind);
  }
  if (known == nullptr) {
    if (samples.size() == kinds_max) samples.reserve(kinds_max + 1);
    samples.push_back({.kind = kind});
    known = &samples.back();
  }
  Samples& own = samples[static_cast<std::size_t>(known - samples.data())];
  if (own.count >= window) {
    own.deviations *= (window - 1) / own.count;
    own.count = window - 1;
  }
  const auto sample = static_cast<float>(ln_seconds(interval));
  own.count += 1;
  const float before = sample - own.mean;
  own.mean += before / own.count;
  own.deviations += before * (sample - own.mean);
}

Pace::Expectation Pace::expected(std::uint32_t kind, const Policy& policy) const noexcept {
  const auto* own = find(samples, kind);
  if (own == nullptr && samples.size() >= kinds_max) own = find(samples, everything_else);
  const double usual = ln_seconds(policy.usual_interval);
  const double count = own != nullptr ? own->count : 0;
  const double mean = own != nullptr ? own->mean : usual;
  const double deviations = own != nullptr ? own->deviations : 0;
  // Samples and pseudo-samples pooled.
  const double all = count + prior_weight;
  const double apart = count * prior_weight / all * (mean - usual) * (mean - usual);
  const double variance = (deviations + prior_weight * prior_spread * prior_spread + apart) / all;
  return {.centre = (count * mean + prior_weight * usual) / all,
          .spread = std::max(spread_min, std::sqrt(variance)),
          .usual = usual,
          .quicker = mean <= usual};
}

PaceBounds Pace::bounds(std::uint32_t kind, const Policy& policy) const noexcept {
  const auto pace = expected(kind, policy);
  const auto at = [&](double deviation, Millis min) {
    constexpr double longest = std::numbers::ln10 * 9;  // of seconds, 30 years: beyond any run
    double ln = pace.centre + deviation * pace.spread;
    // Samples far below the prior make the spread large, but a quicker session must not be
    // suspected later than an unknown one.
    if (pace.quicker) ln = std::min(ln, pace.usual + deviation * prior_spread);
    return std::max(min, Millis{std::llround(1'000.0 * std::exp(std::min(ln, longest)))});
  };
  PaceBounds bounds{.usual = at(0, Millis{0}),
                    .slow = at(policy.slow_deviations, policy.slow_min),
                    .suspect = at(policy.suspect_deviations, policy.suspect_min)};
  const auto* own = find(samples, kind);
  if (own != nullptr && own->count >= pace_history_min)
    bounds.own = Millis{std::llround(1'000.0 * std::exp(static_cast<double>(own->mean)))};
  return bounds;
}

double Pace::phi(std::uint32_t kind, Millis elapsed, const Policy& policy) const noexcept {
  const auto [centre, spread, usual, quicker] = expected(kind, policy);
  const double ln = ln_seconds(elapsed);
  double deviation = (ln - centre) / spread;
  if (quicker) deviation = std::max(deviation, (ln - usual) / prior_spread);
  const double longer = std::erfc(deviation / std::numbers::sqrt2) / 2;
  const double phi = -std::log10(longer);  // infinite where nothing is left of `longer`
  return phi > 0 ? std::min(phi, phi_max) : 0;
}

}  // namespace watchdog
