/// \file
/// One `tools/call` on its way through the proxy: its state, its words, and its reports.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "calls/movement.h"
#include "mcp/proxy/envelope.h"
#include "watchdog/report.h"

namespace watchdog::monitor::mcp {

/// A plain value.
struct ProxiedCall {
  /// Progress that the proxy makes of other movement reaches a client at most this often.
  static constexpr Millis client_progress_every{1'000};
  static constexpr Millis report_every{5'000};

  ProxiedCall(const Envelope& request, std::optional<Millis> idle_max, Instant now);

  json id;
  std::string tool;
  json meta;  ///< As the client sent it.
  CallOwner owner;
  std::string call_id;
  bool is_modern = false;       ///< Of the stateless revision.
  bool supports_tasks = false;  ///< Its client takes a task instead of a result.
  std::optional<Millis> idle;
  Instant begun;
  Movement movement;

  json client_token{};  ///< Of the client; null: it asked for no progress.
  std::string token_key{};
  bool is_own_token = false;  ///< The proxy asked, so the client gets none of it.
  double server_value = 0;    ///< The newest one of the server,
  double sent_value = 0;      ///< and of what the client got.
  bool is_unsent = false;     ///< It moved, and the client does not know it.
  Instant sent_at{};          ///< When the client got progress last.
  std::string news{};         ///< The newest message, for the client.

  std::string server_task{};  ///< The server goes on with it as a task of this id.
  std::string own_task{};     ///< The client got a task of the proxy.
  std::int64_t reported_signs = 0;
  Instant reported_at{};

  /// The result for a client when the call is given up.
  [[nodiscard]] json timeout_result(Instant now, bool still_running) const;
  /// The result for a client when no answer of the server will come. `why`: a sentence without its
  /// end. `may_have_run`: false: the server did not begin with it.
  [[nodiscard]] json lost_result(const std::string& why, bool may_have_run) const;

  /// True if there is a sign of work that the session does not know, and it is time for a report.
  [[nodiscard]] bool is_report_due(Instant now);
  /// Notes movement that is counted already. True: the session has to hear of it.
  [[nodiscard]] bool moved(Instant now);
  /// Progress for the client, of movement that it does not know; nothing: none is due.
  [[nodiscard]] std::optional<json> due_progress(Instant now);

  [[nodiscard]] Report call_report(const json& arguments) const;
  [[nodiscard]] Report progress_report(Instant now) const;
  /// Of a result or an error as the server sent it.
  [[nodiscard]] Report end_report(const json& result, const json& error) const;
  [[nodiscard]] Report timeout_report(const json& result, Instant now) const;
  [[nodiscard]] Report cancelled_report(const std::string& why, Instant now) const;

 private:
  [[nodiscard]] Report report_of(ReportKind kind) const;
};

/// A tool's result that is an error, in the form of the call's revision.
[[nodiscard]] json error_result(const std::string& words, bool is_modern);
/// The text of a tool's result.
[[nodiscard]] std::string words_of_result(const json& result);
/// The call cannot be passed on: too many are open.
[[nodiscard]] json refused_result(const std::string& tool, std::size_t calls_max, bool is_modern);

}  // namespace watchdog::monitor::mcp
