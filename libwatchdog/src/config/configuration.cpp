// Merges the layers of settings: defaults, file, code, environment, command line. Each layer
// sets values through the table of rows, and the source of each value is kept. Mistakes are
// collected, and a refused value leaves the earlier one.
#include <unistd.h>

#include <algorithm>
#include <set>

#include "codec/json.h"
#include "config/channels.h"
#include "config/former.h"
#include "config/table.h"
#include "config/toml_leaf.h"
#include "files/regular_file.h"
#include "store/place.h"
#include "store/server.h"
#include "store/store.h"
#include "text/ascii.h"
#include "text/nearest.h"
#include "watchdog/settings.h"

namespace watchdog {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr std::size_t file_bytes_max = 1U << 20U;
constexpr std::size_t key_bytes_max = 4'096;
constexpr std::size_t mistakes_max = 100;  // more do not help

std::string variable(const Environment& environment, const std::string& name) {
  const auto found = environment.find(name);
  return found == environment.end() ? std::string{} : found->second;
}

/// Where the file is looked for if no variable names it; empty: nowhere.
fs::path default_file(const Environment& environment) {
  const fs::path config = variable(environment, "XDG_CONFIG_HOME");
  const fs::path home = variable(environment, "HOME");
  const fs::path name = fs::path("watchdog") / "watchdog.toml";
  if (config.is_absolute()) return config / name;  // as the XDG specification has it
  return home.is_absolute() ? home / ".config" / name : fs::path{};
}

std::vector<std::string> known_keys() {
  std::vector<std::string> keys;
  for (const auto& setting : all_settings()) keys.push_back(setting.key);
  return keys;
}

std::string text_of(const Setting& setting, const json& value) {
  if (value.is_null()) return {};
  if (!setting.row->allowed.secret) return literal(value);
  return value.get_ref<const std::string&>().empty() ? "" : "set";
}

/// Text without the white space around it.
std::string trimmed(const std::string& text) {
  constexpr std::string_view space = " \t\r\n";
  const auto begin = text.find_first_not_of(space);
  if (begin == std::string::npos) return {};
  return text.substr(begin, text.find_last_not_of(space) - begin + 1);
}

}  // namespace

/// Puts one layer on the other, and goes on where something is wrong.
class ConfigurationLoader {
 public:
  using Source = Configuration::Source;

  explicit ConfigurationLoader(const Sources& sources) : sources_(sources) {}

  Result<Configuration, Mistakes> load() {
    read_file();
    run_code();
    read_environment();
    read_flags();
    read_api_key();
    name_who_set_the_timeout();
    check_together();
    if (!mistakes_.empty()) return std::move(mistakes_);
    return std::move(made_);
  }

 private:
  void read_file() {
    const auto named = variable(sources_.environment, "WATCHDOG_CONFIG");
    const bool is_default = !sources_.file && named.empty();
    const auto path = sources_.file ? *sources_.file : usual_settings_file(sources_.environment);
    if (path.empty()) return;
    const auto text = read_regular_file(path, file_bytes_max, Readers::anybody);
    if (!text) {
      if (!is_default || text.error().code != ErrorCode::not_found)
        add({Origin::file, path.string()}, {}, text.error().message);
      return;
    }
    made_.file_ = path;
    const auto leaves = toml_leaves(*text);
    if (!leaves) {
      const auto& fault = leaves.error();
      add({Origin::file,
           path.string() + ":" + std::to_string(fault.line) + ":" + std::to_string(fault.column)},
          {}, fault.message);
      return;
    }
    for (const auto& leaf : *leaves) read_leaf(path, leaf);
  }

