// Starts the helper `watchdog-exec` and exchanges messages with it over its socket. All descriptors
// are raised above those that the helper gets, so that giving it these closes none that is still
// needed. The helper waits for the message `start`: it cannot end before it has a pidfd. Without a
// pidfd the socket is closed, and the helper never begins. Our copies of its ends are closed, so
// that only the program's side keeps them open.
#include "process/exec_process.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "process/marked_processes.h"

namespace watchdog {
namespace {

namespace fs = std::filesystem;
using Environment = std::map<std::string, std::string>;

constexpr Millis time_max{24 * 3'600'000};

/// Variables that a program usually needs, without secrets.
constexpr std::string_view passed_on[] = {"PATH", "HOME", "USER", "LANG", "TZ", "TMPDIR"};
/// Settings against prompts to a person. A program that is to be an editor, or asks for a
/// password, fails at once. SSH_ASKPASS is asked instead of a terminal.
constexpr std::pair<const char*, const char*> unattended[] = {
    {"TERM", "dumb"},
    {"PAGER", "cat"},
    {"GIT_PAGER", "cat"},
    {"MANPAGER", "cat"},
    {"SYSTEMD_PAGER", "cat"},
    {"EDITOR", "false"},
    {"VISUAL", "false"},
    {"SUDO_EDITOR", "false"},
    {"HGEDITOR", "false"},
    {"SVN_EDITOR", "false"},
    {"KUBE_EDITOR", "false"},
    {"GIT_TERMINAL_PROMPT", "0"},
    {"GCM_INTERACTIVE", "never"},
    {"GIT_ASKPASS", "false"},
    {"SSH_ASKPASS", "false"},
    {"SSH_ASKPASS_REQUIRE", "force"},
    {"SUDO_ASKPASS", "/bin/false"},
    {"PIP_NO_INPUT", "1"},
    {"DEBIAN_FRONTEND", "noninteractive"}};
/// These go before the user's own settings of git. A command may still choose its own editor, by
/// `git -c`, EDITOR or VISUAL, so git's variables for editors are not used.
constexpr std::string_view git_editors[] = {"GIT_EDITOR", "GIT_SEQUENCE_EDITOR"};
constexpr const char* git_settings[] = {"core.editor", "sequence.editor"};
constexpr const char* git_editor =
    "e=$VISUAL; [ \"$e\" = false ] && e=$EDITOR; [ \"$e\" = false ] && echo 'There is no terminal "
    "for an editor. Give the text in the command, as in: git commit -m TEXT. To keep the text as "
    "it "
    "is: EDITOR=true git …' >&2; edit() { eval \"$e \\\"\\$@\\\"\"; }; edit";

std::string reason(int number) {
  return std::generic_category().message(number);
}

Error refused(const std::string& why) {
  return {ErrorCode::invalid, "the program is not started: " + why};
}

Error failed(const std::string& what, int number) {
  return {ErrorCode::exhausted, "the program is not started: " + what + ": " + reason(number)};
}

bool has_nul(std::string_view text) {
  return text.find('\0') != std::string_view::npos;
}

Result<void> validate(const SpawnSpec& spec, const std::string& mark) {
  if (spec.argv.empty() || spec.argv[0].empty()) return refused("its name is empty");
  for (std::size_t at = 0; at < spec.argv.size(); ++at)
    if (has_nul(spec.argv[at])) return refused("word " + std::to_string(at) + " has a NUL in it");
  if (has_nul(spec.cwd.native())) return refused("its directory has a NUL in it");
  if (has_nul(mark)) return refused("its mark has a NUL in it");
  for (const auto& [name, value] : spec.env) {
    if (name.empty() || has_nul(name) || name.find('=') != std::string::npos)
      return refused("a variable is named \"" + name + "\"");
    if (has_nul(value)) return refused("the variable " + name + " has a NUL in it");
  }
  for (const auto time : {spec.ladder.terminate, spec.ladder.kill_verify, spec.drain_grace})
    if (time < Millis{0} || time > time_max)
      return refused("one of its times is " + std::to_string(time.count()) +
                     " ms, which is not in 0 ... " + std::to_string(time_max.count()));
  return {};
}

/// Adds settings of git behind those that the variables have.
void add_git_settings(Environment& variables) {
  int count = 0;
  const auto& had = variables["GIT_CONFIG_COUNT"];
  std::from_chars(had.data(), had.data() + had.size(), count);
  count = std::clamp(count, 0, 1'000);
  for (const auto* setting : git_settings) {
    const auto number = std::to_string(count++);
    variables["GIT_CONFIG_KEY_" + number] = setting;
    variables["GIT_CONFIG_VALUE_" + number] = git_editor;
  }
  variables["GIT_CONFIG_COUNT"] = std::to_string(count);
}

Environment environment_for(const SpawnSpec& spec, const std::string& mark) {
  Environment variables;
  for (char** at = environ; at != nullptr && *at != nullptr; ++at) {
    const std::string_view text = *at;
    const auto name = text.substr(0, text.find('='));
    if (name.size() == text.size()) continue;
    if (spec.inherit_env || name.starts_with("LC_") ||
        std::ranges::find(passed_on, name) != std::end(passed_on))
      variables.emplace(name, text.substr(name.size() + 1));
  }
  for (const auto& [name, value] : unattended) variables[name] = value;
  for (const auto name : git_editors) variables.erase(std::string(name));
  for (const auto& [name, value] : spec.env) variables[name] = value;
  add_git_settings(variables);
  variables[std::string(mark_variable)] = mark;
  return variables;
}

bool can_run(const fs::path& file) {
  std::error_code ignored;
  return fs::is_regular_file(file, ignored) && access(file.c_str(), X_OK) == 0;
}

/// Folders that installed headers named. Made on first use: that is before `main`.
std::vector<fs::path>& offered_folders() {
  static std::vector<fs::path> folders;
  return folders;
}

constexpr const char* name = "watchdog-exec";

}  // namespace

bool detail::offer_exec(std::filesystem::path header, const char* relative) noexcept try {
  auto folder = (fs::absolute(header).parent_path() / relative).lexically_normal();
  auto& known = offered_folders();
  if (std::ranges::find(known, folder) == known.end()) known.push_back(std::move(folder));
  return true;
} catch (...) {
  return false;  // out of memory, or without a working directory: the other places remain
}

Result<fs::path> process_helper() {
  const char* const chosen = std::getenv("WATCHDOG_EXEC");  // NOLINT(concurrency-mt-unsafe)
  if (chosen != nullptr && *chosen != '\0') {
    if (can_run(chosen)) return fs::path(chosen);
    return Error{ErrorCode::unavailable, std::string("programs cannot be run: WATCHDOG_EXEC is ") +
                                             chosen + ", which is not a program"};
  }
  std::vector<fs::path> folders;
  std::error_code ignored;
  const auto self = fs::read_symlink("/proc/self/exe", ignored);
  Dl_info library{};
  if (!self.empty()) folders.push_back(self.parent_path());
  if (dladdr(reinterpret_cast<const void*>(&run_process), &library) != 0 &&
      library.dli_fname != nullptr && std::strchr(library.dli_fname, '/') != nullptr)
    folders.push_back(fs::path(library.dli_fname).parent_path());
  std::vector<fs::path> candidates;
  for (const auto& folder : folders) {
    candidates.push_back(folder / name);
    candidates.push_back(folder.parent_path() / "libexec" / "watchdog" / name);
  }
  for (const auto& folder : offered_folders()) candidates.push_back(folder / name);
  candidates.push_back(fs::path(WATCHDOG_LIBEXEC) / name);
  std::string looked_at;
  for (const auto& candidate : candidates) {
    if (can_run(candidate)) return candidate;
    looked_at += (looked_at.empty() ? "" : ", ") + candidate.string();
  }
  return Error{ErrorCode::unavailable,
               "programs cannot be run: watchdog-exec, which comes with the library, is none of " +
                   looked_at + "; WATCHDOG_EXEC can name it"};
}

namespace {

/// The same file by a number above those that a program gets, so that giving it these replaces
/// none that is still needed.
Descriptor lifted(int number) {
  if (number > exec_channel || number < 0) return Descriptor(number);
  const Descriptor low(number);
  return Descriptor(fcntl(number, F_DUPFD_CLOEXEC, exec_channel + 1));
}

struct Pair {
  Descriptor ours;
  Descriptor theirs;
  explicit operator bool() const { return ours && theirs; }
};

Pair make_pipe() {
  std::array<int, 2> ends{-1, -1};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return {};
  Pair made{lifted(ends[0]), lifted(ends[1])};
  if (made) fcntl(made.ours.get(), F_SETFL, O_NONBLOCK);  // of our end alone: theirs may block
  return made;
}

Pair make_channel() {
  std::array<int, 2> ends{-1, -1};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) return {};
  return {lifted(ends[0]), lifted(ends[1])};
}

/// Returns the program's input: in memory, so no thread waits for it to be read, and sealed. Empty:
/// errno has the cause.
Descriptor input_of(const std::string& text) {
  Descriptor file = lifted(memfd_create("input", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  for (std::size_t at = 0; file && at < text.size();) {
    const auto count = write(file.get(), text.data() + at, text.size() - at);
    if (count < 0 && errno != EINTR) return Descriptor(-1);
    if (count > 0) at += static_cast<std::size_t>(count);
  }
  if (!file || lseek(file.get(), 0, SEEK_SET) != 0 ||
      fcntl(file.get(), F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) != 0)
    return Descriptor(-1);
  return file;
}

/// Set-up of the new process before it is `watchdog-exec`. posix_spawn only: forking a large
/// process takes long, and forking one with threads is not safe.
class SpawnActions {
 public:
  /// `in` is -1 for an empty input.
  SpawnActions(int in, int out, int err, int channel) {
    posix_spawn_file_actions_init(&files_);
    posix_spawnattr_init(&attributes_);
    if (in >= 0) {
      posix_spawn_file_actions_adddup2(&files_, in, STDIN_FILENO);
    } else {
      posix_spawn_file_actions_addopen(&files_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    }
    posix_spawn_file_actions_adddup2(&files_, out, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&files_, err, STDERR_FILENO);
    posix_spawn_file_actions_adddup2(&files_, channel, exec_channel);
    posix_spawn_file_actions_addclosefrom_np(&files_, exec_channel + 1);
    sigset_t signals;
    sigemptyset(&signals);
    posix_spawnattr_setsigmask(&attributes_, &signals);
    sigfillset(&signals);
    posix_spawnattr_setsigdefault(&attributes_, &signals);
    posix_spawnattr_setflags(&attributes_,
                             POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  ~SpawnActions() {
    posix_spawn_file_actions_destroy(&files_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnActions(const SpawnActions&) = delete;
  SpawnActions& operator=(const SpawnActions&) = delete;

  /// 0, or errno.
  int spawn(pid_t& pid, std::vector<std::string>& words, std::vector<std::string>& variables) {
    const auto pointers = [](std::vector<std::string>& texts) {
      std::vector<char*> all;
      for (auto& text : texts) all.push_back(text.data());
      all.push_back(nullptr);
      return all;
    };
    return posix_spawn(&pid, words[0].c_str(), &files_, &attributes_, pointers(words).data(),
                       pointers(variables).data());
  }

 private:
  posix_spawn_file_actions_t files_{};
  posix_spawnattr_t attributes_{};
};

}  // namespace

Result<ExecProcess> ExecProcess::start(const SpawnSpec& spec, const std::string& mark) {
  if (auto valid = validate(spec, mark); !valid) return valid.error();
  auto path = process_helper();
  if (!path) return path.error();

  auto channel = make_channel();
  auto out = make_pipe();
  auto err = make_pipe();
  if (!channel || !out || !err) return failed("it gets no pipes", errno);
  const auto in = spec.input.empty() ? Descriptor(-1) : input_of(spec.input);
  if (!spec.input.empty() && !in) return failed("it gets no input", errno);

  std::vector<std::string> words{path->string(), std::to_string(spec.ladder.terminate.count()),
                                 std::to_string(spec.ladder.kill_verify.count()),
                                 std::string(name_of(spec.survivors)), spec.cwd.string()};
  words.insert(words.end(), spec.argv.begin(), spec.argv.end());
  std::vector<std::string> variables;
  for (const auto& [variable, value] : environment_for(spec, mark))
    variables.push_back(variable + "=" + value);

  ExecProcess started;
  pid_t pid = -1;
  SpawnActions actions(in.get(), out.theirs.get(), err.theirs.get(), channel.theirs.get());
  if (const int cause = actions.spawn(pid, words, variables); cause != 0) {
    if (cause == E2BIG) return refused("its arguments and its environment are too long");
    if (cause == EAGAIN || cause == ENOMEM || cause == EMFILE || cause == ENFILE)
      return failed("there are too many processes, or too little memory", cause);
    return Error{ErrorCode::unavailable,
                 "programs cannot be run: " + path->string() + ": " + reason(cause)};
  }
  // Closed here, so that their end is the program's alone; and so that there is room for one more.
  channel.theirs.reset();
  out.theirs.reset();
  err.theirs.reset();
  started.pid_ = pid;
  started.process_ = Descriptor(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!started.process_) {
    const int cause = errno;
    channel.ours.reset();  // so it does not begin
    while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) continue;
    return failed("it cannot be watched", cause);
  }
  started.path_ = path->string();
  started.channel_ = std::move(channel.ours);
  started.out_ = std::move(out.ours);
  started.err_ = std::move(err.ours);
  started.order(ExecMessage::Kind::start);
  return started;
}

ExecProcess::~ExecProcess() {
  if (!process_) return;
  order(ExecMessage::Kind::stop);
  channel_.reset();
  reap();
}

void ExecProcess::order(ExecMessage::Kind kind) const {
  const ExecMessage message{.kind = kind};
  send(channel_.get(), &message, sizeof message, MSG_NOSIGNAL | MSG_DONTWAIT);
  // The supervised program may have stopped it.
  syscall(SYS_pidfd_send_signal, process_.get(), SIGCONT, nullptr, 0);
}

std::optional<ExecMessage> ExecProcess::message() {
  ExecMessage message;
  ssize_t bytes = 0;
  // Reset: it ended before it read the latest order. Its earlier messages are still there.
  do bytes = recv(channel_.get(), &message, sizeof message, MSG_DONTWAIT);
  while (bytes < 0 && (errno == EINTR || errno == ECONNRESET));
  if (bytes == sizeof message) return message;
  gone_ = bytes >= 0 || errno != EAGAIN;
  return std::nullopt;
}

void ExecProcess::kill() const {
  syscall(SYS_pidfd_send_signal, process_.get(), SIGKILL, nullptr, 0);
}

std::optional<int> ExecProcess::reap() {
  siginfo_t info{};
  int failed = -1;
  do failed = waitid(P_PIDFD, static_cast<id_t>(process_.get()), &info, WEXITED);
  while (failed != 0 && errno == EINTR);
  process_.reset();
  // A host that ignores SIGCHLD or waits for all children has reaped it.
  if (failed != 0 || info.si_code != CLD_EXITED) return std::nullopt;
  return info.si_status;
}

}  // namespace watchdog
