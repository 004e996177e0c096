#include "ingest/trace.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "codec/json.h"
#include "facts/ids.h"

namespace watchdog::monitor {
namespace {

/// The trace's own number of a line that is known to be a JSON object.
std::optional<std::int64_t> seq_in(const std::string& text) {
  const auto object = nlohmann::json::parse(text, nullptr, false);
  const auto seq = object.find("seq");
  return seq != object.end() && seq->is_number_integer() ? std::optional(seq->get<std::int64_t>())
                                                         : std::nullopt;
}

}  // namespace

Result<Trace> Trace::open(const std::filesystem::path& file) {
  auto lines = BoundedLines::open(file);
  if (!lines) return lines.error();
  return Trace(std::move(*lines), session_in_name(file));
}

Result<std::optional<TraceLine>> Trace::next() {
  std::string text;
  while (true) {
    const auto found = lines_.next(text, event_bytes_max);
    if (!found) return found.error();
    if (!*found) return std::optional<TraceLine>{};
    auto report = report_from_json(text);
    if (!report) return lines_.at_line(report.error());
    if (!*report) continue;
    const auto line = lines_.number();
    return std::optional(TraceLine{std::move(**report), seq_in(text).value_or(line - 1), line});
  }
}

std::string session_in_name(const std::filesystem::path& file) {
  auto id = std::filesystem::path(file).replace_extension().string();
  for (auto& c : id) {
    if (c == '/') c = ':';
    if (!is_session_id(std::string_view(&c, 1))) c = '-';
  }
  return id.size() > session_id_bytes_max ? id.substr(id.size() - session_id_bytes_max) : id;
}

}  // namespace watchdog::monitor
