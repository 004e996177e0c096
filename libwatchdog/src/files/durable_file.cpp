// POSIX promises that a new name survives a power loss only after a sync of its folder, and that
// new bytes do after one of the file. A rename without both can leave the old file, an empty one,
// or none.
#include "files/durable_file.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <ctime>

namespace watchdog {
namespace {

constexpr std::string_view ending = ".new";
constexpr std::size_t random_digits = 12;
constexpr time_t draft_age_max_s = 3'600;

std::string draft_of(const std::string& name) {
  std::array<unsigned char, random_digits / 2> bytes{};
  // Without chance the name is still one that nobody else uses at this moment, or there is an
  // error.
  if (getrandom(bytes.data(), bytes.size(), 0) < 0) bytes.fill(0);
  std::string draft = "." + name + ".";
  constexpr std::string_view digits = "0123456789abcdef";
  for (const auto byte : bytes) {
    draft += digits[byte >> 4U];
    draft += digits[byte & 15U];
  }
  return draft + std::string(ending);
}

bool is_draft_of(const std::string& name, const std::string& file) {
  return file.size() == 2 + name.size() + random_digits + ending.size() &&
         file.starts_with("." + name + ".") && file.ends_with(ending);
}

}  // namespace

DurableFile::DurableFile(const std::filesystem::path& path, mode_t mode) noexcept
    : name_(path.filename().string()),
      draft_(draft_of(name_)),
      folder_(directory_of(path)),
      file_(folder_ ? open_at(folder_, draft_, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, mode)
                    : OpenFile()) {}

DurableFile::~DurableFile() {
  if (file_ && !is_placed_) unlinkat(folder_.fd(), draft_.c_str(), 0);
}

int DurableFile::place(Existing existing) noexcept {
  if (const int number = file_.sync(); number != 0) return number;
  const unsigned flags = existing == Existing::keep ? RENAME_NOREPLACE : 0;
  if (renameat2(folder_.fd(), draft_.c_str(), folder_.fd(), name_.c_str(), flags) != 0)
    return errno;
  is_placed_ = true;
  const int number = folder_.sync();
  remove_old_drafts();
  return number;
}

int DurableFile::duplicate() const noexcept {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-vararg,hicpp-vararg): POSIX
  return fcntl(file_.fd(), F_DUPFD_CLOEXEC, 0);
}

void DurableFile::remove_old_drafts() const noexcept {
  const auto now = std::time(nullptr);
  for (const auto& file : names_in(folder_)) {
    struct stat facts {};
    if (is_draft_of(name_, file) &&
        fstatat(folder_.fd(), file.c_str(), &facts, AT_SYMLINK_NOFOLLOW) == 0 &&
        facts.st_uid == geteuid() && now - facts.st_mtime > draft_age_max_s)
      unlinkat(folder_.fd(), file.c_str(), 0);
  }
}

int put_file(const std::filesystem::path& path, std::string_view bytes, mode_t mode,
             Existing existing) noexcept {
  DurableFile made(path, mode);
  if (!made.file()) return errno;
  if (const int number = made.file().write(bytes); number != 0) return number;
  return made.place(existing);
}

int make_folders(const std::filesystem::path& folder, mode_t mode) noexcept {
  if (folder.empty()) return 0;
  // "a/b/" names the folder "b" of "a", as "a/b" does.
  if (!folder.has_filename() && folder.has_relative_path())
    return make_folders(folder.parent_path(), mode);
  if (mkdir(folder.c_str(), mode) != 0) {
    if (errno == EEXIST) return 0;
    if (errno != ENOENT) return errno;
    constexpr mode_t usual = 0777;
    const auto parent = folder.parent_path();
    if (parent.empty() || parent == folder) return ENOENT;
    if (const int number = make_folders(parent, usual); number != 0) return number;
    if (mkdir(folder.c_str(), mode) != 0 && errno != EEXIST) return errno;
  }
  const auto parent = directory_of(folder);
  return parent ? parent.sync() : errno;
}

}  // namespace watchdog
