#include "api/version.h"

#include <openssl/crypto.h>

#include <optional>
#include <string_view>

#include "commit.h"
#include "store/version.h"
#include "text/json_writer.h"
#include "watchdog/health.h"

namespace watchdog::monitor {

std::string own_version() {
  return WATCHDOG_VERSION;
}

std::string versions_as_json() {
  constexpr std::string_view commit = WATCHDOG_COMMIT;
  JsonWriter out;
  out.open_object().field("version", WATCHDOG_VERSION);
  out.field("commit", commit.empty() ? std::nullopt : std::optional(commit));
  out.field("compiler", WATCHDOG_COMPILER);
  out.field("sqlite", sqlite_version());
  out.field("openssl", OpenSSL_version(OPENSSL_VERSION_STRING));
  out.field("schema", schema_version());
  out.field("detector", detector_version);
  return out.close_object().finish();
}

}  // namespace watchdog::monitor
