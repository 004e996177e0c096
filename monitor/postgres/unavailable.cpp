// For a program without libpq.
#include "postgres/postgres.h"
#include "store/server.h"

namespace watchdog::monitor {
namespace {

Result<std::unique_ptr<StoreServer>> refuse_postgresql(const std::string& /*url*/, bool /*write*/) {
  return Error{ErrorCode::invalid,
               "this program was built without libpq, so it cannot use a database of PostgreSQL. "
               "Use the program of Debian's package, or build it where libpq-dev is installed; or "
               "name an SQLite file"};
}

}  // namespace

void use_postgresql() noexcept {
  use_servers(refuse_postgresql);
}

}  // namespace watchdog::monitor
