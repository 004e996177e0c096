// Each operation walks its path first and then works in the directory that the walk holds open. So
// a link that somebody puts there meanwhile cannot lead out. The walk only inspects a file;
// `opened` opens it for reading and compares the inode with what the walk saw. `stage` writes a
// file beside the target, with the owner and mode of an existing one, and leaves it there for the
// write fence.
#include "watchdog/workspace.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <utility>

#include "facts/ids.h"
#include "files/open_file.h"
#include "files/sha256.h"
#include "files/walk.h"
#include "privacy/content.h"
#include "text/utf8.h"
#include "workspace/line_diff.h"

namespace watchdog {
namespace {

std::string shown(const Place& place) {
  return "\"" + place.path().string() + "\"";
}

Result<struct stat> facts_of(const Place& place) {
  if (place.missing > 0) return Error{ErrorCode::not_found, shown(place) + " is not there", "path"};
  if (!place.file) return Error{ErrorCode::invalid, shown(place) + " is a directory", "path"};
  struct stat facts {};
  if (fstat(place.file.fd(), &facts) != 0) return file_error(shown(place), errno);
  if (!S_ISREG(facts.st_mode)) {
    return Error{ErrorCode::invalid,
                 shown(place) + " is not a file but a pipe, a socket or a device", "path"};
  }
  return facts;
}

Result<std::pair<OpenFile, std::uint64_t>> opened(const Place& place) {
  const auto seen = facts_of(place);
  if (!seen) return seen.error();
  auto file = open_at(place.directory(), place.names.back(), O_RDONLY);
  if (!file && errno != ELOOP && errno != ENXIO) return file_error(shown(place), errno);
  struct stat facts {};
  if (!file || fstat(file.fd(), &facts) != 0 || facts.st_ino != seen->st_ino ||
      facts.st_dev != seen->st_dev) {
    return Error{ErrorCode::unavailable, shown(place) + " was replaced while it was opened"};
  }
  return std::pair(std::move(file), static_cast<std::uint64_t>(facts.st_size));
}

/// Makes what is missing of the directories on the way; gives the last one.
Result<OpenFile> made_directory(const Place& place) {
  auto directory = open_at(place.directory(), ".", O_RDONLY | O_DIRECTORY);
  if (!directory) return file_error(shown(place), errno);
  for (auto at = place.names.size() - place.missing; at + 1 < place.names.size(); ++at) {
    const auto& name = place.names[at];
    if (mkdirat(directory.fd(), name.c_str(), 0777) != 0 && errno != EEXIST)
      return file_error(shown(place) + ": directory \"" + name + "\"", errno);
    auto next = open_at(directory, name, O_RDONLY | O_DIRECTORY);
    if (!next) return file_error(shown(place) + ": directory \"" + name + "\"", errno);
    if (const int number = directory.sync()) return file_error(shown(place), number);
    directory = std::move(next);
  }
  return directory;
}

std::string staged_name(const std::string& name) {
  const auto mark = ".wd-" + new_ulid(system_clock().wall()).substr(18);  // 40 random bits
  auto kept = std::string_view(name);
  while (kept.size() + mark.size() + 1 > NAME_MAX) {
    const auto continues = [&] {
      return (static_cast<unsigned char>(kept.back()) & 0xC0U) == 0x80U;
    };
    while (kept.size() > 1 && continues()) kept.remove_suffix(1);
    kept.remove_suffix(1);
  }
  return "." + std::string(kept) + mark;
}

bool is_text(std::string_view bytes) {
  return bytes.find('\0') == std::string_view::npos && is_utf8(bytes);
}

}  // namespace

struct Workspace::State {
  std::vector<Root> roots;
};

Result<Workspace> Workspace::open(const std::vector<std::filesystem::path>& roots) {
  assert(!roots.empty());
  auto state = std::make_shared<State>();
  for (const auto& path : roots) {
    std::error_code trouble;
    Root root{.path = std::filesystem::canonical(path, trouble)};
    if (trouble) {
      const bool absent = trouble == std::errc::no_such_file_or_directory;
      return Error{absent ? ErrorCode::not_found : ErrorCode::invalid,
                   "workspace " + path.string() + ": " + trouble.message()};
    }
    root.spelled = std::filesystem::absolute(path, trouble).lexically_normal();
    if (!root.spelled.has_filename()) root.spelled = root.spelled.parent_path();
    root.directory = OpenFile(::open(root.path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!root.directory) {
      const int number = errno;
      if (number == ENOTDIR)
        return Error{ErrorCode::invalid, "workspace " + path.string() + ": is not a directory"};
      return file_error("workspace " + path.string(), number);
    }
    state->roots.push_back(std::move(root));
  }
  return Workspace(std::move(state));
}

Workspace::Workspace(std::shared_ptr<State> state) : state_(std::move(state)) {}
Workspace::~Workspace() = default;
Workspace::Workspace(Workspace&&) noexcept = default;
Workspace& Workspace::operator=(Workspace&&) noexcept = default;

const std::filesystem::path& Workspace::root() const noexcept {
  return state_->roots.front().path;
}

Result<std::filesystem::path> Workspace::resolve(std::string_view path) const {
  const auto place = walk(state_->roots, path);
  if (!place) return place.error();
  return place->path();
}

Result<FilePart> Workspace::read(std::string_view path, std::uint64_t offset,
                                 std::size_t bytes_max) const {
  const auto place = walk(state_->roots, path);
  if (!place) return place.error();
  const auto found = opened(*place);
  if (!found) return found.error();
  const auto& [file, total] = *found;
  if (offset > total) {
    return Error{ErrorCode::invalid,
                 "offset " + std::to_string(offset) + " lies beyond the " + std::to_string(total) +
                     " bytes of " + shown(*place),
                 "offset"};
  }
  FilePart part{.bytes = std::string(
                    std::min<std::uint64_t>({bytes_max, file_bytes_max, total - offset}), '\0'),
                .offset = offset,
                .total = total};
  const auto count = file.read_at(part.bytes.data(), part.bytes.size(), offset);
  if (count < 0) return file_error(shown(*place), errno);
  part.bytes.resize(static_cast<std::size_t>(count));  // it may have become shorter
  return part;
}

Result<FileNames> Workspace::list(std::string_view path, std::size_t count_max) const {
  const auto place = walk(state_->roots, path);
  if (!place) return place.error();
  if (place->missing > 0)
    return Error{ErrorCode::not_found, shown(*place) + " is not there", "path"};
  if (place->file) return Error{ErrorCode::invalid, shown(*place) + " is not a directory", "path"};
  const auto directory = open_at(place->directory(), ".", O_RDONLY | O_DIRECTORY);
  if (!directory) return file_error(shown(*place), errno);
  FileNames found{.names = names_in(directory)};
  found.total = found.names.size();
  std::sort(found.names.begin(), found.names.end());
  found.names.resize(std::min(found.total, count_max));
  for (auto& name : found.names) {
    struct stat facts {};
    const bool is_seen = fstatat(directory.fd(), name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) == 0;
    if (is_seen && S_ISDIR(facts.st_mode)) name += '/';
  }
  return found;
}

Result<std::optional<std::string>> Workspace::digest(std::string_view path) const {
  const auto place = walk(state_->roots, path);
  if (!place) return place.error();
  if (place->missing > 0) return std::optional<std::string>();
  const auto found = opened(*place);
  if (!found) return found.error();
  const auto& [file, total] = *found;
  if (total > digest_bytes_max) {
    return Error{ErrorCode::exhausted,
                 shown(*place) + " has " + std::to_string(total) + " bytes; files above " +
                     std::to_string(digest_bytes_max) + " are not compared",
                 "path"};
  }
  auto digest = sha256_of_file(file, digest_bytes_max);
  if (!digest) return file_error(shown(*place), errno);
  return std::optional(std::move(*digest));
}

Result<std::filesystem::path> Workspace::stage(std::string_view path,
                                               std::string_view content) const {
  const auto place = walk(state_->roots, path);
  if (!place) return place.error();
  const auto target = facts_of(*place);
  if (!target && target.error().code != ErrorCode::not_found) return target.error();
  const auto directory = made_directory(*place);
  if (!directory) return directory.error();
  // Not more open than the target while it is written.
  PendingFile pending(*directory, staged_name(place->names.back()), target ? 0600 : 0644);
  const auto failed = [&](int number) { return file_error(shown(*place), number); };
  if (!pending.file()) return failed(errno);
  if (const int number = pending.file().write(content)) return failed(number);
  if (target) {
    // Without permission to change the owner the file stays ours, without bits that lend the
    // owner's rights.
    if (fchown(pending.file().fd(), target->st_uid, target->st_gid) != 0 && errno != EPERM)
      return failed(errno);
    if (fchmod(pending.file().fd(), target->st_mode & 0777U) != 0) return failed(errno);
  }
  if (const int number = pending.file().sync()) return failed(number);
  pending.keep();
  return place->path().parent_path() / pending.name();
}

Result<std::string> Workspace::diff(std::string_view path, std::string_view content,
                                    std::size_t chars_max) const {
  const auto place = walk(state_->roots, path);
  if (!place) return place.error();
  FilePart before;
  const bool is_new = place->missing > 0;
  if (!is_new) {
    auto part = read(path);
    if (!part) return part.error();
    before = std::move(*part);
  }
  std::filesystem::path name;
  for (const auto& part : place->names) name /= part;
  const bool shown_whole = before.bytes.size() == before.total && content.size() <= file_bytes_max;
  if (shown_whole && is_text(before.bytes) && is_text(content)) {
    return unified_diff(before.bytes, content, is_new ? "/dev/null" : name.string(), name.string(),
                        chars_max);
  }
  if (shown_whole && before.bytes == content) return std::string();
  const auto sizes =
      is_new
          ? name.string() + " is new and no text: " + std::to_string(content.size()) + " bytes.\n"
          : name.string() + " is not a text that can be compared: " + std::to_string(before.total) +
                " bytes become " + std::to_string(content.size()) + ".\n";
  return std::string(first_characters(sizes, chars_max));
}

}  // namespace watchdog
