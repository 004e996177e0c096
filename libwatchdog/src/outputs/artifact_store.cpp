// `put` redacts an output and names it by its digest. A stored copy that is intact is used again.
// Else the output is written and synced to `tmp` without the lock. Under the lock it gets room,
// then a line in the run's manifest, then its place. So no object is visible before it has an
// owner. `sweep` drops what is too old, and more for want of room, but nothing that a living run
// owns. Ages follow the directory's own time line, because a wrong wall clock must drop nothing.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "facts/ids.h"
#include "files/objects.h"
#include "files/open_file.h"
#include "files/sha256.h"
#include "outputs/artifact_store_state.h"
#include "privacy/redaction.h"
#include "privacy/redactor.h"

namespace watchdog {
namespace {

constexpr std::string_view handle_mark = "art_";
constexpr std::size_t handle_digits_min = 12;
constexpr std::size_t verified_max = 256;
constexpr std::size_t time_bytes_max = 256;

}  // namespace

// --- Opening ---------------------------------------------------------------------------------

Result<void> ArtifactStore::State::prepare(std::string_view run) {
  const auto shown = directory.string();
  auto opened = open_chosen_directory(directory);
  if (!opened) return opened.error();
  top = std::move(*opened);
  if (opened = open_private_directory(top, "runs", shown + "/runs"); !opened) return opened.error();
  runs = std::move(*opened);
  if (opened = open_private_directory(top, "tmp", shown + "/tmp"); !opened) return opened.error();
  temporary = std::move(*opened);
  auto made = Objects::open(top, shown);
  if (!made) return made.error();
  objects = std::move(*made);

  auto lock = locked();  // the manifest must not be visible before it is locked
  if (!lock) return lock.error();
  continue_line();
  holder = new_ulid(clock.wall());
  manifest_name = std::string(run) + "~" + holder;
  manifest = open_at(runs, manifest_name, O_RDWR | O_CREAT | O_EXCL | O_APPEND, 0600);
  if (!manifest) return failed(errno);
  if (const int number = lock_file(manifest)) return failed(number);
  sweep(*lock, 0);
  return {};
}

/// REQUIRES: the lock is held.
void ArtifactStore::State::continue_line() {
  const auto file = open_at(top, "time", O_RDONLY);
  const auto text = read_whole(file, time_bytes_max, "time");
  line = TimeLine::continued(text ? TimeLine::from(*text) : std::nullopt, clock);
}

/// If it cannot be written, the next process begins a new line, and dropping by age waits an hour.
/// REQUIRES: the lock is held.
void ArtifactStore::State::keep_line() const {
  auto kept = line;
  kept.last = now();
  const auto text = kept.text();
  const auto file = open_at(top, "time", O_RDWR | O_CREAT, 0600);
  if (!file || file.write_at(text, 0) != 0) return;
  if (ftruncate(file.fd(), static_cast<off_t>(text.size())) != 0) return;
}

ArtifactStore::State::~State() {
  if (!manifest) return;
  if (owned.empty()) {
    unlinkat(runs.fd(), manifest_name.c_str(), 0);
  } else if (set_time(manifest, now()) != 0) {
    // Its age counts from when it was last written to.
  }
}

Result<OpenFile> ArtifactStore::State::locked() const {
  auto file = open_at(top, "lock", O_RDWR | O_CREAT, 0600);
  if (!file) return failed(errno);
  if (const int number = lock_file(file)) return failed(number);
  return file;
}

PendingFile ArtifactStore::State::new_file() {
  return {temporary, holder + "~" + std::to_string(++temporaries)};
}

// --- Putting ---------------------------------------------------------------------------------

/// REQUIRES: the lock is held.
Result<void> ArtifactStore::State::own(const std::string& digest) {
  const std::lock_guard guard(mutex);
  if (owned.contains(digest)) return {};
  // Not synced: it only has to outlive this process. After a crash of the machine no process is
  // alive.
  if (const int number = manifest.write(digest + "\n")) return failed(number);
  if (const int number = set_time(manifest, now())) return failed(number);
  owned.insert(digest);
  return {};
}

std::string ArtifactStore::State::handle_of(const std::string& digest) const {
  std::size_t digits = handle_digits_min;
  for (const auto& other : objects.digests_from(digest.substr(0, digits))) {
    const auto same = static_cast<std::size_t>(
        std::mismatch(digest.begin(), digest.end(), other.begin()).first - digest.begin());
    if (other != digest) digits = std::max(digits, same + 1);
  }
  return std::string(handle_mark) + digest.substr(0, digits);
}

/// Reads it whole, unless it has done so and the file was not changed since.
Result<void> ArtifactStore::State::require_intact(const OpenFile& file,
                                                  const ArtifactLayout& layout,
                                                  const std::string& digest) {
  struct stat facts {};
  if (fstat(file.fd(), &facts) != 0) return failed(errno);
  const std::pair<ino_t, std::int64_t> seen{
      facts.st_ino, facts.st_ctim.tv_sec * 1'000'000'000LL + facts.st_ctim.tv_nsec};
  {
    const std::lock_guard guard(mutex);
    const auto found = verified.find(digest);
    if (found != verified.end() && found->second == seen) return {};
  }
  if (auto intact = verify(file, layout, digest); !intact) return intact;
  const std::lock_guard guard(mutex);
  if (verified.size() >= verified_max) verified.clear();
  verified[digest] = seen;
  return {};
}

/// Returns an output that is already stored correctly, and owns it from now on.
std::optional<ArtifactRef> ArtifactStore::State::existing(const std::string& digest,
                                                          std::uint64_t given) {
  const bool may_be_cut = given > limits.artifact_bytes_max;
  for (const auto& name : {whole_object(digest), cut_object(digest)}) {
    const bool is_cut = !name.suffix.empty();
    const auto file = objects.find(name);
    if (!file || (is_cut && !may_be_cut)) continue;
    const auto layout = layout_of(file, digest, is_cut);
    if (!layout || !require_intact(file, *layout, digest)) continue;
    const auto lock = locked();
    if (!lock || !objects.find(name) || !own(digest)) return std::nullopt;
    if (set_time(file, now()) != 0) return std::nullopt;
    return ArtifactRef{.sha256 = digest,
                       .bytes = given,
                       .kept = layout->kept,
                       .media_type = {},
                       .handle = handle_of(digest)};
  }
  return std::nullopt;
}

void write_total(const OpenFile& lock, std::uint64_t total) {
  if (lock.write_at(std::to_string(total) + "\n", 0) != 0 || ftruncate(lock.fd(), 24) != 0) return;
}

namespace {

std::uint64_t read_total(const OpenFile& lock) {
  std::array<char, 24> text{};
  std::uint64_t total = 0;
  if (const auto count = lock.read_at(text.data(), text.size(), 0); count > 0)
    std::from_chars(text.data(), text.data() + count, total);
  return total;
}

std::uint64_t bytes_of(const OpenFile& file) {
  struct stat facts {};
  return file && fstat(file.fd(), &facts) == 0 ? static_cast<std::uint64_t>(facts.st_size) : 0;
}

}  // namespace

Result<ArtifactRef> ArtifactStore::State::add(PendingFile& pending, const ArtifactWriter& writer,
                                              const std::string& digest) {
  const auto layout = writer.layout();
  if (const int number = writer.finish(pending.file(), digest)) return failed(number);
  if (const int number = pending.file().sync()) return failed(number);  // the slow part, unlocked
  if (const int number = set_time(pending.file(), now())) return failed(number);
  const auto name = layout.cut() ? cut_object(digest) : whole_object(digest);
  const auto needed = bytes_of(pending.file());

  const auto lock = locked();
  if (!lock) return lock.error();
  const auto fits = [&] {
    return read_total(*lock) + needed <= limits.total_bytes_max + bytes_of(objects.find(name));
  };
  if (!fits()) sweep(*lock, needed);
  if (!fits()) {
    return Error{ErrorCode::exhausted,
                 directory.string() + ": " + std::to_string(needed) + " bytes more than the " +
                     std::to_string(read_total(*lock)) + " that are kept there would exceed the " +
                     std::to_string(limits.total_bytes_max) + " that are allowed"};
  }
  if (auto done = own(digest); !done) return done.error();
  auto total = read_total(*lock) + needed;
  total -= std::min(total, bytes_of(objects.find(name)));
  if (const int number = objects.publish(pending, name)) return failed(number);
  if (const auto half = bytes_of(objects.find(cut_object(digest))); half > 0 && !layout.cut()) {
    if (objects.remove(cut_object(digest)) == 0) total -= std::min(total, half);
  }
  write_total(*lock, total);
  return ArtifactRef{.sha256 = digest,
                     .bytes = layout.given,
                     .kept = layout.kept,
                     .media_type = {},
                     .handle = handle_of(digest)};
}

// --- The store -------------------------------------------------------------------------------

Result<ArtifactStore> ArtifactStore::open(const std::filesystem::path& directory,
                                          std::string_view run, ArtifactLimits limits,
                                          const Clock& clock) {
  if (!is_session_id(run)) {
    return Error{ErrorCode::invalid,
                 "a run's name has 1 to " + std::to_string(session_id_bytes_max) +
                     " letters, digits and . _ - @ :; \"" + std::string(run.substr(0, 64)) +
                     "\" has not",
                 "run"};
  }
  auto state = std::make_shared<State>(directory, limits, clock);
  if (auto prepared = state->prepare(run); !prepared) return prepared.error();
  return ArtifactStore(std::move(state));
}

ArtifactStore::ArtifactStore(std::shared_ptr<State> state) : state_(std::move(state)) {}
ArtifactStore::~ArtifactStore() = default;
ArtifactStore::ArtifactStore(ArtifactStore&&) noexcept = default;
ArtifactStore& ArtifactStore::operator=(ArtifactStore&&) noexcept = default;

Result<ArtifactRef> ArtifactStore::put(std::string_view given, std::string_view media_type) {
  std::vector<TakenSecret> taken;
  Redactor redactor([&](std::uint64_t at, std::string_view secret) {
    taken.push_back({at, std::string(secret)});
  });
  auto bytes = redactor.feed(given);
  bytes += redactor.rest();
  const auto digest = sha256_of(bytes);
  state_->remember(digest, std::move(taken));
  auto ref = state_->existing(digest, bytes.size());
  if (!ref) {
    ArtifactWriter writer(state_->limits.artifact_bytes_max);
    auto pending = state_->new_file();
    if (!pending.file()) return state_->failed(errno);
    if (const int number = writer.append(pending.file(), bytes)) return state_->failed(number);
    auto added = state_->add(pending, writer, digest);
    if (!added) return added.error();
    ref = std::move(*added);
  }
  ref->media_type = media_type;
  return *ref;
}

Result<ArtifactPage> ArtifactStore::read(std::string_view handle, std::uint64_t offset,
                                         std::size_t bytes_max) const {
  const auto digits = handle.substr(std::min(handle.size(), handle_mark.size()));
  if (!handle.starts_with(handle_mark) || digits.size() < handle_digits_min || digits.size() > 64 ||
      digits.find_first_not_of("0123456789abcdef") != std::string_view::npos) {
    return Error{ErrorCode::invalid,
                 "an artifact's name is art_ and 12 to 64 of the digits 0-9 and a-f, as it was "
                 "given; this is not one",
                 "id"};
  }
  const std::string shown(handle);
  const auto digests = state_->objects.digests_from(digits);
  if (digests.empty())
    return Error{ErrorCode::not_found, shown + " is not there (any more); repeat the call", "id"};
  if (digests.size() > 1) {
    return Error{ErrorCode::conflict,
                 std::to_string(digests.size()) + " artifacts begin with " + shown +
                     "; more digits tell them apart",
                 "id"};
  }
  const auto& digest = digests.front();
  auto file = state_->objects.find(whole_object(digest));
  const bool is_cut = !file;
  if (is_cut) file = state_->objects.find(cut_object(digest));
  if (!file && (errno == ENOENT || errno == ELOOP))
    return Error{ErrorCode::not_found, shown + " is not there (any more); repeat the call", "id"};
  if (!file) return state_->failed(errno);
  const auto layout = layout_of(file, digest, is_cut);
  if (!layout) return layout.error();
  if (auto intact = state_->require_intact(file, *layout, digest); !intact) return intact.error();
  if (offset > layout->kept) {
    return Error{ErrorCode::invalid,
                 "offset " + std::to_string(offset) + " lies beyond the " +
                     std::to_string(layout->kept) + " bytes of " + shown,
                 "offset"};
  }
  bytes_max = std::min(bytes_max, page_bytes_max);
  // A page never joins what was not together.
  if (layout->cut() && offset < layout->first) {
    bytes_max =
        static_cast<std::size_t>(std::min<std::uint64_t>(bytes_max, layout->first - offset));
  }
  auto bytes = read_part(file, *layout, offset, bytes_max);
  if (!bytes) return bytes.error();
  ArtifactPage page{.bytes = std::move(*bytes),
                    .offset = offset,
                    .total = layout->kept,
                    .dropped = layout->given - layout->kept,
                    .dropped_at = layout->cut() ? layout->first : 0};
  const std::lock_guard guard(state_->mutex);
  const auto taken = state_->taken.find(digest);
  if (taken == state_->taken.end()) return page;
  for (auto secret : taken->second) {
    if (layout->cut() && secret.at >= layout->first) {
      if (secret.at < layout->first + page.dropped) continue;
      secret.at -= page.dropped;
    }
    const bool is_here =
        secret.at >= page.offset &&
        page.bytes.compare(std::min<std::size_t>(secret.at - page.offset, page.bytes.size()),
                           secret_mask.size(), secret_mask) == 0;
    if (is_here) page.taken.push_back(std::move(secret));
  }
  return page;
}

void ArtifactStore::State::remember(const std::string& digest, std::vector<TakenSecret> secrets) {
  constexpr std::size_t remembered_bytes = 4U << 20U;
  const std::lock_guard guard(mutex);
  if (const auto known = taken.find(digest); known != taken.end()) {
    if (known->second != secrets) known->second.clear();
    return;
  }
  if (secrets.empty()) return;
  std::size_t bytes = 0;
  for (const auto& secret : secrets) bytes += sizeof secret + secret.text.size();
  if (taken_bytes + bytes > remembered_bytes) return;
  taken_bytes += bytes;
  taken.emplace(digest, std::move(secrets));
}

Result<void> ArtifactStore::pin(const ArtifactRef& artifact) {
  if (!is_sha256(artifact.sha256))
    return Error{ErrorCode::invalid, "an artifact is named by 64 hexadecimal digits", "sha256"};
  const auto lock = state_->locked();
  if (!lock) return lock.error();
  if (!state_->objects.find(whole_object(artifact.sha256)) &&
      !state_->objects.find(cut_object(artifact.sha256)))
    return Error{ErrorCode::not_found, artifact.handle + " is not there (any more)", "sha256"};
  return state_->own(artifact.sha256);
}

}  // namespace watchdog
