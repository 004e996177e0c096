// `presented` makes an output readable and cuts it. If something was cut, it stores the whole
// without its secrets and cuts again, with a note on how to get the rest. The shown text keeps its
// secrets: the model that asked may write it back, and a file must not lose what a mark stands for.
// JSON is cut value by value as long as that fits; otherwise its text is cut in the middle. Such a
// cut has a line break, so nobody takes it for JSON. Of more than 8 MiB only both ends are looked
// at.
#include <algorithm>
#include <utility>

#include "codec/json.h"
#include "outputs/json_cut.h"
#include "privacy/content.h"
#include "privacy/redaction.h"
#include "text/utf8.h"
#include "watchdog/artifact_store.h"

namespace watchdog {
namespace {

std::string repaired(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const auto bytes = character_bytes(text);
    out += bytes > 0 ? text.substr(0, bytes) : "\xEF\xBF\xBD";
    text.remove_prefix(std::max<std::size_t>(bytes, 1));
  }
  return out;
}

/// The size of a whole output: in characters, and in bytes if only its ends are known.
struct Size {
  std::uint64_t chars = 0;
  std::uint64_t bytes = 0;  ///< 0: all of it is known.
};

/// Returns the size of an output whose ends these are.
Size size_of(std::string_view known, std::uint64_t whole_bytes) {
  const auto chars = characters_in(known);
  if (whole_bytes <= known.size()) return {.chars = chars};
  return {.chars = chars + (whole_bytes - known.size()), .bytes = whole_bytes};
}

std::string notice_of(std::uint64_t shown, const Size& total, std::string_view rest) {
  const auto percent = shown * 100 / std::max<std::uint64_t>(total.chars, 1);
  std::string text = "[truncated: " + std::to_string(shown) +
                     (total.bytes > 0 ? " chars of " + std::to_string(total.bytes) + " bytes"
                                      : " of " + std::to_string(total.chars) + " chars") +
                     " shown (" + (percent == 0 ? "<1" : std::to_string(percent)) + " %). ";
  if (!rest.empty()) text.append(rest).append(1, ' ');
  return text + "Repeating the call unchanged gives the same cut.]";
}

Truncation truncation_of(std::uint64_t shown, const Size& total, std::string how,
                         std::string_view rest) {
  if (!rest.empty()) how.append(1, ' ').append(rest);
  return {.total = total.chars, .shown = shown, .bytes = total.bytes, .how = std::move(how)};
}

/// The text in the gap, and the number of characters beside it.
struct Gap {
  std::string mark;
  std::size_t shown = 0;
};

/// The best mark that has a place: it leaves at least half of it. All have an end of a line, which
/// no JSON string holds: so what is cut as a text is not read as JSON afterwards.
Gap gap_for(const Size& total, std::size_t chars_max, std::string_view rest) {
  const auto fitted = [&](const auto& mark_for) {
    Gap gap{.mark = mark_for(chars_max), .shown = chars_max};
    for (; gap.shown > 0 && gap.shown + characters_in(gap.mark) > chars_max; --gap.shown)
      gap.mark = mark_for(gap.shown - 1);  // its own numbers change its length
    return gap;
  };
  auto gap = fitted([&](std::size_t shown) { return "\n" + notice_of(shown, total, rest) + "\n"; });
  if (gap.shown * 2 >= chars_max && gap.shown > 0) return gap;
  gap = fitted([&](std::size_t shown) {
    return "\n[… " + std::to_string(total.chars - std::min<std::uint64_t>(shown, total.chars)) +
           " more chars]\n";
  });
  if (gap.shown * 2 >= chars_max && gap.shown > 0) return gap;
  if (chars_max >= 4) return {.mark = "\n…\n", .shown = chars_max - 3};
  return {.mark = chars_max > 0 ? "…" : "", .shown = 0};
}

/// REQUIRES: the text has more than `chars_max` characters.
Output cut_text(std::string_view text, const Size& total, std::size_t chars_max, OutputShape shape,
                std::string_view rest) {
  const auto gap = gap_for(total, chars_max, rest);
  const auto head = gap.shown / (shape == OutputShape::shell ? 5 : 2);
  const auto tail = gap.shown - head;
  // No secret is cut: where the output is stored or shown elsewhere, a half of one is not
  // recognised.
  const auto first = secret_around(text, first_characters(text, head).size()).begin;
  const auto last = secret_around(text, text.size() - last_characters(text, tail).size()).end;
  Output output{.text = std::string(text.substr(0, first))};
  output.text.append(gap.mark).append(text.substr(last));
  output.truncation =
      truncation_of(gap.shown, total,
                    "Of " +
                        (total.bytes > 0 ? std::to_string(total.bytes) + " bytes"
                                         : std::to_string(total.chars) + " characters") +
                        " the first " + std::to_string(head) + " and the last " +
                        std::to_string(tail) + " are shown.",
                    rest);
  return output;
}

std::string how_of(const JsonCut& cut, const OutputLimits& limits) {
  std::string text;
  const auto add = [&](std::size_t count, std::string_view noun) {
    if (count == 0) return;
    text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + std::string(noun) +
            (count == 1 ? "" : "s");
  };
  add(cut.strings, "string");
  add(cut.lists, "list");
  add(cut.objects, "object");
  add(cut.deep, "value");
  return "Of the JSON document were cut: " + text +
         (cut.deep > 0 ? " (deeper than " + std::to_string(limits.depth) + " levels)." : ".");
}

std::string_view media_type_of(std::string_view raw) {
  if (is_json(raw)) return "application/json";
  return is_utf8(raw) && raw.find('\0') == std::string_view::npos ? "text/plain"
                                                                  : "application/octet-stream";
}

std::string words_for(const ArtifactRef& ref) {
  auto words = std::string(ref.kept < ref.bytes ? "Stored output: " : "Full output: ") +
               ref.handle + "; read it with artifact_read(id, offset, limit).";
  if (ref.kept < ref.bytes) {
    words += " Of its " + std::to_string(ref.bytes) + " bytes the first and the last, " +
             std::to_string(ref.kept) + " in all, are kept.";
  }
  return words;
}

/// Puts it into the store, and gives the words for how to get it. `whole_bytes`: see `presented`.
std::string keep(std::string_view raw, ArtifactStore* store, std::uint64_t whole_bytes,
                 Output& output) {
  if (store == nullptr) {
    output.artifact_error = "there is no artifact store";
  } else if (auto ref = store->put(raw, media_type_of(raw))) {
    output.artifact = std::move(*ref);
    // The store has the ends of it.
    output.artifact->bytes = std::max(output.artifact->bytes, whole_bytes);
    return words_for(*output.artifact);
  } else {
    output.artifact_error = ref.error().message;
  }
  constexpr std::size_t reason_chars_max = 200;
  return "The rest was not kept: " +
         std::string(first_characters(output.artifact_error, reason_chars_max)) + ".";
}

}  // namespace

