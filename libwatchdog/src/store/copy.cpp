#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "store/reader_state.h"

namespace watchdog {
namespace {

namespace fs = std::filesystem;

/// Durable in its directory as well. 0 or errno.
int sync_file(const fs::path& file) {
  const auto directory = file.has_parent_path() ? file.parent_path() : fs::path(".");
  for (const auto& path : {file, directory}) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return errno;
    const int number = fsync(fd) == 0 ? 0 : errno;
    close(fd);
    if (number != 0) return number;
  }
  return 0;
}

std::int64_t number_in(Database& database, std::string_view sql) {
  auto statement = database.prepare(sql);
  return statement.step() ? statement.integer(0) : 0;
}

/// Reads all of it.
StoreCopy checked(const fs::path& file) {
  Database database(file.string(), OpenMode::read_only);
  auto check = database.prepare("PRAGMA integrity_check(1)");
  if (!check.step() || check.text(0) != "ok") {
    throw SqlFailure{Error{ErrorCode::corrupt, "the copy is damaged: " + check.text(0)}};
  }
  return {.bytes = static_cast<std::int64_t>(fs::file_size(file)),
          .sessions = number_in(database, "SELECT count(*) FROM sessions"),
          .events = number_in(database, "SELECT count(*) FROM events")};
}

}  // namespace

Result<StoreCopy> StoreReader::copy_to(const fs::path& file) {
  const auto refuse = [&](ErrorCode code, int number) {
    return Error{code, file.string() + ": " + std::strerror(number)};
  };
  // Made here, so that nobody else can read it for a moment; what is there is never written over.
  const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return refuse(errno == EEXIST ? ErrorCode::conflict : ErrorCode::unavailable, errno);
  close(fd);
  auto made = state_->guarded<StoreCopy>([&]() -> Result<StoreCopy> {
    auto copy = state_->database->prepare("VACUUM INTO ?");
    copy.bind(1, file.native());
    copy.run();
    if (const int number = sync_file(file)) return refuse(ErrorCode::unavailable, number);
    return checked(file);
  });
  if (!made) unlink(file.c_str());
  return made;
}

}  // namespace watchdog