  void read_leaf(const fs::path& path, const TomlLeaf& leaf) {
    if (mistakes_.size() > mistakes_max) return;
    const Source source{Origin::file, path.string() + ":" + std::to_string(leaf.line)};
    const auto written = key_text(leaf.path);
    const auto setting = find_setting(leaf.path);
    if (const auto* former = setting ? nullptr : find_former(leaf.path)) {
      notice(source, written, *former);
      return;
    }
    if (!setting) {
      const bool empty_table = leaf.value.is_object() && leaf.value.empty();
      if (!is_section(leaf.path)) {
        add(source, written, "unknown setting " + written + suggestion(written, known_keys_));
      } else if (!empty_table) {
        add(source, written, written + " is a section: [" + written + "]");
      }
      return;
    }
    const auto key = setting->key();
    if (setting->row->allowed.secret) {
      add(source, key,
          key + " must not be in this file, which is copied, committed and shown around; use $" +
              std::string(setting->row->variable) + " or " + key + "_file");
      return;
    }
    const auto [other, is_first] = lines_.emplace(key, leaf.line);
    const bool same = !is_first && shown(setting->field(made_.settings_), key) == leaf.value;
    if (!is_first && !same) {
      add(source, written,
          written + " is another name of what line " + std::to_string(other->second) +
              " says already");
      return;
    }
    assign(*setting, leaf.value, source);
  }

  /// Changes by the code must be allowed as well.
  /// Code changes plain members, which remember no change. Their shown values tell it, by the table
  /// that lists all settings; to compare members would need a second list.
  void run_code() {
    if (!sources_.code) return;
    const auto before = shown_values();
    const auto policy = made_.settings_.policy;
    sources_.code(made_.settings_);
    if (const auto allowed = check(made_.settings_.policy); !allowed) {
      add({Origin::code, {}}, "policy." + allowed.error().field,
          "policy." + allowed.error().message);
      made_.settings_.policy = policy;
    }
    for (const auto& setting : settings_in(made_.settings_)) {
      const auto key = setting.key();
      const auto value = shown(setting.field(made_.settings_), key);
      const auto old = before.find(key);
      if (old != before.end() ? old->second == value : value.is_null()) continue;
      if (value.is_null()) {
        made_.sources_[key] = {Origin::code, {}};
      } else {
        assign(setting, value, {Origin::code, {}});
      }
    }
  }

  /// A variable may be the only place that names a channel, a tool, an upstream or an agent. A name
  /// that the file has already stays as it is written there.
  void read_names() {
    std::set<std::string> known;
    for (const auto& setting : settings_in(made_.settings_))
      known.merge(as_set(setting.variables()));
    for (const auto& [name, text] : sources_.environment) {
      if (text.empty() || known.contains(name)) continue;
      if (const auto setting = named_setting(name))
        (void)setting->field(made_.settings_);  // which adds the name
    }
  }
  static std::set<std::string> as_set(const std::vector<std::string>& names) {
    return {names.begin(), names.end()};
  }

  void read_environment() {
    read_names();
    std::set<std::string> known;
    for (const auto& setting : settings_in(made_.settings_)) {
      for (const auto& name : setting.variables()) {
        known.insert(name);
        const auto text = variable(sources_.environment, name);
        if (!text.empty())
          assign(setting, parsed(setting.field(made_.settings_), text),
                 {Origin::environment, name});
      }
    }
    read_other_variables(known);
  }

  /// Others may have variables of their own; one that is nearly ours is a slip.
  void read_other_variables(const std::set<std::string>& known) {
    const std::vector<std::string> names(known.begin(), known.end());
    for (const auto& [name, text] : sources_.environment) {
      if (!name.starts_with("WATCHDOG_") || text.empty() || known.contains(name)) continue;
      if (std::ranges::count(name, '_') < 2 || name == "WATCHDOG_CONFIG") continue;
      if (name == internal_times) {
        read_internal_times(text);
      } else if (const auto* former = find_former_variable(name)) {
        notice({Origin::environment, name}, std::string(former->key), *former);
      } else if (const auto near = suggestion(name, names); !near.empty()) {
        add({Origin::environment, name}, {}, "there is no such variable" + near);
      }
    }
  }

  void read_internal_times(const std::string& list) {
    const Source source{Origin::environment, std::string(internal_times)};
    for (std::size_t begin = 0; begin < list.size();) {
      const auto end = std::min(list.find(',', begin), list.size());
      const auto pair = list.substr(begin, end - begin);
      const auto equals = std::min(pair.find('='), pair.size());
      const auto key = pair.substr(0, equals);
      const auto path = parts_of(key);
      const auto* former = find_former(path);
      begin = end + 1;
      if (former == nullptr || former->field == nullptr || equals == pair.size()) {
        add(source, key, "there is no internal time " + key);
        continue;
      }
      constexpr double most = 1e15;
      const auto field = former->field(made_.settings_, path);
      const auto done = set(field, parsed(field, pair.substr(equals + 1)), key, {0, most});
      if (!done) add(source, key, key + " " + done.error().message);
    }
  }

