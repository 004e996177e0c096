// The page and the act of a link in a message. The link is the permission: it names one act on one
// alert, and the signature proves that this monitor made it. GET shows what would happen and
// changes nothing, because chats and mail scanners open links by themselves; the button on that
// page acts. Checks and act are one write, so of two answers at once only one counts. Every use of
// a link that is ours is in the audit log, as `link`; a link that is not ours gets one answer,
// whatever is wrong.
#include <utility>

#include "api/layout.h"
#include "api/page.h"
#include "api/routes.h"
#include "store/alert_acts.h"

namespace watchdog::monitor {
namespace {

/// The alert of a link that is ours and can still be used. Errors: `not_found` (not ours),
/// `invalid` (too old), `conflict` (answered before).
Result<Alert> alert_of(const AlertLinks& links, const AlertLink& link, StoreReader& reader,
                       WallTime now) {
  const Error foreign{ErrorCode::not_found, "This link is not one of this monitor."};
  if (link.alert <= 0 || link.alert == INT64_MAX) return foreign;
  const auto found = reader.alerts({.after = link.alert + 1, .limit = 1});
  if (!found) return found.error();
  if (found->empty() || !links.is_own(link, found->front())) return foreign;
  if (now >= link.until)
    return Error{ErrorCode::invalid, "This link is too old. Answer on the monitor's page."};
  if (is_answered(found->front()))
    return Error{ErrorCode::conflict, "This alert was answered before. A link works once."};
  return found->front();
}

Response page_of(const Error& error) {
  const bool known = error.code == ErrorCode::not_found || error.code == ErrorCode::invalid ||
                     error.code == ErrorCode::conflict;
  const int status = error.code == ErrorCode::not_found  ? 404
                     : error.code == ErrorCode::invalid  ? 410
                     : error.code == ErrorCode::conflict ? 409
                                                         : 503;
  return notice_page(status, "Not done",
                     known ? error.message : "The database cannot be used now.");
}

std::string_view words_of_answer(AlertAnswer answer) {
  return answer == AlertAnswer::acknowledge ? "Acknowledge: silent until it is over"
                                            : "Snooze: silent for an hour";
}

Response question_page(const AlertLink& link, const Alert& alert, std::string_view token) {
  const auto session = escaped(alert.session);
  const std::string html =
      "<h1>" + session + " is " + escaped(alert.word) + "</h1>\n<p>" + escaped(alert.reason) +
      "</p>\n<form class=\"login\" method=\"post\" action=\"/answer/" + escaped(token) +
      "\">\n<button class=\"main\">" + escaped(words_of_answer(link.answer)) +
      "</button>\n</form>\n<p class=\"hint\"><a href=\"/sessions/" + session +
      "\">Open the session</a></p>\n";
  return in_shell("notice", "Watchdog: answer an alert", html);
}

/// The link of the path, or the reply that there is none.
std::optional<AlertLink> link_of(const CallPtr& call) {
  auto link = alert_link_from(call->id);
  if (link && call->links) return link;
  call->reply(page_of({ErrorCode::not_found, "This link is not one of this monitor."}));
  return {};
}

Result<Alert> answer_alert(Store& store, const AlertLink& link, const std::string& session) {
  if (link.answer == AlertAnswer::acknowledge)
    return AlertActs(store).acknowledge(link.alert, "link", session);
  return AlertActs(store).snooze(link.alert, link_snoozes, session);
}

}  // namespace

void get_answer(const CallPtr& call) {
  const auto link = link_of(call);
  if (!link) return;
  reading(call, [call, link = *link](StoreReader& reader) {
    const auto alert = alert_of(*call->links, link, reader, system_clock().wall());
    call->reply(alert ? question_page(link, *alert, call->id) : page_of(alert.error()));
  });
}

void post_answer(const CallPtr& call) {
  const auto link = link_of(call);
  if (!link) return;
  const auto session = std::make_shared<std::string>();
  call->backend.write(
      [call, link = *link, session](Store& store) -> Result<void> {
        const auto alert = alert_of(*call->links, link, store.reader(), system_clock().wall());
        if (!alert) return alert.error();
        const auto done = answer_alert(store, link, alert->session);
        if (!done) return done.error();
        *session = done->session;
        return {};
      },
      [call, link = *link, session](const Result<void>& done) {
        if (done && call->feed != nullptr) call->feed->touched(*session);
        auto page =
            done ? notice_page(200, "Done", words_of_answer(link.answer)) : page_of(done.error());
        // Strangers' inventions must not fill the log.
        if (!done && done.error().code == ErrorCode::not_found) return call->reply(std::move(page));
        const bool acknowledges = link.answer == AlertAnswer::acknowledge;
        keep_and_reply(call->backend,
                       {.actor = "link",
                        .peer = call->access.policy()->peer(call->request),
                        .action = acknowledges ? AuditAction::acknowledge : AuditAction::snooze,
                        .target = std::to_string(link.alert)},
                       std::move(page), call->reply);
      });
}

}  // namespace watchdog::monitor
