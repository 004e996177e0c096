/// \file
/// A tool that a model may call, and the library's own tools for a workspace.
#pragma once

#include <cstddef>
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

#include "watchdog/artifact_store.h"
#include "watchdog/deadline.h"
#include "watchdog/result.h"
#include "watchdog/subprocess.h"
#include "watchdog/tool_outcome.h"
#include "watchdog/workspace.h"

namespace watchdog {

/// Whether calls may run beside others of their batch and of other turns in the same workspace.
enum class Concurrency : std::uint8_t {
  parallel,
  exclusive,    ///< Alone.
  by_resource,  ///< Beside calls that use other resources; see ToolSpec::resources.
};

/// The effects that a call may have. `unknown`: its author does not declare them. Then no text
/// calls an interrupted call harmless, and it is not retried by itself; it runs beside others.
enum class Effect : std::uint8_t { unknown, none, local_write, external_write, irreversible };

/// Returns true for effects that change something.
[[nodiscard]] constexpr bool writes(Effect effect) noexcept {
  return effect != Effect::unknown && effect != Effect::none;
}

/// Whether a second call changes nothing more; `keyed`: if it has the same idempotency key.
enum class Idempotency : std::uint8_t { no, keyed, yes };

/// How a call can be ended. `cooperative`: it checks its stop token. `killable`: it is a process.
enum class Stoppable : std::uint8_t { cooperative, killable, not_stoppable };

/// A resource that calls must share: the path of a file, or any other name. A name that begins with
/// a slash is a path, and all names of one file are the same.
struct ResourceKey {
  std::string key{};  ///< The name of the resource, for example a path.
  bool write = true;  ///< True: no other call uses it meanwhile.
};

/// A plain value.
struct ToolSpec {
  std::string name{};         ///< The name for the model.
  std::string description{};  ///< For the model.
  /// JSON schema of the arguments, for the model: an object with `properties`.
  std::string parameters = R"({"type":"object","properties":{}})";
  /// Empty: exclusive if it is known to change something, else parallel.
  std::optional<Concurrency> concurrency{};
  Effect effect = Effect::unknown;               ///< See Effect.
  Idempotency idempotency = Idempotency::no;     ///< Whether a call may be repeated.
  Stoppable stoppable = Stoppable::cooperative;  ///< How a call can be stopped.
  /// Every effect uses the write fence, so none can come late.
  bool gated = false;
  DeadlinePolicy deadline{};  ///< The deadlines of its calls.
  /// Whether it may be called again in the same turn after a timeout. Empty: by effect and
  /// idempotency.
  std::optional<bool> retry_on_timeout{};
  bool needs_confirmation = false;  ///< A person is asked first.
  /// For tools that request a confirmation by their reply ("Write confirmation required") and then
  /// expect `confirm_write: true`. The first call runs with a closed fence.
  bool confirms_by_reply = false;
  std::optional<std::size_t> inline_chars_max{};  ///< Of its output; empty: the executor's limit.
  OutputShape shape = OutputShape::text;          ///< The form of its output.
  bool allowed_in_final_turn = false;             ///< It may also be called in a final turn.
  /// Its argument `timeout_ms` (declare it in `parameters`) is the call's deadline: the executor
  /// takes it, and the tool does not see it. Other spellings of it are understood, too.
  bool takes_timeout = false;
  /// Returns the resources of a call from its arguments. Called on the executor's thread; it must
  /// not block.
  std::function<std::vector<ResourceKey>(std::string_view arguments)> resources{};
};

/// The reply of a tool. A plain value.
struct ToolReply {
  bool ok = true;      ///< False: the tool reports an error.
  std::string text{};  ///< Any bytes.
  /// If `ok` is false: the cause, and of a process its exit code.
  FailureKind failure = FailureKind::tool_error;
  std::optional<int> exit_code{};         ///< Of a program; empty: none.
  std::optional<ArtifactRef> artifact{};  ///< The whole output, if the tool stored it itself.
  /// The size of the whole output, if `text` has only its ends; else 0.
  std::uint64_t whole_bytes = 0;
};

struct CallState;

/// A call as its tool sees it. Valid as long as a pointer to it exists, even after the call was
/// given up. Thread-safe.
class ToolContext {
 public:
  /// Made by the executor.
  explicit ToolContext(std::shared_ptr<CallState> state);

