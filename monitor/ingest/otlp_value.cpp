#include "ingest/otlp_value.h"

#include <algorithm>
#include <charconv>

#include "codec/json.h"
#include "facts/digest.h"
#include "facts/ids.h"
#include "ingest/bounded_text.h"
#include "privacy/content.h"

namespace watchdog::monitor::otlp_value {

namespace names = otlp_names;
using otlp_table::log;
using otlp_table::metric;
using otlp_table::span;

static constexpr std::size_t word_bytes_max = 200;

const otlp_table::Sender& sender_of(std::string_view service) {
  return *std::ranges::find_if(otlp_table::senders, [service](const otlp_table::Sender& sender) {
    return service.starts_with(sender.service);
  });
}

std::string_view value(const OtlpRecord& record, names::Aliases aliases) {
  for (const auto name : aliases) {
    const auto found = record.attributes.find(name);
    if (found != record.attributes.end() && !found->second.empty()) return found->second;
  }
  return {};
}

std::string text_of(const OtlpRecord& record, names::Aliases aliases) {
  const auto text = value(record, aliases);
  return std::string(text.size() > event_bytes_max ? first_characters(text, event_bytes_max / 4)
                                                   : text);
}

std::string word_of(const OtlpRecord& record, names::Aliases aliases) {
  return first_bytes(value(record, aliases), word_bytes_max);
}

double number_of(const OtlpRecord& record, names::Aliases aliases) {
  constexpr double number_max = 1e15;
  const auto text = value(record, aliases);
  double number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  return read.ec == std::errc{} && number > 0 ? std::min(number, number_max) : 0;
}

bool is_hidden(std::string_view text) {
  return text == "<REDACTED>" || text == "[REDACTED]";
}

bool is_refusal(std::string_view decision) {
  return decision == "reject" || decision == "denied" || decision == "abort";
}

const otlp_table::Row* row_of(const OtlpRecord& record) {
  const auto found = [&](std::string_view name) -> const otlp_table::Row* {
    const auto row = std::ranges::find_if(otlp_table::rows, [&](const otlp_table::Row& known) {
      return known.signal == record.signal && known.name == name;
    });
    return name.empty() || row == std::end(otlp_table::rows) ? nullptr : &*row;
  };
  if (record.signal == log) {
    for (const auto name : {std::string_view(record.body), value(record, names::event),
                            std::string_view(record.name)})
      if (const auto* row = found(name)) return row;
    return nullptr;
  }
  if (record.signal == metric) return found(record.name);
  for (const auto kind : names::kind) {
    const auto named = record.attributes.find(kind);
    if (named == record.attributes.end()) continue;
    if (const auto* row = found(named->second)) return row;
  }
  return found(record.name);
}

std::uint64_t digest_of(const OtlpRecord& record) {
  std::uint64_t digest = watchdog::digest_of(record.name);
  const auto add = [&](std::string_view text) {
    digest = combined(digest, watchdog::digest_of(text));
  };
  for (const auto* text : {&record.trace, &record.span, &record.body}) add(*text);
  if (record.signal == span) return digest;  // a span is known by its ids
  digest = combined(digest, static_cast<std::uint64_t>(record.end));
  if (record.signal == metric)
    digest =
        combined(digest, static_cast<std::uint64_t>(std::clamp(record.total, 0.0, 1e15) * 1e3));
  for (const auto& [name, text] : record.attributes) {
    add(name);
    add(text);
  }
  return digest;
}

}  // namespace watchdog::monitor::otlp_value
