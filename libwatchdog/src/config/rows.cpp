// Each row gets its place in the settings from a template over members, so the compiler checks it.
// In rows with a `*`, the third part of the key is the name. Asking for the field adds the name to
// its map, except for thresholds. Rows of one such table must follow each other, because
// `settings_in` lists them name by name. Ranges are in the unit of the key. Thresholds have none
// here: the policy checks its own.
#include <array>

#include "config/table.h"

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

template <auto Member>
Field at_upstream(Settings& settings, const KeyPath& path) {
  return &(settings.proxy.upstreams[path.at(2)].*Member);
}

template <auto Member>
Field proxy_budget(Settings& settings, const KeyPath& path) {
  return &(settings.proxy.budgets[path.at(2)].*Member);
}

template <auto Member>
Field price(Settings& settings, const KeyPath& path) {
  return &(settings.proxy.prices[path.at(2)].*Member);
}

template <auto Member>
Field rule(Settings& settings, const KeyPath& path) {
  return &(settings.recovery.rules[path.at(2)].*Member);
}

Field tool_timeout(Settings& settings, const KeyPath& path) {
  return SecondsField{&settings.tools.deadlines.per_tool[path.at(2)]};
}

Field threshold(Settings& settings, const KeyPath& path) {
  return PolicyField{&settings.policy, {path.begin() + 1, path.end()}};
}

