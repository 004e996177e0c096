// Routes for callers: who one is, how a browser logs in, and the list of acts. Acts of one session
// are looked for among all of them: they are few, and the log has no index by session. Each
// answer looks at a bounded number, and says where the next one begins. The result of a rule's act
// is apart from the verdict that it was for, so that nobody has to take the text apart.
#include <optional>
#include <utility>
#include <vector>

#include "api/login_page.h"
#include "api/routes.h"
#include "codec/json.h"
#include "core/recovery_act.h"
#include "privacy/redaction.h"

namespace watchdog::monitor {
namespace {

/// Replies with what `answer` makes of the token, or `refuse` of the refusal. Logins are in the
/// trail, and so is that many wrong tokens came; single ones are not, lest they fill the disk.
void log_in(const CallPtr& call, std::string_view secret, Response welcome,
            Response (*refuse)(Response)) {
  auto login = call->access.log_in(call->request, secret);
  AuditEntry entry{.actor = "local",
                   .peer = call->access.policy()->peer(call->request),
                   .action = AuditAction::login};
  if (!login.token) {
    auto response = refuse(std::move(login.refusal));
    if (!login.burst) return call->reply(std::move(response));
    entry.action = AuditAction::logins_refused;
    return keep_and_reply(call->backend, std::move(entry), std::move(response), call->reply);
  }
  entry.actor = login.token->name;
  welcome.extra_headers += call->access.policy()->log_in(*login.token, system_clock().wall());
  keep_and_reply(call->backend, std::move(entry), std::move(welcome), call->reply);
}

}  // namespace

void get_access(const CallPtr& call) {
  if (call->unchecked) return call->reply(call->access.too_many_guesses(call->request));
  JsonWriter out;
  out.open_object().key("scopes").open_array();
  for (const auto scope : {Scope::read, Scope::report, Scope::act}) {
    if (call->scopes.contains(scope)) out.value(name_of(scope));
  }
  out.close_array().key("name");
  call->actor == "local" ? out.value(nullptr) : out.value(call->actor);
  out.field("tokenNeeded", call->scopes != Scopes::all()).key("proxyUrl");
  const bool shows = !call->proxy_url.empty() && call->scopes.contains(Scope::read);
  !shows ? out.value(nullptr) : out.value(call->proxy_url);
  out.close_object();
  call->reply(json_response(out));
}

void post_login(const CallPtr& call) {
  const auto secret = text_field_from_json(call->request.body, "token");
  if (!secret) return call->reply(error_response(secret.error()));
  if (secret->empty()) {
    return call->reply(error_response({ErrorCode::malformed, "token is missing", "token"}));
  }
  log_in(call, *secret, {.status = 204}, [](Response refusal) { return refusal; });
}

void post_logout(const CallPtr& call) {
  call->reply(
      {.status = 204, .extra_headers = call->access.policy()->log_out(call->request, WallTime{})});
}

void get_login_page(const CallPtr& call) {
  call->reply(login_page());
}

void post_login_form(const CallPtr& call) {
  auto text = call->request.body;
  for (auto& c : text) {
    if (c == '+') c = ' ';
  }
  const auto form = Target::parse("/?" + text);
  const auto secret = form ? form->text("token") : std::string();
  log_in(call, secret,
         {.status = 303,
          .content_type = "text/html; charset=utf-8",
          .extra_headers = "Location: /\r\n"},
         [](Response refusal) {
           return login_page(refusal, refusal.status == 429
                                          ? "Too many wrong tokens came from this address. Try "
                                            "again in a minute."
                                          : "This token is not known here.");
         });
}

namespace {

/// Entries that one request for the acts on a session looks at.
constexpr int looked_at_max = 20'000;

struct ActPage {
  std::vector<AuditEntry> entries{};
  std::optional<std::int64_t> next{};  ///< After it the next page begins; empty: this is the last.
};

Result<ActPage> acts_after(StoreReader& reader, std::int64_t after, int limit) {
  auto entries = reader.audit(after, limit);
  if (!entries) return entries.error();
  ActPage page{.entries = std::move(*entries)};
  if (static_cast<int>(page.entries.size()) == limit) page.next = page.entries.back().id;
  return page;
}

/// Acts are few, and have no index by session. A page may have fewer than `limit` before the last.
Result<ActPage> acts_on(StoreReader& reader, const std::string& session, std::int64_t after,
                        int limit) {
  const auto target = redact_identifier(session);  // as it is stored
  ActPage page;
  for (int looked = 0; looked < looked_at_max; looked += page_max) {
    auto entries = reader.audit(after, page_max);
    if (!entries) return entries.error();
    if (entries->empty()) return page;
    for (auto& entry : *entries) {
      after = entry.id;
      if (entry.target != target) continue;
      page.entries.push_back(std::move(entry));
      if (static_cast<int>(page.entries.size()) < limit) continue;
      page.next = after;
      return page;
    }
  }
  page.next = after;
  return page;
}

/// The result of an act stands apart from the verdict that it was for.
void write_act(JsonWriter& out, const AuditEntry& entry) {
  const auto parts = proven(entry.outcome);
  out.open_object().field("id", entry.id).field("at", entry.at.time_since_epoch().count());
  out.field("actor", entry.actor).key("peer");
  entry.peer.empty() ? out.value(nullptr) : out.value(entry.peer);
  out.field("action", name_of(entry.action)).key("target");
  entry.target.empty() ? out.value(nullptr) : out.value(entry.target);
  out.field("outcome", entry.outcome);
  out.field("result", parts ? parts->result : entry.outcome).key("proof");
  if (!parts) {
    out.value(nullptr).close_object();
    return;
  }
  out.open_object().field("text", parts->proof).key("events").open_array();
  if (parts->first > 0) out.value(parts->first);
  if (parts->last > parts->first) out.value(parts->last);
  out.close_array().close_object().close_object();
}

}  // namespace

void list_audit(const CallPtr& call) {
  const auto after = call->target.number("after", 0, 0, INT64_MAX);
  if (!after) return call->reply(error_response(after.error()));
  const auto limit = call->target.number("limit", 100, 1, page_max);
  if (!limit) return call->reply(error_response(limit.error()));
  reading(call, [call, after = *after, limit = static_cast<int>(*limit)](StoreReader& reader) {
    const auto session = call->target.text("sessionId");
    const auto page =
        session.empty() ? acts_after(reader, after, limit) : acts_on(reader, session, after, limit);
    if (!page) return call->reply(error_response(page.error()));
    JsonWriter out;
    out.open_object().key("audit").open_array();
    for (const auto& entry : page->entries) write_act(out, entry);
    out.close_array().key("next");
    page->next ? out.value(*page->next) : out.value(nullptr);
    out.close_object();
    call->reply(json_response(out));
  });
}

}  // namespace watchdog::monitor
