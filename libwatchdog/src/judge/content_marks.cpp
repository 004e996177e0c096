// Computes the digests by which contents are compared. Arguments are compared as canonical JSON in
// the manner of RFC 8785 (members in any order, numbers by value), with case and white space
// folded. Results are compared without what differs between two runs of the same thing.
// REPETITION.md has the reasons.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

#include "facts/agent_tools.h"
#include "facts/digest.h"
#include "facts/role.h"
#include "facts/shell_command.h"
#include "judge/plan_items.h"
#include "judge/promise.h"
#include "judge/prose.h"
#include "judge/text_loop.h"
#include "judge/variation.h"
#include "privacy/content.h"
#include "privacy/redaction.h"
#include "watchdog/repetition.h"

namespace watchdog {
namespace {

/// Deeper arguments are compared as text.
constexpr std::size_t depth_max = 1'024;
/// A source that sends its own digests of the whole has perhaps cut a text of this length.
constexpr std::size_t perhaps_cut = 2'000;
/// A result is informative from this size on: shorter ones are "ok", or the same confirmation for
/// many targets. A state is informative earlier.
constexpr std::size_t result_informative_min = 200;
constexpr std::size_t state_informative_min = 64;
/// An error says something earlier still, but an exit status alone does not.
constexpr std::size_t error_informative_min = 32;
/// Longer words are contents, not names of something.
constexpr std::size_t atomic_max = 128;

constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
constexpr bool is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}
constexpr char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
}

/// A table of byte classes: every byte of every report passes here.
template <class T, class Of>
constexpr std::array<T, 256> each_byte(Of of) {
  std::array<T, 256> table{};
  for (std::size_t byte = 0; byte < table.size(); ++byte) {
    table[byte] = of(static_cast<char>(byte));
  }
  return table;
}

/// Letters, digits and every byte of a character beyond ASCII.
bool is_word(char c) {
  static constexpr auto table = each_byte<bool>([](char byte) {
    const char folded = lower(byte);
    return (folded >= 'a' && folded <= 'z') || is_digit(byte) || byte == '_' || (byte & 0x80) != 0;
  });
  return table[static_cast<unsigned char>(c)];
}

/// ASCII in lower case, runs of white space as one space, none at the ends.
void fold(std::string_view text, std::string& into) {
  static constexpr auto table =
      each_byte<char>([](char byte) { return is_space(byte) ? ' ' : lower(byte); });
  into.resize(text.size());
  char* end = into.data();
  char before = ' ';
  for (const char c : text) {
    const char folded = table[static_cast<unsigned char>(c)];
    *end = folded;
    end += folded != ' ' || before != ' ' ? 1 : 0;
    before = folded;
  }
  into.resize(static_cast<std::size_t>(end - into.data()));
  if (!into.empty() && into.back() == ' ') into.pop_back();
}

/// The smallest digests of words and neighbouring words: of two such samples the share that they
/// have in common estimates what the texts have in common (Broder, 1997).
class Shingles {
 public:
  Shingles() = default;
  /// Keeps `most` digests at most, and none above `limit`. Which part of a text's digests that is
  /// depends on the digests alone, so samples of two texts can be compared.
  Shingles(std::size_t most, std::uint32_t limit) : most_(most), limit_(limit) {}

  void add_words(std::string_view folded) {
    for (std::size_t at = 0; at < folded.size();) {
      if (!is_word(folded[at])) {
        ++at;
        continue;
      }
      const auto begin = at;
      while (at < folded.size() && is_word(folded[at])) ++at;
      const auto word = digest_of(folded.substr(begin, at - begin));
      add(word);
      if (previous_ != 0) add(combined(previous_, word));
      previous_ = word;
    }
  }

  [[nodiscard]] std::vector<std::uint32_t> finish() { return std::move(smallest_); }

