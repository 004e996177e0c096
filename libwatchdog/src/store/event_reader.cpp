// A session's events form a chain backwards by `prev`, so a page forwards walks back from the next
// event in `blocks`. A missing event is the end of the chain: older ones were trimmed. Rows that
// cannot be decoded are shown as far as possible.
#include "store/event_reader.h"

#include <algorithm>
#include <utility>

#include "store/event_row.h"
#include "store/reader_state.h"

namespace watchdog {
namespace {

/// A walk over more events than this ends the page early, so that no query runs away.
constexpr int walk_max = 20'000;

}  // namespace

std::string Backwards::question(bool on_server, std::string_view columns) {
  const std::string own(columns);
  if (!on_server) return "SELECT " + own + " FROM events WHERE seq = ?";
  std::string joined = "e.";
  for (const char c : columns) {
    joined += c;
    if (c == ' ') joined += "e.";
  }
  return "WITH RECURSIVE chain AS (SELECT 1 AS step, " + own +
         " FROM events WHERE seq = ? UNION ALL SELECT c.step + 1, " + joined +
         " FROM chain c JOIN events e ON e.seq = c.prev WHERE c.prev > ? AND c.step < " +
         std::to_string(piece) + ") SELECT " + own + " FROM chain ORDER BY step";
}

Backwards::Backwards(StoreReader::State& state, std::string_view columns, int prev_column, Seq from,
                     Seq after)
    : on_server_(state.database->server() != nullptr),
      row_(state.prepared(question(on_server_, columns))),
      prev_column_(prev_column),
      next_(from),
      after_(after) {}

bool Backwards::step() {
  if (next_ <= after_) return false;
  if (left_ == 0) {
    row_.reset().bind(1, next_);
    if (on_server_) row_.bind(2, after_);
    left_ = on_server_ ? piece : 1;
  }
  if (!row_.step()) return false;
  --left_;
  seq_ = next_;
  next_ = row_.integer(prev_column_);
  return true;
}

std::vector<Event> StoreReader::State::walk(Seq from, Seq after, std::vector<std::size_t>* bytes) {
  std::vector<Event> events;
  for (Backwards at(*this, event_columns, prev_in_event, from, after); at.step();) {
    events.push_back(event_from(at.row()));
    if (bytes != nullptr) bytes->push_back(event_bytes(at.row()));
  }
  std::reverse(events.begin(), events.end());
  if (bytes != nullptr) std::reverse(bytes->begin(), bytes->end());
  return events;
}

/// The same events without reading them.
std::vector<Seq> StoreReader::State::chain(Seq from, Seq after) {
  std::vector<Seq> seqs;
  for (Backwards at(*this, "prev", 0, from, after); at.step();) seqs.push_back(at.seq());
  std::reverse(seqs.begin(), seqs.end());
  return seqs;
}

Result<std::vector<Event>> EventReader::after(Seq seq, int count_max, std::size_t bytes_max) {
  return state_.guarded<std::vector<Event>>([&]() -> Result<std::vector<Event>> {
    auto& query = state_.prepared("SELECT " + std::string(event_columns) +
                                  " FROM events WHERE seq > ? ORDER BY seq LIMIT ?");
    const ResetLater later(query);
    query.bind(1, seq).bind(2, count_max);
    std::vector<Event> events;
    for (std::size_t bytes = 0; bytes < bytes_max && query.step();) {
      bytes += event_bytes(query);
      events.push_back(event_from(query));
    }
    return events;
  });
}

Result<EventPage> EventReader::page(SessionKey session, Seq after, int count_max,
                                    std::optional<ReportKind> kind, std::size_t bytes_max) {
  return state_.guarded<EventPage>([&]() -> Result<EventPage> {
    const Transaction one_view(*state_.database, Transaction::Kind::read);
    const Seq head = state_.head_of(session);
    EventPage page;
    std::size_t bytes = 0;
    Seq reached = after;
    for (int walked = 0; reached < head;) {
      auto& blocks = state_.prepared(
          "SELECT seq FROM blocks WHERE session = ? AND seq > ? ORDER BY seq LIMIT 1");
      blocks.bind(1, session).bind(2, reached);
      const Seq block_end = blocks.step() ? blocks.integer(0) : head;
      blocks.reset();
      // False: the page is full.
      const auto take = [&](Event event, std::size_t size) {
        reached = event.seq;
        if (kind && event.report.kind != *kind) return true;
        bytes += size;
        page.events.push_back(std::move(event));
        return static_cast<int>(page.events.size()) < count_max && bytes < bytes_max;
      };
      bool has_room = true;
      if (state_.database->server() != nullptr) {
        std::vector<std::size_t> sizes;
        auto events = state_.walk(block_end, reached, &sizes);
        walked += static_cast<int>(events.size()) + 1;
        for (std::size_t at = 0; at < events.size() && has_room; ++at)
          has_room = take(std::move(events[at]), sizes[at]);
      } else {
        // A block may hold more than a page: it is read from where the page goes on.
        const auto seqs = state_.chain(block_end, reached);
        walked += static_cast<int>(seqs.size()) + 1;
        auto& query =
            state_.prepared("SELECT " + std::string(event_columns) + " FROM events WHERE seq = ?");
        const ResetLater later(query);
        for (std::size_t at = 0; at < seqs.size() && has_room; ++at) {
          query.reset().bind(1, seqs[at]);
          if (!query.step()) break;
          has_room = take(event_from(query), event_bytes(query));
        }
      }
      if (!has_room) {
        if (reached < head) page.next = reached;
        return page;
      }
      reached = std::max(reached, block_end);
      if (walked >= walk_max && reached < head) {
        page.next = reached;
        return page;
      }
    }
    return page;
  });
}

Result<EventPage> EventReader::page_before(SessionKey session, Seq before, int count_max,
                                           std::optional<ReportKind> kind, std::size_t bytes_max) {
  return state_.guarded<EventPage>([&]() -> Result<EventPage> {
    const Transaction one_view(*state_.database, Transaction::Kind::read);
    auto& block = state_.prepared(
        "SELECT seq FROM blocks WHERE session = ? AND seq >= ? ORDER BY seq LIMIT 1");
    block.bind(1, session).bind(2, before);
    const Seq from = block.step() ? block.integer(0) : state_.head_of(session);
    block.reset();
    EventPage page;
    std::size_t bytes = 0;
    Backwards at(state_, event_columns, prev_in_event, from);
    for (int walked = 0; at.prev() > 0; ++walked) {
      if (static_cast<int>(page.events.size()) == count_max || walked >= walk_max ||
          bytes >= bytes_max) {
        page.next = std::min(before, at.prev() + 1);
        break;
      }
      if (!at.step()) break;
      auto event = event_from(at.row());
      if (at.seq() >= before || (kind && event.report.kind != *kind)) continue;
      bytes += event_bytes(at.row());
      page.events.push_back(std::move(event));
    }
    return page;
  });
}

Result<std::vector<Seq>> EventReader::up_to(Seq seq, int count_max) {
  return state_.guarded<std::vector<Seq>>([&]() -> Result<std::vector<Seq>> {
    std::vector<Seq> found;
    Backwards at(state_, "prev", 0, seq);
    while (static_cast<int>(found.size()) < count_max && at.step()) found.push_back(at.seq());
    std::reverse(found.begin(), found.end());
    return found;
  });
}

Result<std::optional<Instant>> EventReader::tick_of(Seq seq) {
  return state_.guarded<std::optional<Instant>>([&]() -> Result<std::optional<Instant>> {
    auto& query = state_.prepared("SELECT tick_ms FROM events WHERE seq = ?");
    const ResetLater later(query);
    query.bind(1, seq);
    return query.step() ? std::optional(Instant{Millis{query.integer(0)}}) : std::nullopt;
  });
}

Result<std::vector<Event>> EventReader::latest(SessionKey session, int count_max) {
  return state_.guarded<std::vector<Event>>([&]() -> Result<std::vector<Event>> {
    const Transaction one_view(*state_.database, Transaction::Kind::read);
    std::vector<Event> events;
    Backwards at(state_, event_columns, prev_in_event, state_.head_of(session));
    for (int walked = 0; walked < walk_max && at.step(); ++walked) {
      auto event = event_from(at.row());
      if (event.report.kind == ReportKind::heartbeat) continue;
      events.push_back(std::move(event));
      if (static_cast<int>(events.size()) == count_max) break;
    }
    std::reverse(events.begin(), events.end());
    return events;
  });
}

Result<std::optional<Event>> EventReader::opinion(std::string_view event_id) {
  return state_.guarded<std::optional<Event>>([&]() -> Result<std::optional<Event>> {
    // Agents choose event ids as well; their own statements are not a model's answer.
    auto& query = state_.prepared("SELECT " + std::string(event_columns) +
                                  " FROM events WHERE event_id = ? AND kind = ? AND name <> 'self' "
                                  "ORDER BY seq DESC LIMIT 1");
    const ResetLater later(query);
    query.bind(1, event_id).bind(2, static_cast<std::int64_t>(ReportKind::opinion));
    if (!query.step()) return std::optional<Event>{};
    return std::optional(event_from(query));
  });
}

Result<Seq> EventReader::first_kept() {
  return state_.guarded<Seq>([&]() -> Result<Seq> {
    auto& query = state_.prepared("SELECT value FROM meta WHERE key = 'first_seq'");
    const ResetLater later(query);
    return query.step() ? query.integer(0) : 0;
  });
}

Result<std::pair<Seq, Instant>> EventReader::newest() {
  using Newest = std::pair<Seq, Instant>;
  return state_.guarded<Newest>([&]() -> Result<Newest> {
    auto& query = state_.prepared("SELECT seq, tick_ms FROM events ORDER BY seq DESC LIMIT 1");
    const ResetLater later(query);
    if (!query.step()) return Newest{};
    return Newest{query.integer(0), Instant{Millis{query.integer(1)}}};
  });
}

}  // namespace watchdog
