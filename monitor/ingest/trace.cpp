#include "ingest/trace.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "codec/fields.h"
#include "codec/json.h"
#include "facts/digest.h"
#include "facts/ids.h"
#include "watchdog/repetition.h"

namespace watchdog::monitor {
namespace {

/// The trace's own number of a line.
std::optional<std::int64_t> seq_in(const nlohmann::json& object) {
  const auto seq = object.find("seq");
  return seq != object.end() && seq->is_number_integer() ? std::optional(seq->get<std::int64_t>())
                                                         : std::nullopt;
}

/// Of a content that was cut when it was stored, its digest says whether it is equal to another.
void compare_by_digest(Report& report, const nlohmann::json& object) {
  const auto digest = object.find("digest");
  const auto bytes = object.find("bytes");
  if (digest == object.end() || !digest->is_string() || bytes == object.end() ||
      !bytes->is_number_unsigned() || bytes->get<std::size_t>() <= report.content.size())
    return;
  mark(report);
  report.bytes = bytes->get<std::int64_t>();
  if (auto* marks = std::get_if<Marks>(&report.detail)) {
    const auto whole = digest_of(digest->get_ref<const std::string&>());
    marks->identity = combined(marks->identity, whole);
    if (marks->exact != 0) marks->exact = combined(marks->exact, whole);
  }
}

/// The last `parts` parts of the path as an id, without the extension.
std::string session_of_parts(const std::filesystem::path& file, std::size_t parts) {
  const auto whole = std::filesystem::path(file).replace_extension().string();
  auto begin = whole.size();
  for (; begin > 0; --begin) {
    if (whole[begin - 1] == '/' && --parts == 0) break;
  }
  auto id = whole.substr(begin);
  std::ranges::replace(id, '/', ':');
  if (id.size() > session_id_bytes_max) id = id.substr(id.size() - session_id_bytes_max);
  return id.empty() ? "recording" : as_session_id(std::move(id));
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
    const auto object = parse_object(text);
    if (!object) return lines_.at_line(object.error());
    compare_by_digest(**report, *object);
    return std::optional(TraceLine{std::move(**report), seq_in(*object).value_or(line - 1), line});
  }
}

std::string session_in_name(const std::filesystem::path& file) {
  return session_of_parts(file, 1);
}

std::vector<std::string> sessions_in_names(const std::vector<std::filesystem::path>& files) {
  constexpr std::size_t parts_max = 32;
  std::vector<std::string> ids(files.size());
  std::vector<std::size_t> open(files.size());
  std::iota(open.begin(), open.end(), 0);
  for (std::size_t parts = 1; parts <= parts_max && !open.empty(); ++parts) {
    std::map<std::string, int> counts;
    for (const auto at : open) {
      ids[at] = session_of_parts(files[at], parts);
      ++counts[ids[at]];
    }
    std::erase_if(open, [&](std::size_t at) { return counts[ids[at]] == 1; });
  }
  return ids;
}

}  // namespace watchdog::monitor
