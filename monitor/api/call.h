/// \file
/// One request on its way: what every route needs.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "api/access.h"
#include "api/backend.h"
#include "api/check_desk.h"
#include "api/feed.h"
#include "api/message.h"
#include "api/target.h"
#include "watchdog/json_writer.h"

namespace watchdog::monitor {

/// Entries of a list that one request may have at most.
inline constexpr int page_max = 1'000;

struct Call {
  Backend& backend;
  CheckDesk& desk;
  Access& access;
  Request request;
  Target target;
  std::string id;     ///< From the path, where the route has one: a session's, check's or turn's.
  std::string tool;   ///< Likewise: a call of the turn.
  std::string actor;  ///< Name of the caller's token; `local`: none was shown.
  Scopes scopes;      ///< What the caller may do.
  Reply reply;
  Feed* feed = nullptr;  ///< Null: nothing is told here as it happens.
};
using CallPtr = std::shared_ptr<Call>;

/// What the writer holds, as the answer.
[[nodiscard]] Response json_response(JsonWriter& out, int status = 200);

/// Which sessions the parameters ask for, at most so many. Errors: `malformed`, `invalid`.
[[nodiscard]] Result<SessionFilter> filter_of(const Target& target, int limit_max);

/// Runs `work` where it may wait for the disk; if the database cannot be read, that is the reply.
void reading(const CallPtr& call, std::function<void(StoreReader&)> work);

/// The session as it is now, from memory or from its events.
[[nodiscard]] Result<Watched> look_up(const Backend& backend, StoreReader& reader,
                                      const SessionRow& row);

/// Looks the session of the path up and replies with what `answer` makes of it.
void with_session(const CallPtr& call, std::function<Response(const Watched&)> answer);

/// The progress document of a session, with the child that explains a wait.
[[nodiscard]] Result<std::string> document_of(Backend& backend, std::string_view id,
                                              const Watched& watched);

/// True if nobody is there to carry out a cancel: its process is gone, or it never gave a sign.
[[nodiscard]] bool unserved(const Case& judged);

/// Adds to the trail of who acted, and replies. Nobody is told of an act that left no trail; a
/// refusal is told at once.
void keep_and_reply(Backend& backend, AuditEntry entry, Response response, const Reply& reply);

/// Who wants something to stop, and why: from the request's body.
[[nodiscard]] Result<CancelRequest> request_in(const Call& call);

}  // namespace watchdog::monitor
