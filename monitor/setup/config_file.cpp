#include "setup/config_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "files/durable_file.h"
#include "files/regular_file.h"

namespace watchdog::monitor {
namespace {

namespace fs = std::filesystem;

Error failed(const fs::path& path, const std::string& what) {
  const int cause = errno;
  return {ErrorCode::unavailable,
          path.string() + " " + what + ": " + std::generic_category().message(cause)};
}

/// Returns the file that a path names, also where a link leads to a missing file.
fs::path behind_links(fs::path path) {
  constexpr int links_max = 40;
  std::error_code ignored;
  for (int links = 0; links < links_max && fs::is_symlink(path, ignored); ++links) {
    const auto next = fs::read_symlink(path, ignored);
    if (ignored) break;
    path = path.parent_path() / next;
  }
  const auto folder = fs::weakly_canonical(path.parent_path(), ignored);
  return ignored ? path : folder / path.filename();
}

bool is_utf8(const std::string& text) {
  using nlohmann::json;
  const auto repaired = json(text).dump(-1, ' ', false, json::error_handler_t::replace);
  return json::parse(repaired) == text;
}

Result<void> check_unchanged(const ConfigFile& read) {
  const auto now = read_config(read.path);
  if (!now) return now.error();
  if (now->exists == read.exists && now->text == read.text) return {};
  return Error{ErrorCode::conflict,
               read.path.string() + " changed meanwhile and stays as it is. Try again"};
}

}  // namespace

Result<ConfigFile> read_config(const fs::path& path) {
  ConfigFile file{.path = behind_links(fs::absolute(path))};
  struct stat facts {};
  if (stat(file.path.c_str(), &facts) != 0) {
    if (errno == ENOENT) return file;
    return failed(file.path, "cannot be read");
  }
  auto text = read_regular_file(file.path, config_bytes_max, Readers::anybody);
  if (!text) return Error{text.error().code, file.path.string() + " " + text.error().message};
  if (!is_utf8(*text))
    return Error{ErrorCode::invalid,
                 file.path.string() + " is not UTF-8. Convert it, then run the command again"};
  file.exists = true;
  file.text = std::move(*text);
  file.mode = facts.st_mode & 07777U;
  return file;
}

Result<void> check_inside(const ConfigFile& file, const fs::path& folder) {
  std::error_code failed_to_resolve;
  const auto whole = fs::weakly_canonical(fs::absolute(folder), failed_to_resolve);
  const auto inside = file.path.lexically_relative(whole);
  if (!failed_to_resolve && !inside.empty() && *inside.begin() != "..") return {};
  return Error{ErrorCode::invalid, "links of the project lead to " + file.path.string() +
                                       ", which is not in " + whole.string() +
                                       ". Remove the links, or leave --project out"};
}

Result<void> check_writable(const ConfigFile& read) {
  if (!read.exists || (read.mode & 0222U) != 0) return {};
  return Error{ErrorCode::invalid, read.path.string() +
                                       " is read-only and stays as it is. To allow the change: "
                                       "chmod u+w " +
                                       read.path.string()};
}

Result<void> write_config(const ConfigFile& read, const std::string& text) {
  if (auto allowed = check_writable(read); !allowed) return allowed;
  constexpr mode_t usual = 0777;
  (void)make_folders(read.path.parent_path(), usual);
  DurableFile made(read.path);
  if (!made.file()) return failed(read.path, "cannot be written");
  struct stat facts {};
  if (read.exists && stat(read.path.c_str(), &facts) == 0 &&
      fchown(made.file().fd(), facts.st_uid, facts.st_gid))
    errno = 0;  // only root may give a file away; then it is this user's
  if (fchmod(made.file().fd(), read.mode) != 0) return failed(read.path, "cannot be written");
  errno = made.file().write(text);
  if (errno != 0) return failed(read.path, "cannot be written");
  if (auto same = check_unchanged(read); !same) return same;
  errno = made.place();
  return errno == 0 ? Result<void>{} : failed(read.path, "cannot be replaced");
}

Result<void> delete_config(const ConfigFile& read) {
  if (auto same = check_unchanged(read); !same) return same;
  if (unlink(read.path.c_str()) != 0) return failed(read.path, "cannot be deleted");
  return {};
}

fs::path backup_of(const ConfigFile& file) {
  return file.path.string() + ".before-watchdog";
}

}  // namespace watchdog::monitor
