/// \file
/// The HTTP API without HTTP: a request goes in, a response comes out.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/access.h"
#include "api/check_service.h"
#include "api/fresh_starts.h"
#include "api/hints.h"
#include "api/mcp_handler.h"
#include "api/message.h"
#include "bundle/bundle_worker.h"
#include "core/alert_links.h"
#include "core/backend.h"
#include "core/feed.h"
#include "ingest/otlp.h"

namespace watchdog::monitor {

class Recovery;

/// Thread-safe, if its backend is.
class Api {
 public:
  /// All must outlive this and every reply under way. Without a feed there are no streams.
  /// `requests_per_second_max`: of each other machine; 0: no limit. `proxy_url`: where agents reach
  /// their model through this monitor; empty: nowhere. `links`: those of its messages; null: none.
  /// `guesses`: see Access.
  Api(Backend& backend, CheckService& check_service, AccessPolicy policy, Feed* feed = nullptr,
      double requests_per_second_max = 0, std::string proxy_url = {},
      std::shared_ptr<const AlertLinks> links = nullptr,
      std::shared_ptr<OtlpMemory> telemetry = nullptr,
      std::shared_ptr<GuessLimits> guesses = nullptr)
      : backend_(backend),
        check_service_(check_service),
        access_(std::move(policy), requests_per_second_max, std::move(guesses)),
        feed_(feed),
        telemetry_(telemetry ? std::move(telemetry) : std::make_shared<OtlpMemory>()),
        links_(std::move(links)),
        proxy_url_(std::move(proxy_url)),
        recovery_(no_rules()) {}

  /// Decides by the headers alone whether the body may be read: the refusal, or nothing. The
  /// permission is checked again when the request is handled.
  [[nodiscard]] std::optional<Response> refuse(const Request& request);

  /// Answers a request that `refuse` let pass. A question about a running session is answered from
  /// memory, before this returns; everything else from wherever the backend works.
  void handle(Request request, Reply reply);

  /// Opens `/mcp`, before any request comes. `handler` must outlive this.
  void open_mcp(McpHandler* handler) { mcp_ = handler; }

  /// `note` gets the path of the transcript that each event of an agent's hook names, before any
  /// request comes. It must not block.
  void note_transcripts(std::function<void(const std::string& path)> note) {
    note_transcript_ = std::move(note);
  }

  /// Replaces the rules of recovery, of which there are none, before any request comes.
  void act_by(std::shared_ptr<Recovery> recovery) { recovery_ = std::move(recovery); }
  /// Leaves git out of all bundles, before any request comes.
  void leave_out_git() { bundles_.asks_git = false; }
  /// Puts these looks into bundles, and deletes those of forgotten sessions. Before any request.
  void show_looks(std::shared_ptr<KeptLooks> looks) { bundles_.looks = std::move(looks); }

  /// See Access::renew.
  void renew(std::vector<Token> tokens) { access_.renew(std::move(tokens)); }
  [[nodiscard]] std::shared_ptr<const AccessPolicy> policy() const { return access_.policy(); }

 private:
  [[nodiscard]] std::optional<Response> refuse_by_headers(const Request& request);
  void keep_refusal(const Request& request, const Response& refusal);
  [[nodiscard]] static std::shared_ptr<Recovery> no_rules();

  Backend& backend_;
  CheckService& check_service_;
  Access access_;
  Feed* feed_;
  Hints hints_;
  FreshStarts fresh_starts_;
  Bundles bundles_;
  const std::shared_ptr<OtlpMemory> telemetry_;
  const std::shared_ptr<const AlertLinks> links_;
  McpHandler* mcp_ = nullptr;
  std::function<void(const std::string& path)> note_transcript_;
  const std::string proxy_url_;
  std::shared_ptr<Recovery> recovery_;
};

}  // namespace watchdog::monitor