constexpr std::array rows_in_order{
    Row{"model.base_url",
        at<&Settings::model, &ModelClient::Options::base_url>,
        {.shape = Shape::url},
        "URL of the model server, OpenAI-compatible, with or without /v1.",
        "OPENAI_BASE_URL",
        "--llm-base-url"},
    Row{"model.name",
        at<&Settings::model, &ModelClient::Options::model>,
        {},
        "Name of the model.",
        "WATCHDOG_MODEL",
        "--llm-model"},
    Row{"model.api_key",
        at<&Settings::model, &ModelClient::Options::api_key>,
        {.secret = true},
        "API key, sent as a bearer token. Only from the environment, because files like this one "
        "are copied, committed and shown around.",
        "OPENAI_API_KEY"},
    Row{"model.api_key_file",
        at<&Settings::api_key_file>,
        {},
        "File that holds the API key and nothing else, readable by its owner only."},
    Row{"model.ca_file",
        at<&Settings::model, &ModelClient::Options::ca_file>,
        {},
        "File with more certificates to trust (PEM), of all model servers."},

    Row{"run.max_iterations",
        at<&Settings::run, &RunOptions::iterations_max>,
        {1, 1e6},
        "Number of iterations after which a run ends as incomplete; empty: budget.steps, else 25."},
    Row{"run.on_confirmed_stuck",
        at<&Settings::run, &RunOptions::on_confirmed_stuck>,
        {},
        "What to do when a run is stuck and something other than a clock confirms it."},

    Row{"checks.enabled",
        at<&Settings::checks, &CheckSettings::enabled>,
        {},
        "Questions to a model about sessions that look suspicious.",
        {},
        "--no-checks"},
    Row{"checks.on_suspicion",
        at<&Settings::checks, &CheckSettings::on_suspicion>,
        {},
        "Let the monitor ask by itself when a session looks stuck; an https:// server only if it "
        "is checks.base_url, or the session's own agent uses it (its label server)."},
    Row{"checks.model",
        at<&Settings::checks, &CheckSettings::options, &StatusChecker::Options::model>,
        {},
        "Name of the model that is asked; empty: model.name."},
    Row{"checks.base_url",
        at<&Settings::checks, &CheckSettings::base_url>,
        {.shape = Shape::url},
        "URL of a server for checks, used without the API key; empty: model.base_url, but only "
        "while "
        "that needs not read the agent's prompt again."},

    Row{"policy.heartbeatInterval",
        threshold,
        {},
        "Milliseconds between two heartbeats of a live agent."},
    Row{"policy.stuckThreshold",
        threshold,
        {},
        "Loop heartbeats without a state change that make a session stuck."},
    Row{"policy.callIdleMax",
        threshold,
        {},
        "Milliseconds for which an open tool call explains missing state changes."},
    Row{"policy.tools.*.use", threshold, {}, "What a tool does: ordinary, paging, poll or exempt."},
    Row{"policy.tools.*.identity",
        threshold,
        {},
        "Array of the arguments that identify a call; empty: all."},

    Row{"budget.steps",
        at<&Settings::budget, &BudgetSettings::limits, &BudgetLimits::steps>,
        {1, many},
        "Steps of a run: model responses with their tool calls."},
    Row{"budget.tool_calls",
        at<&Settings::budget, &BudgetSettings::limits, &BudgetLimits::tool_calls>,
        {0, many},
        "Tool calls of a run; 0: none are allowed."},
    Row{"budget.tokens",
        at<&Settings::budget, &BudgetSettings::limits, &BudgetLimits::tokens>,
        {1, many},
        "Tokens of a run, read and written."},
    Row{"budget.cost",
        at<&Settings::budget, &BudgetSettings::limits, &BudgetLimits::cost>,
        {0, 1e12},
        "Cost of a run, in a currency of your choice; an agent that knows no prices refuses it."},
    Row{"budget.duration_seconds",
        at<&Settings::budget, &BudgetSettings::limits, &BudgetLimits::duration>,
        {1, year_seconds},
        "Seconds of a run; only shown to the model unless enforce_time is true."},
    Row{"budget.enforce_time",
        at<&Settings::budget, &BudgetSettings::thresholds, &BudgetThresholds::enforce_time>,
        {},
        "Let the duration end the run."},

    Row{"migration.status_based",
        at<&Settings::run, &RunOptions::old_limits, &OldLimits::mode>,
        {},
        "\"1\": no time limits. \"0\": the limits below end runs. \"compare\": record when they "
        "would have ended runs.",
        "AUTONOMOUS_STATUS_BASED_TIMEOUT"},
    Row{"migration.planning_ms",
        at<&Settings::run, &RunOptions::old_limits, &OldLimits::planning>,
        {0, 7 * day_ms},
        "Old limit of the phase planning in milliseconds; 0: none, here and below."},
    Row{"migration.implementation_ms",
        at<&Settings::run, &RunOptions::old_limits, &OldLimits::implementation>,
        {0, 7 * day_ms},
        "Old limit of the phase implementation in milliseconds."},
    Row{"migration.deployment_ms",
        at<&Settings::run, &RunOptions::old_limits, &OldLimits::deployment>,
        {0, 7 * day_ms},
        "Old limit of the phase deployment in milliseconds."},
    Row{"migration.tool_ms",
        at<&Settings::run, &RunOptions::old_limits, &OldLimits::tool>,
        {0, 7 * day_ms},
        "Old limit of one tool call in milliseconds."},
    Row{"migration.task_ms",
        at<&Settings::run, &RunOptions::old_limits, &OldLimits::task>,
        {0, 7 * day_ms},
        "Old limit of a whole run in milliseconds."},

    Row{"task_tool.default_timeout_seconds",
        at<&Settings::task_tool, &TaskToolSettings::default_timeout>,
        {1, year_seconds},
        "Seconds of a task whose type of agent has no setting of its own."},
    Row{"task_tool.agents.*.max_steps",
        agent<&AgentLimits::steps>,
        {1, many},
        "Steps of a task of this type of agent."},
    Row{"task_tool.agents.*.default_timeout_seconds",
        agent<&AgentLimits::timeout>,
        {1, year_seconds},
        "Seconds of a task of this type of agent, unless the model says otherwise."},
    Row{"task_tool.budget.wrap_up_threshold_percent",
        at<&Settings::task_tool, &TaskToolSettings::thresholds, &BudgetThresholds::low>,
        {1, 100},
        "Percentage of the budget from which on a task's model is advised to finish."},
    Row{"task_tool.budget.warn_threshold_percent",
        at<&Settings::task_tool, &TaskToolSettings::thresholds, &BudgetThresholds::warn>,
        {1, 100},
        "Percentage from which on the parent is warned."},
    Row{"task_tool.budget.timeout_force_exit_percent",
        at<&Settings::task_tool, &TaskToolSettings::thresholds, &BudgetThresholds::finalize>,
        {1, 100},
        "Percentage from which on one turn for the final answer is left."},

    Row{"tools.profile",
        at<&Settings::tools, &ToolSettings::deadlines, &DeadlineSettings::profile>,
        {},
        "Time that a tool call may take without progress: autonomous 120 s, interactive 30 s and "
        "45 s in all, batch 600 s."},
    Row{"tools.timeout_seconds",
        at<&Settings::tools, &ToolSettings::deadlines, &DeadlineSettings::timeout>,
        {0, day_seconds},
        "Seconds without progress for tools without a deadline of their own, instead of the "
        "profile's; 0: no limit.",
        "AGENT_TOOL_TIMEOUT"},
    Row{"tools.confirm_writes",
        at<&Settings::tools, &ToolSettings::confirm_writes>,
        {},
        "Ask a person before a tool changes something; if nobody can be asked, it is denied."},
    Row{"tools.artifacts",
        at<&Settings::tools, &ToolSettings::artifacts>,
        {},
        "Directory for outputs that are too long to be shown; empty: artifacts beside the "
        "database."},
    Row{"tools.timeouts.*",
        tool_timeout,
        {0, day_seconds},
        "Seconds without progress of single tools, whatever the tools say; 0: no limit."},

    Row{"privacy.patterns",
        at<&Settings::privacy, &PrivacySettings::patterns>,
        {.shape = Shape::pattern},
        "Secrets besides keys and passwords of well-known shapes, for example "
        "[\"CUST-[0-9]{8}\"]."},

    Row{"alerts.on",
        at<&Settings::alerts, &AlertSettings::rules, &AlertRules::on>,
        {},
        "Troubles that are alerted."},
    Row{"alerts.hold_seconds",
        at<&Settings::alerts, &AlertSettings::rules, &AlertRules::hold>,
        {0, day_seconds},
        "Seconds that a running session's trouble must last before it is alerted."},
    Row{"alerts.blocked_seconds",
        at<&Settings::alerts, &AlertSettings::rules, &AlertRules::blocked_for>,
        {0, year_seconds},
        "Seconds that a session may wait on purpose before it is alerted."},
    Row{"alerts.needs_input_seconds",
        at<&Settings::alerts, &AlertSettings::rules, &AlertRules::needs_input_for>,
        {0, year_seconds},
        "Seconds that a session may wait for a person, or for quota, before it is alerted."},
    Row{"alerts.idle_seconds",
        at<&Settings::alerts, &AlertSettings::rules, &AlertRules::idle_for>,
        {0, year_seconds},
        "Seconds after which a finished turn is alerted, if alerts.on names idle."},
    Row{"alerts.channels.*.type",
        channel<&AlertChannel::type>,
        {},
        "Kind of channel: a POST, a program, the log, e-mail, or a notification of the desktop."},
    Row{"alerts.channels.*.url",
        channel<&AlertChannel::url>,
        {},
        "URL of a webhook, or of a mail server (smtps:// or smtp://)."},
    Row{"alerts.channels.*.url_file",
        channel<&AlertChannel::url_file>,
        {},
        "File with the URL and nothing else, readable by its owner only."},
    Row{"alerts.channels.*.format",
        channel<&AlertChannel::format>,
        {},
        "Receiver that a webhook's body is written for."},
    Row{"alerts.channels.*.secret_file",
        channel<&AlertChannel::secret_file>,
        {},
        "File with the key that signs a webhook's body (HMAC-SHA256) or that of a PagerDuty "
        "integration, the token of ntfy, Telegram or Matrix, or USER:PASSWORD of a mail server."},
    Row{"alerts.channels.*.to",
        channel<&AlertChannel::to>,
        {},
        "Receiver: a chat of Telegram, a room of Matrix, or mail addresses with commas between "
        "them."},
    Row{"alerts.channels.*.from",
        channel<&AlertChannel::from>,
        {},
        "Sender of mails; empty: the first receiver."},
    Row{"alerts.channels.*.ca_file",
        channel<&AlertChannel::ca_file>,
        {},
        "File with more certificates to trust (PEM)."},
    Row{"alerts.channels.*.content",
        channel<&AlertChannel::content>,
        {},
        "Texts of sessions in messages: none, or the beginning of questions, commands, errors and "
        "tasks."},
    Row{"alerts.channels.*.command",
        channel<&AlertChannel::command>,
        {},
        "Program and its arguments, without a shell; it gets the message as JSON on standard "
        "input."},

    Row{"recovery.on_ready",
        at<&Settings::recovery, &RecoverySettings::on_ready>,
        {},
        "Program and its arguments, without a shell, to run once when the known end of a session's "
        "wait has passed and the agent has not gone on. $WATCHDOG_SESSION names the session."},

    Row{"recovery.on_ready_labels",
        at<&Settings::recovery, &RecoverySettings::on_ready_labels>,
        {},
        "Labels, as KEY:VALUE, of sessions for which on_ready also runs if the monitor does not "
        "know "
        "their process. Any program that can report can choose labels."},
    // Tables by name, as channels are: an array `[[recovery]]` beside the table `[recovery]` is not
    // TOML, and errors, variables and the audit log can name a rule.
    Row{"recovery.rules.*.on",
        rule<&RecoveryRule::on>,
        {},
        "Confirmed states of a session on which the monitor acts."},
    Row{"recovery.rules.*.step",
        rule<&RecoveryRule::step>,
        {},
        "Act: nudge (send what it repeats, in one sentence), refuse (deny the next identical "
        "call), "
        "end_call (end the processes of a command that hangs), cancel or command."},
    Row{"recovery.rules.*.command",
        rule<&RecoveryRule::command>,
        {},
        "Of the step command: program and its arguments, without a shell. It reads the facts as "
        "JSON "
        "from its standard input."},
    Row{"recovery.rules.*.agent",
        rule<&RecoveryRule::agent>,
        {},
        "Agent of the sessions that the rule is for, such as claude-code; empty: any."},
    Row{"recovery.rules.*.label",
        rule<&RecoveryRule::label>,
        {},
        "Label, as KEY:VALUE, of the sessions that the rule is for; empty: all."},
    Row{"recovery.rules.*.at_most",
        rule<&RecoveryRule::at_most>,
        {1, 10},
        "Number of acts for each verdict; of nudge at most 2, of end_call and command 3, of cancel "
        "1."},
    Row{"recovery.rules.*.dry_run",
        rule<&RecoveryRule::dry_run>,
        {},
        "Record what the rule would do, and do nothing."},
    Row{"recovery.rules.*.hold_out",
        rule<&RecoveryRule::hold_out>,
        {0, 0.5},
        "Share of verdicts on which nothing is done. `recovery report` compares them with acts."},

    Row{"recovery.bundle_git",
        at<&Settings::recovery, &RecoverySettings::bundle_git>,
        {},
        "Name the files that git says have changed in a session's evidence bundle, without their "
        "contents."},
    Row{"recovery.diagnose",
        at<&Settings::recovery, &RecoverySettings::diagnose>,
        {},
        "Program and its arguments, without a shell, to run once when a model server on this "
        "machine hangs, for example [\"py-spy\", \"dump\", \"--pid\", \"{pid}\"]. Bundles contain "
        "what it prints."},

    Row{"monitor.db",
        at<&Settings::monitor, &MonitorSettings::db>,
        {},
        "Database file; empty: watchdog/watchdog.db in $XDG_STATE_HOME, else in ~/.local/state.",
        "WATCHDOG_DB",
        "--db"},
    Row{"monitor.bind",
        at<&Settings::monitor, &MonitorSettings::bind>,
        {},
        "Address to listen on; one that other machines reach needs TLS or behind_proxy, and all "
        "requests need a token.",
        {},
        "--bind"},
    Row{"monitor.port",
        at<&Settings::monitor, &MonitorSettings::port>,
        {0, 65'535},
        "Port; 0 picks a free one.",
        {},
        "--port"},
    Row{"monitor.otlp_port",
        at<&Settings::monitor, &MonitorSettings::otlp_port>,
        {0, 65'535},
        "Second port, for OpenTelemetry alone; 0 picks a free one. Exporters that are not "
        "configured send to 4318; empty: none.",
        {},
        "--otlp"},
    Row{"monitor.token_file",
        at<&Settings::monitor, &MonitorSettings::token_file>,
        {},
        "File of tokens, readable by its owner only, created if missing; empty: the name of the "
        "database with the suffix -token.",
        {},
        "--token-file"},
    Row{"monitor.tls_cert",
        at<&Settings::monitor, &MonitorSettings::tls_cert>,
        {},
        "File with a certificate and its chain (PEM), to serve HTTPS.",
        {},
        "--tls-cert"},
    Row{"monitor.tls_key",
        at<&Settings::monitor, &MonitorSettings::tls_key>,
        {},
        "File with the certificate's key (PEM), readable by its owner only.",
        {},
        "--tls-key"},
    Row{"monitor.behind_proxy",
        at<&Settings::monitor, &MonitorSettings::behind_proxy>,
        {},
        "Trust a TLS-terminating reverse proxy in front of the monitor; all requests then need a "
        "token.",
        {},
        "--behind-proxy"},
    Row{"monitor.hosts",
        at<&Settings::monitor, &MonitorSettings::hosts>,
        {},
        "Host names to accept besides loopback and the address, such as that of a reverse proxy."},
    Row{"monitor.public_url",
        at<&Settings::monitor, &MonitorSettings::public_url>,
        {.shape = Shape::url},
        "URL for links in alerts; empty: the address that it listens on."},
    Row{"monitor.retention_days",
        at<&Settings::monitor, &MonitorSettings::retention_days>,
        {0, 36'500},
        "Days to keep ended sessions.",
        {},
        "--retention-days"},
    Row{"monitor.retention_bytes",
        at<&Settings::monitor, &MonitorSettings::retention_bytes>,
        {1e6, 1e15},
        "Bytes to keep the database below; ended sessions are dropped first.",
        {},
        "--retention-bytes"},
    Row{"monitor.log_format",
        at<&Settings::monitor, &MonitorSettings::log_format>,
        {},
        "Format of the log on standard error: text, or one JSON object per line.",
        {},
        "--log-format"},
    Row{"monitor.ping_url",
        at<&Settings::monitor, &MonitorSettings::ping_url>,
        {.shape = Shape::url},
        "URL to request while the monitor is healthy (dead man's switch).",
        {},
        "--ping-url"},

    Row{"export.otlp.endpoint",
        at<&Settings::export_otlp, &ExportSettings::endpoint>,
        {.shape = Shape::url},
        "URL of an OpenTelemetry collector that gets sessions as traces and changes of health as "
        "logs, over HTTP, without /v1/traces; empty: none."},
    Row{"export.otlp.headers_file",
        at<&Settings::export_otlp, &ExportSettings::headers_file>,
        {},
        "File with one \"Name: value\" header per line for the collector, readable by its owner "
        "only."},

    Row{"proxy.upstream",
        at<&Settings::proxy, &ProxySettings::upstream>,
        {.shape = Shape::url},
        "URL of the model server that requests are passed to, with or without /v1; empty: no "
        "proxy.",
        {},
        "--upstream"},
    Row{"proxy.port",
        at<&Settings::proxy, &ProxySettings::port>,
        {0, 65'535},
        "Port for agents, at monitor.bind; 0 picks a free one.",
        {},
        "--proxy-port"},
    Row{"proxy.keep_alive",
        at<&Settings::proxy, &ProxySettings::keep_alive>,
        {},
        "Keep-alives for clients while their model server works: comment, empty_delta (pieces "
        "without content), whitespace (also blanks before an answer in one piece), or off. With "
        "whitespace, errors come with status 200.",
        {},
        "--keep-alive"},
    Row{"proxy.assume_working_seconds",
        at<&Settings::proxy, &ProxySettings::assume_working>,
        {0, day_seconds},
        "Seconds without a byte from the server for which keep-alives go on although nothing shows "
        "whether it works. You vouch for it: clients of a hung server wait that much longer."},
    Row{"proxy.on_hung",
        at<&Settings::proxy, &ProxySettings::on_hung>,
        {},
        "What to do when two signs show that the server hangs: wait, or fail the request with an "
        "error that says so."},
    Row{"proxy.probe",
        at<&Settings::proxy, &ProxySettings::probe>,
        {},
        "Questions to the server about its state while requests are open.",
        {},
        "--no-probe"},
    Row{"proxy.api_key_file",
        at<&Settings::proxy, &ProxySettings::api_key_file>,
        {},
        "File with the key for questions to the server, readable by its owner only; requests carry "
        "their own keys."},
    Row{"proxy.allowed_origins",
        at<&Settings::proxy, &ProxySettings::allowed_origins>,
        {},
        "Origins of web pages that may use the model server through the proxy, for example "
        "[\"http://localhost:8080\"]."},
    Row{"proxy.upstreams.*.url",
        at_upstream<&ProxyUpstream::url>,
        {.shape = Shape::url},
        "URL of another model server;"},
    Row{"proxy.upstreams.*.models",
        at_upstream<&ProxyUpstream::models>,
        {},
        "names of the models that go there; a * stands for any characters."},
    Row{"proxy.upstreams.*.api_key_file",
        at_upstream<&ProxyUpstream::api_key_file>,
        {},
        "The same as proxy.api_key_file."},
    Row{"proxy.budgets.*.per",
        proxy_budget<&ProxyBudget::per>,
        {},
        "Whose tokens and cost are counted together: those of each session, agent, client, model "
        "or server, or of all in a day."},
    Row{"proxy.budgets.*.tokens",
        proxy_budget<&ProxyBudget::tokens>,
        {1, static_cast<double>(budget_max)},
        "Tokens of prompts and answers, also of prompts that the server had cached."},
    Row{"proxy.budgets.*.cost",
        proxy_budget<&ProxyBudget::cost>,
        {0.000'001, 1e9},
        "Cost by the tables of proxy.prices, in their currency."},
    Row{"proxy.budgets.*.refuse",
        proxy_budget<&ProxyBudget::refuse>,
        {},
        "Refuse the next request when the budget is used up, with an error in the client's own "
        "form."},
    Row{"proxy.prices.*.models",
        price<&ModelPrice::models>,
        {},
        "Names of the models that the prices are for; a * stands for any characters."},
    Row{"proxy.prices.*.input_per_million",
        price<&ModelPrice::input_per_million>,
        {0, 1e6},
        "Price of a million tokens of prompts."},
    Row{"proxy.prices.*.cached_per_million",
        price<&ModelPrice::cached_per_million>,
        {0, 1e6},
        "Price of a million tokens of prompts that the server had cached; without it, that of "
        "others."},
    Row{"proxy.prices.*.output_per_million",
        price<&ModelPrice::output_per_million>,
        {0, 1e6},
        "Price of a million tokens of answers."},
};

}  // namespace

std::span<const Row> setting_rows() noexcept {
  return rows_in_order;
}

}  // namespace watchdog
