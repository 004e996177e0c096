// A tool's thread and the thread that waits for the call share one CallState. Progress, messages
// and pauses all go through `note`, which holds the state's lock and ignores them once the call is
// over. Progress wakes nobody, because it only moves the deadline. The end of a pause does: the
// waiting thread may sleep without a limit then. The registry keeps the names of declared arguments
// for the executor.
#include "watchdog/tool.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

#include "calls/call_state.h"
#include "calls/tool_arguments.h"
#include "codec/json.h"
#include "privacy/content.h"

namespace watchdog {
namespace {

constexpr std::size_t name_bytes_max = 64;
constexpr std::size_t message_chars_max = 200;

/// Returns whether models' APIs accept the name.
bool is_tool_name(std::string_view name) {
  if (name.empty() || name.size() > name_bytes_max) return false;
  return name.find_first_not_of(
             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") ==
         std::string_view::npos;
}

class FunctionTool final : public Tool {
 public:
  FunctionTool(ToolSpec spec, std::function<ToolReply(ToolContext&)> invoke)
      : spec_(std::move(spec)), invoke_(std::move(invoke)) {}
  const ToolSpec& spec() const noexcept override { return spec_; }
  ToolReply invoke(ToolContext& context) override { return invoke_(context); }

 private:
  const ToolSpec spec_;
  const std::function<ToolReply(ToolContext&)> invoke_;
};

}  // namespace

Result<Tool::Preview> Tool::preview(const ToolCall& call) {
  return Preview{.diff = call.tool + " " + call.arguments, .paths = {}};
}

std::shared_ptr<Tool> make_tool(ToolSpec spec, std::function<ToolReply(ToolContext&)> invoke) {
  return std::make_shared<FunctionTool>(std::move(spec), std::move(invoke));
}

Result<void> ToolRegistry::add(std::shared_ptr<Tool> tool, bool allow_unfenced) {
  if (!tool)
    return Error{ErrorCode::invalid, "there is no tool to add: the pointer is null", "tool"};
  const auto& spec = tool->spec();
  if (!is_tool_name(spec.name)) {
    return Error{ErrorCode::invalid,
                 "\"" + std::string(first_characters(spec.name, name_bytes_max)) +
                     "\" cannot be a tool's name: 1 to 64 letters, digits, _ and -",
                 "name"};
  }
  if (auto allowed = check(spec.deadline); !allowed) {
    auto error = allowed.error();
    error.message = "tool " + spec.name + ": " + error.message;
    return error;
  }
  if (is_unfenced(spec) && !allow_unfenced) {
    return Error{ErrorCode::invalid,
                 "tool " + spec.name +
                     ": no executor would run it: it changes things, cannot be stopped, and does "
                     "not use the write fence. Make it `killable` (a process of its own) or "
                     "`cooperative`, or make all of its changes through ToolContext::writes and "
                     "set `gated`",
                 "stoppable"};
  }
  const auto schema = is_json(spec.parameters)
                          ? nlohmann::json::parse(spec.parameters, nullptr, false)
                          : nlohmann::json();
  if (!schema.is_object()) {
    return Error{ErrorCode::invalid,
                 "tool " + spec.name + ": its parameters are no JSON schema of an object",
                 "parameters"};
  }
  if (tools_.contains(spec.name)) {
    return Error{ErrorCode::conflict, "there is a tool " + spec.name + " already", "name"};
  }
  if (auto ready = tool->ready(); !ready) {
    auto error = ready.error();
    error.message = "tool " + spec.name + ": " + error.message;
    return error;
  }
  Entry entry;
  if (const auto declared = schema.find("properties");
      declared != schema.end() && declared->is_object()) {
    for (const auto& [name, ignored] : declared->items()) entry.arguments.push_back(name);
  }
  entry.tool = std::move(tool);
  tools_.emplace(spec.name, std::move(entry));
  return {};
}

std::shared_ptr<Tool> ToolRegistry::find(std::string_view name) const {
  const auto found = tools_.find(name);
  return found == tools_.end() ? nullptr : found->second.tool;
}

const std::vector<std::string>& ToolRegistry::arguments_of(std::string_view name) const {
  static const std::vector<std::string> none;
  const auto found = tools_.find(name);
  return found == tools_.end() ? none : found->second.arguments;
}

std::string ToolRegistry::definitions() const {
  auto list = nlohmann::ordered_json::array();
  for (const auto& [name, entry] : tools_) {
    const auto& spec = entry.tool->spec();
    list.push_back({{"type", "function"},
                    {"function",
                     {{"name", name},
                      {"description", spec.description},
                      {"parameters", nlohmann::ordered_json::parse(spec.parameters)}}}});
  }
  return list.dump();
}

ToolContext::ToolContext(std::shared_ptr<CallState> state) : state_(std::move(state)) {}

const ToolCall& ToolContext::call() const noexcept {
  return *state_->seen_by_tool.load();
}

const std::string& ToolContext::turn() const noexcept {
  return state_->turn;
}

Epoch ToolContext::epoch() const noexcept {
  return state_->fence.fencing_token();
}

std::stop_token ToolContext::stop() const {
  return state_->scope.token();
}

bool ToolContext::should_stop() const noexcept {
  return state_->scope.cancelled();
}

void ToolContext::throw_if_stopped() const {
  if (should_stop()) throw CallStopped{};
}

std::optional<Millis> ToolContext::remaining() const {
  const std::lock_guard guard(state_->mutex);
  if (state_->phase == CallPhase::terminal) return Millis{0};
  if (!state_->movement) return std::nullopt;
  const auto until = state_->movement->deadline().next_expiry();
  if (until == never) return std::nullopt;
  return std::max(until - CallState::clock_now(state_->clock), Millis{0});
}

namespace {

/// Notes a tool's message for listeners. Progress does not wake the waiting thread: it only moves
/// the deadline, and a tool may report it a million times.
template <class Note>
void note(CallState& state, std::string_view message, Note&& apply) {
  const std::lock_guard guard(state.mutex);
  if (state.phase == CallPhase::terminal || !state.movement) return;
  if (!message.empty()) state.message = first_characters(message, message_chars_max);
  apply(*state.movement, CallState::clock_now(state.clock));
}

}  // namespace

void ToolContext::progress(double value, std::optional<double> total, std::string_view message) {
  note(*state_, message,
       [&](Movement& movement, Instant now) { movement.progress(value, total, message, now); });
}

void ToolContext::progress_bytes(std::uint64_t total) {
  note(*state_, {}, [&](Movement& movement, Instant now) { movement.bytes(total, now); });
}

void ToolContext::heartbeat(std::string_view message) {
  note(*state_, message, [](Movement&, Instant) {});
}

void ToolContext::working() {
  note(*state_, {}, [](Movement& movement, Instant now) { movement.alive(now); });
}

void ToolContext::partial(std::string_view text) {
  if (text.empty()) return;
  note(*state_, {}, [&](Movement& movement, Instant now) {
    state_->partial.add(text);
    movement.output(text, now);
  });
}

ToolContext::Pause::Pause(std::shared_ptr<CallState> state, PauseReason reason)
    : state_(std::move(state)), reason_(reason) {
  note(*state_, {}, [&](Movement&, Instant now) { state_->pause(reason_, now); });
}

ToolContext::Pause::Pause(Pause&& other) noexcept
    : state_(std::move(other.state_)), reason_(other.reason_) {}

ToolContext::Pause::~Pause() {
  if (!state_) return;
  note(*state_, {}, [&](Movement&, Instant now) { state_->resume(reason_, now); });
  state_->waiter->ring();  // the waiting thread may have had no time limit
}

ToolContext::Pause ToolContext::pause(PauseReason reason) {
  return {state_, reason};
}

WriteFence& ToolContext::writes() noexcept {
  return state_->fence;
}

void ToolContext::effects(EffectState state) {
  const std::lock_guard guard(state_->mutex);
  if (state_->phase != CallPhase::terminal) state_->effects = state;
}

CancelScope ToolContext::child_scope() const {
  return state_->scope.child(CancelScopeKind::turn);
}

}  // namespace watchdog
