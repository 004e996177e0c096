// A file is named SESSION~MOMENT.txt, or SESSION~MOMENT.server if it is of a model server. No
// session's id has a `~`, and neither `.` nor `..` is one. A draft that a crash left ends in
// `.new`, so it counts as no look, and the next look of that name replaces it.
#include "bundle/kept_looks.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <set>
#include <vector>

#include "store/place.h"
#include "store/server.h"

namespace watchdog::monitor {
namespace {

constexpr char separator = '~';

constexpr std::string_view extension_of(LookOf of) {
  return of == LookOf::server ? ".server" : ".txt";
}

/// A file of a look. A plain value.
struct LookName {
  std::string session;
  std::string moment;
  LookOf of;
};

std::optional<LookName> look_name(const std::string& file) {
  const auto at = file.find(separator);
  if (at == std::string::npos || at == 0) return std::nullopt;
  for (const auto of : {LookOf::agent, LookOf::server}) {
    const auto extension = extension_of(of);
    if (file.ends_with(extension))
      return LookName{.session = file.substr(0, at),
                      .moment = file.substr(at + 1, file.size() - at - 1 - extension.size()),
                      .of = of};
  }
  return std::nullopt;
}

std::string file_name(const LookName& look) {
  return look.session + separator + look.moment + std::string(extension_of(look.of));
}

void remove_file(const OpenFile& folder, const std::string& name) {
  (void)unlinkat(folder.fd(), name.c_str(), 0);
}

}  // namespace

std::filesystem::path KeptLooks::folder_of(const std::filesystem::path& database) {
  if (is_server_url(database)) return folder_beside(database) / "server-looks";
  return database.string() + "-looks";
}

OpenFile KeptLooks::folder() const {
  const auto parent = directory_of(folder_);
  if (!parent) return {};
  return open_at(parent, folder_.filename().string(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
}

Result<void> KeptLooks::keep(const std::string& session, const std::string& moment,
                             std::string_view text, LookOf of) {
  const std::lock_guard guard(mutex_);
  const auto parent = directory_of(folder_);
  if (!parent) return file_error(folder_.parent_path().string(), errno);
  const auto folder = open_private_directory(parent, folder_.filename().string(), folder_.string());
  if (!folder) return folder.error();
  const auto name = file_name({.session = session, .moment = moment, .of = of});
  const auto draft = name + ".new";
  remove_file(*folder, draft);  // of a crash
  PendingFile file(*folder, draft);
  int failed = file.file() ? file.file().write(text.substr(0, bytes_max)) : errno;
  if (failed == 0) failed = file.publish(*folder, name);
  if (failed == 0) failed = folder->sync();
  if (failed != 0) return file_error(folder_.string(), failed);
  for (const auto& other : names_in(*folder)) {
    const auto look = look_name(other);
    if (look && look->session == session && look->of == of && other != name)
      remove_file(*folder, other);
  }
  return {};
}

KeptLook KeptLooks::look(const std::string& session, LookOf of) const {
  const std::lock_guard guard(mutex_);
  const auto directory = folder();
  if (!directory) return {};
  for (const auto& name : names_in(directory)) {
    const auto found = look_name(name);
    if (!found || found->session != session || found->of != of) continue;
    const auto file = open_at(directory, name, O_RDONLY | O_NOFOLLOW);
    auto text =
        file ? read_whole(file, bytes_max, name) : Result<std::string>(file_error(name, errno));
    if (text) return {.moment = found->moment, .text = std::move(*text)};
  }
  return {};
}

std::map<std::string, std::string> KeptLooks::moments() const {
  const std::lock_guard guard(mutex_);
  std::map<std::string, std::string> all;
  const auto directory = folder();
  if (!directory) return all;
  for (const auto& name : names_in(directory)) {
    auto look = look_name(name);
    if (look && look->of == LookOf::agent)
      all.insert_or_assign(look->session, std::move(look->moment));
  }
  return all;
}

std::set<std::string> KeptLooks::sessions() const {
  const std::lock_guard guard(mutex_);
  std::set<std::string> all;
  const auto directory = folder();
  if (!directory) return all;
  for (const auto& name : names_in(directory))
    if (auto look = look_name(name)) all.insert(std::move(look->session));
  return all;
}

void KeptLooks::remove_unless(const std::function<bool(const std::string&)>& stays) {
  // The question may wait for a thread that waits for a look.
  std::set<std::string> gone;
  for (const auto& session : sessions())
    if (!stays(session)) gone.insert(session);
  const std::lock_guard guard(mutex_);
  const auto directory = folder();
  if (!directory) return;
  std::vector<std::pair<WallTime, std::string>> kept;
  for (const auto& name : names_in(directory)) {
    const auto look = look_name(name);
    struct stat facts {};
    if (!look || fstatat(directory.fd(), name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0) continue;
    gone.contains(look->session) ? remove_file(directory, name)
                                 : void(kept.emplace_back(time_of(facts), name));
  }
  if (kept.size() <= looks_max) return;
  std::ranges::sort(kept);
  for (std::size_t at = 0; at + looks_max < kept.size(); ++at)
    remove_file(directory, kept[at].second);
}

}  // namespace watchdog::monitor