  void read_flags() {
    for (const auto& [key, text] : sources_.flags) {
      const auto setting = find_setting(std::string_view(key));
      const auto flag = setting ? std::string(setting->row->flag) : std::string{};
      const Source source{Origin::command_line, flag.empty() ? key : flag};
      if (const auto* former = setting ? nullptr : find_former(parts_of(key))) {
        notice(source, key, *former);
      } else if (!setting) {
        add(source, key, "unknown setting " + key + suggestion(key, known_keys_));
      } else if (setting->row->allowed.secret) {
        add(source, key, key + " must not be on a command line, which everybody can list");
      } else {
        assign(*setting, parsed(setting->field(made_.settings_), text), source);
      }
    }
  }

  /// A file with the key counts as the key, with the rank of the file's source. It also goes before
  /// the variable that other programs have for the keys of other servers.
  void read_api_key() {
    const auto& path = made_.settings_.api_key_file;
    const auto source = source_of("model.api_key_file");
    const auto known = source_of("model.api_key");
    const bool is_of_others =
        known.origin == Origin::environment && known.where == "OPENAI_API_KEY";
    if (path.empty() || (source.origin < known.origin && !is_of_others)) return;
    const auto text = read_regular_file(path, key_bytes_max, Readers::owner);
    const auto key = text ? trimmed(*text) : std::string{};
    if (!text) {
      add(source, "model.api_key_file",
          "model.api_key_file: " + path.string() + " " + text.error().message);
    } else if (key.empty()) {
      add(source, "model.api_key_file", "model.api_key_file: " + path.string() + " holds no key");
    } else {
      assign(*find_setting("model.api_key"), key, source);
    }
  }

  /// For the provenance of each call's deadline. Code names itself, if it wants to.
  void name_who_set_the_timeout() {
    const auto source = source_of("tools.timeout_seconds");
    if (!source.where.empty()) made_.settings_.tools.deadlines.timeout_origin = source.where;
  }

  void check_together() {
    const auto& settings = made_.settings_;
    const auto& budget = settings.task_tool.thresholds;
    if (!(budget.low < budget.warn && budget.warn < budget.finalize)) {
      add(highest("task_tool.budget."), "task_tool.budget",
          "task_tool.budget: wrap_up_threshold_percent (" + literal(budget.low * 100) +
              "), warn_threshold_percent (" + literal(budget.warn * 100) +
              ") and timeout_force_exit_percent (" + literal(budget.finalize * 100) +
              ") must ascend");
    }
    if (settings.monitor.tls_cert.empty() != settings.monitor.tls_key.empty()) {
      add(highest("monitor.tls_"), "monitor.tls_cert",
          "monitor.tls_cert and monitor.tls_key belong together: set both or none");
    }
    for (auto& fault : channel_faults(settings.alerts)) {
      const auto own = source_of(fault.key);
      add(own.where.empty() ? highest("alerts.") : own, fault.key, std::move(fault.message));
    }
    check_upstreams(settings.proxy);
    check_budgets(settings.proxy);
    check_rules(settings.recovery);
    if (const auto allowed = check_database_url(settings.monitor.db); !allowed)
      add(source_of("monitor.db"), "monitor.db", "monitor.db: " + allowed.error().message);
    if (const auto allowed = check(patched(Policy{}, settings.policy)); !allowed) {
      const auto& error = allowed.error();
      add(highest("policy."), "policy." + error.field, "policy." + error.message);
    }
  }

  void check_upstreams(const ProxySettings& proxy) {
    for (const auto& [name, upstream] : proxy.upstreams) {
      const auto key = key_text({"proxy", "upstreams", name});
      if (upstream.url.empty()) add(highest(key + "."), key, key + ".url is missing");
      if (upstream.models.empty()) {
        add(highest(key + "."), key, key + ".models is missing: whose requests does it get?");
      }
    }
    if (!proxy.upstreams.empty() && proxy.upstream.empty()) {
      add(highest("proxy.upstreams."), "proxy.upstream",
          "proxy.upstream is missing: the server of all requests that none of proxy.upstreams "
          "gets");
    }
  }

