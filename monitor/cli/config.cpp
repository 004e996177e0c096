#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/commands.h"
#include "cli/phrases.h"
#include "cli/table.h"

namespace watchdog::monitor {
namespace {

using nlohmann::json;

int complain(const Mistakes& mistakes) {
  bool usage = true;
  std::istringstream lines(to_text(mistakes));
  for (std::string line; std::getline(lines, line);)
    std::fprintf(stderr, "watchdog-monitor: %s\n", printable(line).c_str());
  for (const auto& mistake : mistakes) usage = usage && mistake.origin == Origin::command_line;
  return usage ? exit_usage : exit_refused;
}

json object_of(const Configuration& configuration) {
  std::map<std::string, SettingInfo> known;
  for (auto& setting : all_settings()) known.emplace(setting.key, setting);
  auto settings = json::array();
  for (const auto& value : configuration.values()) {
    auto parsed = json::parse(value.text, nullptr, false);
    if (parsed.is_discarded()) parsed = value.text.empty() ? json() : json(value.text);
    const auto& info = known[value.key];  // none of a name that is the user's own
    settings.push_back({{"key", value.key},
                        {"value", std::move(parsed)},
                        {"origin", name_of(value.origin)},
                        {"where", value.where.empty() ? json() : json(value.where)},
                        {"variables", info.variables},
                        {"flag", info.flag.empty() ? json() : json(info.flag)}});
  }
  const auto file = configuration.file().string();
  return {{"file", file.empty() ? json() : json(file)}, {"settings", std::move(settings)}};
}

}  // namespace

Result<Settings, int> configured(const Sources& sources) {
  auto loaded = Configuration::load(sources);
  if (!loaded) return complain(loaded.error());
  return loaded->settings();
}

int config(const ConfigOptions& options) {
  if (options.sample) {
    print(sample_configuration());
    return exit_done;
  }
  const auto loaded = Configuration::load(options.sources);
  if (!loaded) return complain(loaded.error());
  if (options.check) {
    const auto secrets = channel_secrets(loaded->settings().alerts);
    if (!secrets) return complain(secrets.error());
  }
  if (options.json) {
    print_line(object_of(*loaded).dump(-1, ' ', false, json::error_handler_t::replace));
    return exit_done;
  }
  const auto file = loaded->file().string();
  if (options.check) {
    print_line((file.empty() ? "no file" : printable(file)) + ": nothing is wrong");
    return exit_done;
  }
  Table table({"SETTING", "VALUE", "FROM"});
  for (const auto& value : loaded->values())
    table.add({printable(value.key), value.text.empty() ? "–" : printable(value.text),
               std::string(name_of(value.origin)) +
                   (value.where.empty() ? "" : " " + printable(value.where))});
  print(table.text(terminal_width()));
  return exit_done;
}

}  // namespace watchdog::monitor
