// A library to be loaded before libc. Of the calls that concern files in $FAILING_CALL_IN, the one
// that $FAILING_CALL names (NAME:NUMBER:ERRNO) fails, once. At the end of the process the numbers
// of all calls are in $FAILING_CALL_COUNTS, and how many failed.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

enum Call : std::size_t {
  c_open,
  c_write,
  c_fsync,
  c_ftruncate,
  c_rename,
  c_mmap,
  c_flock,
  c_mkdir,
  c_read,
  c_unlink,
  c_chmod,
  c_stat,
  c_fstat,
  c_access,
  calls
};
constexpr std::array<const char*, calls> names{"open",  "write", "fsync", "ftruncate", "rename",
                                               "mmap",  "flock", "mkdir", "read",      "unlink",
                                               "chmod", "stat",  "fstat", "access"};
std::array<std::atomic<int>, calls> counts{};
std::atomic<int> failed{0};

struct Order {
  std::size_t call = calls;
  int number = 0;
  int error = 0;
  const char* place = nullptr;
  std::size_t place_length = 0;

  Order() {
    place = std::getenv("FAILING_CALL_IN");
    place_length = place != nullptr ? std::strlen(place) : 0;
    const char* text = std::getenv("FAILING_CALL");
    for (std::size_t i = 0; text != nullptr && i < calls; ++i) {
      const auto length = std::strlen(names.at(i));
      if (std::strncmp(text, names.at(i), length) != 0 || text[length] != ':') continue;
      call = i;
      if (std::sscanf(text + length, ":%d:%d", &number, &error) != 2) std::abort();
    }
  }
};
const Order& order() {
  static const Order made;
  return made;
}

bool concerns(const char* path) {
  return path != nullptr && order().place != nullptr &&
         std::strncmp(path, order().place, order().place_length) == 0;
}
bool concerns(int fd) {
  std::array<char, 32> link{};
  std::array<char, 4096> path{};
  std::snprintf(link.data(), link.size(), "/proc/self/fd/%d", fd);
  return fd >= 0 && readlink(link.data(), path.data(), path.size() - 1) > 0 &&
         concerns(path.data());
}

/// True if this call is to fail; errno is set.
bool fails(Call call, bool concerned) {
  const int before = errno;
  if (!concerned) {
    errno = before;
    return false;
  }
  const int number = ++counts.at(call);
  if (order().call == call && order().number == number) {
    errno = order().error;
    ++failed;
    return true;
  }
  errno = before;
  return false;
}

template <class Function>
Function* next(Function*, const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

struct Report {
  ~Report() {
    const char* file = std::getenv("FAILING_CALL_COUNTS");
    if (file == nullptr) return;
    std::FILE* out = std::fopen(file, "w");
    if (out == nullptr) return;
    for (std::size_t i = 0; i < calls; ++i)
      std::fprintf(out, "%s %d\n", names.at(i), counts.at(i).load());
    std::fprintf(out, "failed %d\n", failed.load());
    std::fclose(out);
  }
} const report;

}  // namespace

#define NEXT(function) (next(&function, #function))