 private:
  void add(std::uint64_t digest) {
    const auto shingle = static_cast<std::uint32_t>(digest >> 32U);
    if (shingle > limit_) return;
    const bool full = smallest_.size() == most_;
    if (full && shingle >= smallest_.back()) return;
    const auto place = std::lower_bound(smallest_.begin(), smallest_.end(), shingle);
    if (place != smallest_.end() && *place == shingle) return;
    if (full) smallest_.pop_back();
    smallest_.insert(place, shingle);
  }

  std::size_t most_ = Marks::shingles_max;
  std::uint32_t limit_ = UINT32_MAX;
  std::vector<std::uint32_t> smallest_;  ///< Ascending.
  std::uint64_t previous_ = 0;
};

std::uint64_t digest_of_text(std::string_view folded) {
  return combined(6, digest_of(folded));
}

/// Takes the digest of a JSON value while it is parsed: nothing is built, nothing recurses.
class Canonical : public nlohmann::json_sax<nlohmann::json> {
 public:
  Canonical(Marks& marks, Shingles& shingles) : marks_(marks), shingles_(shingles) {}

  bool null() override { return value(1); }
  bool boolean(bool truth) override { return value(truth ? 2 : 3); }
  bool number_integer(std::int64_t number) override {
    return value(combined(4, static_cast<std::uint64_t>(number)));
  }
  bool number_unsigned(std::uint64_t number) override { return value(combined(4, number)); }
  bool number_float(double number, const std::string& /*text*/) override {
    constexpr double exact_max = 9'007'199'254'740'992.0;  // 2^53
    if (std::abs(number) <= exact_max && number == std::trunc(number)) {
      return number_integer(static_cast<std::int64_t>(number));
    }
    std::uint64_t bits = 0;
    std::memcpy(&bits, &number, sizeof bits);
    return value(combined(5, bits));
  }
  bool string(std::string& text) override {
    fold(text, folded_);
    shingles_.add_words(folded_);
    words_ += words_in(text);
    if (is_typed_) note_typed(text);
    return value(digest_of_text(folded_),
                 folded_.size() <= atomic_max && folded_.find(' ') == std::string::npos);
  }
  bool binary(nlohmann::json::binary_t& /*bytes*/) override { return false; }
  bool start_object(std::size_t /*size*/) override { return open(true); }
  bool start_array(std::size_t /*size*/) override { return open(false); }
  bool key(std::string& name) override {
    fold(name, folded_);
    shingles_.add_words(folded_);
    frames_.back().key = digest_of(folded_);
    if (frames_.size() == 1) {
      is_text_ = is_the_text(folded_);
      is_typed_ = is_typed_text(folded_);
      has_command_ = has_command_ || folded_ == "command" || folded_ == "cmd";
      is_beside_ = is_beside_the_text(folded_);
    }
    return true;
  }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool parse_error(std::size_t /*at*/, const std::string& /*token*/,
                   const nlohmann::json::exception& /*why*/) override {
    return false;
  }

  [[nodiscard]] std::uint64_t digest() const { return whole_; }
  /// The words of all texts among the values.
  [[nodiscard]] const WordCount& words() const { return words_; }
  /// What the arguments type into a shell or a program; nothing: they have no such member.
  [[nodiscard]] const std::optional<std::string>& typed() const { return typed_; }
  /// True if the arguments have a command, whatever the tool is called.
  [[nodiscard]] bool has_command() const { return has_command_; }
  /// The digest of the one text among the arguments, whatever its name. 0 where there is none.
  [[nodiscard]] std::uint64_t digest_of_one_text() const { return has_text_ ? one_text_ : 0; }

 private:
  struct Frame {
    bool object = false;
    std::uint64_t key = 0;  ///< Of the member that is being read.
    std::uint64_t sum = 0;
  };

  /// A command may be a list of words, the last of which is one for a shell.
  void note_typed(std::string_view text) {
    constexpr std::size_t typed_max = 8'192;
    if (!typed_) typed_.emplace();
    if (typed_->size() > typed_max) return;
    if (!typed_->empty()) *typed_ += '\n';
    *typed_ += text.substr(0, typed_max);
  }

