#include "watchdog/write_gate.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "tools/file_digest.h"

namespace watchdog {

struct WriteGate::State {
  State(Epoch number, std::string name) : epoch(number), key(std::move(name)) {}

  const Epoch epoch;
  const std::string key;

  std::timed_mutex effects;  ///< Held while one is carried out.
  std::atomic<bool> open{true};
  std::atomic<bool> held{false};

  mutable std::mutex mutex;
  Account counted;
  std::map<std::filesystem::path, FilePrecondition> expected;

  [[nodiscard]] std::optional<FilePrecondition> expectation(const std::filesystem::path& path) {
    const std::lock_guard guard(mutex);
    const auto found = expected.find(path.lexically_normal());
    return found == expected.end() ? std::nullopt : std::optional(found->second);
  }

  CommitResult count(CommitResult result) {
    const std::lock_guard guard(mutex);
    switch (result) {
      case CommitResult::committed:
        ++counted.committed;
        break;
      case CommitResult::fenced:
        ++counted.fenced;
        break;
      case CommitResult::precondition_failed:
        ++counted.stale;
        break;
      case CommitResult::io_error:
        ++counted.failed;
        break;
    }
    return result;
  }

  CommitResult publish(const std::filesystem::path& staged, const std::filesystem::path& target,
                       const FilePrecondition* said);

  void under_way(bool is) {
    const std::lock_guard guard(mutex);
    counted.under_way = is;
  }
};

namespace {

bool meets(const FilePrecondition& expected) {
  const auto now = file_digest(expected.path);
  return now.ok() && *now == expected.sha256;
}

bool sync_directory(const std::filesystem::path& directory) {
  const int fd =
      open(directory.empty() ? "." : directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool synced = fsync(fd) == 0;
  close(fd);
  return synced;
}

/// `must_be_new`: nothing is replaced, whatever came in between.
CommitResult rename_durably(const std::filesystem::path& staged,
                            const std::filesystem::path& target, bool must_be_new) {
  const int fd = open(staged.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return CommitResult::io_error;
  const bool synced = fsync(fd) == 0;
  close(fd);
  if (!synced) return CommitResult::io_error;
  const unsigned flags = must_be_new ? RENAME_NOREPLACE : 0;
  if (renameat2(AT_FDCWD, staged.c_str(), AT_FDCWD, target.c_str(), flags) != 0) {
    if (errno == EEXIST) return CommitResult::precondition_failed;
    return CommitResult::io_error;
  }
  // It happened; that a directory cannot be synced does not undo it.
  sync_directory(target.parent_path());
  return CommitResult::committed;
}

}  // namespace

WriteGate::WriteGate(Epoch epoch, std::string key)
    : state_(std::make_shared<State>(epoch, std::move(key))) {}

CommitResult WriteGate::State::publish(const std::filesystem::path& staged,
                                       const std::filesystem::path& target,
                                       const FilePrecondition* said) {
  const auto noted = expectation(target);
  const std::lock_guard one_at_a_time(effects);
  auto result = CommitResult::fenced;
  if (open && !held) {
    under_way(true);
    const bool is_stale = (said != nullptr && !meets(*said)) || (noted && !meets(*noted));
    const bool must_be_new = (said != nullptr && !said->sha256) || (noted && !noted->sha256);
    result =
        is_stale ? CommitResult::precondition_failed : rename_durably(staged, target, must_be_new);
    under_way(false);
  }
  if (result != CommitResult::committed) unlink(staged.c_str());
  return count(result);
}

CommitResult WriteGate::publish_file(const std::filesystem::path& staged,
                                     const std::filesystem::path& target) {
  return state_->publish(staged, target, nullptr);
}

CommitResult WriteGate::publish_file(const std::filesystem::path& staged,
                                     const FilePrecondition& expected) {
  return state_->publish(staged, expected.path, &expected);
}

CommitResult WriteGate::commit(const std::function<void()>& effect) {
  const std::lock_guard one_at_a_time(state_->effects);
  if (!state_->open || state_->held) return state_->count(CommitResult::fenced);
  state_->under_way(true);
  try {
    effect();
  } catch (...) {
    state_->under_way(false);
    state_->count(CommitResult::io_error);
    throw;
  }
  state_->under_way(false);
  return state_->count(CommitResult::committed);
}

bool WriteGate::is_open() const noexcept {
  return state_->open && !state_->held;
}

Epoch WriteGate::fencing_token() const noexcept {
  return state_->epoch;
}

const std::string& WriteGate::idempotency_key() const noexcept {
  return state_->key;
}

void WriteGate::expect(FilePrecondition precondition) {
  const std::lock_guard guard(state_->mutex);
  auto path = precondition.path.lexically_normal();
  state_->expected.insert_or_assign(std::move(path), std::move(precondition));
}

void WriteGate::hold() noexcept {
  state_->held = true;
}

void WriteGate::let() noexcept {
  const std::lock_guard guard(state_->mutex);
  state_->counted.fenced = 0;
  state_->held = false;
}

bool WriteGate::revoke(Millis at_most) noexcept {
  state_->open = false;
  if (!state_->effects.try_lock_for(at_most)) return false;
  state_->effects.unlock();
  return true;
}

WriteGate::Account WriteGate::account() const noexcept {
  const std::lock_guard guard(state_->mutex);
  return state_->counted;
}

}  // namespace watchdog