extern "C" {

int open(const char* path, int flags, ...) {
  std::va_list more;
  va_start(more, flags);
  const auto mode = (flags & (O_CREAT | __O_TMPFILE)) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  if (fails(c_open, concerns(path))) return -1;
  return NEXT(open)(path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  std::va_list more;
  va_start(more, flags);
  const auto mode = (flags & (O_CREAT | __O_TMPFILE)) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  if (fails(c_open, concerns(path))) return -1;
  return NEXT(open64)(path, flags, mode);
}
ssize_t write(int fd, const void* bytes, size_t count) {
  return fails(c_write, concerns(fd)) ? -1 : NEXT(write)(fd, bytes, count);
}
ssize_t pwrite(int fd, const void* bytes, size_t count, off_t at) {
  return fails(c_write, concerns(fd)) ? -1 : NEXT(pwrite)(fd, bytes, count, at);
}
ssize_t pwrite64(int fd, const void* bytes, size_t count, off64_t at) {
  return fails(c_write, concerns(fd)) ? -1 : NEXT(pwrite64)(fd, bytes, count, at);
}
int fsync(int fd) {
  return fails(c_fsync, concerns(fd)) ? -1 : NEXT(fsync)(fd);
}
int fdatasync(int fd) {
  return fails(c_fsync, concerns(fd)) ? -1 : NEXT(fdatasync)(fd);
}
int ftruncate(int fd, off_t size) noexcept {
  return fails(c_ftruncate, concerns(fd)) ? -1 : NEXT(ftruncate)(fd, size);
}
int ftruncate64(int fd, off64_t size) noexcept {
  return fails(c_ftruncate, concerns(fd)) ? -1 : NEXT(ftruncate64)(fd, size);
}
int rename(const char* from, const char* to) noexcept {
  return fails(c_rename, concerns(to)) ? -1 : NEXT(rename)(from, to);
}
int renameat2(int from_fd, const char* from, int to_fd, const char* to, unsigned flags) noexcept {
  return fails(c_rename, concerns(to)) ? -1 : NEXT(renameat2)(from_fd, from, to_fd, to, flags);
}
void* mmap(void* at, size_t bytes, int access, int flags, int fd, off_t from) noexcept {
  return fails(c_mmap, concerns(fd)) ? MAP_FAILED : NEXT(mmap)(at, bytes, access, flags, fd, from);
}
void* mmap64(void* at, size_t bytes, int access, int flags, int fd, off64_t from) noexcept {
  return fails(c_mmap, concerns(fd)) ? MAP_FAILED
                                     : NEXT(mmap64)(at, bytes, access, flags, fd, from);
}
int flock(int fd, int operation) noexcept {
  // Giving a lock back cannot fail.
  return (operation & LOCK_UN) == 0 && fails(c_flock, concerns(fd)) ? -1
                                                                    : NEXT(flock)(fd, operation);
}
int mkdir(const char* path, mode_t mode) noexcept {
  return fails(c_mkdir, concerns(path)) ? -1 : NEXT(mkdir)(path, mode);
}

ssize_t read(int fd, void* bytes, size_t count) {
  return fails(c_read, concerns(fd)) ? -1 : NEXT(read)(fd, bytes, count);
}
ssize_t pread(int fd, void* bytes, size_t count, off_t at) {
  return fails(c_read, concerns(fd)) ? -1 : NEXT(pread)(fd, bytes, count, at);
}
ssize_t pread64(int fd, void* bytes, size_t count, off64_t at) {
  return fails(c_read, concerns(fd)) ? -1 : NEXT(pread64)(fd, bytes, count, at);
}
int unlink(const char* path) noexcept {
  return fails(c_unlink, concerns(path)) ? -1 : NEXT(unlink)(path);
}
int chmod(const char* path, mode_t mode) noexcept {
  return fails(c_chmod, concerns(path)) ? -1 : NEXT(chmod)(path, mode);
}
int fchmod(int fd, mode_t mode) noexcept {
  return fails(c_chmod, concerns(fd)) ? -1 : NEXT(fchmod)(fd, mode);
}
int stat(const char* path, struct stat* result) noexcept {
  return fails(c_stat, concerns(path)) ? -1 : NEXT(stat)(path, result);
}
int stat64(const char* path, struct stat64* result) noexcept {
  return fails(c_stat, concerns(path)) ? -1 : NEXT(stat64)(path, result);
}
int lstat(const char* path, struct stat* result) noexcept {
  return fails(c_stat, concerns(path)) ? -1 : NEXT(lstat)(path, result);
}
int lstat64(const char* path, struct stat64* result) noexcept {
  return fails(c_stat, concerns(path)) ? -1 : NEXT(lstat64)(path, result);
}
int statx(int fd, const char* path, int flags, unsigned mask, struct statx* result) noexcept {
  return fails(c_stat, concerns(path)) ? -1 : NEXT(statx)(fd, path, flags, mask, result);
}
int fstat(int fd, struct stat* result) noexcept {
  return fails(c_fstat, concerns(fd)) ? -1 : NEXT(fstat)(fd, result);
}
int fstat64(int fd, struct stat64* result) noexcept {
  return fails(c_fstat, concerns(fd)) ? -1 : NEXT(fstat64)(fd, result);
}
int access(const char* path, int how) noexcept {
  return fails(c_access, concerns(path)) ? -1 : NEXT(access)(path, how);
}
int faccessat(int fd, const char* path, int how, int flags) noexcept {
  return fails(c_access, concerns(path)) ? -1 : NEXT(faccessat)(fd, path, how, flags);
}

}  // extern "C"
