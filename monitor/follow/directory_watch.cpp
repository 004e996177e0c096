#include "follow/directory_watch.h"

#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <utility>

namespace watchdog::monitor {

DirectoryWatch::DirectoryWatch() : descriptor_(inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
  is_complete_ = descriptor_ >= 0;
}
DirectoryWatch::~DirectoryWatch() {
  if (descriptor_ >= 0) close(descriptor_);
}

void DirectoryWatch::add(const std::filesystem::path& directory) {
  if (descriptor_ < 0) return;
  const int watch = inotify_add_watch(
      descriptor_, directory.c_str(),
      IN_CREATE | IN_MODIFY | IN_MOVED_TO | IN_ONLYDIR | IN_DONT_FOLLOW | IN_EXCL_UNLINK);
  if (watch < 0) {
    is_complete_ = false;
  } else {
    directories_[watch] = directory;
  }
}

std::vector<std::filesystem::path> DirectoryWatch::changed() {
  std::vector<std::filesystem::path> paths;
  alignas(inotify_event) std::array<char, 16'384> buffer{};
  while (descriptor_ >= 0) {
    const auto got = ::read(descriptor_, buffer.data(), buffer.size());
    if (got <= 0) break;
    for (std::size_t at = 0; at + sizeof(inotify_event) <= static_cast<std::size_t>(got);) {
      inotify_event event{};
      std::memcpy(&event, buffer.data() + at, sizeof event);
      const char* name = buffer.data() + at + sizeof event;
      at += sizeof event + event.len;
      if ((event.mask & IN_Q_OVERFLOW) != 0) lost_ = true;
      if ((event.mask & IN_IGNORED) != 0) directories_.erase(event.wd);
      const auto found = directories_.find(event.wd);
      if (found == directories_.end() || event.len == 0) continue;
      auto path = found->second / name;
      if (paths.empty() || paths.back() != path) paths.push_back(std::move(path));
    }
  }
  return paths;
}

bool DirectoryWatch::drain_lost() noexcept {
  return std::exchange(lost_, false);
}

}  // namespace watchdog::monitor
