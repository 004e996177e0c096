// Drops outputs that are too old, that exceed the limit of size, or that belong to a run that
// is forgotten. No output of a living run is dropped. A run lives while its manifest is locked.
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "outputs/artifact_store_state.h"

namespace watchdog {
namespace {

/// An object that may go.
struct Loose {
  ObjectName name;
  std::uint64_t bytes = 0;
  WallTime owned{};
};

}  // namespace

/// REQUIRES: the lock is held.
ArtifactOwners ArtifactStore::State::ownership() const {
  struct Manifest {
    std::string name;
    OpenFile file;
    bool open = false;
  };
  std::vector<Manifest> manifests;
  ArtifactOwners found;
  std::set<std::string> living_runs;
  for (auto& name : names_in(runs)) {
    auto file = open_at(runs, name, O_RDONLY);
    if (!file || holder_in(name).empty()) continue;
    const bool open = flock(file.fd(), LOCK_SH | LOCK_NB) != 0;
    if (open) {
      living_runs.insert(run_in(name));
      found.holders.insert(holder_in(name));
    }
    manifests.push_back({std::move(name), std::move(file), open});
  }
  for (const auto& [name, file, open] : manifests) {
    struct stat facts {};
    const auto text = read_whole(file, manifest_bytes_max, name);
    if (fstat(file.fd(), &facts) != 0 || !text) continue;
    const auto last = time_of(facts);
    const bool lives = living_runs.contains(run_in(name));
    if (!lives) found.ended.emplace_back(name, last);
    for (std::size_t at = 0; at + 65 <= text->size(); at += 65) {
      auto digest = text->substr(at, 64);
      if (lives) {
        found.living.insert(std::move(digest));
      } else {
        auto& time = found.past[std::move(digest)];
        time = std::max(time, last);
      }
    }
  }
  return found;
}

/// Makes room for `needed` bytes. REQUIRES: the lock is held.
std::size_t ArtifactStore::State::sweep(const OpenFile& lock, std::uint64_t needed) {
  const auto owners = ownership();
  const auto today = now();
  const bool may_age = line.may_age(clock);
  const auto too_old = [&](WallTime since) { return may_age && today - since > limits.keep_for; };
  std::size_t dropped = 0;
  for (const auto& name : names_in(temporary)) {
    if (owners.holders.contains(run_in(name))) continue;
    if (unlinkat(temporary.fd(), name.c_str(), 0) == 0) ++dropped;
  }
  std::uint64_t total = 0;
  std::uint64_t living = 0;
  std::vector<Loose> loose;
  objects.for_each([&](const ObjectFacts& object) {
    total += object.bytes;
    if (owners.living.contains(object.name.digest)) {
      living += object.bytes;
      return;
    }
    const auto past = owners.past.find(object.name.digest);
    loose.push_back(
        {object.name, object.bytes,
         past == owners.past.end() ? object.touched : std::max(object.touched, past->second)});
  });
  std::sort(loose.begin(), loose.end(), [](const Loose& a, const Loose& b) {
    return a.owned != b.owned ? a.owned < b.owned : a.name.digest < b.name.digest;
  });
  // Where there can be no room, nothing is dropped in vain.
  if (living + needed > limits.total_bytes_max) needed = 0;
  for (const auto& object : loose) {
    if (!too_old(object.owned) && total + needed <= limits.total_bytes_max) break;
    if (objects.remove(object.name) != 0) continue;
    total -= object.bytes;
    ++dropped;
  }
  for (const auto& [name, last] : owners.ended) {
    if (too_old(last)) unlinkat(runs.fd(), name.c_str(), 0);
  }
  write_total(lock, total);
  keep_line();
  return dropped;
}

Result<std::size_t> ArtifactStore::forget(std::string_view run) {
  const auto lock = state_->locked();
  if (!lock) return lock.error();
  std::vector<std::string> manifests;
  std::set<std::string> own;
  std::set<std::string> others;
  for (auto& name : names_in(state_->runs)) {
    const auto file = open_at(state_->runs, name, O_RDONLY);
    const auto text = read_whole(file, manifest_bytes_max, name);
    if (!text) continue;
    const bool is_own = run_in(name) == run;
    if (is_own && flock(file.fd(), LOCK_SH | LOCK_NB) != 0)
      return Error{ErrorCode::conflict, std::string(run) + " still keeps its outputs open"};
    for (std::size_t at = 0; at + 65 <= text->size(); at += 65)
      (is_own ? own : others).insert(text->substr(at, 64));
    if (is_own) manifests.push_back(std::move(name));
  }
  std::size_t dropped = 0;
  for (const auto& digest : own) {
    if (others.contains(digest)) continue;
    for (const auto& name : {whole_object(digest), cut_object(digest)}) {
      if (!state_->objects.find(name)) continue;
      if (const int number = state_->objects.remove(name)) return state_->failed(number);
      ++dropped;
    }
  }
  for (const auto& name : manifests) unlinkat(state_->runs.fd(), name.c_str(), 0);
  state_->sweep(*lock, 0);  // counts what is left
  return dropped;
}

Result<std::size_t> ArtifactStore::collect_garbage() {
  const auto lock = state_->locked();
  if (!lock) return lock.error();
  return state_->sweep(*lock, 0);
}

}  // namespace watchdog