  bool open(bool object) {
    if (frames_.size() == depth_max) return false;
    frames_.push_back({.object = object});
    return true;
  }
  bool close() {
    const Frame frame = frames_.back();
    frames_.pop_back();
    const auto digest = combined(frame.object ? 7 : 8, frame.sum);
    if (frames_.empty()) {
      whole_ = digest;
      return true;
    }
    return add(digest, false);
  }
  bool value(std::uint64_t digest, bool atomic = true) { return add(digest, atomic); }
  bool add(std::uint64_t digest, bool atomic) {
    if (frames_.empty()) {  // a single value: not asked for
      whole_ = digest;
      return true;
    }
    Frame& frame = frames_.back();
    if (!frame.object) {
      frame.sum = combined(frame.sum, digest);
    } else {
      frame.sum += combined(frame.key, digest);  // a sum: order does not matter
      if (frames_.size() == 1 && !is_beside_) {
        one_text_ += is_text_ ? digest : combined(frame.key, digest);
        has_text_ = has_text_ || is_text_;
      }
      if (frames_.size() == 1 && marks_.fields.size() < Marks::fields_max) {
        marks_.fields.push_back(
            {.name = static_cast<std::uint32_t>(frame.key), .atomic = atomic, .value = digest});
      }
    }
    return true;
  }

  Marks& marks_;
  Shingles& shingles_;
  WordCount words_;
  std::string folded_;
  std::vector<Frame> frames_;
  std::uint64_t whole_ = 0;
  std::uint64_t one_text_ = 0;
  bool has_text_ = false;
  bool is_text_ = false;    ///< The member of the outermost object that is being read,
  bool is_beside_ = false;  ///< likewise.
  bool is_typed_ = false;   ///< likewise.
  bool has_command_ = false;
  std::optional<std::string> typed_;
};

/// Marks the purpose of a call. `typed`: the text among its arguments, if it has one.
void mark_purpose(Marks& marks, std::string_view tool, const std::optional<std::string>& typed,
                  bool is_command) {
  constexpr std::string_view nothing = "a command that does nothing";
  auto of_tool = purpose_of_tool(tool);
  if (of_tool == ToolPurpose::unknown && is_command) of_tool = ToolPurpose::command;
  switch (of_tool) {
    case ToolPurpose::command: {
      const auto purpose = typed ? purpose_of_command(*typed) : CommandPurpose{};
      marks.waits = purpose.waits;
      marks.reads_only = purpose.reads_only;
      // `true` and `: waiting` ask for the same.
      if (purpose.does_nothing) marks.identity = digest_of(nothing);
      break;
    }
    case ToolPurpose::may_wait:
      marks.waits = marks.reads_only = !typed || typed->empty();
      break;
    case ToolPurpose::waits:
      marks.waits = marks.reads_only = true;
      break;
    case ToolPurpose::reads:
      marks.reads_only = true;
      break;
    case ToolPurpose::unknown:
      break;
  }
}

/// Returns whether secrets were taken out of the text before it was sent, and a digest of the whole
/// came with it.
bool has_taken_secrets(const Report& report) {
  return !report.hash.empty() && report.content.find(secret_mask) != std::string::npos;
}
/// Returns whether the source's own digest says more than the text.
bool says_less_than_hash(const Report& report) {
  const bool is_perhaps_cut = !report.hash.empty() && report.content.size() >= perhaps_cut;
  return is_perhaps_cut || has_taken_secrets(report);
}

/// A digest is never 0: that means that there was nothing.
std::uint64_t never_zero(std::uint64_t digest) {
  return digest == 0 ? 1 : digest;
}

