/// \file
/// The commands of watchdog-monitor. Each returns the process's exit code.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cli/endpoint.h"
#include "watchdog/checks.h"
#include "watchdog/model_client.h"
#include "watchdog/store.h"

namespace watchdog::monitor {

struct ServeOptions {
  std::filesystem::path database;
  std::string bind = "127.0.0.1";
  std::uint16_t port = 3000;
  double retention_days = 30;
  std::int64_t retention_bytes = 1'000'000'000;
  std::optional<ModelClient::Options> model;  ///< Whom to ask about sessions; empty: nobody.
  bool checks_alone = false;                  ///< No agent uses that server, or it does not matter.
  bool checks_on_suspicion = true;
  StatusChecker::Options checks;
  bool quiet = false;  ///< Say nothing on standard output but the URL.
};
int serve(const ServeOptions& options);

struct DemoOptions {
  std::filesystem::path database;  ///< Empty: a fresh temporary one.
  std::uint16_t port = 3000;
  std::filesystem::path agent;  ///< The demo agent's program; empty: beside this one.
};
int demo(const DemoOptions& options, const std::filesystem::path& self);

struct StatusOptions {
  Endpoint::Options endpoint;
  std::string session;
  bool json = false;
};
int status(const StatusOptions& options);

struct SessionsOptions {
  Endpoint::Options endpoint;
  std::string health, lifecycle, agent, label, parent, text;
  int limit = 100;
  bool json = false;
};
int sessions(const SessionsOptions& options);

struct EventsOptions {
  Endpoint::Options endpoint;
  std::string session;
  std::string kind;
  Seq after = 0;
  int limit = 100;
  bool all = false;
  bool json = false;
};
int events(const EventsOptions& options);

struct ExplainOptions {
  Endpoint::Options endpoint;
  std::string session;
  int limit = 50;  ///< Of the newest changes of health.
  bool all = false;
  bool json = false;
};
int explain(const ExplainOptions& options);

struct ReportOptions {
  Endpoint::Options endpoint;
  std::string agent;  ///< Empty: of all.
  bool json = false;
};
/// What the old time limits would have cost.
int report(const ReportOptions& options);

struct CancelOptions {
  Endpoint::Options endpoint;
  std::string session;
  std::string reason;
  bool json = false;
};
int cancel(const CancelOptions& options);

struct ReplayOptions {
  std::vector<std::filesystem::path> traces;
  std::filesystem::path database;  ///< Empty: a private one in memory.
  std::string pace = "max";        ///< Or "recorded".
  int first_calls = 0;             ///< 0: all.
  bool json = false;
};
int replay(const ReplayOptions& options);

struct ScoreOptions {
  std::vector<std::filesystem::path> traces;
  std::filesystem::path index;
  std::filesystem::path steps;  ///< Empty: steps.jsonl beside the index, if there is one.
  bool list = false;            ///< Every run as well.
  bool json = false;
};
int score(const ScoreOptions& options);

}  // namespace watchdog::monitor
