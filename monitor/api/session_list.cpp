// State and attention follow from the session's newest events and from the time. The file does not
// hold them, so a list by them looks at every session that the other conditions leave.
#include "api/session_list.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "api/parts.h"
#include "api/routes.h"
#include "core/session_row.h"
#include "core/summary.h"

namespace watchdog::monitor {
namespace {

constexpr int rows_at_once = 500;  ///< Read from the file.

template <class T>
bool is_in(const std::vector<T>& list, T value) {
  return list.empty() || std::ranges::find(list, value) != list.end();
}

/// The sessions that a list by state found, in the order of the list.
struct Found {
  std::vector<std::pair<Urgency, SessionRow>> rows;
  std::size_t sent = 0;
};

Result<void> find(const Backend& backend, StoreReader& reader, const SessionQuery& query,
                  WallTime wall, Found& found) {
  auto filter = query.filter;
  filter.limit = rows_at_once;
  for (int looked = 0; looked < rows_max; looked += rows_at_once) {
    auto rows = reader.sessions(filter);
    if (!rows) return rows.error();
    if (!rows->empty()) filter.after = rows->back().key;
    const bool is_last = static_cast<int>(rows->size()) < rows_at_once;
    for (auto& row : *rows) {
      const auto urgency = urgency_of(backend, reader, row, wall);
      if (!urgency) return urgency.error();
      if (is_in(query.attention, urgency->standing.attention) &&
          is_in(query.states, urgency->standing.state))
        found.rows.emplace_back(*urgency, std::move(row));
    }
    if (is_last) break;
  }
  if (query.order == SessionOrder::attention)
    std::ranges::stable_sort(
        found.rows, [](const auto& a, const auto& b) { return is_before(a.first, b.first); });
  return {};
}

}  // namespace

Result<SessionQuery> query_of(const Target& target, int limit_max) {
  SessionQuery query;
  auto filter = filter_of(target, limit_max);
  if (!filter) return filter.error();
  auto attention = target.choices<Attention>("attention");
  if (!attention) return attention.error();
  auto states = target.choices<SessionState>("state");
  if (!states) return states.error();
  const auto order = target.choice<SessionOrder>("sort");
  if (!order) return order.error();
  query.filter = std::move(*filter);
  query.attention = std::move(*attention);
  query.states = std::move(*states);
  query.order = order->value_or(SessionOrder::newest);
  if (query.order != SessionOrder::newest && query.filter.after != 0)
    return Error{ErrorCode::invalid, "after needs sort=newest; raise limit to see more", "after"};
  return query;
}

void reply_with_sessions(const CallPtr& call, SessionQuery query, int at_once,
                         std::function<void(JsonWriter&)> begin,
                         std::function<Result<std::string>(StoreReader&, const SessionRow&)> text) {
  if (!query.needs_standing())
    return reply_with_rows(call, std::move(query.filter), at_once, std::move(begin),
                           std::move(text));
  auto found = std::make_shared<Found>();
  reply_in_parts(
      call,
      [call, found, query = std::move(query), at_once, begin = std::move(begin),
       text = std::move(text)](StoreReader& reader, JsonWriter& out) mutable -> Result<bool> {
        if (begin) {
          if (auto done = find(call->backend, reader, query, system_clock().wall(), *found); !done)
            return done.error();
          std::exchange(begin, nullptr)(out);
        }
        const auto total = found->rows.size();
        const auto shown = std::min(total, static_cast<std::size_t>(query.filter.limit));
        const auto end = std::min(shown, found->sent + static_cast<std::size_t>(at_once));
        for (; found->sent < end; ++found->sent) {
          const auto made = text(reader, found->rows[found->sent].second);
          if (!made) return made.error();
          out.raw(*made);
        }
        if (found->sent < shown) return true;
        out.close_array().key("next");
        const bool goes_on = query.order == SessionOrder::newest && shown < total;
        goes_on ? out.value(found->rows[shown - 1].second.key) : out.value(nullptr);
        out.field("total", static_cast<std::int64_t>(total)).close_object();
        return false;
      });
}

void get_summary(const CallPtr& call) {
  reading(call, [call](StoreReader& reader) {
    auto summary = summary_of(call->backend, reader, system_clock().wall());
    call->reply(summary ? Response{.body = std::move(*summary)} : error_response(summary.error()));
  });
}

}  // namespace watchdog::monitor
