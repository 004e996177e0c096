// `restore` compares each path with what the tool left and plans the changes. It stores the present
// contents as another checkpoint, names that in `restoring`, replaces file by file, and removes
// `restoring`. After a crash, the next `open`, `restore` or `trim` repeats the steps and skips
// those that are done. A file that somebody else changed is left alone unless the caller forces it.
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <functional>
#include <set>
#include <utility>

#include "facts/ids.h"
#include "files/durable_file.h"
#include "files/objects.h"
#include "files/open_file.h"
#include "files/sha256.h"
#include "privacy/content.h"
#include "watchdog/workspace.h"
#include "workspace/checkpoint_record.h"

// The directory:
//   objects/ab/cdef…   contents
//   checkpoints/<id>   what paths held before and after
//   restoring          the checkpoint that a restore took before it began: it says of each path
//                      what was there and what shall be, so that who finds this file can finish
//   tmp/               what is being written
//   lock               held by every operation but the list

namespace watchdog {
namespace {

constexpr std::size_t block_bytes = 256U << 10U;
constexpr std::uint64_t file_bytes_max = std::uint64_t{1} << 30U;
constexpr std::size_t record_bytes_max = 64U << 20U;
constexpr std::size_t call_chars_max = 256;
constexpr std::size_t serial_digits = 8;
constexpr std::size_t id_bytes = serial_digits + 1 + 8;

/// Eight digits that rise, and eight random characters, so that a number that is used again after
/// all were dropped is another checkpoint.
bool is_id(std::string_view name) {
  return name.size() == id_bytes && name[serial_digits] == '-' &&
         name.find_first_not_of("0123456789") == serial_digits &&
         name.find_first_not_of("0123456789ABCDEFGHJKMNPQRSTVWXYZ-") == std::string_view::npos;
}

/// The directory of a path that was without links when the path was noted: a link in it now would
/// lead somewhere else, and is not followed.
OpenFile open_parent(const std::filesystem::path& path) {
  OpenFile directory(open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
  for (const auto& part : path.parent_path().relative_path()) {
    if (!directory) break;
    directory = open_at(directory, part, O_PATH | O_DIRECTORY);
  }
  return directory;
}

Result<Image> failed_image(const std::filesystem::path& path, int number) {
  if (number == ENOENT) return Image{.kind = ImageKind::none};
  if (number == ENOTDIR || number == ELOOP || number == ENXIO)
    return Image{.kind = ImageKind::other};
  return file_error(path.string(), number);
}

/// Returns the present content of a path. `keep` gets a file's blocks while it is read.
Result<Image> image_of(const std::filesystem::path& path,
                       const std::function<int(std::string_view)>& keep = {}) {
  const auto parent = open_parent(path);
  if (!parent) return failed_image(path, errno);
  const auto name = path.filename().string();
  struct stat facts {};
  if (fstatat(parent.fd(), name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0)
    return failed_image(path, errno);
  if (!S_ISREG(facts.st_mode)) return Image{.kind = ImageKind::other};
  const auto file = open_at(parent, name, O_RDONLY);
  if (!file || fstat(file.fd(), &facts) != 0) return failed_image(path, errno);
  if (!S_ISREG(facts.st_mode)) return Image{.kind = ImageKind::other};
  const Error too_big{
      ErrorCode::exhausted,
      path.string() + ": files above " + std::to_string(file_bytes_max) + " bytes are not kept"};
  if (static_cast<std::uint64_t>(facts.st_size) > file_bytes_max) return too_big;
  Sha256 digest;
  std::string block(block_bytes, '\0');
  for (std::uint64_t offset = 0;; offset += block_bytes) {
    if (offset > file_bytes_max) return too_big;  // it grows while it is read
    const auto count = file.read_at(block.data(), block.size(), offset);
    if (count < 0) return file_error(path.string(), errno);
    const auto bytes = std::string_view(block).substr(0, static_cast<std::size_t>(count));
    digest.add(bytes);
    if (const int number = keep ? keep(bytes) : 0)
      return file_error("a copy of " + path.string(), number);
    if (bytes.size() < block_bytes) break;
  }
  return Image{.kind = ImageKind::file,
               .digest = digest.digits(),
               .mode = facts.st_mode & 07777U,
               .user = facts.st_uid,
               .group = facts.st_gid};
}

/// Returns the temporary name of a file beside its place: known beforehand, so that it is found
/// after a crash.
std::string name_beside(const std::string& name, const std::string& id) {
  return "." + name.substr(0, NAME_MAX - id_bytes - 5) + ".wd-" + id;
}

/// Restores owner and mode. Without permission to change the owner the file stays ours, and then
/// gets no bits that lend the owner's rights.
int set_owner(const OpenFile& file, const Image& image) {
  const bool given = fchown(file.fd(), image.user, image.group) == 0;
  if (!given && errno != EPERM) return errno;
  return fchmod(file.fd(), image.mode & (given ? 07777U : 0777U)) == 0 ? 0 : errno;
}

}  // namespace

struct CheckpointStore::State {
  State(std::filesystem::path path, const Clock& time) : directory(std::move(path)), clock(time) {}

  const std::filesystem::path directory;
  const Clock& clock;
  OpenFile top;
  OpenFile records;
  OpenFile temporary;
  Objects objects;

  [[nodiscard]] Error failed(int number) const { return file_error(directory.string(), number); }
  Result<void> prepare();
  [[nodiscard]] Result<OpenFile> locked() const;
  [[nodiscard]] PendingFile new_file(const std::string& name) const;

  [[nodiscard]] std::vector<std::string> ids() const;
  [[nodiscard]] Result<CheckpointRecord> load(const std::string& id) const;
  [[nodiscard]] Result<void> save(const std::string& id, const CheckpointRecord& record) const;
  [[nodiscard]] Result<std::string> add(const CheckpointRecord& record) const;
  [[nodiscard]] Result<void> write(const OpenFile& into, const std::string& name,
                                   std::string_view text) const;

  [[nodiscard]] Result<Image> keep(const std::filesystem::path& path) const;
  [[nodiscard]] Result<void> require_content(const Image& image) const;
  [[nodiscard]] Result<void> copy(const std::string& digest, const OpenFile& to,
                                  const std::string& shown) const;
  [[nodiscard]] Result<void> bring(const CheckpointEntry& entry, const std::string& id) const;
  [[nodiscard]] Result<CheckpointRecord> plan(const CheckpointRecord& record, bool force,
                                              Restored& done) const;
  [[nodiscard]] Result<Restored> apply(const std::string& undo) const;
  [[nodiscard]] Result<void> finish_restore() const;
};

// --- Records ---------------------------------------------------------------------------------

Result<void> CheckpointStore::State::prepare() {
  const auto shown = directory.string();
  auto opened = open_chosen_directory(directory);
  if (!opened) return opened.error();
  top = std::move(*opened);
  if (opened = open_private_directory(top, "checkpoints", shown + "/checkpoints"); !opened)
    return opened.error();
  records = std::move(*opened);
  if (opened = open_private_directory(top, "tmp", shown + "/tmp"); !opened) return opened.error();
  temporary = std::move(*opened);
  auto made = Objects::open(top, shown);
  if (!made) return made.error();
  objects = std::move(*made);

  const auto lock = locked();
  if (!lock) return lock.error();
  // The holder of the lock is the only writer: other files are left from crashes.
  for (const auto& name : names_in(temporary)) unlinkat(temporary.fd(), name.c_str(), 0);
  return finish_restore();
}

Result<OpenFile> CheckpointStore::State::locked() const {
  auto file = open_at(top, "lock", O_RDWR | O_CREAT, 0600);
  if (!file) return failed(errno);
  if (const int number = lock_file(file)) return failed(number);
  return file;
}

/// REQUIRES: the lock is held. So what has the name was left by a crash.
PendingFile CheckpointStore::State::new_file(const std::string& name) const {
  unlinkat(temporary.fd(), name.c_str(), 0);
  return {temporary, name};
}

/// The newest first.
std::vector<std::string> CheckpointStore::State::ids() const {
  auto names = names_in(records);
  std::erase_if(names, [](const std::string& name) { return !is_id(name); });
  std::sort(names.rbegin(), names.rend());
  return names;
}

Result<CheckpointRecord> CheckpointStore::State::load(const std::string& id) const {
  const auto shown = "checkpoint " + std::string(first_characters(id, id_bytes));
  const Error absent{ErrorCode::not_found, shown + " is not there (any more)", "id"};
  if (!is_id(id)) return absent;
  const auto file = open_at(records, id, O_RDONLY);
  if (!file && errno == ENOENT) return absent;
  if (!file) return file_error(shown, errno);
  const auto text = read_whole(file, record_bytes_max, shown);
  if (!text) return text.error();
  auto record = decoded_checkpoint(*text);
  if (!record) return Error{record.error().code, shown + " " + record.error().message};
  return record;
}

Result<void> CheckpointStore::State::write(const OpenFile& into, const std::string& name,
                                           std::string_view text) const {
  auto pending = new_file(name);
  if (!pending.file()) return failed(errno);
  if (const int number = pending.file().write(text)) return failed(number);
  if (const int number = pending.publish(into, name)) return failed(number);
  if (const int number = into.sync()) return failed(number);
  return {};
}

Result<void> CheckpointStore::State::save(const std::string& id,
                                          const CheckpointRecord& record) const {
  return write(records, id, encoded(record));
}

Result<std::string> CheckpointStore::State::add(const CheckpointRecord& record) const {
  const auto all = ids();
  const auto last = all.empty() ? 0UL : std::stoul(all.front().substr(0, serial_digits));
  auto number = std::to_string((last + 1) % 100'000'000);
  number.insert(0, serial_digits - number.size(), '0');
  auto id = number + "-" + new_ulid(clock.wall()).substr(18);
  if (auto saved = save(id, record); !saved) return saved.error();
  return id;
}

// --- Contents --------------------------------------------------------------------------------

/// Returns the present content of a path, stored durably if it is a file.
Result<Image> CheckpointStore::State::keep(const std::filesystem::path& path) const {
  auto pending = new_file("content");
  if (!pending.file()) return failed(errno);
  auto image = image_of(path, [&](std::string_view bytes) { return pending.file().write(bytes); });
  if (!image || image->kind != ImageKind::file) return image;
  if (require_content(*image)) return image;
  if (const int number = objects.publish(pending, {.digest = image->digest})) return failed(number);
  return image;
}

Result<void> CheckpointStore::State::require_content(const Image& image) const {
  if (image.kind != ImageKind::file) return {};
  const auto file = objects.find({.digest = image.digest});
  const auto digest = file ? sha256_of_file(file) : std::nullopt;
  if (digest == image.digest) return {};
  return Error{ErrorCode::corrupt, directory.string() + ": content " + image.digest.substr(0, 12) +
                                       (file ? "… is not what was kept" : "… is missing")};
}

Result<void> CheckpointStore::State::copy(const std::string& digest, const OpenFile& to,
                                          const std::string& shown) const {
  const auto source = objects.find({.digest = digest});
  if (!source) return file_error("the content of " + shown, errno);
  Sha256 copied;
  std::string block(block_bytes, '\0');
  for (std::uint64_t offset = 0;; offset += block_bytes) {
    const auto count = source.read_at(block.data(), block.size(), offset);
    if (count < 0) return file_error("the content of " + shown, errno);
    const auto bytes = std::string_view(block).substr(0, static_cast<std::size_t>(count));
    copied.add(bytes);
    if (const int number = to.write(bytes)) return file_error(shown, number);
    if (bytes.size() < block_bytes) break;
  }
  if (copied.digits() == digest) return {};
  return Error{ErrorCode::corrupt, "the content of " + shown + " is not what was kept"};
}

/// Makes a path hold what the entry has as `after`.
Result<void> CheckpointStore::State::bring(const CheckpointEntry& entry,
                                           const std::string& id) const {
  const auto shown = entry.path.string();
  if (entry.after.kind == ImageKind::file) {
    constexpr mode_t usual = 0777;
    (void)make_folders(entry.path.parent_path(), usual);  // opening it says why
  }
  // To be synced it must be open for reading.
  const auto found = open_parent(entry.path);
  const auto parent = found ? open_at(found, ".", O_RDONLY | O_DIRECTORY) : OpenFile();
  if (!parent) return file_error(shown, errno);
  const auto name = entry.path.filename().string();
  if (entry.after.kind == ImageKind::none) {
    if (unlinkat(parent.fd(), name.c_str(), 0) != 0 && errno != ENOENT)
      return file_error(shown, errno);
  } else {
    const auto beside = name_beside(name, id);
    unlinkat(parent.fd(), beside.c_str(), 0);  // what a crash left
    PendingFile pending(parent, beside);
    if (!pending.file()) return file_error(shown, errno);
    if (auto copied = copy(entry.after.digest, pending.file(), shown); !copied) return copied;
    if (const int number = set_owner(pending.file(), entry.after)) return file_error(shown, number);
    if (const int number = pending.publish(parent, name)) return file_error(shown, number);
  }
  if (const int number = parent.sync()) return file_error(shown, number);
  return {};
}

// --- Restoring -------------------------------------------------------------------------------

/// The checkpoint before a restore, with what the restore shall leave; paths that need nothing, or
/// are to be left alone, go into `done`.
Result<CheckpointRecord> CheckpointStore::State::plan(const CheckpointRecord& record, bool force,
                                                      Restored& done) const {
  CheckpointRecord undo{.at = clock.wall(), .sealed = true};
  for (const auto& entry : record.entries) {
    const auto now = image_of(entry.path);
    if (!now) return now.error();
    const bool left_by_tool = same_content(*now, entry.after);
    if (same_content(*now, entry.before) && (!left_by_tool || now->mode == entry.before.mode)) {
      (entry.before.kind == ImageKind::none ? done.removed : done.restored).push_back(entry.path);
      continue;
    }
    if (now->kind == ImageKind::other || (!left_by_tool && !force)) {
      done.skipped_changed.push_back(entry.path);
      continue;
    }
    if (auto there = require_content(entry.before); !there) return there.error();
    const auto kept = keep(entry.path);
    if (!kept) return kept.error();
    if (same_content(*kept, *now)) {
      undo.entries.push_back({.path = entry.path, .before = *kept, .after = entry.before});
    } else {  // changed between two looks: it is not what was decided about
      done.skipped_changed.push_back(entry.path);
    }
  }
  return undo;
}

/// Does what the checkpoint before a restore says was to be done, as far as it is not done yet.
Result<Restored> CheckpointStore::State::apply(const std::string& undo) const {
  const auto plan = load(undo);
  if (!plan) return plan.error();
  Restored done{.undo = undo};
  for (const auto& entry : plan->entries) {
    const auto now = image_of(entry.path);
    if (!now) return now.error();
    const bool done_already = same_content(*now, entry.after) && now->mode == entry.after.mode;
    if (!done_already && !same_content(*now, entry.before)) {
      const auto beside = name_beside(entry.path.filename(), undo);
      if (const auto parent = open_parent(entry.path)) unlinkat(parent.fd(), beside.c_str(), 0);
      done.skipped_changed.push_back(entry.path);
      continue;
    }
    if (!done_already) {
      if (auto brought = bring(entry, undo); !brought) return brought.error();
    }
    (entry.after.kind == ImageKind::none ? done.removed : done.restored).push_back(entry.path);
  }
  return done;
}

Result<void> CheckpointStore::State::finish_restore() const {
  const auto file = open_at(top, "restoring", O_RDONLY);
  if (!file && errno == ENOENT) return {};
  if (!file) return failed(errno);
  const auto undo = read_whole(file, id_bytes, directory.string() + "/restoring");
  if (!undo) return undo.error();
  if (auto done = apply(*undo); !done) {
    auto error = done.error();
    error.message = "a restore that broke off cannot be finished: " + error.message +
                    "; to leave it at that, delete " + (directory / "restoring").string();
    return error;
  }
  if (unlinkat(top.fd(), "restoring", 0) != 0) return failed(errno);
  if (const int number = top.sync()) return failed(number);
  return {};
}

// --- The store -------------------------------------------------------------------------------

Result<CheckpointStore> CheckpointStore::open(const std::filesystem::path& directory,
                                              const Clock& clock) {
  auto state = std::make_shared<State>(directory, clock);
  if (auto prepared = state->prepare(); !prepared) return prepared.error();
  return CheckpointStore(std::move(state));
}

CheckpointStore::CheckpointStore(std::shared_ptr<State> state) : state_(std::move(state)) {}
CheckpointStore::~CheckpointStore() = default;
CheckpointStore::CheckpointStore(CheckpointStore&&) noexcept = default;
CheckpointStore& CheckpointStore::operator=(CheckpointStore&&) noexcept = default;

Result<std::string> CheckpointStore::snapshot(std::span<const std::filesystem::path> paths,
                                              std::string_view call) {
  CheckpointRecord record{.call = std::string(first_characters(call, call_chars_max)),
                          .at = state_->clock.wall()};
  const auto lock = state_->locked();
  if (!lock) return lock.error();
  std::set<std::filesystem::path> seen;
  for (const auto& given : paths) {
    std::error_code trouble;
    const auto absolute = std::filesystem::absolute(given, trouble);
    const auto path =
        std::filesystem::weakly_canonical(absolute.parent_path(), trouble) / absolute.filename();
    if (trouble || !path.has_filename()) {
      return Error{ErrorCode::invalid, given.string() + ": names no file" +
                                           (trouble ? " (" + trouble.message() + ")" : "")};
    }
    if (!seen.insert(path).second) continue;
    auto image = state_->keep(path);
    if (!image) return image.error();
    if (image->kind == ImageKind::other) {
      return Error{ErrorCode::invalid,
                   path.string() +
                       ": only regular files can be brought back; this is a directory, "
                       "a link or a device"};
    }
    record.entries.push_back({.path = path, .before = std::move(*image)});
  }
  return state_->add(record);
}

Result<void> CheckpointStore::seal(std::string_view id) {
  const auto lock = state_->locked();
  if (!lock) return lock.error();
  auto record = state_->load(std::string(id));
  if (!record) return record.error();
  for (auto& entry : record->entries) {
    auto image = image_of(entry.path);
    if (!image) return image.error();
    entry.after = std::move(*image);
  }
  record->sealed = true;
  return state_->save(std::string(id), *record);
}

Result<Restored> CheckpointStore::restore(std::string_view id, bool force) {
  const auto lock = state_->locked();
  if (!lock) return lock.error();
  // Another process may have been killed in one since this store was opened.
  if (auto finished = state_->finish_restore(); !finished) return finished.error();
  const auto record = state_->load(std::string(id));
  if (!record) return record.error();

  Restored done;
  auto undo = state_->plan(*record, force, done);
  if (!undo) return undo.error();
  if (undo->entries.empty()) return done;
  undo->call = "restore of " + std::string(id);
  const auto undo_id = state_->add(*undo);
  if (!undo_id) return undo_id.error();
  if (auto noted = state_->write(state_->top, "restoring", *undo_id); !noted) return noted.error();
  auto applied = state_->apply(*undo_id);
  // Also after an error: only an interrupted restore is completed later.
  if (unlinkat(state_->top.fd(), "restoring", 0) != 0) return state_->failed(errno);
  if (const int number = state_->top.sync()) return state_->failed(number);
  if (!applied) {
    auto error = applied.error();
    error.message += "; what was done before can be undone by restoring " + *undo_id;
    return error;
  }
  const auto append = [](auto& to, const auto& from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  append(done.restored, applied->restored);
  append(done.removed, applied->removed);
  append(done.skipped_changed, applied->skipped_changed);
  done.undo = *undo_id;
  return done;
}

Result<std::vector<CheckpointInfo>> CheckpointStore::list(std::size_t count_max) const {
  std::vector<CheckpointInfo> all;
  for (auto& id : state_->ids()) {
    if (all.size() >= count_max) break;
    auto record = state_->load(id);
    if (!record && record.error().code == ErrorCode::not_found) continue;  // trimmed meanwhile
    if (!record) return record.error();
    CheckpointInfo info{.id = std::move(id),
                        .call = std::move(record->call),
                        .at = record->at,
                        .sealed = record->sealed};
    for (auto& entry : record->entries) info.paths.push_back(std::move(entry.path));
    all.push_back(std::move(info));
  }
  return all;
}

Result<std::size_t> CheckpointStore::trim(std::size_t keep) {
  const auto lock = state_->locked();
  if (!lock) return lock.error();
  if (auto finished = state_->finish_restore(); !finished) return finished.error();
  const auto all = state_->ids();
  const auto kept = std::min(keep, all.size());
  std::set<std::string> needed;
  for (std::size_t i = 0; i < kept; ++i) {
    const auto record = state_->load(all[i]);
    if (!record) return record.error();
    for (const auto& entry : record->entries) needed.insert(entry.before.digest);
  }
  for (std::size_t i = kept; i < all.size(); ++i) {
    if (unlinkat(state_->records.fd(), all[i].c_str(), 0) != 0) return state_->failed(errno);
  }
  int trouble = 0;
  state_->objects.for_each([&](const ObjectFacts& object) {
    if (needed.contains(object.name.digest)) return;
    if (const int number = state_->objects.remove(object.name)) trouble = number;
  });
  if (trouble != 0) return state_->failed(trouble);
  return all.size() - kept;
}

}  // namespace watchdog