  void check_budgets(const ProxySettings& proxy) {
    for (const auto& [name, budget] : proxy.budgets) {
      const auto key = key_text({"proxy", "budgets", name});
      const auto refuse = [&](const std::string& why) { add(highest(key + "."), key, key + why); };
      if (!is_plain_name(name)) refuse(": a budget's name is 1 to 64 letters, digits, _ and -");
      if (!budget.tokens && !budget.cost) refuse(" has no limit; set tokens, cost or both");
      if (budget.cost && proxy.prices.empty())
        refuse(".cost needs prices; add a table [proxy.prices.NAME]");
    }
    for (const auto& [name, price] : proxy.prices) {
      const auto key = key_text({"proxy", "prices", name});
      if (price.models.empty())
        add(highest(key + "."), key, key + ".models is missing: which models cost that?");
    }
  }

  /// Acts of a rule for each verdict, at most. A third nudge would repeat what did not help twice.
  static constexpr int acts_max(RecoveryStep step) {
    switch (step) {
      case RecoveryStep::nudge:
        return 2;
      case RecoveryStep::refuse:
        return 10;
      case RecoveryStep::end_call:
      case RecoveryStep::command:
        return 3;
      case RecoveryStep::cancel:
        break;
    }
    return 1;
  }

  /// A step must fit the states. `refuse` takes a field, and why it is wrong.
  template <class Refuse>
  static void check_states(const RecoveryRule& rule, const Refuse& refuse) {
    if (rule.on.empty()) refuse("on", "is empty; it must name a state, such as \"looping\"");
    for (const auto state : rule.on) {
      const bool repeats = state == RecoveryState::looping || state == RecoveryState::stuck;
      const bool fits =
          rule.step == RecoveryStep::command ||
          (rule.step == RecoveryStep::end_call ? state == RecoveryState::quiet : repeats);
      if (!fits)
        refuse("on",
               "has " + literal(std::string(name_of(state))) + "; the step " +
                   std::string(name_of(rule.step)) +
                   (rule.step == RecoveryStep::end_call ? " needs on = [\"quiet\"]"
                                                        : " is for \"looping\" and \"stuck\""));
    }
  }

  /// No rule may do more than its step allows.
  void check_rules(const RecoverySettings& recovery) {
    constexpr std::size_t rules_max = 16;
    if (recovery.rules.size() > rules_max) {
      add(highest("recovery.rules."), "recovery.rules",
          "recovery.rules has " + std::to_string(recovery.rules.size()) + " rules; at most " +
              std::to_string(rules_max) + " are allowed");
    }
    for (const auto& [name, rule] : recovery.rules) {
      const auto key = key_text({"recovery", "rules", name});
      const auto refuse = [&](const char* field, const std::string& why) {
        const auto own = key + "." + field;
        const auto source = source_of(own);
        add(source.where.empty() ? highest(key + ".") : source, own, own + " " + why);
      };
      if (!is_plain_name(name))
        add(highest(key + "."), key, key + ": a rule's name is 1 to 64 letters, digits, _ and -");
      check_states(rule, refuse);
      if ((rule.step == RecoveryStep::command) == rule.command.empty())
        refuse("command", rule.command.empty() ? "is missing; the step command runs it"
                                               : "is set; only the step command runs it");
      const auto most = acts_max(rule.step);
      if (rule.at_most > most) {
        refuse("at_most", "is " + std::to_string(rule.at_most) + "; of the step " +
                              std::string(name_of(rule.step)) + " at most " + std::to_string(most) +
                              (most == 1 ? " is allowed" : " are allowed"));
      }
      const auto colon = rule.label.find(':');
      if (!rule.label.empty() && (colon == 0 || colon == std::string::npos))
        refuse("label", "is " + literal(rule.label) + "; it must be KEY:VALUE");
    }
  }

  void assign(const Setting& setting, const json& value, const Source& source) {
    const auto key = setting.key();
    const auto done = set(setting.field(made_.settings_), value, key, setting.row->allowed);
    if (done) {
      made_.sources_[key] = source;
      return;
    }
    const auto& error = done.error();
    // Of a threshold the message begins with its own name.
    add(source, key, error.field.empty() ? key + " " + error.message : "policy." + error.message);
  }

