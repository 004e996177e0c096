#include "api/message.h"

#include "privacy/content.h"
#include "text/json_writer.h"

namespace watchdog::monitor {
namespace {

int status_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::malformed:
      return 400;
    case ErrorCode::invalid:
      return 422;
    case ErrorCode::not_found:
      return 404;
    case ErrorCode::conflict:
      return 409;
    case ErrorCode::exhausted:
      return 413;
    case ErrorCode::cancelled:
    case ErrorCode::unavailable:
    case ErrorCode::corrupt:
      return 503;
  }
  return 500;
}

Response written(int status, std::string_view code, const Error& error,
                 std::string_view token_file = {}) {
  JsonWriter out;
  out.open_object().key("error").open_object();
  // It may repeat what was sent.
  out.field("code", code).field("message", redact(error.message));
  if (!error.field.empty()) out.field("field", redact(error.field));
  if (error.line > 0) out.field("line", error.line);
  if (!token_file.empty()) out.field("tokenFile", token_file);
  out.close_object().close_object();
  return {.status = status, .body = out.finish()};
}

}  // namespace

Response error_response(const Error& error) {
  return written(status_of(error.code), name_of(error.code), error);
}

Response error_response(int status, std::string_view code, std::string_view message,
                        std::string_view token_file) {
  return written(status, code, {.message = std::string(message)}, token_file);
}

}  // namespace watchdog::monitor
