#include "ingest/trace.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
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
  Trace trace;
  trace.file_ = file;
  std::error_code trouble;
  if (std::filesystem::is_directory(file, trouble)) {
    return Error{ErrorCode::not_found, file.string() + " is a directory, a trace file is needed"};
  }
  trace.stream_.open(file);
  if (!trace.stream_)
    return Error{ErrorCode::not_found, file.string() + ": " + std::strerror(errno)};
  return trace;
}

Result<std::optional<TraceLine>> Trace::next() {
  std::string text;
  while (std::getline(stream_, text)) {
    ++line_;
    if (text.find_first_not_of(" \t\r") == std::string::npos) continue;
    const auto refuse = [&](Error error) {
      error.message = file_.string() + ":" + std::to_string(line_) + ": " + error.message;
      error.line = line_;
      return error;
    };
    if (text.size() > event_bytes_max) {
      return refuse({ErrorCode::exhausted,
                     "the line has more than " + std::to_string(event_bytes_max) + " bytes"});
    }
    auto report = report_from_json(text);
    if (!report) return refuse(report.error());
    if (!*report) continue;
    return std::optional(TraceLine{std::move(**report), seq_in(text).value_or(line_ - 1), line_});
  }
  return std::optional<TraceLine>{};
}

std::string Trace::session() const {
  auto id = std::filesystem::path(file_).replace_extension().string();
  for (auto& c : id) {
    if (c == '/') c = ':';
    if (!is_session_id(std::string_view(&c, 1))) c = '-';
  }
  return id.size() > session_id_bytes_max ? id.substr(id.size() - session_id_bytes_max) : id;
}

}  // namespace watchdog::monitor
