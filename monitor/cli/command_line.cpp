// Which options a command has, and what its help says. Each setting is an option of the commands
// that use it, with the text and the bounds of the table of settings. Before a command runs, the
// place of its server or database is looked up, once and in the same order for all.
#include "cli/command_line.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "store/server.h"

namespace watchdog::monitor {
namespace {

/// Where `--help` lists a setting.
const char* group_of(const std::string& key) {
  if (key.starts_with("proxy.")) return "Proxy";
  if (key.starts_with("model.") || key.starts_with("checks.")) return "Model checks";
  if (key == "monitor.db" || key.starts_with("monitor.retention_")) return "Storage";
  if (key == "monitor.token_file" || key == "monitor.behind_proxy") return "Access";
  if (key == "monitor.log_format" || key == "monitor.ping_url") return "Operation";
  return key.starts_with("monitor.") ? "Network" : "Options";
}

/// The noun of a setting's value.
const char* noun_of(const std::string& key) {
  for (const auto& [end, noun] : {std::pair{"port", "PORT"},
                                  {"_days", "DAYS"},
                                  {"_bytes", "BYTES"},
                                  {"url", "URL"},
                                  {".upstream", "URL"},
                                  {".db", "FILE"},
                                  {"_file", "FILE"},
                                  {"_cert", "FILE"},
                                  {"_key", "FILE"},
                                  {".bind", "ADDRESS"},
                                  {".name", "NAME"}}) {
    if (key.ends_with(end)) return noun;
  }
  return "WORD";
}

/// What a flag means without its value, which may be left out; empty: it needs one.
std::string_view value_of_bare(std::string_view flag) {
  return flag == "--otlp" ? "4318" : "";
}

}  // namespace

void add_endpoint(CLI::App& command, Endpoint::Options& endpoint, Uses uses) {
  command.add_option("--server", endpoint.server,
                     uses == Uses::file
                         ? "URL of a monitor to report to (default: $WATCHDOG_SERVER)"
                         : "URL of the monitor (default: $WATCHDOG_SERVER, else what monitor.bind "
                           "and monitor.port say: http://127.0.0.1:3000)");
  if (uses != Uses::monitor) {
    command
        .add_option("--db", endpoint.database,
                    uses == Uses::file
                        ? "Database file to report to (default: $WATCHDOG_DB, else monitor.db)"
                        : "Database file to use instead of a monitor (default: $WATCHDOG_DB)")
        ->excludes("--server");
  }
  command.add_option(
      "--token-file", endpoint.token_file,
      "File with the token (default: $WATCHDOG_TOKEN; for a monitor on this machine its own file)");
  command.add_option("--ca-file", endpoint.ca_file,
                     "Certificates (PEM) to trust besides those of the system");
  if (command.get_option_no_throw("--config") == nullptr) add_config(command, endpoint.sources);
  command.parse_complete_callback([&endpoint, uses] { look_for_place(endpoint, uses); });
}

void look_for_place(Endpoint::Options& endpoint, Uses uses) {
  if (const auto found = find_place(endpoint, uses); !found) throw CLI::RuntimeError(found.error());
  if (const auto allowed = check_database_url(endpoint.database); !allowed)
    throw CLI::RuntimeError(complain(allowed.error()));
}

void add_server(CLI::App& command, Endpoint::Options& endpoint) {
  add_endpoint(command, endpoint, Uses::monitor);
}

void add_database(CLI::App& command, Sources& sources) {
  add_config(command, sources);
  command.add_option_function<std::string>(
      "--db", [&sources](const std::string& file) { sources.flags["monitor.db"] = file; },
      "Database file (default: $WATCHDOG_DB, else monitor.db of the settings, else the usual one)");
}

void name_values(CLI::App& command) {
  static const std::map<std::string, const char*, std::less<>> nouns{
      {"--server", "URL"},        {"--db", "FILE"},       {"--token-file", "FILE"},
      {"--ca-file", "FILE"},      {"--key-file", "FILE"}, {"--config", "FILE"},
      {"--index", "FILE"},        {"--steps", "FILE"},    {"--upstream", "URL"},
      {"--session", "ID"},        {"--parent", "ID"},     {"--turn", "ID"},
      {"--call", "ID"},           {"--ack", "ID"},        {"--test", "CHANNEL"},
      {"--limit", "COUNT"},       {"--grace", "SECONDS"}, {"--after", "SEQ"},
      {"--first-calls", "COUNT"}, {"--agent", "NAME"},    {"--name", "NAME"},
      {"--url", "URL"},           {"--url-file", "FILE"}, {"--secret-file", "FILE"},
      {"--to", "RECEIVER"},       {"--from", "ADDRESS"},  {"--for", "GOAL"},
      {"--ended-before", "DAYS"}};
  for (auto* option : command.get_options([](const CLI::Option*) { return true; })) {
    const auto noun = nouns.find(option->get_name());
    if (noun != nouns.end()) option->type_name(noun->second);
  }
}

void add_config(CLI::App& command, Sources& sources) {
  command.add_option_function<std::string>(
      "--config", [&](const std::string& path) { sources.file = path; },
      "Settings file; \"\" for none (default: $WATCHDOG_CONFIG, else watchdog/watchdog.toml in "
      "$XDG_CONFIG_HOME or ~/.config)");
}

void add_settings(CLI::App& command, const std::vector<SettingInfo>& settings, Sources& sources) {
  add_config(command, sources);
  for (const auto& setting : settings) {
    if (setting.flag.empty()) continue;
    auto& text = sources.flags;
    if (setting.allowed == "true or false" && !setting.flag.starts_with("--no-")) {
      command
          .add_flag_callback(
              setting.flag, [&text, key = setting.key] { text[key] = "true"; }, setting.help)
          ->group(group_of(setting.key));
      continue;
    }
    if (setting.flag.starts_with("--no-")) {
      command
          .add_flag_callback(
              setting.flag, [&text, key = setting.key] { text[key] = "false"; },
              "Set " + setting.key + " = false. " + setting.help)
          ->group(group_of(setting.key));
      continue;
    }
    const auto bare = value_of_bare(setting.flag);
    auto* option = command.add_option_function<std::string>(
        setting.flag,
        [&text, key = setting.key, bare](const std::string& given) {
          text[key] = given.empty() ? std::string(bare) : given;
        },
        setting.help);
    option->group(group_of(setting.key))->type_name(noun_of(setting.key));
    if (!bare.empty()) option->expected(0, 1)->type_name("[PORT]");
    auto usual = setting.text;
    std::erase(usual, '"');
    if (!usual.empty()) option->default_str(usual);
  }
}

int with_settings(const Sources& sources, const std::function<int()>& action) {
  const auto settings = configured(sources);
  return settings ? action() : settings.error();
}

}  // namespace watchdog::monitor
