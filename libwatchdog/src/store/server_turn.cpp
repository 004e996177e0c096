// The writer on a server, where each question is a round trip. One question finds all sessions and
// event ids of a turn before its batches are appended.
#include <algorithm>
#include <vector>

#include "codec/fields.h"
#include "codec/json.h"
#include "facts/ids.h"
#include "store/store_state.h"

namespace watchdog {

void Store::State::Appender::fetch_heads(const std::vector<std::string_view>& names) {
  if (names.empty()) return;
  for (const auto name : names) absent.emplace(name);
  auto& query = log_.sql(
      "SELECT s.id, s.spec, s.attempt, s.ended_ms, s.cancel, h.seq, h.events, s.aborts, s.turns, "
      "s.name FROM sessions s LEFT JOIN heads h ON h.session = s.id WHERE s.name = ANY(?)");
  const ResetLater later(query);
  query.bind_texts(1, names);
  while (query.step()) {
    auto name = query.text(9);
    absent.erase(name);
    heads.emplace(std::move(name), head_from(query));
  }
}

void Store::State::Appender::fetch_ahead(std::span<const PreparedBatch> batches) {
  std::vector<std::string_view> names;
  std::vector<std::string_view> ids;
  log_.durable = false;
  for (const auto& batch : batches) {
    const auto& session = batch.batch->session;
    if (!heads.contains(session) && is_session_id(session)) names.emplace_back(session);
    for (const auto& report : batch.reports) {
      if (!report.event_id.empty()) ids.emplace_back(report.event_id);
      if (report.kind != ReportKind::heartbeat) log_.durable = true;
    }
  }
  fetch_heads(names);
  // A new session is not to be lost when its first heartbeat is.
  log_.durable = log_.durable || !absent.empty();
  if (ids.empty()) return;
  auto& query = log_.sql("SELECT event_id, session FROM events WHERE event_id = ANY(?)");
  const ResetLater later(query);
  query.bind_texts(1, ids);
  while (query.step()) known_ids.insert(key_of_id(query.bytes(0), query.integer(1)));
}

void Store::State::Appender::put_also_on_server(const Head& head, const Report& report) {
  auto& query = log_.sql(
      "SELECT seq, facts FROM events WHERE event_id = ? AND session = ? AND kind = ? AND name <> ? "
      "ORDER BY seq LIMIT 1");
  query.bind(1, report.event_id).bind(2, head.key);
  query.bind(3, static_cast<std::int64_t>(report.kind)).bind(4, report.name);
  const bool found = query.step();
  const Seq seq = found ? query.integer(0) : 0;
  const auto facts = found ? query.text(1) : std::string();
  query.reset();
  if (!found) return;
  auto object =
      facts.empty() ? nlohmann::json::object() : nlohmann::json::parse(facts, nullptr, false);
  if (!object.is_object()) return;
  object["also"] = report.name;
  const auto text = object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  auto& update = log_.sql("UPDATE events SET facts = ? WHERE seq = ?");
  update.bind(1, text).bind(2, seq);
  update.run();
}

}  // namespace watchdog
