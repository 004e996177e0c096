/// \file
/// One request on its way: what every route needs.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "api/access.h"
#include "api/check_service.h"
#include "api/fresh_starts.h"
#include "api/hints.h"
#include "api/mcp_handler.h"
#include "api/message.h"
#include "api/target.h"
#include "bundle/bundle_worker.h"
#include "codec/progress.h"
#include "core/alert_links.h"
#include "core/backend.h"
#include "core/feed.h"
#include "ingest/otlp.h"
#include "text/json_writer.h"

namespace watchdog::monitor {

class Recovery;

/// Entries of a list that one request may have at most.
inline constexpr int page_max = 1'000;

struct Call {
  Backend& backend;
  CheckService& check_service;
  Access& access;
  Request request;
  Target target;
  std::string id;     ///< From the path, where the route has one: a session's, check's or turn's.
  std::string tool;   ///< Likewise: a call of the turn.
  std::string actor;  ///< Name of the caller's token; `local`: none was shown.
  Scopes scopes;      ///< The caller's permissions.
  bool unchecked;     ///< The caller's token was not compared, see GuessLimits.
  Reply reply;
  Feed* feed = nullptr;    ///< Null: this process streams nothing.
  Hints* hints = nullptr;  ///< Null: replies give none.
  OtlpMemory* telemetry = nullptr;
  std::shared_ptr<const AlertLinks> links{};  ///< Null: messages have no links that act.
  std::string_view proxy_url{};  ///< Where agents reach their model; empty: there is no proxy.
  McpHandler* mcp = nullptr;     ///< Null: this process has no MCP server.
  /// Gets the transcripts that hooks name, see Api::note_transcripts. Empty: nobody reads them.
  const std::function<void(const std::string& path)>& note_transcript;
  FreshStarts& fresh_starts;
  Recovery& recovery;
  Bundles& bundles;
};
using CallPtr = std::shared_ptr<Call>;

/// Returns the writer's text as a response.
[[nodiscard]] Response json_response(JsonWriter& out, int status = 200);

/// Returns the filter of the parameters, with at most `count_max` sessions. Errors: `malformed`,
/// `invalid`.
[[nodiscard]] Result<SessionFilter> filter_of(const Target& target, int limit_max);

/// Runs `work` where it may wait for the disk; if the database cannot be read, that is the reply.
void reading(const CallPtr& call, std::function<void(StoreReader&)> work);

/// Looks the session of the path up and replies with what `answer` makes of it.
void with_session(const CallPtr& call, std::function<Response(const Watched&)> answer);

/// The progress document of a session, with the child that explains a wait, and one that never
/// spoke.
[[nodiscard]] Result<std::string> document_of(Backend& backend, std::string_view id,
                                              const Watched& watched,
                                              const std::optional<Estimate>& estimate = {});
/// The same with the estimate about a running session, and with the wait of its group.
[[nodiscard]] Result<std::string> document_of(Backend& backend, StoreReader& reader,
                                              const SessionRow& row, const Watched& watched);
/// Returns true if there may be an estimate about the session.
[[nodiscard]] bool may_be_estimated(const Backend& backend, const Watched& watched);

/// Returns true if no process can carry out a cancel: it is gone, or never reported.
[[nodiscard]] bool unserved(const Case& judged);

/// Appends a client's batch. A process that it names counts as found by the monitor if it is the
/// one at the client's end of the connection: only this proves who it is.
void append_from_client(const CallPtr& call, Batch batch,
                        std::function<void(Result<Receipt>)> done);

/// Stores an entry of the audit log, and then replies. An act is not confirmed without its entry; a
/// refusal is sent at once.
void keep_and_reply(Backend& backend, AuditEntry entry, Response response, const Reply& reply);

/// Reads who cancels, and why, from the request's body.
[[nodiscard]] Result<CancelRequest> request_in(const Call& call);

}  // namespace watchdog::monitor
