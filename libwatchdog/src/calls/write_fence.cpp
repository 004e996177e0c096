// An effect runs between `begin` and `end`, without the lock. `begin` admits one effect at a time,
// and none once the fence is closed. `revoke` closes the fence first and waits then, so no new
// effect starts while it waits. A file is compared, synced and renamed within one open directory,
// so a change of its path meanwhile has no influence. A staged file that was not published is
// removed.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <cstdio>
#include <map>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "files/open_file.h"
#include "files/sha256.h"
#include "watchdog/tool_outcome.h"

namespace watchdog {

struct WriteFence::State {
  State(Epoch number, std::string name) : epoch(number), key(std::move(name)) {}

  const Epoch epoch;
  const std::string key;

  mutable std::mutex mutex;  ///< Guards what follows; never held while an effect is carried out.
  std::condition_variable done;
  bool open = true;
  bool held = false;
  Account counted;
  std::map<std::filesystem::path, FilePrecondition> expected;

  /// Adds what is known of the target. False: others were named beforehand, and it was not.
  bool add_expectation(const std::filesystem::path& target,
                       std::vector<FilePrecondition>& known) const {
    const auto name = target.lexically_normal();
    const std::lock_guard guard(mutex);
    const auto found = expected.find(name);
    if (found != expected.end()) known.push_back(found->second);
    return expected.empty() || found != expected.end();
  }

  /// Effects come one at a time. False: it is shut.
  bool begin() {
    std::unique_lock guard(mutex);
    done.wait(guard, [&] { return !counted.under_way; });
    counted.under_way = open && !held;
    counted.fenced += counted.under_way ? 0 : 1;
    return counted.under_way;
  }

  void end(CommitResult result) {
    const std::lock_guard guard(mutex);
    counted.under_way = false;
    done.notify_all();
    switch (result) {
      case CommitResult::committed:
        ++counted.committed;
        break;
      case CommitResult::fenced:
        break;
      case CommitResult::precondition_failed:
        ++counted.stale;
        break;
      case CommitResult::io_error:
        ++counted.failed;
        break;
    }
  }

  CommitResult publish(const std::filesystem::path& staged, const std::filesystem::path& target,
                       std::vector<FilePrecondition> expected_of_it);
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

WriteFence::WriteFence(Epoch epoch, std::string key)
    : state_(std::make_shared<State>(epoch, std::move(key))) {}

CommitResult WriteFence::State::publish(const std::filesystem::path& staged,
                                        const std::filesystem::path& target,
                                        std::vector<FilePrecondition> expected_of_it) {
  const bool is_foreseen = add_expectation(target, expected_of_it);
  const auto directory = directory_of(target);
  const auto name = staged.filename().string();
  auto result = CommitResult::fenced;
  if (begin()) {
    try {
      result = !is_foreseen ? CommitResult::precondition_failed
               : !directory
                   ? CommitResult::io_error
                   : rename_durably(directory, name, target.filename().string(), expected_of_it);
    } catch (const std::bad_alloc&) {
      result = CommitResult::io_error;
    }
    end(result);
  }
  if (result != CommitResult::committed && unlinkat(directory.fd(), name.c_str(), 0) != 0) {
    unlink(staged.c_str());
  }
  return result;
}

CommitResult WriteFence::publish_file(const std::filesystem::path& staged,
                                      const std::filesystem::path& target) {
  return state_->publish(staged, target, {});
}

CommitResult WriteFence::publish_file(const std::filesystem::path& staged,
                                      const FilePrecondition& expected) {
  return state_->publish(staged, expected.path, {expected});
}

CommitResult WriteFence::commit(const std::function<void()>& effect) {
  if (!state_->begin()) return CommitResult::fenced;
  try {
    effect();
  } catch (...) {
    state_->end(CommitResult::io_error);
    throw;
  }
  state_->end(CommitResult::committed);
  return CommitResult::committed;
}

bool WriteFence::is_open() const noexcept {
  const std::lock_guard guard(state_->mutex);
  return state_->open && !state_->held;
}

Epoch WriteFence::fencing_token() const noexcept {
  return state_->epoch;
}

const std::string& WriteFence::idempotency_key() const noexcept {
  return state_->key;
}

void WriteFence::expect(FilePrecondition precondition) {
  const std::lock_guard guard(state_->mutex);
  auto path = precondition.path.lexically_normal();
  state_->expected.insert_or_assign(std::move(path), std::move(precondition));
}

void WriteFence::hold() noexcept {
  const std::lock_guard guard(state_->mutex);
  state_->held = true;
}

void WriteFence::let() noexcept {
  const std::lock_guard guard(state_->mutex);
  state_->counted.fenced = 0;
  state_->held = false;
}

bool WriteFence::revoke(Millis at_most) noexcept {
  std::unique_lock guard(state_->mutex);
  state_->open = false;
  return state_->done.wait_for(guard, at_most, [&] { return !state_->counted.under_way; });
}

WriteFence::Account WriteFence::account() const noexcept {
  const std::lock_guard guard(state_->mutex);
  return state_->counted;
}

}  // namespace watchdog
