// Whatever a tool gives, a model is shown UTF-8 within limits, and the same however often it
// passes.

#include <string_view>

#include "codec/json.h"
#include "fuzz/fuzz.h"
#include "text/utf8.h"
#include "watchdog/artifact_store.h"

using watchdog::OutputLimits;
using watchdog::OutputShape;

std::vector<std::string> fuzz_seeds() {
  return {
      R"({"path":"src/main.cpp","lines":[1,2.50,-0,12345678901234567890123],"more":{"a":{"b":{"c":[1]}}}})",
      R"(["\ud83d\ude00\n\\\"","…",[[[[[]]]]],{},1E+5,true,null])",
      "\"a root that is a string of some length\"",
      "\x1b[31;1mred\x1b[0m \x1b]0;title\x07 10 %\r50 %\r100 %\n",
      "\xc2\x9b"
      "1m \xff\xfe \xe4\xb8\x96 a\bb\f",
      "plain text that goes on and on and on and on, and then some more of it\n",
      "[truncated: 10 of 20 chars shown (50 %).]",
      "token=abcdefghijklmnop"};
}

void try_input(std::string_view raw) {
  const auto text = watchdog::readable(raw);
  FUZZ_REQUIRE(watchdog::is_utf8(text));
  FUZZ_REQUIRE(watchdog::readable(text) == text);
  for (const std::size_t chars : {20U, 150U, 1'000U}) {
    const OutputLimits limits{.inline_chars = chars,
                              .string_chars = chars / 8,
                              .list_items = 1 + chars / 50,
                              .object_keys = 1 + chars / 50,
                              .depth = 3};
    const auto shape = chars == 150 ? OutputShape::shell : OutputShape::text;
    const auto once = watchdog::compacted(raw, limits, shape, "Ask.");
    FUZZ_REQUIRE(watchdog::is_utf8(once.text));
    FUZZ_REQUIRE(watchdog::characters_in(once.text) <= chars);
    FUZZ_REQUIRE(watchdog::compacted(once.text, limits, shape, "Ask.").text == once.text);
    const auto shown = watchdog::presented(raw, limits, nullptr, shape);
    FUZZ_REQUIRE(watchdog::is_utf8(shown.text));
    FUZZ_REQUIRE(watchdog::characters_in(shown.text) <= chars);
    FUZZ_REQUIRE(shown.truncation.has_value() == !shown.artifact_error.empty());

    OutputLimits roomy = limits;
    roomy.inline_chars = SIZE_MAX;
    if (watchdog::is_json(raw))
      FUZZ_REQUIRE(watchdog::is_json(watchdog::compacted(raw, roomy).text));
  }
}
