// Whatever is posted as events, what is accepted can be written and read again, and sealing it
// twice changes nothing more.

#include <string_view>

#include "codec/json.h"
#include "fuzz/fuzz.h"
#include "privacy/content.h"
#include "watchdog/repetition.h"

using namespace watchdog;

std::vector<std::string> fuzz_seeds() {
  return {R"({"kind":"start","pid":1,"start_ticks":1,"boot_id":"b","host":"h"})",
          R"({"kind":"heartbeat","source":"loop","iteration":3,"phase":"p","counters":{"a":1.5}})",
          R"({"kind":"heartbeat"})"
          "\n"
          R"({"kind":"state_change","type":"t","data":{"a":[1]}})",
          R"([{"kind":"tool_call","name":"f","args":{"x":"y"},"call_id":"c","turn_id":"t"}])",
          R"({"kind":"tool_result","name":"f","text":"out","call_id":"c","timeout":true})",
          R"({"kind":"error","name":"f","text":"no","call_id":"c","ts_ms":1700000000000})",
          R"({"kind":"end","outcome":"failed","reason":"r","error":"e"})",
          R"({"kind":"turn","name":"turn_start","call_id":"t","parent_id":"p"})",
          R"({"kind":"wait","waiting_for":"user","text":"t","until":1})",
          R"({"kind":"limit","limit":"l","value":3})",
          R"({"kind":"opinion","status":"A","text":"t"})",
          R"({"kind":"new","x":"\u00e9\ud83d\ude00"})"};
}

void try_input(std::string_view text) {
  const auto list = reports_from_json(text);
  if (!list) {
    FUZZ_REQUIRE(!list.error().message.empty());
    return;
  }
  for (const auto& report : list->reports) {
    FUZZ_REQUIRE(report.content.size() <= event_bytes_max);
    for (const auto level :
         {ContentLevel::none, ContentLevel::digest, ContentLevel::preview, ContentLevel::full}) {
      Event event;
      event.report = report;
      mark(event.report);
      seal(event.report, level);
      const auto once = to_json(event);
      FUZZ_REQUIRE(is_json(once));
      seal(event.report, level);
      FUZZ_REQUIRE(to_json(event) == once);
    }
  }
}
