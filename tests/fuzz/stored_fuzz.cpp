// A row or a snapshot of a damaged file is read or refused, and what is refused changes nothing.

#include <string_view>

#include "codec/facts.h"
#include "codec/json.h"
#include "fuzz/fuzz.h"
#include "support/agent.h"

using namespace watchdog;

std::vector<std::string> fuzz_seeds() {
  test::Agent busy;
  busy.call("read", "{}", "ok").fail("read", "{}", "no").loop().helper().helper();
  busy.message("text")
      .opinion(Verdict::looping, 0.9)
      .kind(ReportKind::wait, "user")
      .begin("sh", "{}", "1");
  std::vector<std::string> seeds{snapshot_of(Case{}), snapshot_of(busy.judged),
                                 R"({"ts_ms":1,"call_id":"c","turn":"t","hash":"h"})"};
  for (const auto* text :
       {R"({"kind":"heartbeat","source":"loop","iteration":3,"phase":"p","counters":{"a":1.5}})",
        R"({"kind":"start","pid":1,"start_ticks":1,"boot_id":"b","host":"h"})",
        R"({"kind":"end","outcome":"failed","reason":"r","error":"e"})",
        R"({"kind":"turn","name":"turn_start","call_id":"t","parent_id":"p"})",
        R"({"kind":"limit","limit":"l","value":3})"}) {
    if (const auto report = report_from_json(text); report && *report)
      seeds.push_back(facts_of(**report, Instant{}));
  }
  return seeds;
}

void try_input(std::string_view text) {
  for (std::size_t kind = 0; kind < std::size(Names<ReportKind>::all); ++kind) {
    Report report;
    report.kind = static_cast<ReportKind>(kind);
    if (!read_facts(report, text, Instant{})) continue;
    Event event;
    event.report = report;
    FUZZ_REQUIRE(is_json(to_json(event)));
    (void)facts_of(report, Instant{});
  }
  Case judged;
  const auto before = snapshot_of(judged);
  if (!read_snapshot(judged, text)) {
    FUZZ_REQUIRE(snapshot_of(judged) == before);
    return;
  }
  const auto written = snapshot_of(judged);
  Case again;
  FUZZ_REQUIRE(read_snapshot(again, written).ok());
  FUZZ_REQUIRE(snapshot_of(again) == written);
}
