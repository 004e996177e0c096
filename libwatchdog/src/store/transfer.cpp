// Copies a store into an empty one, table by table and in pages by their keys. The digest is the
// sum of the digests of all rows, because engines order texts differently. A text with bytes that a
// server cannot hold counts as the text that the server holds instead.
#include <string>
#include <vector>

#include "facts/digest.h"
#include "store/event_row.h"
#include "store/store_state.h"

namespace watchdog {
namespace {

/// Rows that are in memory at once. A row of the wide tables may have a megabyte.
constexpr int rows_of_a_page = 1'000;
constexpr int wide_rows_of_a_page = 100;
/// Their keys are never given twice, not even the key of a row that was erased.
constexpr std::string_view keyed_tables[] = {"sessions", "alerts", "audit"};

/// The types of columns: n: number, t: text, y: bytes. The keys come first.
struct CopiedTable {
  std::string_view name;
  std::string_view columns;
  std::string_view types;
  int keys;
};
constexpr CopiedTable copied_tables[] = {
    {"sessions",
     "id, name, parent, agent, spec, created_ms, attempt, lifecycle, outcome_reason, ended_ms, "
     "cancel, health, updated_ms, turns, aborts",
     "nttttnnttnttnnt", 1},
    {"labels", "key, value, session", "ttn", 3},
    {"heads", "session, seq, events", "nnn", 1},
    {"events", event_columns, "nnnnnnnttnnttyn", 1},
    {"blocks", "session, seq", "nn", 2},
    {"transitions",
     "id, session, seq, tick_ms, at_ms, from_health, health, pattern, reason, evidence, detector, "
     "policy_digest, situation",
     "nnnnnttttttnt", 1},
    {"snapshots", "session, seq, format, text", "nnnt", 1},
    {"alert_states",
     "session, due_tick, trouble, word, reason, since_tick, at_ms, blocked_tick, episode_tick, "
     "told, acknowledged, snoozed_tick, changes, flapping",
     "nntttnnnntnntn", 1},
    {"alerts",
     "id, session, kind, word, reason, detail, at_ms, episode_tick, message, told_tick, parent, "
     "acknowledged_by, acknowledged_ms, snoozed_until_ms",
     "nnttttnntnttnn", 1},
    {"deliveries", "channel, alert, state, attempts, error, sent_ms", "tntntn", 2},
    {"audit", "id, at_ms, actor, peer, action, target, outcome", "nnttttt", 1},
};
constexpr std::string_view copied_meta[] = {"first_seq", "last_transition"};

std::string question_marks(std::size_t count) {
  std::string marks = "?";
  for (std::size_t at = 1; at < count; ++at) marks += ", ?";
  return marks;
}

std::string keys_of(const CopiedTable& table) {
  std::size_t end = 0;
  for (int key = 0; key < table.keys; ++key) end = table.columns.find(',', end + 1);
  return std::string(table.columns.substr(0, end));
}

/// A value of a row.
struct CopiedCell {
  bool is_null = true;
  std::int64_t number = 0;
  std::string text{};
};
using CopiedRow = std::vector<CopiedCell>;

/// Sums rows up.
class StoreSum {
 public:
  std::int64_t sessions = 0;
  std::int64_t events = 0;
  std::int64_t changed_texts = 0;
  std::uint64_t digest = 0;

