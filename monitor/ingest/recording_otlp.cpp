// OTLP/JSON in a file: requests, one per line as the collector's file exporter writes them, or one
// in the whole file. Records of all requests are sorted by their end and mapped at once, so that
// spans find the spans above them, whichever request has those.
#include <algorithm>

#include "ingest/otlp.h"
#include "ingest/recording_steps.h"

namespace watchdog::monitor {
namespace {

constexpr std::pair<const char*, OtlpSignal> recorded_signals[] = {
    {"resourceLogs", OtlpSignal::logs},
    {"resourceSpans", OtlpSignal::traces},
    {"resourceMetrics", OtlpSignal::metrics}};

class OtlpRecordingReader final : public ValueReader {
 public:
  Result<void> read(const nlohmann::json& value, std::string_view text,
                    StepList& /*steps*/) override {
    for (const auto& [name, signal] : recorded_signals) {
      if (!value.is_object() || !value.contains(name)) continue;
      auto records = otlp_records_from_json(signal, text);
      if (!records) return records.error();
      if (records_.size() + records->size() > StepList::steps_max) return StepList::exceeded();
      std::ranges::move(*records, std::back_inserter(records_));
    }
    return {};
  }

  void finish(StepList& steps) override {
    std::ranges::stable_sort(records_, {}, &OtlpRecord::end);
    const auto newest = records_.empty() ? 0 : records_.back().end / 1'000'000;
    const WallTime received{Millis{std::max<std::int64_t>(newest, 1)}};
    OtlpMemory memory;
    const auto batches = otlp_batches(
        records_, received, memory, [](const std::string&) { return OtlpKnown{}; }, {},
        received.time_since_epoch() - Millis{1});
    for (const auto& batch : batches) {
      const auto session = steps.session(batch.session, batch.spec);
      for (const auto& report : batch.reports) steps.say(session, report, report.at);
    }
    steps.sort();
  }

 private:
  std::vector<OtlpRecord> records_;
};

}  // namespace

bool is_otlp(const nlohmann::json& value) {
  return std::ranges::any_of(recorded_signals, [&](const auto& signal) {
    return value.is_object() && value.contains(signal.first) && value[signal.first].is_array();
  });
}

std::unique_ptr<ValueReader> otlp_reader() {
  return std::make_unique<OtlpRecordingReader>();
}

}  // namespace watchdog::monitor