Marks marks_of_arguments(const Report& report) {
  if (report.content.empty() && report.hash.empty()) return {};  // no digest was sent
  Marks marks;
  Shingles shingles;
  const std::string_view text = report.content;
  const bool one_text = is_one_text(report.name);
  // A plan is sent again with a few words changed, and a written text asks nothing.
  const bool may_ask = !one_text && plan_tool(report.name) == PlanTool::none;
  const auto first = text.find_first_not_of(" \t\r\n");
  const bool like_json =
      first != std::string_view::npos && (text[first] == '{' || text[first] == '[');
  if (like_json) {
    Canonical canonical(marks, shingles);
    if (nlohmann::json::sax_parse(text, &canonical)) {
      marks.identity = canonical.digest();
      marks.worded = may_ask && asks_in_words(canonical.words());
      const auto text_alone = canonical.digest_of_one_text();
      if (one_text && text_alone != 0) marks.identity = text_alone;
      mark_purpose(marks, report.name, canonical.typed(), canonical.has_command());
    } else {
      // A shell's test begins with a bracket too.
      const auto second = text.find_first_not_of(" \t\r\n", first + 1);
      const bool object = text[first] == '{' && second != std::string_view::npos &&
                          (text[second] == '"' || text[second] == '}');
      marks = Marks{.malformed = object};
      shingles = Shingles{};
    }
  }
  if (marks.identity == 0) {
    std::string folded;
    fold(text, folded);
    shingles.add_words(folded);
    marks.worded = may_ask && asks_in_words(words_in(text));
    marks.identity = one_text ? digest_of_text(folded) : digest_of(folded);
    mark_purpose(marks, report.name, std::string(text), false);
  }
  if (says_less_than_hash(report)) marks.identity = digest_of(report.hash);
  marks.identity = never_zero(marks.identity);
  marks.plan = plan_items(report.name, text);
  marks.shingles = shingles.finish();
  return marks;
}

/// Rate limits and gateways that failed: the agent does right to ask again.
bool says_unreachable(std::string_view text) {
  std::string begin;
  fold(text.substr(0, 400), begin);
  constexpr std::array<std::string_view, 9> phrases{
      "429 too many requests", "rate limit",           "rate_limit",
      "502 bad gateway",       "503 service",          "504 gateway",
      "overloaded_error",      "server is overloaded", "status code 429"};
  return std::any_of(phrases.begin(), phrases.end(), [&](std::string_view phrase) {
    return begin.find(phrase) != std::string::npos;
  });
}

Marks marks_of_result(const Report& report) {
  const bool failed = is_failure(report.kind);
  const auto result = undecorated(report.name, report.content);
  const auto normal = without_variation(result);
  Marks marks{.identity = digest_of(normal), .exit_code = exit_code_in(report.content)};
  if (!report.hash.empty()) {
    marks.exact = never_zero(combined(failed ? 2 : 1, digest_of(report.hash)));
    if (says_less_than_hash(report)) marks.identity = digest_of(report.hash);
  }
  marks.identity = never_zero(combined(failed ? 2 : 1, marks.identity));
  marks.informative = normal.size() >= (failed ? error_informative_min : result_informative_min);
  marks.unreachable = failed && says_unreachable(report.content);
  return marks;
}

