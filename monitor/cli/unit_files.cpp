#include "cli/unit_files.h"

#include "api/assets.h"

namespace watchdog::monitor {
namespace {

constexpr std::string_view own_unit_mark = "# Written by `watchdog-monitor service install`.";

/// A word of ExecStart: systemd reads quotes, backslashes, % and $ in it.
std::string unit_word(const std::string& text) {
  std::string word = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') word += '\\';
    if (c == '%' || c == '$') word += c;
    word += c;
  }
  return word + "\"";
}

std::string template_of(std::string_view name) {
  for (const auto& file : embedded_files())
    if (file.name == name) return std::string(file.content);
  return {};
}

std::string with_replaced(std::string text, std::string_view what, const std::string& by) {
  if (const auto at = text.find(what); at != std::string::npos) text.replace(at, what.size(), by);
  return text;
}

}  // namespace

std::vector<UnitFile> user_units(const MonitorSettings& own, const std::string& program,
                                 const std::vector<std::string>& arguments) {
  const std::string heading = std::string(own_unit_mark) + "\n";
  auto service = with_replaced(template_of("watchdog-monitor.user.service.in"),
                               "@CMAKE_INSTALL_FULL_BINDIR@/watchdog-monitor", unit_word(program));
  if (!arguments.empty()) {
    std::string words;
    for (const auto& argument : arguments) words += " " + unit_word(argument);
    const auto line = service.find("ExecStart=");
    service.insert(service.find('\n', line), words);
  }
  const bool six = own.bind.find(':') != std::string::npos;
  const auto address = (six ? "[" + own.bind + "]" : own.bind) + ":" + std::to_string(own.port);
  return {
      {"watchdog-monitor.service", heading + service},
      {"watchdog-monitor.socket", heading + with_replaced(template_of("watchdog-monitor.socket.in"),
                                                          "@WATCHDOG_LISTEN@", address)}};
}

bool is_own_unit(const std::string& text) {
  return text.starts_with(own_unit_mark);
}

}  // namespace watchdog::monitor
