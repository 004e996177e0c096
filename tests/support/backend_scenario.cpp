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
  void read(const char* name, T& into) {
    if (const json* value = found(name)) {
      try {
        into = value->get<T>();
      } catch (const json::exception&) {
        wrong_ = name;
      }
    }
  }
  void seconds(const char* name, Millis& into) {
    double given = static_cast<double>(into.count()) / 1'000;
    read(name, given);
    into = Millis{static_cast<std::int64_t>(given * 1'000)};
  }
  template <class Enum>
  void choose(const char* name, Enum& into) {
    std::string given;
    read(name, given);
    if (given.empty()) return;
    const auto chosen = named<Enum>(given);
    if (chosen) {
      into = *chosen;
    } else {
      wrong_ = name;
    }
  }
  const json* found(const char* name) {
    const auto at = object_.is_object() ? object_.find(name) : object_.end();
    if (at == object_.end()) return nullptr;
    ++read_count_;
    return &*at;
  }
  void fail(const std::string& wrong) { wrong_ = wrong; }
  [[nodiscard]] std::string wrong() const {
    if (!wrong_.empty()) return wrong_;
    return read_count_ == object_.size() ? "" : "a key that is none";
  }

 private:
  const json& object_;
  std::size_t read_count_ = 0;
  std::string wrong_;
};

}  // namespace

std::string apply(const json& change, Instant now, BackendScenario& scenario) {
  Reading reading(change);
  BackendScenario next = scenario;
  next.mend = false;
  next.fault.reset();
  reading.choose("kind", next.model.build);
  reading.read("parallel", next.model.slots);
  reading.read("context", next.model.context);
  reading.read("batch", next.model.batch);
  reading.read("prefill", next.model.read_rate);
  reading.read("decode", next.model.write_rate);
  reading.read("jitter", next.model.jitter);
  reading.read("busy_cpu", next.model.busy_cpu);
  reading.read("idle_cpu", next.model.idle_cpu);
  reading.seconds("loading_s", next.model.loading);
  reading.seconds("sleep_s", next.model.sleep_after);
  reading.seconds("ping_s", next.model.ping_every);
  reading.read("slots", next.manners.has_slots);
  reading.read("metrics", next.manners.has_metrics);
  reading.read("model", next.manners.model);
  reading.read("prompt_tokens", next.lengths.prompt);
  reading.read("answer_tokens", next.lengths.answer);
  reading.read("reasoning_tokens", next.lengths.reasoning);
  reading.read("cache", next.cache);
  reading.read("api_key", next.api_key);
  reading.read("mend", next.mend);
  if (const json* object = reading.found("fault")) {
    Reading given(*object);
    SimulatedFault fault;
    Millis at{0};
    given.choose("kind", fault.kind);
    given.choose("phase", fault.phase);
    given.seconds("at_s", at);
    given.seconds("lasts_s", fault.lasts);
    given.read("after", fault.after);
    given.read("slots_answer", fault.slots_answer);
    given.read("health_answers", fault.health_answers);
    given.read("cpu", fault.cpu);
    if (!given.wrong().empty()) reading.fail("fault: " + given.wrong());
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
