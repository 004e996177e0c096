#include "mcp/task_file.h"

#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "files/durable_file.h"
#include "files/regular_file.h"

namespace watchdog::monitor::mcp {
namespace {

/// More than all tasks that are kept take.
constexpr std::size_t task_file_bytes_max = 4UL * 1024 * 1024;

}  // namespace

Result<std::vector<json>> read_task_file(const std::filesystem::path& path) {
  const auto text = read_regular_file(path, task_file_bytes_max, Readers::owner);
  std::vector<json> lines;
  if (!text && text.error().code == ErrorCode::not_found) return lines;
  if (!text) return Error{text.error().code, path.string() + " " + text.error().message};
  for (std::string_view rest = *text; !rest.empty();) {
    const auto end = std::min(rest.find('\n'), rest.size());
    auto line = json::parse(rest.substr(0, end), nullptr, false);
    if (line.is_object()) lines.push_back(std::move(line));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return lines;
}

Result<void> write_task_file(const std::filesystem::path& path, const std::vector<json>& lines) {
  std::string text;
  for (const auto& line : lines) text += line_of(line) + "\n";
  const int code = put_file(path, text);
  if (code == 0) return {};
  return Error{ErrorCode::unavailable,
               "cannot write " + path.string() + ": " + std::strerror(code)};  // NOLINT
}

}  // namespace watchdog::monitor::mcp
