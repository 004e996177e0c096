#include "core/retention_rounds.h"

#include <algorithm>
#include <utility>

#include "core/spare_memory.h"
#include "store/retention.h"
#include "store/sharing.h"

namespace watchdog::monitor {
namespace {

/// Interval of retention; a round then works in pieces until nothing is left.
constexpr Millis round_every{600'000};
constexpr Millis piece_every{20};
/// Interval of retention while the file is too large.
constexpr Millis room_every{1'000};
/// While room is needed, a session that reported within this time is not abandoned.
constexpr Millis attended_for{600'000};
/// Sessions abandoned at once: some milliseconds.
constexpr std::size_t abandoned_at_once = 200;
/// Above the limit of size and a quarter of it, reports are refused. Small limits get some pages.
constexpr std::int64_t room_min = 1'000'000;

}  // namespace

Result<void> RetentionRounds::step(Store& store, Observer& observer) {
  // The disk of a server is its operator's.
  const auto bytes = store.is_on_server() ? 0 : store.bytes();
  const bool too_large = bytes > limits_.bytes_max;
  learn_size(bytes);
  const auto now = std::chrono::steady_clock::now();
  if (too_large) next_ = std::min(next_, now + room_every);
  if (now < next_) return {};
  if (!under_way_) {
    // Dropped events of running sessions must be in their snapshots.
    if (auto kept = observer.checkpoint(); !kept) return kept;
    if (!Sharing(store).does_upkeep()) {
      next_ = now + round_every;
      return {};
    }
    through_ = observer.folded();
    under_way_ = abandoning_ = true;
  }
  const auto clocks_differ = RetentionActs(store).retention_waits();
  learn_wait(clocks_differ);
  if (auto done = abandon(store, observer, clocks_differ.has_value()); !done) return done;
  auto retention = limits_;
  retention.folded_through = through_;
  retention.more_end = abandoning_;
  const auto more = RetentionActs(store).trim(retention);
  if (!more) return more.error();
  observer.forget(RetentionActs(store).drain_dropped());
  under_way_ = *more || abandoning_;
  if (!under_way_ && !too_large) {
    RetentionActs(store).shed_memory();
    return_spare_memory();
  }
  // Between two pieces others get their turn.
  const auto pause = too_large ? Millis{0} : piece_every;
  next_ = now + (under_way_ ? pause : too_large ? room_every : round_every);
  return {};
}

/// Ends sessions that nobody attends to any more.
Result<void> RetentionRounds::abandon(Store& store, Observer& observer, bool clocks_differ) {
  if (!abandoning_ && !RetentionActs(store).wants_room()) return {};
  auto quiet_since = clocks_differ ? Instant{} : store.now() - limits_.ended_for;
  if (RetentionActs(store).wants_room()) quiet_since = store.now() - attended_for;
  const auto abandoned = observer.abandon(quiet_since, abandoned_at_once);
  if (!abandoned) return abandoned.error();
  abandoning_ = *abandoned > 0;
  return {};
}

std::optional<Millis> RetentionRounds::until_next() const {
  if (!under_way_) return std::nullopt;
  return std::chrono::duration_cast<Millis>(next_ - std::chrono::steady_clock::now());
}

void RetentionRounds::learn_wait(const std::optional<std::string>& why) {
  const bool before = waits_.exchange(why.has_value());
  if (why && !before) log_(*why);
  if (!why && before) log_("retention by age continues: the clocks agree");
}

void RetentionRounds::learn_size(std::int64_t bytes) {
  const auto limit = limits_.bytes_max;
  const bool too_much = bytes > limit + limit / 4 + room_min;
  const bool before = !has_room_.exchange(!too_much);
  if (too_much && !before) {
    log_("the database is far above its limit of " + std::to_string(limit) +
         " bytes: reports are refused (507) until retention has made room");
  }
  if (!too_much && before) log_("the database has room again");
}

}  // namespace watchdog::monitor
