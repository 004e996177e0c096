// Whatever an agent reports, it gets marks within bounds, which survive being stored; and how its
// JSON is written down changes nothing.

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <string_view>
#include <tuple>

#include "codec/json.h"
#include "fuzz/fuzz.h"
#include "watchdog/repetition.h"

using nlohmann::json;
using watchdog::Marks;
using watchdog::Report;
using watchdog::ReportKind;

std::vector<std::string> fuzz_seeds() {
  return {R"({"path":"src/main.cpp","line":17,"all":true,"none":null})",
          R"({"a":[1,2.5,-0.0,1e300,12345678901234567890],"b":{"c":{"d":"e"}},"A":[]})",
          R"({"text":"The Quick  brown\n\tfox \u00e9 \ud83d\ude00","ts":1,"elapsed_ms":2})",
          R"({"x":{"y":1,"z":[{},{"z":"z"}]},"y":-1})",
          "[1, 2, {\"a\": 1}]",
          "{\"a\": ",
          "2024-05-06T07:08:09.123Z pid 4711: took 12.5 ms, 0xDEADBEEF, 3 minutes, 07:08:09",
          "550e8400-e29b-41d4-a716-446655440000 \x1b[31;1mred\x1b[0m ",
          "HTTP 429 Too Many Requests; overloaded_error",
          "I will now. I will now. ",
          "\xff\xc3\xe6\x88\x80 \r\n"};
}

namespace {

/// The value of a text that is a JSON object. None if an object has a member twice, because a tree
/// keeps only one of them. None if the text is nested too deeply for `write`, which is recursive.
std::optional<json> object_in(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || text[first] != '{') return std::nullopt;
  bool plain = true;
  std::vector<std::set<std::string>> names;
  const auto note = [&](int depth, json::parse_event_t event, json& value) {
    if (depth > watchdog::json_depth_max) plain = false;
    if (event == json::parse_event_t::object_start) names.emplace_back();
    if (event == json::parse_event_t::object_end) names.pop_back();
    if (event == json::parse_event_t::key && !names.back().insert(value).second) plain = false;
    return plain;
  };
  auto value = json::parse(text, note, false);
  if (!plain || !value.is_object()) return std::nullopt;
  return value;
}

/// Members in any order, white space wherever it may be.
void write(const json& value, std::mt19937& random, std::string& out) {
  const auto space = [&] { out.append(random() % 3, " \n\t"[random() % 3]); };
  space();
  if (value.is_object()) {
    std::vector<std::pair<std::string, const json*>> members;
    for (const auto& [name, member] : value.items()) members.emplace_back(name, &member);
    std::shuffle(members.begin(), members.end(), random);
    out += '{';
    for (const auto& [name, member] : members) {
      if (&name != &members.front().first) out += ',';
      space();
      out += json(name).dump();
      space();
      out += ':';
      write(*member, random, out);
    }
    space();
    out += '}';
  } else if (value.is_array()) {
    out += '[';
    for (const auto& item : value) {
      if (&item != &value.front()) out += ',';
      write(item, random, out);
    }
    space();
    out += ']';
  } else {
    out += value.dump();
  }
  space();
}

std::optional<Marks> marks_of(ReportKind kind, std::string_view text, std::string_view hash = {}) {
  Report report{.kind = kind, .name = "step"};
  report.content = text;
  report.hash = hash;
  watchdog::mark(report);
  const auto* marks = std::get_if<Marks>(&report.detail);
  if (marks == nullptr) return std::nullopt;
  return *marks;
}

void look_at(const Marks& marks) {
  FUZZ_REQUIRE(marks.fields.size() <= Marks::fields_max);
  FUZZ_REQUIRE(marks.shingles.size() <= Marks::shingles_max);
  FUZZ_REQUIRE(std::adjacent_find(marks.shingles.begin(), marks.shingles.end(),
                                  std::greater_equal<>()) == marks.shingles.end());
  FUZZ_REQUIRE(marks.text_repeats <= 2);
  const auto bytes = watchdog::encoded(marks);
  FUZZ_REQUIRE(watchdog::decoded_marks(bytes) == marks);
  FUZZ_REQUIRE(!watchdog::decoded_marks(std::string_view(bytes).substr(0, bytes.size() - 1)));
}

std::vector<Marks::Field> sorted(std::vector<Marks::Field> fields) {
  std::sort(fields.begin(), fields.end(), [](const auto& a, const auto& b) {
    return std::tie(a.name, a.value, a.atomic) < std::tie(b.name, b.value, b.atomic);
  });
  return fields;
}

}  // namespace

void try_input(std::string_view text) {
  for (const auto kind : {ReportKind::tool_call, ReportKind::tool_result, ReportKind::error,
                          ReportKind::state_change, ReportKind::message}) {
    const auto marks = marks_of(kind, text);
    const bool always = (kind == ReportKind::tool_call && !text.empty()) ||
                        kind == ReportKind::tool_result || kind == ReportKind::error;
    FUZZ_REQUIRE(marks || !always);
    if (!marks) continue;
    FUZZ_REQUIRE(marks->identity != 0 || !always);
    look_at(*marks);
    if (const auto hashed = marks_of(kind, text, "abc")) look_at(*hashed);
  }
  if (const auto marks = watchdog::decoded_marks(text)) {
    FUZZ_REQUIRE(watchdog::decoded_marks(watchdog::encoded(*marks)) == marks);
  }

  const auto object = object_in(text);
  if (!object) return;
  std::mt19937 random(static_cast<unsigned>(text.size()));
  std::string other;
  write(*object, random, other);
  const auto call = marks_of(ReportKind::tool_call, text);
  const auto rewritten = marks_of(ReportKind::tool_call, other);
  FUZZ_REQUIRE(!call->malformed && !rewritten->malformed);
  FUZZ_REQUIRE(call->identity == rewritten->identity);
  if (object->size() <= Marks::fields_max) {
    FUZZ_REQUIRE(sorted(call->fields) == sorted(rewritten->fields));
  }
}
