#include "watchdog/write_gate.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "tools/open_file.h"
#include "tools/sha256.h"

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

  /// Adds what is known of the target. False: others were named beforehand, and it was not.
  bool add_expectation(const std::filesystem::path& target,
                       std::vector<FilePrecondition>& known) const {
    const std::lock_guard guard(mutex);
    const auto found = expected.find(target.lexically_normal());
    if (found != expected.end()) known.push_back(found->second);
    return expected.empty() || found != expected.end();
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
                       std::vector<FilePrecondition> expected_of_it);

  void under_way(bool is) {
    const std::lock_guard guard(mutex);
    counted.under_way = is;
  }
};

namespace {

/// All within one open directory: whatever its path leads to by now, nothing goes elsewhere.
CommitResult rename_durably(const OpenFile& directory, const std::string& staged,
                            const std::string& target,
                            const std::vector<FilePrecondition>& expected) {
  bool must_be_new = false;
  for (const auto& condition : expected) {
    const auto now = digest_in(directory, target);
    if (!now || *now != condition.sha256) return CommitResult::precondition_failed;
    must_be_new |= !condition.sha256.has_value();
  }
  const auto file = open_at(directory, staged, O_RDONLY);
  if (!file || file.sync() != 0) return CommitResult::io_error;
  const unsigned flags = must_be_new ? RENAME_NOREPLACE : 0;
  if (renameat2(directory.fd(), staged.c_str(), directory.fd(), target.c_str(), flags) != 0) {
    return errno == EEXIST ? CommitResult::precondition_failed : CommitResult::io_error;
  }
  // It happened; that a directory cannot be synced does not undo it.
  (void)directory.sync();
  return CommitResult::committed;
}

}  // namespace

WriteGate::WriteGate(Epoch epoch, std::string key)
    : state_(std::make_shared<State>(epoch, std::move(key))) {}

CommitResult WriteGate::State::publish(const std::filesystem::path& staged,
                                       const std::filesystem::path& target,
                                       std::vector<FilePrecondition> expected_of_it) {
  const bool is_foreseen = add_expectation(target, expected_of_it);
  const auto directory = directory_of(target);
  const auto name = staged.filename().string();
  const std::lock_guard one_at_a_time(effects);
  auto result = CommitResult::fenced;
  if (open && !held) {
    under_way(true);
    result = !is_foreseen ? CommitResult::precondition_failed
             : !directory
                 ? CommitResult::io_error
                 : rename_durably(directory, name, target.filename().string(), expected_of_it);
    under_way(false);
  }
  if (result != CommitResult::committed && unlinkat(directory.fd(), name.c_str(), 0) != 0) {
    unlink(staged.c_str());
  }
  return count(result);
}

CommitResult WriteGate::publish_file(const std::filesystem::path& staged,
                                     const std::filesystem::path& target) {
  return state_->publish(staged, target, {});
}

CommitResult WriteGate::publish_file(const std::filesystem::path& staged,
                                     const FilePrecondition& expected) {
  return state_->publish(staged, expected.path, {expected});
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
