#include <algorithm>
#include <limits>
#include <utility>

#include "api/assets.h"
#include "api/compression.h"
#include "api/explanation.h"
#include "api/layout.h"
#include "api/page.h"
#include "api/routes.h"
#include "core/summary.h"
#include "store/event_reader.h"

namespace watchdog::monitor {
namespace {

constexpr int sessions_shown = 200;
constexpr int events_shown = 50;

Result<PageRow> page_row(const CallPtr& call, StoreReader& reader, const SessionRow& row) {
  auto watched = look_up(call->backend, reader, row);
  if (!watched) return watched.error();
  auto explained_by = explanation(call->backend, row.id, watched->judged);
  if (!explained_by) return explained_by.error();
  const auto urgency = urgency_of(call->backend, reader, row, system_clock().wall());
  if (!urgency) return urgency.error();
  return PageRow{row, std::move(watched->judged), *urgency, std::move(*explained_by)};
}

}  // namespace

void get_sessions_page(const CallPtr& call) {
  reading(call, [call](StoreReader& reader) {
    const auto rows = reader.sessions({.limit = sessions_shown});
    if (!rows) return call->reply(error_response(rows.error()));
    std::vector<PageRow> sessions;
    for (const auto& row : *rows) {
      auto session = page_row(call, reader, row);
      if (!session) return call->reply(error_response(session.error()));
      sessions.push_back(std::move(*session));
    }
    std::ranges::stable_sort(sessions, is_before, &PageRow::urgency);
    const bool are_all = static_cast<int>(rows->size()) < sessions_shown;
    call->reply(compressed(sessions_page(sessions, are_all, call->backend.now()), call->request));
  });
}

void get_session_page(const CallPtr& call) {
  reading(call, [call](StoreReader& reader) {
    const auto row = reader.session(call->id);
    if (!row && row.error().code == ErrorCode::not_found)
      return call->reply(notice_page(404, "No such session", row.error().message));
    if (!row) return call->reply(error_response(row.error()));
    const auto session = page_row(call, reader, *row);
    if (!session) return call->reply(error_response(session.error()));
    const auto page =
        EventReader(reader).page_before(row->key, std::numeric_limits<Seq>::max(), events_shown);
    if (!page) return call->reply(error_response(page.error()));
    call->reply(
        compressed(session_page(*session, page->events, call->backend.now()), call->request));
  });
}

void get_alerts_page(const CallPtr& call) {
  call->reply(in_shell("alerts", "Alerts – Watchdog",
                       "<h1>Alerts</h1>\n<p>This page needs JavaScript. "
                       "<code>watchdog-monitor alerts</code> shows the same.</p>\n"));
}

void get_overview_page(const CallPtr& call) {
  call->reply(in_shell("overview", "Overview – Watchdog",
                       "<h1>The last 24 hours</h1>\n<p>This page needs JavaScript. "
                       "<code>watchdog-monitor report</code> shows more.</p>\n"));
}

void get_asset(const CallPtr& call) {
  auto response = asset(call->id, call->tool, call->request);
  call->reply(response ? std::move(*response)
                       : error_response(404, "not_found", "there is no such file"));
}

void get_schema(const CallPtr& call) {
  auto response = schema_file(call->id, call->request);
  call->reply(response
                  ? std::move(*response)
                  : error_response(404, "not_found", "the schema " + call->id + " does not exist"));
}

}  // namespace watchdog::monitor
