// One `poll` waits for the helper's socket, a stop and both pipes. When the leader has exited, all
// that is in the pipes is read: at most what a pipe holds, because descendants may go on writing.
// When nothing came for `drain_grace`, or both pipes are closed, the helper gets the order to end
// the rest. So a filter that the leader started passes on the last line. A helper that takes too
// long is given up. If it is lost before it reports `done`, processes are found by their mark.
#include "watchdog/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>
#include <new>
#include <system_error>
#include <utility>

#include "facts/ids.h"
#include "process/descriptor.h"
#include "process/exec_process.h"
#include "process/head_tail_buffer.h"
#include "process/marked_processes.h"
#include "process/process_work.h"

namespace watchdog {
namespace {

using Kind = ExecMessage::Kind;

constexpr std::size_t piece_bytes = 65'536;
constexpr std::size_t err_tail_bytes = 4'096;
constexpr std::size_t names_max = 16;
/// How much longer than its ladder the helper program may take before it counts as stuck.
constexpr Millis helper_grace{2'000};
/// The longest time for which descendants may write on after the leader's exit.
constexpr Millis drain_max{10'000};
constexpr Millis look_every_min{250};

std::string shown(std::string_view name, std::int64_t pid) {
  std::string text;
  for (const char letter : name) text += letter > ' ' && letter <= '~' ? letter : '?';
  return text + " (" + std::to_string(pid) + ")";
}

/// Why a program did not come to run.
Error failure_of(const ExecMessage& message, const SpawnSpec& spec) {
  const int cause = message.number;
  const auto why = std::generic_category().message(cause);
  const auto directory = spec.cwd.empty() ? "." : spec.cwd.string();
  const auto what = message.kind == Kind::no_directory
                        ? "cannot enter the directory " + directory
                        : "cannot run " + spec.argv[0] + " in " + directory;
  if (message.kind == Kind::no_process || cause == EAGAIN || cause == ENOMEM || cause == EMFILE ||
      cause == ENFILE)
    return {ErrorCode::exhausted, what + ": " + why};
  if (message.kind == Kind::no_program && cause == ENOENT)
    return {ErrorCode::not_found, what + ": there is no such program, or none that its #! names"};
  if (cause == ENOENT || cause == ENOTDIR) return {ErrorCode::not_found, what + ": " + why};
  return {ErrorCode::invalid, what + ": " + why};
}

/// The state of waiting for a program: lives as long as one call.
class Supervision {
 public:
  Supervision(const SpawnSpec& spec, const ProcessHooks& hooks, std::string mark,
              ExecProcess&& exec, Descriptor&& wake)
      : spec_(spec),
        hooks_(hooks),
        mark_(std::move(mark)),
        exec_(std::move(exec)),
        wake_(std::move(wake)),
        kept_(spec.head_bytes, spec.tail_bytes),
        err_kept_(0, err_tail_bytes),
        piece_(piece_bytes, '\0') {}

  Result<ProcessEnd> run() {
    const std::stop_callback on_stop(hooks_.stop, [this] { eventfd_write(wake_.get(), 1); });
    while (!done_ && !exec_.gone() && !given_up_) turn();
    exec_.kill();  // it has nothing left to do, and is not waited for
    const auto exec_code = exec_.reap();
    if (failure_) return *failure_;
    if (!done_ && exec_code)
      return Error{ErrorCode::unavailable, "programs cannot be run: " + exec_.path() +
                                               " ended with " + std::to_string(*exec_code) +
                                               " and did not say why"};
    if (!done_) sweep();
    for (auto& stream : streams_) {
      read_what_is_there(stream);
      end_.output_held |= stream.open;
    }
    end_.head = kept_.release_head();
    end_.tail = kept_.release_tail();
    end_.err_tail = err_kept_.release_tail();
    return std::move(end_);
  }

 private:
  struct Stream {
    OutputStream which;
    int pipe;
    bool open = true;
  };

  void turn() {
    if (settle_at_ && (now() >= *settle_at_ || (!streams_[0].open && !streams_[1].open))) {
      end_.output_cut =
          spec_.survivors == Survivors::kill && (streams_[0].open || streams_[1].open);
      order(Kind::settle);
      settle_at_.reset();
    }
    given_up_ = give_up_at_ && now() >= *give_up_at_;
    if (given_up_) return;
    look_at_work();

    std::array<pollfd, 4> fds{{{exec_.channel(), POLLIN, 0},
                               {asked_ ? -1 : wake_.get(), POLLIN, 0},
                               {streams_[0].open ? streams_[0].pipe : -1, POLLIN, 0},
                               {streams_[1].open ? streams_[1].pipe : -1, POLLIN, 0}}};
    if (poll(fds.data(), fds.size(), poll_timeout()) <= 0) return;
    if (fds[1].revents != 0) ask_to_stop();
    for (std::size_t at = 0; at < streams_.size(); ++at)
      if (fds[2 + at].revents != 0) read_piece(streams_[at]);
    if (fds[0].revents == 0) return;
    while (const auto message = exec_.message()) accept(*message);
  }

  /// For poll, in milliseconds.
  [[nodiscard]] int poll_timeout() const {
    auto until = settle_at_;
    if (!until || (give_up_at_ && *give_up_at_ < *until)) until = give_up_at_;
    if (looks() && (!until || look_at_ < *until)) until = look_at_;
    if (!until) return -1;
    return static_cast<int>(std::clamp<std::int64_t>((*until - now()).count(), 0, INT_MAX));
  }

  /// Somebody wants to know whether its processes work.
  [[nodiscard]] bool looks() const { return hooks_.working && !hook_threw_ && !asked_ && !exited_; }

  void look_at_work() {
    if (!looks() || now() < look_at_) return;
    look_at_ = now() + std::max(hooks_.look_every, look_every_min);
    if (!work_) {
      work_.emplace(exec_.pid(), now());
      return;
    }
    if (work_->look(now())) call_hook([this] { hooks_.working(); });
  }

  template <class Hook>
  void call_hook(const Hook& hook) {
    try {
      hook();
    } catch (...) {
      hook_threw_ = true;
      ask_to_stop();
    }
  }

  void order(Kind kind) {
    exec_.order(kind);
    give_up_at_ = now() + spec_.ladder.terminate + spec_.ladder.kill_verify + helper_grace;
  }

  void ask_to_stop() {
    if (std::exchange(asked_, true)) return;
    end_.stopped = !exited_;
    settle_at_.reset();
    order(Kind::stop);
  }

  void accept(const ExecMessage& message) {
    switch (message.kind) {
      case Kind::exited:
        if (exited_) break;  // its guard may say it again
        if (WIFEXITED(message.number)) end_.code = WEXITSTATUS(message.number);
        if (WIFSIGNALED(message.number)) end_.signal = WTERMSIG(message.number);
        exited_ = true;
        for (auto& stream : streams_) read_what_is_there(stream);
        if (asked_) break;
        settle_at_ = now() + spec_.drain_grace;
        settle_max_ = now() + std::max(spec_.drain_grace, drain_max);
        break;
      case Kind::survivor:
        add_survivor({message.name.data(), strnlen(message.name.data(), message.name.size())},
                     message.number);
        break;
      case Kind::done:
        end_.survivors = static_cast<std::size_t>(message.number);
        end_.survivors_killed = static_cast<std::size_t>(message.killed);
        end_.containment_lost = message.left > 0;
        done_ = true;
        break;
      // The helper process that sends these still runs, so the supervision goes on.
      case Kind::no_process:
      case Kind::no_directory:
      case Kind::no_program:
        failure_ = failure_of(message, spec_);
        break;
      case Kind::start:
      case Kind::stop:
      case Kind::settle:
        break;
    }
  }

  void add_survivor(std::string_view name, std::int64_t pid) {
    if (end_.survivor_names.size() < names_max) end_.survivor_names.push_back(shown(name, pid));
  }

  /// The helper was killed with its guard, and the leader with it. Other processes may have
  /// escaped: those with the mark are found, the rest are not known.
  void sweep() {
    const auto marked = end_marked(mark_, spec_.ladder.kill_verify);
    for (const auto& process : marked.found) add_survivor(process.name, process.pid);
    end_.survivors = std::max(marked.found.size(), marked.left);
    end_.survivors_killed = end_.survivors - marked.left;
    end_.containment_lost = true;
    if (!exited_) end_.signal = SIGKILL;
  }

  /// False: nothing is there now.
  bool read_piece(Stream& stream) {
    if (!stream.open) return false;
    const auto count = read(stream.pipe, piece_.data(), piece_.size());
    if (count > 0) {
      keep({piece_.data(), static_cast<std::size_t>(count)}, stream.which);
      if (settle_at_) settle_at_ = std::min(now() + spec_.drain_grace, settle_max_);
      return true;
    }
    if (count == 0 || (errno != EAGAIN && errno != EINTR)) stream.open = false;
    return count < 0 && errno == EINTR;
  }

  /// Everything that was written before this call. Descendants may write faster than this reads,
  /// but no more than the pipe holds can have been there.
  void read_what_is_there(Stream& stream) {
    const auto until = stream_bytes_[stream.which == OutputStream::err] +
                       static_cast<std::uint64_t>(std::max(fcntl(stream.pipe, F_GETPIPE_SZ), 0));
    while (stream_bytes_[stream.which == OutputStream::err] < until && read_piece(stream)) continue;
  }

  void keep(std::string_view bytes, OutputStream from) {
    end_.output_bytes += bytes.size();
    stream_bytes_[from == OutputStream::err] += bytes.size();
    kept_.add(bytes);
    if (from == OutputStream::err) err_kept_.add(bytes);
    if (!hooks_.output || hook_threw_) return;
    call_hook([&] { hooks_.output(bytes, from); });
  }

  static Millis now() { return system_clock().since_boot(); }

  const SpawnSpec& spec_;
  const ProcessHooks& hooks_;
  const std::string mark_;
  ExecProcess exec_;
  Descriptor wake_;
  std::array<Stream, 2> streams_{Stream{OutputStream::out, exec_.out().get()},
                                 Stream{OutputStream::err, exec_.err().get()}};
  HeadTailBuffer kept_;
  HeadTailBuffer err_kept_;
  std::string piece_;
  std::array<std::uint64_t, 2> stream_bytes_{};
  ProcessEnd end_;
  std::optional<Error> failure_;
  std::optional<Millis> settle_at_;   // the leader has exited, descendants may hold its output
  Millis settle_max_{};               // not later, whatever comes
  std::optional<Millis> give_up_at_;  // the helper has orders to end
  bool asked_ = false;
  bool exited_ = false;
  bool done_ = false;
  bool given_up_ = false;
  bool hook_threw_ = false;
  Millis look_at_{};  // at the work of its processes
  std::optional<ProcessWork> work_;
};

}  // namespace

Result<ProcessEnd> run_process(const SpawnSpec& spec, const ProcessHooks& hooks) try {
  if (hooks.stop.stop_requested())
    return Error{ErrorCode::cancelled, "the program is not started: stop was asked for before"};
  auto mark = spec.mark.empty() ? new_ulid(system_clock().wall()) : spec.mark;
  Descriptor wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake)
    return Error{ErrorCode::exhausted, "the program is not started: no file descriptor is left: " +
                                           std::generic_category().message(errno)};
  auto exec = ExecProcess::start(spec, mark);
  if (!exec) return exec.error();
  return Supervision(spec, hooks, std::move(mark), std::move(*exec), std::move(wake)).run();
} catch (const std::bad_alloc&) {
  return Error{ErrorCode::exhausted, "the program was ended: memory is used up"};
}

}  // namespace watchdog