  void add(const CopiedTable& table, const CopiedRow& row) {
    std::string bytes(table.name);
    std::string own;
    for (std::size_t at = 0; at < row.size(); ++at) {
      const auto& cell = row[at];
      std::string_view text = cell.text;
      std::string number;
      if (table.types[at] == 'n') {
        number = std::to_string(cell.number);
        text = number;
      } else if (table.types[at] == 't') {
        text = storable(cell.text, own);
        if (text.data() != cell.text.data()) ++changed_texts;
      }
      bytes += cell.is_null ? "-" : "+" + std::to_string(text.size()) + ":";
      if (!cell.is_null) bytes += text;
    }
    digest += digest_of(bytes);
    if (table.name == "sessions") ++sessions;
    if (table.name == "events") ++events;
  }
};

CopiedRow row_of(const Statement& query, std::string_view types) {
  CopiedRow row(types.size());
  for (std::size_t at = 0; at < types.size(); ++at) {
    const auto column = static_cast<int>(at);
    row[at].is_null = query.is_null(column);
    if (row[at].is_null) continue;
    if (types[at] == 'n') {
      row[at].number = query.integer(column);
    } else {
      row[at].text = std::string(query.bytes(column));
    }
  }
  return row;
}

void bind_cell(Statement& into, int at, char type, const CopiedCell& cell) {
  if (cell.is_null) {
    into.bind_null(at);
  } else if (type == 'n') {
    into.bind(at, cell.number);
  } else if (type == 't') {
    into.bind(at, std::string_view(cell.text));
  } else {
    into.bind_bytes(at, cell.text);
  }
}

int page_of(const CopiedTable& table) {
  const bool is_wide = table.name == "events" || table.name == "snapshots";
  return is_wide ? wide_rows_of_a_page : rows_of_a_page;
}

/// The highest key that the table ever gave; 0: none.
std::int64_t last_key(Database& database, std::string_view table) {
  const bool is_file = database.server() == nullptr;
  auto given = database.prepare(is_file ? "SELECT seq FROM sqlite_sequence WHERE name = ?"
                                        : "SELECT last_value - (NOT is_called)::int FROM " +
                                              std::string(table) + "_id_seq");
  if (is_file) given.bind(1, table);
  return given.step() ? given.integer(0) : 0;
}

/// Later rows get higher keys than `last`.
void raise_key(Database& database, std::string_view table, std::int64_t last) {
  if (auto* server = database.server(); server != nullptr) return server->raise_key(table, last);
  if (last == 0) return;
  auto given = database.prepare("UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = ?");
  given.bind(1, last).bind(2, table);
  given.run();
  auto first = database.prepare(
      "INSERT INTO sqlite_sequence (name, seq) SELECT ?1, ?2 WHERE NOT EXISTS (SELECT 1 FROM "
      "sqlite_sequence WHERE name = ?1)");
  first.bind(1, table).bind(2, last);
  first.run();
}

template <class Take>
void read_table(Database& from, const CopiedTable& table, Take&& take) {
  const auto keys = keys_of(table);
  const auto all = "SELECT " + std::string(table.columns) + " FROM " + std::string(table.name);
  const auto rows_max = page_of(table);
  const auto order = " ORDER BY " + keys + " LIMIT " + std::to_string(rows_max);
  auto first = from.prepare(all + order);
  auto next = from.prepare(all + " WHERE (" + keys + ") > (" +
                           question_marks(static_cast<std::size_t>(table.keys)) + ")" + order);
  std::vector<CopiedRow> page;
  for (bool begun = false;; begun = true) {
    auto& query = begun ? next : first;
    query.reset();
    CopiedRow last;
    if (begun) {
      last = std::move(page.back());
      for (int key = 0; key < table.keys; ++key)
        bind_cell(query, key + 1, table.types[static_cast<std::size_t>(key)],
                  last[static_cast<std::size_t>(key)]);
    }
    page.clear();
    while (query.step()) page.push_back(row_of(query, table.types));
    query.reset();
    for (const auto& row : page) take(row);
    if (page.size() < static_cast<std::size_t>(rows_max)) return;
  }
}

StoreSum sum_of(Database& database) {
  const Transaction one_view(database, Transaction::Kind::read);
  StoreSum sum;
  for (const auto& table : copied_tables)
    read_table(database, table, [&](const CopiedRow& row) { sum.add(table, row); });
  return sum;
}

bool is_empty(Database& database) {
  for (const auto* sql : {"SELECT 1 FROM sessions LIMIT 1", "SELECT 1 FROM events LIMIT 1"}) {
    auto query = database.prepare(sql);
    const bool found = query.step();
    query.reset();
    if (found) return false;
  }
  return true;
}

}  // namespace

void Store::State::copy_tables(Database& from, StoreTransfer& done) {
  StoreSum sum;
  for (const auto& table : copied_tables) {
    const bool is_events = table.name == "events";
    auto insert_row = is_events
                          ? database->prepare(insert_event_sql)
                          : database->prepare("INSERT INTO " + std::string(table.name) + " (" +
                                              std::string(table.columns) + ") VALUES (" +
                                              question_marks(table.types.size()) + ")");
    read_table(from, table, [&](const CopiedRow& row) {
      sum.add(table, row);
      if (is_events) next_seq = std::max(next_seq, row.front().number + 1);
      if (is_events && server != nullptr) server->make_part_of(row.front().number);
      insert_row.reset();
      for (std::size_t at = 0; at < row.size(); ++at)
        bind_cell(insert_row, static_cast<int>(at) + 1, table.types[at], row[at]);
      insert_row.run();
    });
    // Its rows may not be sent yet.
    if (server != nullptr) (void)database->prepare("SELECT 1 FROM events LIMIT 1").step();
  }
  auto known = from.prepare("SELECT value FROM meta WHERE key = ?");
  auto& put =
      sql("INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = "
          "excluded.value");
  for (const auto key : copied_meta) {
    known.reset().bind(1, key);
    if (known.step()) {
      put.bind(1, key).bind(2, known.integer(0));
      put.run();
    }
  }
  for (const auto table : keyed_tables) raise_key(*database, table, last_key(from, table));
  done = {.sessions = sum.sessions,
          .events = sum.events,
          .digest = sum.digest,
          .changed_texts = sum.changed_texts};
}

Result<StoreTransfer> Store::fill_from(StoreReader& source) {
  auto& from = *source.state_->database;
  const auto latest = source.latest_tick();
  if (!latest) return latest.error();
  auto copied = state_->in_turn<StoreTransfer>([&]() -> Result<StoreTransfer> {
    if (!is_empty(*state_->database)) {
      return Error{ErrorCode::conflict,
                   "database " + path().string() +
                       " holds sessions already, and a copy replaces nothing; name an empty one"};
    }
    const Transaction one_view(from, Transaction::Kind::read);
    StoreTransfer done;
    state_->copy_tables(from, done);
    state_->last_tick = std::max(state_->last_tick, *latest);
    state_->keep_floors();
    return done;
  });
  if (!copied) return copied;
  try {
    const auto there = sum_of(*state_->database);
    if (there.digest != copied->digest || there.events != copied->events)
      return Error{ErrorCode::corrupt, "database " + path().string() +
                                           ": the copy differs from its source; remove it and try "
                                           "again"};
  } catch (const SqlFailure& failure) {
    return failure.error;
  }
  return copied;
}

}  // namespace watchdog
