/// \file
/// What servers are like and what happens to them, at random: slowness of nine kinds, faults of
/// seven; and what is concluded from looks meanwhile.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "server/server_sampler.h"
#include "support/simulated_server.h"

namespace watchdog::test {

inline constexpr Millis hour{3'600'000};
inline constexpr Millis day = 24 * hour;

/// One random case: the server, the request that is watched, and what else goes on.
struct Variant {
  unsigned seed = 0;
  std::mt19937_64 random{seed};
  double wait_days = 1;  ///< Of who waits for an answer, in working days.
  SimulatedModel model;
  SimulatedRequest request;
  Standpoint from;
  int others = 0;                ///< Requests of other people, before and while ours is open,
  bool others_are_ours = false;  ///< seen as ours is.
  std::optional<SimulatedFault> fault;
  bool looks_late = true;            ///< One look in 500 is late by minutes.
  Millis ends_after = day;           ///< Virtual time that is watched at most,
  Millis given_up_after = 6 * hour;  ///< and that since the fault.

  explicit Variant(unsigned chosen) : seed(chosen) {}

  double between(double low, double high);
  std::int64_t whole(double low, double high) {
    return static_cast<std::int64_t>(between(low, high));
  }
  bool maybe(double share) { return std::bernoulli_distribution(share)(random); }
};
[[nodiscard]] Variant variant(unsigned seed, double wait_days = 1);
[[nodiscard]] std::string text_of(const Variant& variant);

/// The longest that it may take to find a hang: some looks, and time for what may have been a
/// batch before.
[[nodiscard]] Millis bound_of(const Variant& variant);

// Functions that make a variant one of their kind. Slow:
void long_prompt(Variant& v);
void slow_answer(Variant& v);
void slow_batches(Variant& v);
void hour_long_batches(Variant& v);
void queue(Variant& v);
void loading(Variant& v);
void old_build(Variant& v);
void anything(Variant& v);
void machine_paused(Variant& v);
// Faulty:
void hang_while_writing(Variant& v);
void hang_while_reading(Variant& v);
void swallowed(Variant& v);
void stopped(Variant& v);
void livelock(Variant& v);
void stalled_slot(Variant& v);
void restart(Variant& v);
void gone(Variant& v);

/// The result of one variant.
struct Seen {
  int looks = 0;
  int busy = 0, quiet = 0, hung = 0;  ///< Looks that said so of ours; the last: of anybody's.
  std::string first_hung;
  std::vector<std::string> path;  ///< States of ours, as they changed.
  ServerFinding last;
  std::optional<Millis> hung_after;  ///< Since the fault, ours.
  int hung_looks = 0;                ///< Likewise, in looks.
  Millis busy_until{};               ///< Likewise: ours was last said to be busy.
  bool was_hung_before = false;      ///< Before anything was wrong.
  int looks_before = 0;              ///< Likewise.
  bool is_done = false;
};
[[nodiscard]] std::string path_of(const Seen& seen);

/// Gets what a proxy on the way gets, in its order. Use from one thread at a time.
class Watcher {
 public:
  virtual ~Watcher() = default;
  virtual void opened(std::uint64_t request, const SimulatedRequest& wanted, bool is_ours) = 0;
  virtual void got(std::uint64_t request, const Piece& piece) = 0;
  virtual void found(const ServerFinding& finding) = 0;
  /// It is `now`: at most `step` after the call before, unless the machine stood still.
  virtual void passed(Instant now) = 0;
  static constexpr Millis step{5'000};
};

/// Lets the variant happen and looks at it every 2 … 15 s, rarer while nothing changes. `watcher`
/// may be null.
[[nodiscard]] Seen watch(Variant& v, Watcher* watcher = nullptr);

}  // namespace watchdog::test
