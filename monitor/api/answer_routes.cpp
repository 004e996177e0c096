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
  if (!is_for_agent(link.answer) && is_answered(found->front()))
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
  switch (answer) {
    case AlertAnswer::acknowledge:
      return "Acknowledge: silent until it is over";
    case AlertAnswer::snooze:
      return "Snooze: silent for an hour";
    case AlertAnswer::allow:
      return "Allow: the agent goes on";
    default:
      return "Deny: the agent does not run it";
  }
}

AuditAction action_of(AlertAnswer answer) {
  if (is_for_agent(answer)) return AuditAction::answer;
  return answer == AlertAnswer::acknowledge ? AuditAction::acknowledge : AuditAction::snooze;
}

/// The question that the link answers. Errors: `conflict`: it is open no more.
Result<HeldQuestion> question_of(const Backend& backend, const AlertLink& link,
                                 const Alert& alert) {
  if (auto asked = backend.questions().held(alert.session, link.question)) return std::move(*asked);
  return Error{ErrorCode::conflict,
               "This question was answered before, or its agent does not wait for it any more."};
}

/// `asked`: what the agent wants to do, which the person must see before it is allowed.
Response question_page(const AlertLink& link, const Alert& alert, std::string_view token,
                       const std::optional<HeldQuestion>& asked) {
  const auto session = escaped(alert.session);
  const auto about = asked ? "<div class=\"question\"><p>The agent wants to use " +
                                 escaped(asked->tool) + ":</p>\n<pre>" + escaped(asked->text) +
                                 "</pre></div>\n"
                           : "<p>" + escaped(alert.reason) + "</p>\n";
  const auto name =
      escaped(alert.folder.empty() ? std::string(short_id(alert.session)) : alert.folder) +
      (alert.agent.empty() ? "" : ": " + escaped(alert.agent));
  const auto deed = alert.word == name_of(AlertCause::needs_input) ? "waits for you"
                                                                   : "is " + escaped(alert.word);
  const std::string html = "<h1>" + name + " " + deed + "</h1>\n" + about +
                           "<form class=\"login\" method=\"post\" action=\"/answer/" +
                           escaped(token) + "\">\n<button class=\"main\">" +
                           escaped(words_of_answer(link.answer)) +
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

Result<void> answer_agent(const Backend& backend, const AlertLink& link, const Alert& alert) {
  const auto done = backend.questions().answer(
      alert.session, link.question, {.allows = link.answer == AlertAnswer::allow, .by = "link"});
  if (done) return {};
  return Error{ErrorCode::conflict, "This question is not open any more: " + done.error().message};
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
    if (!alert) return call->reply(page_of(alert.error()));
    if (!is_for_agent(link.answer))
      return call->reply(question_page(link, *alert, call->id, std::nullopt));
    auto asked = question_of(call->backend, link, *alert);
    call->reply(asked ? question_page(link, *alert, call->id, std::move(*asked))
                      : page_of(asked.error()));
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
        if (is_for_agent(link.answer)) return answer_agent(call->backend, link, *alert);
        const auto done = answer_alert(store, link, alert->session);
        if (!done) return done.error();
        *session = done->session;
        return {};
      },
      [call, link = *link, session](const Result<void>& done) {
        if (done && call->feed != nullptr && !session->empty()) call->feed->touched(*session);
        auto page =
            done ? notice_page(200, "Done", words_of_answer(link.answer)) : page_of(done.error());
        // Strangers' inventions must not fill the log.
        if (!done && done.error().code == ErrorCode::not_found) return call->reply(std::move(page));
        keep_and_reply(call->backend,
                       {.actor = "link",
                        .peer = call->access.policy()->peer(call->request),
                        .action = action_of(link.answer),
                        .target = std::to_string(link.alert)},
                       std::move(page), call->reply);
      });
}

}  // namespace watchdog::monitor
