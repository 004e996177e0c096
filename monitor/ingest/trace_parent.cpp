#include "ingest/trace_parent.h"

#include <algorithm>

namespace watchdog::monitor {
namespace {

bool is_hex(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

}  // namespace

bool is_trace_id(std::string_view text) {
  return text.size() == 32 && std::ranges::all_of(text, is_hex) &&
         text.find_first_not_of('0') != std::string_view::npos;
}

std::string trace_in(std::string_view traceparent) {
  // VERSION-TRACE-SPAN-FLAGS; later versions may have more behind a further dash.
  constexpr std::size_t trace_at = 3, span_at = 36, flags_at = 53, bytes_min = 55;
  if (traceparent.size() < bytes_min || traceparent.starts_with("ff")) return {};
  if (traceparent.size() > bytes_min && (traceparent.starts_with("00") || traceparent[55] != '-'))
    return {};
  const auto shape = traceparent.substr(0, bytes_min);
  for (std::size_t at = 0; at < shape.size(); ++at) {
    const bool is_dash = at + 1 == trace_at || at + 1 == span_at || at + 1 == flags_at;
    if (is_dash ? shape[at] != '-' : !is_hex(shape[at])) return {};
  }
  const auto trace = shape.substr(trace_at, 32);
  return is_trace_id(trace) ? std::string(trace) : std::string();
}

}  // namespace watchdog::monitor
