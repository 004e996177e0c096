/// \file
/// Where a simulated day keeps its file, and how that disk gets full.
#pragma once

#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

namespace watchdog::test {

/// Takes the first of the file systems that has room; one in memory is the quicker one.
inline std::filesystem::path quick_directory() {
  struct statvfs room {};
  const bool in_memory = statvfs("/dev/shm", &room) == 0 &&
                         room.f_bavail * room.f_frsize > 512ULL * 1024 * 1024 &&
                         access("/dev/shm", W_OK) == 0;
  return in_memory ? "/dev/shm" : std::filesystem::temp_directory_path();
}

/// While an object of this class exists, this process cannot write to files: the disk is full.
class FullDisk {
 public:
  FullDisk() {
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit none{.rlim_cur = 0, .rlim_max = before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &none);
  }
  ~FullDisk() { setrlimit(RLIMIT_FSIZE, &before_); }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

 private:
  rlimit before_{};
};

}  // namespace watchdog::test
