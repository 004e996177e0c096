/// \file
/// Everything that can be configured, and where each value came from: default < file < code <
/// environment < command line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "watchdog/alert_rule.h"
#include "watchdog/artifact_store.h"
#include "watchdog/budget.h"
#include "watchdog/checks.h"
#include "watchdog/deadline.h"
#include "watchdog/executor.h"
#include "watchdog/model_client.h"
#include "watchdog/names.h"
#include "watchdog/policy.h"
#include "watchdog/result.h"
#include "watchdog/run.h"
#include "watchdog/task_tool.h"

namespace watchdog {

/// `[checks]`. A plain value.
struct CheckSettings {
  bool enabled = true;       ///< False: no model is ever asked.
  bool on_suspicion = true;  ///< The monitor asks unasked, where a session's policy allows it.
  /// A server for checks alone; empty: the agent's. It is not sent the agent's API key.
  std::string base_url{};
  /// True: the agent's own server is asked even where that makes it read the agent's prompt again.
  bool share_server = false;
  StatusChecker::Options options{};
};

/// `[budget]`: of a run. A plain value.
struct BudgetSettings {
  BudgetLimits limits{};
  BudgetThresholds thresholds{};
};

/// `[tools]`: how an agent's tool calls are carried out. A plain value.
struct ToolSettings {
  /// `deadlines.timeout_origin` names the file and line, or the variable, that set the timeout.
  DeadlineSettings deadlines{};
  std::optional<Millis> cap{};  ///< Of every call, whatever its tool says; empty or 0: none.
  int parallel_max = 8;         ///< Calls of an answer that run at once.
  int workers_max = 16;         ///< Threads; one is free again only when its call returns.
  std::optional<Millis> confirm_max{600'000};  ///< For a person's answer; empty or 0: for ever.
  /// Ask a person before a tool changes something; where nobody can be asked, deny.
  bool confirm_writes = true;
  std::filesystem::path artifacts{};  ///< Empty: `artifacts` beside the database.
  std::int64_t artifact_bytes = std::int64_t{2} << 30U;  ///< Of all outputs that are kept.
  double artifact_days = 7;                              ///< They are kept so long.
};

/// `[privacy]`. A plain value.
struct PrivacySettings {
  /// What is a secret besides what `redact` knows: regular expressions as RE2 has them. They hold
  /// where `add_redactions` was called.
  std::vector<std::string> patterns{};
};

/// How a log line is written: for people, or an object a line.
enum class LogFormat : std::uint8_t { text, json };

template <>
struct Names<LogFormat> {
  static constexpr std::string_view all[] = {"text", "json"};
};

/// How people are told.
enum class ChannelType : std::uint8_t { webhook, command, log };

template <>
struct Names<ChannelType> {
  static constexpr std::string_view all[] = {"webhook", "command", "log"};
};

/// Whom a webhook's body is written for.
enum class AlertFormat : std::uint8_t { json, slack, pagerduty };

template <>
struct Names<AlertFormat> {
  static constexpr std::string_view all[] = {"json", "slack", "pagerduty"};
};

/// `[alerts.channels.NAME]`. A plain value.
struct AlertChannel {
  ChannelType type = ChannelType::webhook;
  std::string url{};                         ///< Of a webhook; or
  std::filesystem::path url_file{};          ///< a file with it, where it is a secret.
  AlertFormat format = AlertFormat::json;    ///< Of a webhook.
  std::filesystem::path secret_file{};       ///< Signs the body; empty: it is not signed.
  std::filesystem::path routing_key_file{};  ///< Of PagerDuty.
  std::filesystem::path ca_file{};           ///< Trusted besides the system's authorities. PEM.
  std::vector<std::string> command{};        ///< The program and its arguments; no shell.
  Millis timeout{10'000};                    ///< Of one attempt.
};

/// `[alerts]`. A plain value.
struct AlertSettings {
  AlertRules rules{};    ///< But `channels`, which are those below.
  bool content = false;  ///< Whether messages say what the task and the error were.
  Millis retry_first{1'000};
  Millis retry_longest{300'000};
  std::map<std::string, AlertChannel> channels{};
};

/// `[monitor]`. A plain value.
struct MonitorSettings {
  std::filesystem::path db{};  ///< Empty: default_database().
  std::string bind = "127.0.0.1";
  std::uint16_t port = 3'000;  ///< 0: a free one.
  /// Who shows one of its tokens may act; empty: beside the database, see token_file().
  std::filesystem::path token_file{};
  std::filesystem::path tls_cert{};  ///< PEM, with its chain; with `tls_key` or not at all.
  std::filesystem::path tls_key{};   ///< PEM, for its owner only.
  /// True: what comes in was sent by a proxy, which speaks TLS with everybody else.
  bool behind_proxy = false;
  std::vector<std::string> hosts{};   ///< Names it answers to beside loopback's and `bind`.
  int requests_per_second_max = 200;  ///< Of each address but loopback's; 0: no limit.
  std::string public_url{};           ///< As people reach it; empty: as it listens.
  double retention_days = 30;         ///< Ended sessions are kept so long.
  std::int64_t retention_bytes = 1'000'000'000;  ///< Of the database, whatever `retention_days`.
  LogFormat log_format = LogFormat::text;
  std::string ping_url{};        ///< Asked for now and then, so that its owner notices when not.
  Millis ping_interval{60'000};  ///< How often.
};

/// What clients of the proxy are sent while they wait for a model that is known to be at work.
enum class KeepAliveMode : std::uint8_t {
  off,
  comment,     ///< what parsers pass over: comments, the API's own pings, blanks before JSON
  empty_delta  ///< pieces of an answer without content, for clients that count parsed pieces only
};

template <>
struct Names<KeepAliveMode> {
  static constexpr std::string_view all[] = {"off", "comment", "empty_delta"};
};

/// What the proxy does with a request whose server hangs.
enum class HungAnswer : std::uint8_t { wait, fail };

template <>
struct Names<HungAnswer> {
  static constexpr std::string_view all[] = {"wait", "fail"};
};

/// `[proxy.upstreams.NAME]`. A plain value.
struct ProxyUpstream {
  std::string url{};
  std::vector<std::string> models{};  ///< Names, in which a `*` stands for anything.
  std::filesystem::path ca_file{};
  std::filesystem::path api_key_file{};
};

/// `[proxy]`. A plain value.
struct ProxySettings {
  std::string upstream{};      ///< Of the server that gets what no other one does; empty: no proxy.
  std::uint16_t port = 3'001;  ///< 0: a free one.
  KeepAliveMode keep_alive = KeepAliveMode::comment;
  bool keep_alive_whitespace = false;
  Millis keep_alive_after{10'000};
  Millis keep_alive_every{10'000};
  HungAnswer on_hung = HungAnswer::wait;
  bool probe = true;
  Millis look_every{2'000};              ///< At first; rarer while nothing changes.
  std::filesystem::path ca_file{};       ///< Trusted besides the system's authorities. PEM.
  std::filesystem::path api_key_file{};  ///< Of the key for looking at the server.
  std::map<std::string, ProxyUpstream> upstreams{};
};

/// All of it. A plain value.
struct Settings {
  ModelClient::Options model{};          ///< `[model]`
  std::filesystem::path api_key_file{};  ///< Where `model.api_key` was read; empty: nowhere.
  RunOptions run{};                      ///< `[run]`; `run.old_limits` is `[migration]`.
  CheckSettings checks{};
  PolicyPatch policy{};  ///< `[policy]`, by the names that it has in JSON.
  BudgetSettings budget{};
  TaskToolSettings task_tool{};
  ToolSettings tools{};
  PrivacySettings privacy{};
  AlertSettings alerts{};
  MonitorSettings monitor{};
  ProxySettings proxy{};
};

/// Who set a value; a later one wins.
enum class Origin : std::uint8_t { built_in, file, code, environment, command_line };

template <>
struct Names<Origin> {
  static constexpr std::string_view all[] = {"default", "file", "code", "environment",
                                             "command line"};
};

/// Why a configuration was refused, once for each thing that is wrong. A plain value.
struct Mistake {
  Origin origin = Origin::file;
  std::string where{};  ///< `FILE:LINE[:COLUMN]`, a variable or a flag.
  std::string key{};    ///< As in the file; empty: of the whole.
  std::string message;  ///< For a person; names the key, what it is and what it may be.
};
using Mistakes = std::vector<Mistake>;

/// A line each: `WHERE: MESSAGE`.
[[nodiscard]] std::string to_text(const Mistakes& mistakes);

/// Names and values.
using Environment = std::map<std::string, std::string>;
[[nodiscard]] Environment process_environment();

/// What a configuration is made of. A plain value.
struct Sources {
  /// Empty path: none. Not set: `$WATCHDOG_CONFIG`, else `watchdog/watchdog.toml` in
  /// `$XDG_CONFIG_HOME` (else `~/.config`) if it is there. Never a file of the working directory:
  /// a repository that an agent works in could bring one.
  std::optional<std::filesystem::path> file{};
  /// Changes what file and defaults say. May be empty.
  std::function<void(Settings&)> code{};
  /// Empty variables count as absent.
  Environment environment = process_environment();
  std::map<std::string, std::string> flags{};  ///< Of the command line: key and text.
};

/// The settings of a process, and where each came from. A plain value.
class Configuration {
 public:
  /// One value.
  struct Value {
    std::string key;   ///< As in the file, e.g. `run.max_iterations`.
    std::string text;  ///< As in the file; of a secret `set`; empty: there is none.
    Origin origin = Origin::built_in;
    std::string where;  ///< `FILE:LINE`, a variable or a flag; empty for a default and code.
  };

  /// Reads, checks and merges. Asks for the file system, and for nothing else of the machine.
  [[nodiscard]] static Result<Configuration, Mistakes> load(const Sources& sources);

  [[nodiscard]] const Settings& settings() const noexcept { return settings_; }
  /// All of them, in the order of the sample.
  [[nodiscard]] std::vector<Value> values() const;
  /// The file that was read; empty: none.
  [[nodiscard]] const std::filesystem::path& file() const noexcept { return file_; }

 private:
  friend class ConfigurationLoader;
  struct Source {
    Origin origin = Origin::built_in;
    std::string where{};
  };
  Settings settings_;
  std::filesystem::path file_;
  std::map<std::string, Source> sources_;  // by key; absent: a default
};

/// What there is to set. A plain value.
struct SettingInfo {
  std::string key;
  std::string text;                    ///< Its default, as in the file; empty: none.
  std::string help;                    ///< One sentence.
  std::string allowed;                 ///< E.g. `an integer from 1 to 9`; empty: the policy knows.
  std::vector<std::string> variables;  ///< Of the environment; of two that are set the last wins.
  std::string flag{};  ///< Of the command line; empty: none. `--no-…` takes no value.
};

/// The table that all of this is made from. Thread-safe.
[[nodiscard]] std::vector<SettingInfo> all_settings();
/// A file with every setting: its meaning, and its default commented out. Thread-safe.
[[nodiscard]] std::string sample_configuration();

/// The client's options for checks: those of `[model]`, at `checks.base_url` if that is set (then
/// without the API key). Thread-safe.
[[nodiscard]] ModelClient::Options check_client(const Settings& settings);

/// Where the tokens are: `monitor.token_file`, else the database's name with `-token` behind it.
/// Thread-safe.
[[nodiscard]] std::filesystem::path token_file(const Settings& settings);

/// Makes the patterns of `[privacy]` hold in this process, from now on and for good. Errors:
/// `invalid`. Thread-safe.
[[nodiscard]] Result<void> add_redactions(const PrivacySettings& privacy);

/// What channels need that stands in files of its own. A plain value.
struct ChannelSecrets {
  std::string url, secret, routing_key;
};
/// Of each channel; of what reads them alone, because agents that share a file of settings need not
/// be able to. Errors: each file that cannot be read, is empty, or may be read by others.
/// Thread-safe.
[[nodiscard]] Result<std::map<std::string, ChannelSecrets>, Mistakes> channel_secrets(
    const AlertSettings& alerts);

/// The executor's options as `[tools]` has them. Thread-safe.
[[nodiscard]] ExecutorOptions executor_options(const Settings& settings);

/// The store at `tools.artifacts`, for outputs of one run: its session's id. Makes the directory.
/// Errors: as of ArtifactStore::open. Thread-safe.
[[nodiscard]] Result<ArtifactStore> open_artifacts(const Settings& settings, std::string_view run);

}  // namespace watchdog
