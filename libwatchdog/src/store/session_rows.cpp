// Sessions as lists show them; `sessions` goes on below the last key. One list of columns serves
// all queries of sessions, and `session_from` reads them by number. The final words of an ended
// session are in its snapshot, and SQLite extracts them from its JSON. A filter appends a condition
// and its text together, because texts are bound in the order of the question marks.
#include <limits>
#include <utility>

#include "codec/fields.h"
#include "codec/json.h"
#include "store/reader_state.h"
#include "store/store_reader.h"

namespace watchdog {
namespace {

/// How the final words of a session get out of its snapshot.
enum class WordsFrom : std::uint8_t {
  extracted,  ///< by the engine; a server then refuses the question if one text is not JSON
  whole,      ///< the snapshot itself is read
  none
};

/// Of a file. A text that is no JSON comes as it is.
constexpr std::string_view words_of_file =
    "SELECT CASE WHEN json_valid(text) THEN json_extract(text, '$.history.wasted_calls', "
    "'$.history.prompt', '$.history.answer', '$.history.outcome.error', "
    "'$.history.outcome.subject') ELSE text END FROM snapshots WHERE session = s.id";
/// On a server, whose functions of JSON do not take U+0000. Programs of today do not store it.
constexpr std::string_view words_on_server =
    "SELECT json_build_array(j #> '{history,wasted_calls}', j #> '{history,prompt}', j #> "
    "'{history,answer}', j #> '{history,outcome,error}', j #> '{history,outcome,subject}')::text "
    "FROM (SELECT replace(text, '\\u0000', '\\ufffd')::json AS j FROM snapshots WHERE session = "
    "s.id) AS snapshot";
constexpr std::string_view text_condition_of_file =
    "(s.name || ' ' || coalesce(s.agent, '') || ' ' || coalesce(CASE WHEN json_valid(s.spec) THEN "
    "json_extract(s.spec, '$.task', '$.title', '$.labels') ELSE s.spec END, '') || ' ' || "
    "coalesce((SELECT CASE WHEN json_valid(text) THEN json_extract(text, '$.history.prompt') END "
    "FROM snapshots WHERE session = s.id), '')) LIKE ? ESCAPE '\\'";
/// With the collation "C" case is that of A-Z only, as it is in a file.
constexpr std::string_view text_condition_on_server =
    "(s.name || ' ' || coalesce(s.agent, '') || ' ' || (SELECT concat_ws(',', j #> '{task}', j #> "
    "'{title}', j #> '{labels}') FROM (SELECT replace(s.spec, '\\u0000', '\\ufffd')::json AS j) AS "
    "spec) || ' ' || coalesce((SELECT (replace(text, '\\u0000', '\\ufffd')::json #> "
    "'{history,prompt}')::text FROM snapshots WHERE session = s.id), '')) COLLATE \"C\" ILIKE ? "
    "ESCAPE "
    "'\\'";
/// Finds more: also in names of members.
constexpr std::string_view whole_text_condition =
    "(s.name || ' ' || coalesce(s.agent, '') || ' ' || s.spec) COLLATE \"C\" ILIKE ? ESCAPE '\\'";

std::string session_columns(const Database& database, WordsFrom words = WordsFrom::extracted) {
  const bool on_server = database.server() != nullptr;
  const auto last = words == WordsFrom::none    ? "NULL"
                    : words == WordsFrom::whole ? "SELECT text FROM snapshots WHERE session = s.id"
                    : on_server                 ? words_on_server
                                                : words_of_file;
  return "s.id, s.name, s.spec, s.created_ms, s.attempt, s.lifecycle, s.health, coalesce((SELECT "
         "seq FROM heads WHERE session = s.id), 0), s.updated_ms, s.outcome_reason, CASE WHEN "
         "s.ended_ms IS NULL THEN NULL ELSE (" +
         std::string(last) + ") END, (SELECT acknowledged FROM alert_states WHERE session = s.id)";
}

/// Asks a server again, more slowly, if it refused a text of some row. Such a row costs only its
/// own words.
template <class State, class Ask>
auto readable_rows(State& state, const Ask& ask) -> decltype(ask(WordsFrom::extracted)) {
  if (state.database->server() == nullptr) return ask(WordsFrom::extracted);
  try {
    return ask(WordsFrom::extracted);
  } catch (const SqlFailure& failure) {
    if (failure.is_passing) throw;
    for (auto& [sql, statement] : state.statements) statement.reset();
  }
  return ask(WordsFrom::whole);
}

/// Of the column that session_columns makes of a snapshot.
void read_last_facts(const std::string& text, SessionRow& session) {
  const auto parsed = parse_json(text);
  if (!parsed) {
    session.error = "the stored summary of this session cannot be read; its events can";
    return;
  }
  auto facts = *parsed;
  if (facts.is_object()) {
    const auto& history = facts["history"];
    const auto part = [](const nlohmann::json& of, const char* name) {
      return of.is_object() && of.contains(name) ? of[name] : nlohmann::json();
    };
    const auto outcome = part(history, "outcome");
    facts = nlohmann::json::array({part(history, "wasted_calls"), part(history, "prompt"),
                                   part(history, "answer"), part(outcome, "error"),
                                   part(outcome, "subject")});
  }
  if (!facts.is_array() || facts.size() != 5) return;
  const auto words = [&](std::size_t at) {
    return facts[at].is_string() ? facts[at].get<std::string>() : std::string();
  };
  if (facts[0].is_number_integer()) session.wasted_calls = facts[0].get<std::int32_t>();
  session.words = {.prompt = words(1), .answer = words(2)};
  session.error = words(3);
  session.subject = words(4);
}

SessionRow session_from(const Statement& row) {
  SessionRow session{.key = row.integer(0), .id = row.text(1)};
  std::string unused;
  auto spec = session_spec_from_json(row.text(2), unused);
  if (spec) session.spec = std::move(*spec);
  session.created = WallTime{Millis{row.integer(3)}};
  session.attempt = static_cast<std::int32_t>(row.integer(4));
  session.lifecycle = named<Lifecycle>(row.text(5)).value_or(Lifecycle::running);
  session.health = named<HealthKind>(row.text(6)).value_or(HealthKind::unknown);
  session.head = row.integer(7);
  session.updated = WallTime{Millis{row.integer(8)}};
  session.outcome_reason = row.text(9);
  if (!row.is_null(10)) read_last_facts(row.text(10), session);
  // It costs this row, and not the list.
  if (!spec) session.error = "its stored properties cannot be read: " + spec.error().message;
  session.acknowledged = row.integer(11) == 1;
  return session;
}

/// All rows that are left.
std::vector<SessionRow> sessions_from(Statement& query) {
  std::vector<SessionRow> rows;
  while (query.step()) rows.push_back(session_from(query));
  return rows;
}

/// `%` and `_` stand for themselves.
std::string like_pattern(const std::string& text) {
  std::string pattern = "%";
  for (const char c : text) {
    if (c == '%' || c == '_' || c == '\\') pattern += '\\';
    pattern += c;
  }
  return pattern + "%";
}

/// Takes an ancestor. The level ends the search where sessions are parents of each other.
std::string below_ancestor() {
  return "s.name IN (WITH RECURSIVE below (name, level) AS (SELECT name, 1 FROM sessions WHERE "
         "parent = ? UNION SELECT c.name, b.level + 1 FROM below b JOIN sessions c ON c.parent = "
         "b.name WHERE b.level < " +
         std::to_string(ancestor_levels_max) + ") SELECT name FROM below)";
}

/// From the listed health, as an expression of SQL.
std::string severity_sql() {
  std::string sql = "CASE s.health";
  for (const auto name : Names<HealthKind>::all) {
    sql.append(" WHEN '").append(name).append("' THEN ");
    sql.append(std::to_string(severity(*named<HealthKind>(name))));
  }
  return sql + " ELSE 0 END";
}

}  // namespace

Result<SessionRow> StoreReader::session(std::string_view id) {
  return state_->guarded<SessionRow>([&]() -> Result<SessionRow> {
    return readable_rows(*state_, [&](WordsFrom words) -> Result<SessionRow> {
      auto& query = state_->prepared("SELECT " + session_columns(*state_->database, words) +
                                     " FROM sessions s WHERE s.name = ?");
      const ResetLater later(query);
      query.bind(1, id);
      if (query.step()) return session_from(query);
      return Error{ErrorCode::not_found, "unknown session " + std::string(id), "sessionId"};
    });
  });
}

Result<SessionRow> StoreReader::session(SessionKey key) {
  return state_->guarded<SessionRow>([&]() -> Result<SessionRow> {
    return readable_rows(*state_, [&](WordsFrom words) -> Result<SessionRow> {
      auto& query = state_->prepared("SELECT " + session_columns(*state_->database, words) +
                                     " FROM sessions s WHERE s.id = ?");
      const ResetLater later(query);
      query.bind(1, key);
      if (query.step()) return session_from(query);
      return Error{ErrorCode::not_found, "unknown session key " + std::to_string(key)};
    });
  });
}

Result<std::vector<SessionRow>> StoreReader::State::rows_of(std::span<const SessionKey> keys) {
  // For the judge, which reads the snapshots by itself.
  auto& query = prepared("SELECT " + session_columns(*database, WordsFrom::none) +
                         " FROM sessions s WHERE s.id = ANY(?)");
  const ResetLater later(query);
  query.bind_numbers(1, keys);
  return sessions_from(query);
}

Result<std::vector<SessionRow>> StoreReader::sessions(const SessionFilter& filter) {
  return state_->guarded<std::vector<SessionRow>>([&]() -> Result<std::vector<SessionRow>> {
    return readable_rows(*state_, [&](WordsFrom words) {
      std::string sql =
          "SELECT " + session_columns(*state_->database, words) + " FROM sessions s WHERE s.id < ?";
      std::vector<std::string> texts;
      const auto require = [&](std::string_view condition, std::string text) {
        sql.append(" AND ").append(condition);
        texts.push_back(std::move(text));
      };
      if (!filter.healths.empty()) {
        std::string any = "s.health IN (?";
        for (std::size_t at = 1; at < filter.healths.size(); ++at) any += ", ?";
        sql += " AND " + any + ")";
        for (const auto health : filter.healths) texts.emplace_back(name_of(health));
      }
      if (filter.lifecycle) require("s.lifecycle = ?", std::string(name_of(*filter.lifecycle)));
      if (!filter.agent.empty()) require("s.agent = ?", filter.agent);
      if (!filter.parent.empty()) require("s.parent = ?", filter.parent);
      if (!filter.ancestor.empty()) require(below_ancestor(), filter.ancestor);
      if (!filter.label_key.empty()) {
        sql += " AND s.id IN (SELECT session FROM labels WHERE key = ? AND value = ?)";
        texts.insert(texts.end(), {filter.label_key, filter.label_value});
      }
      if (!filter.text.empty()) {
        require(words == WordsFrom::whole               ? whole_text_condition
                : state_->database->server() != nullptr ? text_condition_on_server
                                                        : text_condition_of_file,
                like_pattern(filter.text));
      }
      sql += " ORDER BY s.id DESC LIMIT ?";
      auto& query = state_->prepared(sql);
      const ResetLater later(query);
      int at = 0;
      query.bind(++at, filter.after > 0 ? filter.after : std::numeric_limits<std::int64_t>::max());
      for (const auto& text : texts) query.bind(++at, text);
      query.bind(++at, filter.limit);
      return sessions_from(query);
    });
  });
}

Result<StoreReader::Ends> StoreReader::ends(WallTime fresh_after) {
  return state_->guarded<Ends>([&]() -> Result<Ends> {
    Ends ends;
    auto& query = state_->prepared(
        "SELECT lifecycle, count(*) FROM sessions WHERE lifecycle IN ('completed', 'failed', "
        "'incomplete', 'cancelled') GROUP BY lifecycle");
    const ResetLater later(query);
    while (query.step()) {
      const auto end = named<Lifecycle>(query.text(0)).value_or(Lifecycle::completed);
      (end == Lifecycle::failed       ? ends.failed
       : end == Lifecycle::incomplete ? ends.incomplete
       : end == Lifecycle::cancelled  ? ends.cancelled
                                      : ends.completed) = query.integer(1);
    }
    auto& fresh = state_->prepared(
        "SELECT count(*) FROM sessions s WHERE s.ended_ms > ? AND s.lifecycle IN ('failed', "
        "'incomplete') AND coalesce((SELECT acknowledged FROM alert_states WHERE session = s.id), "
        "0) = 0");
    const ResetLater fresh_later(fresh);
    fresh.bind(1, fresh_after.time_since_epoch().count());
    if (fresh.step()) ends.fresh = fresh.integer(0);
    return ends;
  });
}

Result<std::vector<SessionRow>> StoreReader::running_children(std::string_view id, int count_max) {
  return state_->guarded<std::vector<SessionRow>>([&]() -> Result<std::vector<SessionRow>> {
    const std::string sql =
        "SELECT " + session_columns(*state_->database, WordsFrom::none) +
        " FROM sessions s WHERE s.id IN (SELECT id FROM sessions WHERE parent = ? ORDER BY id DESC "
        "LIMIT 1000) AND s.ended_ms IS NULL ORDER BY " +
        severity_sql() + " DESC, s.id DESC LIMIT ?";
    auto& query = state_->prepared(sql);
    const ResetLater later(query);
    query.bind(1, id).bind(2, count_max);
    return sessions_from(query);
  });
}

Result<std::vector<SessionRow>> StoreReader::sessions_with_turns(SessionKey below, int count_max) {
  return state_->guarded<std::vector<SessionRow>>([&]() -> Result<std::vector<SessionRow>> {
    const std::string sql = "SELECT " + session_columns(*state_->database, WordsFrom::none) +
                            " FROM sessions s WHERE s.turns = 1 AND s.ended_ms IS NULL AND "
                            "s.id < ? ORDER BY s.id DESC LIMIT ?";
    auto& query = state_->prepared(sql);
    const ResetLater later(query);
    query.bind(1, below).bind(2, count_max);
    return sessions_from(query);
  });
}

}  // namespace watchdog
