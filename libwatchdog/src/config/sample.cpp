// A sample of the settings file, and the list of all settings. Both are made of the table of rows:
// each setting is written as a comment with its default. Only tables whose names users choose are
// written out here, because the table of rows has no names for them.
#include <set>

#include "config/own_names.h"
#include "config/table.h"
#include "watchdog/settings.h"

namespace watchdog {
namespace {

constexpr std::string_view head =
    "# Settings of watchdog-monitor and of agents that use libwatchdog. Commented values are the "
    "defaults.\n"
    "#\n"
    "# This file is --config, else $WATCHDOG_CONFIG, else $XDG_CONFIG_HOME/watchdog/watchdog.toml, "
    "else\n"
    "# ~/.config/watchdog/watchdog.toml. The environment overrides it, and the command line "
    "overrides both.\n"
    "# Each setting has the variable WATCHDOG_<SECTION>_<KEY>; other variables and flags are "
    "named.\n"
    "# The ranges of [policy] are in schemas/policy.schema.json.\n";

/// Names of tools are the user's: nothing of it is a default.
constexpr std::string_view tools =
    "\n[policy.tools.build_status]\n"
    "# What a tool does: ordinary, paging, poll or exempt.\n"
    "#use = \"ordinary\"\n"
    "# Array of the arguments that identify a call; empty: all.\n"
    "#identity = []\n";

/// So are names of channels.
constexpr std::string_view channels =
    "\n# You choose the names of channels. A webhook (format json, slack, ntfy, discord, teams, "
    "telegram,\n# matrix or pagerduty), e-mail, the desktop, a program, the log. `watchdog-monitor "
    "alerts setup` asks\n# for what one needs, and writes it here:\n"
    "#     [alerts.channels.team]\n"
    "#     type = \"webhook\"\n"
    "#     format = \"slack\"\n"
    "#     url_file = \"/etc/watchdog/slack-url\"      # or url; of mode 0600, as all of these "
    "files\n"
    "#     [alerts.channels.phone]\n"
    "#     format = \"ntfy\"\n"
    "#     url = \"https://ntfy.sh/TOPIC\"\n"
    "#     [alerts.channels.chat]\n"
    "#     format = \"telegram\"\n"
    "#     to = \"-1001234567890\"\n"
    "#     secret_file = \"/etc/watchdog/telegram-token\"\n"
    "#     [alerts.channels.mail]\n"
    "#     type = \"mail\"\n"
    "#     url = \"smtps://smtp.example.org\"           # or smtp:// for STARTTLS\n"
    "#     to = \"me@example.org\"\n"
    "#     secret_file = \"/etc/watchdog/mail-login\"    # USER:PASSWORD\n"
    "#     [alerts.channels.desktop]\n"
    "#     type = \"desktop\"\n"
    "#     [alerts.channels.duty]\n"
    "#     type = \"webhook\"\n"
    "#     format = \"pagerduty\"\n"
    "#     secret_file = \"/etc/watchdog/pagerduty-key\"    # the key of the integration\n"
    "#     [alerts.channels.script]\n"
    "#     type = \"command\"\n"
    "#     command = [\"/usr/local/bin/notify\", \"--urgent\"]   # the message as JSON on its "
    "standard "
    "input\n"
    "#     [alerts.channels.own]\n"
    "#     type = \"webhook\"\n"
    "#     url = \"https://example.org/hook\"\n"
    "#     secret_file = \"/etc/watchdog/hook-secret\"    # signs the body: X-Watchdog-Signature\n"
    "#     ca_file = \"\"\n"
    "#     [alerts.channels.journal]\n"
    "#     type = \"log\"\n";

/// And names of further servers.
constexpr std::string_view upstreams =
    "\n# Further model servers, with names that you choose, and their models:\n"
    "#     [proxy.upstreams.small]\n"
    "#     url = \"http://127.0.0.1:11434\"\n"
    "#     models = [\"qwen3:*\", \"nomic-embed-text\"]\n";

/// And names of budgets and prices.
constexpr std::string_view budgets =
    "\n# Budgets of agents that use the proxy, with names that you choose. A notice comes at 70 "
    "and "
    "90 %.\n"
    "#     [proxy.budgets.daily]\n"
    "#     per = \"day\"\n"
    "#     cost = 20.0\n"
    "#     refuse = true    # the next request after the limit is refused\n"
    "#     [proxy.prices.large]    # of a million tokens, in your currency\n"
    "#     models = [\"claude-opus-*\"]\n"
    "#     input_per_million = 15.0\n"
    "#     cached_per_million = 1.5\n"
    "#     output_per_million = 75.0\n";

/// And names of rules.
constexpr std::string_view rules =
    "\n# What the monitor does by itself when a session is looping or stuck. You choose the names. "
    "Begin with\n# dry_run: `watchdog-monitor audit` then lists what the rule would have done.\n"
    "#     [recovery.rules.tell]\n"
    "#     on = [\"looping\"]\n"
    "#     step = \"nudge\"\n"
    "#     dry_run = true\n";

/// Meaning, range, and how else it is set.
std::string comment_of(const SettingInfo& setting) {
  std::string facts = setting.allowed;
  const auto add = [&](const std::string& fact) { facts += (facts.empty() ? "" : "; ") + fact; };
  if (setting.variables.size() > 1) add("$" + setting.variables.front());
  if (!setting.flag.empty()) add(setting.flag);
  return "# " + setting.help + (facts.empty() ? "" : " (" + facts + ")") + "\n";
}

}  // namespace

std::vector<SettingInfo> all_settings() {
  Settings defaults;
  std::vector<SettingInfo> all;
  for (const auto& setting : settings_in(defaults)) {
    const auto key = setting.key();
    const auto field = setting.field(defaults);
    const auto value = shown(field, key);
    all.push_back({.key = key,
                   .text = value.is_null() ? std::string{} : literal(value),
                   .help = std::string(setting.row->help),
                   .allowed = allowed_text(field, setting.row->allowed),
                   .variables = setting.variables(),
                   .flag = std::string(setting.row->flag)});
  }
  return all;
}

std::vector<SettingInfo> settings_of_own_names() {
  constexpr std::string_view star = "*";
  std::vector<SettingInfo> all;
  Settings example;
  for (const auto& row : setting_rows()) {
    const auto at = row.key.find(star);
    if (at == std::string_view::npos) continue;
    const auto key = std::string(row.key).replace(at, star.size(), "NAME");
    const auto field = find_setting(key).value().field(example);
    all.push_back(
        {.key = key, .help = std::string(row.help), .allowed = allowed_text(field, row.allowed)});
  }
  return all;
}

std::string sample_configuration() {
  std::string text(head);
  std::string section;
  std::set<std::string> said;  // what holds for many names is explained at the first
  for (const auto& setting : all_settings()) {
    const auto dot = setting.key.rfind('.');
    const auto own = setting.key.substr(0, dot);
    const auto name = setting.key.substr(dot + 1);
    if (own != section) {
      if (section == "policy") text += tools;
      if (section == "alerts") text += channels;
      if (section == "recovery") text += rules;
      text += "\n[" + own + "]\n";
      section = own;
    }
    if (said.insert(setting.help).second) text += comment_of(setting);
    // The key itself must not be here, and what is not limited has no value.
    if (setting.key != "model.api_key")
      text += "#" + name + " = " + (setting.text.empty() ? "…" : setting.text) + "\n";
  }
  if (section == "proxy") text.append(upstreams).append(budgets);
  return text;
}

}  // namespace watchdog
