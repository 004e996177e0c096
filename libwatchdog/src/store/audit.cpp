// The audit log.
#include "store/audit.h"

#include "privacy/redaction.h"
#include "store/store_state.h"

namespace watchdog {
namespace {

/// Kept however old they are.
constexpr std::int64_t entries_kept = 1'000;

}  // namespace

Result<void> Store::keep(const AuditEntry& entry) {
  const auto target = redact_identifier(entry.target);  // a client wrote it
  auto done = state_->in_turn<bool>([&]() -> Result<bool> {
    auto& insert = state_->sql(
        "INSERT INTO audit (at_ms, actor, peer, action, target, outcome) VALUES (?, ?, ?, ?, ?, "
        "?)");
    insert.bind(1, entry.at.time_since_epoch().count()).bind(2, std::string_view(entry.actor));
    insert.bind(3, std::string_view(entry.peer)).bind(4, name_of(entry.action));
    insert.bind(5, std::string_view(target)).bind(6, std::string_view(entry.outcome));
    insert.run();
    return true;
  });
  return done ? Result<void>{} : done.error();
}

void Store::State::Retainer::drop_audit(const Retention& retention) {
  if (!may_age()) return;
  auto& drop =
      log_.sql("DELETE FROM audit WHERE id <= (SELECT max(id) FROM audit) - ? AND at_ms < ?");
  drop.bind(1, entries_kept).bind(2, (log_.wall - retention.ended_for).time_since_epoch().count());
  drop.run();
}

Result<std::vector<AuditEntry>> StoreReader::audit(std::int64_t after, int count_max) {
  return state_->guarded<std::vector<AuditEntry>>([&]() -> Result<std::vector<AuditEntry>> {
    auto& query = state_->prepared(
        "SELECT id, at_ms, actor, peer, action, target, outcome FROM audit WHERE id > ? ORDER BY "
        "id "
        "LIMIT ?");
    const ResetLater later(query);
    query.bind(1, after).bind(2, count_max);
    std::vector<AuditEntry> entries;
    while (query.step()) {
      const auto action = named<AuditAction>(query.text(4));
      if (!action) continue;  // of a newer program
      entries.push_back({.id = query.integer(0),
                         .at = WallTime{Millis{query.integer(1)}},
                         .actor = query.text(2),
                         .peer = query.text(3),
                         .action = *action,
                         .target = query.text(5),
                         .outcome = query.text(6)});
    }
    return entries;
  });
}

}  // namespace watchdog
