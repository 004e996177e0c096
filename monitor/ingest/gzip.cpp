#include "ingest/gzip.h"

#include "ingest/unpacker.h"

namespace watchdog::monitor {

Result<std::string> inflated(std::string_view gzip, std::size_t bytes_max) {
  std::string text;
  const auto unpacker = unpacker_for("gzip");
  const bool is_gzip = gzip.starts_with("\x1F\x8B");
  const auto fed = is_gzip ? unpacker->feed(gzip, text, bytes_max) : Unpacker::Fed::broken;
  if (fed == Unpacker::Fed::full)
    return Error{ErrorCode::exhausted,
                 "an inflated body may have at most " + std::to_string(bytes_max) + " bytes"};
  if (fed == Unpacker::Fed::good && unpacker->is_whole()) return text;
  return Error{ErrorCode::malformed, "the body is not gzip, or a part of it is missing"};
}

}  // namespace watchdog::monitor
