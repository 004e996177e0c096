/// \file
/// All settings, and the source of each value: default < file < code < environment < command line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "watchdog/artifact_store.h"
#include "watchdog/budget.h"
#include "watchdog/deadline.h"
#include "watchdog/executor.h"
#include "watchdog/health.h"
#include "watchdog/model_client.h"
#include "watchdog/policy.h"
#include "watchdog/result.h"
#include "watchdog/run.h"
#include "watchdog/tool_runner.h"

namespace watchdog {

/// `[checks]`. A plain value.
struct CheckSettings {
  bool enabled = true;       ///< False: no model is asked.
  bool on_suspicion = true;  ///< The monitor asks by itself, if a session's policy allows it.
  /// A server for checks alone; empty: the agent's. It does not get the agent's API key.
  std::string base_url{};
  /// True: the agent's own server is asked even if the agent must then read its prompt again.
  bool share_server = false;
  StatusChecker::Options options{};  ///< Limits of checks.
};

/// `[budget]`: of a run. A plain value.
struct BudgetSettings {
  BudgetLimits limits{};          ///< Limits of a run.
  BudgetThresholds thresholds{};  ///< Shares from which stages begin.
};

/// `[tools]`: how an agent's tool calls are run. A plain value.
struct ToolSettings {
  /// `deadlines.timeout_origin` names the file and line, or the variable, that set the timeout.
  DeadlineSettings deadlines{};
  std::optional<Millis> cap{};  ///< Of every call, before its tool's own; empty or 0: none.
  /// Ask a person before a tool changes something; deny if no person can be asked.
  bool confirm_writes = true;
  std::filesystem::path artifacts{};  ///< Empty: `artifacts` beside the database.
};

/// `[privacy]`. A plain value.
struct PrivacySettings {
  /// Regular expressions (RE2) of further secrets. They apply after `add_redactions` was called.
  std::vector<std::string> patterns{};
};

/// The form of log lines: for people, or one JSON object per line (NDJSON).
enum class LogFormat : std::uint8_t { text, json };

template <>
struct Names<LogFormat> {
  static constexpr std::string_view all[] = {"text", "json"};
};

/// How alerts are sent.
enum class ChannelType : std::uint8_t { webhook, command, log, mail, desktop };

template <>
struct Names<ChannelType> {
  static constexpr std::string_view all[] = {"webhook", "command", "log", "mail", "desktop"};
};

/// The recipient's form of a webhook's body.
enum class AlertFormat : std::uint8_t {
  json,
  slack,
  pagerduty,
  ntfy,
  discord,
  teams,
  telegram,
  matrix
};

template <>
struct Names<AlertFormat> {
  static constexpr std::string_view all[] = {"json",    "slack", "pagerduty", "ntfy",
                                             "discord", "teams", "telegram",  "matrix"};
};

/// The texts of a session that a message may hold.
enum class AlertContent : std::uint8_t {
  none,    ///< The kind of a question, and the name of a tool.
  preview  ///< Also the beginning of questions, commands, errors and the task.
};

template <>
struct Names<AlertContent> {
  static constexpr std::string_view all[] = {"none", "preview"};
};

/// `[alerts.channels.NAME]`; channel_kind.h has what each kind needs. A plain value.
struct AlertChannel {
  ChannelType type = ChannelType::webhook;  ///< How alerts are sent.
  std::string url{};                        ///< Of a webhook or a mail server; or
  std::filesystem::path url_file{};         ///< a file with it, if it is secret.
  AlertFormat format = AlertFormat::json;   ///< Of a webhook.
  /// The key that signs the body, a token, a password, or the key of a PagerDuty integration.
  std::filesystem::path secret_file{};
  std::string to{};                    ///< Chat, room, or addresses with commas between them.
  std::string from{};                  ///< Address of mails; empty: the first one of `to`.
  std::filesystem::path ca_file{};     ///< Certificates to trust besides the system's. PEM.
  std::vector<std::string> command{};  ///< The program and its arguments; no shell.
  AlertContent content = AlertContent::none;  ///< The session's texts in messages.
  /// Of one attempt. A slow gateway or script ends within 30 s, and a channel that hangs is tried
  /// again soon.
  Millis timeout{30'000};
};

/// `[alerts]`. A plain value.
struct AlertSettings {
  AlertRules rules{};  ///< Except `channels`, which are those below.
  /// A restart of the receiver takes seconds: 1 s, 2 s, 4 s find its end soon. When it is away for
  /// hours, a request every 5 minutes loads nobody, and the alert arrives soon after it is back.
  Millis retry_first{1'000};      ///< Before the second attempt; doubles with each.
  Millis retry_longest{300'000};  ///< Between two attempts, at most.
  std::map<std::string, AlertChannel> channels{};  ///< By name.
};

/// `[monitor]`. A plain value.
struct MonitorSettings {
  std::filesystem::path db{};      ///< Empty: default_database().
  std::string bind = "127.0.0.1";  ///< The address to listen on.
  std::uint16_t port = 3'000;      ///< 0: a free one.
  /// A second port, for OpenTelemetry alone; 0: a free one; empty: none.
  std::optional<std::int64_t> otlp_port{};
  /// File of the tokens for acting; empty: beside the database, see token_file().
  std::filesystem::path token_file{};
  std::filesystem::path tls_cert{};  ///< PEM, with its chain; with `tls_key` or not at all.
  std::filesystem::path tls_key{};   ///< PEM, for its owner only.
  /// True: requests come from a reverse proxy, which speaks TLS with the clients.
  bool behind_proxy = false;
  std::vector<std::string>
      hosts{};  ///< Further host names of this server besides loopback's and `bind`.
  int requests_per_second_max = 200;             ///< Of each address except loopback; 0: no limit.
  std::string public_url{};                      ///< The URL for people; empty: the listening one.
  double retention_days = 30;                    ///< Days to keep ended sessions.
  std::int64_t retention_bytes = 1'000'000'000;  ///< Size of the database, before `retention_days`.
  LogFormat log_format = LogFormat::text;        ///< The form of log lines.
  std::string ping_url{};  ///< URL to request regularly while the monitor works.
  /// Time between two of these requests. Services for such pings count in minutes.
  Millis ping_interval{60'000};
};

/// `[export.otlp]`. A plain value.
struct ExportSettings {
  std::string endpoint{};                ///< URL of a collector; empty: nothing is exported.
  std::filesystem::path headers_file{};  ///< `Name: value` lines for each request.
};

/// The keep-alives for clients of the proxy while the model server is known to work.
enum class KeepAliveMode : std::uint8_t {
  off,
  comment,      ///< bytes that parsers of streams skip: comments, or the API's own pings
  empty_delta,  ///< pieces of an answer without content, for clients that count only parsed pieces
  whitespace    ///< as `comment`, and blanks before the JSON of answers in one piece
};

template <>
struct Names<KeepAliveMode> {
  static constexpr std::string_view all[] = {"off", "comment", "empty_delta", "whitespace"};
};

/// The proxy's handling of a request whose server hangs.
enum class HungAnswer : std::uint8_t { wait, fail };

template <>
struct Names<HungAnswer> {
  static constexpr std::string_view all[] = {"wait", "fail"};
};

/// `[proxy.upstreams.NAME]`. A plain value.
struct ProxyUpstream {
  std::string url{};                     ///< URL of the server.
  std::vector<std::string> models{};     ///< Names; `*` matches any text.
  std::filesystem::path api_key_file{};  ///< Key for questions to the server about its state.
};

/// Whose tokens and cost a budget of the proxy counts together. The proxy knows of a session what
/// its requests show, and no labels that other sources gave it.
enum class BudgetScope : std::uint8_t {
  session,  ///< Each session has the whole budget.
  agent,    ///< Sessions of agents of the same name share it, and likewise
  client,   ///< those whose requests come from the same program,
  model,    ///< and requests to the same model
  server,   ///< or to the same model server.
  day       ///< All share it, from midnight to midnight in the monitor's time zone.
};

template <>
struct Names<BudgetScope> {
  static constexpr std::string_view all[] = {"session", "agent",  "client",
                                             "model",   "server", "day"};
};

/// `[proxy.budgets.NAME]`: a limit for agents that nobody changes. A plain value.
struct ProxyBudget {
  BudgetScope per = BudgetScope::session;  ///< See BudgetScope.
  std::optional<std::int64_t> tokens{};    ///< Of prompts and answers; empty: not limited.
  std::optional<double> cost{};            ///< By the prices; empty: not limited.
  bool refuse = false;                     ///< True: requests after the limit are refused.
};

/// `[proxy.prices.NAME]`: what some models cost, in the owner's currency. A plain value.
struct ModelPrice {
  std::vector<std::string> models{};           ///< Names; `*` matches any text.
  double input_per_million = 0;                ///< Of a million tokens of prompts,
  std::optional<double> cached_per_million{};  ///< of those that the server had; empty: as input,
  double output_per_million = 0;               ///< and of answers.
};

/// `[proxy]`. A plain value.
struct ProxySettings {
  std::string upstream{};      ///< URL of the server for all other requests; empty: no proxy.
  std::uint16_t port = 3'001;  ///< 0: a free one.
  KeepAliveMode keep_alive = KeepAliveMode::comment;  ///< See KeepAliveMode.
  /// With the first keep-alive the status is 200, so it leaves quick errors time to come with their
  /// own. Clients give up after 30 s at the earliest.
  Millis keep_alive_after{10'000};
  Millis keep_alive_every{10'000};  ///< Between two of these.
  /// How long keep-alives go on for a server that shows nothing: its owner vouches for it. A sign
  /// that it hangs ends them all the same. 0: not at all.
  Millis assume_working{0};
  HungAnswer on_hung = HungAnswer::wait;  ///< See HungAnswer.
  bool probe = true;                      ///< Ask the server about its state.
  /// At first; up to 7.5 times longer while nothing changes. A person who watches sees each step of
  /// a prompt. llama.cpp is asked for its slots every 1.5 s at most, because more questions keep it
  /// from noticing that a client disconnected.
  Millis look_every{2'000};
  std::filesystem::path api_key_file{};        ///< Key for questions to the server about its state.
  std::vector<std::string> allowed_origins{};  ///< Of pages that may use the proxy.
  std::map<std::string, ProxyUpstream> upstreams{};  ///< By name.
  std::map<std::string, ProxyBudget> budgets{};      ///< By name.
  std::map<std::string, ModelPrice> prices{};        ///< By name.
};

/// The confirmed states on which a rule may act. Nothing acts on a suspicion, a wait or a time.
enum class RecoveryState : std::uint8_t {
  looping,
  stuck,
  quiet,  ///< And the processes of the agent, or of its call, do no work.
  dead
};

template <>
struct Names<RecoveryState> {
  static constexpr std::string_view all[] = {"looping", "stuck", "quiet", "dead"};
};

/// The acts of rules, the mildest first.
enum class RecoveryStep : std::uint8_t {
  nudge,     ///< Sends the agent one sentence: what it repeats, and how often.
  refuse,    ///< Denies the next identical call of a tool.
  end_call,  ///< Ends the processes of the command that the agent waits for.
  cancel,    ///< Asks the agent to stop, as a person would.
  command    ///< Runs a program of the monitor's owner.
};

template <>
struct Names<RecoveryStep> {
  static constexpr std::string_view all[] = {"nudge", "refuse", "end_call", "cancel", "command"};
};

/// `[recovery.rules.NAME]`: an act of the monitor after a verdict. A plain value.
struct RecoveryRule {
  std::vector<RecoveryState> on{RecoveryState::looping};  ///< The states that it acts on.
  RecoveryStep step = RecoveryStep::nudge;                ///< See RecoveryStep.
  std::string agent{};  ///< Only sessions of the agent of this name; empty: of any.
  std::string label{};  ///< Only sessions with this label, as `KEY:VALUE`; empty: all.
  /// Of the step `command`: the program and its arguments; no shell.
  std::vector<std::string> command{};
  int at_most = 1;       ///< Acts for each verdict.
  bool dry_run = false;  ///< True: the rule records what it would do, and does nothing.
  /// The share of verdicts on which nothing is done, so that acts can be compared with none.
  double hold_out = 0;
};

/// `[recovery]`. A plain value.
struct RecoverySettings {
  /// The program and its arguments that run when a wait is over; no shell. Empty: none.
  std::vector<std::string> on_ready{};
  /// `KEY:VALUE` of sessions for which it also runs although their process is not known.
  std::vector<std::string> on_ready_labels{};
  /// By name. For a verdict the mildest step comes first, and the next one when that is used up.
  std::map<std::string, RecoveryRule> rules{};
  /// Bundles of evidence name the files that git says have changed.
  bool bundle_git = true;
  /// The program and its arguments that look at a model server on this machine, once each time that
  /// it hangs; no shell. `{pid}` is the server's process. Empty: none.
  std::vector<std::string> diagnose{};
};

/// All settings. A plain value.
struct Settings {
  ModelClient::Options model{};          ///< `[model]`
  std::filesystem::path api_key_file{};  ///< The source of `model.api_key`; empty: none.
  RunOptions run{};                      ///< `[run]`; `run.old_limits` is `[migration]`.
  CheckSettings checks{};                ///< `[checks]`
  PolicyPatch policy{};                  ///< `[policy]`, with the names in JSON.
  BudgetSettings budget{};               ///< `[budget]`
  TaskToolSettings task_tool{};          ///< `[task_tool]`
  ToolSettings tools{};                  ///< `[tools]`
  PrivacySettings privacy{};             ///< `[privacy]`
  AlertSettings alerts{};                ///< `[alerts]`
  MonitorSettings monitor{};             ///< `[monitor]`
  ProxySettings proxy{};                 ///< `[proxy]`
  RecoverySettings recovery{};           ///< `[recovery]`
  ExportSettings export_otlp{};          ///< `[export.otlp]`
};

/// The source of a value; a later one wins.
enum class Origin : std::uint8_t { built_in, file, code, environment, command_line };

template <>
struct Names<Origin> {
  static constexpr std::string_view all[] = {"default", "file", "code", "environment",
                                             "command line"};
};

/// One mistake in a configuration. A plain value.
struct Mistake {
  Origin origin = Origin::file;  ///< The source with the mistake.
  std::string where{};           ///< `FILE:LINE[:COLUMN]`, a variable or a flag.
  std::string key{};             ///< As in the file; empty: the whole file.
  std::string message{};         ///< For a person; names the key, its value and the allowed ones.
};
/// All mistakes of a configuration.
using Mistakes = std::vector<Mistake>;

/// One line for each: `WHERE: MESSAGE`.
[[nodiscard]] std::string to_text(const Mistakes& mistakes);

/// Names and values.
using Environment = std::map<std::string, std::string>;
/// Returns the variables of this process. Thread-safe if nobody changes them.
[[nodiscard]] Environment process_environment();

/// The sources of a configuration. A plain value.
struct Sources {
  /// Empty path: none. Not set: `$WATCHDOG_CONFIG`, else `watchdog/watchdog.toml` in
  /// `$XDG_CONFIG_HOME` (else `~/.config`) if it exists. Never a file of the working directory: a
  /// repository in which an agent works could contain one.
  std::optional<std::filesystem::path> file{};
  /// Changes the settings of file and defaults. May be empty.
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
    std::string key{};                 ///< As in the file, e.g. `run.max_iterations`.
    std::string text{};                ///< As in the file. `set` for a secret. Empty: no value.
    Origin origin = Origin::built_in;  ///< The source that won.
    std::string where{};  ///< `FILE:LINE`, a variable or a flag; empty for a default and code.
  };

  /// Reads, checks and merges. Accesses the file system and nothing else of the machine.
  [[nodiscard]] static Result<Configuration, Mistakes> load(const Sources& sources);

  /// Returns the merged settings.
  [[nodiscard]] const Settings& settings() const noexcept { return settings_; }
  /// All of them, in the order of the sample.
  [[nodiscard]] std::vector<Value> values() const;
  /// What was given for keys that were settings in earlier versions: each is accepted, and the
  /// message says what holds instead.
  [[nodiscard]] const Mistakes& notices() const noexcept { return notices_; }
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
  Mistakes notices_;
};

/// One setting. A plain value.
struct SettingInfo {
  std::string key{};      ///< As in the file.
  std::string text{};     ///< Its default, as in the file; empty: none.
  std::string help{};     ///< One sentence.
  std::string allowed{};  ///< E.g. `an integer from 1 to 9`; empty: the policy checks it.
  std::vector<std::string> variables{};  ///< Of the environment; if two are set the last one wins.
  std::string flag{};  ///< Of the command line; empty: none. `--no-…` takes no value.
};

/// Returns the table of all settings. Thread-safe.
[[nodiscard]] std::vector<SettingInfo> all_settings();
/// Returns the default file of settings if `Sources::file` is not set; empty: none. Thread-safe.
[[nodiscard]] std::filesystem::path usual_settings_file(const Environment& environment);
/// Returns a file with every setting: its meaning, and its default as a comment. Thread-safe.
[[nodiscard]] std::string sample_configuration();

/// Returns the client's options for checks: those of `[model]`, at `checks.base_url` if that is set
/// (then without the API key). Thread-safe.
[[nodiscard]] ModelClient::Options check_client(const Settings& settings);

/// Returns the database: `monitor.db`, else default_database(). Thread-safe.
[[nodiscard]] std::filesystem::path database_of(const Settings& settings);
/// Returns the file of the tokens: `monitor.token_file`, else the database's name with the suffix
/// `-token`. Thread-safe.
[[nodiscard]] std::filesystem::path token_file(const Settings& settings);

/// Adds the patterns of `[privacy]` to this process for good. Errors: `invalid`. Thread-safe.
[[nodiscard]] Result<void> add_redactions(const PrivacySettings& privacy);

/// The addresses of `AlertChannel::to` of a mail channel. Thread-safe.
[[nodiscard]] std::vector<std::string> mail_addresses(std::string_view list);

/// Secrets of channels that are in files of their own. A plain value.
struct ChannelSecrets {
  std::string url{};          ///< Address of a webhook.
  std::string secret{};       ///< Key that signs bodies, token or password.
  std::string routing_key{};  ///< Key of a PagerDuty integration.
};
/// Reads the secrets of each channel. Only the program that sends alerts needs them: agents that
/// share the settings may not be able to read them. Errors: each file that cannot be read, is
/// empty, or that others may read. Thread-safe.
[[nodiscard]] Result<std::map<std::string, ChannelSecrets>, Mistakes> channel_secrets(
    const AlertSettings& alerts);

/// Returns the executor's options of `[tools]`. Thread-safe.
[[nodiscard]] ExecutorOptions executor_options(const Settings& settings);

/// Opens the store at `tools.artifacts` for outputs of one run: its session's id. Creates the
/// directory. Errors: as of ArtifactStore::open. Thread-safe.
[[nodiscard]] Result<ArtifactStore> open_artifacts(const Settings& settings, std::string_view run);

}  // namespace watchdog
