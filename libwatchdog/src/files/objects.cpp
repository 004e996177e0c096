#include "files/objects.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "files/sha256.h"

namespace watchdog {
namespace {

constexpr std::size_t folder_digits = 2;
constexpr std::size_t file_digits = 64 - folder_digits;

std::string file_of(const ObjectName& name) {
  return name.digest.substr(folder_digits) + name.suffix;
}

}  // namespace

Result<Objects> Objects::open(const OpenFile& parent, const std::string& shown) {
  auto directory = open_private_directory(parent, "objects", shown + "/objects");
  if (!directory) return directory.error();
  Objects objects;
  objects.directory_ = std::move(*directory);
  return objects;
}

OpenFile Objects::folder_of(const std::string& digest) const {
  return open_at(directory_, digest.substr(0, folder_digits), O_RDONLY | O_DIRECTORY);
}

OpenFile Objects::find(const ObjectName& name) const {
  const auto folder = folder_of(name.digest);
  return folder ? open_at(folder, file_of(name), O_RDONLY) : OpenFile();
}

int Objects::publish(PendingFile& pending, const ObjectName& name) const {
  const auto made = mkdirat(directory_.fd(), name.digest.substr(0, folder_digits).c_str(), 0700);
  if (made != 0 && errno != EEXIST) return errno;
  const auto folder = folder_of(name.digest);
  if (!folder) return errno;
  if (const int number = pending.publish(folder, file_of(name))) return number;
  if (const int number = folder.sync()) return number;
  return made == 0 ? directory_.sync() : 0;
}

int Objects::remove(const ObjectName& name) const {
  const auto folder = folder_of(name.digest);
  if (!folder) return errno == ENOENT ? 0 : errno;
  return unlinkat(folder.fd(), file_of(name).c_str(), 0) == 0 || errno == ENOENT ? 0 : errno;
}

std::vector<std::string> Objects::digests_from(std::string_view digits) const {
  const std::string first(digits.substr(0, folder_digits));
  std::vector<std::string> digests;
  const auto folder = folder_of(first);
  if (!folder) return digests;
  for (const auto& name : names_in(folder)) {
    auto digest = first + name.substr(0, file_digits);
    if (is_sha256(digest) && digest.starts_with(digits)) digests.push_back(std::move(digest));
  }
  std::sort(digests.begin(), digests.end());
  digests.erase(std::unique(digests.begin(), digests.end()), digests.end());
  return digests;
}

void Objects::for_each(const std::function<void(const ObjectFacts&)>& look) const {
  for (const auto& first : names_in(directory_)) {
    if (first.size() != folder_digits) continue;
    const auto folder = open_at(directory_, first, O_RDONLY | O_DIRECTORY);
    if (!folder) continue;
    for (const auto& name : names_in(folder)) {
      struct stat facts {};
      ObjectFacts found{.name = {.digest = first + name.substr(0, file_digits)}};
      if (!is_sha256(found.name.digest) ||
          fstatat(folder.fd(), name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0)
        continue;
      found.name.suffix = name.substr(file_digits);
      found.bytes = static_cast<std::uint64_t>(std::max<off_t>(facts.st_size, 0));
      found.touched = time_of(facts);
      look(found);
    }
  }
}

}  // namespace watchdog