namespace {

Output compacted_to(std::string_view text, const OutputLimits& limits, OutputShape shape,
                    std::string_view rest, std::uint64_t whole_bytes) {
  if (!is_utf8(text)) return compacted_to(repaired(text), limits, shape, rest, whole_bytes);
  const auto size = size_of(text, whole_bytes);
  const auto total = characters_in(text);
  if (!is_json(text)) {
    if (total <= limits.inline_chars) return {.text = std::string(text)};
    return cut_text(text, size, limits.inline_chars, shape, rest);
  }
  const auto plain = cut_json(text, limits);
  if (!plain.cut()) {
    if (total <= limits.inline_chars) return {.text = std::string(text)};
    if (characters_in(plain.text) <= limits.inline_chars) return {.text = plain.text};
  } else {
    auto cut =
        cut_json(text, limits, [&](std::size_t shown) { return notice_of(shown, size, rest); });
    const auto chars = characters_in(cut.text);
    if (chars <= limits.inline_chars) {
      auto how = how_of(cut, limits);
      return {.text = std::move(cut.text),
              .truncation = truncation_of(chars - cut.mark_chars, size, std::move(how), rest)};
    }
    if (characters_in(plain.text) <= limits.inline_chars) {
      // Only the notice has no place: what is cut is marked where it is.
      return {.text = plain.text,
              .truncation = truncation_of(characters_in(plain.text) - plain.mark_chars, size,
                                          how_of(plain, limits), rest)};
    }
  }
  return cut_text(plain.text, size, limits.inline_chars, shape, rest);
}

/// Of more, only both ends are looked at: nothing else would be shown, and a gigabyte that is made
/// readable takes three.
constexpr std::size_t looked_at_max = 8U << 20U;

Output ends_of(std::string_view raw, const OutputLimits& limits, ArtifactStore* store,
               OutputShape shape, std::uint64_t whole_bytes) {
  constexpr auto half = looked_at_max / 2;
  Output output;
  const auto rest = keep(raw, store, whole_bytes, output);
  const auto ends = readable(raw.substr(0, half)) + "\n" + readable(raw.substr(raw.size() - half));
  const auto total = size_of(raw, whole_bytes);
  if (characters_in(ends) > limits.inline_chars) {
    auto cut = cut_text(ends, total, limits.inline_chars, shape, rest);
    output.text = std::move(cut.text);
    output.truncation = std::move(cut.truncation);
  } else {
    output.text = ends;
    output.truncation = truncation_of(characters_in(ends), total, {}, rest);
  }
  return output;
}

}  // namespace

Output compacted(std::string_view text, const OutputLimits& limits, OutputShape shape,
                 std::string_view rest) {
  return compacted_to(text, limits, shape, rest, 0);
}

Output presented(std::string_view raw, const OutputLimits& limits, ArtifactStore* store,
                 OutputShape shape, std::uint64_t whole_bytes) {
  if (raw.size() > looked_at_max && raw.size() / 4 > limits.inline_chars) {
    return ends_of(raw, limits, store, shape, whole_bytes);
  }
  const auto text = readable(raw);
  auto output = compacted(text, limits, shape);
  const bool long_raw =
      raw.size() > limits.inline_chars && characters_in(raw) > limits.inline_chars;
  if (!output.truncation && !long_raw) return output;
  Output kept;
  const auto rest = keep(raw, store, whole_bytes, kept);
  if (output.truncation) output = compacted_to(text, limits, shape, rest, whole_bytes);
  output.artifact = std::move(kept.artifact);
  if (output.truncation) output.artifact_error = std::move(kept.artifact_error);
  return output;
}

Output presented(std::string_view raw, const OutputLimits& limits, ArtifactRef kept,
                 OutputShape shape, std::uint64_t whole_bytes) {
  auto output = compacted_to(readable(raw), limits, shape, words_for(kept), whole_bytes);
  output.artifact = std::move(kept);
  return output;
}

}  // namespace watchdog
