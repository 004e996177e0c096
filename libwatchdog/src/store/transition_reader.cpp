// Lists use keyset paging. Rows that cannot be decoded are shown as far as possible.
#include "store/transition_reader.h"

#include <algorithm>
#include <utility>

#include "codec/fields.h"
#include "codec/json.h"
#include "store/reader_state.h"

namespace watchdog {
namespace {

constexpr std::string_view transition_columns =
    "SELECT t.id, t.session, t.seq, t.tick_ms, t.at_ms, t.from_health, t.health, t.pattern, "
    "t.reason, t.evidence, t.detector, t.policy_digest, t.tick_ms - e.tick_ms, t.situation "
    "FROM transitions t LEFT JOIN events e ON e.seq = t.seq ";

/// Of the column transitions.evidence.
void read_evidence(const std::string& text, Health& health) {
  const auto parsed = parse_json(text);
  if (!parsed || !parsed->is_array()) return;
  auto into = health.evidence.begin();
  for (const auto& seq : *parsed) {
    if (into == health.evidence.end() || !seq.is_number_integer()) return;
    *into++ = seq.get<Seq>();
  }
}

TransitionRow transition_from(const Statement& query) {
  TransitionRow row{.id = query.integer(0), .detector = query.text(10)};
  auto& transition = row.transition;
  transition.session = query.integer(1);
  transition.seq = query.integer(2);
  transition.tick = Instant{Millis{query.integer(3)}};
  transition.at = WallTime{Millis{query.integer(4)}};
  transition.from = named<HealthKind>(query.text(5)).value_or(HealthKind::unknown);
  transition.health.kind = named<HealthKind>(query.text(6)).value_or(HealthKind::unknown);
  transition.health.pattern = named<Pattern>(query.text(7)).value_or(Pattern::none);
  transition.reason = query.text(8);
  read_evidence(query.text(9), transition.health);
  transition.policy_digest = static_cast<std::uint64_t>(query.integer(11));
  transition.situation = query.text(13);
  if (!query.is_null(12)) row.quiet = Millis{query.integer(12)};
  return row;
}

}  // namespace

Result<std::vector<TransitionRow>> TransitionReader::of(SessionKey session, std::int64_t after,
                                                        int count_max) {
  return state_.guarded<std::vector<TransitionRow>>([&]() -> Result<std::vector<TransitionRow>> {
    auto& query = state_.prepared(std::string(transition_columns) +
                                  "WHERE t.session = ? AND t.id > ? ORDER BY t.id LIMIT ?");
    const ResetLater later(query);
    query.bind(1, session).bind(2, after).bind(3, count_max);
    std::vector<TransitionRow> rows;
    while (query.step()) rows.push_back(transition_from(query));
    return rows;
  });
}

Result<std::vector<TransitionRow>> TransitionReader::latest(SessionKey session, int count_max) {
  return state_.guarded<std::vector<TransitionRow>>([&]() -> Result<std::vector<TransitionRow>> {
    auto& query = state_.prepared(std::string(transition_columns) +
                                  "WHERE t.session = ? ORDER BY t.id DESC LIMIT ?");
    const ResetLater later(query);
    query.bind(1, session).bind(2, count_max);
    std::vector<TransitionRow> rows;
    while (query.step()) rows.push_back(transition_from(query));
    std::ranges::reverse(rows);
    return rows;
  });
}

Result<std::vector<TransitionRow>> TransitionReader::after(std::int64_t id, Seq through,
                                                           int count_max) {
  return state_.guarded<std::vector<TransitionRow>>([&]() -> Result<std::vector<TransitionRow>> {
    auto& query =
        state_.prepared(std::string(transition_columns) + "WHERE t.id > ? ORDER BY t.id LIMIT ?");
    const ResetLater later(query);
    query.bind(1, id).bind(2, count_max);
    std::vector<TransitionRow> rows;
    while (query.step() && query.integer(2) <= through) rows.push_back(transition_from(query));
    return rows;
  });
}

Result<std::vector<HealthChange>> TransitionReader::changes_since(WallTime since, int count_max) {
  return state_.guarded<std::vector<HealthChange>>([&]() -> Result<std::vector<HealthChange>> {
    auto& query = state_.prepared(
        "SELECT s.name, t.at_ms, t.from_health, t.health, t.pattern FROM transitions t "
        "JOIN sessions s ON s.id = t.session ORDER BY t.id DESC LIMIT ?");
    const ResetLater later(query);
    query.bind(1, count_max);
    std::vector<HealthChange> changes;
    while (query.step() && query.integer(1) >= since.time_since_epoch().count()) {
      changes.push_back({.session = query.text(0),
                         .at = WallTime{Millis{query.integer(1)}},
                         .from = named<HealthKind>(query.text(2)).value_or(HealthKind::unknown),
                         .health = named<HealthKind>(query.text(3)).value_or(HealthKind::unknown),
                         .pattern = named<Pattern>(query.text(4)).value_or(Pattern::none)});
    }
    return changes;
  });
}

Result<std::int64_t> TransitionReader::newest_id() {
  return state_.guarded<std::int64_t>([&]() -> Result<std::int64_t> {
    auto& query = state_.prepared(newest_transition_sql);
    const ResetLater later(query);
    return query.step() ? query.integer(0) : 0;
  });
}

}  // namespace watchdog
