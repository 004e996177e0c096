/// \file
/// The commands of watchdog-monitor. Each returns the process's exit code.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cli/endpoint.h"
#include "watchdog/settings.h"
#include "watchdog/store.h"

namespace watchdog::monitor {

/// The settings, or the exit code after saying what is wrong: 2 if it is the command line alone,
/// else 3.
[[nodiscard]] Result<Settings, int> configured(const Sources& sources);

struct ServeOptions {
  Settings settings;
};
int serve(const ServeOptions& options);

struct ProxyOptions {
  Settings settings;
  Endpoint::Options endpoint;  ///< Where what passes through is told.
};
/// Passes requests on to a model server, and tells a monitor of them.
int proxy(const ProxyOptions& options);

struct DemoOptions {
  Settings settings;               ///< But `monitor.db`: the demo's sessions are nobody's.
  std::filesystem::path database;  ///< Empty: a fresh temporary one.
  std::filesystem::path agent;     ///< The demo agent's program; empty: beside this one.
};
int demo(const DemoOptions& options, const std::filesystem::path& self);

struct ConfigOptions {
  Sources sources;
  bool check = false;   ///< Only say whether it is right.
  bool sample = false;  ///< A file with every setting instead.
  bool json = false;
};
int config(const ConfigOptions& options);

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

struct WatchOptions {
  Endpoint::Options endpoint;
  int limit = 1'000;
  bool json = false;
};
/// The sessions as a live list, with keys.
int watch(const WatchOptions& options);

struct EventsOptions {
  Endpoint::Options endpoint;
  std::string session;
  std::string kind;
  Seq after = 0;
  int limit = 100;
  bool all = false;
  bool follow = false;  ///< All of them, and then those that come.
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

struct WaitOptions {
  Endpoint::Options endpoint;
  std::vector<std::string> sessions;
  std::string until = "completed";  ///< As awaited_from() reads it.
  std::string on_stuck = "ask";
  bool any = false;         ///< Over with the first that comes; else all are to.
  bool must_exist = false;  ///< What is not there is not waited for.
  bool restarts = false;    ///< As of Awaited.
  bool json = false;
};
/// Exit codes of its own: see wait_footer in main.cpp.
int wait(const WaitOptions& options);

struct CheckOptions {
  Endpoint::Options endpoint;
  std::string session;
  bool no_wait = false;
  bool json = false;
};
/// Has a model asked about a session.
int check(const CheckOptions& options);

struct ReportOptions {
  Endpoint::Options endpoint;
  std::string agent;  ///< Empty: of all.
  bool json = false;
};
/// What the old time limits would have cost.
int report(const ReportOptions& options);

struct TurnsOptions {
  Endpoint::Options endpoint;
  int limit = 1'000;
  bool json = false;
};
int turns(const TurnsOptions& options);

struct CancelOptions {
  Endpoint::Options endpoint;
  std::string session;  ///< It or a turn.
  std::string turn;
  std::string call;  ///< Only this one of the turn; empty: all of it.
  std::string reason;
  bool json = false;
};
int cancel(const CancelOptions& options);

struct AuditOptions {
  Endpoint::Options endpoint;
  std::size_t limit = 100;  ///< Of the newest acts.
  bool all = false;
  bool json = false;
};
/// Who acted.
int audit(const AuditOptions& options);

struct ForgetOptions {
  Endpoint::Options endpoint;
  std::vector<std::string> sessions;
  std::optional<double> ended_days;  ///< And all that ended so long ago.
  bool force = false;                ///< Also what runs.
  bool yes = false;                  ///< Does not ask.
  bool json = false;
};
/// Takes sessions out of the file for good.
int forget(const ForgetOptions& options);

struct BackupOptions {
  std::filesystem::path file;
  std::filesystem::path database;  ///< Empty: the default one.
  bool json = false;
};
int backup(const BackupOptions& options);

struct AlertsOptions {
  Endpoint::Options endpoint;
  Sources sources;                     ///< For `test` alone.
  std::string session;                 ///< Only its alerts.
  std::string test;                    ///< Try this channel instead.
  std::int64_t acknowledge = 0;        ///< This alert instead; 0: none.
  std::vector<std::int64_t> snooze{};  ///< Likewise, and for so many minutes.
  int limit = 50;
  bool json = false;
};
/// What people were told and by which channels.
int alerts(const AlertsOptions& options);

struct DoctorOptions {
  std::string upstream;            ///< URL of a model's server.
  std::filesystem::path key_file;  ///< Its first line is the key to show; empty: none.
  std::filesystem::path ca_file;
  bool json = false;
};
/// What a model's server is, what it tells, and which limits of clients will bite.
int doctor(const DoctorOptions& options);

struct WrapOptions {
  Endpoint::Options endpoint;
  std::string session;  ///< Empty: a fresh id.
  std::string name;     ///< Of the agent; empty: the command's.
  std::string task;
  std::vector<std::string> state_changes;  ///< Expressions: lines that say that it got somewhere.
  bool json_events = false;                ///< Lines may be events.
  bool json = false;                       ///< How it ended, to standard error.
  std::vector<std::string> command;        ///< Not empty.
};
/// Runs a command as a session; returns its exit code, or 128 + the signal.
int wrap(const WrapOptions& options);

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