  /// Returns the call.
  [[nodiscard]] const ToolCall& call() const noexcept;
  /// Returns the id of its turn; empty: none.
  [[nodiscard]] const std::string& turn() const noexcept;
  /// Returns the call's epoch: see Epoch.
  [[nodiscard]] Epoch epoch() const noexcept;
  /// Requested when the call is cancelled or out of time. Soon after that the call is given up.
  [[nodiscard]] std::stop_token stop() const;
  /// Returns true once the call should end: it was cancelled or its deadline passed.
  [[nodiscard]] bool should_stop() const noexcept;
  /// Throws CallStopped if it should stop.
  void throw_if_stopped() const;
  /// Returns the time until the present deadline; empty: there is none.
  [[nodiscard]] std::optional<Millis> remaining() const;

  /// Reports progress: `value` has to rise, or `message` has to be new. Extends the idle deadline.
  void progress(double value, std::optional<double> total = {}, std::string_view message = {});
  /// Reports the total of bytes so far.
  void progress_bytes(std::uint64_t total);
  /// Reports a sign of life. Extends nothing.
  void heartbeat(std::string_view message = {});
  /// Reports that processes of the call use CPU or disks. Puts the idle deadline off; see
  /// ActivityDeadline::put_off.
  void working();
  /// Adds a part of the result: it is kept even if the call is given up, up to 1 MiB. It counts as
  /// progress if it has a line that was not there before; times of day make no new line.
  void partial(std::string_view text);
  /// A wait for a person or another party: deadline and budget stand still until the guard is
  /// destroyed.
  class Pause {
   public:
    ~Pause();
    /// Moves the pause; `other` no longer ends it.
    Pause(Pause&& other) noexcept;
    Pause& operator=(Pause&&) = delete;

   private:
    friend class ToolContext;
    Pause(std::shared_ptr<CallState> state, PauseReason reason);
    std::shared_ptr<CallState> state_;
    PauseReason reason_;
  };
  /// Stops the deadline's clock until the result is destroyed.
  [[nodiscard]] Pause pause(PauseReason reason);

  /// Returns the fence for the call's effects.
  [[nodiscard]] WriteFence& writes() noexcept;
  /// Sets the state of its effects, if the tool knows better than the fence.
  void effects(EffectState state);
  /// Returns a scope below this call's, for turns and calls that the tool starts itself.
  [[nodiscard]] CancelScope child_scope() const;

 private:
  std::shared_ptr<CallState> state_;
};

/// Thrown by ToolContext::throw_if_stopped.
struct CallStopped {};

/// Use from several threads at once: calls may run in parallel.
class Tool {
 public:
  /// The effects that a call would have. A plain value.
  struct Preview {
    std::string diff{};                          ///< The change as a unified diff.
    std::vector<std::filesystem::path> paths{};  ///< It will touch these, and no others.
  };

  Tool() = default;
  Tool(const Tool&) = delete;
  Tool& operator=(const Tool&) = delete;
  virtual ~Tool() = default;

