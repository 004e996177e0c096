#include "support/faulty_files.h"

#include <sqlite3.h>
#include <unistd.h>

#include <cstdlib>

namespace watchdog::test {
namespace {

FaultyFiles* faults = nullptr;
sqlite3_vfs* real_vfs = nullptr;

/// SQLite reserves room for the real file behind this one.
struct FaultyFile {
  sqlite3_file base;
  sqlite3_file* real;
};
sqlite3_file* real(sqlite3_file* file) {
  return reinterpret_cast<FaultyFile*>(file)->real;  // NOLINT: SQLite's way to derive
}

}  // namespace

/// The functions that SQLite calls.
struct FaultyHooks {
  static bool strikes(FileCall call) { return faults != nullptr && faults->strikes(call); }
  static FaultyFiles::Failure how() { return faults->how_; }
  static void end_if_asked() {
    if (how() == FaultyFiles::Failure::end || how() == FaultyFiles::Failure::half_end)
      _exit(FaultyFiles::end_code);
  }
  /// The result of a call that only fails.
  static int refuse(int error) {
    end_if_asked();
    return error;
  }

  static int close(sqlite3_file* file) { return real(file)->pMethods->xClose(real(file)); }
  static int read(sqlite3_file* file, void* into, int bytes, sqlite3_int64 at) {
    if (strikes(FileCall::read)) return refuse(SQLITE_IOERR_READ);
    return real(file)->pMethods->xRead(real(file), into, bytes, at);
  }
  static int write(sqlite3_file* file, const void* from, int bytes, sqlite3_int64 at) {
    const auto& methods = *real(file)->pMethods;
    if (!strikes(FileCall::write)) return methods.xWrite(real(file), from, bytes, at);
    if (how() == FaultyFiles::Failure::half || how() == FaultyFiles::Failure::half_end)
      (void)methods.xWrite(real(file), from, bytes / 2, at);
    return refuse(how() == FaultyFiles::Failure::full ? SQLITE_FULL : SQLITE_IOERR_WRITE);
  }
  static int truncate(sqlite3_file* file, sqlite3_int64 size) {
    if (strikes(FileCall::truncate)) return refuse(SQLITE_IOERR_TRUNCATE);
    return real(file)->pMethods->xTruncate(real(file), size);
  }
  static int sync(sqlite3_file* file, int flags) {
    if (strikes(FileCall::sync)) return refuse(SQLITE_IOERR_FSYNC);
    return real(file)->pMethods->xSync(real(file), flags);
  }
  static int size(sqlite3_file* file, sqlite3_int64* bytes) {
    if (strikes(FileCall::size)) return refuse(SQLITE_IOERR_FSTAT);
    return real(file)->pMethods->xFileSize(real(file), bytes);
  }
  static int lock(sqlite3_file* file, int kind) {
    if (strikes(FileCall::lock)) return refuse(SQLITE_IOERR_LOCK);
    return real(file)->pMethods->xLock(real(file), kind);
  }
  static int unlock(sqlite3_file* file, int kind) {
    return real(file)->pMethods->xUnlock(real(file), kind);
  }
  static int check_lock(sqlite3_file* file, int* held) {
    return real(file)->pMethods->xCheckReservedLock(real(file), held);
  }
  static int control(sqlite3_file* file, int what, void* argument) {
    return real(file)->pMethods->xFileControl(real(file), what, argument);
  }
  static int sector(sqlite3_file* file) { return real(file)->pMethods->xSectorSize(real(file)); }
  static int traits(sqlite3_file* file) {
    return real(file)->pMethods->xDeviceCharacteristics(real(file));
  }
  static int map_index(sqlite3_file* file, int page, int bytes, int extend,
                       void volatile** memory) {
    if (strikes(FileCall::map_index)) return refuse(SQLITE_IOERR_SHMMAP);
    return real(file)->pMethods->xShmMap(real(file), page, bytes, extend, memory);
  }
  static int lock_index(sqlite3_file* file, int from, int count, int flags) {
    // Giving a lock back cannot fail.
    if ((flags & SQLITE_SHM_LOCK) != 0 && strikes(FileCall::lock_index))
      return refuse(SQLITE_IOERR_SHMLOCK);
    return real(file)->pMethods->xShmLock(real(file), from, count, flags);
  }
  static void barrier(sqlite3_file* file) { real(file)->pMethods->xShmBarrier(real(file)); }
  static int unmap_index(sqlite3_file* file, int remove) {
    return real(file)->pMethods->xShmUnmap(real(file), remove);
  }

