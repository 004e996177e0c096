#include "config/table.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "watchdog/json.h"

namespace watchdog {
namespace {

constexpr double day_ms = 86'400'000;
constexpr double day_seconds = 86'400;
constexpr double year_seconds = 31'536'000;
constexpr double many = 1e15;  // exact in JSON

/// The member of a member of …
template <auto... Members>
Field at(Settings& settings, const KeyPath& /*path*/) {
  return &(settings.*....*Members);
}

template <auto Member>
Field agent(Settings& settings, const KeyPath& path) {
  return &(settings.task_tool.agents[path.at(2)].*Member);
}

template <auto Member>
Field channel(Settings& settings, const KeyPath& path) {
  return &(settings.alerts.channels[path.at(2)].*Member);
}

Field tool_timeout(Settings& settings, const KeyPath& path) {
  return SecondsField{&settings.tools.deadlines.per_tool[path.at(2)]};
}

Field threshold(Settings& settings, const KeyPath& path) {
  return PolicyField{&settings.policy, {path.begin() + 1, path.end()}};
}

constexpr std::array rows{
    Row{"model.base_url",
        at<&Settings::model, &ModelClient::Options::base_url>,
        {.shape = Shape::url},
        "The model's server, OpenAI-compatible; with or without /v1.",
        "OPENAI_BASE_URL",
        "--llm-base-url"},
    Row{"model.name",
        at<&Settings::model, &ModelClient::Options::model>,
        {},
        "Which model is asked.",
        "WATCHDOG_MODEL",
        "--llm-model"},
    Row{"model.api_key",
        at<&Settings::model, &ModelClient::Options::api_key>,
        {.secret = true},
        "The API key, sent as a bearer token. Only from the environment: files like this one are "
        "copied, "
        "committed and shown around.",
        "OPENAI_API_KEY"},
    Row{"model.api_key_file",
        at<&Settings::api_key_file>,
        {},
        "A file that holds the API key and nothing else, readable by its owner only."},
    Row{"model.stream",
        at<&Settings::model, &ModelClient::Options::stream>,
        {},
        "Read answers piece by piece; each piece shows that the model works."},
    Row{"model.ca_file",
        at<&Settings::model, &ModelClient::Options::ca_file>,
        {},
        "More certificates to trust (PEM)."},

    Row{"run.max_iterations",
        at<&Settings::run, &RunOptions::iterations_max>,
        {1, 1e6},
        "The failsafe: a run ends as incomplete after so many iterations; empty: budget.steps, "
        "else 25."},
    Row{"run.status_every",
        at<&Settings::run, &RunOptions::status_every>,
        {1, 1e6},
        "Iterations between two looks of a run at its own status."},
    Row{"run.check_wait_ms",
        at<&Settings::run, &RunOptions::check_wait>,
        {0, day_ms},
        "How long such a look waits for an opinion; 0: it takes it next time."},
    Row{"run.low_confidence",
        at<&Settings::run, &RunOptions::confidence_min>,
        {0, 1},
        "A reflection below this confidence counts as low."},
    Row{"run.low_confidence_times",
        at<&Settings::run, &RunOptions::confidence_times>,
        {1, 1e6},
        "So many low ones in a row end the run."},
    Row{"run.on_confirmed_stuck",
        at<&Settings::run, &RunOptions::on_confirmed_stuck>,
        {},
        "What follows when a run is stuck and something other than a clock confirms it."},
    Row{"run.retries",
        at<&Settings::run, &RunOptions::tries>,
        {0, 1'000},
        "So often a request to the model is asked again after failures that may pass."},
    Row{"run.retry_first_ms",
        at<&Settings::run, &RunOptions::retry_first>,
        {0, day_ms},
        "The pause before the first time; doubles with each."},
    Row{"run.retry_longest_ms",
        at<&Settings::run, &RunOptions::retry_longest>,
        {0, day_ms},
        "No pause is longer than this."},

    Row{"checks.enabled",
        at<&Settings::checks, &CheckSettings::enabled>,
        {},
        "Whether a model is asked about sessions that look suspicious.",
        {},
        "--no-checks"},
    Row{"checks.on_suspicion",
        at<&Settings::checks, &CheckSettings::on_suspicion>,
        {},
        "Whether the monitor asks unasked, when a session looks stuck; an https:// server only if "
        "it "
        "is checks.base_url."},
    Row{"checks.model",
        at<&Settings::checks, &CheckSettings::options, &StatusChecker::Options::model>,
        {},
        "Which model is asked; empty: model.name."},
    Row{"checks.base_url",
        at<&Settings::checks, &CheckSettings::base_url>,
        {.shape = Shape::url},
        "A server for checks alone, without the API key; empty: model.base_url."},
    Row{"checks.share_server",
        at<&Settings::checks, &CheckSettings::share_server>,
        {},
        "Ask the agent's own server even where that makes it read the agent's prompt again."},
    Row{"checks.output_tokens_max",
        at<&Settings::checks, &CheckSettings::options, &StatusChecker::Options::output_tokens_max>,
        {16, 4'096},
        "Tokens of an answer."},
    Row{"checks.workers",
        at<&Settings::checks, &CheckSettings::options, &StatusChecker::Options::workers>,
        {1, 64},
        "So many questions are asked at a time."},
    Row{"checks.per_session_max",
        at<&Settings::checks, &CheckSettings::options, &StatusChecker::Options::per_session_max>,
        {0, 1e6},
        "Checks of one session."},
    Row{"checks.apart_ms",
        at<&Settings::checks, &CheckSettings::options, &StatusChecker::Options::apart>,
        {0, day_ms},
        "Between two of a session that nobody asked for; doubles with each."},

    Row{"policy.heartbeatInterval",
        threshold,
        {},
        "How often a live agent says so, in milliseconds."},
    Row{"policy.stuckThreshold",
        threshold,
        {},
        "Loop heartbeats without a state change that make a session stuck."},
    Row{"policy.silenceIntervals",
        threshold,
        {},
        "Missed heartbeats before silence, on top of the longest gap seen lately."},
    Row{"policy.callIdleMax",
        threshold,
        {},
        "How long an open tool call excuses missing state changes, in milliseconds."},
    Row{"policy.enableConcurrentChecks",
        threshold,
        {},
        "Whether a model may be asked about a suspicious session."},
    Row{"policy.usualInterval",
        threshold,
        {},
        "Expected between two changes before a session's own are known, in milliseconds."},
    Row{"policy.slowDeviations",
        threshold,
        {},
        "Deviations from its own pace from which on a session is slow."},
    Row{"policy.suspectDeviations",
        threshold,
        {},
        "The same from which on it is suspect, if nothing else moves."},
    Row{"policy.slowMin", threshold, {}, "Nothing quicker is called slow, in milliseconds."},
    Row{"policy.suspectMin", threshold, {}, "Nothing quicker is called suspect, in milliseconds."},
    Row{"policy.repeatedOf20",
        threshold,
        {},
        "Repeated calls among the latest 20 rounds that convict."},
    Row{"policy.recoveryChanges", threshold, {}, "New states that revoke an alarm."},
    Row{"policy.patterns.*.suspect",
        threshold,
        {},
        "From which count on the pattern makes a session suspect."},
    Row{"policy.patterns.*.stuck", threshold, {}, "From which on it convicts; 0: never."},
    Row{"policy.tools.*.use", threshold, {}, "What a tool does: ordinary, paging, poll or exempt."},
    Row{"policy.tools.*.identity",
        threshold,
        {},
        "An array of the arguments that tell two calls apart; empty: all."},

    Row{"budget.steps",
        at<&Settings::budget, &BudgetSettings::limits, &BudgetLimits::steps>,
        {1, many},
        "Steps of a run: model responses with their tool calls."},
    Row{"budget.tool_calls",
        at<&Settings::budget, &BudgetSettings::limits, &BudgetLimits::tool_calls>,
        {0, many},
        "Tool calls of a run; 0: it has to do without."},
    Row{"budget.tokens",
        at<&Settings::budget, &BudgetSettings::limits, &BudgetLimits::tokens>,
        {1, many},
        "Tokens of a run, read and written."},
    Row{"budget.cost",
        at<&Settings::budget, &BudgetSettings::limits, &BudgetLimits::cost>,
        {0, 1e12},
        "Cost of a run, in whatever currency is counted."},
    Row{"budget.duration_seconds",
        at<&Settings::budget, &BudgetSettings::limits, &BudgetLimits::duration>,
        {1, year_seconds},
        "Shown to the model; ends nothing unless enforce_time is true."},
    Row{"budget.enforce_time",
        at<&Settings::budget, &BudgetSettings::thresholds, &BudgetThresholds::enforce_time>,
        {},
        "Whether the duration ends the run."},
    Row{"budget.visibility",
        at<&Settings::run, &RunOptions::budget_visibility>,
        {},
        "When the model is shown its budget; thresholds: as a stage begins, and from 70 % on."},

    Row{"migration.status_based",
        at<&Settings::run, &RunOptions::old_limits, &OldLimits::mode>,
        {},
        "\"1\": no time limits. \"0\": those below end runs. \"compare\": they only record when "
        "they would have.",
        "AUTONOMOUS_STATUS_BASED_TIMEOUT"},
    Row{"migration.planning_ms",
        at<&Settings::run, &RunOptions::old_limits, &OldLimits::planning>,
        {0, 7 * day_ms},
        "Old limit of phase planning; 0: none, here and below."},
    Row{"migration.implementation_ms",
        at<&Settings::run, &RunOptions::old_limits, &OldLimits::implementation>,
        {0, 7 * day_ms},
        "Old limit of phase implementation."},
    Row{"migration.deployment_ms",
        at<&Settings::run, &RunOptions::old_limits, &OldLimits::deployment>,
        {0, 7 * day_ms},
        "Old limit of phase deployment."},
    Row{"migration.tool_ms",
        at<&Settings::run, &RunOptions::old_limits, &OldLimits::tool>,
        {0, 7 * day_ms},
        "Old limit of one tool call."},
    Row{"migration.task_ms",
        at<&Settings::run, &RunOptions::old_limits, &OldLimits::task>,
        {0, 7 * day_ms},
        "Old limit of a whole run."},
    Row{"migration.health_attempts",
        at<&Settings::run, &RunOptions::old_limits, &OldLimits::health_attempts>,
        {0, 1e6},
        "Old limit of tries of one request to the model."},

    Row{"task_tool.default_timeout_seconds",
        at<&Settings::task_tool, &TaskToolSettings::default_timeout>,
        {1, year_seconds},
        "Of a task whose type of agent has none of its own."},
    Row{"task_tool.agents.*.max_steps",
        agent<&AgentLimits::steps>,
        {1, many},
        "Steps of a task of this type of agent."},
    Row{"task_tool.agents.*.default_timeout_seconds",
        agent<&AgentLimits::timeout>,
        {1, year_seconds},
        "Of a task of this type of agent, where the model says nothing else."},
    Row{"task_tool.budget.wrap_up_threshold_percent",
        at<&Settings::task_tool, &TaskToolSettings::thresholds, &BudgetThresholds::low>,
        {1, 100},
        "From here on a task's model is advised to wrap up."},
    Row{"task_tool.budget.warn_threshold_percent",
        at<&Settings::task_tool, &TaskToolSettings::thresholds, &BudgetThresholds::warn>,
        {1, 100},
        "From here on its parent is warned."},
    Row{"task_tool.budget.timeout_force_exit_percent",
        at<&Settings::task_tool, &TaskToolSettings::thresholds, &BudgetThresholds::finalize>,
        {1, 100},
        "From here on one turn for the final answer is left."},

    Row{"tools.profile",
        at<&Settings::tools, &ToolSettings::deadlines, &DeadlineSettings::profile>,
        {},
        "How long a tool call may go without progress: autonomous 120 s, interactive 30 s and 45 s "
        "in all, batch 600 s."},
    Row{"tools.timeout_seconds",
        at<&Settings::tools, &ToolSettings::deadlines, &DeadlineSettings::timeout>,
        {0, day_seconds},
        "The same for tools that say nothing themselves, instead of the profile's; 0: none.",
        "AGENT_TOOL_TIMEOUT"},
    Row{"tools.hint_max_seconds",
        at<&Settings::tools, &ToolSettings::deadlines, &DeadlineSettings::hint_max>,
        {1, day_seconds},
        "A model may ask for so much time at most."},
    Row{"tools.cap_seconds",
        at<&Settings::tools, &ToolSettings::cap>,
        {0, day_seconds},
        "No call runs longer in all, whatever its progress; 0: no limit."},
    Row{"tools.parallel_max",
        at<&Settings::tools, &ToolSettings::parallel_max>,
        {1, 1'000},
        "Calls of one answer that run at once."},
    Row{"tools.workers_max",
        at<&Settings::tools, &ToolSettings::workers_max>,
        {1, 1'000},
        "Threads for calls; those that hang keep theirs."},
    Row{"tools.confirm_writes",
        at<&Settings::tools, &ToolSettings::confirm_writes>,
        {},
        "Whether a person is asked before a tool changes something; where nobody can be, it is "
        "denied."},
    Row{"tools.confirm_seconds",
        at<&Settings::tools, &ToolSettings::confirm_max>,
        {0, day_seconds},
        "How long the answer is waited for before the call is denied; 0: for ever."},
    Row{"tools.artifacts",
        at<&Settings::tools, &ToolSettings::artifacts>,
        {},
        "Directory for outputs too long to be shown; empty: artifacts beside the database."},
    Row{"tools.artifact_bytes",
        at<&Settings::tools, &ToolSettings::artifact_bytes>,
        {1e6, 1e15},
        "Keep that directory below this size."},
    Row{"tools.artifact_days",
        at<&Settings::tools, &ToolSettings::artifact_days>,
        {0, 36'500},
        "Keep outputs so long."},
    Row{"tools.timeouts.*",
        tool_timeout,
        {0, day_seconds},
        "Seconds without progress of single tools, whatever they say themselves; 0: no limit."},

    Row{"privacy.patterns",
        at<&Settings::privacy, &PrivacySettings::patterns>,
        {.shape = Shape::pattern},
        "What is a secret besides keys and passwords of well-known shapes, e.g. "
        "[\"CUST-[0-9]{8}\"]."},

    Row{"alerts.on",
        at<&Settings::alerts, &AlertSettings::rules, &AlertRules::on>,
        {},
        "What people are told of."},
    Row{"alerts.hold_seconds",
        at<&Settings::alerts, &AlertSettings::rules, &AlertRules::hold>,
        {0, day_seconds},
        "A running session's trouble must hold so long before anybody is told."},
    Row{"alerts.blocked_seconds",
        at<&Settings::alerts, &AlertSettings::rules, &AlertRules::blocked_for>,
        {0, year_seconds},
        "How long a session may wait on purpose before people are told."},
    Row{"alerts.flap_changes",
        at<&Settings::alerts, &AlertSettings::rules, &AlertRules::flap_changes>,
        {0, 100},
        "Trouble that comes and goes more often than this is told once, until it is calm; 0: each "
        "time."},
    Row{"alerts.flap_seconds",
        at<&Settings::alerts, &AlertSettings::rules, &AlertRules::flap_window>,
        {1, day_seconds},
        "The time in which that is counted, and for which it must be calm."},
    Row{"alerts.messages_max",
        at<&Settings::alerts, &AlertSettings::rules, &AlertRules::messages_max>,
        {1, 1'000},
        "Messages within alerts.group_seconds; what comes more goes together in one."},
    Row{"alerts.group_seconds",
        at<&Settings::alerts, &AlertSettings::rules, &AlertRules::group_window>,
        {0, day_seconds},
        "Sessions of one parent that follow so soon go together in one message."},
    Row{"alerts.content",
        at<&Settings::alerts, &AlertSettings::content>,
        {},
        "Whether messages say what a session's task is and the error that it ended with."},
    Row{"alerts.retry_first_ms",
        at<&Settings::alerts, &AlertSettings::retry_first>,
        {1, day_ms},
        "The pause after a channel failed; doubles with each failure."},
    Row{"alerts.retry_longest_ms",
        at<&Settings::alerts, &AlertSettings::retry_longest>,
        {1, day_ms},
        "No pause is longer than this."},
    Row{"alerts.channels.*.type",
        channel<&AlertChannel::type>,
        {},
        "How people are told: by a POST, a program or the log."},
    Row{"alerts.channels.*.url",
        channel<&AlertChannel::url>,
        {.shape = Shape::url},
        "Where a webhook is."},
    Row{"alerts.channels.*.url_file",
        channel<&AlertChannel::url_file>,
        {},
        "A file with the URL and nothing else, readable by its owner only."},
    Row{"alerts.channels.*.format",
        channel<&AlertChannel::format>,
        {},
        "Whom a webhook's body is written for."},
    Row{"alerts.channels.*.secret_file",
        channel<&AlertChannel::secret_file>,
        {},
        "A file with the key that signs a webhook's body (HMAC-SHA256)."},
    Row{"alerts.channels.*.routing_key_file",
        channel<&AlertChannel::routing_key_file>,
        {},
        "A file with the key of a PagerDuty integration."},
    Row{"alerts.channels.*.ca_file",
        channel<&AlertChannel::ca_file>,
        {},
        "More certificates to trust (PEM)."},
    Row{"alerts.channels.*.command",
        channel<&AlertChannel::command>,
        {},
        "The program and its arguments, which gets the message as JSON; no shell."},
    Row{"alerts.channels.*.timeout_seconds",
        channel<&AlertChannel::timeout>,
        {1, 600},
        "How long one attempt may take."},

    Row{"monitor.db",
        at<&Settings::monitor, &MonitorSettings::db>,
        {},
        "Database file; empty: watchdog/watchdog.db in $XDG_STATE_HOME, else in ~/.local/state.",
        "WATCHDOG_DB",
        "--db"},
    Row{"monitor.bind",
        at<&Settings::monitor, &MonitorSettings::bind>,
        {},
        "Address; one that other machines reach needs TLS, or behind_proxy, and asks everybody for "
        "a token.",
        {},
        "--bind"},
    Row{"monitor.port",
        at<&Settings::monitor, &MonitorSettings::port>,
        {0, 65'535},
        "Port; 0 picks a free one.",
        {},
        "--port"},
    Row{"monitor.token_file",
        at<&Settings::monitor, &MonitorSettings::token_file>,
        {},
        "File of tokens, for its owner only, made if it is missing; empty: the database's name "
        "with "
        "-token behind it.",
        {},
        "--token-file"},
    Row{"monitor.tls_cert",
        at<&Settings::monitor, &MonitorSettings::tls_cert>,
        {},
        "Certificate and its chain (PEM): speak HTTPS.",
        {},
        "--tls-cert"},
    Row{"monitor.tls_key",
        at<&Settings::monitor, &MonitorSettings::tls_key>,
        {},
        "The certificate's key (PEM), for its owner only.",
        {},
        "--tls-key"},
    Row{"monitor.behind_proxy",
        at<&Settings::monitor, &MonitorSettings::behind_proxy>,
        {},
        "A proxy speaks TLS with everybody and passes requests on; then all need a token.",
        {},
        "--behind-proxy"},
    Row{"monitor.hosts",
        at<&Settings::monitor, &MonitorSettings::hosts>,
        {},
        "Names it answers to beside loopback's and its address, such as the proxy's."},
    Row{"monitor.requests_per_second_max",
        at<&Settings::monitor, &MonitorSettings::requests_per_second_max>,
        {0, 1e6},
        "Requests of each address of another machine; twice as many at once; 0: no limit."},
    Row{"monitor.public_url",
        at<&Settings::monitor, &MonitorSettings::public_url>,
        {.shape = Shape::url},
        "How people reach it, for links in alerts; empty: as it listens."},
    Row{"monitor.retention_days",
        at<&Settings::monitor, &MonitorSettings::retention_days>,
        {0, 36'500},
        "Keep ended sessions so long.",
        {},
        "--retention-days"},
    Row{"monitor.retention_bytes",
        at<&Settings::monitor, &MonitorSettings::retention_bytes>,
        {1e6, 1e15},
        "Keep the database below this size; ended sessions go first.",
        {},
        "--retention-bytes"},
    Row{"monitor.log_format",
        at<&Settings::monitor, &MonitorSettings::log_format>,
        {},
        "What is logged to standard error: text for people, or a JSON object a line.",
        {},
        "--log-format"},
    Row{"monitor.ping_url",
        at<&Settings::monitor, &MonitorSettings::ping_url>,
        {.shape = Shape::url},
        "Asked for while the monitor works, so that somebody else notices when it does not.",
        {},
        "--ping-url"},
    Row{"monitor.ping_interval_seconds",
        at<&Settings::monitor, &MonitorSettings::ping_interval>,
        {1, day_seconds},
        "How often."},
};

/// Seed names of what has a place beside others of its kind.
struct OtherName {
  std::string_view name;
  std::string_view key;
};
constexpr std::array other_names{
    OtherName{"task_tool.default_plan_max_steps", "task_tool.agents.plan.max_steps"},
    OtherName{"task_tool.default_explore_max_steps", "task_tool.agents.explore.max_steps"},
};

constexpr std::size_t name_bytes_max = 256;

bool matches(std::string_view pattern, const std::string& part) {
  return pattern == "*" ? !part.empty() && part.size() <= name_bytes_max : pattern == part;
}

/// What can stand for the `*` of a row.
std::vector<std::string> names_for(const Row& row, const Settings& settings) {
  std::vector<std::string> names;
  if (row.key.starts_with("task_tool.agents.")) {
    for (const auto& [name, limits] : settings.task_tool.agents) names.push_back(name);
  } else if (row.key.starts_with("policy.tools.")) {
    for (const auto& [name, rule] : settings.policy.tools) names.push_back(name);
  } else if (row.key.starts_with("alerts.channels.")) {
    for (const auto& [name, channel] : settings.alerts.channels) names.push_back(name);
  } else if (row.key.starts_with("tools.timeouts.")) {
    for (const auto& [name, time] : settings.tools.deadlines.per_tool) names.push_back(name);
  } else {
    for (const auto name : Names<Pattern>::all)
      if (is_repetition(*named<Pattern>(name))) names.emplace_back(name);
  }
  return names;
}

/// `policy.stuckThreshold` → WATCHDOG_POLICY_STUCK_THRESHOLD.
std::string variable_of(std::string_view key) {
  std::string name = "WATCHDOG_";
  for (const char c : key) {
    const auto upper = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    if (c == '.') {
      name += '_';
    } else {
      if (c >= 'A' && c <= 'Z' && name.back() != '_') name += '_';
      name += upper;
    }
  }
  return name;
}

bool is_bare(const std::string& part) {
  return !part.empty() && std::ranges::all_of(part, [](unsigned char c) {
    return (c < 0x80 && std::isalnum(c) != 0) || c == '_' || c == '-';
  });
}

}  // namespace

std::string Setting::key() const {
  return key_text(path);
}

std::vector<std::string> Setting::variables() const {
  std::vector<std::string> names;
  if (!row->variable.empty()) names.emplace_back(row->variable);
  if (row->key.starts_with("policy.tools.")) return names;  // no scalars, and any name
  for (const auto& other : other_names)
    if (other.key == key()) names.push_back(variable_of(other.name));
  names.push_back(variable_of(key()));
  return names;
}

std::optional<Setting> find_setting(const KeyPath& path) {
  const auto key = key_text(path);
  for (const auto& other : other_names)
    if (other.name == key) return find_setting(other.key);
  for (const auto& row : rows) {
    const auto parts = parts_of(row.key);
    if (std::ranges::equal(parts, path, matches)) return Setting{&row, path};
  }
  return {};
}

std::optional<Setting> find_setting(std::string_view plain_key) {
  return find_setting(parts_of(plain_key));
}

std::vector<Setting> settings_in(const Settings& settings) {
  std::vector<Setting> all;
  const auto name_in = [](const Row& row) { return row.key.find('*') != std::string_view::npos; };
  const auto table_of = [](const Row& row) { return row.key.substr(0, row.key.rfind('.')); };
  for (const auto* row = rows.begin(); row != rows.end();) {
    if (!name_in(*row)) {
      all.push_back({row, parts_of(row->key)});
      ++row;
      continue;
    }
    // All keys of one name, then all of the next.
    const auto* end = std::find_if(
        row, rows.end(), [&](const Row& other) { return table_of(other) != table_of(*row); });
    for (const auto& name : names_for(*row, settings)) {
      for (const auto* each = row; each != end; ++each) {
        auto path = parts_of(each->key);
        std::ranges::replace(path, "*", name);
        all.push_back({each, std::move(path)});
      }
    }
    row = end;
  }
  return all;
}

bool is_section(const KeyPath& path) {
  return std::ranges::any_of(rows, [&](const Row& row) {
    const auto parts = parts_of(row.key);
    return path.size() < parts.size() &&
           std::equal(path.begin(), path.end(), parts.begin(),
                      [](const auto& part, const auto& pattern) { return matches(pattern, part); });
  });
}

std::string key_text(const KeyPath& path) {
  std::string text;
  for (const auto& part : path) {
    if (!text.empty()) text += '.';
    text += is_bare(part) ? part : literal(part);
  }
  return text;
}

KeyPath parts_of(std::string_view plain_key) {
  KeyPath parts;
  for (std::size_t begin = 0; begin <= plain_key.size();) {
    const auto end = std::min(plain_key.find('.', begin), plain_key.size());
    parts.emplace_back(plain_key.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

}  // namespace watchdog