/// Members of a state change with times or counts, which do not say what changed.
bool means_time(std::string_view name) {
  constexpr std::array<std::string_view, 14> names{
      "ts",        "ts_ms",    "time",   "timestamp",  "at",          "date", "elapsed",
      "iteration", "duration", "uptime", "elapsed_ms", "duration_ms", "tick", "seq"};
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// The length of such a member, if one with a number or a text begins at this quote; else 0.
std::size_t time_member_at(std::string_view text, std::size_t at) {
  constexpr std::size_t name_max = 11;
  std::size_t end = at + 1;
  while (end < text.size() && end - at <= name_max && is_word(text[end])) ++end;
  if (end >= text.size() || text[end] != '"' || !means_time(text.substr(at + 1, end - at - 1))) {
    return 0;
  }
  const auto skip_spaces = [&] {
    while (end < text.size() && is_space(text[end])) ++end;
  };
  ++end;
  skip_spaces();
  if (end >= text.size() || text[end] != ':') return 0;
  ++end;
  skip_spaces();
  if (end >= text.size() || text[end] == '{' || text[end] == '[') return 0;
  if (text[end] == '"') {
    for (++end; end < text.size() && text[end] != '"'; ++end) {
      if (text[end] == '\\') ++end;
    }
    return end < text.size() ? end + 1 - at : 0;
  }
  while (end < text.size() && text[end] != ',' && text[end] != '}') ++end;
  return end - at;
}

/// States compare as texts, because a program writes them the same way each time. Ids and times
/// that are part of the change stay: item 5 is not item 6.
Marks marks_of_state(const Report& report) {
  const auto& content = report.content;
  std::string what;
  std::size_t copied = 0;
  for (auto at = content.find('"'); at != std::string::npos; at = content.find('"', at)) {
    const auto skipped = time_member_at(content, at);
    if (skipped > 0) what.append(content, copied, at - copied);
    at += std::max<std::size_t>(skipped, 1);
    if (skipped > 0) copied = at;
  }
  what.append(content, copied);
  if (std::ranges::none_of(what, is_word)) return {};  // it says when, not what
  const auto compared = has_taken_secrets(report) ? digest_of(report.hash) : digest_of(what);
  return {.identity = never_zero(combined(digest_of(report.name), compared)),
          .informative = what.size() >= state_informative_min};
}

Marks marks_of_message(const Report& report) {
  std::string folded;
  fold(report.content, folded);
  Marks marks{.identity = folded.empty() ? 0 : never_zero(digest_of(folded))};
  if (has_taken_secrets(report)) marks.identity = never_zero(digest_of(report.hash));
  constexpr std::size_t compared_bytes = 4'096;
  if (!folded.empty()) {
    Shingles shingles(Marks::prose_sample_max, UINT32_MAX / 4);
    shingles.add_words(std::string_view(folded).substr(0, compared_bytes));
    marks.shingles = shingles.finish();
  }
  // A message of an unknown role may be a program's, even if it has a single line.
  const auto shape = shape_of(report.content);
  const bool by_model = is_model(report.name);
  marks.printed = shape.is_printed(by_model ? 2 : 1);
  marks.informative = shape.is_prose();
  const bool is_perhaps_cut = !report.hash.empty() && report.content.size() >= perhaps_cut;
  marks.promises = by_model && !is_perhaps_cut && ends_with_promise(report.content);
  // Few messages have a hit at all. Equal lines of a program's output are no repetition of a model.
  const bool repeats = !marks.printed && hits_in(report.content) > 0;
  const int hits = repeats ? hits_in_prose(report.content, !by_model || shape.opens_printed) : 0;
  marks.text_repeats = static_cast<std::uint8_t>(hits == 0 ? 0 : hits < 3 ? 1 : 2);
  return marks;
}

}  // namespace

bool is_kept_whole(const Report& report, ContentLevel level) {
  return level >= ContentLevel::preview && report.content.size() <= preview_chars_max &&
         report.bytes <= static_cast<std::int64_t>(report.content.size());  // not cut before
}

void mark(Report& report) {
  if (report.detail.index() != 0) return;
  auto compared = as_compared(report.content);
  if (compared) report.content.swap(*compared);
  mark_redacted(report);
  if (compared) report.content.swap(*compared);
}

void mark_redacted(Report& report) {
  if (report.detail.index() != 0) return;
  switch (report.kind) {
    case ReportKind::tool_call:
      if (auto marks = marks_of_arguments(report); marks != Marks{}) {
        report.detail = std::move(marks);
      }
      break;
    case ReportKind::tool_result:
    case ReportKind::error:
    case ReportKind::tool_timeout:
      report.detail = marks_of_result(report);
      break;
    case ReportKind::state_change:
      if (auto marks = marks_of_state(report); marks != Marks{}) report.detail = std::move(marks);
      break;
    case ReportKind::message:
      if (auto marks = marks_of_message(report); marks != Marks{}) report.detail = std::move(marks);
      break;
    default:
      break;
  }
}

}  // namespace watchdog
