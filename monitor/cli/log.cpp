#include "cli/log.h"

#include <spdlog/formatter.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <array>
#include <ctime>
#include <memory>

#include "privacy/content.h"
#include "terminal/table.h"
#include "text/json_writer.h"
#include "watchdog/terminal_text.h"

namespace watchdog::monitor {
namespace {

using spdlog::details::log_msg;

/// RFC 3339, UTC, milliseconds.
std::string time_of(const log_msg& line) {
  const auto since = std::chrono::duration_cast<Millis>(line.time.time_since_epoch()).count();
  const std::time_t second = since / 1'000;
  std::tm parts{};
  gmtime_r(&second, &parts);
  std::array<char, 40> text{};
  const auto begun = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &parts);
  std::snprintf(text.data() + begun, text.size() - begun, ".%03dZ",
                static_cast<int>(since % 1'000));
  return text.data();
}

std::string_view level_of(const log_msg& line) {
  const auto name = spdlog::level::to_string_view(line.level);
  return {name.data(), name.size()};
}

std::string message_of(const log_msg& line) {
  return redact({line.payload.data(), line.payload.size()});
}

class Lines final : public spdlog::formatter {
 public:
  explicit Lines(LogFormat format) : format_(format) {}

  void format(const log_msg& line, spdlog::memory_buf_t& into) override {
    std::string text;
    if (format_ == LogFormat::json) {
      JsonWriter out;
      out.open_object().field("time", time_of(line)).field("level", level_of(line));
      out.field("message", message_of(line)).close_object();
      text = terminal_json(out.finish());
    } else {
      text = time_of(line) + " " + std::string(level_of(line)) + ": " +
             terminal_line(message_of(line));
    }
    text += '\n';
    into.append(text.data(), text.data() + text.size());
  }

  [[nodiscard]] std::unique_ptr<spdlog::formatter> clone() const override {
    return std::make_unique<Lines>(format_);
  }

 private:
  LogFormat format_;
};

}  // namespace

void log_as(LogFormat format) {
  if (!spdlog::get("watchdog-monitor"))
    spdlog::set_default_logger(spdlog::stderr_color_mt("watchdog-monitor"));
  spdlog::set_formatter(std::make_unique<Lines>(format));
}

}  // namespace watchdog::monitor