  /// Returns the spec, which must not change.
  [[nodiscard]] virtual const ToolSpec& spec() const noexcept = 0;
  /// Runs the call, on a worker's thread. It may throw.
  virtual ToolReply invoke(ToolContext& context) = 0;
  /// Describes the call for a confirmation. Empty: the tool cannot.
  [[nodiscard]] virtual Result<Preview> preview(const ToolCall& call);
  /// Checks that what the tool needs is available. Called once, when it is added to a registry, so
  /// an agent fails at its start.
  [[nodiscard]] virtual Result<void> ready() const { return {}; }
};

/// Returns a tool made of a function.
[[nodiscard]] std::shared_ptr<Tool> make_tool(ToolSpec spec,
                                              std::function<ToolReply(ToolContext&)> invoke);

/// The available tools. Fill it first; then several threads may use it.
class ToolRegistry {
 public:
  /// Errors: `conflict` (the name is taken), `invalid` (name, deadlines, or schema), and those of
  /// Tool::ready. Also `invalid`: it has effects, cannot be stopped and does not use the write
  /// fence, so no executor would run it. `allow_unfenced`: as in ExecutorOptions; then it is added.
  [[nodiscard]] Result<void> add(std::shared_ptr<Tool> tool, bool allow_unfenced = false);
  /// Returns the tool of that name; null: there is none.
  [[nodiscard]] std::shared_ptr<Tool> find(std::string_view name) const;
  /// Returns the names of the tool's own arguments.
  [[nodiscard]] const std::vector<std::string>& arguments_of(std::string_view name) const;
  /// Returns a JSON array of definitions in the form of the chat APIs.
  [[nodiscard]] std::string definitions() const;

 private:
  struct Entry {
    std::shared_ptr<Tool> tool{};
    std::vector<std::string> arguments{};
  };
  std::map<std::string, Entry, std::less<>> tools_;
};

/// A person's answer.
enum class Confirmation : std::uint8_t { approve, deny };

/// Asks a person without a time limit; returns early when `stop` is requested (the answer is then
/// ignored). Called on a worker's thread.
using Confirmer = std::function<Confirmation(const ToolCall& call, const Tool::Preview& preview,
                                             const std::stop_token& stop)>;

// Without a workspace, or without a store of artifacts to read, these return null, which
// `ToolRegistry::add` refuses.

/// `read_file {path, offset?, limit?}`: a page of a file, `limit` bytes at most.
[[nodiscard]] std::shared_ptr<Tool> read_file_tool(std::shared_ptr<const Workspace> workspace);

/// `list_files {path?}`: names of a directory, directories with a slash; at most 1,000.
[[nodiscard]] std::shared_ptr<Tool> list_files_tool(std::shared_ptr<const Workspace> workspace);

/// `write_file {path, content}`: replaces or creates a file in one step, through the write fence.
/// `confirm`: a person is asked first, with a diff.
[[nodiscard]] std::shared_ptr<Tool> write_file_tool(std::shared_ptr<const Workspace> workspace,
                                                    bool confirm);

/// Options of the shell tool. A plain value.
struct ShellOptions {
  bool confirm = false;                   ///< A person is asked first.
  Survivors survivors = Survivors::kill;  ///< See Survivors.
  KillLadder ladder{};                    ///< The steps that end it.
  bool inherit_env = false;               ///< See SpawnSpec.
  DeadlinePolicy deadline{};              ///< Of its calls; empty: the executor's.
  /// Empty: one command at a time. `parallel`: commands of one answer run side by side.
  std::optional<Concurrency> concurrency{};
  std::optional<bool> retry_on_timeout{};  ///< See ToolSpec.
};

/// `shell {command, timeout_ms?}`: a command line for /bin/sh in the workspace's first root. New
/// lines of its output count as progress; while its processes use CPU or disks, the deadline is put
/// off. Long output is stored in full if there is a store. It is not a sandbox: a command
/// may touch whatever this user may.
[[nodiscard]] std::shared_ptr<Tool> shell_tool(std::shared_ptr<const Workspace> workspace,
                                               std::shared_ptr<ArtifactStore> artifacts,
                                               ShellOptions options = {});

/// `artifact_read {id, offset?, limit?}`: a page of an output that was too long to be shown.
[[nodiscard]] std::shared_ptr<Tool> artifact_read_tool(std::shared_ptr<ArtifactStore> artifacts);

}  // namespace watchdog