  static int open(sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* out) {
    static const sqlite3_io_methods methods{
        .iVersion = 2,
        .xClose = close,
        .xRead = read,
        .xWrite = write,
        .xTruncate = truncate,
        .xSync = sync,
        .xFileSize = size,
        .xLock = lock,
        .xUnlock = unlock,
        .xCheckReservedLock = check_lock,
        .xFileControl = control,
        .xSectorSize = sector,
        .xDeviceCharacteristics = traits,
        .xShmMap = map_index,
        .xShmLock = lock_index,
        .xShmBarrier = barrier,
        .xShmUnmap = unmap_index,
        .xFetch = nullptr,
        .xUnfetch = nullptr,
    };
    auto& faulty = *reinterpret_cast<FaultyFile*>(file);  // NOLINT: SQLite's way to derive
    faulty.base.pMethods = nullptr;
    faulty.real = reinterpret_cast<sqlite3_file*>(&faulty + 1);  // NOLINT: reserved behind it
    if (strikes(FileCall::open)) return refuse(SQLITE_CANTOPEN);
    const int code = real_vfs->xOpen(real_vfs, name, faulty.real, flags, out);
    if (faulty.real->pMethods != nullptr) faulty.base.pMethods = &methods;
    return code;
  }
  static int remove(sqlite3_vfs*, const char* name, int sync_directory) {
    if (strikes(FileCall::remove)) return refuse(SQLITE_IOERR_DELETE);
    return real_vfs->xDelete(real_vfs, name, sync_directory);
  }
};

namespace {

sqlite3_vfs& faulty_vfs() {
  static sqlite3_vfs vfs = [] {
    sqlite3_initialize();
    real_vfs = sqlite3_vfs_find(nullptr);
    sqlite3_vfs made = *real_vfs;  // what asks for the time, and so on
    made.zName = "faulty";
    made.szOsFile = static_cast<int>(sizeof(FaultyFile)) + real_vfs->szOsFile;
    made.pNext = nullptr;
    made.xOpen = FaultyHooks::open;
    made.xDelete = FaultyHooks::remove;
    return made;
  }();
  return vfs;
}

}  // namespace

const char* name_of(FileCall call) {
  constexpr std::array<const char*, file_calls> names{
      "open", "read",   "write", "truncate",  "sync",
      "size", "remove", "lock",  "map_index", "lock_index"};
  return names.at(static_cast<std::size_t>(call));
}

FaultyFiles::FaultyFiles() {
  faults = this;
  sqlite3_vfs_register(&faulty_vfs(), 1);
}

FaultyFiles::~FaultyFiles() {
  sqlite3_vfs_unregister(&faulty_vfs());
  faults = nullptr;
}

void FaultyFiles::fail(FileCall call, int at, Failure how) {
  count();
  call_ = call;
  how_ = how;
  at_ = at;
}

void FaultyFiles::count() {
  at_ = 0;
  failed_ = false;
  for (auto& calls : calls_) calls = 0;
}

int FaultyFiles::calls(FileCall call) const {
  return calls_.at(static_cast<std::size_t>(call));
}

bool FaultyFiles::strikes(FileCall call) {
  const int number = ++calls_.at(static_cast<std::size_t>(call));
  if (at_ == 0 || call_ != call || number != at_) return false;
  failed_ = true;
  return true;
}

}  // namespace watchdog::test
