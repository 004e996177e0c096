/// \file
/// What a tool is, as its author writes it: a function that may block, throw, or never return.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "watchdog/deadline.h"
#include "watchdog/names.h"
#include "watchdog/result.h"
#include "watchdog/tool_outcome.h"
#include "watchdog/write_gate.h"

namespace watchdog {

/// Whether calls may run beside others of their batch and of other turns in the same workspace.
enum class Concurrency : std::uint8_t {
  parallel,
  exclusive,    ///< Alone.
  by_resource,  ///< Beside those that use other things; see ToolSpec::resources.
};

enum class Effect : std::uint8_t { none, local_write, external_write, irreversible };

/// Whether a second time changes nothing more; `keyed`: if it comes with the same idempotency key.
enum class Idempotency : std::uint8_t { no, keyed, yes };

/// How a call can be ended. `cooperative`: it looks at its stop token. `killable`: it is a process.
enum class Stoppable : std::uint8_t { cooperative, killable, not_stoppable };

/// Something that not everybody may use at once: the path of a file, or any other name. What begins
/// with a slash is a path, and all names of one file are the same.
struct ResourceKey {
  std::string key;
  bool write = true;
};

/// A plain value.
struct ToolSpec {
  std::string name;
  std::string description{};  ///< For the model.
  /// JSON schema of the arguments, for the model: an object with `properties`.
  std::string parameters = R"({"type":"object","properties":{}})";
  /// Empty: parallel without effects, else exclusive.
  std::optional<Concurrency> concurrency{};
  Effect effect = Effect::none;
  Idempotency idempotency = Idempotency::no;
  Stoppable stoppable = Stoppable::cooperative;
  /// Every effect goes through the write gate, so that nothing can come late.
  bool gated = false;
  DeadlinePolicy deadline{};
  /// May be called again in the same turn after a timeout. Empty: as effect and idempotency say.
  std::optional<bool> retry_on_timeout{};
  bool needs_confirmation = false;
  /// For tools that ask by their reply ("Write confirmation required") and want `confirm_write:
  /// true` then. They are called first with the gate shut.
  bool confirms_by_reply = false;
  std::optional<std::size_t> inline_chars_max{};
  OutputShape shape = OutputShape::text;
  bool allowed_in_final_turn = false;
  /// What a call uses. Gets the arguments. Called by whoever carries the calls out: must not wait.
  std::function<std::vector<ResourceKey>(std::string_view arguments)> resources{};
};

/// What a tool returns. A plain value.
struct ToolReply {
  bool ok = true;
  std::string text{};  ///< Any bytes.
  /// Where `ok` is false: why, and of a process its exit code.
  FailureKind failure = FailureKind::tool_error;
  std::optional<int> exit_code{};
  std::optional<ArtifactRef> artifact{};  ///< All of the output, if the tool stored it itself.
};

struct CallState;

/// A call as its tool sees it. Valid as long as somebody holds it, whether or not anybody still
/// waits for the call. Thread-safe.
class ToolContext {
 public:
  explicit ToolContext(std::shared_ptr<CallState> state);

  [[nodiscard]] const ToolCall& call() const noexcept;
  [[nodiscard]] const std::string& turn() const noexcept;
  [[nodiscard]] Epoch epoch() const noexcept;
  /// Asked for when the call is called off or out of time. Soon after that nobody waits any more.
  [[nodiscard]] std::stop_token stop() const;
  [[nodiscard]] bool should_stop() const noexcept;
  /// Throws CallStopped if it should stop.
  void throw_if_stopped() const;
  /// Until the deadline as it stands; empty: there is none.
  [[nodiscard]] std::optional<Millis> remaining() const;

  /// It got further: `value` has to rise. Pushes the idle deadline out.
  void progress(double value, std::optional<double> total = {}, std::string_view message = {});
  /// So many bytes came in all.
  void progress_bytes(std::uint64_t total);
  /// It lives. Pushes nothing out.
  void heartbeat(std::string_view message = {});
  /// A piece of its result: it is kept whatever happens to the call, up to 1 MiB, and is progress.
  void partial(std::string_view text);
  /// Waits for somebody: neither deadline nor budget count until the guard is gone.
  class Pause {
   public:
    ~Pause();
    Pause(Pause&& other) noexcept;
    Pause& operator=(Pause&&) = delete;

   private:
    friend class ToolContext;
    Pause(std::shared_ptr<CallState> state, PauseReason reason);
    std::shared_ptr<CallState> state_;
    PauseReason reason_;
  };
  [[nodiscard]] Pause pause(PauseReason reason);

  [[nodiscard]] WriteGate& writes() noexcept;
  /// What became of its effects, where it knows better than the gate.
  void effects(EffectState state);
  /// Below it, for what the tool starts itself: other turns and their calls.
  [[nodiscard]] CancelScope child_scope() const;

 private:
  std::shared_ptr<CallState> state_;
};

/// Thrown by ToolContext::throw_if_stopped.
struct CallStopped {};

/// Use from several threads at once: calls may run in parallel.
class Tool {
 public:
  /// What a call would do. A plain value.
  struct Preview {
    std::string diff;
    std::vector<std::filesystem::path> paths;  ///< It will touch these, and no others.
  };

  Tool() = default;
  Tool(const Tool&) = delete;
  Tool& operator=(const Tool&) = delete;
  virtual ~Tool() = default;

  /// Does not change.
  [[nodiscard]] virtual const ToolSpec& spec() const noexcept = 0;
  virtual ToolReply invoke(ToolContext& context) = 0;
  /// For whoever has to confirm it. Nothing: it cannot tell.
  [[nodiscard]] virtual Result<Preview> preview(const ToolCall& call);
};

/// A tool made of a function.
[[nodiscard]] std::shared_ptr<Tool> make_tool(ToolSpec spec,
                                              std::function<ToolReply(ToolContext&)> invoke);

/// The tools there are. Fill it first; then it may be used from several threads.
class ToolRegistry {
 public:
  /// Errors: `conflict` (the name is taken), `invalid` (name, deadlines, or schema).
  [[nodiscard]] Result<void> add(std::shared_ptr<Tool> tool);
  [[nodiscard]] std::shared_ptr<Tool> find(std::string_view name) const;
  /// Names of the tool's own arguments.
  [[nodiscard]] const std::vector<std::string>& arguments_of(std::string_view name) const;
  /// A JSON array of definitions as the chat APIs have them.
  [[nodiscard]] std::string definitions() const;

 private:
  struct Entry {
    std::shared_ptr<Tool> tool;
    std::vector<std::string> arguments;
  };
  std::map<std::string, Entry, std::less<>> tools_;
};

/// What a person is asked.
enum class Confirmation : std::uint8_t { approve, deny };

/// Asks somebody; waits for as long as it takes, and returns early when `stop` is asked for (the
/// answer is ignored then). Called on a worker's thread.
using Confirmer = std::function<Confirmation(const ToolCall& call, const Tool::Preview& preview,
                                             const std::stop_token& stop)>;

}  // namespace watchdog