  void notice(const Source& source, std::string key, const FormerKey& former) {
    if (made_.notices_.size() >= mistakes_max) return;
    auto message = key + " has no effect since 0.2: " + std::string(former.now);
    made_.notices_.push_back({source.origin, source.where, std::move(key), std::move(message)});
  }

  void add(const Source& source, std::string key, std::string message) {
    if (mistakes_.size() > mistakes_max) return;
    if (mistakes_.size() == mistakes_max) {
      key.clear();
      message = "there are more mistakes than these " + std::to_string(mistakes_max);
    }
    mistakes_.push_back({source.origin, source.where, std::move(key), std::move(message)});
  }

  [[nodiscard]] Source source_of(const std::string& key) const {
    const auto found = made_.sources_.find(key);
    return found == made_.sources_.end() ? Source{} : found->second;
  }

  /// Returns the highest source of the keys with this prefix.
  [[nodiscard]] Source highest(std::string_view prefix) const {
    Source found;
    for (const auto& [key, source] : made_.sources_)
      if (key.starts_with(prefix) && source.origin > found.origin) found = source;
    return found;
  }

  [[nodiscard]] std::map<std::string, json> shown_values() {
    std::map<std::string, json> values;
    for (const auto& setting : settings_in(made_.settings_))
      values[setting.key()] = shown(setting.field(made_.settings_), setting.key());
    return values;
  }

  const Sources& sources_;
  const std::vector<std::string> known_keys_ = known_keys();
  Configuration made_;
  std::map<std::string, int> lines_;  // of the file, by key
  Mistakes mistakes_;
};

Result<Configuration, Mistakes> Configuration::load(const Sources& sources) {
  return ConfigurationLoader(sources).load();
}

std::vector<Configuration::Value> Configuration::values() const {
  auto settings = settings_;
  std::vector<Value> all;
  for (const auto& setting : settings_in(settings)) {
    const auto key = setting.key();
    const auto found = sources_.find(key);
    const auto source = found == sources_.end() ? Source{} : found->second;
    all.push_back(
        {key, text_of(setting, shown(setting.field(settings), key)), source.origin, source.where});
  }
  return all;
}

fs::path usual_settings_file(const Environment& environment) {
  const auto named = variable(environment, "WATCHDOG_CONFIG");
  return named.empty() ? default_file(environment) : fs::path(named);
}

std::string to_text(const Mistakes& mistakes) {
  std::string text;
  for (const auto& mistake : mistakes)
    text += (mistake.where.empty() ? std::string(name_of(mistake.origin)) : mistake.where) + ": " +
            mistake.message + "\n";
  return text;
}

Environment process_environment() {
  Environment all;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const auto equals = text.find('=');
    if (equals != std::string_view::npos)
      all.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return all;
}

ModelClient::Options check_client(const Settings& settings) {
  auto options = settings.model;
  if (settings.checks.base_url.empty()) return options;
  options.base_url = settings.checks.base_url;
  options.api_key.clear();
  return options;
}

std::filesystem::path database_of(const Settings& settings) {
  return settings.monitor.db.empty() ? default_database() : settings.monitor.db;
}

std::filesystem::path token_file(const Settings& settings) {
  if (!settings.monitor.token_file.empty()) return settings.monitor.token_file;
  const auto database = database_of(settings);
  if (is_server_url(database)) return folder_beside(database) / "server-token";
  return database.string() + "-token";
}

ExecutorOptions executor_options(const Settings& settings) {
  const auto& tools = settings.tools;
  return {.deadlines = tools.deadlines,
          .cap = tools.cap && tools.cap->count() > 0 ? tools.cap : std::nullopt};
}

Result<ArtifactStore> open_artifacts(const Settings& settings, std::string_view run) {
  auto directory = settings.tools.artifacts;
  if (directory.empty()) {
    const auto database = database_of(settings);
    if (auto made = make_file(database); !made) return made.error();  // in a private directory
    directory = database.parent_path() / "artifacts";
  }
  return ArtifactStore::open(directory, run, {});
}

}  // namespace watchdog
