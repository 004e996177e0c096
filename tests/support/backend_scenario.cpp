#include "support/backend_scenario.h"

#include <nlohmann/json.hpp>

namespace watchdog::test {
namespace {

using nlohmann::json;

/// Takes members of an object, and remembers the first that was no good.
class Reading {
 public:
  explicit Reading(const json& object) : object_(object) {
    if (!object.is_object()) wrong_ = "no object";
  }

  template <class T>
  void take(const char* name, T& into) {
    if (const json* value = found(name)) {
      try {
        into = value->get<T>();
      } catch (const json::exception&) {
        wrong_ = name;
      }
    }
  }
  void seconds(const char* name, Millis& into) {
    double told = static_cast<double>(into.count()) / 1'000;
    take(name, told);
    into = Millis{static_cast<std::int64_t>(told * 1'000)};
  }
  template <class Enum>
  void choose(const char* name, Enum& into) {
    std::string told;
    take(name, told);
    if (told.empty()) return;
    const auto chosen = named<Enum>(told);
    if (chosen) {
      into = *chosen;
    } else {
      wrong_ = name;
    }
  }
  const json* found(const char* name) {
    const auto at = object_.is_object() ? object_.find(name) : object_.end();
    if (at == object_.end()) return nullptr;
    ++taken_;
    return &*at;
  }
  void fail(const std::string& wrong) { wrong_ = wrong; }
  [[nodiscard]] std::string wrong() const {
    if (!wrong_.empty()) return wrong_;
    return taken_ == object_.size() ? "" : "a key that is none";
  }

 private:
  const json& object_;
  std::size_t taken_ = 0;
  std::string wrong_;
};

}  // namespace

std::string apply(const json& change, Instant now, BackendScenario& scenario) {
  Reading reading(change);
  BackendScenario next = scenario;
  next.mend = false;
  next.fault.reset();
  reading.choose("kind", next.model.build);
  reading.take("parallel", next.model.slots);
  reading.take("context", next.model.context);
  reading.take("batch", next.model.batch);
  reading.take("prefill", next.model.read_rate);
  reading.take("decode", next.model.write_rate);
  reading.take("jitter", next.model.jitter);
  reading.take("busy_cpu", next.model.busy_cpu);
  reading.take("idle_cpu", next.model.idle_cpu);
  reading.seconds("loading_s", next.model.loading);
  reading.seconds("sleep_s", next.model.sleep_after);
  reading.seconds("ping_s", next.model.ping_every);
  reading.take("slots", next.manners.has_slots);
  reading.take("metrics", next.manners.has_metrics);
  reading.take("model", next.manners.model);
  reading.take("prompt_tokens", next.lengths.prompt);
  reading.take("answer_tokens", next.lengths.answer);
  reading.take("reasoning_tokens", next.lengths.reasoning);
  reading.take("cache", next.cache);
  reading.take("api_key", next.api_key);
  reading.take("mend", next.mend);
  if (const json* object = reading.found("fault")) {
    Reading told(*object);
    SimulatedFault fault;
    Millis at{0};
    told.choose("kind", fault.kind);
    told.choose("phase", fault.phase);
    told.seconds("at_s", at);
    told.seconds("lasts_s", fault.lasts);
    told.take("after", fault.after);
    told.take("slots_answer", fault.slots_answer);
    told.take("health_answers", fault.health_answers);
    told.take("cpu", fault.cpu);
    if (!told.wrong().empty()) reading.fail("fault: " + told.wrong());
    fault.at = now + at;
    next.fault = fault;
  }
  const bool works = next.model.slots > 0 && next.model.batch > 0 && next.model.read_rate > 0 &&
                     next.model.write_rate > 0;
  if (!works) return "must be above zero: parallel, batch, prefill, decode";
  if (!reading.wrong().empty()) return reading.wrong();
  scenario = std::move(next);
  return {};
}

}  // namespace watchdog::test
